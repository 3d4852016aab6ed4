"""What the pieces of `benchmarks.answers` and `benchmarks.writing` share: data, runs, and a command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"

Pieces = dict[str, Callable[..., dict[str, Any]]]


def place(name: str) -> Path:
    """Data below UNROLLED_DATA, or a sentence that says what is missing."""
    path = Path(os.environ.get("UNROLLED_DATA", ".")) / name
    if "UNROLLED_DATA" not in os.environ or not path.exists():
        sys.exit(f"{name} is missing: set UNROLLED_DATA to a folder that has it")
    return path


def trained(
    data: Any,
    task: str,
    model: str,
    time: str,
    settings: Mapping[str, Any],
    folder: Path,
    baselines: Mapping[str, Any] | None = None,
) -> tuple[Any, dict]:
    """A run in a folder of its own, and what is kept of it; baselines that are known already are not solved again."""
    import unrolled
    from unrolled.training.progress import Lines

    out = Path(tempfile.mkdtemp(dir=folder)) / "run"
    budget = {} if "steps" in settings else {"time": time}
    run = unrolled.train(
        data, task=task, model=model, out=out, settings={**budget, **settings}, progress=Lines(), baselines=baselines
    )
    score = run.task.criterion
    curve = [
        {"step": line["step"], "seconds": line["seconds"], score: line[score]}
        for line in run.directory.read_metrics()
        if score in line
    ]
    kept = {
        "model": model, "settings": dict(settings), "time": time, "threads": run.config.threads,
        "versions": run.config.versions, "figures": {k: v for k, v in run.result.items() if k != "baselines"},
        "baselines": run.result["baselines"], "curve": curve,
    }  # fmt: skip
    return run, kept


def in_two(arrays: Mapping[str, Sequence[Any]], is_test: np.ndarray) -> dict[str, Any]:
    """Arrays of the training and the test part: x_train, x_test, .."""
    return {
        f"{name}_{part}": [each[i] for i in np.flatnonzero(chosen).tolist()]
        for name, each in arrays.items()
        for part, chosen in (("train", ~is_test), ("test", is_test))
    }


def plain(
    data: Any, task: str, models: Iterable[tuple[str, Mapping[str, Any]]], time: str, protocol: str
) -> dict[str, Any]:
    """The same data and time for some models, each with its settings."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [trained(data, task, model, time, own, Path(folder))[1] for model, own in models]
    return {"protocol": protocol, "runs": runs}


def run_pieces(pieces: Pieces, prefix: str, about: str | None) -> None:
    """The command line: run the pieces that are named, and keep each result as a file."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", help=f"any of {', '.join(pieces)}; all without a name")
    parser.add_argument("--time", help="training time of each run, such as 5m, instead of the piece's own")
    asked = parser.parse_args()
    unknown = [piece for piece in asked.pieces if piece not in pieces]
    if unknown:
        sys.exit(f"there is no piece {', '.join(unknown)}; there are {', '.join(pieces)}")
    RESULTS.mkdir(exist_ok=True)
    for piece in asked.pieces or pieces:
        print(f"== {piece}", flush=True)
        result = pieces[piece](**({"time": asked.time} if asked.time else {}))
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (RESULTS / f"{prefix}-{piece}.json").write_text(text, encoding="utf-8")
