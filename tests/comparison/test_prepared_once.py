"""The runs of a comparison use data that was prepared once, whichever process does them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import unrolled
from unrolled.data import labelled_prepare

SETTINGS = {
    "models": "dan,memoryless", "steps": 2, "evaluate_every": 2, "tokens": "word", "vocabulary": 60, "d_embedding": 4,
    "split": "60/20/20", "threads": 1, "batch_size": 16,
}  # fmt: skip
COUNTING = """
import os
from unrolled.data import labelled_prepare

scan = labelled_prepare.scan_examples

def counting(*arguments):
    with open(os.environ["COUNTED"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    return scan(*arguments)

labelled_prepare.scan_examples = counting
"""


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that every process, also those that are started, adds a line to when it prepares labelled data."""
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNTED", str(tmp_path / "counted"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(COUNTING)  # what Python does first in every process
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(labelled_prepare, "scan_examples", labelled_prepare.scan_examples)  # put back at the end
    exec(COUNTING, {})
    return tmp_path / "counted"


def rows(n: int = 60) -> list[dict[str, str]]:
    return [{"text": f"{'poor' if i % 3 else 'fine'} number {i}", "label": "ab"[i % 3 > 0]} for i in range(n)]


@pytest.mark.long
def test_a_table_is_prepared_once_for_all_processes(counted: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows()))
    done = unrolled.compare(path, "classify", tmp_path / "out", SETTINGS | {"jobs": 2})
    assert len(done.rows) >= 3
    assert counted.read_text().split() == [str(os.getpid())]
    kept = [json.loads(path.read_text())["facts"] for path in (tmp_path / "out").glob("*/data.json")]
    assert len(kept) >= 2 and len({facts["fingerprint"] for facts in kept}) == 1


def test_data_in_memory_is_prepared_once(counted: Path, tmp_path: Path) -> None:
    unrolled.compare(rows(), "classify", tmp_path / "out", SETTINGS)
    assert len(counted.read_text().split()) == 1
