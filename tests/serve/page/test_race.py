"""Rooms 2 and 5 in a real browser, on comparisons and runs that were made elsewhere."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import Browser
from tests.serve.conftest import RUNS, serving
from tests.serve.page.looks import at_every_size
from unrolled.comparison.events import EVENTS
from unrolled.runs.storage.locks import in_use
from unrolled.serve.contests import Contests

ATTACK = "<img src=x onerror=\"console.error('attack')\"><b>bold</b>"
FOLDS = RUNS.parent / "comparisons" / "folds"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FOLDS, tmp_path / "folds")
    return tmp_path / "folds"


@pytest.fixture
def site(folder: Path) -> Iterator[str]:
    with serving([folder.parent]) as address:
        yield address


def line(**facts: Any) -> str:
    return json.dumps({"at": time.time(), **facts}) + "\n"


def test_a_finished_comparison(browser: Browser, site: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = json.loads((folder / "table.json").read_text())
    about = Contests.about
    monkeypatch.setattr(Contests, "about", lambda *given: {**about(*given), "criterion": "nats"})
    browser.visit(f"{site}/#/race")
    assert browser.until("(document.querySelector('.verdict') || {}).textContent", 30) == table["verdict"]
    heads = browser.value("[...document.querySelectorAll('#room thead th')].map(each => each.textContent)")
    assert table["score"] == "error" and {"valid error", "test error"} <= {*heads}  # not what training watches
    assert browser.value("document.querySelectorAll('#room svg').length") >= 2
    at_every_size(browser, site)


def test_curves_baselines_texts_and_time_arrive_while_it_runs(browser: Browser, site: str, folder: Path) -> None:
    (folder / "table.json").unlink()
    runs = [{"folder": "baseline-bigram", "label": "bigram", "kind": "baseline"},
            *({"folder": f"{name}-0", "label": name, "kind": "model"} for name in ("lstm", "gru"))]  # fmt: skip
    file = folder / EVENTS
    plan = line(
        event="plan", task="next-token", data="poems.txt", budget=120.0, steps=None, notes=[], recipe=[], runs=runs
    )
    with in_use(folder), file.open("w", buffering=1) as events:
        events.write(plan)
        browser.visit(f"{site}/#/race?comparison=folds")
        browser.until("document.querySelectorAll('#room tbody tr').length === 3")
        assert "left" in browser.value("document.querySelector('.bar').textContent")
        events.write(line(event="done", folder="baseline-bigram", criterion="nats", valid=2.0))
        for step, loss in enumerate((3.0, 2.0, 1.5)):
            for name in ("lstm-0", "gru-0"):
                if not step:
                    events.write(line(event="begin", folder=name))
                events.write(line(event="evaluation", folder=name, step=step, figures={"nats": loss}))
                events.write(line(event="sample", folder=name, text=f"{name} writes {step} {ATTACK}"))
        events.write(line(event="step", folder="gru-0", share=0.5, loss=1.0, speed=1234.0))
        browser.until("document.querySelectorAll('#room svg path.curve').length === 2")
        browser.until(f"document.querySelector('#room').innerText.includes('gru-0 writes 2 {ATTACK[:8]}')")
        browser.until("document.querySelector('#room').innerText.includes('50 %')")
        assert browser.value("[...document.querySelectorAll('svg text')].some(each => each.textContent === 'bigram')")
        at_every_size(browser, site)
        events.write(line(event="note", text=ATTACK))
        events.write(line(event="failed", folder="lstm-0", why=f"out of memory {ATTACK}", code=6))
        browser.until("document.querySelector('#room').innerText.includes('failed: out of memory')")
    browser.until("document.querySelector('#room').innerText.includes('was stopped before its end')")
    assert not browser.value("document.querySelector('#room img, #room b')")


def test_one_that_was_not_started_here_cannot_be_stopped_here(browser: Browser, site: str, folder: Path) -> None:
    (folder / "table.json").unlink()
    with in_use(folder):
        (folder / EVENTS).write_text(
            line(event="plan", task="t", data="d", budget=9, steps=None, notes=[], recipe=[], runs=[])
        )
        browser.visit(f"{site}/#/race?comparison=folds")
        browser.click("#room button")
        said = browser.until("(document.querySelector('.message.error') || {}).textContent")
        assert "did not start" in said
    browser.console.clear()  # the browser notes the status


def test_nothing_to_race_yet(browser: Browser, address: str) -> None:
    browser.visit(f"{address}/#/race")
    assert "no comparison yet" in browser.until("(document.querySelector('.message') || {}).textContent")
    at_every_size(browser, address)


@pytest.fixture(scope="module")
def patient() -> Iterator[str]:
    """A server that gives a request as long as an export may need on a machine that is busy."""
    with serving([RUNS], seconds=250) as address:
        yield address


def test_a_run_is_taken_as_zip_and_page(browser: Browser, patient: str, tmp_path: Path) -> None:
    address = patient
    browser.downloads(tmp_path)
    browser.visit(f"{address}/#/take?run=next-token")
    browser.until("document.querySelectorAll('#room .panel').length > 2", 250)
    at_every_size(browser, address)
    browser.click("button.main")
    browser.until("(document.querySelector('.message.good') || {}).textContent", 60)
    browser.value("document.querySelectorAll('.message.good').forEach(each => each.remove())")
    browser.value("[...document.querySelectorAll('.panel')].find(e => e.textContent.startsWith('page')).id = 'page'")
    browser.click("#page button")
    browser.until("(document.querySelector('#page .message.good') || {}).textContent", 250)
    saved = [tmp_path / f"next-token{suffix}" for suffix in (".zip", ".html")]
    while not all(file.exists() for file in saved):
        browser.value("new Promise(resolve => setTimeout(resolve, 100))")
    assert all(file.stat().st_size > 1000 for file in saved)
    assert browser.outside(address) == []


def test_what_cannot_be_exported_has_a_reason(browser: Browser, patient: str) -> None:
    browser.visit(f"{patient}/#/take?run=word-vectors")
    browser.until("document.querySelectorAll('#room .panel').length > 2", 250)
    assert "Not available for this run" in browser.value("document.querySelector('#room').innerText")


def test_names_of_runs_are_text(browser: Browser, served: Callable[..., Any], tmp_path: Path) -> None:
    config = json.loads((RUNS / "next-token" / "config.json").read_text())
    odd = tmp_path / "odd<b>run"
    odd.mkdir()
    (odd / "config.json").write_text(json.dumps({**config, "model": ATTACK, "task": ATTACK}))
    shutil.copy(RUNS / "next-token" / "MANIFEST.json", odd)
    with served([tmp_path]) as address:
        browser.visit(f"{address}/#/take")
        browser.until("document.querySelector('#run')")
        browser.until("document.querySelector('.message')", 30)
        assert not browser.value("document.querySelector('#room img, #room b')")
        browser.visit(f"{address}/#/take?run={ATTACK}")
        browser.until("(document.querySelector('.message.error') || {}).textContent", 30)
        assert not browser.value("document.querySelector('#room img, #room b')")
        browser.visit(f"{address}/#/{ATTACK}")
        browser.until("document.querySelector('.room > *')")
        assert not browser.value("document.querySelector('#room img, #room b')")
    assert [each for each in browser.console if "attack" in each] == []
    browser.console.clear()
