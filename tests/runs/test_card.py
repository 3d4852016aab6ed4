"""The model card says what data says as text: no markup of a label or a file name has an effect."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import unrolled
from unrolled.runs.card import CARD, as_text

LABELS = ["<script>alert(1)</script>", "![x](http://a.b/c)\n# big", "*b*|`c`&lt;", "\x1b[31m_r_\u202e"]
TAG = re.compile(r"<[a-zA-Z!/]")


def shown(markdown: str) -> str:
    """What a reader of escaped Markdown sees."""
    return html.unescape(re.sub(r"\\([\\`*_\[\]|~])", r"\1", markdown))


@pytest.mark.parametrize("label", [*LABELS, "a_b __c__ _", "\\", "plain words: 3,000"])
def test_words_are_shown_as_they_are(label):
    text = as_text(label)
    assert "\n" not in text and not TAG.search(text)
    assert shown(text) == label.replace("\n", " ").replace("\x1b", "␛").replace("\u202e", "�")
    assert not re.search(r"(?<!\\)[*`\[\]|]", text)


def test_a_hostile_table_makes_a_harmless_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    name = "<img src=x onerror=a>\n![](b).csv"
    rows = "".join(f'"{"ab" * (i % 7 + 1)}{i}","{LABELS[i % 4]}"\n' for i in range(80))
    Path(name).write_text(f'"<b>words</b>","<i>kind</i>"\n{rows}', encoding="utf-8")
    settings = {"steps": 2, "threads": 1, "column": "<b>words</b>", "target": "<i>kind</i>"}
    run = unrolled.train(name, task="classify", model="dan", out=tmp_path / "run", settings=settings)
    card = (run.path / "README.md").read_text(encoding="utf-8")
    outside = "\n".join(line for line in card.split("\n") if not line.startswith("    "))  # blocks of code are text
    assert "script" in outside and "onerror" in outside
    assert not TAG.search(outside)
    assert not re.search(r"!\[", outside)
    assert "\x1b" not in card and "\u202e" not in card
    assert not re.search(r"^# big", card, re.M)


def test_no_sentence_is_indented():
    assert [line for line in CARD.splitlines() if line.startswith(" ")] == []  # Markdown would show it as code
