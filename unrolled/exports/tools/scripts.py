"""JavaScript of an export, run in a browser or in node where there is one: what it computes, as JSON."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
SECONDS = 300.0


def engine_here() -> str | None:
    """The program that runs JavaScript on this machine: a browser, or node; None: there is none."""
    return next((name for name in (*BROWSERS, "node") if shutil.which(name)), None)


def ran(engine: str, page: str, question: str) -> Any:
    """The value of an expression in a page, whose scripts have run."""
    with tempfile.TemporaryDirectory() as folder:
        return (
            _in_node(Path(folder), page, question)
            if engine == "node"
            else _in_browser(engine, Path(folder), page, question)
        )


RESULT = (
    "<pre id=result></pre><script>document.getElementById('result').textContent = JSON.stringify(%s);</script></body>"
)


def _in_browser(engine: str, folder: Path, page: str, question: str) -> Any:
    asked = page.replace("</body>", RESULT % question.replace("</", "<\\/"))
    (folder / "page.html").write_text(asked, encoding="utf-8")
    words = [engine, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", (folder / "page.html").as_uri()]
    done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout.decode("utf-8", "replace"), re.DOTALL)
    if found is None or not found[1]:
        raise RuntimeError(f"{engine} gave no result")
    return json.loads(html.unescape(found[1]))


DOCUMENT = """
const found = page.matchAll(/<script[^>]* id="(\\w+)">([^]*?)<\\/script>/g);
const parts = Object.fromEntries([...found].map(each => [each[1], each[2]]));
globalThis.document = {getElementById: id => ({textContent: parts[id], addEventListener() {}, value: ""})};
"""


def _in_node(folder: Path, page: str, question: str) -> Any:
    (folder / "page.html").write_text(page, encoding="utf-8")
    (code,) = re.findall(r'<script id="code">(.*?)</script>', page, re.DOTALL)
    before = f'const page = require("fs").readFileSync({json.dumps(str(folder / "page.html"))}, "utf8");{DOCUMENT}'
    text = f"{before}{code}\nprocess.stdout.write(JSON.stringify({question}));"
    (folder / "run.js").write_text(text, encoding="utf-8")
    done = subprocess.run(["node", folder / "run.js"], capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip()[-300:])
    return json.loads(done.stdout)
