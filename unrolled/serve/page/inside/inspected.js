// The positions of an input: over each what the model attends to there, its gates, the gradient and the saliency. Two are pinned.

import {heat, short} from "../draw.js";
import {choice, field, fill, make} from "../make.js";
import {seen} from "../play/tokens.js";

const MOST = 2;  // pinned
const ASKED = ["attention", "gates", "gradients", "saliency", "surprise"];

// What each question says of position t: {value} colours it, `draw` shows more.
const READ = {
  attention: ({arrays, pictures}) => {
    const layers = Object.keys(arrays).filter((name) => name.startsWith("layer_"));
    const picture = pictures.find((each) => each.kind === "heatmap"), rows = mean(arrays[layers.at(-1)]);
    return {title: "Attention weights, mean of the heads of the last layer", n: rows.length, row: (t) => rows[t], columns: picture ? picture.columns.map(seen) : [],
      draw: (place, t) => heat(place, [rows[t]], {title: "Attention weights", columns: picture ? picture.columns.map(seen) : null, from: 0})};
  },
  gates: ({arrays}) => {
    const found = Object.entries(arrays).filter(([name, rows]) => /^layer_\d+_/.test(name) && !name.endsWith("_cell") && isGate(rows));
    const last = Math.max(...found.map(([name]) => Number(name.split("_")[1])));
    const shown = found.filter(([name]) => Number(name.split("_")[1]) === last);
    return {title: `Gates of layer ${last}, each unit`, n: shown.length ? shown[0][1].length : 0,
      facts: (t) => shown.map(([name, rows]) => [`${name.split("_").slice(2).join(" ")}, mean`, average(rows[t])]),
      draw: (place, t) => heat(place, shown.map(([, rows]) => rows[t].slice(0, 64)), {title: "Gates by unit", rows: shown.map(([name]) => name.split("_").slice(2).join(" ")),
        from: 0, to: 1})};
  },
  gradients: ({arrays}) => {
    const {state = null, input = null} = arrays;
    return {title: "Gradient norm", n: (input || state).length, value: (t) => (state || input)[t],
      facts: (t) => [["of the state", state && state[t]], ["of the input", input && input[t]]].filter(([, value]) => typeof value === "number")};
  },
  saliency: ({arrays}) => {
    const names = ["integrated_gradients", "occlusion"].filter((name) => arrays[name]);
    return {title: "Saliency", n: arrays[names[0]].length, value: (t) => Math.abs(arrays[names[0]][t]),
      facts: (t) => names.map((name) => [name.replace("_", " "), arrays[name][t]])};
  },
  surprise: ({arrays, numbers, pictures}) => ({title: "Surprise", n: arrays.nats.length, value: (t) => arrays.nats[t], tokens: pictures[0].tokens,
    facts: (t) => [["of what follows, nats", arrays.nats[t]]], numbers}),
};

const mean = (heads) => heads[0].map((row, t) => row.map((_, s) => heads.reduce((sum, head) => sum + head[t][s], 0) / heads.length));
const average = (row) => row.reduce((sum, value) => sum + value, 0) / row.length;
const isGate = (rows) => Array.isArray(rows) && rows.flat().every((value) => value >= 0 && value <= 1);

export class Inspected {
  constructor(host, questions, ask) {
    Object.assign(this, {host, ask, questions: ASKED.filter((name) => questions.includes(name)), found: {}, pinned: [], at: null});
  }

  async begin() {
    if (!this.questions.length) {
      fill(this.host);
      return;
    }
    fill(this.host, make("p", {class: "hint"}, "Looking at each position…"));
    const answers = await Promise.allSettled(this.questions.map((name) => this.ask(name)));
    answers.forEach(({status, value}, k) => { if (status === "fulfilled") this.found[this.questions[k]] = {...READ[this.questions[k]](value), answer: value}; });
    this.names = this.named();
    if (!this.names.length) {
      const failed = answers.find((each) => each.status === "rejected");
      throw failed ? failed.reason : new Error("this run looks at no positions");
    }
    this.place();
    this.look(this.names.length - 1);
  }

