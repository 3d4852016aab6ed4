"""Makes docs/images/demo.svg and report.png from what `make demo` and `make look` leave behind: `make pictures`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
DEMO = ROOT / "comparisons" / "demo"
PART = "text"  # of the tour, whose table is shown
WIDTH = 100
TITLE = "The table of a comparison in the terminal: models with their scores, intervals and costs"
SHOWN = (1280, 1330)  # of the page, in pixels


def terminal() -> None:
    """What a part of the demo prints at its end: a finished comparison that is resumed prints its table at once."""
    environment = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    place = DEMO / PART
    words = [str(Path(sys.executable).parent / "unrolled"), "compare", "--resume", str(place.relative_to(ROOT))]
    asked = json.loads((place / "table.json").read_text(encoding="utf-8"))["command"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(f"[bold green]$[/] [bold]{asked}[/]", highlight=False)
    console.print(Text.from_ansi(done.stdout.rstrip()))
    (IMAGES / "demo.svg").write_text(named(console.export_svg(title="unrolled")), encoding="utf-8")


def named(drawn: str) -> str:
    """An SVG of rich with a title for those who do not see it."""
    begin, end = drawn.split(">", 1)
    return f'{begin} role="img" aria-label="{TITLE}">\n    <title>{TITLE}</title>{end}'


def page() -> None:
    """The top of the report as a browser shows it."""
    picture = Image.open(DEMO / "look-desktop.png").convert("RGB")
    picture = picture.crop((0, 0, *SHOWN)).resize((SHOWN[0] * 3 // 4, SHOWN[1] * 3 // 4))
    picture.quantize(64).save(IMAGES / "report.png", optimize=True)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    terminal()
    page()
