"""Generation tick by tick at batch 1: `python -m benchmarks.streaming [PART ...] [--threads N] [--repeats 7]`.

A tick is one call with one token, without gradients, of a whole model: embedding, body, head; the state is handed on.
What is compared takes turns within one run, and the best time of several counts for each. Every part writes its rows
to benchmarks/results/streaming.json and leaves those of other parts as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.recurrent import cpu_name, interleaved
from unrolled.core import state as tree
from unrolled.core.causal import Causal
from unrolled.core.spec import Ports
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import Step, best_of
from unrolled.engine.stepper import stepper
from unrolled.kernels import native
from unrolled.runs.build import build
from unrolled.runs.config import RunConfig

RESULTS = Path(__file__).parent / "results" / "streaming.json"
VOCABULARY = 256
POSITIONS = (10, 1000, 10_000)
TICKS = 50  # per turn: turns are short, so that the best of them meets a quiet moment
WAVENET = {"n_dilations": 10}  # a stack up to dilation 512: receptive field 1024, and one more by the entry
MODELS: dict[str, dict[str, Any]] = {"lstm": {"n_layers": 2}, "tcn": {}, "wavenet": WAVENET}
SAME = 1.25  # the largest quotient of ticks/s at two positions that counts as independent of the position
CACHED = 50.0  # times naive recomputation

Row = dict[str, Any]


def model_of(name: str, settings: dict[str, Any]) -> Causal:
    model = build(RunConfig(model=name, model_settings=settings), Ports(VOCABULARY, VOCABULARY), ("causal",))
    assert isinstance(model, Causal)
    return model.eval()


def tokens(n: int) -> Tensor:
    return torch.randint(VOCABULARY, (1, n), generator=torch.Generator().manual_seed(n))  # [1, n]


def ticking(model: Causal, position: int) -> Callable[[], None]:
    """One tick after another, from a state that has `position` tokens behind it."""
    state, x = model(tokens(position))[1], tokens(1)

    def tick() -> None:
        nonlocal state
        _, state = model(x, state)

    return tick


def positions(repeats: int) -> list[Row]:
    """Ticks/s of models with a state of fixed size, near the beginning and far behind it."""
    rows = []
    for name, settings in MODELS.items():
        model = model_of(name, settings)
        seconds = interleaved([ticking(model, p) for p in POSITIONS], 20 * repeats, inner=TICKS)
        rates = [round(1 / s) for s in seconds]
        spread = max(seconds) / min(seconds)
        listed = ", ".join(f"{p:,}: {r:,}" for p, r in zip(POSITIONS, rates))
        verdict = "independent of" if spread <= SAME else "DEPENDS on"
        print(f"{name:12} ticks/s at {listed}  spread {spread:.2f}, {verdict} the position", flush=True)
        rows.append({"model": name, "settings": settings, "receptive_field": model.receptive_field,
                     "state_bytes": tree.nbytes(model(tokens(1))[1]), "positions": list(POSITIONS),
                     "ticks_per_second": rates, "spread": round(spread, 3), "goal": SAME})  # fmt: skip
    return rows


def wavenet(repeats: int) -> list[Row]:
    """WaveNet from its state against the same weights run over the whole receptive field for every token."""
    model = model_of("wavenet", WAVENET)
    field = model.receptive_field
    assert field is not None
    window = tokens(field)
    tick = ticking(model, field)
    with torch.no_grad():
        _, state = model(window[:, :-1])
        torch.testing.assert_close(model(window[:, -1:], state)[0][:, 0], model(window)[0][:, -1], rtol=1e-3, atol=1e-4)

    def many() -> None:
        for _ in range(TICKS):
            tick()

    naive, cached = interleaved([lambda: model(window), many], 10 * repeats)
    cached /= TICKS
    ratio = naive / cached
    print(f"wavenet      receptive field {field}: naive {1 / naive:,.1f}/s, from its state {1 / cached:,.0f}/s, "
          f"{ratio:.0f}x  goal {CACHED:.0f} {'met' if ratio >= CACHED else 'MISSED'}", flush=True)  # fmt: skip
    return [{"model": "wavenet", "settings": WAVENET, "receptive_field": field, "naive_ms": round(1e3 * naive, 3),
             "tick_ms": round(1e3 * cached, 4), "ratio": round(ratio, 1), "goal": CACHED}]  # fmt: skip


WRITTEN = 200  # tokens of a turn
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM 2x256": ("lstm", {"d_state": 256, "n_layers": 2}),
    "GRU 2x256": ("gru", {"d_state": 256, "n_layers": 2}),
    "GPT 4x256": ("transformer", {"d_model": 256, "d_ff": 1024, "n_layers": 4, "window": 0}),
    "WaveNet 30x64": ("wavenet", {"n_dilations": 10, "n_stacks": 3}),
    "TCN 5x128": ("tcn", {}),
}


def write(step: Step) -> None:
    """Sample some tokens, as `generate` does."""
    best_of(1, step, None, tokens(1), None, make_chooser(Decoding()), (), WRITTEN)


def stepped_by_torch() -> Callable[[], None]:
    """torch.nn.LSTM in a loop, and a sample from its outputs at each step."""
    table, net, head = nn.Embedding(VOCABULARY, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, VOCABULARY)

    @torch.no_grad()
    def run() -> None:
        x, state = tokens(1), None
        for _ in range(WRITTEN):
            y, state = net(table(x), state)
            x = torch.multinomial(head(y[:, -1]).softmax(-1), 1)

    return run


def writing(repeats: int) -> list[Row]:
    """Whole generation with sampling: our layers through torch, natively and, of the LSTM, a plain loop of torch.nn."""
    rows = []
    for name, (kind, settings) in WRITERS.items():
        model = model_of(kind, settings)
        step = stepper(model)
        if step is None:
            continue
        ways = {"torch": partial(write, model), "native": partial(write, step)}
        if kind == "lstm":
            ways["torch.nn"] = stepped_by_torch()
        seconds = dict(zip(ways, interleaved(list(ways.values()), repeats), strict=True))
        row = {"model": name, "level": native.loaded().level, "load": round(os.getloadavg()[0], 1)}
        row |= {way: round(WRITTEN / each) for way, each in seconds.items()}  # tokens/s
        row["ratio"] = round(seconds["torch"] / seconds["native"], 1)
        if "torch.nn" in ways:
            row["ratio_torch_nn"] = round(seconds["torch.nn"] / seconds["native"], 1)
        rows.append(row)
        print(row, flush=True)
    return rows


PARTS: dict[str, Callable[[int], list[Row]]] = {"positions": positions, "wavenet": wavenet, "writing": writing}


def measured_on(part: dict[str, Any]) -> str:
    return f"{part['cpu']}, torch {part['torch']}"


def report(found: dict[str, Any]) -> str:
    """The figures as text for the page of results."""
    text, parts = "\n## Generation at batch 1\n", found["parts"]
    if "positions" in parts:
        text += f"\n{measured_on(parts['positions'])}; whole models, one token per call.\n"
        at = parts["positions"]["rows"][0]["positions"]
        titles = ["model", "receptive field", "state, bytes", *(f"ticks/s at {p:,}" for p in at), "spread"]
        text += "\n| " + " | ".join(titles) + " |\n|" + "---|" * len(titles) + "\n"
        for row in parts["positions"]["rows"]:
            field = row["receptive_field"] or "all"
            cells = [row["model"], str(field), f"{row['state_bytes']:,}", *(f"{r:,}" for r in row["ticks_per_second"])]
            text += "| " + " | ".join([*cells, f"{row['spread']:.2f}"]) + " |\n"
    for row in parts.get("wavenet", {"rows": []})["rows"]:
        text += (
            f"\nWaveNet with receptive field {row['receptive_field']}: {row['naive_ms']:.1f} ms per token by running "
            f"over the whole field, {row['tick_ms']:.3f} ms from its state: {row['ratio']:.0f}x, "
            f"goal {row['goal']:.0f}x.\n"
        )
    if lines := parts.get("writing", {"rows": []})["rows"]:
        text += f"\nWriting {WRITTEN} tokens with sampling, one row, tokens/s, on {measured_on(parts['writing'])}. "
        text += "`torch` is the same model without native code; load is that of the machine meanwhile.\n\n"
        text += "| model | level | load | torch.nn loop | torch | native | native / torch |\n|" + "---|" * 7 + "\n"
        for row in lines:
            theirs = f"{row['torch.nn']:,}" if "torch.nn" in row else ""
            cells = [row["model"], row["level"], str(row["load"]), theirs, f"{row['torch']:,}", f"{row['native']:,}"]
            text += "| " + " | ".join([*cells, f"{row['ratio']:.1f}"]) + " |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="processor threads")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each; the best counts")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"--- {options.threads} thread(s), {cpu_name()}, torch {torch.__version__}")
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"parts": {}}
    where = {"threads": options.threads, "cpu": cpu_name(), "torch": torch.__version__}
    with torch.no_grad():
        fresh = {name: {**where, "rows": PARTS[name](options.repeats)} for name in options.parts or PARTS}
    before = {
        name: {"cpu": known.get("cpu"), "torch": known.get("torch"), **part} for name, part in known["parts"].items()
    }
    found = {"python": platform.python_version(), "parts": before | fresh}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
