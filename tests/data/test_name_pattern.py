"""Expressions for the names of files: what they find is what Python's find, but never by trying again and again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import unrolled
from tests.faults import hostile
from unrolled.core.errors import DataError, UsageError
from unrolled.data.files.name_pattern import groups_in
from unrolled.data.reading import Reading, RecognitionReading
from unrolled.runs.run import load

NAMES = ["7_ann_0.wav", "17_bö_12.wav", "x7_ann.wav", "notes.txt", "Ärger-3 (1).png", "a" * 200, "7__0", "\udcff7_b_1"]
GOOD = [
    r"(?P<answer>\d)_(?P<speaker>\w+)_\d+", r"^(?P<answer>\d+)_.*",
    r"(?i)(?P<answer>[a-zä]+)\W(?P<part>\d)?", r"(?P<answer>.+?)_",
    r"(?P<answer>a{2,20})$", r"(?P<answer>wav|png|txt)$", r"(?:x|y)?(?P<answer>\d)\b",
]  # fmt: skip
CATASTROPHIC = [r"(?P<answer>(a+)+)b", r"(?P<answer>(a|a)*)b", r"(?P<answer>.*.*.*.*.*.*.*.*)!"]


@pytest.mark.parametrize("pattern", GOOD)
def test_the_groups_are_those_of_python(pattern: str) -> None:
    assert Reading.parse({"pattern": pattern}).pattern == pattern
    found = [re.search(pattern, name.replace("\udcff", "\ufffd")) for name in NAMES]
    none = dict.fromkeys(re.compile(pattern).groupindex)
    named = [{name: group for name, group in each.items() if not name.isdigit()} for each in groups_in(NAMES, pattern)]
    assert named == [none if each is None else each.groupdict() for each in found]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_no_name_takes_longer_than_its_length(pattern: str) -> None:
    Reading.parse({"pattern": pattern})
    assert groups_in(["a" * 250] * 100, pattern)[-1]["answer"] is None


@pytest.mark.parametrize("schema", [Reading, RecognitionReading])
@pytest.mark.parametrize(("pattern", "why"), [
    ("[", "unclosed"), ("(?P<answer>a)(?=b)", "look-around"), (r"(?P<answer>.)\1", "backreferences"),
    ("(?P<other>a)", r"no group \(\?P<answer>"), (r"(?P<answer>(\d{100}){99})", "too many counted repetitions"),
    ("(?P<answer>" + "a" * 1000 + ")", "at most 500 letters"),
], ids=lambda word: word[:20])  # fmt: skip
def test_what_cannot_be_bounded_is_refused(schema: type[Reading], pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        schema.parse({"pattern": pattern})


@pytest.mark.timeout(60)
def test_an_expression_from_anybody(tmp_path: Path) -> None:
    """In a saved run it is refused as damaged, or it is bounded."""
    (tmp_path / "texts").mkdir()
    for i in range(24):
        (tmp_path / "texts" / f"{'ab'[i % 2]}_{'a' * 100}{i}.txt").write_text(f"text {i} of {'ab'[i % 2]}")
    own = {"pattern": "(?P<answer>[ab])_", "split": "60/20/20"}
    run = unrolled.train(tmp_path / "texts", "classify", "prior", out=tmp_path / "run", settings=own).path
    saved = json.loads((run / "data.json").read_text())
    for pattern in ("(?P<answer>(a+)+)!", "(?P<answer>a)(?!b)"):
        (run / "data.json").write_text(json.dumps({**saved, "reading": {**saved["reading"], "pattern": pattern}}))
        hostile.reseal(run)
        if "?!" in pattern:
            with pytest.raises(DataError, match="look-around"):
                load(run)
            continue
        opened = load(run)
        assert len(opened.predict(tmp_path / "texts")) == 24
        with pytest.raises(DataError, match="does not match the pattern"):
            opened.evaluate(tmp_path / "texts")