  // The names of the positions, from whichever answer has them.
  named() {
    for (const {answer} of Object.values(this.found)) if (Array.isArray(answer.numbers.positions)) return answer.numbers.positions;
    for (const {answer} of Object.values(this.found)) {
      const picture = answer.pictures.find((each) => each.kind === "tokens");
      if (picture) return picture.tokens;
    }
    const longest = Math.max(0, ...Object.values(this.found).map((each) => each.n));
    return Array.from({length: longest}, (_, t) => String(t));
  }

  place() {
    const able = Object.entries(this.found).filter(([, each]) => each.value || (each.row && each.columns.length === this.names.length));
    this.colour = choice(able.map(([name, each]) => [name, each.title]), able.length ? able[0][0] : "", {onchange: () => this.paint()});
    this.buttons = this.names.map((name, t) => make("button", {type: "button", tabindex: t ? -1 : 0, "aria-pressed": "false",
      "aria-label": `Position ${t}: ${seen(name)}`, onpointerenter: () => this.look(t), onfocus: () => this.look(t), onclick: () => this.pin(t),
      onkeydown: (event) => this.key(event, t)}, seen(name)));
    this.panels = make("div", {class: "columns"});
    fill(this.host, make("h2", {}, "Position by position"), make("p", {class: "hint"}, "Point at a position, or move with the arrow keys; a click pins it, two at a time."),
      able.length > 1 ? field("Colour by", this.colour) : null, make("div", {class: "positions", role: "group", "aria-label": "Positions"}, this.buttons), this.panels);
  }

  key(event, t) {
    const next = {ArrowRight: t + 1, ArrowLeft: t - 1, Home: 0, End: this.names.length - 1}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const button = this.buttons[Math.min(Math.max(next, 0), this.buttons.length - 1)];
    for (const each of this.buttons) each.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
  }

  pin(t) {
    this.pinned = this.pinned.includes(t) ? this.pinned.filter((each) => each !== t) : [...this.pinned, t].slice(-MOST);
    this.buttons.forEach((button, k) => {
      button.classList.toggle("pinned", this.pinned.includes(k));
      button.setAttribute("aria-pressed", String(this.pinned.includes(k)));
    });
    this.show();
  }

  look(t) {
    if (t === this.at) return;
    this.at = t;
    this.buttons.forEach((button, k) => button.classList.toggle("shown", k === t));
    this.show();
  }

  paint() {
    const found = this.found[this.colour.value];
    if (!found) return;
    const at = this.pinned.at(-1) ?? this.at;
    const values = this.names.map((_, t) => (found.value ? found.value(t) : (found.row(at) || [])[t]) ?? 0);
    const most = Math.max(...values) || 1;
    this.buttons.forEach((button, t) => button.style.setProperty("--heat", (values[t] / most).toFixed(3)));
  }

  show() {
    const shown = this.pinned.length === MOST ? this.pinned : [...new Set([...this.pinned, this.at])];
    fill(this.panels, shown.map((t) => this.panel(t)));
    for (const {draw, place, t} of this.waiting.splice(0)) draw(place, t);
    this.paint();
  }

  waiting = [];

  panel(t) {
    const facts = Object.values(this.found).filter((each) => each.facts && t < each.n).flatMap((each) => each.facts(t).map(([name, value]) => [each.title, name, value]));
    const drawings = Object.values(this.found).filter((each) => each.draw && t < each.n).map((each) => {
      const place = make("div", {class: "wide"});
      this.waiting.push({draw: each.draw, place, t});
      return [make("h4", {}, each.title), place];
    });
    return make("section", {class: "panel facts", "aria-label": `Position ${t}`}, make("h3", {}, `Position ${t}: ${seen(this.names[t])}`, this.pinned.includes(t) ?
      make("small", {}, " pinned") : null), make("dl", {}, facts.map(([title, name, value]) => make("div", {}, make("dt", {}, `${title.split(",")[0]}: ${name}`),
      make("dd", {}, short(value))))), drawings);
  }
}
