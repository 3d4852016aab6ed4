"""Generation tick by tick at batch 1: `python -m benchmarks.streaming [PART ...] [--threads N] [--repeats 7]`.

A tick is one call with one token, without gradients, of a whole model: embedding, body, head; the state is handed on.
What is compared takes turns within one run, and the best time of several counts for each. Hugging Face and CTranslate2
run in the environment whose python is named by PEER_PYTHON. Every part writes its rows to
benchmarks/results/streaming.json and leaves those of other parts as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers import Peers, in_turns, seconds_of
from benchmarks.recurrent import cpu_name, interleaved
from unrolled.core import state as tree
from unrolled.core.batch import TARGET
from unrolled.core.causal import Causal
from unrolled.core.spec import Ports, Sizes
from unrolled.data.examples import Examples, Ragged
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import Step, best_of
from unrolled.engine.builder import CannotLower
from unrolled.engine.forms import FORMS
from unrolled.engine.rounding import round_weights
from unrolled.engine.stepper import Stepper, stepped, stepper
from unrolled.kernels import native
from unrolled.models import ngram
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
    state, x, step = model(tokens(position))[1], tokens(1), stepped(model)

    def tick() -> None:
        nonlocal state
        _, state = step(x, state)

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
GPT = {"width": 256, "layers": 4, "heads": 4}
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM 2x256": ("lstm", {"d_state": 256, "n_layers": 2}),
    "GRU 2x256": ("gru", {"d_state": 256, "n_layers": 2}),
    "GPT 4x256": ("transformer", {"d_model": 256, "d_ff": 1024, "n_layers": 4, "n_heads": 4, "window": 0}),
    "WaveNet 30x64": ("wavenet", {"n_dilations": 10, "n_stacks": 3}),
    "TCN 5x128": ("tcn", {}),
    "6-gram": ("ngram", {"order": 6}),
}
AGAINST = {  # how many times as fast as each peer, by level
    "LSTM 2x256": {"torch.nn": {"v3": 8.0, "v4": 13.0}},
    "GPT 4x256": {"hugging face": {"v3": 8.0, "v4": 8.0}, "ctranslate2": {"v3": 1.5, "v4": 1.8}},
    "WaveNet 30x64": {"torch": {"v3": 10.0, "v4": 20.0}},
    "TCN 5x128": {"torch": {"v3": 10.0, "v4": 20.0}},
    "6-gram": {"torch": {"v3": 50.0, "v4": 50.0}},
}
COUNTED = 300_000  # tokens of the text that an n-gram model counts


def written_by(name: str) -> Causal:
    kind, settings = WRITERS[name]
    if kind == "ngram":
        return counted(**settings)
    return model_of(kind, settings)


def counted(order: int) -> Causal:
    """An n-gram model of a text in which each token hangs on the two before it."""
    random, text = np.random.default_rng(0), [4, 5]
    for free in random.random(COUNTED) < 0.3:
        text.append(int(random.integers(4, VOCABULARY)) if free else 4 + (7 * text[-1] + 3 * text[-2]) % 60)
    model = ngram.make(ngram.Config(order=order), Sizes(VOCABULARY, VOCABULARY))
    model.solve(Examples({TARGET: Ragged(np.array(text), (np.array([0, len(text)]),))}, {}, True))
    return model.eval()


def write(step: Step) -> None:
    """Sample some tokens, as `generate` does."""
    best_of(1, step, None, tokens(1) % 60 + 4, None, make_chooser(Decoding()), (), WRITTEN)


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


def reading(step: Stepper) -> Callable[[], None]:
    """As many numbers as the weights of a program are, read once for each token."""
    weights = torch.ones(step.program.n_bytes // 4)

    def run() -> None:
        for _ in range(WRITTEN):
            weights.sum()

    return run


def in_fewer_bits(model: Causal) -> dict[str, Step]:
    """The same model with rounded weights, by their form; none where it has no matrix."""
    found: dict[str, Step] = {}
    for name, form in FORMS.items():
        other = deepcopy(model)
        with suppress(CannotLower):
            round_weights(other, form)
            found[name] = stepped(other)
    return found


def writing(repeats: int) -> list[Row]:
    """Whole generation with sampling: our layers through torch, natively, and by peers."""
    clock, rows = time.process_time if torch.get_num_threads() == 1 else time.perf_counter, []
    with Peers(torch.get_num_threads()) as peers:
        theirs = peers.run("gpt", tokens=VOCABULARY, new=WRITTEN, **GPT)
        for name in WRITERS:
            model = written_by(name)
            if (step := stepper(model)) is None:
                continue
            ways = {"torch": partial(write, model), "native": partial(write, step), "reading": reading(step)}
            ways |= {form: partial(write, fewer) for form, fewer in in_fewer_bits(model).items()}
            if name == "LSTM 2x256":
                ways["torch.nn"] = stepped_by_torch()
            timed = {way: seconds_of(run, clock) for way, run in ways.items()}
            seconds = in_turns(timed | (theirs if name == "GPT 4x256" else {}), repeats)
            rows.append(told(name, seconds, peers.versions))
            print(rows[-1], flush=True)
    return rows


def told(name: str, seconds: dict[str, float], versions: dict[str, str]) -> Row:
    """Tokens/s, ratios and goals; `reading` is the share of the speed at which the weights can be read at all."""
    level, native_s = native.loaded().level, seconds["native"]
    row: Row = {"model": name, "level": level, "load": round(os.getloadavg()[0], 1), "versions": versions}
    row["tokens_per_second"] = {way: round(WRITTEN / each) for way, each in seconds.items() if way != "reading"}
    row["ratios"] = {way: round(seconds[way] / native_s, 1) for way in row["tokens_per_second"] if way != "native"}
    row["reading"] = round(seconds["reading"] / native_s, 2)
    goals = {way: goal[level] for way, goal in AGAINST.get(name, {}).items() if way in seconds and level in goal}
    row["goals"] = {way: {"goal": goal, "met": row["ratios"][way] >= goal} for way, goal in goals.items()}
    return row


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
        text += writing_table(lines, measured_on(parts["writing"]))
    return text


def writing_table(lines: list[Row], where: str) -> str:
    text = (
        f"\nWriting {WRITTEN} tokens with sampling, one row, tokens/s, on {where}. `torch` is the same model without "
        "native code; reading is the share of the speed at which one core reads the weights in the same run; load is "
        "that of the machine meanwhile. `bf16` and `int8` are native with rounded weights, and how many times as fast "
        "that is.\n\n"
    )
    ways = ["torch", "torch.nn", "hugging face", "ctranslate2"]
    titles = ["model", "level", "load", "native", "reading", *FORMS, *ways]
    text += "| " + " | ".join(titles) + " |\n|" + "---|" * len(titles) + "\n"
    for row in lines:
        rates, ratios = row["tokens_per_second"], row["ratios"]
        cells = [row["model"], row["level"], str(row["load"]), f"{rates['native']:,}", f"{row['reading']:.0%}"]
        for form in FORMS:
            cells.append(f"{rates[form]:,} ({rates[form] / rates['native']:.2f}x)" if form in rates else "")
        for way in ways:
            goal = row["goals"].get(way)
            aim = "" if goal is None else f", goal {goal['goal']:g}{'' if goal['met'] else ' missed'}"
            cells.append(f"{rates[way]:,} ({ratios[way]:.1f}x{aim})" if way in rates else "")
        text += "| " + " | ".join(cells) + " |\n"
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
