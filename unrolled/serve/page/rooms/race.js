// Room 2: models in the same time on the same data: curves as they come, the baselines, and what came of it.

import {bars, line, short} from "../draw.js";
import {choice, field, fill, make, message, tabled} from "../make.js";

export const title = "Race";

const DRAWN = 400; // milliseconds between two drawings
const UNDER_WAY = ["starting", "running", "stopping"];
const ENDS = {done: "done", paused: "paused", failed: "failed", untrained: "no time for a training step",
  "none better": "no combination is better", stopped: "stopped"};

export async function mount(root, app) {
  const {comparisons} = await app.api.get("/comparisons");
  if (!comparisons.length) {
    fill(root, message("There is no comparison yet."), make("p", {}, make("a", {href: "#/data"}, "Start one with your data"), "."));
    return undefined;
  }
  const wanted = app.params.comparison;
  const known = comparisons.some((each) => each.comparison === wanted);
  const busy = comparisons.find((each) => UNDER_WAY.includes(each.state)) || comparisons[0];
  const name = known ? wanted : busy.comparison;
  const select = choice(comparisons.map((each) => [each.comparison, `${each.comparison} (${each.state})`]), name, {id: "comparison"});
  select.addEventListener("change", () => app.go("race", {comparison: select.value}));
  const race = new Race(name, app, comparisons.find((each) => each.comparison === name).state, (state) => {
    [...select.options].find((option) => option.value === name).textContent = `${name} (${state})`;
  });
  fill(root, wanted && !known ? message(`There is no comparison of that name: ${wanted}`, "error") : null,
    make("div", {class: "row"}, field("Comparison", select)), race.place);
  race.follow();
  return () => race.leave();
}

class Race {
  constructor(name, app, state, tell) {
    this.name = name;
    this.tell = tell; // the state of the comparison
    this.app = app;
    this.runs = new Map(); // by folder, in the order of the plan
    this.plan = null;
    this.notes = [];
    this.seen = this.idle = 0; // the time of the last event, and seconds in which nobody worked
    this.state = state;
    this.stop = new AbortController();
    this.parts = Object.fromEntries(["head", "verdict", "curves", "table", "samples", "notes"].map((part) => [part, make("div")]));
    this.place = make("div", {}, Object.values(this.parts));
    this.timer = 0;
  }

