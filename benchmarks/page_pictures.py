"""Pictures of the page for its docs, from a real comparison on built-in data: `python -m benchmarks.page_pictures`.

Starts a server, drops a file on its page, waits while models race, and takes a picture of each room (needs chromium).
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.browser import Browser, opened
from benchmarks.server_process import ROOT, serving
from unrolled.core import discover

IMAGES = ROOT / "docs" / "images"
TALLEST = 1150  # pixels of a picture
COLOURS = 128  # of a picture: lines and letters need no more
MINUTES, MODELS = 2.0, "gru,lstm,transformer,tcn"
LETTERS, EVERY = 200_000, 4
TRIED, PROMPT, LOOKED_AT = ("lstm", "transformer"), "The import statement", (2, 4)
UNDER_WAY = 0.75  # share of the time after which the race is taken


def built_in(name: str) -> Any:
    spec = discover.builtins.declaration(name)
    return spec.read(spec.settings())


def write_data(folder: Path) -> Mapping[str, Path]:
    """A table and a text."""
    table, text = folder / "letter-names.csv", folder / "python-docs.txt"
    rows = built_in("unicode-names")[::EVERY]
    with table.open("w", newline="", encoding="utf-8") as file:
        to = csv.DictWriter(file, rows[0].keys())
        to.writeheader()
        to.writerows(rows)
    text.write_text(built_in("python-docs")[:LETTERS], encoding="utf-8")
    return {"table": table, "text": text}


def keep(browser: Browser, name: str) -> None:
    """A picture of the page as it is, in few colours."""
    shot = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    shot = shot.crop((0, 0, shot.width, min(shot.height, TALLEST)))
    shot.quantize(COLOURS).save(IMAGES / f"page-{name}.png", optimize=True)
    print(f"{name}: {(IMAGES / f'page-{name}.png').stat().st_size:,} bytes")


def main() -> None:
    with tempfile.TemporaryDirectory() as place, opened() as browser:
        data = write_data(Path(place))
        with serving("--train", "site", folder=Path(place)) as server:
            _rooms(browser, server.address, data)


def _rooms(browser: Browser, address: str, data: Mapping[str, Path]) -> None:
    browser.size("desktop", "light")
    browser.visit(f"{address}/#/data")
    browser.give("#file", [data["table"]])
    browser.until("document.querySelector('#minutes')", 120)
    keep(browser, "data")
    browser.visit(f"{address}/#/data")
    browser.give("#file", [data["text"]])
    browser.until("document.querySelector('#minutes')", 120)
    browser.type("#minutes", str(MINUTES))
    browser.click("#room form summary")
    browser.type("#models", MODELS)
    browser.click("#room form button")
    passed = "document.querySelector('progress[max]').value / document.querySelector('progress[max]').max"
    browser.until(f"document.querySelector('progress[max]') && {passed} > {UNDER_WAY}", 600)
    keep(browser, "race")
    browser.until("document.querySelector('#try')", 600)
    runs = browser.value("fetch('/runs').then(answer => answer.json()).then(found => found.runs)")
    tried(browser, address, *[next(name for name in runs if f".{model}-" in name) for model in TRIED])
    browser.visit(f"{address}/#/take")
    browser.until("document.querySelectorAll('#room .panel').length > 2", 120)
    keep(browser, "take")


def tried(browser: Browser, address: str, one: str, other: str) -> None:
    """Two models that write, side by side, and what happens in the first."""
    browser.visit(f"{address}/#/play?run={one}&run2={other}")
    browser.until("document.querySelector('button.run')", 120)
    browser.type(".input textarea", PROMPT)
    browser.click("button.run")
    browser.until("[...document.querySelectorAll('.result > .hint')].filter(e => e.textContent).length === 2", 120)
    browser.click("button.token:nth-of-type(4)")
    keep(browser, "play")
    browser.visit(f"{address}/#/inside?run={one}")
    browser.until("document.querySelector('.positions button')", 120)
    browser.type(".input textarea", PROMPT)
    browser.click("button.main")
    word = PROMPT.split()[1]
    browser.until(f"(document.querySelector('.positions') || document.head).textContent.includes({word!r})", 120)
    for position in LOOKED_AT:
        browser.click(f".positions button:nth-of-type({position})")
    keep(browser, "inside")


if __name__ == "__main__":
    main()
