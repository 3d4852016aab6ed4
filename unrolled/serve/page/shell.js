// The frame of the page: rooms by address (#/race?comparison=demo), colours, the token, and what is read out.

import * as api from "./api.js";
import {fill, make, message} from "./make.js";

// The rooms in the order of their links. Each is a module: title, mount(root, app), which may return unmount().
const ROOMS = ["data", "race", "play", "inside", "take"];
const NAMES = {data: "Your data", race: "Race", play: "Playground", inside: "Inside", take: "Take it"};

const root = document.getElementById("room");
const said = document.getElementById("said");
let leave = () => {};
let visit = 0;

function where() {
  const [room, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return {room: ROOMS.includes(room) ? room : "", params: Object.fromEntries(new URLSearchParams(query))};
}

export function go(room, params = {}) {
  const known = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(known).toString();
  const hash = `#/${room}${query ? `?${query}` : ""}`;
  if (location.hash === hash) show(); else location.hash = hash;
}

function announce(text) {
  said.textContent = text;
}

async function runs() {
  return (await api.get("/runs")).about;
}

function shown(error) {
  if (error.status === 401) document.getElementById("door").hidden = false;
  if (!(error instanceof api.ApiError)) console.error(error);
  return message(error.message || String(error), "error");
}

async function show() {
  const mine = ++visit;
  leave();
  leave = () => {};
  const {room, params} = where();
  for (const link of document.querySelectorAll("#rooms a")) {
    if (link.dataset.room === room) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const place = make("div", {class: "room"});
  fill(root, place);
  try {
    if (!room) return go(await first());
    const module = await import(`./rooms/${room}.js`);
    if (mine !== visit) return;
    document.title = `${module.title} · unrolled`;
    place.append(make("h1", {tabindex: -1}, module.title));
    const inner = make("div");
    place.append(inner);
    const unmount = await module.mount(inner, {api, go, params, runs, announce});
    if (mine === visit) leave = unmount || (() => {}); else if (unmount) unmount();
  } catch (error) {
    if (mine === visit && error.name !== "AbortError") place.append(shown(error));
  }
}

// Where somebody who comes without an address finds most.
async function first() {
  const found = await runs();
  return found.length ? "play" : "data";
}

function colours() {
  const select = document.getElementById("theme");
  const use = (value) => {
    if (value) document.documentElement.dataset.theme = value; else delete document.documentElement.dataset.theme;
  };
  try { select.value = localStorage.getItem("unrolled.theme") || ""; } catch { /* not kept */ }
  use(select.value);
  select.addEventListener("change", () => {
    use(select.value);
    try { localStorage.setItem("unrolled.theme", select.value); } catch { /* not kept */ }
  });
}

function door() {
  const form = document.getElementById("door");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    api.useToken(document.getElementById("token").value.trim());
    form.hidden = true;
    show();
  });
}

function links() {
  document.getElementById("rooms").append(...ROOMS.map((room) => make("li", {}, make(
    "a", {href: `#/${room}`, "data-room": room}, NAMES[room]))));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
  });
}

links();
colours();
door();
addEventListener("hashchange", async () => {
  await show();
  const head = root.querySelector("h1");
  if (head && !root.contains(document.activeElement)) head.focus();
});
show();
