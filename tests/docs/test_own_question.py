"""The example of docs/own_question.md is complete: it is listed, asked, and says where there is no answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover

TEXTS = [f"abc abc {i}" for i in range(80)]
PAGE = Path(__file__).parents[2] / "docs" / "own_question.md"


def test_it_is_listed_and_asked(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    own = tmp_path / "my_question.py"
    own.write_text(code[1])
    quick = {"steps": 2, "batch_size": 4, "d_embedding": 6, "threads": 1, "split": "80/20"}
    run = unrolled.train(TEXTS, model="gru", out=tmp_path / "gru", settings=quick | {"d_state": 5})
    assert "How far does the state move" in run_unrolled("inspect", run.path, "--with", own).stdout
    shown = run_unrolled("inspect", run.path, "my-question", "abcab", "--with", own, "--json").stdout
    said = json.loads(shown)
    assert len(said["numbers"]["positions"]) == 6
    assert said["numbers"]["largest"] >= said["numbers"]["mean"] > 0
    assert "The state moves farthest at" in said["reading"]
    try:
        answer = run.inspect("my-question", "abcab", {"length": 3}, own_file=own)
    finally:
        discover.questions.forget("my-question")
    assert answer.arrays["moved"].shape == (3,)
    other = unrolled.train(TEXTS, model="ngram", out=tmp_path / "flat", settings=quick)
    refused = run_unrolled("inspect", other.path, "my-question", "--with", own, code=2).stderr
    assert "no layer of this ngram is recurrent" in refused
