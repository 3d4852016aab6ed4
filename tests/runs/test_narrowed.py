"""Saved runs with weights in fewer bits: what is told, what is refused, and that all ways of using a run agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from tests.small import DATA, LINES, QUICK
from unrolled.core.errors import UsageError
from unrolled.core.task import Task
from unrolled.kernels import native
from unrolled.runs.run import Run
from unrolled.serve.counted import Counted
from unrolled.serve.found import find
from unrolled.serve.hosted import Hosted
from unrolled.serve.limits import Limits

CASES: dict[str, tuple[str, str]] = {
    "stream": ("a stream", "gru"), "texts": ("texts", "transformer"), "class": ("texts of a class", "tcn"),
    "frames": ("rolls", "tcn"), "sounds": ("sounds of a class", "wavenet"), "pairs": ("pairs", "seq2seq"),
    "pen": ("drawings", "lstm"), "series": ("series by rollout", "gru"), "counts": ("texts", "ngram"),
    "bags": ("classes of texts", "bow"),
}  # fmt: skip
NOTE = re.compile(
    r"weights in (\w+): all [\d,]+ numbers that a tick multiplies by; the loss of ([\d,]+) positions of its "
    r"predictions changes from (\S+) to (\S+) \((\S+)\)"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    folder, made = tmp_path_factory.mktemp("narrowed"), {}

    def run(name: str) -> Run:
        if name not in made:
            data, model = CASES[name]
            task, source, settings = DATA[data]
            given = (QUICK if model != "ngram" else {"split": "60/20/20"}) | settings
            made[name] = unrolled.train(source, task=task, model=model, out=folder / name, settings=given)
        return made[name]

    return run


@pytest.mark.parametrize("name", ["stream", "texts", "class", "frames", "sounds", "pairs", "pen"])
def test_the_change_of_the_loss_is_told(runs: Callable[[str], Run], name: str) -> None:
    for weights in ("bf16", "int8"):
        opened = unrolled.load(runs(name).path, weights=weights)
        (note,) = opened.notes
        told = NOTE.fullmatch(note)
        assert told, note
        form, n, before, after, change = told.groups()
        assert form == weights and int(n.replace(",", "")) > 5
        assert float(change) == pytest.approx(float(after) - float(before), abs=1e-3)
        assert abs(float(change)) < 0.1 and (weights == "bf16" or float(change) != 0)


def test_where_no_example_is_kept_it_is_told_how_to_measure(
    runs: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs("stream")
    monkeypatch.setattr(type(run.task), "example", Task.example)
    (note,) = unrolled.load(run.path, weights="int8").notes
    assert note.endswith('compare the metrics of evaluate with and without weights="int8"')


def test_the_loss_is_that_of_the_saved_predictions(runs: Callable[[str], Run]) -> None:
    run = runs("texts")
    (note,) = unrolled.load(run.path, weights="int8").notes
    lines = list(run.directory.read_lines("predictions.jsonl"))
    n = sum(line["tokens"] for line in lines)
    _, told, before, after, _ = NOTE.fullmatch(note).groups()  # type: ignore[union-attr]
    assert int(told.replace(",", "")) == n
    assert float(before) == pytest.approx(-sum(line["logp"] for line in lines) / n, rel=1e-4)
    rounded = unrolled.load(run.path, weights="int8").score([line["text"] for line in lines])
    assert float(after) == pytest.approx(-sum(line["logp"] for line in rounded) / n, rel=1e-4)


def test_every_way_uses_the_same_weights(runs: Callable[[str], Run]) -> None:
    run = unrolled.load(runs("texts").path, weights="int8")
    asked: dict[str, Any] = {"max_tokens": 12, "n": 3, "seed": 1}
    native_texts = [each["text"] for each in run.generate("ti", **asked)]
    with native.using("off"):
        assert [each["text"] for each in run.generate("ti", **asked)] == native_texts
    plain = runs("texts")
    session, other = run.session(), plain.session()
    lines = [row["logp"] for letter in "tick" for row in session.push(letter)]
    assert lines != [row["logp"] for letter in "tick" for row in other.push(letter)]
    assert sum(lines) + session.end()[-1]["logp"] == pytest.approx(run.score(["tick"])[0]["logp"], abs=1e-4)


def test_saved_files_stay_as_they_are(runs: Callable[[str], Run]) -> None:
    path = runs("stream").path / "model.safetensors"
    before = path.read_bytes()
    rounded = unrolled.load(runs("stream").path, weights="bf16").model.state_dict()
    assert path.read_bytes() == before
    whole = unrolled.load(runs("stream").path).model.state_dict()
    assert any(not torch.equal(rounded[name], each) for name, each in whole.items())
    assert torch.equal(rounded["embedding.weight"], whole["embedding.weight"])  # a table is looked up


def test_runs_without_such_weights_are_refused(runs: Callable[[str], Run]) -> None:
    with pytest.raises(UsageError, match=r"weights=\"int8\" does not apply to .*: there is no matrix"):
        unrolled.load(runs("counts").path, weights="int8")
    with pytest.raises(UsageError, match="FromLast has no native form"):
        unrolled.load(runs("series").path, weights="int8")
    with pytest.raises(UsageError, match="it reads whole sequences and generates nothing"):
        unrolled.load(runs("bags").path, weights="bf16")
    with pytest.raises(UsageError, match="expected bf16 or int8"):
        unrolled.load(runs("stream").path, weights="int4")


def test_commands_print_the_change(runs: Callable[[str], Run], tmp_path: Path) -> None:
    path, file = runs("texts").path, tmp_path / "lines.txt"
    file.write_text("\n".join(LINES[:3]), encoding="utf-8")
    for words in (("generate", path, "--max-tokens", 5), ("predict", path, file, "--live")):
        assert NOTE.search(run_unrolled(*words, "--weights", "int8", forked=True).stderr), words
    assert "expected bf16 or int8" in run_unrolled("score", path, file, "--weights", "half", code=2, forked=True).stderr
    refused = run_unrolled("generate", runs("counts").path, "--weights", "int8", code=2, forked=True).stderr
    assert "--weights int8 does not apply" in refused


def test_a_server_rounds_what_it_can(runs: Callable[[str], Run], capfd: pytest.CaptureFixture[str]) -> None:
    paths = [str(runs(name).path) for name in ("texts", "bags")]
    hosted = Hosted(find(paths), Limits(), Counted(), None, "int8")
    for place in hosted.places.values():
        hosted._load(place)
    told = capfd.readouterr().err
    assert NOTE.search(told) and "does not apply" in told
    refused = run_unrolled("serve", *paths, "--weights", "int4", code=2, forked=True).stderr
    assert "expected bf16 or int8" in refused
