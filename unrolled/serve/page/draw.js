// Drawings as SVG: each has a title for screen readers, fits the width of its place and is drawn again when that changes.
//
//   line(host, series, options)   curves. series: [{name, points: [[x, y], ..], dashed, band: [[x, low, high], ..], marks}]
//   bars(host, rows, options)     rows: [{label, value, low, high, text, colour}], one bar each, from 0 (or from the least below it)
//   heat(host, matrix, options)   rows of numbers as cells; options: rows, columns (labels), onpick(row, column)
//
// options of all: title (needed), description, height; of curves also x, y (names of the axes), xTicks (number => text),
// lines: [{name, value}] across, with their names on them. A name keeps its colour when `colours` (name => number) is given.

import {drawn, fill, make} from "./make.js";

const COLOURS = 8;
const seen = new WeakMap();

function fitted(host, draw) {
  const old = seen.get(host);
  if (old) old.disconnect();
  let width = 0;
  const again = () => {
    const now = Math.round(host.clientWidth);
    if (!now || now === width) return;
    width = now;
    fill(host, draw(Math.max(width, 160)));
  };
  const watch = new ResizeObserver(again);
  seen.set(host, watch);
  watch.observe(host);
  width = Math.round(host.clientWidth) || 640;
  fill(host, draw(Math.max(width, 160)));
  return host.querySelector("svg");
}

function canvas(width, height, options, ...children) {
  return drawn("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": options.title},
    drawn("title", {}, options.title), drawn("desc", {}, options.description || ""), children);
}

// About n round numbers between two.
export function ticks(low, high, n = 5) {
  if (!(high > low)) return [low];
  const raw = (high - low) / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

export function short(value) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toPrecision(size >= 1000 ? 5 : 4)));
}

const finite = (values) => values.filter((value) => Number.isFinite(value));

function numberOf(options, name, number) {
  return options.colours && name in options.colours ? options.colours[name] : number;
}

const colourOf = (options, name, number) => numberOf(options, name, number) % COLOURS;

// The look of a curve: a colour, and dots where colours begin again.
function kindOf(each, options, number) {
  const again = numberOf(options, each.name, number) >= COLOURS ? " dotted" : "";
  return `curve s${colourOf(options, each.name, number)}${each.dashed ? " dashed" : again}`;
}

export function line(host, series, options) {
  return fitted(host, (width) => curves(width, series, options));
}

