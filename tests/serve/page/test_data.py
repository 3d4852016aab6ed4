"""Rooms 1, 2 and 5 in a real browser, as somebody who has never seen a terminal uses them."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import unrolled
from benchmarks.browser import Browser
from tests.serve.conftest import RUNS, serving
from tests.serve.page.looks import at_every_size, require_sound

ATTACK = "<img src=x onerror=\"console.error('attack')\"><script>console.error('attack')</script>"
SHOWN = "document.querySelector('#room').innerText"


def table(path: Path, text: str = "text", label: str = "label", classes: tuple[str, str] = ("good", "bad")) -> Path:
    """A small table of texts and classes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([text, label])
        rows.writerows([f"{'fine' if i % 2 else 'poor'} weather number {i}", classes[1 - i % 2]] for i in range(80))
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def training(site: Path) -> Iterator[str]:
    with serving([RUNS / "next-token"], train=site) as address:
        yield address


def understood(browser: Browser, training: str, file: Path) -> None:
    browser.visit(f"{training}/#/data")
    browser.give("#file", [file])
    browser.until("document.querySelector('#minutes')", 60)


def test_a_file_is_understood_before_anything_is_trained(browser: Browser, training: str, tmp_path: Path) -> None:
    understood(browser, training, table(tmp_path / "reviews.csv"))
    shown = browser.value(SHOWN)
    assert "How reviews.csv will be parsed" in shown and "Predict the class" in shown
    assert "fine weather number 1" in shown and "not used" not in shown
    at_every_size(browser, training)


