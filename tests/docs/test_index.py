"""Pages: docs/index.md names all of them by their titles, and files that the package names in messages are there."""

from __future__ import annotations

import re
from pathlib import Path

from unrolled.core import discover
from unrolled.core.discover import Room

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def title(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def test_the_index_names_every_page_by_its_title() -> None:
    lines = re.findall(r"^- \[(.+?)\]\((.+?)\)", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page for page in DOCS.glob("*.md") if page.name != "index.md"] + [DOCS / "decisions" / "README.md"]
    assert sorted(lines) == sorted((title(page), str(page.relative_to(DOCS))) for page in pages)


def test_the_readme_leads_to_the_index_and_to_the_pages_by_name() -> None:
    links = re.findall(r"(?<!!)\[([^\]]+)\]\((.+?)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "docs/index.md" in dict(map(reversed, links))
    assert [text for text, _ in links if text.lower() in ("more", "here", "how", "why", "this page", "link")] == []


def test_messages_name_pages_that_are_there() -> None:
    rooms = [each for each in vars(discover).values() if isinstance(each, Room)]
    assert [room.page for room in rooms if room.page and not (ROOT / room.page).is_file()] == []
