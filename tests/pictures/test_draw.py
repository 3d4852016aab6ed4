"""Pictures as SVG, HTML and in the terminal: whole, escaped, repeatable, and readable by those who do not see them."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import Any

import html5lib
import numpy as np
import pytest
from pydantic import ValidationError
from rich.console import Console

from tests.thorough import every
from unrolled.data.files.data_uri import to_text as inline
from unrolled.pictures import png
from unrolled.pictures.canvas import COLOURS, INK
from unrolled.pictures.draw import html, is_drawn, svg, terminal
from unrolled.pictures.images import heated
from unrolled.pictures.kinds import (
    Bars,
    Drawings,
    Heatmap,
    Images,
    Picture,
    Plot,
    Series,
    Sounds,
    Table,
    Texts,
    Tokens,
    read_picture,
)
from unrolled.pictures.png import HEAD, pixels_of

ROWS = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [1, 2, 3]]], np.uint8)
NASTY = '</svg><script>alert("x")</script>&\x00\ud800\x85 $x$ 日本'
SVG = "{http://www.w3.org/2000/svg}"

PICTURES: list[Picture] = [
    Plot(title=NASTY, alt=NASTY, x_label=NASTY, y_label="nats", series=[
        Series(name=NASTY, x=[1, 2, 3], y=[3.0, None, 1.0], low=[2.5, None, 0.5], high=[3.5, None, 1.5]),
        Series(name="points", x=[1, 2], y=[1, 2], low=[0, 1], high=[2, 3], style="points", labels=[NASTY, "b"]),
        Series(name="steps", x=[1, 2], y=[2, 2], style="steps"),
        Series(name="dashed", x=[1, 3], y=[2, 2], style="dashed"),
    ]),
    Plot(title="logs", log_x=True, log_y=True, series=[Series(name="a", x=[0, 10, 1000], y=[1e-7, 0, 1e3])]),
    Plot(title="nothing", series=[]),
    Plot(title="nothing on a log axis", log_y=True, series=[Series(name="", x=[1.0], y=[None])]),
    Heatmap(title=NASTY, values=[[0.1, None], [0.5, 1.0]], rows=["\n", NASTY], columns=[" ", "\t"], write_values=True),
    Heatmap(title="signs", values=[[-1.0, 2.0, 3.0]], scale="diverging", x_label=NASTY),
    Heatmap(title="small", values=[[0.0, 1e-9], [1e-3, 1.0]], scale="log"),
    Heatmap(title="zeros", values=[[0.0, 0.0]], scale="log"),
    Heatmap(title="ragged", values=[[1.0], [1.0, 1.0]]),
    Heatmap(title="empty", values=[]),
    Heatmap(title="many", values=[[float(i * j) for j in range(200)] for i in range(3)], columns=["t"] * 200),
    Bars(title=NASTY, names=[NASTY, "b"], values=[1.0, -2.0], low=[0.5, -2.5], high=[1.5, None], x_label="x"),
    Bars(title="none", names=["a"], values=[None]),
    Images(title=NASTY, alt=NASTY, captions=[NASTY, "b"], images=[inline(ROWS), inline(ROWS[:, :, 0]), ""]),
    Images(title="no image", captions=[], images=[]),
    Drawings(title=NASTY, alt=NASTY, captions=[NASTY], drawings=[[[(0, 0), (1, 2)], [(3, 3)]], [], [[]], [[(1, 1)]]]),
    Drawings(title="no drawing", captions=[], drawings=[]),
    Tokens(title=NASTY, alt=NASTY, tokens=["a", NASTY, " ", "\n"], values=[0.0, 2.0, None, 1.0], hints=[NASTY],
           unit="<i>"),
    Tokens(title="signs", tokens=["a", "b"], values=[-1.0, 3.0]),
    Table(title=NASTY, columns=[NASTY, "n"], rows=[[NASTY, 1234], ["b", None], ["c", 0.5]]),
    Sounds(title=NASTY, alt=NASTY, captions=[NASTY], sounds=["data:audio/wav;base64,UklGRg=="] * 2),
    Texts(title=NASTY, captions=[NASTY], texts=["\nfirst " + NASTY, "second"]),
]  # fmt: skip
LONG = "A" * 1_000_000
DRAWN = [picture for picture in PICTURES if is_drawn(picture)]
names = {"ids": lambda picture: f"{picture.kind}-{picture.title[:8]!r}"}


def whole_page(inner: str) -> str:
    return f'<!DOCTYPE html><html lang="en"><head><title>t</title></head><body>{inner}</body></html>'


@pytest.mark.parametrize("picture", DRAWN, **names)
def test_a_drawing_is_a_file_by_itself_with_a_name(picture: Picture) -> None:
    root = ET.fromstring(svg(picture))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert title.text
    assert desc.text
    assert root.get("aria-labelledby") == title.get("id")
    assert not [each for each in root.iter() if each.tag.endswith(("script", "style", "metadata"))]


@pytest.mark.parametrize("picture", PICTURES, **names)
def test_html_is_strict_and_nothing_of_the_data_becomes_markup(picture: Picture) -> None:
    made = html(picture)
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(whole_page(made))
    assert document.find("body/figure") is not None
    assert not list(document.iter("script"))
    assert not list(document.iter("i"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", made)


@pytest.mark.parametrize("picture", PICTURES, **names)
def test_the_terminal_shows_every_kind(picture: Picture) -> None:
    shown = io.StringIO()
    Console(file=shown, width=100, color_system="truecolor", force_terminal=True).print(terminal(picture))
    assert shown.getvalue().strip()
    assert "\x00" not in shown.getvalue()


def test_the_same_picture_gives_the_same_bytes_also_in_another_process() -> None:
    code = (
        "import sys, hashlib; from unrolled.pictures.kinds import read_picture; from unrolled.pictures.draw import svg;"
        "print(hashlib.sha256(svg(read_picture(eval(sys.argv[1]))).encode()).hexdigest())"
    )
    picture = Plot(title="t", series=[Series(name="a", x=[1, 2], y=[1, 2], low=[0, 1], high=[2, 3])])
    words = [sys.executable, "-c", code, repr(picture.model_dump())]
    there = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    assert there == hashlib.sha256(svg(picture).encode()).hexdigest()
    assert svg(DRAWN[0]) == svg(DRAWN[0])


def test_several_pictures_of_one_page_have_identifiers_of_their_own() -> None:
    page = "".join(html(picture) for picture in DRAWN) + html(DRAWN[0], salt="again")
    found = re.findall(r'\sid="([^"]+)"', page)
    assert len(found) > len(DRAWN)
    assert len(found) == len(set(found))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(found)


def test_text_stays_text_and_takes_the_colour_of_the_page() -> None:
    drawn = svg(PICTURES[0])
    assert ">nats</text>" in drawn
    assert "currentColor" in drawn
    assert INK not in drawn
    assert "DejaVu" not in drawn
    assert COLOURS[0] in drawn
    assert "$x$" in drawn  # a dollar is no formula


def test_blank_tokens_can_be_seen() -> None:
    drawn = svg(Heatmap(title="t", values=[[1.0, 2.0]], rows=[" "], columns=["\n", "a_very_long_name_of_a_token"]))
    assert ">␣</text>" in drawn
    assert ">↵</text>" in drawn
    assert "…" in drawn
    assert "a_very_long_name_of_a_token" not in drawn
    shown = html(Tokens(title="t", tokens=["a", " ", "\n"], values=[1.0, 2.0, 3.0]))
    assert "·" in shown
    assert "↵\n" in shown


def test_stronger_numbers_get_stronger_colours_and_signs_differ() -> None:
    shown = html(Tokens(title="t", tokens=["a", "b", "c"], values=[0.0, 1.0, 4.0]))
    strengths = [float(found) for found in re.findall(r"<span[^>]*rgba\(213,94,0,([\d.]+)\)\">[abc]", shown)]
    assert strengths == sorted(strengths)
    assert strengths[0] == 0.0
    assert strengths[-1] == pytest.approx(0.65)
    both = html(Tokens(title="t", tokens=["a", "b"], values=[-2.0, 1.0]))
    assert re.search(r"rgba\(0,114,178,0\.65\)\">a", both)
    assert re.search(r"rgba\(213,94,0,0\.3\d\)\">b", both)
    given = html(Tokens(title="t", tokens=["a"], values=[9.0], low=0.0, high=3.0))
    assert 'rgba(213,94,0,0.65)">a' in given  # beyond the end is the end


def test_images_keep_their_pixels_and_heat_shows_where() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert np.array_equal(pixels_of(inline(image)), image)
    assert np.array_equal(pixels_of(inline(image[:, :, 0])), image[:, :, :1].repeat(3, axis=2))
    lit = heated(np.full((4, 6, 3), 200, np.uint8), [[0.0, 0.0, 0.0], [0.0, 0.0, 0.5]])
    assert (lit[2:, 4:] == 200).all()
    assert lit[:2].max() == lit[:, :4].max() == 30


def test_what_is_no_image_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inline(ROWS)
    odd = ["12345", HEAD, HEAD + "AAAA", whole[:-40], whole + '"', whole.replace("png", "svg+xml"), "a.png"]
    for text in odd:
        with pytest.raises(ValidationError):
            Images(title="t", captions=[], images=[text])
    monkeypatch.setattr(png, "MOST_PIXELS", 3)
    with pytest.raises(ValidationError, match="images of 4 pixels, more than 3"):
        Images(title="t", captions=[], images=[whole])


def test_hints_are_shown_when_pointed_at() -> None:
    assert 'title="say &quot;hi&quot;"' in html(Tokens(title="t", tokens=["a"], values=[1.0], hints=['say "hi"']))


def test_words_beside_points_do_not_cover_each_other() -> None:
    labels = ["memoryless", "transformer", "lstm", "gru"]
    points = Series(name="", x=[1.0, 1.01, 1.02, 1.03], y=[1.0, 1.01, 1.0, 1.01], style="points", labels=labels)
    far = Series(name="", x=[0.0, 3.0], y=[0.0, 2.0], style="points")
    drawn = svg(Plot(title="t", series=[points, far]))
    places = {}
    for label in labels:
        found = re.search(rf"<text([^>]*)>{label}<", drawn)
        assert found is not None, label
        x, y = (float(number) for number in re.findall(r'(?:x|y)="([-\d.]+)"', found[1]))
        places[label] = (x, y)
    assert len({(round(x / 4), round(y / 4)) for x, y in places.values()}) == len(labels)


def test_words_are_not_drawn() -> None:
    with pytest.raises(TypeError, match="texts"):
        svg(PICTURES[-1])


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from unrolled.pictures.draw import html; from unrolled.pictures.kinds import Texts;"
        "html(Texts(title='t', captions=[], texts=['a']));"
        "sys.exit(bool({'torch', 'matplotlib', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def written(drawn: str) -> list[str]:
    """The texts of a drawing, in order."""
    return [each.text or "" for each in ET.fromstring(drawn).iter(f"{SVG}text")]


def test_counts_are_written_as_they_are_and_only_fractions_are_rounded() -> None:
    counts = [[167, 3], [12345, 98765432]]
    matrix = Heatmap(title="Confusion matrix", values=counts, rows=["a", "b"], columns=["a", "b"], write_values=True)
    again = read_picture(matrix.model_dump(mode="json"))
    assert {"167", "3", "12,345", "98,765,432"} <= set(written(svg(again)))
    shares = Heatmap(title="Shares", values=[[0.8765, 167.31]], write_values=True)
    assert {"0.88", "167"} <= set(written(svg(shares)))
    bars = Bars(title="Examples", names=["a", "b", "c"], values=[1234567, 23456789, 0.123456])
    assert {"1,234,567", "23,456,789", "0.1235"} <= set(written(svg(read_picture(bars.model_dump(mode="json")))))


def test_counts_are_whole_in_tables_on_a_page_and_in_a_terminal() -> None:
    table = Table(title="Per class", columns=["class", "support"], rows=[["a", 123456], ["b", 98765432]])
    table = read_picture(table.model_dump(mode="json"))  # type: ignore[assignment]
    shown = io.StringIO()
    Console(file=shown, width=100).print(terminal(table))
    for words in (html(table), shown.getvalue()):
        assert "123,456" in words
        assert "98,765,432" in words
    scale = Tokens(title="Counts", tokens=["a", "b"], values=[0, 1234])
    shown = io.StringIO()
    Console(file=shown, width=100).print(terminal(scale))
    assert "0 to 1,234" in shown.getvalue()
    assert "1,234</p>" in html(scale)


@pytest.mark.parametrize("picture", every(2, DRAWN), **names)
def test_a_file_shows_its_title_and_a_page_shows_it_once(picture: Picture) -> None:
    """A file by itself has the title in it for those who see and for those who do not; on a page it is the caption."""
    root = ET.fromstring(svg(picture))
    assert root.get("role") == "img"
    heading = " ".join(each.text or "" for each in root.findall(f"{SVG}text"))
    named = root.findtext(f"{SVG}title") or ""
    assert named.strip() and root.findtext(f"{SVG}desc")
    assert "".join(heading.split()) == "".join(named.split())
    inside = html5lib.parse(whole_page(html(picture)), namespaceHTMLElements=False)
    assert len([each for each in inside.iter() if each.tag.endswith("title") and each.text == named]) == 1
    assert not [each for each in inside.iter() if each.tag.endswith("svg") and each.find("{*}text") is not None]


@pytest.mark.parametrize("value", [
    {"kind": "plot", "title": "t", "series": [{"name": "a", "x": [], "y": [1.0]}]},
    {"kind": "plot", "title": "t", "series": [{"name": "a", "x": [1.0], "y": [1.0], "labels": []}]},
    {"kind": "plot", "title": "t", "series": [{"name": "a", "x": [1.0], "y": ["9" * 4000]}]},
    {"kind": "bars", "title": "t", "names": ["a", "b"], "values": [1.0]},
])  # fmt: skip
def test_a_saved_picture_that_cannot_be_drawn_is_none(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"picture|less than"):
        read_picture(value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("picture", [
    Plot(title="t", series=[Series(name=LONG, x=[1.0], y=[1.0], labels=[LONG])], x_label=LONG, y_label=LONG),
    Heatmap(title="t", values=[[1.0]], rows=[LONG], columns=[LONG], x_label=LONG, y_label=LONG),
    Bars(title="t", names=[LONG], values=[1.0], x_label=LONG),
], ids=lambda picture: picture.kind)  # fmt: skip
def test_words_of_a_million_letters_are_drawn_short(picture: Picture) -> None:
    assert "A" * 500 not in svg(picture)


@pytest.mark.parametrize(
    "uri", ['data:audio/wav;base64,AA"onerror="x', "https://example.org/a.wav", "data:text/html;base64,AA=="]
)
def test_only_recordings_within_the_page_are_played(uri: str) -> None:
    with pytest.raises(ValidationError):
        Sounds(title="t", captions=["a"], sounds=[uri])
