"""Look at a report in a real browser: `python -m benchmarks.look comparisons/demo/report.html`.

Opens the page in headless Chromium at the width of a phone and of a desk, in light, dark and on paper; checks that the
table and the figures are there, that nothing is wider than the page, and that no request leaves it; and saves what was
seen beside the page. The browser is driven by the DevTools protocol over a pipe, so nothing need be installed but it.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = {"phone": (390, 844, 2, True), "desktop": (1280, 900, 1, False)}  # width, height, pixels per unit, is a phone
TALLEST = 16_000  # pixels of one picture
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


class Browser:
    """A headless browser with one page: `ask` sends a command and gives its answer; events are kept."""

    def __init__(self, program: str, profile: str) -> None:
        to_it, ours = os.pipe()
        its, from_it = os.pipe()[::-1]
        # The protocol is spoken on the file descriptors 3 and 4, which only a shell can set for a program.
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_it} 4>&{its}', "sh", *words],
            pass_fds=(to_it, its), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(its)
        self.out, self.into = os.fdopen(from_it, "rb"), os.fdopen(ours, "wb")
        self.number, self.session, self.events = 0, "", []  # type: int, str, list[dict[str, Any]]
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self.out.read(1)) != b"\0":
            if not byte:
                sys.exit("the browser has gone away")
            message += byte
        return dict(json.loads(message))

    def ask(self, method: str, **values: Any) -> dict[str, Any]:
        self.number += 1
        words = {"id": self.number, "method": method, "params": values}
        if self.session:
            words["sessionId"] = self.session
        self.into.write(json.dumps(words).encode() + b"\0")
        self.into.flush()
        while True:
            message = self._next()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            self.events.append(message)

    def wait(self, event: str) -> None:
        while all(message.get("method") != event for message in self.events):
            self.events.append(self._next())

    def close(self) -> None:
        self.session = ""
        self.ask("Browser.close")
        self.process.wait(20)


def look(browser: Browser, page: Path, name: str, colours: str) -> tuple[dict[str, Any], list[str], bytes]:
    """What the page says of itself at one size, the addresses that it asked for, and how it looks."""
    width, height, density, is_phone = SIZES[name]
    browser.events.clear()
    for domain in ("Page", "Network", "Runtime"):
        browser.ask(f"{domain}.enable")
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=density,
                mobile=is_phone)  # fmt: skip
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    browser.ask("Page.navigate", url=page.resolve().as_uri())
    browser.wait("Page.loadEventFired")
    answer = browser.ask("Runtime.evaluate", expression=QUESTION, returnByValue=True)
    if "value" not in answer["result"]:
        sys.exit(f"{page}: the page could not be asked: {answer}")
    seen: dict[str, Any] = answer["result"]["value"]
    clip = {"x": 0, "y": 0, "width": width, "height": min(seen["height"], TALLEST // density), "scale": 1}
    shot = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    asked = [
        message["params"]["request"]["url"]
        for message in browser.events
        if message.get("method") == "Network.requestWillBeSent"
    ]
    outside = [url for url in asked if url != page.resolve().as_uri() and not url.startswith("data:")]
    return seen, outside, base64.b64decode(shot["data"])


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
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        sys.exit("no browser was found: install one with `apt-get install chromium`, or name it in CHROMIUM")
    out = given.out or given.page.parent
    out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        for name in SIZES:
            seen, outside, picture = look(browser, given.page, name, given.colours)
            place = out / f"look-{name}{'-dark' if given.colours == 'dark' else ''}.png"
            place.write_bytes(picture)
            found = faults(seen, outside)
            wrong += len(found)
            said = "; ".join(found) or "fine"
            print(
                f"{name}: {seen['rows']} rows, {seen['drawn']} drawings of {seen['figures']} figures: {said} ({place})"
            )
        if given.paper:
            printed = browser.ask("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
            (out / "look.pdf").write_bytes(base64.b64decode(printed["data"]))
        browser.close()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
