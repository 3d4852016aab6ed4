"""A browser for the tests of the page, and what holds for every room in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import browser as browsers
from benchmarks.browser import Browser


@pytest.fixture(scope="session")
def one_browser() -> Iterator[Browser]:
    if browsers.program() is None:
        pytest.skip("there is no browser on this machine: apt-get install chromium, or name one in CHROMIUM")
    with browsers.opened() as found:
        yield found


@pytest.fixture
def browser(one_browser: Browser) -> Iterator[Browser]:
    """An empty page of a wide, light screen. Whatever a test does, the page may not run foreign scripts or complain."""
    one_browser.size("desktop", "light")
    one_browser.visit("about:blank")
    yield one_browser
    assert one_browser.console == []
