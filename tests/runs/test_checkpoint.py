"""Checkpoints: readable after any kill, never damaged unnoticed, never with NaN."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from unrolled.core.errors import CannotWrite, DataError, Diverged
from unrolled.runs.storage.checkpoint import Checkpoints, flatten, unflatten

PARTS = ["state.safetensors", "facts.json", "MANIFEST.json"]


def state(step: int) -> dict[str, torch.Tensor]:
    weight = torch.full((40,), float(step))
    return {"weight": weight, "tied": weight, "step": torch.tensor(step), "half": torch.ones(3, dtype=torch.bfloat16)}


@pytest.fixture
def saved(tmp_path: Path) -> Checkpoints:
    """Checkpoints of the steps 100 and 200."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for step in (100, 200):
        checkpoints.save(step, state(step), {"epoch": step // 100, "losses": [0.1, 1 / 3]})
    return checkpoints


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(entry.name for entry in checkpoints.path.iterdir())


def step_of(checkpoints: Checkpoints) -> int:
    """The step of the latest checkpoint, all of which must fit together."""
    found = checkpoints.latest()
    assert found is not None
    assert found.tensors["weight"].tolist() == [float(found.step)] * 40
    assert found.tensors["step"].item() == found.step
    assert found.facts["epoch"] == found.step // 100
    return found.step


def test_a_checkpoint_comes_back(saved: Checkpoints):
    found = saved.latest()
    assert found is not None
    assert (found.step, found.facts, found.notes) == (200, {"epoch": 2, "losses": [0.1, 1 / 3]}, [])
    for name, tensor in state(200).items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)
    assert found.tensors["weight"].data_ptr() == found.tensors["tied"].data_ptr()


def test_none_was_ever_saved(tmp_path: Path):
    assert Checkpoints(tmp_path / "checkpoints").latest() is None
    (tmp_path / "checkpoints").mkdir()
    assert Checkpoints(tmp_path / "checkpoints").latest() is None


def test_the_last_two_are_kept(saved: Checkpoints):
    saved.save(300, state(300), {"epoch": 3})
    assert names(saved) == ["latest", "step-00000200", "step-00000300"]
    saved.save(123_456_789, state(123_456_789), {"epoch": 1})
    assert names(saved) == ["latest", "step-00000300", "step-123456789"]
    saved.save(99_999_999 + 10**9, state(3), {})
    assert names(saved) == ["latest", "step-1099999999", "step-123456789"]


def test_the_same_step_again(saved: Checkpoints):
    for count in range(1, 13):
        saved.save(200, state(200), {"epoch": 2, "count": count})
        found = saved.latest()
        assert found is not None
        assert found.facts["count"] == count
    assert names(saved) == ["latest", "step-00000200-11", "step-00000200-12"]


def test_a_step_back_drops_the_abandoned_course(saved: Checkpoints):
    saved.save(150, state(150), {"epoch": 1})
    assert names(saved) == ["latest", "step-00000100", "step-00000150"]
    assert step_of(saved) == 150


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_nan_and_infinity_are_never_written(saved: Checkpoints, bad: float, dtype: torch.dtype):
    tensor = torch.ones(5, 5, dtype=dtype)
    tensor[3, 2] = bad
    before = names(saved)
    with pytest.raises(Diverged, match="step 300: 'exp_avg' holds NaN or infinity, so no checkpoint was written"):
        saved.save(300, {**state(300), "exp_avg": tensor}, {"epoch": 3})
    assert names(saved) == before
    assert step_of(saved) == 200


def test_facts_hold_no_nan(saved: Checkpoints):
    with pytest.raises(ValueError, match=r"best is inf"):
        saved.save(300, state(300), {"best": math.inf})
    assert step_of(saved) == 200


# Damage ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS)
def test_damage_falls_back_to_the_one_before_and_says_so(saved: Checkpoints, part: str, flip_bit):
    path, numbers = saved.path / "step-00000200" / part, random.Random(0)
    good = path.read_bytes()

    def expect_fallback() -> None:
        found = saved.latest()
        assert found is not None
        assert found.step == 100
        assert f"step-00000200/{part}" in found.notes[0]
        assert found.notes[-1] == f"resuming from {saved.path / 'step-00000100'} (step 100)"

    for _ in range(60):
        flip_bit(path, numbers)
        expect_fallback()
        path.write_bytes(good)
    path.write_bytes(good[:-1])
    expect_fallback()
    path.unlink()
    expect_fallback()
    path.write_bytes((saved.path / "step-00000100" / part).read_bytes())
    expect_fallback()


def test_training_goes_on_after_a_fallback(saved: Checkpoints):
    (saved.path / "step-00000200" / "state.safetensors").write_bytes(b"")
    assert step_of(saved) == 100
    saved.save(150, state(150), {"epoch": 1})
    assert names(saved) == ["latest", "step-00000100", "step-00000150"]
    found = saved.latest()
    assert found is not None
    assert (found.step, found.notes) == (150, [])


def test_swapped_and_lost_checkpoints(saved: Checkpoints, tmp_path: Path):
    shutil.copytree(saved.path, tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost" / "step-00000200")
    found = Checkpoints(tmp_path / "lost").latest()
    assert found is not None
    assert found.step == 100
    assert "step-00000200 is missing" in found.notes[0]
    os.rename(saved.path / "step-00000100", saved.path / "aside")
    os.rename(saved.path / "step-00000200", saved.path / "step-00000100")
    os.rename(saved.path / "aside", saved.path / "step-00000200")
    with pytest.raises(DataError, match=r"no checkpoint in .* is complete: .*step-00000200.*step-00000100"):
        saved.latest()


def test_never_silently_from_scratch(saved: Checkpoints, tmp_path: Path):
    for step in (100, 200):
        path = saved.path / f"step-00000{step}" / "state.safetensors"
        path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DataError, match=r"no checkpoint in .* is complete: .*train the run again"):
        saved.latest()
    for step in (100, 200):
        shutil.rmtree(saved.path / f"step-00000{step}")
    with pytest.raises(DataError, match=r"no checkpoint in .* is complete: .*step-00000200 is missing"):
        saved.latest()


def test_damage_to_the_pointer(saved: Checkpoints, flip_bit):
    path, numbers = saved.path / "latest", random.Random(0)
    good = path.read_bytes()
    for _ in range(150):
        flip_bit(path, numbers)
        found = saved.latest()
        assert found is not None
        assert found.step == 200 or found.notes
        path.write_bytes(good)
    for bad in (
        b"",
        b"[]",
        b'{"checkpoint": "../../x", "manifest": ""}',
        b'{"checkpoint": "step-200", "manifest": ""}',
    ):
        path.write_bytes(bad)
        found = saved.latest()
        assert found is not None
        assert found.step == 200
        assert found.notes[0] == f"{path} is damaged"
    path.unlink()
    found = saved.latest()
    assert found is not None
    assert found.step == 200
    assert found.notes[0] == f"{path} is missing"


def test_a_pickle_in_place_of_the_state_is_not_read(saved: Checkpoints, tmp_path: Path):
    target = saved.path / "step-00000200"
    torch.save({"weight": torch.ones(3)}, target / "state.safetensors")
    found = saved.latest()
    assert found is not None
    assert found.step == 100


# Kills and full disks -------------------------------------------------------------------------------------------------


def test_a_death_at_any_system_call_leaves_the_old_or_the_new(saved, tmp_path, dying_at, killed, other_process):
    reached = set()
    for n in itertools.count():
        path = tmp_path / f"copy{n}"
        shutil.copytree(saved.path, path)
        other_process()
        try:
            with dying_at(n):
                Checkpoints(path).save(300, state(300), {"epoch": 3})
        except killed:
            pass
        else:
            break
        other_process()
        copy = Checkpoints(path)
        found = copy.latest()
        assert found is not None
        assert found.notes == []
        reached.add(step_of(copy))
        for step in (300, 400):
            copy.save(step, state(step), {"epoch": step // 100})
            assert step_of(copy) == step
        assert names(copy)[:2] == ["latest", "step-00000300" + ("-1" if "step-00000300-1" in names(copy) else "")]
        assert len(names(copy)) == 3
    assert reached == {200, 300}
    assert n > 20


def test_a_death_during_the_first_save(tmp_path, dying_at, killed, other_process):
    for n in itertools.count():
        other_process()
        try:
            with dying_at(n):
                Checkpoints(tmp_path / str(n)).save(100, state(100), {"epoch": 1})
        except killed:
            found = Checkpoints(tmp_path / str(n)).latest()
            assert found is None or (found.step, found.notes) == (100, [])
        else:
            break
    assert n > 15


def test_a_full_disk_leaves_the_old_and_says_so(saved: Checkpoints, tmp_path: Path, full_at):
    for n in itertools.count():
        path = tmp_path / f"copy{n}"
        shutil.copytree(saved.path, path)
        failure = None
        try:
            with full_at(n):
                Checkpoints(path).save(300, state(300), {"epoch": 3})
        except CannotWrite as error:
            failure = str(error)
        if failure is None:
            break
        assert ".tmp-" not in failure
        assert "cannot be written (No space left on device)" in failure
        assert "bytes are needed and" in failure
        found = step_of(Checkpoints(path))
        assert names(Checkpoints(path))[:3] == ["latest", "step-00000100", "step-00000200"]
        assert (found == 300) == ("step-00000300" in names(Checkpoints(path)))
        assert [name for name in names(Checkpoints(path)) if name.startswith(".")] == []
    assert n > 5


@pytest.mark.parametrize("n", [30, pytest.param(200, marks=pytest.mark.long)])
def test_many_kills(tmp_path: Path, n: int):
    script = Path(__file__).with_name("kill_writer.py")
    command = [sys.executable, str(script), str(tmp_path / "run"), str(n)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    facts = json.loads(done.stdout)
    assert facts["wrong"] == []
    assert facts["kills"] == n
    assert facts["within_a_write"] >= n // 20  # the kills did come while something was being written
    assert facts["left"] == []


# Trees ----------------------------------------------------------------------------------------------------------------


def test_a_carried_state_goes_on_where_it_was(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    carried, structure = flatten(({"h": torch.randn(2, 3)}, None), "carried")
    checkpoints.save(1, carried, {"structure": structure})
    found = checkpoints.latest()
    assert found is not None
    tree = unflatten(found.tensors, found.facts["structure"])
    assert torch.equal(tree[0]["h"], carried["carried/0/h"])
    assert tree[1] is None
