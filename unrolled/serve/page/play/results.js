// What a verb gives, shown by what is in it: classes, texts, series, images, sounds, drawings. No name of a task stands here.

import {bars, heat, line, short} from "../draw.js";
import {fill, make} from "../make.js";
import {picture, wav} from "./files.js";
import {grid} from "./grid.js";
import {drawing} from "./pad.js";
import {percent, seen} from "./tokens.js";

const MOST = 12;  // bars

// Show a result in a place; `extra` has what the room knows beside it: about, given (the input), colour.
export function show(host, result, extra) {
  const place = (name) => host.appendChild(make("div", {class: `part ${name}`}));
  for (const [holds, draw] of VIEWS) if (holds(result)) draw(place, result, extra);
  if (!host.childElementCount) place("rest").append(make("pre", {}, JSON.stringify(result, null, 1).slice(0, 4000)));
}

const isMatrix = (value) => Array.isArray(value) && Array.isArray(value[0]) && typeof value[0][0] === "number";
const isSeries = (value) => Array.isArray(value) && typeof value[0] === "number";

const VIEWS = [
  [(r) => typeof r.prediction === "string" || typeof r.prediction === "number", said],
  [(r) => Array.isArray(r.candidates) && r.candidates.some((each) => "class" in each), (place, r, extra) => classes(
    place, r.candidates.map((each) => [each.class, each.p]), extra)],
  [(r) => !r.candidates && !r.next && r.p && typeof r.p === "object" && !Array.isArray(r.p), (place, r, extra) => classes(
    place, Object.entries(r.p), extra)],
  [(r) => Array.isArray(r.candidates) && r.candidates.some((each) => "text" in each), others],
  [(r) => Array.isArray(r.words) && Array.isArray(r.prediction), tagged],
  [(r) => Array.isArray(r.likely), (place, r, extra) => classes(place, r.likely.map(
    (each) => [seen(String(each.token ?? each.word ?? each.key)), each.p]), extra, "Most probable next")],
  [(r) => Array.isArray(r.gaps), gaps],
  [(r) => isMatrix(r.prediction), numbers],
  [(r) => isSeries(r.prediction) && !r.words, numbers],
  [(r) => r.nearest !== undefined, recalled],
  [(r) => Array.isArray(r.strokes), (place, r) => place("drawn").append(drawing(r.strokes, "What the run drew", r.given))],
  [(r) => isMatrix(r.image), (place, r) => place("drawn").append(picture(r.image, "What the run painted"))],
  [(r) => isMatrix(r.roll), (place, r) => grid(place("drawn"), turned(r.roll), {title: "What the run played: time to the right, keys upwards"})],
  [(r) => isSeries(r.samples) && r.rate, heard],
  [(r) => Array.isArray(r.next) && r.p && "down" in r.p, (place, r, extra) => classes(place, Object.entries(r.p), extra, "The pen next")],
  [(r) => Array.isArray(r.neighbours), (place, r, extra) => ranked(place, `Nearest to “${r.word}”`, r.neighbours.map(
    (each) => [each.word, each.cosine]), extra)],
  [(r) => r.cosine !== undefined, (place, r, extra) => ranked(place, "Cosine", [[r.d ?? `${r.a ?? ""} ${r.b ?? ""}`, r.cosine]], extra)],
  [(r) => typeof r.logp === "number" && r.prediction === undefined && !r.strokes && !r.image && !r.roll && !r.samples, scored],
  [(r) => Array.isArray(r.surprise), surprising],
  [(r) => isSeries(r.vector), (place, r, extra) => heat(place("drawn"), [r.vector.slice(0, 128)], {title: `Vector of ${r.vector.length} numbers`, extra})],
];

function said(place, {prediction, p, logp, finished, unit}) {
  const found = place("said");
  found.append(make("p", {class: "outcome"}, typeof prediction === "number" ? short(prediction) : prediction || "∅", unit ? ` ${unit}` : ""));
  const facts = [typeof p === "number" ? `probability ${percent(p)}` : null,
    typeof logp === "number" ? `log P = ${logp.toFixed(2)}` : null, finished === false ? "stopped at the longest length" : null];
  if (facts.some(Boolean)) found.append(make("p", {class: "hint"}, facts.filter(Boolean).join(" · ")));
}

function classes(place, pairs, {colour}, title = "Probabilities") {
  const sorted = [...pairs].sort(([, a], [, b]) => b - a).slice(0, MOST);
  if (title !== "Probabilities") place("head").append(make("h3", {}, title));
  bars(place("chart"), sorted.map(([label, value]) => ({label, value, text: percent(value), colour})), {title, from: 0, to: 1});
}

