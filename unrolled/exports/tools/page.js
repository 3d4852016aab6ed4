"use strict";
// What the page does with the model: write, label, forecast. Texts of users and of the model are only ever shown as text.

const ids = values => tensor(Float64Array.from(values), [values.length], "int64");
const scaled = (logits, temperature) => Array.from(logits, v => v / temperature);

function probabilities(logits) {
  const most = Math.max(...logits), p = logits.map(v => Math.exp(v - most)), total = p.reduce((a, b) => a + b, 0);
  return p.map(v => v / total);
}

function start(app) {  // what a text is begun with
  if (!app.facts.data.is_stream) return [2];
  const end = app.codec.encode("\n").pop();
  return [end === undefined || end === 1 ? app.codec.specials.length : end];
}

function* written(app, prompt, {temperature, most, random}) {  // bytes of token after token
  const given = app.codec.encode(prompt), stream = app.facts.data.is_stream;
  const first = stream && given.length ? given : [...start(app), ...given];
  let state = app.model.initial(1), y;
  for (const token of first) [y, state] = app.model.next(ids([token]), state);
  for (let n = 0; n < most; n++) {
    const logits = Array.from(y.data);
    for (const token of app.facts.never) logits[token] = -Infinity;
    let token = logits.indexOf(Math.max(...logits));
    if (temperature > 0) {
      const p = probabilities(scaled(logits, temperature));
      let u = random();
      token = p.findIndex(v => (u -= v) < 0);
      if (token < 0) token = logits.indexOf(Math.max(...logits));
    }
    if (token === 3) return;
    yield app.codec.bytes(token);
    [y, state] = app.model.next(ids([token]), state);
  }
}

function numbersIn(text, width) {  // lines of `width` numbers, or one after the other where there is one on each line
  const lines = text.trim().split(/\n/).map(line => line.trim().split(/[\s,;]+/).filter(Boolean));
  const rows = width === 1 ? lines.flat().map(word => [word]) : lines;
  rows.forEach((row, i) => {
    if (row.length !== width || row.some(word => !Number.isFinite(Number(word))))
      throw new Error(`line ${i + 1}: expected ${width} number${width > 1 ? "s" : ""}, found "${row.join(" ").slice(0, 40)}"`);
  });
  return rows.map(row => row.map(Number));
}

function inputOf(app, text) {  // x [1, S] or [1, S, D]
  const scaler = app.facts.codec["inputs.json"];
  if (scaler) {
    const rows = numbersIn(text, scaler.mean.length);
    const data = rows.flatMap(row => row.map((v, d) => (v - scaler.mean[d]) / scaler.std[d]));
    return tensor(Float32Array.from(data), [1, rows.length, scaler.mean.length], "float32");
  }
  const list = app.facts.codec["words.json"];
  const own = list ? text.split(/\s+/).filter(Boolean).map(word => list.words.indexOf(word) < 0 ? 1 : list.words.indexOf(word) + 4)
    : app.codec.encode(app.facts.spaced ? ` ${text}` : text);
  return tensor(Float64Array.from(own), [1, own.length], "int64");
}

function labelled(app, text) {  // [{name, p}] for classes, [{name, value}] for numbers, [{word, name}] for tags
  const x = inputOf(app, text), n = x.shape[1], answers = app.facts.codec["answers.json"];
  if (n === 0) throw new Error("there is nothing to read: type something");
  const y = Array.from(app.model.read({x, mask: filled([1, n], 1, "bool")}).y.data);
  const logits = scaled(y, app.facts.emission.temperature || 1);
  if (answers.answers === "class") return probabilities(logits).map((p, i) => ({name: answers.names[i], p})).sort((a, b) => b.p - a.p);
  if (answers.answers === "classes") return logits.map((v, i) => ({name: answers.names[i], p: sigmoid(v)})).sort((a, b) => b.p - a.p);
  if (answers.answers === "numbers") return answers.mean.map((mean, i) => ({name: `number ${i + 1}`, value: mean + answers.std[i] * y[i]}));
  const words = text.split(/\s+/).filter(Boolean), C = answers.names.length;
  return words.map((word, t) => {
    const own = y.slice(t * C, (t + 1) * C);
    return {word, name: answers.names[own.indexOf(Math.max(...own))]};
  });
}

function forecast(app, text) {  // {history, median, low, high}: the next steps, with the ends of the interval of 80 %
  const series = app.facts.codec["series.json"], values = numbersIn(text, 1).map(row => row[0]), own = series.scales[""];
  if (values.length < 2) throw new Error("give at least two values, one on a line");
  const log = series.transform === "log";
  if (log && values.some(v => v <= 0)) throw new Error("the model reads logarithms: give numbers above 0");
  const z = values.map(v => log ? Math.log(v) : v), average = list => list.reduce((a, b) => a + b, 0) / list.length;
  let shift = 0, scale = 1;
  if (own) [[shift], [scale]] = own;
  else if (series.scaling === "standard") { shift = average(z); scale = Math.sqrt(average(z.map(v => (v - shift) ** 2))) || 1; }
  else if (series.scaling === "mean") scale = average(z.map(Math.abs)) || 1;
  const read = z.slice(-series.lookback).map(v => (v - shift) / scale), H = series.horizon, levels = app.facts.levels;
  let state = app.model.initial ? app.model.initial(1) : null, y;
  if (app.model.read) {
    const x = tensor(Float32Array.from(read), [1, read.length, 1], "float32");
    y = app.model.read({x, mask: filled([1, read.length], 1, "bool")}).y;
  } else for (const v of read) [y, state] = app.model.next(tensor(Float32Array.of(v), [1, 1], "float32"), state);
  const residuals = app.facts.data.residuals || {width: Array(H).fill(1), quantiles: levels.map(() => 0), least: null};
  const around = h => {  // a model with a closed form gives the numbers themselves; intervals are those of held-out errors
    const point = y.data[h], level = log || residuals.least === null ? 1 : Math.max(point + shift / scale, residuals.least);
    return residuals.quantiles.map(z => point + z * residuals.width[h] * level);
  };
  const spread = h => {
    const q = levels.map((_, k) => y.data[k * H + h]).sort((a, b) => a - b), median = q[levels.indexOf(0.5)];
    return q.map(v => median + app.facts.data.spread * (v - median));
  };
  const at = h => (y.data.length === H ? around(h) : spread(h)).map(v => shift + scale * v).map(v => log ? Math.exp(v) : v);
  const q = Array.from({length: H}, (_, h) => at(h)), of = level => q.map(each => each[levels.indexOf(level)]);
  return {history: values, median: of(0.5), low: of(0.1), high: of(0.9)};
}

