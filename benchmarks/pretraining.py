"""Pre-training: `python -m benchmarks.pretraining [PIECE ...] [--time 30m]`, each piece on its own.

    enwiki     a BERT of 2 million parameters on Wikipedia text: masked accuracy over time, beside counts
    mr         sentiment with 1, 10 and 100 % of the labels: from scratch, frozen, fine-tuned; three seeds
    names18    the language of a name, alike

Data is found through UNROLLED_DATA. Models are pre-trained on the texts of the training part without their labels, for
`mr` with the Wikipedia text as well, never on texts of the test part. Results are kept in benchmarks/results.
"""

from __future__ import annotations

import bz2
import html
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pieces import Pieces, place, run_pieces, trained

BERT: dict[str, Any] = {
    "tokens": "bpe", "vocabulary": 3000, "row_length": 128, "d_model": 192, "d_embedding": 192, "n_layers": 3,
    "n_heads": 6, "d_ff": 768, "n_positions": 128, "norm": "pre", "model.dropout": 0.0, "ends.dropout": 0.0,
    "lr": 2e-3, "batch_size": 16, "evaluate_every": 200, "plain": True, "split": "90/5/5",
}  # fmt: skip
SMALL: dict[str, Any] = BERT | {
    "d_model": 128, "d_embedding": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512, "row_length": 64, "vocabulary": 4000,
}  # fmt: skip
TUNED: dict[str, Any] = {
    "fractions": "0.01,0.1,1", "seeds": 3, "folds": None, "models": "dan", "steps": 1000, "batch_size": 16,
    "warmup": 50, "evaluate_every": 100, "ends.dropout": 0.1, "readout": "mean",
}  # fmt: skip
RATES = (5e-4, 2e-3, 8e-3)  # of each start and share the one with the best mean accuracy on validation data


def pages() -> list[str]:
    """The text of each page of the slice, without markup and without blank lines."""
    source = bz2.decompress(place("enwiki-slice/enwiki_6MB.xml.bz2").read_bytes()).decode("utf-8")
    found = re.findall(r"<text[^>]*>(.*?)</text>", source, re.DOTALL)
    return [text for page in found if len(text := plain(html.unescape(page))) > 500]


def plain(text: str) -> str:
    """Wiki markup as the text that people read."""
    for _ in range(4):  # from the inside out
        text = re.sub(r"\{\{[^{}]*\}\}|\{\|[^{}]*?\|\}", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|<ref[^>]*/>|<ref.*?</ref>|<math.*?</math>|<[^>]+>", "", text, flags=re.DOTALL)
    text = re.sub(r"\[\[(?:File|Image|Category|[a-z-]{2,12}):[^\[\]]*(?:\[\[[^\[\]]*\]\][^\[\]]*)*\]\]", "", text)
    text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)
    text = re.sub(r"\[https?:\S+ ?([^\]]*)\]|'{2,}", r"\1", text)
    lines = (re.sub(r"^[*#:;|!=\s]+|[=\s]+$", "", line) for line in text.splitlines())
    return "\n".join(line for line in lines if len(line) > 40)


def written(texts: list[str], folder: Path) -> Path:
    """Documents in a file, blank lines between them."""
    (folder / "text.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return folder / "text.txt"


def enwiki(time: str = "60m") -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source = written(pages(), Path(folder))
        run, kept = trained(source, "masked-token", "bert", time, BERT, Path(folder))
        figures = ("masked_accuracy", "nats", "next_sentence_accuracy")
        kept["curve"] = [
            {name: line[name] for name in ("step", "seconds", *figures) if name in line}
            for line in run.directory.read_metrics()
            if "nats" in line
        ]
    return {"protocol": "enwiki-slice without markup, 90/5/5 by page, masked 15 %", "runs": [kept]}


def efficiency(rows: list[dict[str, str]], texts: list[str], pre: dict[str, Any], time: str, protocol: str) -> Any:
    """Accuracies on test data by share of the labels, each of three seeds."""
    import unrolled

    chosen = np.random.default_rng(0).permutation(len(rows)) % 10 == 0
    parts = {"train": [r for r, c in zip(rows, chosen) if not c], "test": [r for r, c in zip(rows, chosen) if c]}
    with tempfile.TemporaryDirectory() as folder:
        source = written([row["text"] for row in parts["train"]] + texts, Path(folder))
        run, kept = trained(source, "masked-token", "bert", time, pre, Path(folder))
        own = TUNED | {"from_run": str(run.path)}
        table: list[dict[str, Any]] = []
        tried: dict[float, dict[str, Any]] = {}
        for rate in RATES:
            out = Path(folder) / f"rate-{rate:g}"
            found = unrolled.compare(parts, "classify", out, own | {"lr": rate})
            table = table or [
                {"label": row["label"], "test": row["figures"], "score": row["score"]}
                for row in found.rows if row["kind"] == "baseline"
            ]  # fmt: skip
            tried[rate] = {
                job.name: dict(unrolled.load(job).result) for job in sorted(out.iterdir())
                if (job / "result.json").exists() and not job.name.startswith("baseline")
            }  # fmt: skip
    rates = best_rates(
        {rate: {name: run["valid"]["accuracy"] for name, run in runs.items()} for rate, runs in tried.items()}
    )
    seeds = {
        name: run["test"] for rate, runs in tried.items() for name, run in runs.items() if rates[kind(name)] == rate
    }
    return {"protocol": protocol, "pre_training": kept, "settings": TUNED, "rows": table, "runs": seeds,
            "rates": rates}  # fmt: skip


def kind(name: str) -> str:
    """The start and the share of the name of a run, without its seed.

    >>> kind("bert-frozen-0.1-2")
    'bert-frozen-0.1'
    """
    return name.rpartition("-")[0]


def best_rates(valid: Mapping[float, Mapping[str, float]]) -> dict[str, float]:
    """Of each start and share, the rate with the best mean of its seeds.

    >>> best_rates({0.1: {"a-0": 0.5, "a-1": 0.7, "b-0": 0.9}, 0.2: {"a-0": 0.8, "a-1": 0.5, "b-0": 0.8}})
    {'a': 0.2, 'b': 0.1}
    """
    means: dict[str, dict[float, float]] = defaultdict(dict)
    for rate, runs in valid.items():
        for start in {kind(name) for name in runs}:
            means[start][rate] = statistics.mean(score for name, score in runs.items() if kind(name) == start)
    return {start: max(by, key=by.__getitem__) for start, by in sorted(means.items())}


def mr(time: str = "20m") -> dict[str, Any]:
    rows = [
        {"text": line.strip(), "label": kind}
        for kind in ("pos", "neg")
        for line in place(f"mr-polarity/rt-polarity.{kind}").read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    return efficiency(rows, pages(), SMALL, time, "MR, 10 % for test; pre-trained on the other texts and on Wikipedia")


def names18(time: str = "5m") -> dict[str, Any]:
    files = [file for file in sorted(place("names18").glob("[A-Z]*.txt")) if file.stem != "README"]
    pairs = {(line.strip(), file.stem) for file in files for line in file.read_text(encoding="utf-8").splitlines()}
    rows = [{"text": name, "label": language} for name, language in sorted(pairs) if name]
    own = SMALL | {"tokens": "char", "row_length": 32, "next_sentence": 0, "batch_size": 64}
    return efficiency(rows, [], own, time, "names18, distinct pairs, 10 % for test; pre-trained on the other names")


PIECES: Pieces = {"enwiki": enwiki, "mr": mr, "names18": names18}

if __name__ == "__main__":
    run_pieces(PIECES, "pretraining", __doc__)
