"""The frame of the page in a real browser: rooms by address, colours, the token, the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.browser import Browser
from tests.serve.conftest import RUNS
from tests.serve.page.looks import at_every_size, require_sound

TOKEN = "t" * 20


def test_the_addresses_can_be_tried(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/addresses")
    browser.until("document.querySelectorAll('details').length > 20")
    at_every_size(browser, address)
    browser.value(
        "[...document.querySelectorAll('details')].find(e => e.textContent.includes('GET /runs ')).open = true"
    )
    browser.click("details[open] button")
    browser.until("document.querySelector('details[open] pre').textContent.includes('next-token')")


def test_colours_follow_the_system_until_they_are_chosen(browser: Browser, address: str) -> None:
    browser.size("desktop", "dark")
    browser.visit(f"{address}/#/take")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = browser.until(f"{ground} !== 'rgba(0, 0, 0, 0)' && document.querySelector('#theme') && {ground}")
    browser.choose("#theme", "light")
    light = browser.value(ground)
    assert light != dark
    browser.visit(f"{address}/#/take")
    browser.until(f"{ground} === '{light}'")
    browser.choose("#theme", "")
    assert browser.value(ground) == dark


def test_a_token_is_asked_for_once(browser: Browser, served: Callable[..., Any]) -> None:
    with served([RUNS / "next-token"], token=TOKEN) as address:
        browser.visit(f"{address}/#/take")
        browser.until("!document.getElementById('door').hidden")
        require_sound(browser, address)
        browser.type("#token", TOKEN)
        browser.press("Enter")
        browser.until("document.querySelector('#room h2')")
        browser.visit(f"{address}/#/take")
        browser.until("document.querySelector('#room h2')")
        browser.value("sessionStorage.clear()")
    browser.console.clear()  # the browser notes each 401


def test_the_keyboard_reaches_the_rooms(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/#/take")
    browser.until("document.querySelector('#room h2')")
    seen = []
    for _ in range(8):
        browser.press("Tab")
        seen.append(browser.value("document.activeElement.textContent.trim()"))
    assert seen[0] == "Skip to the content" and {"Your data", "Race", "Playground", "Inside", "Take it"} <= set(seen)
    assert browser.value("document.activeElement.matches(':focus-visible')")
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
