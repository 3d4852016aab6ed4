"""What the tables of the results page are made with: kept results, Markdown, pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.pictures.kinds import Plot, Series

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGE = DOCS / "results.md"


def read(name: str) -> Any:
    """A kept result; None where there is none."""
    place = HERE / "results" / f"{name}.json"
    return json.loads(place.read_text()) if place.exists() else None


def read_all(pattern: str) -> list[Any]:
    return [read(place.stem) for place in sorted((HERE / "results").glob(f"{pattern}.json"))]


def table(titles: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def curves(results: Mapping[str, Mapping[str, Any]], figure: str, first: int = 1) -> list[Series]:
    """A figure over the seconds of training, a line per result, from its `first` evaluation on."""
    points = {name: result["curve"][first:] for name, result in results.items()}
    return [
        Series(name=name, x=[p["seconds"] for p in some], y=[p[figure] for p in some]) for name, some in points.items()
    ]


def picture(name: str, plot: Plot) -> str:
    """Draw a picture beside the page, and name it there."""
    from unrolled.pictures.draw import svg

    (DOCS / "images" / f"{name}.svg").write_text(svg(plot), encoding="utf-8")
    return f"\n![{plot.alt}](images/{name}.svg)\n"
