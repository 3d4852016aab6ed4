"""The room inside in a real browser: every question that applies is drawn; positions are looked at, and two pinned."""

from __future__ import annotations

import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

import unrolled
from benchmarks.browser import Browser
from tests.serve.conftest import RUNS
from tests.serve.page.looks import at_every_size, require_sound
from unrolled.core import discover

KINDS = ["next-token", "next-token-tied", "classify", "translate", "forecast", "recall", "caption", "tag-counts"]


def inside(browser: Browser, address: str, run: str, question: str = "") -> None:
    browser.visit(f"{address}/#/inside?run={run}&question={question}")
    browser.until("document.querySelector('.reading')")


@pytest.mark.parametrize("name", KINDS)
def test_every_question_that_applies_is_answered(browser: Browser, address: str, name: str) -> None:
    run = unrolled.load(RUNS / name)
    able = [each for each in discover.questions.names() if run.unanswered(each) is None]
    inside(browser, address, name)
    offered = browser.value("[...[...document.querySelectorAll('select')].at(-1).options].map(o => o.value)")
    assert sorted(offered) == able
    for question in able:
        browser.value(
            f"(e => {{ e.value = {question!r}; e.dispatchEvent(new Event('change')); }})"
            "([...document.querySelectorAll('select')].at(-1))"
        )
        browser.until("document.querySelector('.reading')")
        own = run.inspect(question, run.task.offered(run.first_input()).value)
        drawn = browser.until("document.querySelectorAll('.picture').length")
        assert drawn == len(own.pictures), question
        shown = "[...document.querySelectorAll('.picture')].every(e => e.querySelector('svg, table, .tokens, img'))"
        assert browser.value(shown), question
        require_sound(browser, address)


def test_two_positions_are_pinned(browser: Browser, address: str) -> None:
    inside(browser, address, "next-token-tied")
    browser.until("document.querySelectorAll('.positions button').length > 8")
    browser.hover(".positions button:nth-of-type(3)")
    browser.until("document.querySelector('.facts h3').textContent.startsWith('Position 2')")
    row = unrolled.load(RUNS / "next-token-tied").inspect("attention").arrays["layer_1"].mean(0)[2]
    told = browser.value("[...document.querySelectorAll('.facts svg rect title')].map(e => e.textContent).slice(0, 3)")
    assert [float(each.rsplit(": ", 1)[1]) for each in told] == pytest.approx(row[:3].tolist(), abs=1e-3)
    browser.click(".positions button:nth-of-type(3)")
    browser.click(".positions button:nth-of-type(6)")
    browser.hover(".positions button:nth-of-type(8)")
    heads = browser.value("[...document.querySelectorAll('.facts h3')].map(e => e.textContent.slice(0, 10))")
    assert heads == ["Position 2", "Position 5"]
    for text in ("Gradient norm", "Saliency", "Surprise"):
        assert text in browser.value("document.querySelector('.facts').textContent")
    at_every_size(browser, address)
    browser.press("ArrowRight")
    assert browser.value("document.activeElement.getAttribute('aria-label')").startswith("Position 6")


def test_another_input_and_a_drawing_that_is_taken_away(browser: Browser, address: str, tmp_path: Path) -> None:
    inside(browser, address, "next-token", "gates")
    browser.type(".input textarea", "gate gate")
    browser.click("button.main")
    browser.until("document.querySelectorAll('.positions button').length === 10")
    browser.downloads(tmp_path)
    browser.click(".picture figcaption button")
    end = time.monotonic() + 20
    while not (files := list(tmp_path.glob("*.svg"))) and time.monotonic() < end:
        time.sleep(0.05)
    assert files[0].name.startswith("next-token-")
    assert ElementTree.parse(files[0]).getroot().findtext("{http://www.w3.org/2000/svg}title")
    inside(browser, address, "classify")
    browser.type(".input textarea", " ")
    browser.click("button.main")
    browser.until("document.querySelectorAll('.message.error').length === 2")
    assert "the text is empty" in browser.value("document.querySelector('.message.error').textContent")
    require_sound(browser, address)
    browser.console.clear()  # the browser notes each 4xx
