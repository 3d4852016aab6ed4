// A series whose values are moved with the mouse, a finger or the arrow keys, and the fan of its forecast.

import {short, ticks} from "../draw.js";
import {drawn, fill} from "../make.js";

const WIDE = 500, SHOWN = [36, 96];  // steps of the history, on a narrow and on a wide screen
const PERCENT = [95, 80, 50];
const BOX = {height: 300, left: 48, right: 10, top: 10, bottom: 28};

// The fan of one forecast: a band for each of 95, 80 and 50 %, and the median.
export const bandsOf = (result) => PERCENT.filter((p) => result[`low_${p}`]).map((percent) => ({
  percent, low: result[`low_${percent}`].map(first), high: result[`high_${percent}`].map(first)}));
const first = (value) => (Array.isArray(value) ? value[0] : value);

// chart(host, {title, onchange}): show(values, forecasts) draws it again; forecasts: [{name, result, colour}].
export function chart(host, options) {
  let values = [], forecasts = [], at = 0, dragged = false, range = null, width = 720;
  const svg = drawn("svg", {class: "series", tabindex: options.onchange ? 0 : null,
    role: options.onchange ? "slider" : "img", "aria-label": options.title, "aria-valuenow": 0});
  fill(host, svg);
  const begin = () => Math.max(0, values.length - SHOWN[Number(width >= WIDE)]);
  const ahead = () => Math.max(0, ...forecasts.map((each) => each.result.forecast.length));
  const scales = () => {
    const seen = [...values.slice(begin()), ...forecasts.flatMap(({result}) => [
      ...result.forecast.map(first), ...bandsOf(result).flatMap((band) => [...band.low, ...band.high])])].filter(Number.isFinite);
    let [low, high] = [Math.min(...seen), Math.max(...seen)];
    if (!(high > low)) [low, high] = [low - 1, high + 1];
    const x0 = begin(), x1 = Math.max(values.length - 1 + ahead(), x0 + 1);
    range = {low: low - 0.05 * (high - low), high: high + 0.05 * (high - low), x0, x1};
  };
  const x = (t) => BOX.left + ((t - range.x0) / (range.x1 - range.x0)) * (width - BOX.left - BOX.right);
  const y = (v) => BOX.height - BOX.bottom - ((v - range.low) / (range.high - range.low)) * (BOX.height - BOX.top - BOX.bottom);
  const path = (points) => points.filter(([, v]) => Number.isFinite(v)).map(([t, v], k) =>
    `${k ? "L" : "M"}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join("");

  function fan({name, result, colour}) {
    const from = values.length, steps = result.forecast.map((value, h) => [from + h, first(value)]);
    const bands = bandsOf(result).map((band) => {
      const edge = [...band.high.map((v, h) => [from + h, v]), ...band.low.map((v, h) => [from + h, v]).reverse()];
      return drawn("path", {class: `band f${colour}`, d: `${path(edge)}Z`}, drawn("title", {}, `${name}: ${band.percent} % interval`));
    });
    const joined = [[from - 1, values[from - 1]], ...steps];
    return [bands, drawn("path", {class: `curve s${colour}`, d: path(joined)}, drawn("title", {}, `${name}: median`))];
  }

  function draw() {
    if (!dragged) scales();
    svg.setAttribute("viewBox", `0 0 ${width} ${BOX.height}`);
    const history = values.map((value, t) => [t, value]).slice(begin());
    const parts = [drawn("title", {}, options.title)];
    for (const v of ticks(range.low, range.high, 5)) {
      parts.push(drawn("line", {class: "grid", x1: BOX.left, x2: width - BOX.right, y1: y(v), y2: y(v)}),
        drawn("text", {x: BOX.left - 6, y: y(v) + 4, "text-anchor": "end"}, short(v)));
    }
    for (const t of ticks(range.x0, range.x1, width >= WIDE ? 8 : 4)) parts.push(drawn("text", {x: x(t), y: BOX.height - 8, "text-anchor": "middle"}, short(t)));
    parts.push(forecasts.flatMap(fan).flat(2), drawn("path", {class: "curve history", d: path(history)}));
    if (options.onchange) {
      parts.push(history.filter(([, v]) => Number.isFinite(v)).map(([t, v]) => drawn("circle", {
        class: t === at ? "handle chosen" : "handle", cx: x(t), cy: y(v), r: t === at ? 6 : 3.5})));
      svg.setAttribute("aria-valuenow", values[at] ?? 0);
      svg.setAttribute("aria-valuetext", `step ${at}: ${short(values[at])}`);
    }
    fill(svg, parts);
  }

  const pointed = (event) => {
    const box = svg.getBoundingClientRect();
    const px = (event.clientX - box.left) * (width / box.width), py = (event.clientY - box.top) * (BOX.height / box.height);
    const t = range.x0 + ((px - BOX.left) / (width - BOX.left - BOX.right)) * (range.x1 - range.x0);
    const v = range.low + ((BOX.height - BOX.bottom - py) / (BOX.height - BOX.top - BOX.bottom)) * (range.high - range.low);
    return [Math.min(Math.max(Math.round(t), begin()), values.length - 1), v];
  };
  const set = (value) => {
    values[at] = Number(value.toPrecision(6));
    draw();
    options.onchange(values);
  };
  if (options.onchange) {
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      dragged = true;
      [at] = pointed(event);
      set(pointed(event)[1]);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => { if (dragged) set(pointed(event)[1]); });
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { dragged = false; draw(); });
    svg.addEventListener("keydown", (event) => {
      const step = (range.high - range.low) / 40;
      if (event.key === "ArrowUp") set(values[at] + step);
      else if (event.key === "ArrowDown") set(values[at] - step);
      else if (event.key === "ArrowLeft") at = Math.max(begin(), at - 1);
      else if (event.key === "ArrowRight") at = Math.min(values.length - 1, at + 1);
      else return;
      draw();
      event.preventDefault();
    });
  }
  new ResizeObserver(() => {
    const now = Math.round(host.clientWidth);
    if (!now || now === width) return;
    width = now;
    if (values.length) draw();
  }).observe(host);
  return {
    show(newValues, newForecasts) {
      if (newValues.length !== values.length) at = newValues.length - 1;
      [values, forecasts] = [newValues, newForecasts];
      draw();
    },
    svg,
  };
}
