"""Words of data on a page are text, wherever they stand: labels, columns, file names, texts, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest

import unrolled
from unrolled.inspect.tools.save import save_answer
from unrolled.pictures.letters import UNSAFE
from unrolled.report.page import write_report
from unrolled.report.settings import reading_defaults

WORDS = [
    "</title></style></svg><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)",
    "]]><b>&lt;&#106;javascript:alert(1)", "{{ 7 * 7 }}{% raw %}", "\x1b]0;x\x07\u202e\x00\ufffe",
]  # fmt: skip
FILE = "<img src=x>'\"&.csv"
OURS = {"href", "src", "action", "formaction", "data", "xlink:href"}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison on data in which every word is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = {
        "<i>words</i>": [f"{WORDS[i % 6]} {i}" for i in range(60)],
        "<b>kind</b>": [WORDS[i % 6] for i in range(60)],
    }
    settings = {"models": "dan", "steps": 2, "threads": 1, "column": "<i>words</i>", "target": "<b>kind</b>"}
    unrolled.compare(rows, "classify", out=folder / FILE, settings=settings)
    return folder / FILE


def check(text: str) -> None:
    """No element, attribute or address that could do anything."""
    parser = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False)
    document = parser.parse(text)
    parsed: list[ElementTree.Element] = list(document.iter())
    tags = {str(each.tag) for each in parsed}
    assert not tags & {"script", "iframe", "object", "embed", "form", "base", "link"}
    for each in parsed:
        for name, value in each.attrib.items():
            name = str(name).split("}")[-1]
            assert not name.startswith("on"), (each.tag, name)
            assert name not in OURS or str(value).startswith(("#", "data:image/")), (each.tag, name, value)
    assert not UNSAFE.search(text)


def test_the_page_of_a_comparison(compared: Path) -> None:
    text = write_report([compared]).read_text(encoding="utf-8")
    check(text)
    assert "{{ 7 * 7 }}" in text and "alert(1)" in text  # as text


def test_the_page_of_a_run(compared: Path) -> None:
    check(write_report([compared / "dan-0"]).read_text(encoding="utf-8"))


def test_pictures_of_an_inspection(compared: Path, tmp_path: Path) -> None:
    run: Any = unrolled.load(compared / "dan-0")
    answer = run.inspect("saliency", WORDS[0])
    for path in save_answer(answer, tmp_path):
        if path.suffix in (".svg", ".html"):
            check(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("settings", ["transformer", 3, None, ["a"], {"reading": "text"}])
def test_settings_of_any_kind_are_shown(settings):
    assert reading_defaults(settings) == {}