def test_what_cannot_be_read_is_told(browser: Browser, training: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("text,label\n")
    browser.visit(f"{training}/#/data")
    browser.give("#file", [tmp_path / "empty.csv"])
    said = browser.until("(document.querySelector('.message.error') || {}).textContent", 60)
    assert "empty.csv" in said and "uploads" not in said
    at_every_size(browser, training)
    browser.console.clear()  # the browser notes the status


def test_another_choice_is_asked_again_and_one_that_cannot_be_leaves_what_is_shown(
    browser: Browser, training: str, tmp_path: Path
) -> None:
    understood(browser, training, table(tmp_path / "reviews.csv"))
    browser.choose("#target", "text")
    browser.until("(document.querySelector('.message.error') || {}).textContent", 60)
    assert "reviews.csv" in browser.value("document.querySelector('h2').textContent")
    browser.choose("#task", "next-token")
    browser.until("document.querySelector('.verdict').textContent.startsWith('Predict the next token')", 60)
    assert not browser.value("document.querySelector('#target')")
    browser.console.clear()


def test_a_setting_that_a_note_names_can_be_given(browser: Browser, training: str, tmp_path: Path) -> None:
    rows = "".join(f"{2000 + i // 12}-{1 + i % 12:02d},{i % 12 + i / 10}\n" for i in range(150))
    (tmp_path / "sales.csv").write_text(f"month,sales\n{rows}")
    understood(browser, training, tmp_path / "sales.csv")
    assert "the horizon is 12 steps; horizon changes that" in browser.value(SHOWN)
    browser.click("#room details summary")
    give(browser, "horizon=6")
    browser.until(f"!{SHOWN}.includes('the horizon is 12') && document.querySelector('#minutes')", 60)
    assert browser.value("document.querySelector('#settings').value") == "horizon=6"
    at_every_size(browser, training)
    give(browser, "horizn=6")
    assert "did you mean 'horizon'" in browser.until("(document.querySelector('.message.error') || {}).textContent", 60)
    give(browser, "/etc/passwd")
    browser.until("document.querySelector('.message.error').textContent.includes('passwd')", 60)
    browser.console.clear()  # the browser notes the status


def test_a_file_that_needs_a_setting_is_asked_for_it(browser: Browser, training: str, tmp_path: Path) -> None:
    rows = "".join(f"the {i} one is fine,and the {i} other is not\n" for i in range(60))
    (tmp_path / "two.csv").write_text(f"first,second\n{rows}")
    browser.visit(f"{training}/#/data")
    browser.give("#file", [tmp_path / "two.csv"])
    browser.until("document.querySelector('.message.error')", 60)
    assert "two.csv cannot be parsed yet" in browser.value(SHOWN)
    at_every_size(browser, training)
    browser.choose("#task", "next-token")
    browser.until("document.querySelector('.message') && !document.querySelector('#room [aria-live] .note')", 60)
    give(browser, "column=first")
    browser.until("document.querySelector('#minutes')", 60)
    browser.console.clear()


def give(browser: Browser, settings: str) -> None:
    browser.type("#settings", settings)
    browser.press("Enter")


def test_a_file_can_be_dropped(browser: Browser, training: str) -> None:
    browser.visit(f"{training}/#/data")
    browser.until("document.querySelector('.drop')")
    rows = "text,label\\n" + "".join(f"{'fine' if i % 2 else 'poor'} {i},{'ab'[i % 2]}\\n" for i in range(60))
    browser.value(
        f"""(() => {{ const carried = new DataTransfer(), zone = document.querySelector('.drop');
        carried.items.add(new File(["{rows}"], "dropped.csv"));
        for (const kind of ['dragenter', 'dragover', 'drop'])
          zone.dispatchEvent(new DragEvent(kind, {{dataTransfer: carried, bubbles: true, cancelable: true}})); }})()"""
    )
    browser.until("document.querySelector('#minutes')", 60)
    assert "dropped.csv" in browser.value(SHOWN)


def test_text_of_a_file_is_text(browser: Browser, training: str, tmp_path: Path) -> None:
    file = table(tmp_path / 'x"><img src=x onerror=console.error(1)>.csv', f"text {ATTACK}", ATTACK, (ATTACK, "b"))
    understood(browser, training, file)
    assert browser.value(SHOWN).count("<script>") >= 2
    assert not browser.value("document.querySelector('#room img, #room script')")
    require_sound(browser, training)
    browser.choose("#task", "classify")
    browser.until("document.querySelector('.message.error') || document.querySelector('#target')", 60)
    assert not browser.value("document.querySelector('#room img, #room script')")
    assert [each for each in browser.console if "attack" in each] == []
    browser.console.clear()


def test_a_server_that_trains_nothing_tells_so(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/#/data")
    assert "trains nothing" in browser.until("(document.querySelector('.message') || {}).textContent")
    at_every_size(browser, address)


def test_too_little_time_is_told_in_the_race(browser: Browser, training: str, tmp_path: Path) -> None:
    understood(browser, training, table(tmp_path / "short.csv"))
    browser.type("#minutes", "0.1")
    browser.click("#room form button")
    browser.until("location.hash.startsWith('#/race?comparison=short')")
    said = browser.until("(document.querySelector('.message.error') || {}).textContent", 90)
    assert "are not enough" in said and "--" not in said
    at_every_size(browser, training)


@pytest.mark.long
def test_somebody_drops_a_table_and_takes_the_winner_home(
    browser: Browser, training: str, site: Path, tmp_path: Path
) -> None:
    understood(browser, training, table(tmp_path / "reviews.csv"))
    browser.click("#room form summary")
    browser.type("#models", "dan,linear-text")
    browser.type("#minutes", "1")
    browser.click("#room form button")
    browser.until("document.querySelector('#room h1').textContent === 'Race'", 60)
    browser.until("document.querySelectorAll('#room tbody tr').length > 3", 60)
    at_every_size(browser, training)
    browser.until("document.querySelector('#room svg .curve')", 90)
    at_every_size(browser, training)
    browser.until("document.querySelector('#try')", 200)
    verdict = browser.value("document.querySelector('.verdict').textContent")
    assert verdict.startswith("Selected ")
    at_every_size(browser, training)
    name = browser.value("new URLSearchParams(location.hash.split('?')[1]).get('comparison')")
    assert browser.value("document.querySelector('#try').getAttribute('href')") == f"#/play?run={name}"
    answer = httpx.post(f"{training}/runs/{name}/predict", json={"inputs": ["fine weather number 5"]}, timeout=60)
    assert answer.status_code == 200
    browser.downloads(tmp_path)
    browser.visit(f"{training}/#/take?run={name}")
    browser.click("button.main")
    browser.until("(document.querySelector('.message.good') || {}).textContent", 60)
    while not (tmp_path / f"{name}.zip").exists():
        browser.value("new Promise(resolve => setTimeout(resolve, 100))")
    zipfile.ZipFile(tmp_path / f"{name}.zip").extractall(tmp_path / "home")
    taken = unrolled.load(tmp_path / "home" / name).predict(["fine weather number 5"])
    assert taken[0]["prediction"] == answer.json()["results"][0]["prediction"]
    assert browser.outside(training) == []
