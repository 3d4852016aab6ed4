"""`unrolled demo`: four ordinary comparisons; it resumes where it was stopped, and says what its tables say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Ended, attempt, run_unrolled
from unrolled.comparison import tour
from unrolled.comparison.files import write_table
from unrolled.comparison.tour import PARTS

TINY: Mapping[str, Mapping[str, Any]] = {
    "series": {"models": "ar"},
    "strings": {"models": "seq2seq", "size": "small", "held_out": 200},
    "memory": {},
    "text": {"models": "elman", "held_out": 2000, "batch_size": 4},
}
CODE = f"""
import sys
from unrolled.comparison import tour
from unrolled.core.errors import Interrupted
tiny = {TINY!r}
more = {{"jobs": 1, "ensemble": False, "threads": 1}}
tour.PARTS = tuple(part._replace(settings={{**part.settings, **more, **tiny[part.name]}}) for part in tour.PARTS)
tour.TOKENS = 5
sys.argv = ["unrolled", "demo", "--steps", "2"]
"""
STOPPED = """
def done(part, *rest, whole=tour.done):
    if part.name == "memory":
        raise KeyboardInterrupt
    return whole(part, *rest)
tour.done = done
"""
FAILING = """
from unrolled.core.errors import DataError
def done(part, *rest, whole=tour.done):
    if part.name in ("strings", "text"):
        raise DataError(f"{part.name} is not possible today")
    return whole(part, *rest)
tour.done = done
"""
RUN = "from unrolled.cli.main import main; main()"


def demo(folder: Path, more: str = "") -> Ended:
    return attempt(cwd=folder, forked=True, code=CODE + more + RUN)


def test_a_tour_that_is_stopped_resumes(tmp_path: Path) -> None:
    stopped = demo(tmp_path, STOPPED)
    assert stopped.code == 75, stopped.err
    assert stopped.err.strip().splitlines()[-1] == "unrolled: stopped and saved; resume with: unrolled demo"
    place = tmp_path / "comparisons" / "demo"
    first = (place / "series" / "plan.json").read_bytes()
    assert not (place / "memory").exists() and not (place / "report.html").exists()
    done = demo(tmp_path)
    assert done.code == 0, done.err
    assert "comparisons/demo holds a tour that was stopped: it is resumed." in done.out
    assert (place / "series" / "plan.json").read_bytes() == first
    for part in PARTS:
        table = json.loads((place / part.name / "table.json").read_text())
        assert table["finished"] and table["steps"] in (2, None)
        assert tour.outcome(table) in done.out
        assert part.title in (done.out + stopped.out)
    assert tour.PROMPT in done.out and "->" in done.out and "█" in done.out
    assert "unrolled show comparisons/demo" in done.out and "comparisons/demo/report.html" in done.out
    page = (place / "report.html").read_text()
    assert all(part.data in page for part in PARTS)
    assert "Traceback" not in done.err + stopped.err


@pytest.mark.long
def test_a_part_that_fails_does_not_end_the_tour(tmp_path: Path) -> None:
    done = demo(tmp_path, FAILING)
    assert done.code == 3, done.err
    assert "This part has failed: strings is not possible today" in done.out and "Part 4 of 4" in done.out
    assert done.err.strip().splitlines()[-1] == "unrolled: text is not possible today"
    page = (tmp_path / "comparisons" / "demo" / "report.html").read_text()
    assert PARTS[2].data in page and PARTS[3].data not in page


def test_a_finished_tour_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    assert tour.folder_for(PARTS, place) == place
    for part in PARTS:
        (place / part.name).mkdir(parents=True)
        assert tour.folder_for(PARTS, place) == place
        (place / part.name / "plan.json").write_text("{}")
    for part in PARTS:
        assert tour.folder_for(PARTS, place) == place
        write_table(place / part.name, {"rows": [], "finished": True})
    assert tour.folder_for(PARTS, place) == tmp_path / "demo-2"


def test_the_parts_fit_into_the_budget(tmp_path: Path) -> None:
    left, spent = 300.0, 0.0
    for part in PARTS:
        seconds = tour.seconds_for(part, tmp_path, PARTS, left)
        assert seconds >= 10
        left, spent = left - seconds, spent + seconds
        (tmp_path / part.name).mkdir()
        write_table(tmp_path / part.name, {"rows": [], "finished": True})
    assert 270 < spent <= 300
    assert sum(part.share for part in PARTS) == pytest.approx(1)


def test_too_little_time_is_refused() -> None:
    assert "expected at least 1m" in run_unrolled("demo", "--budget", "20s", code=2).stderr
    assert "is not a time" in run_unrolled("demo", "--budget", "soon", code=2).stderr


def row(kind: str, label: str, score: float | None) -> dict[str, Any]:
    return {"kind": kind, "label": label, "score": score}


LOSS = [{"name": "nats", "larger": False, "formula": "ratio"}]
GAIN = [{"name": "exact_match", "larger": True, "formula": "rate"}]


@pytest.mark.parametrize(
    ("metrics", "rows", "said"),
    [
        (LOSS, [row("model", "lstm", 1.6), row("baseline", "6-gram", 1.5), row("ensemble", "ensemble", 1.4)],
         "the best baseline is 6-gram (1.5000), the best single model lstm (1.6000) and their ensemble (1.4000): "
         "ensemble has the best of these scores"),
        (LOSS, [row("model", "lstm", 1.4), row("model", "gru", 1.3), row("baseline", "6-gram", 1.5)],
         "gru (1.3000): gru has the best of these scores"),
        (GAIN, [row("model", "seq2seq", 0.9), row("baseline", "copy", 0.1), row("baseline", "dictionary", 0.2)],
         "dictionary (0.2000) and the best single model seq2seq (0.9000): seq2seq has the best of these scores"),
        (LOSS, [row("model", "dense-hopfield", 0.0), row("baseline", "nearest pattern", 0.0)],
         "nearest pattern and dense-hopfield have equal scores"),
        (LOSS, [row("model", "lstm", None), row("baseline", "6-gram", 1.5)], "not two kinds of rows with a score"),
    ],
)  # fmt: skip
def test_what_happened_is_said_whatever_it_was(metrics: Any, rows: list[dict[str, Any]], said: str) -> None:
    table: Any = {"metrics": metrics, "score": metrics[0]["name"], "split": "test", "rows": rows}
    assert said in tour.outcome(table)