function ranked(place, title, pairs, {colour}) {
  place("head").append(make("h3", {}, title));
  bars(place("chart"), pairs.slice(0, MOST).map(([label, value]) => ({label, value, colour})), {title, from: 0, to: 1});
}

function others(place, {candidates}) {
  place("others").append(make("ol", {class: "candidates"}, candidates.map((each) => make("li", {}, make("span", {}, each.text || "∅"),
    make("small", {}, typeof each.logp === "number" ? ` log P = ${each.logp.toFixed(2)}` : "")))));
}

function tagged(place, {words, prediction, p}) {
  place("tags").append(make("p", {class: "words"}, words.map((word, k) => {
    const doubt = Array.isArray(p) ? 1 - p[k] : 0;
    const found = make("span", {class: "word", title: Array.isArray(p) ? percent(p[k]) : null}, make("span", {}, word), make("small", {}, prediction[k]));
    found.style.setProperty("--heat", doubt.toFixed(3));
    return found;
  })), make("p", {class: "hint"}, "The colour is the doubt: 1 less the probability of the tag."));
}

function gaps(place, {gaps: found}, extra) {
  found.forEach((each, k) => classes(place, each.map(({token, p}) => [seen(token), p]), extra, `Gap ${k + 1}`));
}

function numbers(place, {prediction}, {given, colour}) {
  const rows = isMatrix(prediction) ? prediction : prediction.map((value) => [value]);
  if (rows[0].length > 3) return grid(place("drawn"), rows, {title: "Prediction"});
  const series = rows[0].map((_, d) => ({name: rows[0].length > 1 ? `prediction ${d + 1}` : "prediction", points: rows.map((row, t) => [t, row[d]])}));
  const before = isMatrix(given) || isSeries(given) ? given.map((row) => (Array.isArray(row) ? row : [row])) : [];
  const inputs = before.length === rows.length ? before[0].map((_, d) => ({name: before[0].length > 1 ? `input ${d + 1}` : "input", dashed: true,
    points: before.map((row, t) => [t, row[d]])})) : [];
  return line(place("chart"), [...series, ...inputs], {title: "Prediction by step", x: "step", colour});
}

function recalled(place, {nearest, overlap, steps, ended, energy}) {
  place("facts").append(make("dl", {}, [["nearest stored", nearest], ["overlap", short(overlap)], ["updates", steps], ["ended", ended]].map(
    ([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value))))));
  if (Array.isArray(energy) && energy.length > 1) {
    line(place("chart"), [{name: "", points: energy.map((e, t) => [t, e]), marks: true}], {title: "Energy after each update", x: "updates", y: "energy", height: 160});
  }
}

function heard(place, {samples, rate}) {
  const found = place("sound"), audio = make("audio", {controls: true, src: wav(samples, rate), "aria-label": "What the run sounded"});
  const step = Math.max(1, Math.ceil(samples.length / 1500));
  found.append(audio);
  line(place("chart"), [{name: "", points: samples.filter((_, k) => k % step === 0).map((v, k) => [(k * step) / rate, v])}],
    {title: "What the run sounded", x: "seconds", height: 140});
}

function scored(place, result) {
  const rest = Object.entries(result).filter(([name, value]) => typeof value === "number" && name !== "logp");
  place("facts").append(make("dl", {}, [["log-probability", result.logp], ...rest].map(([name, value]) => make("div", {},
    make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, short(value))))));
}

function surprising(place, {values, surprise, expected, times}) {
  line(place("chart"), [{name: "values", points: values.map((row, k) => [k, Array.isArray(row) ? row[0] : row])},
    {name: "expected", dashed: true, points: expected.map((value, k) => [k, value])}],
  {title: "Each value beside what was expected", x: times.length ? `steps from ${times[0]}` : "steps"});
  line(place("chart"), [{name: "", points: surprise.map((value, k) => [k, value])}], {title: "Surprise of each value", y: "nats", height: 140});
}

// Time to the right, the lowest key at the bottom.
export const turned = (roll) => roll[0].map((_, key) => roll.map((frame) => frame[frame.length - 1 - key]));

// Rows of words and numbers as a table.
export function table({title, columns, rows}) {
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": title}, make("table", {}, make("caption", {}, title),
    make("thead", {}, make("tr", {}, columns.map((each) => make("th", {scope: "col"}, each)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {class: typeof cell === "number" ? "number" : null},
      typeof cell === "number" ? short(cell) : cell ?? "")))))));
}

export function clear(host) {
  fill(host);
}
