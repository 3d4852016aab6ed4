"""Names that are not UTF-8, of files, folders and runs: stored, printed, and found again."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.commands import attempt

ODD = os.fsdecode(b"caf\xe9")
QUICK = ["--steps", 1, "--threads", 1, "-o", f"run-{ODD}"]


def test_a_class_a_file_and_a_run_with_odd_names(tmp_path: Path) -> None:
    for name in (b"cl\xe9", b"other"):
        folder = tmp_path / f"set-{ODD}" / os.fsdecode(name)
        folder.mkdir(parents=True)
        for i in range(12):
            (folder / os.fsdecode(b"f\xe9%d.txt" % i)).write_text(f"word{i} {name[0]} a b")
    done = attempt("train", f"set-{ODD}", "--task", "classify", "--model", "prior", *QUICK, cwd=tmp_path)
    assert done.code == 0, done.err
    run = tmp_path / f"run-{ODD}"
    assert "caf\ufffd" in (run / "README.md").read_text(encoding="utf-8")
    assert "caf\ufffd" in (run / "report.html").read_text(encoding="utf-8")
    listed = attempt("runs", ".", "--json", cwd=tmp_path)
    assert json.loads(listed.out)[0]["path"] == f"run-{ODD}"
    said = attempt("predict", f"run-{ODD}", f"set-{ODD}", "-o", f"out-{ODD}.jsonl", cwd=tmp_path)
    assert said.code == 0, said.err
    lines = (tmp_path / f"out-{ODD}.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["prediction"] for line in lines} <= {os.fsdecode(b"cl\xe9"), "other"}


def test_numbers_of_a_run_with_an_odd_name_reach_tensorboard(tmp_path: Path) -> None:
    (tmp_path / f"{ODD}.txt").write_text("the cat sat on the mat. " * 60)
    sizes = ["--set", "d_state=4", "--set", "d_embedding=4", "--batch-size", 2, "--length", 4]
    done = attempt("train", f"{ODD}.txt", "--model", "elman", *sizes, *QUICK, cwd=tmp_path)
    assert done.code == 0, done.err
    assert list((tmp_path / f"run-{ODD}" / "tensorboard").iterdir())
