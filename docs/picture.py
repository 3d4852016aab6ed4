"""Makes docs/images/demo.svg: runs the commands of `make demo` and draws what the terminal shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
WIDTH = 100


def demo_commands() -> list[str]:
    recipe = re.search(r"\ndemo:.*?\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text())
    assert recipe is not None
    return [line.strip().replace("$(BIN)/", "") for line in recipe[1].splitlines()]


def main() -> None:
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115
    environment = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for command in demo_commands():
        done = subprocess.run(
            command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if command.startswith("unrolled"):
            console.print(f"[bold green]$[/] [bold]{command}[/]", highlight=False)
            console.print(Text.from_ansi(done.stdout.rstrip()))
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    console.save_svg(str(ROOT / "docs" / "images" / "demo.svg"), title="unrolled")


if __name__ == "__main__":
    main()
