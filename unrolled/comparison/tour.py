"""A tour of small comparisons on built-in data: what models are good at, beside honest baselines.

Each part is an ordinary comparison in a folder of its own, so a tour that was stopped resumes part by part. What is
written of a part is read from its table alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType

from unrolled.comparison.api import compare
from unrolled.comparison.files import PLAN
from unrolled.comparison.plan import ENSEMBLE
from unrolled.comparison.saved import Comparison
from unrolled.comparison.view import View
from unrolled.core.errors import listed
from unrolled.pictures.blocks import bits, plotted
from unrolled.pictures.kinds import Plot
from unrolled.pictures.letters import title_words
from unrolled.report.page import NAME, write_report
from unrolled.results import Row, Table
from unrolled.runs.run import Run
from unrolled.runs.saved_pictures import saved_pictures
from unrolled.runs.selection import loss_of, read_table
from unrolled.runs.storage.directory import TABLE, first_free

PLACE = Path("comparisons") / "demo"
SHOWN = 4  # examples of a part
LEFT_OVER = 0.05  # share of the budget for examples and the report
PROMPT, TOKENS = "The import statement", 300


class Part(NamedTuple):
    """One comparison of the tour."""

    name: str  # of its folder
    title: str
    data: str
    task: str
    settings: Mapping[str, Any]
    share: float  # of the budget
    examples: Callable[[Run], Iterator[RenderableType]]  # what the selected model does


# ---- what is shown of the selected model


def forecasts(run: Run) -> Iterator[RenderableType]:
    """The forecast from the end of the data, as the run drew it."""
    plots = (picture for picture in saved_pictures(run.path, []) if isinstance(picture, Plot))
    yield from (plotted(picture, height=12) for picture in islice(plots, 1))


def strings(run: Run) -> Iterator[RenderableType]:
    """Strings of the test data with what is written for them."""
    for line in _lines(run):
        right = "correct" if line["right"] else f"the target is {line['target']}"
        yield f"  {line['source']} -> {line['prediction']}   ({right})"


def recalled(run: Run) -> Iterator[RenderableType]:
    """Damaged patterns of the test data, each with what is recalled behind it, two in a row."""
    pairs = [[line["input"], line["prediction"]] for line in _lines(run)]
    yield from (bits([*first, *second]).append("\n") for first, second in zip(pairs[::2], pairs[1::2], strict=False))


def text(run: Run) -> Iterator[RenderableType]:
    """What the model writes behind a prompt."""
    yield PROMPT + run.generate(PROMPT, max_tokens=TOKENS, temperature=0.7, seed=1)[0]["text"]


def _lines(run: Run) -> list[dict[str, Any]]:
    return list(islice(run.directory.read_lines("predictions.jsonl"), SHOWN))


PARTS = (
    Part(
        "series", "Forecast a series: passengers of airlines, twelve months ahead", "builtin:air-passengers",
        "forecast", {"models": "ar,ets,linear-map,gru"}, 0.12, forecasts,
    ),
    Part(
        "strings", "Learn to rewrite strings: numbers in words, from English to French", "builtin:numbers", "translate",
        {"models": "seq2seq,encdec-transformer", "tokens": "word", "size": "small", "lr": 0.003, "batch_size": 32},
        0.38, strings,
    ),
    Part(
        "memory", "Recall what was stored: letters of which 30 % of the pixels are flipped", "builtin:letters",
        "recall", {"amount": 0.3}, 0.06, recalled,
    ),
    Part(
        "text", "Predict text: single models, n-grams and their ensemble", "builtin:python-docs", "next-token",
        {"models": "lstm,gru"}, 0.44, text,
    ),
)  # fmt: skip
"""The quickest first, so that the first table is there within a minute."""


# ---- the walk


def folder_for(parts: Sequence[Part], place: Path = PLACE) -> Path:
    """Where a tour begins or resumes: comparisons/demo, comparisons/demo-2, .., the first that is not finished."""
    return first_free(place, lambda path: not all(is_finished(path / part.name) for part in parts))


def is_finished(place: Path) -> bool:
    """Whether the comparison in a folder has its whole table."""
    return (place / TABLE).is_file() and bool(read_table(place).get("finished"))


def seconds_for(part: Part, folder: Path, parts: Sequence[Part], left: float) -> float:
    """The time of a part in whole seconds, of what is left for it and all others that are not finished."""
    waiting = [each.share for each in parts if each == part or not is_finished(folder / each.name)]
    return max(1.0, float(math.floor((1 - LEFT_OVER) * left * part.share / sum(waiting))))


def done(part: Part, folder: Path, limit: Mapping[str, float], view: View) -> Comparison:
    """The comparison of a part: new, or resumed where it was stopped."""
    place, started = folder / part.name, time.monotonic()
    if (place / PLAN).is_file():
        return compare(resume=place, view=view, started=started)
    return compare(part.data, part.task, place, {**part.settings, **limit}, view=view, started=started)


def report(folder: Path, parts: Sequence[Part]) -> Path | None:
    """One page of all parts that have a table; None: there is none."""
    places = [place for part in parts if ((place := folder / part.name) / TABLE).is_file()]
    return write_report(places, folder / NAME) if places else None


def outcome(table: Table) -> str:
    """The best baseline, the best single model and the ensemble by their scores, and which of them is better."""
    best = {kind: row for kind in ("baseline", "model", ENSEMBLE) if (row := _best(table, kind)) is not None}
    if len(best) < 2:
        return "There are not two kinds of rows with a score."
    words = {"baseline": "the best baseline is {}", "model": "the best single model {}", ENSEMBLE: "their {}"}
    named = [f"{words[kind].format(row['label'])} ({row['score']:.4f})" for kind, row in best.items()]
    split = "test" if table["split"] == "test" else "validation"
    order = sorted(best.values(), key=lambda row: loss_of(table, row["score"]))
    best_loss = loss_of(table, order[0]["score"])
    first = [row["label"] for row in order if loss_of(table, row["score"]) == best_loss]
    who = f"{first[0]} has the best of these scores" if len(first) == 1 else f"{listed(first)} have equal scores"
    return f"On {split} data ({title_words(table['score'])}) {listed(named)}: {who}."


def _best(table: Table, kind: str) -> Row | None:
    rows = [row for row in table["rows"] if row["kind"] == kind and row["score"] is not None]
    return min(rows, key=lambda row: loss_of(table, row["score"]), default=None)
