// Inside: every question about a run that has an answer; a position is looked at, two are pinned.

import {choice, field, fill, make, message} from "../make.js";
import {Inspected} from "../inside/inspected.js";
import {drawAnswer} from "../inside/pictures.js";
import {editor} from "../play/editors.js";

export const title = "Inside";

const FIRST = ["attention", "surprise", "gates", "saliency", "gradients", "states", "energy", "overlap"];  // questions, in this order before others
const POSITIONS = 64;  // that are looked at: the same for every question, whose targets are then the same
const EDITED = new Set(["text", "words", "numbers", "pattern", "pen"]);  // forms that questions take as verbs do

export async function mount(root, app) {
  const known = await app.runs();
  if (!known.length) {
    fill(root, message("There are no runs here. Train one, or start a comparison in “Your data”."));
    return () => {};
  }
  const name = known.some((each) => each.run === app.params.run) ? app.params.run : known[0].run;
  const work = new AbortController();
  const select = choice(known.map((each) => [each.run, `${each.run} (${each.model}, ${each.task})`]), name, {
    onchange: () => app.go("inside", {run: select.value})});
  const place = make("div");
  fill(root, field("Run", select), place);
  fill(place, make("p", {class: "hint"}, "Opening…"));
  try {
    const about = await app.api.get(`/runs/${encodeURIComponent(name)}`, work.signal);
    new Inside(place, app, about, work.signal).begin();
  } catch (error) {
    if (error.name !== "AbortError") fill(place, message(error.message, "error"));
  }
  return () => work.abort();
}

class Inside {
  constructor(root, app, about, signal) {
    Object.assign(this, {app, about, signal, visit: 0});
    this.address = `/runs/${encodeURIComponent(about.run)}/inspect/`;
    this.questions = [...about.questions].sort((a, b) => rank(a) - rank(b));
    const input = make("div", {class: "input"});
    this.positions = make("section", {"aria-label": "Positions"});
    this.answers = make("div");
    const ask = make("button", {type: "button", class: "main", onclick: () => this.ask()}, "Look inside");
    this.question = choice(this.questions.map((name) => [name, name]), this.questions.includes(app.params.question) ?
      app.params.question : this.questions[0], {onchange: () => this.answer()});
    this.told = make("p", {class: "hint"});
    fill(root, make("section", {class: "panel", "aria-label": "Input"}, input, make("div", {class: "row"}, ask)), this.positions,
      make("section", {"aria-label": "Answers"}, make("h2", {}, "Questions"), field("Question", this.question), this.told, this.answers), this.left());
    if (EDITED.has(about.input.form)) this.editor = editor(input, about.input, {onchange: () => {}, moves: false});
    else fill(input, make("p", {class: "hint"}, "The first saved example of the run is looked at."));
  }

  // What is asked of other models, with the reason.
  left() {
    const rest = Object.entries(this.about.not_answered);
    if (!rest.length) return null;
    return make("details", {}, make("summary", {}, `Questions that do not apply to this run: ${rest.length}`),
      make("dl", {}, rest.map(([name, why]) => make("div", {}, make("dt", {}, name), make("dd", {}, why)))));
  }

  begin() {
    if (this.questions.length) this.ask();
  }

  body() {
    return this.editor ? {input: this.editor.value()} : {};
  }

  async ask() {
    const visit = ++this.visit;
    try {
      const body = this.body();
      const inspected = new Inspected(this.positions, this.about.questions, async (question) =>
        (await this.app.api.post(this.address + question, {...body, length: POSITIONS}, this.signal)));
      await Promise.all([inspected.begin(), this.answer(body)]);
      if (visit === this.visit) this.app.announce(`${this.about.run} was looked into`);
    } catch (error) {
      if (error.name !== "AbortError" && visit === this.visit) fill(this.positions, message(error.message, "error"));
    }
  }

  async answer(body = null) {
    const question = this.question.value;
    this.told.textContent = this.about.asked[question];
    fill(this.answers, make("p", {class: "hint"}, "Asking…"));
    try {
      const answer = await this.app.api.post(this.address + question, body || this.body(), this.signal);
      if (question === this.question.value) drawAnswer(this.answers, answer, `${this.about.run}-${question}`, this.app.api);
    } catch (error) {
      if (error.name !== "AbortError") fill(this.answers, message(error.message, "error"));
    }
  }
}

const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
