// Every address of the server with its fields, from /openapi.json.

import * as api from "./api.js";
import {field, fill, make, message} from "./make.js";

const list = document.getElementById("list"), choice = document.getElementById("run");

function example(schema, run) {
  const found = {};
  for (const name of schema.required || []) {
    const part = (schema.properties || {})[name] || {};
    found[name] = name === "model" ? run : part.type === "array" ? ["text"] : "text";
  }
  if (schema.properties && schema.properties.prompt) found.prompt = "";
  return JSON.stringify(found, null, 2);
}

function shown(path, method, told) {
  const schema = ((((told.requestBody || {}).content || {})["application/json"]) || {}).schema;
  const place = make("input", {size: 60}), out = make("pre", {tabindex: 0, "aria-label": "Answer", hidden: true});
  const text = schema ? make("textarea", {rows: 6}) : null;
  const send = async () => {
    const begun = {method: method.toUpperCase(), headers: api.headers(Boolean(text)), body: text ? text.value : undefined};
    out.hidden = false;
    try {
      const answer = await fetch(new URL(place.value, location.origin), begun);
      const said = await answer.text();
      let body = said;
      try { body = JSON.stringify(JSON.parse(said), null, 2); } catch { /* no JSON */ }
      out.textContent = `${answer.status}\n${body}`;
    } catch (error) { out.textContent = String(error); }
  };
  return make("details", {ontoggle: () => {
    place.value = place.value || path.replace("{run}", choice.value);
    if (text && !text.value) text.value = example(schema, choice.value);
  }}, make("summary", {}, make("code", {}, `${method.toUpperCase()} ${path}`), ` ${told.summary || ""}`),
  schema ? make("ul", {}, Object.entries(schema.properties || {}).map(([name, part]) => make(
    "li", {}, make("code", {}, name), ` ${part.description || ""}`))) : null,
  text ? field("Body", text) : null,
  make("div", {class: "row"}, field("Address", place), make("button", {type: "button", onclick: send}, "Send")), out);
}

async function load() {
  fill(list);
  fill(choice);
  try {
    choice.append(...(await api.get("/runs")).runs.map((name) => make("option", {}, name)));
    const told = await api.get("/openapi.json");
    for (const [path, methods] of Object.entries(told.paths)) {
      for (const [method, each] of Object.entries(methods)) list.append(shown(path, method, each));
    }
  } catch (error) { list.append(message(error.message, "error")); }
}

document.getElementById("token").addEventListener("change", (event) => {
  api.useToken(event.target.value.trim());
  load();
});
load();