  leave() {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  // Read events until the comparison is over; the server ends each stream after a while.
  async follow() {
    let next = 0, over = false;
    this.draw();
    while (!over && !this.stop.signal.aborted) {
      try {
        await this.app.api.stream(`/comparisons/${encodeURIComponent(this.name)}/events?start=${next}`, null, (event) => {
          next = event.next ?? next;
          over = over || event.event === "over";
          this.take(event);
        }, this.stop.signal);
      } catch (error) {
        if (error.name === "AbortError") return;
        fill(this.parts.head, message(error.message, "error"));
        return;
      }
    }
    await this.finish();
  }

  take(event) {
    if (event.event === "plan") this.begin(event);
    else if (event.event === "note") this.notes.push(event.text);
    else if (event.event === "over") this.tell(this.state = event.state);
    else if (this.runs.has(event.folder)) this.moved(this.runs.get(event.folder), event);
    if (event.at) this.seen = Math.max(this.seen, event.at);
    if (!this.timer) this.timer = setTimeout(() => { this.timer = 0; this.draw(); }, DRAWN);
  }

  begin(plan) {
    if (this.plan) this.idle += Math.max(0, plan.at - this.seen); // it was stopped meanwhile
    this.plan = {...plan, at: this.plan ? this.plan.at : plan.at};
    this.tell(this.state = "running");
    this.notes.push(...plan.recipe, ...plan.notes);
    for (const run of plan.runs) {
      if (!this.runs.has(run.folder)) this.runs.set(run.folder, {...run, state: "waiting", share: 0, before: 0, begun: plan.at, curve: [], texts: [], speed: 0});
    }
  }

  moved(run, event) {
    const at = run.before + event.at - run.begun; // seconds that this run has had
    if (event.event === "begin") [run.state, run.begun] = ["training", event.at];
    else if (event.event === "step") [run.share, run.speed] = [event.share, event.speed];
    else if (event.event === "closing") run.state = "evaluating";
    else if (event.event === "sample") run.texts.push({at, text: event.text});
    else if (event.event === "evaluation") {
      const [[metric, value]] = Object.entries(event.figures);
      this.metric = metric;
      run.curve.push([at, value]);
    } else if (event.event in ENDS) {
      run.state = event.event === "failed" ? `failed: ${event.why}` : event.why || ENDS[event.event];
      run.before = Math.max(run.before, at || 0);
      if (event.event === "done") {
        run.share = 1;
        run.valid = event.valid ?? null;
        this.metric = this.metric || event.criterion;
      }
      if (run.kind !== "baseline") this.app.announce(`${run.folder}: ${run.state}`);
    }
  }

  draw() {
    const runs = [...this.runs.values()];
    this.drawHead(runs);
    if (!this.plan) return;
    const models = runs.filter((run) => run.kind === "model");
    const colours = Object.fromEntries(models.map((run, i) => [run.folder, i]));
    const baselines = runs.filter((run) => run.kind === "baseline" && Number.isFinite(run.valid));
    const host = this.parts.curves.querySelector(".drawing") || make("div", {class: "drawing"});
    if (!host.parentElement) fill(this.parts.curves, make("h2", {}, "Score on validation data"),
      make("figure", {}, host, make("figcaption", {}, "Each curve is a model; dashed lines are baselines. Test data is not used before the end.")));
    line(host, models.filter((run) => run.curve.length).map((run) => ({name: run.folder, points: run.curve})), {
      title: `Validation ${this.metric || "score"} of each model over time`, x: "seconds of training", y: this.metric || "", colours,
      lines: baselines.map((run) => ({name: run.label, value: run.valid})),
      xRange: [0, Math.max(1, ...models.flatMap((run) => run.curve.map((point) => point[0])))]});
    this.drawTable(runs);
    this.drawSamples(models);
    fill(this.parts.notes, this.notes.length ? make("details", {}, make("summary", {}, `Notes (${this.notes.length})`),
      make("ul", {class: "note"}, this.notes.map((text) => make("li", {}, text)))) : []);
  }

  drawHead(runs) {
    if (!UNDER_WAY.includes(this.state)) return;
    if (!this.plan) {
      fill(this.parts.head, make("p", {role: "status"}, "Preparing: the data is read and the models are timed."),
        make("progress", {"aria-label": "Preparing"}), this.buttons());
      return;
    }
    const share = runs.reduce((sum, run) => sum + run.share, 0) / Math.max(runs.length, 1);
    const passed = Date.now() / 1000 - this.plan.at - this.idle; // both clocks are of one machine, or nearly right
    const left = this.plan.budget ? this.plan.budget - passed : null;
    const bar = make("progress", {value: this.plan.budget ? Math.min(passed, this.plan.budget) : share,
      max: this.plan.budget || 1, "aria-label": "Progress of the comparison"});
    const told = left === null ? `${Math.round(share * 100)} % done` : left > 0 ? `${clock(left)} left` : "time is up, finishing";
    if (!this.parts.head.querySelector(".facts")) {
      fill(this.parts.head, make("p", {class: "facts"}, `${this.plan.task} on ${this.plan.data}`), make("div", {class: "bar"}), this.buttons());
    }
    fill(this.parts.head.querySelector(".bar"), make("p", {}, told), bar);
  }

  buttons() {
    const said = make("div", {"aria-live": "polite"});
    const button = make("button", {type: "button", onclick: async () => {
      button.disabled = true;
      try {
        await this.app.api.post(`/comparisons/${encodeURIComponent(this.name)}/stop`);
        fill(said, message("Stopping: what is running is saved, and can be resumed."));
      } catch (error) { fill(said, message(error.message, "error")); }
    }}, "Stop");
    return [button, said];
  }

  drawTable(runs) {
    const rows = runs.map((run) => make("tr", {class: run.kind}, make("th", {scope: "row"}, run.folder),
      make("td", {}, run.state), make("td", {class: "number"}, run.share ? `${Math.round(run.share * 100)} %` : ""),
      make("td", {class: "number"}, short(run.curve.length ? Math.min(...run.curve.map((point) => point[1])) : run.valid ?? NaN)),
      make("td", {class: "number"}, run.speed && run.state === "training" ? `${short(run.speed)}/s` : "")));
    fill(this.parts.table, make("h2", {}, "Runs"), tabled("Runs", ["run", "state", "done", `best ${this.metric || "score"}`, "speed"], rows, [2, 3, 4]));
  }

  drawSamples(models) {
    const writing = models.filter((run) => run.texts.length);
    if (!writing.length) return;
    const open = new Set([...this.parts.samples.querySelectorAll("details[open]")].map((each) => each.dataset.run));
    fill(this.parts.samples, make("h2", {}, "What each model writes"), make("p", {class: "note"}, "With the same noise each time, at evaluations."),
      make("div", {class: "columns"}, writing.map((run) => {
        const last = run.texts[run.texts.length - 1];
        return make("div", {class: "panel"}, make("h3", {}, run.folder), make("p", {class: "text mono"}, last.text),
          make("details", {"data-run": run.folder, open: open.has(run.folder)}, make("summary", {}, `All ${run.texts.length}`),
            make("ol", {}, run.texts.map((each) => make("li", {class: "text mono", value: Math.max(0, Math.round(each.at))}, each.text)))));
      })));
  }

  // What came of it.
  async finish() {
    clearTimeout(this.timer);
    this.draw();
    const about = await this.app.api.get(`/comparisons/${encodeURIComponent(this.name)}`);
    const parts = [];
    if (about.error) parts.push(message(about.error, "error"));
    if (about.state === "stopped") parts.push(message("This comparison was stopped before its end."));
    if (about.can_resume) parts.push(this.resuming());
    fill(this.parts.head, about.task && !this.plan ? make("p", {class: "facts"}, about.task) : null, parts);
    if (!about.rows.length) return;
    fill(this.parts.verdict, about.verdict ? make("p", {class: "verdict"}, about.verdict) : null,
      this.winner(about), make("h2", {}, `Score on ${about.split || "test"} data`), this.scores(about));
    this.app.announce(`The comparison is ${about.state}. ${about.verdict || ""}`);
  }

  resuming() {
    const said = make("div", {"aria-live": "polite"});
    return make("p", {}, make("button", {type: "button", onclick: async () => {
      try {
        await this.app.api.post(`/comparisons/${encodeURIComponent(this.name)}/resume`);
        this.app.go("race", {comparison: this.name});
      } catch (error) { fill(said, message(error.message, "error")); }
    }}, "Resume"), said);
  }

  winner(about) {
    const row = about.rows.find((each) => each.label === about.selected);
    if (!row || !row.runs.length) return null;
    return make("p", {class: "row"},
      make("a", {class: "button", id: "try", href: `#/play?run=${encodeURIComponent(this.name)}`}, `Try ${row.label}`),
      make("a", {class: "button", href: `#/inside?run=${encodeURIComponent(this.name)}`}, "Look inside"),
      make("a", {class: "button", href: `#/take?run=${encodeURIComponent(this.name)}`}, "Take it"));
  }

  scores(about) {
    const measured = about.rows.filter((row) => Number.isFinite(row.score));
    const host = make("div");
    const figure = make("figure", {}, host, make("figcaption", {}, `Bars show ${about.score}, lines its 95 % intervals over ${about.unit || "examples"}: green the selected model, grey baselines.`));
    queueMicrotask(() => bars(host, measured.map((row) => ({
      label: row.label, value: row.score, low: (row.interval || [])[0], high: (row.interval || [])[1],
      text: row.interval ? `${short(row.score)} (${short(row.interval[0])} to ${short(row.interval[1])})` : short(row.score),
      colour: row.label === about.selected ? 2 : row.kind === "baseline" ? 6 : 0,
    })), {title: `${about.score} of each model on ${about.split || "test"} data`}));
    const rows = about.rows.map((row) => make("tr", {class: row.label === about.selected ? "best" : row.kind},
      make("th", {scope: "row"}, row.label), make("td", {class: "number"}, short(row.valid ?? NaN)),
      make("td", {class: "number"}, short(row.score ?? NaN)),
      make("td", {class: "number"}, row.interval ? `${short(row.interval[0])} to ${short(row.interval[1])}` : ""),
      make("td", {class: "number"}, row.parameters === null ? "" : row.parameters.toLocaleString("en")),
      make("td", {}, row.failed || row.not_trained || row.stopped || "")));
    return [figure, tabled("Scores", ["model", `valid ${about.score || ""}`, `${about.split || "test"} ${about.score || ""}`, "95 % interval", "parameters", "remark"], rows, [1, 2, 3, 4])];
  }
}

function clock(seconds) {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}
