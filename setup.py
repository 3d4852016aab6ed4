"""The native kernels: one plain shared library per instruction set, from the same sources.

    python setup.py build_ext --inplace      # after an edit in native/; `make setup` does it too

Everything else about the package is in pyproject.toml. A library that cannot be compiled is left out: the package then
installs all the same, and torch does the work (docs/native.md).
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = sorted(str(path) for path in Path("native").glob("*.cpp"))
HEADERS = sorted(str(path) for path in Path("native").glob("*.h"))
FLAGS = ["-O3", "-std=c++17", "-fno-math-errno", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-g0"]
OPENMP = ["-fopenmp"] if sys.platform == "linux" else []  # compiled in, never linked: torch brings the one runtime
# Flags ask for no more than torch has seen when it reports AVX2 or AVX512. VBYTES: bytes of a register; ROWS, COLS:
# rows and registers of a tile of a product (docs/decisions/0031).
X86 = {
    "v2": ["-DVBYTES=16", "-DROWS=4", "-DCOLS=2"],
    "v3": ["-mavx2", "-mfma", "-DVBYTES=32", "-DROWS=3", "-DCOLS=4"],
    "v4": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mprefer-vector-width=512",
           "-DVBYTES=64", "-DROWS=8", "-DCOLS=2"],
}  # fmt: skip
ARM = {"neon": ["-DVBYTES=16", "-DROWS=8", "-DCOLS=2"]}
MACHINES = {"x86_64": X86, "AMD64": X86, "arm64": ARM, "aarch64": ARM}


class Libraries(build_ext):
    """Shared libraries without anything of Python: no suffix of an interpreter, no symbol that it would look for."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

    def build_extension(self, ext: Extension) -> None:
        """Levels are the same sources with other flags: each has its own object files."""
        temporary, self.build_temp = self.build_temp, str(Path(self.build_temp, ext.name))
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = temporary

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []


class Wheel(bdist_wheel):
    """One wheel per platform for every Python: py3-none-<platform>."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def library(level: str, flags: list[str]) -> Extension:
    return Extension(
        f"unrolled.kernels.kernels_{level}", SOURCES, depends=[*HEADERS, "setup.py"], language="c++", optional=True,
        extra_compile_args=[*FLAGS, *OPENMP, *flags, f'-DLEVEL="{level}"'],
    )  # fmt: skip


setup(
    ext_modules=[library(level, flags) for level, flags in MACHINES.get(platform.machine(), {}).items()],
    cmdclass={"build_ext": Libraries, "bdist_wheel": Wheel},
)
