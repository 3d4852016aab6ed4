// Playground: one input, up to four runs side by side, with the same noise.

import {choice, field, fill, make, message, tabled} from "../make.js";
import {editor} from "../play/editors.js";
import {show} from "../play/results.js";
import {percent, tokens} from "../play/tokens.js";

export const title = "Playground";

const MOST = 4;
const WAIT = 200;  // milliseconds without a change, before a forecast is made again
const AGAIN = new Set(["forecast", "neighbours", "predict"]);  // are asked again while the input is changed
const PICKED = new Set(["pen", "sound", "image"]);  // forms of input from which a run goes on, where it can
const HIDDEN = new Set(["embed"]);  // gives numbers for programs
const WORDS = {continue: "Continue", predict: "Predict", generate: "Generate", score: "Score", forecast: "Forecast", neighbours: "Neighbours",
  similarity: "Similarity", analogy: "Analogy"};
const SETTINGS = {  // of requests, shown where a run obeys them
  seed: {label: "Seed", type: "number", value: 1, min: 0, step: 1},
  temperature: {label: "Temperature", type: "number", value: 0.8, min: 0, max: 5, step: 0.1},
  max_tokens: {label: "Tokens at most", type: "number", value: 100, min: 1, max: 2048, step: 1},
  beam: {label: "Beam", type: "number", value: 1, min: 1, max: 16, step: 1},
  bias: {label: "Bias", type: "number", value: 1, min: 0, max: 20, step: 0.5},
  seconds: {label: "Seconds", type: "number", value: 1, min: 0.01, max: 60, step: 0.1},
  text: {label: "Text to write", type: "text", value: ""},
};

export async function mount(root, app) {
  const known = await app.runs();
  if (!known.length) {
    fill(root, message("There are no runs here. Train one, or start a comparison in “Your data”."));
    return () => {};
  }
  const room = new Playground(root, app, known);
  const named = new Set([app.params.run, app.params.run2, app.params.run3, app.params.run4]);
  await room.choose([...named].filter((name) => known.some((each) => each.run === name)));
  return () => room.stop();
}

class Playground {
  constructor(root, app, known) {
    Object.assign(this, {app, known, abouts: [], work: new AbortController(), timer: null, drafts: {}});
    this.chooser = make("div", {class: "columns choosers"});
    this.input = make("div", {class: "input"});
    this.controls = make("div", {class: "row"});
    this.results = make("div", {class: "columns results"});
    fill(root, this.chooser, make("section", {class: "panel", "aria-label": "Input"}, this.input, this.controls), this.results);
  }

  stop() {
    this.work.abort();
    clearTimeout(this.timer);
  }

  async choose(names) {
    this.stop();
    const chosen = names.length ? names.slice(0, MOST) : [this.known[0].run];
    this.abouts = [];
    fill(this.results);
    fill(this.input, make("p", {class: "hint"}, "Opening…"));
    this.choosers(chosen);
    const found = await Promise.allSettled(chosen.map((name) => this.app.api.get(`/runs/${encodeURIComponent(name)}`)));
    fill(this.input);
    found.forEach((each, k) => {
      if (each.status === "fulfilled") this.abouts.push(each.value);
      else this.results.append(message(`${chosen[k]}: ${each.reason.message}`, "error"));
    });
    if (this.abouts.length) this.fit();
  }

  choosers(chosen) {
    const options = (first) => [...(first ? [] : [["", "none"]]), ...this.known.map((each) => [each.run, `${each.run} (${each.model}, ${each.task})`])];
    const many = Math.min(MOST, chosen.length + 1, this.known.length);
    this.selects = Array.from({length: many}, (_, k) => choice(options(k === 0), chosen[k] || (k ? "" : undefined), {onchange: () => {
      const names = [...new Set(this.selects.map((each) => each.value).filter(Boolean))];
      this.app.go("play", Object.fromEntries(names.map((name, i) => [i ? `run${i + 1}` : "run", name])));
    }}));
    fill(this.chooser, this.selects.map((select, k) => field(k ? `Run ${k + 1}` : "Run", select)));
  }

