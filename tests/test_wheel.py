"""Wheels: one for every Python with the native libraries in it, and one without them where nothing compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest

from tests.wheel import faults
from unrolled.kernels import native

ROOT = Path(__file__).parents[1]


def build(folder: Path, **environment: str) -> tuple[Path, str]:
    """A wheel of this source tree, and what the build printed."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "native", folder / "native", dirs_exist_ok=True)
    (folder / "unrolled" / "kernels").mkdir(parents=True)
    for name in ("__init__.py", "kernels/__init__.py", "kernels/native.py"):
        shutil.copy(ROOT / "unrolled" / name, folder / "unrolled" / name)
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", "dist"]
    env = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel, done.stdout + done.stderr


def test_a_wheel_has_the_libraries_and_serves_every_python(tmp_path: Path) -> None:
    there = native.built()
    if not there or sys.platform != "linux":
        pytest.skip("no library was built here")
    version = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    made = tmp_path / "build" / f"lib.{sysconfig.get_platform()}-{version}" / "unrolled" / "kernels"
    made.mkdir(parents=True)
    for level in there:  # newer than the sources, so that nothing is compiled again
        shutil.copyfile(native.file_of(level), made / native.file_of(level).name)
        os.utime(made / native.file_of(level).name, (time.time() + 60,) * 2)
    wheel, _ = build(tmp_path)
    assert wheel.name.startswith("unrolled-")
    assert "-py3-none-" in wheel.name
    assert wheel.name.count("any") == 0
    assert faults(wheel) == []


def test_without_a_compiler_there_is_a_wheel_without_libraries(tmp_path: Path) -> None:
    wheel, printed = build(tmp_path, CC="/nonexistent", CXX="/nonexistent")
    with zipfile.ZipFile(wheel) as archive:
        assert "unrolled/kernels/native.py" in archive.namelist()
    assert len([fault for fault in faults(wheel) if "was there a compiler?" in fault]) >= 1
    assert "unrolled.kernels.kernels_" in printed  # what could not be compiled is named


def test_faults_of_a_wheel_are_found(tmp_path: Path) -> None:
    wheel = tmp_path / "unrolled-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("unrolled/kernels/kernels_v2.so", "unrolled/kernels/kernels_v4.so", "tests/small.py"):
            archive.writestr(name, "")
    assert [fault.split(": ", 1)[1] for fault in faults(wheel)] == [
        "the tag is cp311-cp311, expected py3-none",
        "the native library v3 is missing; was there a compiler?",
        "tests/small.py does not belong into a wheel",
    ]
    other = tmp_path / "unrolled-1.0-py3-none-any.whl"
    zipfile.ZipFile(other, "w").close()
    assert "no native libraries are known for the platform any" in faults(other)[0]
