// A pad to draw on with a pen, a finger or a mouse: strokes of points [x, y], y downwards.

import {drawn, fill, make} from "../make.js";

const SIDE = [360, 200];

// Strokes as one drawing that fits its place.
export function drawing(strokes, title) {
  const points = strokes.flat(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [left, right, top, bottom] = [Math.min(0, ...xs), Math.max(1e-6, ...xs), Math.min(0, ...ys), Math.max(1e-6, ...ys)];
  const side = Math.max(right - left, bottom - top) || 1, border = side * 0.06;
  const svg = drawn("svg", {class: "strokes", role: "img", "aria-label": title,
    viewBox: `${left - border} ${top - border} ${right - left + 2 * border} ${bottom - top + 2 * border}`},
  drawn("title", {}, title), strokes.map((stroke) => path(stroke)));
  svg.style.maxHeight = "16rem";
  return svg;
}

function path(stroke) {
  const [first, ...rest] = stroke;
  return drawn("path", {class: "stroke", d: `M${first.join(" ")}${(rest.length ? rest : [first]).map((point) => `L${point.join(" ")}`).join("")}`});
}

export function pad(host, strokes, onchange) {
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
    if (stroke) onchange(kept);
    stroke = null;
  });
  const act = (change) => () => {
    change();
    show();
    onchange(kept);
  };
  fill(host, svg, make("div", {class: "row"},
    make("button", {type: "button", onclick: act(() => { kept.pop(); })}, "Remove the last stroke"),
    make("button", {type: "button", onclick: act(() => { kept = []; })}, "Clear the pad"),
    make("button", {type: "button", onclick: act(() => { kept = fitted(strokes); })}, "Use the example")));
  show();
}

// The same strokes at the size of the pad.
function fitted(strokes) {
  const points = strokes.flat(), xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const size = Math.max((Math.max(...xs) - left) / SIDE[0], (Math.max(...ys) - top) / SIDE[1]) / 0.8 || 1;
  return strokes.filter((each) => each.length).map((stroke) => stroke.map(([x, y]) => [
    Number(((x - left) / size + 0.1 * SIDE[0]).toFixed(1)), Number(((y - top) / size + 0.1 * SIDE[1]).toFixed(1))]));
}
