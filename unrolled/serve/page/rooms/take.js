// Room 5: a run as files: its directory, and the forms that exports make of it.

import {choice, field, fill, make, message} from "../make.js";

export const title = "Take it";

export async function mount(root, app) {
  const runs = await app.runs();
  if (!runs.length) {
    fill(root, message("There is no run to take yet."), make("h2", {}, "Nothing here"),
      make("p", {}, make("a", {href: "#/data"}, "Compare models on your data"), " first."));
    return undefined;
  }
  const wanted = app.params.run;
  const known = runs.some((each) => each.run === wanted);
  const name = known ? wanted : runs[0].run;
  const select = choice(runs.map((each) => [each.run, label(each)]), name, {id: "run"});
  select.addEventListener("change", () => app.go("take", {run: select.value}));
  const files = make("div", {"aria-live": "polite"});
  fill(root, wanted && !known ? message(`There is no run of that name: ${wanted}`, "error") : null,
    make("div", {class: "row"}, field("Run", select)),
    make("h2", {}, "The run directory"),
    make("p", {}, "Everything that was saved: weights, vocabulary, settings, metrics, report. It opens again with unrolled, in Python or on the command line."),
    taking(app, "Download as zip", `/runs/${encodeURIComponent(name)}/zip`, null, "main"),
    make("p", {}, "Unpack the file first, then:"),
    make("dl", {}, [["on the command line", `unrolled serve ${name}`], ["in Python", `unrolled.load("${name}")`]].map(([where, how]) => make("div", {}, make("dt", {}, where), make("dd", {}, make("code", {}, how))))),
    make("h2", {}, "For other programs"), files);
  fill(files, make("p", {class: "note"}, "Finding the forms that this run can have"), make("progress", {"aria-label": "Finding the forms that this run can have"}));
  const stop = new AbortController();
  offers(files, name, app, stop.signal);
  return () => stop.abort();
}

const label = (each) => [each.run, [each.model, each.task].filter(Boolean).join(", ")].filter(Boolean).join(": ");

async function offers(place, name, app, signal) {
  try {
    const {targets} = await app.api.get(`/runs/${encodeURIComponent(name)}/exports`, signal);
    fill(place, make("div", {class: "columns"}, targets.map((each) => make("div", {class: "panel"},
      make("h3", {}, each.target), make("p", {}, each.summary),
      each.why_not ? message(`Not available for this run: ${each.why_not}.`)
        : taking(app, `Make and download (${each.suffix})`, `/runs/${encodeURIComponent(name)}/exports/${encodeURIComponent(each.target)}`, {})))));
  } catch (error) {
    if (error.name !== "AbortError") fill(place, message(error.message, "error"));
  }
}

function taking(app, text, path, body, kind = null) {
  const said = make("div", {"aria-live": "polite"});
  const button = make("button", {type: "button", class: kind, onclick: async () => {
    button.disabled = true;
    fill(said, make("p", {class: "note"}, "Exporting"), make("progress", {"aria-label": "Exporting"}));
    try {
      fill(said, message(`${await app.api.download(path, body)} is in your downloads.`, "good"));
    } catch (error) { fill(said, message(error.message, "error")); }
    button.disabled = false;
  }}, text);
  return make("div", {}, button, said);
}
