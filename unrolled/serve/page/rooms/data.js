// Room 1: a file of the visitor, what is understood of it, and a comparison of models on it.

import {choice, field, fill, make, message, tabled} from "../make.js";

export const title = "Your data";

const SHOWN = 12; // columns of a table that are shown at once
const LONGEST = 160; // letters of a cell

export async function mount(root, app) {
  const may = await app.api.get("/training");
  if (!may.enabled) {
    fill(root, message("This server trains nothing. Started with unrolled show --train, you can drop a file of your own here and compare models on it."),
      make("p", {}, make("a", {href: "#/race"}, "See the comparisons that there are"), "."));
    return undefined;
  }
  const found = make("div");
  const stop = new AbortController();
  fill(root,
    make("p", {}, "Choose a table, texts or series. The page shows how the file will be parsed before anything is trained. It stays on this server."),
    dropZone(may, (file) => taken(file, found, app, may, stop.signal)), found);
  if (may.running) found.append(underWay(may.running));
  return () => stop.abort();
}

const underWay = (name) => make("p", {class: "message note", role: "note"}, "A comparison is under way: ",
  make("a", {href: `#/race?comparison=${encodeURIComponent(name)}`}, name));

function dropZone(may, give) {
  const input = make("input", {type: "file", id: "file", accept: may.suffixes.join(","), "aria-describedby": "kinds"});
  const zone = make("div", {class: "drop"},
    make("p", {}, make("label", {for: "file"}, "Drop a file here, or choose one")), input,
    make("p", {class: "note", id: "kinds"}, `At most ${size(may.upload_bytes)}: ${may.suffixes.join(" ")}`));
  const offered = (files) => { if (files.length) give(files[0]); };
  input.addEventListener("change", () => offered(input.files));
  for (const kind of ["dragenter", "dragover"]) zone.addEventListener(kind, (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    offered(event.dataTransfer.files);
  });
  return zone;
}

function size(bytes) {
  return bytes >= 2 ** 20 ? `${Math.round(bytes / 2 ** 20)} MB` : `${Math.max(1, Math.round(bytes / 1024))} kB`;
}

