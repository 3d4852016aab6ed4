// A pad to draw on with a pen, a finger or a mouse: strokes of points [x, y], y downwards.

import {drawn, fill, make} from "../make.js";

const SIDE = [360, 200];

// Strokes as one drawing that fits its place; so many points of it were given.
export function drawing(strokes, title, given = 0) {
  const points = strokes.flat(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [left, right, top, bottom] = [Math.min(0, ...xs), Math.max(1e-6, ...xs), Math.min(0, ...ys), Math.max(1e-6, ...ys)];
  const side = Math.max(right - left, bottom - top) || 1, border = side * 0.06;
  const svg = drawn("svg", {class: "strokes", role: "img", "aria-label": title,
    viewBox: `${left - border} ${top - border} ${right - left + 2 * border} ${bottom - top + 2 * border}`},
  drawn("title", {}, title), strokes.map((stroke, k) => path(stroke, strokes.slice(0, k + 1).flat().length <= given)));
  svg.style.maxHeight = "16rem";
  return svg;
}

function path(stroke, isGiven = false) {
  const [first, ...rest] = stroke;
  return drawn("path", {class: isGiven === true ? "stroke given" : "stroke", d: `M${first.join(" ")}${(rest.length ? rest : [first]).map((point) => `L${point.join(" ")}`).join("")}`});
}

// What is drawn is told in the units of the strokes that it begins with.
export function pad(host, strokes, onchange) {
  const size = sizeOf(strokes), told = () => onchange(kept.map((stroke) => stroke.map((point) => point.map((value) => Number((value * size).toPrecision(6))))));
  let kept = fitted(strokes);
  const svg = drawn("svg", {class: "pad", viewBox: `0 0 ${SIDE[0]} ${SIDE[1]}`, role: "img", "aria-label": "Pad to draw on"});
  let stroke = null;
  const show = () => fill(svg, drawn("title", {}, "Pad to draw on"), kept.map(path));
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) * (SIDE[0] / box.width), (event.clientY - box.top) * (SIDE[1] / box.height)].map(
      (value) => Number(value.toFixed(1)));
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    stroke = [place(event)];
    kept.push(stroke);
    show();
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    const point = place(event), [x, y] = stroke.at(-1);
    if (Math.hypot(point[0] - x, point[1] - y) < 3) return;
    stroke.push(point);
    show();
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => {
    if (stroke) told();
    stroke = null;
  });
  const act = (change) => () => {
    change();
    show();
    told();
  };
  fill(host, svg, make("div", {class: "row"},
    make("button", {type: "button", onclick: act(() => { kept.pop(); })}, "Remove the last stroke"),
    make("button", {type: "button", onclick: act(() => { kept = []; })}, "Clear the pad"),
    make("button", {type: "button", onclick: act(() => { kept = fitted(strokes); })}, "Use the example")));
  show();
}

// Units of the strokes to a unit of the pad.
function sizeOf(strokes) {
  const points = strokes.flat(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  return Math.max((Math.max(...xs) - Math.min(...xs)) / SIDE[0], (Math.max(...ys) - Math.min(...ys)) / SIDE[1]) / 0.8 || 1;
}

// The same strokes at the size of the pad.
function fitted(strokes) {
  const points = strokes.flat(), size = sizeOf(strokes);
  const least = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
  return strokes.filter((each) => each.length).map((stroke) => stroke.map((point) => point.map(
    (value, axis) => Number(((value - least[axis]) / size + 0.1 * SIDE[axis]).toFixed(1)))));
}