function curves(width, series, options) {
  const height = options.height || Math.round(Math.min(360, Math.max(200, width * 0.45)));
  const lines = (options.lines || []).filter((each) => Number.isFinite(each.value));
  const xs = finite(series.flatMap((each) => [...each.points, ...(each.band || [])].map((point) => point[0])));
  const ys = finite([...series.flatMap((each) => each.points.map((point) => point[1])),
    ...series.flatMap((each) => (each.band || []).flatMap((point) => point.slice(1))), ...lines.map((each) => each.value)]);
  const [x0, x1] = options.xRange || [Math.min(...xs, xs.length ? Infinity : 0), Math.max(...xs, xs.length ? -Infinity : 1)];
  let [y0, y1] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  if (y0 === y1) [y0, y1] = [y0 - Math.abs(y0 || 1) * 0.1, y1 + Math.abs(y1 || 1) * 0.1];
  const room = (y1 - y0) * 0.06;
  [y0, y1] = [y0 - room, y1 + room];
  const left = 52, right = 10, top = options.y ? 24 : 8, bottom = options.x ? 40 : 24;
  const across = (x) => left + ((x - x0) / ((x1 - x0) || 1)) * (width - left - right);
  const up = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom);
  const parts = [];
  for (const y of ticks(y0, y1, height > 260 ? 6 : 4)) {
    parts.push(drawn("line", {class: "grid", x1: left, x2: width - right, y1: up(y), y2: up(y)}),
      drawn("text", {x: left - 6, y: up(y) + 4, "text-anchor": "end"}, short(y)));
  }
  for (const x of ticks(x0, x1, width > 500 ? 8 : 4)) {
    parts.push(drawn("text", {x: across(x), y: height - bottom + 16, "text-anchor": "middle"}, (options.xTicks || short)(x)));
  }
  parts.push(drawn("line", {class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
  if (options.x) parts.push(drawn("text", {x: width - right, y: height - 4, "text-anchor": "end"}, options.x));
  if (options.y) parts.push(drawn("text", {x: 0, y: 12}, options.y));
  const path = (points) => points.filter((point) => point.slice(0, 2).every(Number.isFinite)).map(
    ([x, y], i) => `${i ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
  series.forEach((each, number) => {
    const colour = colourOf(options, each.name, number);
    if (each.band && each.band.length) {
      const edge = [...each.band.map(([x, , high]) => [x, high]), ...each.band.slice().reverse().map(([x, low]) => [x, low])];
      parts.push(drawn("path", {class: `band f${colour}`, d: `${path(edge)}Z`}));
    }
    parts.push(drawn("path", {class: kindOf(each, options, number), d: path(each.points)},
      drawn("title", {}, each.name || options.title)));
    if (each.points.length === 1 || each.marks) {
      for (const [x, y] of each.points) {
        if (Number.isFinite(y)) parts.push(drawn("circle", {class: `mark f${colour}`, cx: across(x), cy: up(y), r: 3},
          drawn("title", {}, `${each.name || ""} ${short(x)}: ${short(y)}`)));
      }
    }
  });
  const taken = [], heights = lines.map((each) => up(each.value));
  lines.forEach((each, number) => {
    const y = heights[number];
    const free = ([high, end]) => taken.every((other) => other[1] !== end || Math.abs(other[0] - high) > 12) &&
      heights.every((other, i) => i === number || other < high - 11 || other > high + 3);
    const places = [[y - 4, "start"], [y + 13, "start"], [y - 4, "end"], [y + 13, "end"]];
    const [high, end] = places.find(free) ?? places.find(([high, end]) => taken.every((other) => other[1] !== end || Math.abs(other[0] - high) > 12)) ?? places[0];
    taken.push([high, end]);
    parts.push(drawn("line", {class: "curve dashed s6", x1: left, x2: width - right, y1: y, y2: y},
      drawn("title", {}, `${each.name} ${short(each.value)}`)),
    drawn("text", {x: end === "start" ? left + 4 : width - right - 4, y: high, "text-anchor": end}, each.name));
  });
  const named = series.map((each, i) => ({...each, kind: kindOf(each, options, i)}));
  const drawing = canvas(width, height, options, parts);
  return [drawing, named.length > 1 || (named[0] || {}).name ? legend(named.filter((each) => each.name)) : []];
}

function legend(named) {
  return make("ul", {class: "legend"}, named.map((each) => make("li", {},
    drawn("svg", {viewBox: "0 0 22 10", "aria-hidden": "true"},
      drawn("line", {class: each.kind, x1: 0, x2: 22, y1: 5, y2: 5})),
    each.name)));
}

export function bars(host, rows, options) {
  return fitted(host, (width) => barred(width, rows, options));
}

function barred(width, rows, options) {
  const high = 40, top = 4, height = top + rows.length * high + 4;
  const values = finite(rows.flatMap((row) => [row.value, row.low, row.high]));
  const from = options.from ?? Math.min(0, ...values), to = options.to ?? Math.max(...values, from + 1e-12);
  const across = (value) => 2 + ((Math.min(Math.max(value, from), to) - from) / ((to - from) || 1)) * (width - 4);
  const parts = rows.flatMap((row, i) => {
    const y = top + i * high, start = across(Math.max(from, 0)), end = across(row.value);
    const told = row.text ?? short(row.value);
    const label = clipped(String(row.label), Math.floor((width - 8 * String(told).length - 16) / 7));
    const found = [
      drawn("text", {class: "ink", x: 2, y: y + 14}, label, drawn("title", {}, `${row.label}: ${told}`)),
      drawn("text", {class: "ink", x: width - 2, y: y + 14, "text-anchor": "end"}, told),
      drawn("rect", {class: "mark grid", x: 2, y: y + 20, width: width - 4, height: 12, rx: 2, fill: "none"}),
      drawn("rect", {class: `mark f${(row.colour ?? 0) % COLOURS}`, x: Math.min(start, end), y: y + 20, rx: 2, height: 12,
        width: Math.max(Math.abs(end - start), 1)}),
    ];
    if (Number.isFinite(row.low) && Number.isFinite(row.high)) {
      found.push(drawn("path", {class: "whisker", d: `M${across(row.low)} ${y + 26}H${across(row.high)}`}));
    }
    return found;
  });
  return canvas(width, height, {...options,
    description: options.description || rows.map((row) => `${row.label} ${row.text ?? short(row.value)}`).join(", ")}, parts);
}

const clipped = (text, most) => (text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text);

export function heat(host, matrix, options) {
  return fitted(host, (width) => cells(width, matrix, options));
}

function cells(width, matrix, options) {
  const columns = Math.max(1, ...matrix.map((row) => row.length));
  const left = options.rows ? Math.min(90, 10 + 7 * Math.max(0, ...options.rows.map((each) => String(each).length))) : 2;
  const top = options.columns ? 18 : 2;
  const side = Math.min(28, Math.max(2, (width - left - 2) / columns)), high = Math.max(side, options.rows ? 12 : 2);
  const values = finite(matrix.flat());
  const least = options.from ?? Math.min(0, ...values), most = options.to ?? Math.max(...values, least + 1e-12);
  const parts = [];
  matrix.forEach((row, i) => {
    if (options.rows) parts.push(drawn("text", {x: left - 4, y: top + (i + 0.5) * high + 4, "text-anchor": "end"},
      clipped(String(options.rows[i] ?? ""), 12)));
    row.forEach((value, j) => {
      const share = Number.isFinite(value) ? (value - least) / (most - least) : 0;
      const name = `${options.rows ? options.rows[i] : i}, ${options.columns ? options.columns[j] : j}: ${short(value)}`;
      parts.push(drawn("rect", {class: "f0", x: left + j * side, y: top + i * high, width: side, height: high,
        "fill-opacity": (0.04 + 0.96 * share).toFixed(3), onclick: options.onpick ? () => options.onpick(i, j) : () => {}},
      drawn("title", {}, name)));
    });
  });
  const longest = Math.max(...(options.columns || [""]).map((each) => String(each).length));
  const apart = longest > 4 ? 1 : Math.ceil((7 * longest) / side);
  if (options.columns && side >= 8) options.columns.forEach((name, j) => j % apart || parts.push(drawn("text",
    {x: left + (j + 0.5) * side, y: 12, "text-anchor": "middle"}, clipped(String(name), Math.max(1, Math.floor((apart * side) / 7))))));
  return canvas(width, top + matrix.length * high + 2, options, parts);
}

// A drawing as a file of its own: the colours as they are now.
export function asFile(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((each, i) => {
    const style = getComputedStyle(each);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"]) {
      const value = style.getPropertyValue(name);
      if (value) to[i].setAttribute(name, value);
    }
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"});
}
