"""The command line as a user meets it: help, lists, a whole round on small text, and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run_unrolled
from unrolled.cli import main
from unrolled.core import discover
from unrolled.core.errors import DataError
from unrolled.runs.trust import opening

COMMANDS = [
    "train", "compare", "report", "runs", "inspect", "evaluate", "generate", "predict", "score", "models", "tasks",
    "data", "check",
]  # fmt: skip
QUICK = ["--steps", "30", "--set", "d_state=16", "--set", "d_embedding=8", "--threads", "1", "--batch-size", "8",
         "--length", "16"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text("the cat sat on the mat.\nthe dog sat on the log.\n" * 120)
    rows = [f"{'a' * (i % 5 + 1)}{'b' * (i % 3 + 1)}{i % 10},{('vowel', 'mixed')[i % 2]}" for i in range(400)]
    (folder / "rows.csv").write_text("name,kind\n" + "\n".join(dict.fromkeys(rows)) + "\n")
    return folder


@pytest.fixture(scope="module")
def stream_run(folder: Path) -> Path:
    run_unrolled("train", folder / "text.txt", "--model", "gru", "-o", folder / "stream", *QUICK)
    return folder / "stream"


@pytest.fixture(scope="module")
def class_run(folder: Path) -> Path:
    words = ["--column", "name", "--condition", "kind", "--split", "80/10/10"]
    run_unrolled("train", folder / "rows.csv", *words, "-o", folder / "classes", *QUICK)
    return folder / "classes"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    text = run_unrolled(command, "--help").stdout
    assert "Example" in text
    assert f"unrolled {command}" in text


def test_help_and_version_do_not_wait_for_torch() -> None:
    code = (
        "import sys, unrolled.cli.main as m\n"
        "sys.argv = ['unrolled', 'train', '--help']\n"
        "try: m.main()\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert run_unrolled("--version").stdout.startswith("unrolled ")


def test_options_come_from_the_configs() -> None:
    text = run_unrolled("train", "--help").stdout
    for flag in (
        "--budget",
        "--steps",
        "--lr",
        "--examples",
        "--condition",
        "--ahead",
        "--too-long",
        "--clip",
        "--back",
    ):
        assert flag in text


def test_lists(folder: Path) -> None:
    facts = json.loads(run_unrolled("models", "--json").stdout)
    assert [fact["name"] for fact in facts] == discover.models.names()
    assert {"memoryless", "linear-rnn", "elman", "jordan", "lstm", "gru", "ngram"} <= {fact["name"] for fact in facts}
    assert "d_state" in run_unrolled("models", "lstm").stdout
    assert "next-token" in run_unrolled("tasks").stdout
    assert "label_smoothing" in json.loads(run_unrolled("tasks", "next-token", "--json").stdout)["settings"]
    assert "builtin:python-docs" in run_unrolled("data").stdout
    assert json.loads(run_unrolled("data", folder / "text.txt", "--json").stdout)


def test_evaluate_repeats_the_figures_of_training(stream_run: Path) -> None:
    trained = json.loads((stream_run / "result.json").read_text())["test"]
    own = ("--trained-on", stream_run.parent / "text.txt")
    measured = json.loads(run_unrolled("evaluate", stream_run, *own, "--json").stdout)
    assert measured["nats"] == pytest.approx(trained["nats"], rel=1e-6)
    baselines = json.loads((stream_run / "result.json").read_text())["baselines"]
    assert measured["baselines"]["trigram"]["nats"] == pytest.approx(baselines["trigram"]["test"]["nats"], rel=1e-6)
    shown = run_unrolled("evaluate", stream_run, stream_run.parent / "text.txt", *own).stdout
    assert "trigram" in shown
    assert "gru" in shown


def test_generation_is_a_function_of_the_seed(stream_run: Path) -> None:
    def text(*words: object) -> str:
        return run_unrolled("generate", stream_run, "--prompt", "the ", "--max-tokens", 30, *words).stdout

    assert text("--seed", 1) == text("--seed", 1)
    assert text("--seed", 1) != text("--seed", 2)
    assert text().startswith("the ")
    made = json.loads(text("--json", "-n", 3))
    assert len(made) == 3
    assert [item["logp"] for item in made] == sorted((item["logp"] for item in made), reverse=True)
    beam = json.loads(text("--json", "--beam", 4))[0]
    greedy = json.loads(text("--json", "--temperature", 0))[0]
    assert beam["logp"] >= greedy["logp"] - 1e-4
    assert "." in text("--stop", ".") or text("--stop", ".")


def test_a_class_starts_the_model(class_run: Path) -> None:
    out = run_unrolled("generate", class_run, "--condition", "vowel", "-n", 2, "--json").stdout
    assert len(json.loads(out)) == 2
    assert "mixed" in run_unrolled("generate", class_run, "--condition", "vowle", code=2).stderr
    assert "--condition" in run_unrolled("generate", class_run, code=2).stderr
    beamed = run_unrolled("generate", class_run, "--condition", "vowel", "--beam", 2, "--top-k", 3, code=2).stderr
    assert "beam search and sampling exclude each other" in beamed
    stopped = run_unrolled("generate", class_run, "--condition", "vowel", "--stop", "12", code=2).stderr
    assert "invalid value stop = '12': expected a single token" in stopped  # a text, not a number


def test_score_and_predict_keep_the_order(stream_run: Path, tmp_path: Path) -> None:
    lines = ["the cat sat on", "zzzz", "on the mat."]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    scored = run_unrolled("score", stream_run, tmp_path / "lines.txt").stdout.splitlines()
    assert [row.split("\t")[2] for row in scored] == lines
    same = run_unrolled("score", stream_run, "-", "--json", stdin="\n".join(lines) + "\n").stdout.splitlines()
    assert [json.loads(row)["logp"] for row in same] == pytest.approx(
        [float(row.split("\t")[0]) for row in scored], abs=1e-4
    )
    guessed = [
        json.loads(row) for row in run_unrolled("predict", stream_run, tmp_path / "lines.txt").stdout.splitlines()
    ]
    assert [row["text"] for row in guessed] == lines
    assert guessed[0]["likely"][0]["p"] >= guessed[0]["likely"][1]["p"]


@pytest.mark.parametrize(("words", "code", "says"), [
    (["train"], 2, "no data"),
    (["train", "missing.txt"], 3, "missing.txt"),
    (["train", "text.txt", "--model", "lstmm"], 2, "did you mean 'lstm'"),
    (["train", "text.txt", "--task", "next"], 2, "next-token"),
    (["train", "text.txt", "--lr", "fast"], 2, "a number"),
    (["train", "text.txt", "--set", "d_stat=3"], 2, "d_state"),
    (["train", "text.txt", "--set", "d_state"], 2, "key=value"),
    (["train", "text.txt", "--budget", "soon"], 2, "5m"),
    (["train", "text.txt", "--steps", "3", "--epochs", "3"], 2, "one budget"),
    (["train", "rows.csv", "--column", "nam"], 2, "name"),
    (["train", "--resume", "nowhere"], 3, "nowhere"),
    (["evaluate", "nowhere"], 3, "nowhere"),
    (["generate", "text.txt"], 3, "run directory"),
    (["check", "lstmm"], 2, "lstm"),
    (["check", "no_such_module:Layer"], 2, "no_such_module"),
    (["train", "text.txt", "--recipe", "none.toml"], 2, "none.toml"),
    (["train", "text.txt", "--with", "none.py"], 2, "none.py"),
    (["train", "text.txt", "--device", "abacus"], 2, "abacus"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_bad_input_gets_one_sentence(folder: Path, words: list[str], code: int, says: str) -> None:
    done = run_unrolled(*words, code=code, cwd=folder)
    assert says in done.stderr
    assert done.stderr.count("\n") <= 2


def test_the_recipe_of_a_run_repeats_it(stream_run: Path) -> None:
    again = stream_run.parent / "again"
    words = ["--recipe", stream_run / "recipe.toml", "-o", again]
    run_unrolled("train", stream_run.parent / "text.txt", *words)
    assert (again / "model.safetensors").read_bytes() == (stream_run / "model.safetensors").read_bytes()


def test_check_a_model_by_name() -> None:
    assert json.loads(run_unrolled("check", "memoryless", "--json").stdout)["passed"]


def test_what_lies_behind_a_sentence_can_be_seen(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """A directory whose files do not fit together may be our mistake too: whoever asks sees where it came from."""
    for asked in ("", "1"):
        monkeypatch.setenv("UNROLLED_TRACEBACK", asked)
        with pytest.raises(DataError) as caught, opening("runs/mine"):
            raise KeyError("width")
        assert main._told(caught.value) == 3
        told = capsys.readouterr().err
        assert "unrolled: runs/mine: its files do not match each other (KeyError: 'width')" in told
        assert ("Traceback" in told) == bool(asked)
