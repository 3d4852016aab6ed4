"""Look at a report in a real browser: `python -m benchmarks.look comparisons/demo/report.html`.

Opens the page in headless Chromium at the width of a phone and of a desk, in light, dark and on paper; checks that the
table and the figures are there, that nothing is wider than the page, and that no request leaves it; and saves what was
seen beside the page.
"""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path
from typing import Any

from benchmarks.browser import SIZES, Browser, BrowserError, opened

QUESTION = """(() => {
  const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest('.scroll'));
  const drawn = [...document.querySelectorAll('figure svg')];
  return {
    title: document.title,
    tables: document.querySelectorAll('table').length,
    rows: document.querySelectorAll('table.scores tbody tr').length,
    figures: document.querySelectorAll('figure').length,
    drawn: drawn.length,
    flat: drawn.filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 40).length,
    nameless: drawn.filter(e => !e.querySelector('title') || !e.querySelector('desc')).length,
    width: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight,
    inner: innerWidth,
    wide: wide.slice(0, 5).map(e => e.tagName + '.' + (e.getAttribute('class') || '')),
    addresses: [...document.querySelectorAll('[src], link[href], a[href]')]
      .map(e => e.getAttribute('src') || e.getAttribute('href')).filter(a => !/^(#|data:)/.test(a)),
  };
})()"""


def look(browser: Browser, page: Path, name: str, colours: str) -> tuple[dict[str, Any], list[str], bytes]:
    """What the page says of itself at one size, the addresses that it asked for, and how it looks."""
    browser.size(name, colours)
    browser.visit(page.resolve().as_uri())
    seen: dict[str, Any] = browser.value(QUESTION)
    return seen, browser.outside(page.resolve().as_uri()), browser.picture()


def faults(seen: dict[str, Any], outside: list[str]) -> list[str]:
    """What is wrong with what was seen."""
    found = []
    if not seen["rows"]:
        found.append("the score table is missing or empty")
    if not seen["drawn"]:
        found.append("there is no drawn figure")
    if seen["flat"]:
        found.append(f"{seen['flat']} figures have no height")
    if seen["nameless"]:
        found.append(f"{seen['nameless']} figures have no title or description")
    if seen["width"] > seen["inner"]:
        found.append(f"the page is {seen['width']} wide on a screen of {seen['inner']}: {', '.join(seen['wide'])}")
    if outside or seen["addresses"]:
        found.append(f"the page leads outside: {', '.join([*outside, *seen['addresses']][:5])}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, nargs="?", default=Path("comparisons/demo/report.html"))
    parser.add_argument("--out", type=Path, help="Where the pictures go; default: beside the page.")
    parser.add_argument("--colours", choices=("light", "dark"), default="light")
    parser.add_argument("--paper", action="store_true", help="Also save it as it would be printed, as PDF.")
    given = parser.parse_args()
    if not given.page.is_file():
        sys.exit(f"{given.page} is not there: `make demo` writes it, or name another report")
    out = given.out or given.page.parent
    out.mkdir(parents=True, exist_ok=True)
    try:
        wrong = _looked(given.page, out, given.colours, given.paper)
    except BrowserError as error:
        sys.exit(str(error))
    sys.exit(1 if wrong else 0)


def _looked(page: Path, out: Path, colours: str, paper: bool) -> int:
    """How much is wrong with a page at all sizes; pictures of it are saved."""
    wrong = 0
    with opened() as browser:
        for name in SIZES:
            seen, outside, picture = look(browser, page, name, colours)
            place = out / f"look-{name}{'-dark' if colours == 'dark' else ''}.png"
            place.write_bytes(picture)
            found = faults(seen, outside)
            wrong += len(found)
            said = "; ".join(found) or "fine"
            print(
                f"{name}: {seen['rows']} rows, {seen['drawn']} drawings of {seen['figures']} figures: {said} ({place})"
            )
        if paper:
            printed = browser.ask("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
            (out / "look.pdf").write_bytes(base64.b64decode(printed["data"]))
    return wrong


if __name__ == "__main__":
    main()
