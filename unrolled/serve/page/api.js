// Requests to this server, with its token; what goes wrong is an ApiError, whose message is shown as text.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

const KEY = "unrolled.token";
let token = kept();

function kept() {
  try { return sessionStorage.getItem(KEY) || ""; } catch { return ""; }
}

export function useToken(value) {
  token = value;
  try { sessionStorage.setItem(KEY, value); } catch { /* it is kept for this page alone */ }
}

// What every request carries.
export function headers(hasBody = false) {
  return {...(token ? {Authorization: `Bearer ${token}`} : {}), ...(hasBody ? {"Content-Type": "application/json"} : {})};
}

async function asked(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, {...options, headers: {...headers(), ...options.headers}});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached. Is it still running?");
  }
  if (!answer.ok) throw new ApiError(answer.status, await reason(answer));
  return answer;
}

async function reason(answer) {
  const text = await answer.text();
  try { return JSON.parse(text).error.message; } catch { return `The server answered ${answer.status}.`; }
}

const json = (body) => ({method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});

// The value of an address.
export async function get(path, signal) {
  return (await asked(path, {signal})).json();
}

export async function post(path, body = {}, signal) {
  return (await asked(path, {...json(body), signal})).json();
}

export async function remove(path) {
  return (await asked(path, {method: "DELETE"})).json();
}

// The bytes of a file; its name goes along.
export async function upload(path, file, signal) {
  return (await asked(`${path}?name=${encodeURIComponent(file.name)}`, {
    method: "POST", headers: {"Content-Type": "application/octet-stream"}, body: file, signal,
  })).json();
}

// Server-sent events, each given to onEvent as a value; body null: a GET. Ends with the stream, or by the signal.
export async function stream(path, body, onEvent, signal) {
  const answer = await asked(path, {...(body === null ? {} : json(body)), signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const blocks = (held + value).split("\n\n");
    held = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (!data || data === "[DONE]") continue;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(answer.status, event.error.message);
      onEvent(event);
    }
  }
}

// A file that the server makes, kept by the browser under the name that the server gives it, which is returned.
export async function download(path, body = null) {
  const answer = await asked(path, body === null ? {} : json(body));
  const [, name] = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition") || "") || [null, "download"];
  save(await answer.blob(), name);
  return name;
}

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
