"""`unrolled serve` as a user starts it: the examples of docs/serving.md run as written, and it ends when asked to."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.server_process import ROOT, Server, serving

RUNS = ROOT / "tests" / "fixtures" / "runs"
NAMES = {"lstm-python-docs": "next-token", "my-forecasts": "forecast", "my-classes": "classify"}
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:^    .*\n(?:\n(?=    (?!curl|unrolled)))?)+", PAGE, re.MULTILINE)
EXAMPLES = [re.sub(r"^    ", "", block, flags=re.MULTILINE).strip() for block in BLOCKS]
START = next(each for each in EXAMPLES if each.startswith("unrolled serve"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served")
    for name, run in NAMES.items():
        shutil.copytree(RUNS / run, place / "runs" / name)
    return place


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    _, serve, *words = shlex.split(START.replace("runs/lstm-python-docs", "runs"))
    assert serve == "serve"
    with (folder / "log").open("w") as log, serving(*words, folder=folder, log=log) as found:
        yield found


@pytest.fixture(scope="module")
def port(server: Server) -> str:
    return server.address.rpartition(":")[2]


def test_there_are_examples() -> None:
    assert sum(each.startswith("curl") for each in EXAMPLES) >= 3 and any("openai" in each for each in EXAMPLES)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the program curl is not installed")
@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.startswith("curl")])
def test_an_example_of_curl(example: str, port: str, folder: Path) -> None:
    words = shlex.split(example.replace("\\\n", " ").replace(":8000", f":{port}"))
    done = subprocess.run([*words, "--silent", "--show-error"], capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert "error" not in json.loads(last.removeprefix("data: ").replace("[DONE]", "{}")), done.stdout


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "import" in each.split()[:3]])
def test_an_example_of_python(example: str, port: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example.replace(":8000", f":{port}"), {})
    assert printed.getvalue()


def test_it_ends_when_it_is_asked_to(server: Server, folder: Path) -> None:
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0
    events = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    assert events[0]["event"] == "listening" and events[-1]["event"] == "stopped"
    assert {"loaded", "request"} <= {event["event"] for event in events}
    assert all("The import" not in json.dumps(event) for event in events)  # no text of users
