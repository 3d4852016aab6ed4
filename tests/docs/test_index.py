"""Pages: docs/index.md has all of them by title, each begins with what it is good for, and lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unrolled.core import discover
from unrolled.core.discover import JOINED, Room

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
VAGUE = ("more", "here", "how", "why", "this page", "link")


def title(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def test_the_index_names_every_page_by_its_title() -> None:
    lines = re.findall(r"^- \[(.+?)\]\((.+?)\)", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page for page in PAGES if page.name != "index.md"] + [DOCS / "decisions" / "README.md"]
    assert sorted(lines) == sorted((title(page), str(page.relative_to(DOCS))) for page in pages)


def test_the_readme_leads_to_the_index() -> None:
    assert "(docs/index.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda page: page.name)
def test_links_and_columns_have_telling_names(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"(?<!!)\[([^\]]+)\]\([^)]+\)", text)
    assert [link for link in links if link.lower() in VAGUE or re.fullmatch(r"[a-z_/]+\.md", link)] == []
    heads = re.findall(r"^\|(.+)\|\n\|(?:-+\|)+$", text, re.MULTILINE)
    assert [head for head in heads if not all(cell.strip() for cell in head.split("|"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_what_it_is_good_for(page: Path) -> None:
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert re.search(r"\byou (can|know|need)\b", first.replace("\n", " ")), first


def listed_in(page: str, pattern: str) -> list[str]:
    return sorted(re.findall(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE))


def test_lists_are_complete() -> None:
    assert listed_in("inspect.md", r"^## `([a-z-]+)`: ") == discover.questions.names()
    section = (DOCS / "contract.md").read_text(encoding="utf-8").split("## Emissions\n")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)) == discover.emissions.names()
    kinds = listed_in("own_files.md", r"^\| (`[A-Z]\w+`(?: and `\w+`)?) \|")
    assert kinds == sorted(" and ".join(f"`{name}`" for name in room.needs) for room in JOINED)


def test_messages_name_pages_that_are_there() -> None:
    rooms = [each for each in vars(discover).values() if isinstance(each, Room)]
    assert [room.page for room in rooms if room.page and not (ROOT / room.page).is_file()] == []
