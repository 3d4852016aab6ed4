// One input as people give it: typed, as numbers, painted, drawn, or picked from a file. Each editor: {value(), isValid()}.

import {field, fill, make} from "../make.js";
import {asPng, brightness, picture, samples, wav} from "./files.js";
import {grid} from "./grid.js";
import {pad} from "./pad.js";
import {turned} from "./results.js";
import {chart} from "./series.js";

const WIDE = 3;  // columns, from which on numbers are painted

// editor(host, input, {onchange, moves}): `moves` is where a series is edited in its chart, together with its forecast.
export function editor(host, input, options) {
  const made = (FORMS[input.form] || typed)(host, input, options);
  return {set: () => {}, show: () => {}, ...made};
}

const FORMS = {text: typed, words, numbers, pattern, image, sound, pen, frames};

function typed(host, {value}, {onchange}) {
  const box = make("textarea", {rows: 4, spellcheck: "false", oninput: onchange}, value ?? "");
  fill(host, field("Input", box));
  return {value: () => box.value, set: (text) => { box.value = text; }};
}

function words(host, {value}, {onchange}) {
  const box = make("textarea", {rows: 2, spellcheck: "false", oninput: onchange}, value.join(" "));
  fill(host, field("Words, with a space between", box));
  return {value: () => box.value.split(/\s+/).filter(Boolean)};
}

function read(text) {
  const rows = text.trim().split(/\n+/).map((row) => row.split(/[\s,;]+/).filter(Boolean).map(Number));
  if (!rows.length || rows.flat().some(Number.isNaN)) throw new Error("expected numbers, with a comma or a space between");
  return rows.every((row) => row.length === 1) ? rows.map(([one]) => one) : rows.length === 1 ? rows[0] : rows;
}

function numbers(host, input, options) {
  let value = structuredClone(input.value);
  const isSeries = typeof value[0] === "number" || value[0].length === 1;
  if (!isSeries && value[0].length > WIDE) return painted(host, input, options);
  const box = make("textarea", {rows: 3, spellcheck: "false", class: "mono"});
  const write = () => { box.value = isSeries ? value.flat().join(", ") : value.map((row) => row.join(", ")).join("\n"); };
  write();
  const plot = make("div", {class: "plot"});
  fill(host, options.moves && isSeries ? [plot, make("p", {class: "hint"}, "Drag a value, or move with ← → and change it with ↑ ↓.")] : null,
    field(isSeries ? "Values, oldest first" : "A row for each step", box));
  const drawnChart = options.moves && isSeries ? chart(plot, {title: "History, which can be changed", onchange: (changed) => {
    value = changed;
    write();
    options.onchange();
  }}) : null;
  if (drawnChart) drawnChart.show(value.flat(), []);
  box.addEventListener("input", () => {
    try { value = read(box.value); } catch { return; }
    if (drawnChart && typeof value[0] === "number") drawnChart.show(value, []);
    options.onchange();
  });
  return {
    value: () => {
      const found = read(box.value);
      return isSeries && Array.isArray(input.value[0]) ? found.flat().map((each) => [each]) : found;
    },
    show: (forecasts) => { if (drawnChart) drawnChart.show(value.flat(), forecasts); },
  };
}

// Numbers whose cells are painted with the largest value, and cleared with the smallest.
function painted(host, input, {onchange}) {
  const first = structuredClone(input.value), flat = first.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  let value = structuredClone(first);
  const place = make("div"), file = make("input", {type: "file", accept: "image/*"});
  const show = () => grid(place, value, {title: "Input, whose cells can be painted", low, high, onchange,
    next: (now) => (now < (low + high) / 2 ? high : low)});
  const become = (rows) => { value = rows; show(); onchange(); };
  fill(host, place, make("div", {class: "row"},
    make("button", {type: "button", onclick: () => become(first.map((row) => row.map(() => low)))}, "Clear the cells"),
    make("button", {type: "button", onclick: () => become(structuredClone(first))}, "Use the example")),
  field("Or an image file", file, `scaled to ${first[0].length} × ${first.length}`));
  file.addEventListener("change", picked(file, async (one) => {
    const rows = await brightness(one, first[0].length, first.length);
    become(rows.map((row) => row.map((each) => low + each * (high - low))));
  }));
  show();
  return {value: () => value};
}

