"""Published protocols on real data: `python -m benchmarks.reproduce [PIECE ...]`, each piece on its own.

Data is found through UNROLLED_DATA. Every piece trains through the public interface and writes its figures and its
learning curve to benchmarks/results/PIECE.json; `python -m benchmarks.tables` makes the page in docs/ from these.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"


class DataSet(NamedTuple):
    """A public file: where it stands below UNROLLED_DATA, what it is, where it comes from."""

    path: str
    sha256: str
    origin: str


SHAKESPEARE = DataSet(
    "tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    "data/tinyshakespeare/input.txt of the GitHub repository karpathy/char-rnn",
)


def find(data: DataSet) -> Path:
    """The file, checked; or a sentence that says where to get it."""
    folder = os.environ.get("UNROLLED_DATA")
    path = Path(folder or ".") / data.path
    if folder is None or not path.is_file():
        sys.exit(
            f"{data.path} is missing: get it from {data.origin} (sha256 {data.sha256}), put it into a folder at that "
            "path and set UNROLLED_DATA to the folder"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != data.sha256:
        sys.exit(f"{path}: its sha256 is {found}, not {data.sha256}: not the published file")
    return path


def shakespeare(model: str, budget: str = "5m") -> dict[str, Any]:
    """Characters of tinyshakespeare, first 90 % to train, last 10 % to validate, one time budget."""
    import unrolled
    from unrolled.training.progress import Lines

    settings = {"time": budget, "split": "90/10", "tokens": "char"}
    with tempfile.TemporaryDirectory() as folder:
        run = unrolled.train(
            find(SHAKESPEARE), model=model, out=Path(folder) / "run", settings=settings, progress=Lines()
        )
        curve = [
            {"step": line["step"], "seconds": line["seconds"], "nats": line["nats"]}
            for line in run.directory.read_metrics()
            if "nats" in line
        ]
        result = run.result
        return {
            "protocol": f"tinyshakespeare, 90/10, {budget} on {run.config.threads} threads",
            "model": model,
            "settings": run.config.model_settings,
            "optimiser": run.config.optimiser.model_dump(),
            "batching": run.config.batching.model_dump(),
            "versions": run.config.versions,
            "figures": {key: value for key, value in result.items() if key != "baselines"},
            "baselines": result["baselines"],
            "curve": curve,
            "sample": run.generate("ROMEO:", max_tokens=300)[0]["text"],
        }


MODELS = ("lstm", "gru", "elman", "tcn", "transformer")
PIECES: dict[str, Callable[[], dict[str, Any]]] = {
    f"shakespeare-{model}": (lambda model=model: shakespeare(model)) for model in MODELS
}


def main() -> None:
    asked = sys.argv[1:] or list(PIECES)
    unknown = [piece for piece in asked if piece not in PIECES]
    if unknown:
        sys.exit(f"there is no piece {', '.join(unknown)}; there are {', '.join(PIECES)}")
    RESULTS.mkdir(exist_ok=True)
    for piece in asked:
        print(f"== {piece}", flush=True)
        result = PIECES[piece]()
        (RESULTS / f"{piece}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        print(f"== {piece}: {result['figures']['valid']}", flush=True)


if __name__ == "__main__":
    main()
