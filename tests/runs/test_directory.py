"""The run directory: whole after every kill and on a full disk, and damage is met before use."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.runs.storage import atomic, formats, manifest
from unrolled.runs.storage.directory import RunDirectory

SEALED = ["README.md", "codec/labels.json", "config.json", "model.safetensors", "predictions.jsonl"]


def weights(value: float) -> dict[str, torch.Tensor]:
    tensor = torch.full((50,), value)
    return {"weight": tensor, "tied": tensor}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "run")
    run.write_json("config.json", {"model": "lstm", "width": 3})
    run.write_json("codec/labels.json", ["a", "b", "c"])
    run.write_tensors("model.safetensors", weights(1.0))
    run.write_lines("predictions.jsonl", [{"text": "a"}, {"text": "b"}])
    run.append_metrics({"step": 1, "loss": 2.5})
    run.write_text("README.md", "# A run\n")
    run.seal()
    return run


def temp_names(path: Path) -> list[str]:
    return [file.name for file in path.rglob(".*")]


# Files as a whole -----------------------------------------------------------------------------------------------------


def test_everything_comes_back(run: RunDirectory):
    again = RunDirectory.open(run.path)
    again.verify()
    assert again.names() == SEALED
    assert again.names("codec") == ["codec/labels.json"]
    assert again.read_json("config.json") == {"model": "lstm", "width": 3}
    assert again.read_json("codec/labels.json") == ["a", "b", "c"]
    assert again.read_text("predictions.jsonl") == '{"text": "a"}\n{"text": "b"}\n'
    loaded = again.read_tensors("model.safetensors")
    assert torch.equal(loaded["weight"], torch.ones(50))
    assert loaded["weight"].data_ptr() == loaded["tied"].data_ptr()
    assert again.has("README.md")
    assert not again.has("report.html")
    assert temp_names(run.path) == []


def test_reading_what_is_no_tensor_needs_no_torch(run: RunDirectory):
    code = (
        "import sys; from unrolled.runs.storage.directory import RunDirectory; r = RunDirectory.open(sys.argv[1]);"
        "r.verify();"
        "r.read_json('config.json'); r.read_metrics(); r.write_text('report.html', 'page');"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert run.read_text("report.html") == "page"


def test_create_refuses_what_is_not_empty(run: RunDirectory, tmp_path: Path):
    with pytest.raises(
        UsageError, match=r"is not empty: name another directory with out=.*, or resume it with resume="
    ):
        RunDirectory.create(run.path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="name another directory with out="):
            RunDirectory.create(tmp_path / "letters", overwrite=overwrite)
    assert (tmp_path / "letters" / "love.txt").read_text() == "dear"
    with pytest.raises(UsageError, match="is a file"):
        RunDirectory.create(tmp_path / "letters" / "love.txt")


def test_overwrite_empties_an_old_run(run: RunDirectory):
    again = RunDirectory.create(run.path, overwrite=True)
    assert [entry.name for entry in run.path.iterdir()] == ["MANIFEST.json"]
    again.write_json("config.json", {})
    assert RunDirectory.open(run.path).names() == ["config.json"]


def test_a_run_killed_before_its_config_can_be_created_again(tmp_path: Path, dying_at, killed, other_process):
    for n in itertools.count():
        path = tmp_path / str(n)
        other_process()
        try:
            with dying_at(n):
                run = RunDirectory.create(path)
                run.write_json("codec/labels.json", [])
                run.write_json("config.json", {})
        except killed:
            other_process()
            try:
                RunDirectory.open(path).verify()
            except DataError:
                RunDirectory.create(path).write_json("config.json", {})
            assert RunDirectory.open(path).read_json("config.json") == {}
        else:
            break
    assert n > 20


def test_open_says_what_is_missing(run: RunDirectory, tmp_path: Path):
    with pytest.raises(DataError, match="does not exist"):
        RunDirectory.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match="it is a file"):
        RunDirectory.open(run.path / "README.md")
    for name in ("config.json", "MANIFEST.json"):
        shutil.copytree(run.path, tmp_path / name)
        (tmp_path / name / name).unlink()
        with pytest.raises(DataError, match=f"{name} is missing"):
            RunDirectory.open(tmp_path / name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../config.json", "codec/../../x", "/etc/passwd", "codec//x", "./x", "codec/", "a\\..\\b", "a\0b",
     "C:/x", ".hidden", "codec/.x.tmp-1-00000000-0"],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(run: RunDirectory, name: str):
    for act in (run.read_bytes, lambda n: run.write_text(n, "x"), lambda n: run.verify([n]), lambda n: run.seal([n])):
        with pytest.raises(DataError, match="not a path inside a run directory"):
            act(name)


def test_a_manifest_cannot_name_files_outside(run: RunDirectory, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    seals = manifest.read_manifest(run.path)
    seals.files["../secret"] = manifest.measure(tmp_path / "secret")
    (run.path / "MANIFEST.json").write_text(seals.to_text())
    with pytest.raises(DataError, match="not a path inside"):
        RunDirectory.open(run.path)


def test_links_and_pipes_do_not_lead_out(run: RunDirectory, tmp_path: Path):
    shutil.move(run.path / "codec", tmp_path / "codec")
    (run.path / "codec").symlink_to(tmp_path / "codec")
    with pytest.raises(DataError, match="points outside the run directory"):
        run.read_json("codec/labels.json")
    (run.path / "README.md").unlink()
    os.mkfifo(run.path / "README.md")
    with pytest.raises(DataError, match="this is a pipe, not a file; restore"):
        run.read_text("README.md")


def test_growing_files_are_not_sealed(run: RunDirectory):
    (run.path / "tensorboard").mkdir()
    (run.path / "tensorboard" / "events").write_text("x")
    (run.path / "figures").mkdir()
    (run.path / "figures" / "loss.svg").write_text("<svg/>")
    with pytest.raises(DataError, match="not listed"):
        run.read_text("figures/loss.svg")
    run.seal()
    assert run.names() == sorted([*SEALED, "figures/loss.svg"])
    with pytest.raises(ValueError, match="grows"):
        run.write_text("metrics.jsonl", "x")


def test_seal_does_not_bless_damage_unless_told(run: RunDirectory):
    (run.path / "README.md").write_text("# Another\n")
    with pytest.raises(DataError, match=r"README\.md is damaged"):
        run.seal()
    run.seal(["README.md"])
    assert run.read_text("README.md") == "# Another\n"


# Damage ---------------------------------------------------------------------------------------------------------------


def test_every_bit_flip_is_detected(run: RunDirectory, flip_bit):
    numbers = random.Random(1)
    for name in SEALED:
        good = (run.path / name).read_bytes()
        for _ in range(40):
            flip_bit(run.path / name, numbers)
            for act in (lambda name=name: run.read_bytes(name), run.verify, run.seal):
                with pytest.raises(DataError, match=f"{name} is damaged: its sha256 begins with .* restore it"):
                    act()
            (run.path / name).write_bytes(good)
    run.verify()


def test_bit_flips_in_the_manifest_are_detected(run: RunDirectory, flip_bit):
    numbers = random.Random(2)
    good = (run.path / "MANIFEST.json").read_bytes()
    for _ in range(300):
        flip_bit(run.path / "MANIFEST.json", numbers)
        with pytest.raises(DataError, match=r"MANIFEST\.json"):
            RunDirectory.open(run.path)
        (run.path / "MANIFEST.json").write_bytes(good)
    run.verify()


@pytest.mark.parametrize("name", SEALED)
def test_truncation_growth_and_loss_are_detected(run: RunDirectory, name: str):
    good = (run.path / name).read_bytes()
    for bad in (good[:-1], good[: len(good) // 2], b"", good + b"\n"):
        (run.path / name).write_bytes(bad)
        with pytest.raises(DataError, match=f"{name} is damaged: it has {len(bad)} bytes where .* says {len(good)}"):
            run.read_bytes(name)
        with pytest.raises(DataError, match=name):
            run.verify([name])
    (run.path / name).unlink()
    for act in (lambda: run.read_bytes(name), run.verify, run.seal):
        with pytest.raises(DataError, match=f"{name} is missing"):
            act()
    assert run.has(name)


def test_swapped_files_are_detected(run: RunDirectory):
    run.write_tensors("last.safetensors", weights(2.0))
    a, b = run.path / "model.safetensors", run.path / "last.safetensors"
    content = a.read_bytes(), b.read_bytes()
    a.write_bytes(content[1])
    b.write_bytes(content[0])
    for name in ("model.safetensors", "last.safetensors"):
        with pytest.raises(DataError, match=f"{name} is damaged"):
            run.read_tensors(name)


def test_a_file_that_was_put_there_is_not_read(run: RunDirectory):
    (run.path / "extra.json").write_text("{}")
    with pytest.raises(DataError, match=r"extra\.json is not listed in MANIFEST\.json"):
        run.read_json("extra.json")
    with pytest.raises(DataError, match=r"is missing and not listed"):
        run.read_json("other.json")


@pytest.mark.parametrize(
    ("number", "words"),
    [(2, "later release .format 2,.* update unrolled"), (10**30, "later release"), (True, "value format = True"),
     ("1", "invalid value"), (1.0, "invalid value"), (None, "invalid value"), (0, "invalid value"), ([], "invalid")],
)  # fmt: skip
def test_another_format_is_not_guessed(run: RunDirectory, number: object, words: str):
    values = json.loads((run.path / manifest.NAME).read_text())
    (run.path / manifest.NAME).write_text(json.dumps(formats.with_check({**values, "format": number})))
    with pytest.raises(DataError, match=words):
        RunDirectory.open(run.path)


# Kills and full disks -------------------------------------------------------------------------------------------------


def test_a_death_at_any_system_call_leaves_the_old_or_the_new(
    run: RunDirectory, tmp_path, dying_at, killed, other_process
):
    kept = set()
    for n in itertools.count():
        path = tmp_path / f"copy{n}"
        shutil.copytree(run.path, path)
        other_process()
        copy = RunDirectory.open(path)
        try:
            with dying_at(n):
                copy.write_tensors("model.safetensors", weights(2.0))
                copy.write_text("report.html", "new")
        except killed:
            pass
        else:
            break
        other_process()
        again = RunDirectory.open(path)
        again.verify()
        value = again.read_tensors("model.safetensors")["weight"][0].item()
        report = again.read_text("report.html") if again.has("report.html") else None
        assert (value, report) in {(1.0, None), (2.0, None), (2.0, "new")}
        kept.add((value, report))
        again.write_tensors("model.safetensors", weights(3.0))  # the next writer settles, sweeps and goes on
        again.seal()
        assert again.read_tensors("model.safetensors")["weight"][0] == 3.0
        assert temp_names(path) == []
    assert kept == {(1.0, None), (2.0, None), (2.0, "new")}
    assert n > 25


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_full_disk_leaves_the_old_and_says_so(run: RunDirectory, tmp_path: Path, full_at, code: int):
    for n in itertools.count():
        path = tmp_path / f"copy{n}"
        shutil.copytree(run.path, path)
        copy = RunDirectory.open(path)
        size = (path / "model.safetensors").stat().st_size
        failure: CannotWrite | None = None
        try:
            with full_at(n, code):
                copy.write_tensors("model.safetensors", weights(2.0))
        except CannotWrite as error:
            failure = error
        copy.verify()
        assert copy.read_tensors("model.safetensors")["weight"][0] in (1.0, 2.0)
        assert temp_names(path) == []
        if failure is None:
            break
        why = f" cannot be written ({os.strerror(code)}): "
        assert failure.exit_code == 5
        assert f"{path / 'model.safetensors'}{why}{size} bytes are needed and " in str(failure) or n > 1
        assert re.search(
            rf"{path}/(model.safetensors|MANIFEST.json){re.escape(why)}[\d,]+ bytes .* [\d,]+ are free", str(failure)
        )
    assert n > 5


def test_a_real_limit_on_file_size(run: RunDirectory):
    code = """
