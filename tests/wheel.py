"""Whether a wheel may be released: `python -m tests.wheel dist/*.whl`.

A wheel that was built without a compiler installs and works, has the same name as one with the native libraries, and is
slow. So the libraries inside are counted, and the tags must promise nothing of Python or torch.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LEVELS = {"x86_64": ("v2", "v3", "v4"), "amd64": ("v2", "v3", "v4"), "arm64": ("neon",), "aarch64": ("neon",)}


def faults(wheel: Path) -> list[str]:
    """What is wrong with a wheel, a sentence each."""
    *_, python, abi, platform = wheel.stem.split("-")
    found = [] if (python, abi) == ("py3", "none") else [f"{wheel.name}: the tag is {python}-{abi}, expected py3-none"]
    wanted = next((levels for machine, levels in LEVELS.items() if platform.endswith(machine)), ())
    if not wanted:
        found.append(f"{wheel.name}: no native libraries are known for the platform {platform}")
    with zipfile.ZipFile(wheel) as archive:
        stems = {Path(name).stem for name in archive.namelist() if name.startswith("unrolled/kernels/kernels_")}
        others = [name for name in archive.namelist() if name.startswith(("native/", "tests/", "build/"))]
    missing = [level for level in wanted if f"kernels_{level}" not in stems]
    found += [f"{wheel.name}: the native library {level} is missing; was there a compiler?" for level in missing]
    return found + [f"{wheel.name}: {name} does not belong into a wheel" for name in others]


if __name__ == "__main__":
    found = [fault for name in sys.argv[1:] for fault in faults(Path(name))]
    print("\n".join(found) or f"{len(sys.argv) - 1} wheels: every library is there")
    sys.exit(bool(found) or len(sys.argv) == 1)
