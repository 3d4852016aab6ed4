// Numbers [T][D] as cells that are clicked, painted or walked with the arrow keys; Space or Enter changes the one in focus.

import {drawn, fill} from "../make.js";

// grid(host, matrix, {title, next, onchange}): next(value, painting) is what a cell becomes; without it nothing changes.
export function grid(host, matrix, options) {
  const rows = matrix.length, columns = Math.max(1, ...matrix.map((row) => row.length));
  const flat = matrix.flat().filter(Number.isFinite);
  const low = Math.min(...flat, options.low ?? Infinity), high = Math.max(...flat, options.high ?? -Infinity);
  const share = (value) => (high > low ? (value - low) / (high - low) : 0);
  const cells = matrix.map((row, i) => row.map((value, j) => drawn("rect", {
    class: "cell", x: j, y: i, width: 1, height: 1, "fill-opacity": share(value).toFixed(3), "data-i": i, "data-j": j})));
  const cursor = drawn("rect", {class: "cursor", x: 0, y: 0, width: 1, height: 1});
  const svg = drawn("svg", {class: "cells", viewBox: `0 0 ${columns} ${rows}`, role: options.next ? "application" : "img",
    "aria-label": options.title, tabindex: options.next ? 0 : null, preserveAspectRatio: "xMinYMin meet"},
  drawn("title", {}, options.title), drawn("rect", {class: "ground", width: columns, height: rows}), cells, options.next ? cursor : null);
  svg.style.maxWidth = `${Math.min(columns * 20, 360)}px`;
  fill(host, svg);
  if (!options.next) return svg;
  let at = [0, 0], painted = null;
  const change = (i, j, value) => {
    matrix[i][j] = value;
    cells[i][j].setAttribute("fill-opacity", share(value).toFixed(3));
    options.onchange(matrix);
  };
  const move = (i, j) => {
    at = [Math.min(Math.max(i, 0), rows - 1), Math.min(Math.max(j, 0), columns - 1)];
    cursor.setAttribute("x", at[1]);
    cursor.setAttribute("y", at[0]);
    svg.setAttribute("aria-label", `${options.title}: row ${at[0] + 1}, column ${at[1] + 1}, ${matrix[at[0]][at[1]]}`);
  };
  const under = (event) => {
    const cell = document.elementFromPoint(event.clientX, event.clientY);
    return cell && svg.contains(cell) && cell.dataset.i !== undefined ? [Number(cell.dataset.i), Number(cell.dataset.j)] : null;
  };
  svg.addEventListener("pointerdown", (event) => {
    const found = under(event);
    if (!found) return;
    svg.setPointerCapture(event.pointerId);
    move(...found);
    painted = options.next(matrix[found[0]][found[1]]);
    change(...found, painted);
  });
  svg.addEventListener("pointermove", (event) => {
    const found = painted === null ? null : under(event);
    if (found && matrix[found[0]][found[1]] !== painted) change(...found, painted);
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { painted = null; });
  const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
  svg.addEventListener("keydown", (event) => {
    if (event.key in steps) move(at[0] + steps[event.key][0], at[1] + steps[event.key][1]);
    else if (event.key === " " || event.key === "Enter") change(...at, options.next(matrix[at[0]][at[1]]));
    else return;
    event.preventDefault();
  });
  return svg;
}
