"""Makes docs/images/demo.svg and report.png from what `make demo` and `make look` leave behind: `make pictures`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
DEMO = ROOT / "comparisons" / "demo"
WIDTH = 100
TITLE = "The table of a comparison in the terminal: models with their scores, intervals and costs"
SHOWN = (1280, 1330)  # of the page, in pixels


def demo_command() -> str:
    """The comparison of `make demo`."""
    found = re.search(
        r"\ndemo:.*?\$\(BIN\)/(unrolled compare .*?)\n", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    return found[1]


def terminal() -> None:
    """What the demo prints at its end: a finished comparison that is resumed prints its table at once."""
    environment = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    words = [str(Path(sys.executable).parent / "unrolled"), "compare", "--resume", str(DEMO.relative_to(ROOT))]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(f"[bold green]$[/] [bold]{demo_command()}[/]", highlight=False)
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
