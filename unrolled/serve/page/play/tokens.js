// A text as a run finds it: each token coloured by its surprise; of each the alternatives, from one of which it continues.

import {short} from "../draw.js";
import {fill, make} from "../make.js";

const FULL = 6;  // nats, from which the colour is full
const SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"};

export const seen = (token) => (token === "" ? "∅" : [...token].map((letter) => SIGNS[letter] || letter).join(""));

// tokens(host, {onpick(text)}): add(logprobs) appends tokens; onpick is called with the text up to a token and an alternative.
export function tokens(host, options) {
  const all = [];  // {token, logp, top}
  const text = make("div", {class: "tokens", role: "group", "aria-label": "Tokens, coloured by their surprise"});
  const panel = make("div", {class: "alternatives"});
  let pinned = null;
  fill(host, text, make("p", {class: "scale"}, "Surprise: ", [0, 1, 2, 4, 6].map((nats) => {
    const sample = make("span", {class: "token"}, `${nats}`);
    sample.style.setProperty("--heat", Math.min(nats / FULL, 1));
    return sample;
  }), " nats"), panel);

  const before = (at) => all.slice(0, at).map((each) => each.token).join("");

  function alternatives(at) {
    const {token, logp, top} = all[at];
    const told = logp === null ? "the first token has nothing before it" :
      `probability ${percent(Math.exp(logp))}, surprise ${short(-logp)} nats`;
    const rows = Object.entries(top || {}).sort(([, a], [, b]) => b - a).slice(0, 10).map(([name, p]) => {
      const bar = make("span", {class: "bar", "aria-hidden": "true"});
      bar.style.setProperty("--share", Math.exp(p));
      const special = options.specials.includes(name);
      return make("li", {}, make("button", {type: "button", disabled: special, class: name === token ? "own" : null,
        onclick: () => options.onpick(before(at) + name),
        "aria-label": `Continue with ${seen(name)}, probability ${percent(Math.exp(p))}`},
      make("span", {class: "mono"}, seen(name)), bar, make("span", {class: "number"}, percent(Math.exp(p)))));
    });
    fill(panel, make("h3", {}, `Instead of “${seen(token)}”`), make("p", {class: "hint"}, told),
      rows.length ? make("ol", {}, rows) : null);
  }

  function pin(at) {
    pinned = at;
    for (const [k, each] of all.entries()) each.element.setAttribute("aria-pressed", k === at ? "true" : "false");
    alternatives(at);
  }

  const focus = (at) => {
    const found = all[Math.min(Math.max(at, 0), all.length - 1)];
    if (!found) return;
    for (const each of all) each.element.tabIndex = -1;
    found.element.tabIndex = 0;
    found.element.focus();
  };

  function element(at, token, logp) {
    const found = make("button", {type: "button", class: "token", tabindex: at ? -1 : 0, "aria-pressed": "false",
      "aria-label": `${seen(token)}${logp === null ? "" : `, surprise ${short(-logp)} nats`}`,
      onpointerenter: () => { if (pinned === null) alternatives(at); },
      onfocus: () => { if (pinned === null) alternatives(at); },
      onclick: () => {
        pin(at);
        const firstOne = panel.querySelector("button:not(:disabled)");
        if (firstOne) firstOne.focus({preventScroll: true});
      },
      onkeydown: (event) => {
        if (event.key === "ArrowRight") focus(at + 1);
        else if (event.key === "ArrowLeft") focus(at - 1);
        else if (event.key === "Home") focus(0);
        else if (event.key === "End") focus(all.length - 1);
        else return;
        event.preventDefault();
      }}, token.replaceAll("\n", "↵\n") || "∅");
    found.style.setProperty("--heat", logp === null ? 0 : Math.min(-logp / FULL, 1).toFixed(3));
    return found;
  }

  return {
    add(logprobs) {
      if (!logprobs) return;
      logprobs.tokens.forEach((token, k) => {
        const logp = logprobs.token_logprobs[k], at = all.length;
        const made = element(at, token, logp);
        all.push({token, logp, top: (logprobs.top_logprobs || [])[k], element: made});
        text.append(made);
      });
    },
    text: () => before(all.length),
    nats: () => {
      const known = all.filter((each) => each.logp !== null);
      return {n: known.length, mean: known.reduce((sum, each) => sum - each.logp, 0) / Math.max(known.length, 1)};
    },
  };
}

export const percent = (p) => (p >= 0.0995 ? `${Math.round(100 * p)} %` : `${short(Number((100 * p).toPrecision(2)))} %`);
