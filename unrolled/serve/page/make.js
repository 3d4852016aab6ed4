// Elements of the page. Text becomes text, whatever stands in it; nothing here reads HTML.

// make("button", {type: "button", class: "main", onclick: act, disabled: true}, "Start", element, ...)
// A value of true is an attribute without a value; false, null and undefined leave it out; on... is a listener.
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// The same in SVG.
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined).map(
    (each) => (each instanceof Node ? each : document.createTextNode(String(each)))));
  return element;
}

// Replace what is in an element.
export function fill(element, ...children) {
  element.replaceChildren();
  return filled(element, {}, children);
}

let count = 0;

// A label above a control: field("Budget", make("input", {...}), "hint")
export function field(label, control, hint = null) {
  const id = control.id || (control.id = `field-${++count}`);
  const below = hint === null ? null : make("small", {id: `${id}-hint`}, hint);
  if (below) control.setAttribute("aria-describedby", below.id);
  return make("div", {class: "field"}, make("label", {for: id}, label), control, below);
}

// A select of [value, text] pairs.
export function choice(pairs, chosen, attributes = {}) {
  const select = make("select", attributes, pairs.map(([value, text]) => make("option", {value}, text)));
  if (chosen !== undefined && chosen !== null) select.value = chosen;
  return select;
}

// A message that is read out; kind is "error", "note" or "good".
export function message(text, kind = "note") {
  return make("p", {class: `message ${kind}`, role: kind === "error" ? "alert" : "note"}, text);
}

// A table in a region that the keyboard can scroll: rows are elements; `numbers` says which columns stand to the right.
export function tabled(name, head, rows, numbers = []) {
  return make("div", {class: "scroll", role: "region", tabindex: 0, "aria-label": name}, make("table", {},
    make("thead", {}, make("tr", {}, head.map((each, i) => make("th", {scope: "col", class: numbers.includes(i) ? "number" : null}, each)))),
    make("tbody", {}, rows)));
}
