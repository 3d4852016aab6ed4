"""The example of docs/own_model.md is complete: it passes the laws, trains, and generates from its saved run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import run_unrolled

PAGE = Path(__file__).parents[2] / "docs" / "own_model.md"


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    path = tmp_path / "my_model.py"
    path.write_text(code[1])
    return path


def test_it_passes_the_laws(own_file: Path) -> None:
    done = run_unrolled("check", own_file)
    assert "holds" in done.stdout


def test_a_broken_copy_is_caught(own_file: Path) -> None:
    own_file.write_text(own_file.read_text().replace("(1 - z) * h + z", "h.mean(0) + z"))
    done = run_unrolled("check", own_file, code=1)
    assert "rows" in done.stderr


def test_it_trains_and_generates(own_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcabcabcabc\n" * 400)
    made = run_unrolled("train", text, "--with", own_file, "--steps", 10, "-o", tmp_path / "run", "--json")
    assert json.loads(made.stdout)["steps"] == 10
    assert run_unrolled("generate", tmp_path / "run", "--with", own_file, "--max-tokens", 5).stdout
    refused = run_unrolled("generate", tmp_path / "run", code=3)
    assert "--with" in refused.stderr and "my_model.py" in refused.stderr
    own_file.write_text(own_file.read_text() + "\n# changed\n")
    assert "changed" in run_unrolled("generate", tmp_path / "run", "--with", own_file, code=3).stderr
