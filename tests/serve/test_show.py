"""`unrolled show` as a user starts it, and what `unrolled serve` says of nothing to serve."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from tests.serve.conftest import RUNS

ROOT = Path(__file__).parents[2]
START = [sys.executable, "-c", "from unrolled.cli.main import main; main()"]


def start(*words: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*START, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), **more},
    )  # fmt: skip


def test_the_page_opens_on_what_a_folder_holds(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "next-token", tmp_path / "runs" / "one")
    shutil.copytree(RUNS.parent / "comparisons" / "folds", tmp_path / "comparisons" / "two")
    (tmp_path / "browser").write_text(f'#!/bin/sh\necho "$1" > {tmp_path / "opened"}\n')
    (tmp_path / "browser").chmod(0o755)
    process = start("show", cwd=tmp_path, BROWSER=str(tmp_path / "browser"))
    try:
        assert process.stdout is not None
        address = re.findall(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with httpx.Client(base_url=address, timeout=60) as client:
            assert {"one", "two"} <= set(client.get("/runs").json()["runs"])
            assert client.get("/comparisons").json()["comparisons"][0]["comparison"] == "two"
            assert client.get("/training").json()["enabled"] is False
            shutil.copytree(RUNS / "classify", tmp_path / "runs" / "three")  # while it is served
            assert "three" in client.get("/runs").json()["runs"]
        assert (tmp_path / "opened").read_text().strip().startswith(address)
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0 and log == ""


def test_an_empty_folder_is_shown_too(tmp_path: Path) -> None:
    process = start("show", "--no-browser", "--train", str(tmp_path), cwd=tmp_path, BROWSER="false")
    try:
        assert process.stdout is not None
        address = re.findall(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        assert httpx.get(f"{address}/runs", timeout=60).json() == {"runs": [], "about": []}
        assert httpx.get(f"{address}/training", timeout=60).json()["enabled"] is True
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    for words, code, said in (
        (("show", "nowhere"), 3, "nowhere: no such folder"),
        (("serve",), 2, "nothing to serve"),
        (("serve", "nowhere"), 2, "neither a run directory"),
    ):
        done = subprocess.run(
            [*START, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr
