"""What a server costs: `python -m benchmarks.serving [--threads N] [--repeats 7]`.

`unrolled serve` runs in a process of its own on this machine, and a client reads its streams of tokens. Beside each of
them the library writes the same text in this process (`run.stream`); the two take turns, and the best turn of each
counts. Weights are those after one step of training: the speed does not depend on their values.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import torch

import unrolled
from benchmarks.recurrent import cpu_name
from benchmarks.server_process import serving

RESULTS = Path(__file__).parent / "results" / "serving.json"
MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"n_layers": 2, "d_state": 256},
    "gru": {"n_layers": 2, "d_state": 256},
    "tcn": {},
    "transformer": {"n_layers": 4},
}
TEXT = "".join(chr(32 + (7 * i + i * i // 95) % 95) for i in range(8000))
PROMPT = 100  # tokens
TOKENS = 400
CLIENTS = (1, 4, 16)
FIRST, SHARE = 50.0, 0.8  # goals: milliseconds until the first token, and the part of the library's tokens/s

Row = dict[str, Any]


def saved(name: str, settings: dict[str, Any], folder: Path) -> Path:
    """A run of a model after one step of training."""
    (folder / "text.txt").write_text(TEXT)
    train = {"steps": 1, "threads": 1, "tokens": "char"}
    unrolled.train(folder / "text.txt", model=name, out=folder / "runs" / name, settings={**train, **settings})
    return folder / "runs" / name


def streamed(client: httpx.Client, model: str, seed: int) -> tuple[float, float, int]:
    """Milliseconds until the first text, seconds until the end, and the number of events."""
    body = {"model": model, "prompt": TEXT[:PROMPT], "max_tokens": TOKENS, "seed": seed, "stream": True}
    began, first, events = time.perf_counter(), 0.0, 0
    with client.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            first = first or time.perf_counter()
            events += line.startswith("data: {")
    return 1000 * (first - began), time.perf_counter() - began, events


def one_client(address: str, name: str, run: unrolled.Run, repeats: int) -> Row:
    own, theirs, firsts, events = [], [], [], 0
    with httpx.Client(base_url=address, timeout=120) as client:
        streamed(client, name, 0)  # loads
        for seed in range(repeats):
            began = time.perf_counter()
            for _ in run.stream(TEXT[:PROMPT], max_tokens=TOKENS, seed=seed):
                pass
            own.append(time.perf_counter() - began)
            first, seconds, events = streamed(client, name, seed)
            firsts.append(first)
            theirs.append(seconds)
    library, server = TOKENS / min(own), TOKENS / min(theirs)
    return {
        "model": name, "settings": MODELS[name], "parameters": sum(p.numel() for p in run.model.parameters()),
        "library": round(library), "server": round(server), "share": round(server / library, 3),
        "first_ms": round(median(firsts), 1), "events": events,
    }  # fmt: skip


def many_clients(address: str, name: str, repeats: int) -> list[int]:
    """Tokens/s of all clients together, for several numbers of them."""
    rates = []
    for n in CLIENTS:
        with httpx.Client(base_url=address, timeout=120) as client, ThreadPoolExecutor(n) as pool:
            best = 0.0
            for turn in range(max(2, repeats // 2)):
                began = time.perf_counter()
                list(pool.map(lambda k: streamed(client, name, k), range(turn * n, turn * n + n)))
                best = max(best, n * TOKENS / (time.perf_counter() - began))
        rates.append(round(best))
    return rates


def report(found: dict[str, Any]) -> str:
    """The figures as text for the page of results."""
    clients = found["clients"]
    titles = ["model", "parameters", "library, tokens/s", "server, tokens/s", "share", "first token, ms"]
    titles += [f"{n} clients, tokens/s" for n in clients[1:]]
    text = (
        f"\n## Serving\n\n{found['cpu']}, torch {found['torch']}, {found['threads']} thread(s); a prompt of {PROMPT} "
        f"tokens and {TOKENS} tokens streamed by `unrolled serve` to one client, beside `run.stream` in Python. "
        f"Goals: the first token within {FIRST:.0f} ms, and {100 * SHARE:.0f} % of the library's tokens/s.\n"
    )
    text += "\n| " + " | ".join(titles) + " |\n|" + "---|" * len(titles) + "\n"
    for row in found["rows"]:
        cells = [row["model"], f"{row['parameters']:,}", f"{row['library']:,}", f"{row['server']:,}"]
        cells += [f"{100 * row['share']:.0f} %", f"{row['first_ms']:.0f}", *(f"{r:,}" for r in row["clients"][1:])]
        text += "| " + " | ".join(cells) + " |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--threads", type=int, default=1, help="processor threads")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each; the best counts")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        runs = {name: unrolled.load(saved(name, MODELS[name], Path(place))) for name in options.models or MODELS}
        with serving(Path(place) / "runs", threads=options.threads) as server:
            for name, run in runs.items():
                row = one_client(server.address, name, run, options.repeats)
                row["clients"] = many_clients(server.address, name, options.repeats)
                met = row["first_ms"] <= FIRST and row["share"] >= SHARE
                print(json.dumps(row), "goals met" if met else "goals MISSED", flush=True)
                rows.append(row)
    found = {"torch": torch.__version__, "python": platform.python_version(), "cpu": cpu_name(),
             "threads": options.threads, "clients": list(CLIENTS), "rows": rows}  # fmt: skip
    if set(options.models) in (set(), set(MODELS)):
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
