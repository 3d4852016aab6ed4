"""The example of docs/own_verb.md is complete: a command, a call in Python, and the reason where a run cannot do it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.runs.run import Run

TEXTS = [f"abc abc {i}" for i in range(80)]
PAGE = Path(__file__).parents[2] / "docs" / "own_verb.md"
QUICK = {"steps": 2, "batch_size": 4, "d_embedding": 6, "threads": 1, "split": "80/20"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    path = tmp_path_factory.mktemp("own") / "unusual.py"
    path.write_text(code[1])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return unrolled.train(TEXTS, model="ngram", out=tmp_path_factory.mktemp("run") / "run", settings=QUICK)


def test_it_is_a_command(run: Run, own: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.csv"
    lines.write_text("text,note\nabc abc 1,first\nzzzz,second\n")
    shown = run_unrolled("unusual", run.path, lines, "--with", own, "--nats", 2, "--json").stdout
    usual, odd = map(json.loads, shown.splitlines())
    wanted = [-line["logp"] / line["tokens"] for line in run.score(["abc abc 1", "zzzz"])]
    assert [usual["nats"], odd["nats"]] == pytest.approx(wanted)
    assert [usual["unusual"], odd["unusual"]] == [False, True]
    assert run_unrolled("unusual", run.path, lines, f"--with={own}").stdout.splitlines()[1].startswith("! ")
    run_unrolled("unusual", run.path, lines, "--with", own, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "text,note,nats,unusual"
    assert "--nats" in run_unrolled("unusual", "--with", own, "--help").stdout
    assert "nats = -1" in run_unrolled("unusual", run.path, lines, "--with", own, "--nats", -1, code=2).stderr
    assert "No such command 'unusual'" in run_unrolled("unusual", run.path, lines, code=2).stderr


def test_it_is_called_in_python(run: Run, own: Path) -> None:
    try:
        found = run.do("unusual", ["abc abc 1", "zzzz"], nats=2, own_file=own)
        assert [line["unusual"] for line in found] == [False, True]
        assert run.why_not("unusual") is None
        with pytest.raises(UsageError, match="there is no setting 'nat'"):
            run.do("unusual", ["abc"], nat=2)
    finally:
        discover.verbs.forget("unusual")
    with pytest.raises(UsageError, match="no verb 'unusual'"):
        run.do("unusual", ["abc"])


def test_the_card_of_a_run_tells_of_it(own: Path, tmp_path: Path) -> None:
    discover.verbs.add_file(own)
    try:
        run = unrolled.train(TEXTS, model="ngram", out=tmp_path / "run", settings=QUICK)
    finally:
        discover.verbs.forget("unusual")
    assert "    unrolled unusual run NEW_DATA\n" in (run.path / "README.md").read_text()
    assert [use["verb"] for use in run.result["uses"]] == ["generate", "score", "predict", "embed", "unusual"]


def test_a_run_that_cannot_do_it_says_why(own: Path, tmp_path: Path) -> None:
    rows = [{"text": f"{'ab'[i % 2]} {i}", "label": "xy"[i % 2]} for i in range(40)]
    other = unrolled.train(rows, task="classify", model="prior", out=tmp_path / "run", settings={"threads": 1})
    refused = run_unrolled("unusual", other.path, "-", "--with", own, code=2, stdin="a\n").stderr
    assert "cannot do 'unusual', because the task 'classify' gives its inputs no probability" in refused


@pytest.mark.parametrize(("old", "new", "says"), [
    ("request=Request", "reqest=Request", "a VerbSpec has no field 'reqest'; did you mean 'request'"),
    ("inputs, request):", "inputs):", "call must take (served, inputs, request), found call(served, inputs)"),
    ("nats: float = Field(3.0, ge=0)", "device: str = 'x'", "the setting 'device' of the verb 'unusual'"),
    ('"nats": nats,', '"nats": float("nan"),', "example 1: the model's output is not finite"),
    ("yield {", "yield 1, {", "call of the verb 'unusual' must yield dictionaries, found tuple"),
    ("in zip(inputs,", "in zip(inputs[1:],", "call of the verb 'unusual' must yield one result for each of 1 inputs"),
    ("inputs, request):\n", "inputs, request):\n    yield {'text': '', 'nats': 0.0, 'unusual': False}\n", "found 2"),
    ("line['nats']", "line['nts']", "in <lambda>: KeyError: 'nts'"),
    ("max(line", "maxx(line", "in call: NameError: name 'maxx' is not defined"),
])  # fmt: skip
def test_a_wrong_file_is_answered_in_one_sentence(
    run: Run, own: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    wrong = tmp_path / "unusual.py"
    wrong.write_text(own.read_text().replace(old, new))
    code = 3 if "finite" in says else 2
    done = run_unrolled("unusual", run.path, "-", "--with", wrong, code=code, stdin="abc\n")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
