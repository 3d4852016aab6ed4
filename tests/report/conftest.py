"""Run directories and comparisons made by hand, so that no test here has to train."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unrolled.runs.config import RunConfig
from unrolled.runs.storage import formats
from unrolled.runs.storage.directory import RunDirectory

FIGURES = ("nats", "bits_per_character", "perplexity", "accuracy")
TEXTS = ["the cat", "a dog", "<script>alert(1)</script>", "over & out", "so it goes"]


def figures(nats: float) -> dict[str, float]:
    return {"nats": nats, "bits_per_character": nats * 1.44, "perplexity": 2.7**nats, "accuracy": 0.5, "tokens": 1000}


def facts() -> dict[str, Any]:
    part = {"tokens": 1000, "examples": 10}
    return {"source": "poems.txt", "tokens": 3000, "fingerprint": "f00d", "notes": ["<b>note</b>"], "classes": None,
            "split": {"test": part, "train": part, "valid": part}}  # fmt: skip


class Maker:
    """Makes run directories and comparisons below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self,
        name: str = "lstm-0",
        model: str = "lstm",
        nats: float = 1.5,
        finished: bool = True,
        losses: list[float] | None = None,
        source: str = "poems.txt",
        pictures: dict[str, Any] | None = None,
    ) -> Path:
        run = RunDirectory.create(self.folder / name)
        config = RunConfig(model=model, source=source, model_settings={"d_state": 32}, budget={"steps": 60}, threads=1)
        run.write_config(config.model_dump(mode="json"))
        run.write_json("data.json", {"facts": facts() | {"fingerprint": source}})
        for step in range(0, 70, 10):
            line = {"step": step, "seconds": step / 10, "nats": nats + 1 / (step + 1), "split": "valid"}
            run.append_metrics(line)
        for file, value in (pictures or {}).items():
            run.write_json(f"figures/{file}", value)
        if finished:
            losses = losses or [1.0 + i / 10 for i in range(len(TEXTS))]
            lines = [{"text": text, "nats_per_token": loss, "tokens": 3} for text, loss in zip(TEXTS, losses)]
            run.write_lines("predictions.jsonl", lines)
            baselines = {"unigram": {"test": figures(2.9)}, "6-gram": {"test": figures(1.6)}}
            run.write_json("result.json", {
                "parameters": 1234, "test": figures(nats), "valid": figures(nats), "baselines": baselines, "steps": 60,
                "training_seconds": 6.1, "tokens_per_second": 5000, "seconds": 7.0,
            })  # fmt: skip
        run.seal()
        return run.path

    def row(self, label: str, score: float | None, kind: str = "model", **more: Any) -> dict[str, Any]:
        empty = score is None
        made = {
            "label": label, "kind": kind, "model": label, "fraction": 1.0, "runs": [], "score": score, "valid": score,
            "spread": 0.01,
            "interval": None if empty else [score - 0.03, score + 0.03], "figures": {} if empty else figures(score),
            "parameters": 1000, "training_seconds": 10.0, "tokens_per_second": 5000.0, "tick_microseconds": 12.0,
            "memory_megabytes": 300.0, "receptive_field": None, "serial_depth": 64, "beaten_by": [], "failed": None,
        }  # fmt: skip
        if kind == "baseline":
            made |= {"spread": None, "training_seconds": None, "tokens_per_second": None, "receptive_field": 5}
        return made | more

    def comparison(self, name: str, rows: list[dict[str, Any]], **more: Any) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        table = {
            "name": name, "data": "poems.txt", "task": "next-token", "guessed": "it is text",
            "score": "nats", "figures": list(FIGURES), "split": "test", "match": "time", "budget_seconds": 300.0,
            "share_seconds": 40.0, "steps": None, "seeds": [0, 1], "threads": 1, "jobs": 2, "facts": facts(),
            "versions": {"unrolled": "0.1.0"}, "command": "unrolled compare poems.txt --budget 5m", "winner": None,
            "verdict": "Nobody wins.", "finished": True, "rows": rows,
        }  # fmt: skip
        text = formats.json_text(formats.with_check(formats.numbered(table) | more), "the table")
        (folder / "table.json").write_text(text)
        return folder


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


@pytest.fixture
def six(tmp_path: Path) -> Callable[[], Path]:
    """A comparison with everything in it: a winner, a loser, a failure, baselines, two seeds, pictures."""

    def build() -> Path:
        folder = tmp_path / "six"
        folder.mkdir()
        inner, maker = Maker(folder), Maker(tmp_path)
        picture = {"kind": "texts", "title": "Samples", "captions": ["<em>one</em>"], "texts": ["a <b>bold</b> text"]}
        grid = {"kind": "heatmap", "title": "Grid", "values": [[i * j for j in range(30)] for i in range(30)]}
        rows = []
        for number, model in enumerate(("tcn", "gru", "lstm", "elman", "transformer", "memoryless")):
            names = [f"{model}-{seed}" for seed in (0, 1)]
            for seed, name in enumerate(names):
                losses = [1.0 + number * 0.2 + (3.0 if i == number else 0.0) for i in range(5)]
                inner.run(name, model, 1.0 + number / 5 + seed / 100, losses=losses,
                          pictures={"samples.json": picture, "grid.json": grid})  # fmt: skip
            score = 1.0 + number / 5
            beaten = ["6-gram"] if score > 1.6 else []
            rows.append(maker.row(model, score, runs=names, parameters=1000 * (number + 1), beaten_by=beaten))
        rows.append(maker.row("6-gram", 1.6, kind="baseline", parameters=50_000))
        rows.sort(key=lambda row: row["score"])
        rows.append(maker.row("jordan", None, failed="the loss became NaN at step <12>"))
        return maker.comparison("six", rows, winner="tcn", verdict="tcn wins by 0.2 nats.")

    return build