// A file that was given: send it, then ask how it is understood.
async function taken(file, place, app, may, signal) {
  fill(place, make("p", {role: "status"}, `Reading ${file.name}, ${size(file.size)}`), make("progress", {"aria-label": "Reading the file"}));
  app.announce("Reading the file");
  try {
    const sent = await app.api.upload("/uploads", file, signal);
    await understood({...sent, shown: file.name}, {file: sent.file}, place, app, may, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(place, message(error.message, "error"));
  }
}

// Ask how the file is parsed and show it; a choice asks again, and one that cannot be leaves what is shown.
async function understood(sent, asked, place, app, may, signal, before = null) {
  const trouble = make("div", {"aria-live": "polite"});
  const again = (change) => {
    trouble.replaceChildren(make("p", {class: "note"}, "Reading the file again"));
    understood(sent, {file: sent.file, ...change}, place, app, may, signal, {trouble});
  };
  const now = {task: asked.task || null, settings: asked.settings || {}};
  let facts;
  try {
    facts = await app.api.post("/data", asked, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (before) {
      before.trouble.replaceChildren(message(error.message, "error"));
      return;
    }
    trouble.append(message(error.message, "error"));
    fill(place, make("h2", {}, `${sent.shown} cannot be parsed yet`), trouble,
      make("p", {}, "If another task or setting can help, choose it here; otherwise change the file and drop it again."),
      choices({task: null}, may, now, again));
    return;
  }
  fill(place,
    make("h2", {}, `How ${sent.shown} will be parsed`),
    make("p", {class: "verdict"}, `${summary(facts.task, may)} (${facts.task}`, facts.guessed ? `, because ${facts.guessed}` : "", ")"),
    choices(facts, may, now, again), trouble,
    columns(facts), examples(facts), splits(facts), notes(facts),
    starting(sent, facts, now, app, may));
  app.announce(`Parsed for the task ${facts.task}`);
}

function summary(task, may) {
  const text = (may.tasks.find((each) => each.task === task) || {summary: task}).summary.replace(/\.$/, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function choices(facts, may, now, again) {
  const known = may.tasks.map((each) => [each.task, `${each.task}: ${each.summary}`]);
  const task = choice(facts.task ? known : [["", "choose one"], ...known], facts.task || "", {id: "task"});
  task.addEventListener("change", () => again({task: task.value || null}));
  const named = facts.columns || [];
  const target = named.find((column) => column.use === "target");
  const parts = [field("Task", task)];
  if (target && named.length > 1) {
    const select = choice(named.map((column) => [column.name, column.name]), target.name, {id: "target"});
    select.addEventListener("change", () => again({task: facts.task, settings: {...now.settings, target: select.value}}));
    parts.push(field("Column to predict", select));
  }
  const {target: own, ...others} = now.settings;
  const settings = make("input", {id: "settings", size: 34, maxlength: 400, placeholder: "name=value, name=value",
    value: Object.entries(others).map(([name, value]) => `${name}=${value}`).join(", ")});
  settings.addEventListener("change", () => again({task: task.value || null, settings: {...(own ? {target: own} : {}), ...assigned(settings.value)}}));
  return [make("div", {class: "row"}, parts), make("details", {open: Object.keys(others).length > 0 || !facts.task},
    make("summary", {}, "Settings of the data"),
    field("Settings, separated by commas", settings, "Those that a note or a message names, such as horizon=24 or column=review."))];
}

// The settings in a text: numbers where they are such.
function assigned(text) {
  const pairs = text.split(",").map((each) => each.trim()).filter(Boolean).map((each) => {
    const at = each.indexOf("=");
    return at < 0 ? [each, ""] : [each.slice(0, at).trim(), each.slice(at + 1).trim()];
  });
  return Object.fromEntries(pairs.map(([name, value]) => [name, value !== "" && Number.isFinite(Number(value)) ? Number(value) : value]));
}

function table(name, head, rows) {
  const numbers = head.map((_, i) => i).filter((i) => rows.length && rows.every((row) => typeof row[i] === "number"));
  return tabled(name, head, rows.map((row) => make("tr", {}, row.map((cell, i) => (
    i ? make("td", {class: numbers.includes(i) ? "number" : null}, cellText(cell)) : make("th", {scope: "row"}, cellText(cell)))))), numbers);
}

function cellText(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "number" ? value.toLocaleString("en") : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function columns(facts) {
  const all = facts.columns || [];
  if (!all.length) return null;
  const more = all.length > SHOWN ? make("p", {class: "note"}, `and ${all.length - SHOWN} more columns`) : null;
  return [make("h3", {}, "Columns"), table("Columns", ["column", "holds", "use"],
    all.slice(0, SHOWN).map((each) => [each.name, each.holds, each.use || "not used"])), more];
}

function examples(facts) {
  const first = facts.first || [];
  if (!first.length) return null;
  const names = [...new Set(first.flatMap((each) => Object.keys(each)))].filter((name) => name !== "place");
  return [make("h3", {}, "First examples"),
    table("First examples", names, first.map((each) => names.map((name) => each[name])))];
}

function splits(facts) {
  const split = facts.split || {};
  const names = [...new Set(Object.values(split).flatMap((each) => Object.keys(each)))];
  if (!names.length) return null;
  return [make("h3", {}, "Split"), table("Split", ["split", ...names],
    Object.entries(split).map(([name, each]) => [name, ...names.map((key) => each[key])]))];
}

function notes(facts) {
  const told = facts.notes || [];
  return told.length ? make("ul", {class: "note"}, told.map((text) => make("li", {}, text))) : null;
}

// One button that starts a comparison, with the time that it may take.
function starting(sent, facts, now, app, may) {
  const minutes = make("input", {id: "minutes", type: "number", min: 0.1, step: "any", max: may.seconds / 60,
    value: Math.min(5, may.seconds / 60), required: true});
  const models = make("input", {id: "models", placeholder: "chosen for the task and the data", size: 34, maxlength: 200});
  const said = make("div", {"aria-live": "assertive"});
  const form = make("form", {class: "panel", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const body = {file: sent.file, task: facts.task, settings: now.settings, budget: Number(minutes.value) * 60,
        models: models.value.trim() || null};
      const begun = await app.api.post("/comparisons", body);
      app.go("race", {comparison: begun.comparison});
    } catch (error) {
      fill(said, message(error.message, "error"));
      button.disabled = false;
    }
  }});
  const button = make("button", {class: "main"}, "Compare models");
  form.append(make("h2", {}, "Compare models on it"),
    make("p", {}, "Several models are trained on the same data in the same time, beside simple baselines. You can watch, and stop when you have seen enough."),
    make("div", {class: "row"}, field("Minutes in all", minutes), button),
    make("details", {}, make("summary", {}, "More settings"),
      field("Models, separated by commas", models, "unrolled models lists them; baselines are always there.")), said);
  return form;
}
