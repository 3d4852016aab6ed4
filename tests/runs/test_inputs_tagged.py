"""Files to tag are read as in training, without the tags; plain lines of words give the same predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run_unrolled
from tests.runs.test_inputs import said, trained
from unrolled.core.errors import UnrolledError
from unrolled.runs.run import Run

ODD = ("snake_case", "and/or", "or")
SENTENCES = [[("the", "DT"), (f"w{i}", "NN"), (ODD[i % 3], "CC"), (".", ".")] for i in range(30)]
WORDS = [[word for word, _ in sentence] for sentence in SENTENCES]
FORMS = {
    "pairs.txt": "".join(" ".join(f"{w}_{t}" for w, t in sentence) + "\n" for sentence in SENTENCES),
    "slashes.txt": "".join(" ".join(f"{w}/{t}" for w, t in sentence) + "\n" for sentence in SENTENCES),
    "columns.txt": "\n".join("".join(f"{w}\tx\t{t}\n" for w, t in sentence) for sentence in SENTENCES),
    "spaces.txt": "\n".join("".join(f"{w} {t}\n" for w, t in sentence) for sentence in SENTENCES),
    "columns.conll": "\n".join("".join(f"{w} {t}\n" for w, t in sentence) for sentence in SENTENCES),
}
PLAIN = "".join(" ".join(words) + "\n" for words in WORDS)


@pytest.fixture(scope="module", params=FORMS)
def case(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("tags")
    for name, text in {**FORMS, "plain.txt": PLAIN, "short.txt": "the w1\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return trained(folder / request.param, folder, "tag", "tag-counts"), folder / request.param


def test_tags_are_no_part_of_the_words(case: tuple[Run, Path]) -> None:
    run, path = case
    wanted = run.predict(WORDS)
    assert [line["words"] for line in wanted] == WORDS
    assert [line["prediction"][0] for line in wanted] == ["DT"] * 30
    for name in (path.name, "pairs.txt", "spaces.txt", "plain.txt"):
        assert run.predict(path.with_name(name)) == wanted
    assert run.predict(str(path)) == run.predict(PLAIN.splitlines()) == wanted
    assert said(run, path.with_name("short.txt")) == said(run, [["the", "w1"]])


def test_a_folder_of_such_files(case: tuple[Run, Path], tmp_path: Path) -> None:
    run, path = case
    (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "z.txt").write_text("the w1 .\n", encoding="utf-8")
    assert run.predict(tmp_path) == run.predict([*WORDS, ["the", "w1", "."]])


def test_tags_of_another_set_are_refused(case: tuple[Run, Path], tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("the_DET dog_NOUN barks_VERB\n", encoding="utf-8")
    with pytest.raises(UnrolledError, match="'DET', are not tags of this run"):
        case[0].predict(tmp_path / "other.txt")


def test_the_command_reads_the_same(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text(FORMS["pairs.txt"], encoding="utf-8")
    run = trained(tmp_path / "pairs.txt", tmp_path, "tag", "tag-counts")
    wanted = run.predict(WORDS)
    by_file = run_unrolled("predict", run.path, tmp_path / "pairs.txt").stdout
    typed = run_unrolled("predict", run.path, "-", stdin=FORMS["pairs.txt"]).stdout
    for told in (by_file, typed):
        assert [json.loads(line) for line in told.splitlines()] == wanted
