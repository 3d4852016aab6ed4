"""Handwriting: `python -m benchmarks.pen [PIECE ...] [--time 60m]`, each piece on its own.

omniglot (below UNROLLED_DATA): nats per point of four models, each trained for as many steps of as many drawings, with
about as many parameters and the library's own settings, beside the two mixtures. writing: `soft-window` learns to write
the words of builtin:hershey for `--time`; held-out words, each drawn once with a bias of 1, are read by the nearest
templates of letters (benchmarks/pen_reader.py), and their alignments are inspected. Nothing is selected on test data.
Results go to benchmarks/results/pen-PIECE.json, sheets of drawings to docs/images/.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.page import DOCS
from benchmarks.pen_reader import read_word, templates
from benchmarks.pieces import Pieces, place, run_pieces, trained

BUDGET: dict[str, Any] = {"steps": 1000, "batch_size": 32, "evaluate_every": 250, "lr": 2e-3, "threads": 1}
MODELS: dict[str, dict[str, Any]] = {  # of about 110,000 parameters
    "lstm": {"d_state": 128},
    "gru": {"d_state": 150},
    "tcn": {"widths": [58, 58, 58, 58, 58]},
    "transformer": {"d_model": 64, "n_layers": 2, "d_ff": 256},
}
SHEET = 24  # drawings
WORDS = 100  # held-out words that are written
BIAS = 1.0


def omniglot(time: str = "") -> dict[str, Any]:
    """The splits that the file gives."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for model, own in MODELS.items():
            baselines = runs[0]["baselines"] if runs else None
            settings = {**BUDGET, "d_embedding": 64, **own}
            source = place("omniglot-strokes/omniglot_stroke3.npz")
            run, kept = trained(source, "handwriting", model, time, settings, Path(folder), baselines)
            runs.append(kept)
            best = min(runs, key=lambda each: each["figures"]["valid"]["nats"])
            if kept is best:  # by validation data
                _sheet(run, "pen-omniglot", run.generate(n=SHEET, seed=1))
    return {"protocol": "Omniglot strokes, given splits", "runs": runs, "sheet": best["model"]}


def writing(time: str = "60m") -> dict[str, Any]:
    """Words that training did not have."""
    data = "builtin:hershey,examples=8000,letters=4"
    settings = {"d_state": 128, "d_embedding": 32, "n_windows": 6, "batch_size": 32, "lr": 2e-3,
                "evaluate_every": 100, "threads": 1}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        run, kept = trained(data, "handwriting", "soft-window", time, settings, Path(folder))
        run.task.prepare(data)
        test = run.task.sections["test"].first(WORDS)
        words = [run.task.texts.decode(ids) for ids in test.fields["source"]]
        made = [run.generate(text=word, bias=BIAS, seed=i)[0] for i, word in enumerate(words)]
        _sheet(run, "pen-words", made[:12])
        real = [line["strokes"] for line in run.directory.read_lines("predictions.jsonl")[:WORDS]]
        asked = [line["text"] for line in run.directory.read_lines("predictions.jsonl")[:WORDS]]
        return {
            "protocol": f"{data}, held-out words", **kept, "words": len(words), "bias": BIAS,
            "read": _read([each["strokes"] for each in made], words), "read_data": _read(real, asked),
            "monotone": float(np.mean([_monotone(run, each) for each in made])),
            "finished": float(np.mean([each["finished"] for each in made])),
        }  # fmt: skip


def _read(drawings: list[Any], words: list[str]) -> float:
    """The share of characters that are read: 1 - edits / characters."""
    from unrolled.objectives.edits import edit_distance

    known = templates("plain")
    found = [read_word([np.array(stroke, np.float64) for stroke in strokes], known) for strokes in drawings]
    edits = [edit_distance(list(a), list(b)) for a, b in zip(found, words, strict=True)]
    return 1 - sum(edits) / sum(map(len, words))


def _monotone(run: Any, made: dict[str, Any]) -> bool:
    """Whether the character with the largest weight never goes back, from the first to the last one of the word."""
    from unrolled.core.trace import trace

    batch, _ = run.task.example({"strokes": made["strokes"], "text": made["text"]})
    with trace() as seen, torch.no_grad():
        run.model.decoder(batch.x, run.model.condition(batch.source, batch.source_mask))
    at = seen["attention"][0][0, 0].argmax(-1)  # [T]
    return bool((at.diff() >= 0).all() and at[0] == 0 and at[-1] == len(made["text"]) - 1)


def _sheet(run: Any, name: str, made: list[dict[str, Any]]) -> None:
    """Drawings as a picture of the docs."""
    for path, content in run.task.files_of(made, DOCS / "images" / f"{name}.svg").items():
        path.write_bytes(content)


PIECES: Pieces = {"omniglot": omniglot, "writing": writing}


if __name__ == "__main__":
    run_pieces(PIECES, "pen", __doc__)