import resource, sys
from unrolled.core.errors import CannotWrite
from unrolled.runs.storage.directory import RunDirectory
run = RunDirectory.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
text = "x" * 50_000
for act in (lambda: run.write_text("README.md", text), lambda: run.append_metrics({"step": 2, "t": text})):
    try:
        act()
    except CannotWrite as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert "README.md cannot be written (File too large): 50,000 bytes are needed" in first
    assert "metrics.jsonl cannot be written (File too large): 50,0" in second
    run.verify()
    assert run.read_text("README.md") == "# A run\n"
    assert (run.path / "metrics.jsonl").read_bytes() == b'{"loss": 2.5, "step": 1}\n'
    assert temp_names(run.path) == []


def test_readers_beside_a_writer_never_see_a_mismatch(run: RunDirectory):
    code = """
import sys
from unrolled.runs.storage.directory import RunDirectory
run = RunDirectory.open(sys.argv[1])
for i in range(80):
    run.write_text("README.md", str(i) * 1000)
"""
    with subprocess.Popen([sys.executable, "-c", code, run.path]) as writer:
        seen = set()
        while writer.poll() is None:
            seen.add(run.read_text("README.md"))
    assert writer.returncode == 0
    assert len(seen) > 5


def test_two_writers_do_not_lose_each_others_entries(run: RunDirectory):
    code = """
import sys
from unrolled.runs.storage.directory import RunDirectory
run = RunDirectory.open(sys.argv[1])
for i in range(20):
    run.write_text(f"figures/{sys.argv[2]}-{i}.svg", str(i))
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, run.path, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    run.verify()
    assert len(run.names("figures")) == 40


def test_sweep_leaves_the_living(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        names = {
            "dead": ".model.safetensors.tmp-4194999-0123abcd-0",
            "other": f".model.safetensors.tmp-{other.pid}-0123abcd-0",
            "mine": atomic.temp_path(tmp_path / "a.json").name,
            "before me": f".a.json.tmp-{os.getpid()}-0123abcd-0",
            "not ours": ".notes.tmp-4194999",
            "plain": "model.safetensors",
        }
        for name in names.values():
            (tmp_path / name).write_text("x")
        (tmp_path / ".step-00000001.tmp-4194999-0123abcd-7").mkdir()
        (tmp_path / ".step-00000001.tmp-4194999-0123abcd-7" / "state").write_text("x")
        atomic.sweep(tmp_path)
        left = {entry.name for entry in tmp_path.iterdir()}
        other.communicate(b"\n")
    assert left == {names[key] for key in ("other", "mine", "not ours", "plain")}


def test_write_json_is_stable_and_refuses_nan(tmp_path: Path):
    path = tmp_path / "a.json"
    atomic.write_json(path, {"b": 1, "a": 2})
    assert path.read_text() == '{\n  "a": 2,\n  "b": 1\n}\n'
    with pytest.raises(ValueError, match="b is nan"):
        atomic.write_json(path, {"b": float("nan")})
    assert json.loads(path.read_text()) == {"a": 2, "b": 1}
    with pytest.raises(CannotWrite, match="No such file or directory"):
        atomic.write_text(tmp_path / "nowhere" / "a.json", "x")


# Metrics --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tail", [b'{"step": 3, "lo', b'{"step": 3}', b"\0\0\0\0", b'{"step": 3, "lo\n', b'{"step": "\xc3']
)
def test_a_half_written_line_costs_only_itself(run: RunDirectory, tail: bytes):
    path = run.path / "metrics.jsonl"
    run.append_metrics({"step": 2, "loss": 2.0})
    path.write_bytes(path.read_bytes() + tail)
    whole = [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.0}] + ([{"step": 3}] if tail == b'{"step": 3}' else [])
    assert run.read_metrics() == whole
    if not tail.endswith(b"\n"):
        run.append_metrics({"step": 4})
        assert run.read_metrics() == [*whole, {"step": 4}]
        assert path.read_bytes().endswith(b'\n{"step": 4}\n')
    run.cut_metrics(1)
    assert path.read_bytes() == b'{"loss": 2.5, "step": 1}\n'


def test_a_damaged_line_in_the_middle_is_named(run: RunDirectory):
    run.append_metrics({"step": 2})
    run.append_metrics({"step": 3})
    path = run.path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"step": 2', b'"step: 2'))
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 2: damaged"):
        run.read_metrics()


def test_cut_metrics_keeps_what_came_before(run: RunDirectory, tmp_path: Path, dying_at, killed):
    run.append_metrics({"event": "started"})
    for step in range(2, 6):
        run.append_metrics({"step": step})
    for n in itertools.count():
        try:
            with dying_at(n):
                run.cut_metrics(3)
        except killed:
            assert len(run.read_metrics()) in (6, 4)
        else:
            break
    assert [line.get("step") for line in run.read_metrics()] == [1, None, 2, 3]
    RunDirectory(tmp_path).cut_metrics(3)
    assert RunDirectory(tmp_path).read_metrics() == []
    with pytest.raises(ValueError, match="loss is nan"):
        run.append_metrics({"loss": float("nan")})


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "folder"])
def test_only_files_are_replaced(tmp_path: Path, kind: str):
    """A rename over a device would take it away from the whole machine."""
    target = tmp_path / "out.html"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to("/dev/null")
    before = os.lstat(target)
    with pytest.raises(CannotWrite, match="cannot be replaced"):
        atomic.write_text(target, "page")
    assert os.lstat(target).st_ino == before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_a_link_to_a_file_is_replaced_and_not_followed(tmp_path: Path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out").symlink_to(tmp_path / "precious")
    atomic.write_text(tmp_path / "out", "page")
    assert (tmp_path / "precious").read_text() == "mine" and (tmp_path / "out").read_text() == "page"
