"""Nothing is executed or opened because a directory names it: it is asked for again, and its fingerprint compared."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.commands import Ended, attempt
from unrolled.comparison.files import read_plan, write_plan
from unrolled.comparison.plan import Plan
from unrolled.core.errors import DataError
from unrolled.data.files.file_names import file_of_row
from unrolled.runs.storage import manifest
from unrolled.runs.storage.directory import RunDirectory

OWN = """
from pathlib import Path
from unrolled.models import elman
Path({marker!r}).touch()
MODEL = elman.MODEL
"""
ENDS = ("result.json", "README.md", "predictions.jsonl", "units.safetensors", "figures", "report.html", "recipe.toml")
SMALL = {"steps": 2, "d_state": 4, "d_embedding": 4, "batch_size": 4, "threads": 1, "evaluate_every": 1}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.fixture
def own(tmp_path: Path, marker: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(OWN.format(marker=str(marker)))
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("the state is carried from chunk to chunk. " * 40)
    return path


def words(settings: dict[str, Any]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def run(*given: object, cwd: Path) -> Ended:
    ended = attempt(*given, cwd=cwd)
    assert "Traceback" not in ended.err and "internal error" not in ended.err, ended.err
    return ended


def unfinished(path: Path) -> Path:
    """As after a kill before the end."""
    seals = manifest.read_manifest(path)
    for name in [name for name in seals.files if name.split("/")[0] in ENDS]:
        del seals.files[name]
        (path / name).unlink()
    (path / manifest.NAME).write_text(seals.to_text())
    return path


def test_no_command_runs_the_file_of_a_model_unasked(own: Path, text: Path, marker: Path, tmp_path: Path) -> None:
    done = run("train", "text.txt", "--with", "mine.py", "-o", "run", *words(SMALL), cwd=tmp_path)
    assert done.code == 0, done.err
    marker.unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "broken")
    unfinished(tmp_path / "broken")
    commands = [
        ("predict", "run", "text.txt"), ("score", "run", "text.txt"), ("generate", "run", "--max-tokens", 3),
        ("evaluate", "run", "text.txt"), ("evaluate", "run", "--trained-on", "text.txt"),
        ("inspect", "run", "parameters"),
        ("train", "text.txt", "--resume", "run"), ("train", "text.txt", "--resume", "broken"),
        ("train", "text.txt", "--from", "run", "-o", "other"),
    ]  # fmt: skip
    for given in commands:
        ended = run(*given, cwd=tmp_path)
        assert ended.code == 3 and "--with PATH/mine.py" in ended.err, given
        assert not marker.exists() and str(own) not in ended.opened, given
    own.write_text(own.read_text() + "# changed\n")
    for given in commands[:-1]:
        ended = run(*given, "--with", "mine.py", cwd=tmp_path)
        assert ended.code == 3 and "its content has changed since this run was made with it" in ended.err, given
        assert not marker.exists(), given
    own.write_text(own.read_text().removesuffix("# changed\n"))
    assert run("generate", "run", "--max-tokens", 3, "--with", "mine.py", cwd=tmp_path).code == 0
    assert marker.exists()
    assert run("report", "run", cwd=tmp_path).code == 0
    assert run("runs", ".", cwd=tmp_path).code == 0


def test_a_comparison_cannot_name_code_data_or_other_folders(
    own: Path, text: Path, marker: Path, tmp_path: Path
) -> None:
    given = ("--models", "memoryless", "--steps", 2, "--jobs", 1, "-o", "out", "--set", "threads=1")
    done = run("compare", "text.txt", "--task", "next-token", *given, cwd=tmp_path)
    assert done.code == 0, done.err
    plan = read_plan(tmp_path / "out")

    def planned(**changes: Any) -> None:
        write_plan(tmp_path / "out", Plan.model_construct(**{**plan.__dict__, "own_file_sha256": None, **changes}))

    resume = ("compare", "text.txt", "--resume", "out")
    planned(own_file=str(own))
    ended = run(*resume, cwd=tmp_path)
    assert ended.code == 3 and "--with" in ended.err and not marker.exists()
    ended = run(*resume, "--with", "mine.py", cwd=tmp_path)
    assert ended.code == 3 and "sha256" in ended.err and not marker.exists()
    planned(own_file=str(own), own_file_sha256="0" * 64)
    ended = run(*resume, "--with", "mine.py", cwd=tmp_path)
    assert ended.code == 3 and "its content has changed" in ended.err and not marker.exists()
    planned()
    ended = run("compare", "--resume", "out", cwd=tmp_path)
    assert ended.code == 3 and "unrolled compare text.txt --resume out" in ended.err
    assert str(text) not in ended.opened
    assert run(*resume, cwd=tmp_path).code == 0
    planned(settings={**plan.settings, "start.from_run": "/etc"})
    ended = run(*resume, cwd=tmp_path)
    assert ended.code == 3 and "from_run" in ended.err and not any(name.startswith("/etc") for name in ended.opened)


def test_a_plan_names_folders_within_the_comparison_only(tmp_path: Path) -> None:
    from unrolled.comparison.plan import Job
    from unrolled.core.errors import UsageError

    for folder in ("../precious", "/tmp/precious", "..", ".", "", ".hidden", "a/b", "a\\b", "a\0b"):
        with pytest.raises(UsageError, match="not a folder of this comparison"):
            Job.parse({"folder": folder, "label": "x", "kind": "model", "model": "elman"})
        with pytest.raises(UsageError, match="not a folder of this comparison"):
            Job.parse({"folder": "x", "label": "x", "kind": "model", "model": "elman", "members": [folder]})


def test_a_run_does_not_open_the_data_it_names(text: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret " * 100)
    unrolled.train(text, model="elman", out=tmp_path / "run", settings=SMALL)
    directory = RunDirectory.open(tmp_path / "run")
    directory.write_json("config.json", directory.read_json("config.json") | {"source": str(secret)})
    shutil.copytree(tmp_path / "run", tmp_path / "broken")
    unfinished(tmp_path / "broken")
    for given in (("evaluate", "run"), ("train", "--resume", "broken"), ("evaluate", "run", "text.txt")):
        ended = run(*given, cwd=tmp_path)
        assert ended.code == (0 if len(given) == 3 and given[0] == "evaluate" else 3), ended.err
        assert str(secret) not in ended.opened, given
    assert run("train", "text.txt", "--resume", "broken", cwd=tmp_path).code == 0


def test_targets_in_a_file_of_their_own_are_named_again(tmp_path: Path) -> None:
    for name, letter in (("a.src", "s"), ("a.tgt", "t")):
        (tmp_path / name).write_text("".join(f"{letter}{i} {letter}\n" for i in range(40)))
    settings = {"target_file": str(tmp_path / "a.tgt"), "threads": 1}
    unrolled.train(tmp_path / "a.src", "translate", "dictionary", out=tmp_path / "run", settings=settings)
    ended = run("evaluate", "run", "--trained-on", "a.src", cwd=tmp_path)
    assert ended.code == 3 and "--target-file" in ended.err and str(tmp_path / "a.tgt") not in ended.opened
    again = ("--target-file", tmp_path / "a.tgt")
    assert run("evaluate", "run", "--trained-on", "a.src", *again, cwd=tmp_path).code == 0
    assert run("evaluate", "run", "--trained-on", "a.src", "--target-file", "a.tgt", cwd=tmp_path).code == 0
    unfinished(tmp_path / "run")
    for given in ((), ("--target-file", "a.src")):
        assert run("train", "a.src", "--resume", "run", *given, cwd=tmp_path).code == 3
    assert run("train", "a.src", "--resume", "run", "--target-file", "./a.tgt", cwd=tmp_path).code == 0


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.png", "deep/../../secret.png", "link.png", "deep/link.png"])
def test_a_table_does_not_lead_out_of_its_folder(name: str, tmp_path: Path) -> None:
    home = tmp_path / "data"
    (home / "deep").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (home / "link.png").symlink_to(tmp_path / "secret.png")
    (home / "deep" / "link.png").symlink_to("../../secret.png")
    (home / "own.png").write_bytes(b"own")
    with pytest.raises(DataError, match=r"row 3: .* points outside"):
        file_of_row(name, [home, home / "images"], "row 3")
    for fine in ("own.png", str(home / "own.png"), "deep/../own.png"):
        assert file_of_row(fine, [home, home / "images"], "row 3") == home / fine
    assert file_of_row("nothing.png", [home], "row 3") is None


def test_saved_predictions_do_not_name_files() -> None:
    from unrolled.core import discover

    for task, line in (("caption", {"image": "/etc/passwd", "target": "x"}),
                       ("recognise", {"vectors": "/etc/passwd", "target": "x"})):  # fmt: skip
        with pytest.raises(DataError, match="not opened"):
            discover.tasks.load(task).Task.input_of(None, line)