  // The editor and the settings of what the first run can do; others must read the same kind of input.
  fit() {
    const [first] = this.abouts, {input} = first;
    if (!input.form) {
      fill(this.input, message(input.why, "note"));
      fill(this.controls);
      return;
    }
    this.verbs = [...(first.writes_tokens ? ["continue"] : []),
      ...first.verbs.filter((verb) => !HIDDEN.has(verb) && !(verb === "generate" && first.writes_tokens))];
    const order = PICKED.has(input.form) ? ["generate", "predict"] : ["continue", "forecast", "neighbours", "predict"];
    const usual = order.find((verb) => this.verbs.includes(verb)) || this.verbs[0];
    this.verb = choice(this.verbs.map((verb) => [verb, this.word(verb)]), usual, {onchange: () => this.settle()});
    this.editor = editor(this.input, input, {onchange: () => this.changed(), moves: first.verbs.includes("forecast")});
    this.settle();
    if (AGAIN.has(this.verb.value)) this.run();
  }

  settle() {
    const verb = this.verb.value, obeyed = new Set(this.abouts.flatMap((about) => about.obeys[verb === "continue" ? "generate" : verb] || []));
    if (obeyed.has("seconds")) obeyed.delete("max_tokens");  // one length is enough
    const sampled = new Set(["continue", "generate"]);
    const wanted = Object.entries(SETTINGS).filter(([name]) => obeyed.has(name) && (sampled.has(verb) !== (name === "beam")));
    const conditions = [...new Set(this.abouts.flatMap((about) => about.conditions))].map((name) => name.replace(/^\(class (.*)\)$/, "$1"));
    this.controlOf = Object.fromEntries(wanted.map(([name, {label, ...attributes}]) => [name, make("input", {...attributes, "data-setting": name})]));
    if (conditions.length && obeyed.has("condition")) this.controlOf.condition = choice([["", "none"], ...conditions.map((name) => [name, name])], "");
    const label = (name) => (SETTINGS[name] ? SETTINGS[name].label : "Class");
    fill(this.controls, this.verbs.length > 1 ? field("What to do", this.verb) : null,
      Object.entries(this.controlOf).map(([name, control]) => field(label(name), control)),
      make("button", {type: "button", class: "main run", onclick: () => this.run()}, this.verbs.length > 1 ? "Run" : this.verb.selectedOptions[0].text));
  }

  word(verb) {
    if (verb === "predict" && this.abouts[0].input.form === "pattern") return "Recall";
    return WORDS[verb] || verb;
  }

  settings() {
    return Object.fromEntries(Object.entries(this.controlOf).filter(([, control]) => control.value !== "").map(
      ([name, control]) => [name, control.type === "number" ? Number(control.value) : control.value]));
  }