// A stored pattern to damage: cells flip between their two values.
function pattern(host, input, {onchange}) {
  const first = structuredClone(input.value), flat = first.flat();
  const [low, high] = [Math.min(...flat), Math.max(...flat)];
  let value = structuredClone(first);
  const place = make("div");
  const flip = (now) => (now < (low + high) / 2 ? high : low);
  const show = () => grid(place, value, {title: "Pattern: click a cell to flip it", low, high, onchange, next: flip});
  const become = (rows) => { value = rows; show(); onchange(); };
  fill(host, place, make("div", {class: "row"},
    make("button", {type: "button", onclick: () => become(value.map((row) => row.map((each) => (Math.random() < 0.1 ? flip(each) : each))))},
      "Flip a tenth"),
    make("button", {type: "button", onclick: () => become(value.map((row, i) => (i < value.length / 2 ? row : row.map(() => low))))},
      "Cover the lower half"),
    make("button", {type: "button", onclick: () => become(structuredClone(first))}, "Use the example")));
  show();
  return {value: () => value};
}

function image(host, input, {onchange}) {
  let value = input.value;
  const place = make("div"), file = make("input", {type: "file", accept: "image/*"});
  const show = () => fill(place, typeof value === "string" ? make("img", {class: "pixels", src: value, alt: "The image that is read"}) :
    picture(value, "The image that is read", 1));
  fill(host, place, field("Image file", file, "it stays in the browser; its pixels are sent"));
  file.addEventListener("change", picked(file, async (one) => {
    value = typeof input.value === "string" ? await asPng(one, input.value) : await brightness(one, input.value[0].length, input.value.length);
    show();
    onchange();
  }));
  const rows = Array.isArray(value) ? make("input", {type: "number", min: 0, max: value.length, value: Math.floor(value.length / 2)}) : null;
  if (rows) {
    rows.addEventListener("change", onchange);
    host.append(field("Rows that are given to be completed", rows));
  }
  show();
  return {value: () => value, prompt: () => (rows ? value.slice(0, Number(rows.value)) : value)};
}

// A sound that is picked is continued; without one a run begins with nothing.
function sound(host, input, {onchange}) {
  let value = input.value, isPicked = false;
  const place = make("div"), file = make("input", {type: "file", accept: "audio/*"});
  const show = () => fill(place, make("audio", {controls: true, src: wav(value, input.rate), "aria-label": "The sound that is read"}));
  fill(host, place, field("Sound file", file, `It is continued; its samples are sent, ${input.rate.toLocaleString("en")} a second`));
  file.addEventListener("change", picked(file, async (one) => { value = await samples(one, input.rate); isPicked = true; show(); onchange(); }));
  show();
  return {value: () => value, prompt: () => (isPicked ? value : "")};
}

function pen(host, input, {onchange}) {
  const hasText = !Array.isArray(input.value);
  let strokes = hasText ? input.value.strokes : input.value;
  const text = make("input", {type: "text", value: hasText ? input.value.text : "", oninput: onchange}), place = make("div");
  fill(host, place, hasText ? field("Text that the strokes write", text) : null);
  pad(place, strokes, (drawn) => { strokes = drawn; onchange(); });
  return {value: () => (hasText ? {strokes, text: text.value} : strokes), prompt: () => (hasText ? "" : strokes)};
}

function frames(host, input, {onchange}) {
  const roll = structuredClone(input.value), shown = turned(roll), place = make("div");
  const back = () => roll.map((frame, t) => frame.map((_, key) => shown[frame.length - 1 - key][t]));
  grid(place, shown, {title: "Frames: time to the right, keys upwards", low: 0, high: 1, next: (now) => 1 - now, onchange});
  fill(host, place);
  return {value: back};
}

function picked(file, use) {
  return async () => {
    const [one] = file.files;
    file.setCustomValidity("");
    try {
      if (one) await use(one);
    } catch {
      file.setCustomValidity("This file cannot be read as that.");
      file.reportValidity();
    }
  };
}


