"""The playground in a real browser: what a person types, paints and draws is answered by each run; text stays text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

import unrolled
from benchmarks.browser import Browser
from tests.serve.conftest import RUNS
from tests.serve.page.looks import at_every_size, require_sound
from tests.small import QUICK

ATTACKS = ["<img src=x onerror=alert(1)>", "'\"><script>alert(2)</script>"]
RESULT = "document.querySelector('.result .part, .result .message, .result table')"


def play(browser: Browser, address: str, *runs: str) -> None:
    named = "&".join(f"run{i if i > 1 else ''}={run}" for i, run in enumerate(runs, 1))
    browser.visit(f"{address}/#/play?{named}")
    browser.until("document.querySelector('button.run')")


def words(browser: Browser, selector: str) -> str:
    return str(browser.value(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent).join('|')"))


def continued(browser: Browser, runs: int) -> None:
    """Wait until each run has written its text."""
    browser.until(f"[...document.querySelectorAll('.result > .hint')].filter(e => e.textContent).length === {runs}")


def test_two_runs_continue_a_text_with_the_same_noise(browser: Browser, address: str) -> None:
    play(browser, address, "next-token", "next-token-tied", "next-token-tied")
    browser.type(".input textarea", "chunk call")
    browser.click("button.run")
    continued(browser, 2)  # a run that is named twice is shown once
    assert browser.value("document.querySelectorAll('.tokens')[1].textContent").startswith("chunk call")
    seen = words(browser, ".tokens")
    browser.click("button.run")
    continued(browser, 2)
    assert words(browser, ".tokens") == seen
    at_every_size(browser, address)


def test_a_text_is_continued_from_an_alternative(browser: Browser, address: str) -> None:
    play(browser, address, "next-token")
    browser.type(".input textarea", "chunk call")
    browser.click("button.run")
    continued(browser, 1)
    own = unrolled.load(RUNS / "next-token").inspect("surprise", "chunk call").arrays["nats"][3]
    browser.value("document.querySelectorAll('button.token')[2].focus()")
    browser.press("ArrowRight")
    assert f"{float(own):.3g}"[:3] in words(browser, ".alternatives > .hint")
    assert browser.value("document.querySelectorAll('.alternatives li').length") == 10
    browser.press("Enter")
    browser.until("document.activeElement.closest('.alternatives')")
    require_sound(browser, address)
    chosen = browser.value(
        "[...document.querySelectorAll('.alternatives button:not(:disabled)')].find(e => !e.matches('.own'))"
        ".querySelector('.mono').textContent"
    )
    browser.value(
        "[...document.querySelectorAll('.alternatives button:not(:disabled)')].find(e => !e.matches('.own')).click()"
    )
    continued(browser, 1)
    begun = "chu" + chosen.replace("␣", " ")
    browser.until(f"document.querySelector('.tokens').textContent.startsWith({begun!r})")


def test_classes_are_bars_of_their_probabilities(browser: Browser, address: str) -> None:
    play(browser, address, "classify", "classify-logistic")
    browser.until("document.querySelectorAll('.result .chart rect.mark').length >= 8")
    own = unrolled.load(RUNS / "classify").predict(["layer tack"])[0]
    browser.type(".input textarea", "layer tack")  # asked again by itself
    share = f"{round(100 * own['p'])} %"  # type: ignore[operator]
    browser.until(f"document.querySelector('.result .chart').textContent.includes({share!r})")
    assert own["prediction"] in words(browser, ".result:first-child .outcome")
    at_every_size(browser, address)


def test_a_translation_has_its_alignment(browser: Browser, address: str) -> None:
    play(browser, address, "translate", "translate-transformer")
    browser.until("document.querySelectorAll('.alignment svg').length === 2")
    own = unrolled.load(RUNS / "translate").predict(["chunk call"])[0]
    assert words(browser, ".result:first-child .outcome") == own["prediction"]
    rects = len(str(own["prediction"])) + 1  # and the stop
    assert browser.value("document.querySelector('.alignment svg').querySelectorAll('rect').length") == 10 * rects
    at_every_size(browser, address)


def test_the_fan_moves_as_the_history_is_edited(browser: Browser, address: str) -> None:
    play(browser, address, "forecast")
    browser.until("document.querySelectorAll('.series .band').length === 3")
    before = browser.value("document.querySelector('.series path.curve.s0').getAttribute('d')")
    browser.value("document.querySelector('.series').focus()")
    for _ in range(8):
        browser.press("ArrowUp")
    browser.until(f"document.querySelector('.series path.curve.s0').getAttribute('d') !== {before!r}")
    browser.type(".input textarea", "1, 2, 3, 4, 5, 4, 3, 2, 1, 2, 3, 4, 5")
    own = unrolled.load(RUNS / "forecast").do("forecast", [[1.0, 2, 3, 4, 5, 4, 3, 2, 1, 2, 3, 4, 5]])[0]
    median = f"{own['forecast'][0]:.5g}"
    browser.until(f"document.querySelector('.result table').textContent.includes({median!r})")
    at_every_size(browser, address)
    browser.type(".input textarea", "one, two")
    browser.click("button.run")
    browser.until("document.querySelector('.results .message.error')")
    assert "expected numbers" in words(browser, ".results .message")


def test_a_damaged_pattern_is_recalled(browser: Browser, address: str) -> None:
    play(browser, address, "recall")
    browser.until("document.querySelector('.result .facts')")
    stored = browser.value(
        "[...document.querySelectorAll('.result .cells .cell')].map(e => e.getAttribute('fill-opacity'))"
    )
    browser.value("document.querySelector('.input .cells').focus()")
    browser.press(" ")
    browser.until("document.querySelector('.input .cells').getAttribute('aria-label').includes('row 1')"
                  " || document.querySelector('.input .cell').getAttribute('fill-opacity') === '0.000'")  # fmt: skip
    browser.until("document.querySelector('.result .facts')")
    again = browser.value(
        "[...document.querySelectorAll('.result .cells .cell')].map(e => e.getAttribute('fill-opacity'))"
    )
    assert again == stored  # of one wrong bit the memory recalls the same
    at_every_size(browser, address)


def test_a_pen_draws_and_is_read(browser: Browser, address: str) -> None:
    play(browser, address, "recognise", "recognise-ctc")
    browser.until(RESULT)
    browser.value("[...document.querySelectorAll('.input button')].find(e => e.textContent.includes('Clear')).click()")
    at = browser.value("(r => [r.x, r.y])(document.querySelector('.pad').getBoundingClientRect())")
    for kind, x, y in [
        ("mousePressed", 20, 20),
        ("mouseMoved", 60, 90),
        ("mouseMoved", 120, 40),
        ("mouseReleased", 120, 40),
    ]:
        browser.ask(
            "Input.dispatchMouseEvent", type=kind, x=at[0] + x, y=at[1] + y, button="left", buttons=1, clickCount=1
        )
    assert browser.value("document.querySelectorAll('.pad .stroke').length") == 1
    assert browser.value("document.querySelector('.pad .stroke').getAttribute('d').split('L').length") == 3
    browser.click("button.run")
    browser.until("document.querySelectorAll('.result .outcome').length === 2")
    at_every_size(browser, address)
    play(browser, address, "handwriting")
    browser.click("button.run")
    browser.until("document.querySelector('.result .strokes .stroke.given')")  # it continues the drawing
    require_sound(browser, address)


def test_files_are_sent_as_data(browser: Browser, address: str, tmp_path: Path) -> None:
    Image.fromarray(np.full((9, 9, 3), 200, np.uint8)).save(tmp_path / "grey.png")
    soundfile.write(tmp_path / "tone.wav", np.sin(np.arange(400) / 3) / 2, 8000)
    (tmp_path / "no.png").write_text("no image")
    play(browser, address, "next-pixel")
    browser.give(".input input[type=file]", [tmp_path / "grey.png"])
    browser.click("button.run")
    browser.until("document.querySelector('.result canvas')")
    rows = "document.querySelector('.result canvas').getContext('2d').getImageData(0, 0, 6, 1).data[0]"
    assert abs(browser.value(rows) - 200) < 64  # one of four levels: the rows that were given
    at_every_size(browser, address)
    browser.give(".input input[type=file]", [tmp_path / "no.png"])
    browser.until("!document.querySelector('.input input[type=file]').validity.valid")
    play(browser, address, "caption")
    browser.give(".input input[type=file]", [tmp_path / "grey.png"])
    browser.until("document.querySelector('.input img').naturalWidth === 6")  # as large as the run reads
    browser.click("button.run")
    browser.until("document.querySelector('.result .outcome')")
    play(browser, address, "next-sample")
    browser.give(".input input[type=file]", [tmp_path / "tone.wav"])
    offered = browser.value("[...document.querySelectorAll('[data-setting]')].map(each => each.dataset.setting)")
    assert "seconds" in offered and "max_tokens" not in offered  # which would be shorter
    browser.click("button.run")
    browser.until("document.querySelector('.result audio')")
    require_sound(browser, address)


@pytest.mark.parametrize(
    "name", ["denoise", "masked-token", "next-frame", "regress", "tag", "word-vectors", "sound-flow"]
)
def test_other_runs_are_shown_too(browser: Browser, address: str, name: str) -> None:
    play(browser, address, name)
    browser.click("button.run")
    browser.until("document.querySelector('.result .part')")
    assert browser.value("document.querySelector('.result .rest, .result .message')") is None
    require_sound(browser, address)


def test_runs_of_other_inputs_say_so(browser: Browser, address: str) -> None:
    play(browser, address, "classify", "forecast")
    browser.until("document.querySelectorAll('.result')[1].textContent.includes('a different kind of input')")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs whose classes, words and tokens are HTML."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [{"text": f"{ATTACKS[i % 2]} {'ab'[i % 2]}{i}", "label": ATTACKS[i % 2]} for i in range(60)]
    unrolled.train(rows, "classify", "dan", out=folder / "classes", settings={**QUICK, "tokens": "word"})
    texts = [f"{ATTACKS[i % 2]} {i}" for i in range(60)]
    unrolled.train(texts, "next-token", "gru", out=folder / "texts", settings={**QUICK, "length": 40})
    return folder


def test_text_of_data_is_text(browser: Browser, served: Callable[..., Any], hostile: Path) -> None:
    with served([hostile]) as address:
        play(browser, address, "classes")
        browser.until("document.querySelectorAll('.result .chart text').length >= 4")
        assert ATTACKS[0] in words(browser, ".result .outcome") or ATTACKS[1] in words(browser, ".result .outcome")
        at_every_size(browser, address)
        play(browser, address, "texts")
        for attack in ATTACKS:
            browser.type(".input textarea", attack)
            browser.click("button.run")
            continued(browser, 1)
            assert words(browser, ".tokens").startswith(attack)
            browser.click("button.token:nth-of-type(5)")
            browser.until("document.querySelectorAll('.alternatives li').length > 5")
        assert browser.value("document.querySelectorAll('.result img, .result script').length") == 0
        require_sound(browser, address)
        browser.visit(f"{address}/#/play?run={ATTACKS[0]}")
        browser.until("document.querySelector('button.run')")
        browser.visit(f"{address}/#/inside?run=classes")
        browser.until("document.querySelectorAll('.positions button').length > 1")
        assert browser.value("document.querySelectorAll('#room img, #room script').length") == 0