  changed() {
    if (!AGAIN.has(this.verb.value)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), WAIT);
  }

  async run() {
    this.work.abort();
    this.work = new AbortController();
    const {signal} = this.work, verb = this.verb.value;
    let value;
    try {
      value = this.editor.value();
    } catch (error) {
      fill(this.results, message(`Invalid input: ${error.message}.`, "error"));
      return;
    }
    if (this.places?.verb !== verb || this.places.length !== this.abouts.length) {
      this.places = this.abouts.map((about) => make("section", {class: "result", "aria-label": `Result of ${about.run}`}));
      this.places.verb = verb;
      fill(this.results, this.places);
    }
    const fans = [];
    await Promise.all(this.abouts.map(async (about, k) => {
      const place = this.places[k];
      try {
        const found = await this.asked(about, verb, value, place, k, signal);
        if (found) fans[k] = {name: about.run, result: found, colour: k};
      } catch (error) {
        if (error.name !== "AbortError") fill(place, this.head(about), message(error.message, "error"));
      }
    }));
    if (signal.aborted) return;
    if (verb === "forecast") this.editor.show(fans.filter(Boolean));
    this.app.announce(`${this.word(verb)}: done by ${this.abouts.map((about) => about.run).join(", ")}`);
  }

  head(about) {
    return make("h2", {}, about.run, make("small", {}, ` ${about.model}`));
  }

  // Ask one run; a forecast is given back, because all are drawn in one chart.
  async asked(about, verb, value, place, k, signal) {
    if (about.input.form !== this.abouts[0].input.form) {
      throw new Error(`this run reads a different kind of input (${about.input.form}, not ${this.abouts[0].input.form})`);
    }
    if (verb === "continue") return this.continued(about, value, place, signal);
    if (!about.verbs.includes(verb)) throw new Error(about.not_possible[verb] || `this run cannot do that`);
    const {results} = await this.app.api.post(`/runs/${encodeURIComponent(about.run)}/${verb}`, this.body(about, verb, value), signal);
    fill(place, this.head(about));
    if (verb === "forecast") {
      place.append(fanTable(results[0]));
      return results[0];
    }
    for (const result of results.slice(0, 10)) show(place, result, {about, given: value, colour: k});
    if (results[0] && typeof results[0].prediction === "string" && about.questions.includes("attention")) await this.aligned(about, value, place, signal);
    return null;
  }

  body(about, verb, value) {
    const obeyed = about.obeys[verb] || [];
    const own = Object.fromEntries(Object.entries(this.settings()).filter(([name]) => obeyed.includes(name)));
    if (about.takes[verb] === "prompt") {
      const prompt = this.editor.prompt ? this.editor.prompt() : value;
      return {prompt, ...own};
    }
    if (about.takes[verb] === "words") return {words: String(value).split(/\s+/).filter(Boolean), ...own};
    const ranks = obeyed.includes("n") && !obeyed.includes("max_tokens") ? {n: 10} : {};
    return {inputs: [value], ...ranks, ...own};
  }

  // Which positions of the input each token looked at, where the run attends to its source.
  async aligned(about, value, place, signal) {
    const found = await this.app.api.post(`/runs/${encodeURIComponent(about.run)}/inspect/attention`, {input: value}, signal);
    const picture = found.pictures.find((each) => each.kind === "heatmap" && each.x_label.includes("source"));
    if (!picture) return;
    const {heat} = await import("../draw.js");
    const chart = make("div", {class: "part alignment"});
    place.append(make("h3", {}, "Alignment"), chart, make("p", {class: "hint"}, "Each row is a token of the output, each column a token of the input."));
    heat(chart, picture.values, {title: picture.title, rows: picture.rows, columns: picture.columns, from: 0});
  }

  async continued(about, value, place, signal) {
    const {max_tokens = 100, temperature = 0.8, seed = 1, condition} = this.settings();
    const facts = make("p", {class: "hint"}), text = make("div");
    fill(place, this.head(about), text, facts);
    const view = tokens(text, {specials: about.specials, onpick: (begun) => this.picked(about, begun, place)});
    const body = {model: about.run, prompt: value, max_tokens, temperature, seed, logprobs: 10, echo: true, stream: true,
      ...(condition ? {condition} : {})};
    let reason = null;
    await this.app.api.stream("/v1/completions", body, (event) => {
      for (const each of event.choices) {
        view.add(each.logprobs);
        reason = each.finish_reason || reason;
      }
    }, signal);
    const {n, mean} = view.nats();
    facts.textContent = `${n} tokens, ${mean.toFixed(2)} nats each on average (perplexity ${Math.exp(mean).toFixed(1)})` +
      `${reason === "stop" ? "; the text ended by itself" : ""}`;
    return null;
  }

  // Continue one run from a text that ends in an alternative.
  async picked(about, begun, place) {
    try {
      await this.continued(about, begun, place, this.work.signal);
      this.app.announce(`${about.run} continues from the alternative`);
    } catch (error) {
      if (error.name !== "AbortError") fill(place, this.head(about), message(error.message, "error"));
    }
  }
}

function fanTable(result) {
  const one = (value) => (Array.isArray(value) ? value[0] : value);
  const number = (value) => (typeof value === "number" ? Number(value.toPrecision(5)).toString() : "");
  return tabled("Forecast as a table", ["time", "median", `${percent(0.8)} interval`], result.times.map((time, h) => make("tr", {},
    make("th", {scope: "row"}, time), make("td", {class: "number"}, number(one(result.forecast[h]))),
    make("td", {class: "number"}, result.low_80 ? `${number(one(result.low_80[h]))} to ${number(one(result.high_80[h]))}` : ""))), [1, 2]);
}
