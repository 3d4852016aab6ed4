"""Beam search of an encoder-decoder: `python -m benchmarks.beam [--threads 1] [--repeats 7] [--batch 1 16]`.

`encdec-transformer` with 3 + 3 blocks of width 256 against Hugging Face's `generate(num_beams=5)` on a MarianMT of the
same size; random weights, sources of 18 tokens, 50 new tokens in every row (the stop token is forbidden to both), the
encoder included. Tokens/s are the new tokens of the best sequence of each row. Ours and theirs take turns within one
run, and the best of several counts for both; with one thread the clock is that of the process, so that neighbours on
the machine count less. `transformers` is needed for the comparison only, in the environment whose python is named by
PEER_PYTHON. Results: benchmarks/results/beam.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers import EMPTY, START, STOP, Peers, in_turns, seconds_of
from benchmarks.recurrent import cpu_name
from unrolled.core.causal import Conditional, begin
from unrolled.core.spec import Ports, SourcePorts
from unrolled.decode.beam import beam_search
from unrolled.engine.stepper import stepped
from unrolled.kernels import native
from unrolled.runs.build import build
from unrolled.runs.config import Ends, RunConfig

RESULTS = Path(__file__).parent / "results" / "beam.json"
VOCABULARY, D_MODEL, N_LAYERS, N_HEADS, D_FF = 8192, 256, 3, 8, 1024
SOURCE, NEW, WIDTH = 18, 50, 5
UNKNOWN = 1
GOALS = {1: 3.5, 16: 1.8}  # Hugging Face's time over ours, by rows of a batch


def ours() -> Conditional:
    settings = {"d_model": D_MODEL, "n_layers": N_LAYERS, "n_heads": N_HEADS, "d_ff": D_FF, "activation": "relu"}
    ends = Ends(d_embedding=D_MODEL, tied=True)
    ports = Ports(VOCABULARY, VOCABULARY, source=SourcePorts(VOCABULARY))
    config = RunConfig(model="encdec-transformer", model_settings=settings, ends=ends)
    model = build(config, ports, ("conditional",))
    assert isinstance(model, Conditional)
    return model.eval()


def our_search(model: Conditional, source: Tensor) -> Callable[[], int]:
    """One search; returns how many tokens the best sequences have."""
    mask, first = torch.ones_like(source, dtype=torch.bool), torch.full((len(source),), START)

    def search() -> int:
        with torch.no_grad():
            decoder, state = begin(model, source, mask)
        never = [EMPTY, UNKNOWN, START, STOP]
        found = beam_search(stepped(decoder), state, first, STOP, WIDTH, NEW, forbidden=never)
        return sum(len(candidates[0].tokens) for candidates in found)

    return search


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def compare(B: int, repeats: int, peers: Peers) -> dict[str, Any]:
    """Tokens/s of both at B rows."""
    torch.manual_seed(0)
    source = torch.randint(STOP + 1, VOCABULARY, (B, SOURCE))  # [B, S]
    model = ours()
    search = our_search(model, source)
    assert search() == B * NEW, f"ours did not write {NEW} tokens in each of {B} rows"
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    theirs = peers.run("beam", tokens=VOCABULARY, width=D_MODEL, layers=N_LAYERS, heads=N_HEADS, d_ff=D_FF, new=NEW,
                       beams=WIDTH, rows=B, source=SOURCE)  # fmt: skip
    seconds = in_turns({"ours": seconds_of(search, clock), **theirs}, repeats)
    rates = {name: round(B * NEW / s, 1) for name, s in seconds.items()}
    row: dict[str, Any] = {
        "batch": B,
        **rates,
        "parameters": count(model),
        "goal": GOALS[B],
        "level": native.loaded().level,
    }
    text = f"batch {B:2}: ours {rates['ours']:,.0f} tokens/s"
    if theirs:
        row["ratio"] = round(rates["ours"] / rates["hugging face"], 3)
        met = "met" if row["ratio"] >= GOALS[B] else "MISSED"
        text += f", Hugging Face {rates['hugging face']:,.0f}: {row['ratio']:.2f}x  goal {GOALS[B]} {met}"
    print(text, flush=True)
    return row


def report(found: dict[str, Any]) -> str:
    """The figures as text for the page of results."""
    text = (
        f"\n## Beam search against Hugging Face\n\n{found['cpu']}, torch {found['torch']}, transformers "
        f"{found['transformers']}, threads: {found['threads']}, clock {found['clock']}. "
        f"{N_LAYERS} + {N_LAYERS} blocks of width {D_MODEL}, "
        f"{VOCABULARY:,} tokens, width {WIDTH}, sources of {SOURCE} tokens, {NEW} new ones; tokens/s, the encoder "
        "included.\n\n"
    )
    text += "| rows | `generate(num_beams=5)` | ours | ratio | goal |\n|---|---|---|---|---|\n"
    for row in found["rows"]:
        missed = " missed" if row["ratio"] < row["goal"] else ""
        text += f"| {row['batch']} | {row['hugging face']:,.0f} | {row['ours']:,.0f} | {row['ratio']:.2f}{missed} | "
        text += f"{row['goal']:.1f} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--batch", type=int, nargs="+", choices=list(GOALS), default=list(GOALS))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with Peers(given.threads) as peers:
        rows = [compare(B, given.repeats, peers) for B in given.batch]
    if not all("ratio" in row for row in rows) or given.batch != list(GOALS):
        return  # nothing to keep
    found = {
        "cpu": cpu_name(), "torch": torch.__version__, "transformers": peers.versions["transformers"],
        "python": platform.python_version(), "threads": given.threads, "repeats": given.repeats, "rows": rows,
        "clock": "of the process" if given.threads == 1 else "on the wall",
    }  # fmt: skip
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(f"wrote {RESULTS.relative_to(RESULTS.parents[2])}")


if __name__ == "__main__":
    main()