// ---- the page

function element(name, words, attributes = {}) {
  const made = document.createElement(name);
  if (words !== undefined) made.textContent = words;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const shown = value => Number(value.toPrecision(5)).toString();

function chart({history, median, low, high}) {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const past = history.slice(-4 * median.length - 8), all = [...past, ...low, ...high], n = past.length + median.length;
  const least = Math.min(...all), most = Math.max(...all), x = i => 8 + 584 * i / (n - 1), y = v => 192 - 184 * (v - least) / (most - least || 1);
  const path = (values, first) => values.map((v, i) => `${i ? "L" : "M"}${x(first + i).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const last = past.length - 1, found = svg("svg", {viewBox: "0 0 600 200", role: "img", "aria-label": "the series and its forecast with an 80 % interval"});
  const back = high.map((_, i) => high[high.length - 1 - i]).map((v, i) => `L${x(last + high.length - i).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  found.append(svg("path", {d: `${path(low, last + 1)}${back}Z`, class: "band"}), svg("path", {d: path(past, 0), class: "past"}),
    svg("path", {d: path([past[last], ...median], last), class: "median"}));
  return found;
}

function table(head, rows) {
  const made = element("table"), line = element("tr");
  head.forEach(word => line.append(element("th", word)));
  made.append(line);
  for (const row of rows) {
    const own = element("tr");
    row.forEach(cell => own.append(element("td", cell)));
    made.append(own);
  }
  return made;
}

const ACTIONS = {
  label: (app, output, text) => {
    const found = labelled(app, text);
    if (found.length && "p" in found[0]) for (const {name, p} of found.slice(0, 20)) {
      const row = element("div", undefined, {class: "bar"}), bar = element("i");
      bar.style.width = `${(100 * p).toFixed(2)}%`;
      row.append(element("b", name), element("span", `${(100 * p).toFixed(1)} %`), bar);
      output.append(row);
    } else if (found.length && "value" in found[0]) output.append(table(["", "prediction"], found.map(each => [each.name, shown(each.value)])));
    else output.append(table(["word", "tag"], found.map(each => [each.word, each.name])));
  },
  forecast: (app, output, text) => {
    const found = forecast(app, text);
    output.append(chart(found), table(["step", "forecast", "80 % interval"],
      found.median.map((v, h) => [`+${h + 1}`, shown(v), `${shown(found.low[h])} to ${shown(found.high[h])}`])));
  },
};

async function write(app, output, text, going) {
  const temperature = Number(document.getElementById("temperature").value), most = Number(document.getElementById("most").value);
  const decoder = new TextDecoder(), begun = performance.now(), place = element("p", text, {class: "text"});
  output.append(place);
  let n = 0, drawn = begun;
  for (const bytes of written(app, text, {temperature, most, random: Math.random})) {
    place.append(decoder.decode(bytes, {stream: true}));
    n++;
    if (performance.now() - drawn > 30) {  // let the page be drawn, and Stop be pressed
      await new Promise(done => setTimeout(done));
      drawn = performance.now();
      if (!going()) break;
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  document.getElementById("note").textContent = `${n} tokens, ${Math.round(n / seconds)} a second`;
}

function openModel() {
  const read = id => document.getElementById(id).textContent;
  const model = JSON.parse(read("model")), text = atob(read("weights").trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const tokenizer = model.facts.codec["tokenizer.json"];
  return {facts: model.facts, model: modelOf({...model, initial: model.facts.initial}, bytes), codec: tokenizer ? codecOf(tokenizer) : null};
}

function begin() {
  const app = openModel(), output = document.getElementById("output"), note = document.getElementById("note"), run = document.getElementById("run");
  const stop = document.getElementById("stop");
  let going = false;
  stop.addEventListener("click", () => { going = false; });
  document.getElementById("form").addEventListener("submit", async event => {
    event.preventDefault();
    if (going) return;
    going = true;
    run.disabled = true;
    stop.disabled = false;
    output.replaceChildren();
    note.textContent = "";
    const text = document.getElementById("text").value;
    try {
      if (app.facts.mode === "write") await write(app, output, text, () => going);
      else ACTIONS[app.facts.mode](app, output, text);
    } catch (error) {
      note.textContent = error.message;
    }
    going = false;
    run.disabled = false;
    stop.disabled = true;
  });
  return app;
}
