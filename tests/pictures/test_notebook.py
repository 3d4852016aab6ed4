"""What a notebook shows: pieces of HTML that are safe and whole, and output that is drawn again in its place."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import html5lib
import pytest

from unrolled.pictures import notebook
from unrolled.pictures.kinds import Bars, Table
from unrolled.pictures.notebook import InPlace, fragment, in_notebook

PICTURES = [
    Bars(title="<b>bars</b>", names=["a"], values=[1.0]),
    Table(title="t", columns=["<i>", "n", "s"], rows=[["</div><script>x</script>", 2.5, "12 s"], ["6-gram", None, ""]]),
]


class Kernel:
    """What IPython offers in a notebook."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> Any:
        assert raw and display_id
        self.shown.append(data)
        return SimpleNamespace(update=lambda data, raw: self.shown.append(data))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    shell = type("ZMQInteractiveShell", (), {})()
    module = ModuleType("IPython")
    module.display = ModuleType("IPython.display")  # type: ignore[attr-defined]
    module.display.display = made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", module.display)  # type: ignore[attr-defined]
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    return made


def test_text_is_escaped_and_the_style_is_its_own() -> None:
    made = fragment(["a < b & <script>alert(1)</script>", ""], PICTURES)
    root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(made)
    assert [child.tag for child in root] == ["div"]
    assert not list(root.iter("script"))
    assert made.count("<p ") == 1 and made.count("<figure") == 2
    (style,) = root.iter("style")
    assert style.text.strip().startswith(".unrolled.unrolled {") and style.text.strip().endswith("}")
    assert '<td class="number">2.5</td><td class="number">12 s</td>' in made
    assert '<td>6-gram</td><td class="number"></td><td class="number"></td>' in made


def test_a_script_is_no_notebook() -> None:
    assert not in_notebook()


def test_a_kernel_is_one(kernel: Kernel) -> None:
    assert in_notebook()


def test_a_terminal_is_none(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = type("TerminalInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell)
    assert not in_notebook()


def test_what_is_drawn_again_replaces_what_was(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(notebook, "time", clock)
    values = iter(["one [b]", "two", "three"])
    place = InPlace(lambda: next(values))
    place.refresh()  # before the beginning there is no place
    place.start()
    clock.now += 0.1
    place.refresh()  # too soon
    clock.now += 1
    place.refresh()
    place.refresh()
    place.stop()
    assert [each["text/plain"].strip() for each in kernel.shown] == ["one [b]", "two", "three"]
    assert all(each["text/html"].startswith("<pre") for each in kernel.shown)
