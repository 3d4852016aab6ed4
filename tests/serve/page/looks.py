"""What holds for every room at every size: nothing is too wide, controls have names, text can be read."""

from __future__ import annotations

from pathlib import Path

from benchmarks.browser import Browser

FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")


def require_sound(browser: Browser, address: str) -> None:
    """The page as it is now has no fault, and has asked nobody but its server."""
    found, outside = browser.value(FAULTS), browser.outside(address)
    assert not found and not outside, (found, outside)


def at_every_size(browser: Browser, address: str, pictures: Path | None = None) -> None:
    """The page as it is now, at each size in light and dark."""
    for size in ("phone", "desktop"):
        for colours in ("light", "dark"):
            browser.size(size, colours)
            browser.value("new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
            browser.value("Promise.all(document.getAnimations().map(each => each.finished)).then(() => null)")
            if pictures is not None:
                browser.picture(pictures / f"{size}-{colours}.png")
            require_sound(browser, address)
    browser.size("desktop", "light")
