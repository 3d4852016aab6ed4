"""A real browser, driven by the DevTools protocol over a pipe: nothing need be installed but Chromium itself.

    with opened() as browser:
        browser.size("phone", "dark")
        browser.visit("http://127.0.0.1:8000/#/data")
        browser.until("document.querySelector('h1')")
        browser.click("button.main")
        browser.picture(Path("phone.png"))

Every request is kept in `browser.requests`, every message of its console and every error in `browser.console`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unrolled.exports.tools.scripts import BROWSERS

SIZES = {"phone": (390, 844, 2, True), "desktop": (1280, 900, 1, False)}  # width, height, pixels per unit, is a phone
TALLEST = 16_000  # pixels of one picture
PATIENCE = 30.0  # seconds that a page may take for what is waited for
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
BEGIN = """import fcntl, os, sys
for number, kept in [(n, fcntl.fcntl(int(given), fcntl.F_DUPFD, 10)) for n, given in zip((3, 4), sys.argv[1:])]:
    os.dup2(kept, number)
os.execvp(sys.argv[3], sys.argv[3:])"""  # the protocol is spoken on the file descriptors 3 and 4
DOMAINS = ("Page", "Network", "Runtime", "Log", "DOM")


class BrowserError(Exception):
    """What the browser could not do."""


def program() -> str | None:
    """The browser of this machine: the one in CHROMIUM, or the first that is found."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def opened() -> Iterator[Browser]:
    """A headless browser with an empty profile."""
    found = program()
    if found is None:
        raise BrowserError("no browser was found: install one with `apt-get install chromium`, or name it in CHROMIUM")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(found, profile)
        try:
            yield browser
        finally:
            browser.close()


class Browser:
    """A headless browser with one page: `ask` sends a command and gives its answer."""

    def __init__(self, program: str, profile: str) -> None:
        to_it, ours = os.pipe()
        its, from_it = os.pipe()[::-1]
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", BEGIN, str(to_it), str(its), *words],
            pass_fds=(to_it, its), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(its)
        self.out, self.into = os.fdopen(from_it, "rb"), os.fdopen(ours, "wb")
        self.number, self.session = 0, ""
        self.loaded = False
        self.requests: list[str] = []
        self.console: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in DOMAINS:
            self.ask(f"{domain}.enable")

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self.out.read(1)) != b"\0":
            if not byte:
                raise BrowserError("the browser has gone away")
            message += byte
        return dict(json.loads(message))

    def _note(self, message: dict[str, Any]) -> None:
        """An event that came meanwhile."""
        kind, facts = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif kind == "Page.loadEventFired":
            self.loaded = True
        elif kind == "Runtime.exceptionThrown":
            details = facts["exceptionDetails"]
            self.console.append(str(details.get("exception", {}).get("description") or details["text"]))
        elif kind == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(each.get("value", each.get("description"))) for each in facts["args"]))
        elif kind == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.console.append(facts["entry"]["text"])
        elif kind == "Page.javascriptDialogOpening":
            self.console.append(f"dialog: {facts['message']}")
            self.ask("Page.handleJavaScriptDialog", accept=True)

    def ask(self, method: str, **values: Any) -> dict[str, Any]:
        self.number += 1
        mine = self.number
        words = {"id": mine, "method": method, "params": values}
        if self.session:
            words["sessionId"] = self.session
        self.into.write(json.dumps(words).encode() + b"\0")
        self.into.flush()
        while True:
            message = self._next()
            if message.get("id") == mine:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            self._note(message)

    def close(self) -> None:
        self.session = ""
        with suppress(BrowserError, BrokenPipeError):  # it has gone away
            self.ask("Browser.close")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.into.close()

    # ---- what a person does

    def size(self, name: str, colours: str = "light") -> None:
        """The screen from now on: one of SIZES, light or dark."""
        width, height, density, is_phone = SIZES[name]
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=density,
                 mobile=is_phone)  # fmt: skip
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def visit(self, url: str) -> None:
        """Load a page anew."""
        self.ask("Page.navigate", url="about:blank")
        self.loaded = False
        self.requests.clear()
        self.console.clear()
        self.ask("Page.navigate", url=url)
        until = time.monotonic() + PATIENCE
        while not self.loaded:
            self.value("1")
            if time.monotonic() > until:
                raise BrowserError(f"{url} was not loaded within {PATIENCE:g} s")

    def value(self, expression: str) -> Any:
        """The value of an expression in the page, awaited where it is a promise."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                         userGesture=True)  # fmt: skip
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserError(str(details.get("exception", {}).get("description") or details["text"]))
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = PATIENCE) -> Any:
        """The value of an expression as soon as it is true; until then it may fail: its elements are not there."""
        end = time.monotonic() + seconds
        asked = f"(found => found instanceof Node ? true : found)({expression})"  # elements have no value here
        found = None
        while not found:
            with suppress(BrowserError):
                found = self.value(asked)
            if not found and time.monotonic() > end:
                shown = str(self.value("document.body.innerText"))[-1500:]
                raise BrowserError(f"not within {seconds:g} s: {expression}\nthe page shows:\n{shown}\n{self.console}")
            time.sleep(0.05)
        return found

    def _place(self, selector: str) -> tuple[float, float]:
        where = self.until(
            f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e || e.disabled) return null;
            e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();
            return r.width ? [r.x + r.width / 2, r.y + r.height / 2] : null; }})()"""
        )
        return float(where[0]), float(where[1])

    def click(self, selector: str) -> None:
        """Press the mouse on the first element that fits."""
        x, y = self._place(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        x, y = self._place(selector)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.value(f"(e => {{ e.focus(); e.select && e.select(); }})(document.querySelector({json.dumps(selector)}))")
        self.ask("Input.insertText", text=text)

    def choose(self, selector: str, value: str) -> None:
        """Choose an entry of a list by its value."""
        where, what = json.dumps(selector), json.dumps(value)
        self.until(f"[...(document.querySelector({where}) || {{options: []}}).options].some(o => o.value === {what})")
        self.value(
            f"""(e => {{ e.value = {what};
            for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {{bubbles: true}})); }})(
            document.querySelector({where}))"""
        )

    def press(self, key: str) -> None:
        """A key, such as Tab or Enter."""
        text = {"Enter": "\r", " ": " "}.get(key)
        more = {} if text is None else {"text": text}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=KEYS[key], **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=KEYS[key])

    def give(self, selector: str, files: Sequence[Path]) -> None:
        """Choose files in a file input."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", files=[str(file) for file in files], nodeId=node)

    def downloads(self, folder: Path) -> None:
        """Where files go that the page saves."""
        session, self.session = self.session, ""
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.session = session

    def picture(self, place: Path | None = None) -> bytes:
        """The whole page as PNG, also beyond the screen."""
        facts = self.value(
            "({width: innerWidth, height: document.documentElement.scrollHeight, density: devicePixelRatio})"
        )
        clip = {"x": 0, "y": 0, "width": facts["width"], "height": min(facts["height"], TALLEST // facts["density"]),
                "scale": 1}  # fmt: skip
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        found = base64.b64decode(shot["data"])
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(found)
        return found

    def outside(self, *own: str) -> list[str]:
        """Requests that went elsewhere than to these addresses."""
        return [url for url in self.requests if not url.startswith((*own, "data:", "blob:", "about:"))]
