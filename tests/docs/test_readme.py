"""What the README and the pages of docs/ show works: commands and Python run as written, links and lists are right."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile

from tests.commands import attempt, run_unrolled
from tests.thorough import only
from unrolled.core import discover

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for number, match in enumerate(re.finditer(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)):
            found.append((f"{page.name}-{number}", match[1]))
    return found


def pages(blocks: list[tuple[str, str]]) -> list[Any]:
    """A trial for each block; only the README and one page of the others are tried by `make test`."""
    first = {name for name, _ in blocks if name.startswith(("README", "inspect"))}
    return only(first, [pytest.param(*block, id=block[0]) for block in blocks])


def quick(command: str) -> str:
    """The same command with a budget that a test can afford."""
    command = re.sub(r"--(budget|epochs|steps) \S+", "--steps 5", command)
    command = command.replace("builtin:dates", "builtin:dates,examples=200")
    command = command.replace("builtin:hershey", "builtin:hershey,examples=100,letters=2")
    if " train " in command and "--resume" not in command:
        command += " --set batch_size=8"
    if " train builtin:python-docs " in command:
        command += " --held-out 2000"
    if " compare " in command and not re.search("--(resume|join|collect)", command):
        command = re.sub(r"--(models|seeds) \S+", "", command)
        command += " --models elman --jobs 1 --held-out 2000 --set threads=1 --set batch_size=8"
    return command.replace("--max-tokens 400", "--max-tokens 20")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "poems.txt").write_text("roses are red, violets are blue,\nand so it goes on.\n" * 300)
    names = [("Rossi", "Italian"), ("Bianchi", "Italian"), ("Smith", "English"), ("Jones", "English")]
    rows = [f"{name}{'aeiou'[i % 5]}{'nrst'[i % 4]}{i},{language}" for i in range(60) for name, language in names]
    reviews = [f"{'a lovely' if i % 2 else 'a dull'} film {i},{'good' if i % 2 else 'bad'}" for i in range(80)]
    (tmp_path / "reviews.csv").write_text("text,stars\n" + "\n".join(reviews) + "\n")
    lines = [f"the king of {'red blue gold'.split()[i % 3]} saw it. the river was near the bank." for i in range(60)]
    (tmp_path / "text.txt").write_text("\n\n".join(f"{line}\nit was day {i}." for i, line in enumerate(lines)) + "\n")
    (tmp_path / "vectors.txt").write_text("a 0.1 0.2 0.3\nfilm 0.3 0.1 0.2\nlovely 0.5 0.5 0.1\ndull 0.4 0.1 0.6\n")
    (tmp_path / "new.csv").write_text("text\na lovely plot\na dull plot\n")
    (tmp_path / "names.csv").write_text("name,language\n" + "\n".join(rows) + "\n")
    for folder, digit in (("ann", 7), ("bob", 3)):
        for i in range(8):
            samples = 0.5 * np.sin(np.arange(600) * digit / 20 + i)
            for name in (f"recordings/{folder}/{digit}_{i}.wav", f"spoken/{digit}_{folder}_{i}.wav"):
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                soundfile.write(tmp_path / name, samples, 2000)
    keys = np.random.default_rng(0).random((20, 30, 88)) < 0.05
    np.savez(tmp_path / "chorales.npz", pieces=keys)
    pen = [[[0, 0, 0], [i, 2, 0], [1, -i, 1], [2, 1, 0], [0, i, 1]] for i in range(60)]
    np.savez(tmp_path / "drawings.npz", *map(np.array, pen))
    digits = [{"strokes": [[[0, 0], [i, 2], [3, i % 5]]], "label": str(i % 4)} for i in range(60)]
    (tmp_path / "digits.jsonl").write_text("".join(json.dumps(each) + "\n" for each in digits))
    (tmp_path / "begun.json").write_text(json.dumps(pen[:1]))
    traces = "<trace>0 0, 3 4, 5 0</trace><trace>6 6, 7 8</trace>"
    (tmp_path / "sample.inkml").write_text(f'<ink><annotation type="truth">to</annotation>{traces}</ink>')
    return tmp_path


@pytest.mark.parametrize(("_name", "block"), pages(blocks("console")))
def test_commands(_name: str, block: str, folder: Path) -> None:
    for line in block.strip().splitlines():
        before, _, command = line.rpartition("| ")
        stdin = shlex.split(before)[1] + "\n" if before else None
        words = shlex.split(quick(command))
        assert words[0] == "unrolled", line
        run_unrolled(*words[1:], cwd=folder, stdin=stdin, forked=True)


def fewer_steps(line: re.Match[str]) -> str:
    """The same line with a budget that a test can afford; estimators of scikit-learn have fewer arguments."""
    return f"{line[1]}steps=5" + ("" if "Sequence" in line[1] else ", batch_size=8")


@pytest.mark.parametrize(("name", "block"), pages(blocks("python")))
def test_python(name: str, block: str, folder: Path) -> None:
    block = re.sub(r"^(.*)\bsteps=\d+", fewer_steps, block, flags=re.MULTILINE)
    block = re.sub(r'\bmodels="[^"]*"', 'models="elman", jobs=1, held_out=2000', block)
    block = block.replace('"builtin:python-docs"', '"poems.txt"')  # the commands try the large one
    done = attempt(cwd=folder, forked=True, code=block)
    assert done.code == 0, f"{name}\n{done.err}"


def test_the_two_commands_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    assert {"make setup", "make demo", "make test"} <= set(re.findall(r"make [a-z]+", text))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_make_has_the_targets_that_are_named(page: Path) -> None:
    named = set(re.findall(r"(?:`|^ {4}|^)make ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_readme_has_a_line_for_every_task() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| .+ \| `unrolled compare .+` \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(rows) == [name for name in discover.tasks.names() if discover.tasks.file(name) is None]


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_of_models_is_what_the_code_says() -> None:
    from benchmarks.models_page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda file: file.name)
def test_drawings_have_titles(file: Path) -> None:
    root = ElementTree.parse(file).getroot()
    assert root.get("role") == "img"
    assert root.findtext("{http://www.w3.org/2000/svg}title")
