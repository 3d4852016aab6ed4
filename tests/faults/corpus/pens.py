"""Drawings of a pen, to be drawn again: .npz, JSON, InkML and SVG."""

from __future__ import annotations

import json

import numpy as np

from tests.faults.corpus.arrays import npz, of_pickle, packed
from tests.faults.corpus.case import Content, asks, bad, good

ROWS = np.array([[0, 0, 0], [3, 1, 0], [1, 2, 1], [4, 0, 0], [0, 5, 1]])


def lines(more: str) -> dict[str, Content]:
    rows = [json.dumps({"strokes": [[[0, 0], [i, 1], [2, i]]], "text": "ab"}) + "\n" for i in range(24)]
    return {"a.jsonl": "".join(rows) + more}


def ink(more: str) -> dict[str, Content]:
    """A folder of InkML files of which the last is this one."""
    files: dict[str, Content] = {f"p/{i:02}.inkml": f"<ink><trace>0 0, {i} 2, 3 {i}</trace></ink>" for i in range(24)}
    return files | {"p/z.inkml": more}


def svg(more: str) -> dict[str, Content]:
    files: dict[str, Content] = {f"p/{i:02}.svg": f'<svg><path d="M0 0 L{i} 2 l3 1"/></svg>' for i in range(24)}
    return files | {"p/z.svg": more}


def arrays(**more: np.ndarray) -> dict[str, Content]:
    return {"a.npz": npz(**{f"d{i:02}": ROWS + np.array([[i, 0, 0]]) for i in range(24)}, **more)}


NPZ = [
    bad("a move of NaN", "handwriting a.npz", arrays(z=np.array([[0, 0, 0], [np.nan, 1, 1]])),
        "'z'", "point 1", "finite"),
    bad("a pen that is never lifted", "handwriting a.npz", arrays(z=ROWS * [1, 1, 0]), "'z'", "never lifted"),
    bad("a lift that is half", "handwriting a.npz", arrays(z=ROWS * [1, 1, 0.5]), "'z'", "up 0 or 1"),
    bad("a move beyond single precision", "handwriting a.npz", arrays(z=ROWS * [1e39, 1, 1.0]),
        "'z'", "point 1", "1e+18"),
    bad("moves of four columns", "handwriting a.npz", arrays(z=np.ones((4, 4))), "'z'", "[4, 4]"),
    bad("a drawing without points", "handwriting a.npz", arrays(z=np.ones((0, 3))), "'z'", "[0, 3]"),
    bad("moves as objects", "handwriting a.npz",
        {"a.npz": packed(**{"x.npy": of_pickle(np.array([1, None]))})}, "a.npz"),
    bad("more texts than drawings", "handwriting a.npz", arrays(texts=np.array(["a"] * 25)), "25 texts", "24 drawings"),
    bad("half an npz of drawings", "handwriting a.npz", {"a.npz": npz(a=ROWS)[:150]}, "a.npz"),
    bad("drawings that do not move", "handwriting a.npz",
        {"a.npz": npz(**{f"d{i}": np.eye(3)[[2] * (i + 1)] for i in range(9)})},
        "never moves"),
    bad("one drawing alone", "handwriting a.npz", {"a.npz": npz(a=ROWS)}, "only one example"),
]  # fmt: skip

FILES = [
    bad("a line that is no drawing", "handwriting a.jsonl", lines('{"strokes": "circle", "text": "ab"}\n'), "line 25"),
    bad("a drawing of infinity", "handwriting a.jsonl", lines('{"strokes": [[[0, 0], [1e999, 1]]]}\n'), "line 25"),
    bad("a text that is a list", "handwriting a.jsonl", lines('{"strokes": [[[0, 0], [1, 1]]], "text": ["a"]}\n'),
        "line 25", "text"),
    bad("a drawing without its text",
        "train a.jsonl --task handwriting --model soft-window --set task.text=true --steps 1 -o run",
        lines('{"strokes": [[[0, 0], [1, 1]]]}\n'), "line 25", "no text"),
    bad("half an InkML file", "handwriting p", ink("<ink><trace>0 0, 1"), "z.inkml", "not XML"),
    bad("InkML without traces", "handwriting p", ink("<ink/>"), "z.inkml", "no strokes"),
    bad("a trace of single numbers", "handwriting p", ink("<ink><trace>1, 2, 3, 4</trace></ink>"),
        "z.inkml", "trace 0"),
    bad("a path that starts with numbers", "handwriting p", svg('<svg><path d="5 5 M0 0 L1 1"/></svg>'),
        "z.svg", "5 5"),
    bad("a line of 100,000 brackets", "handwriting a.jsonl", lines('{"strokes": ' + "[" * 100_000 + "\n"),
        "line 25", "deep"),
    bad("a trace of words", "handwriting p", ink("<ink><trace>a b</trace></ink>"), "z.inkml", "trace 0"),
    bad("entities in InkML", "handwriting p",
        ink('<!DOCTYPE ink [<!ENTITY a "b">]><ink><trace>0 0, 1 1</trace></ink>'), "z.inkml", "entities"),
    bad("a line in centimetres", "handwriting p", svg('<svg><line x1="1cm" y1="0" x2="2" y2="2"/></svg>'),
        "z.svg", "'cm'"),
    bad("an arc in a path", "handwriting p", svg('<svg><path d="M0 0 A1 1 0 0 0 2 2"/></svg>'), "z.svg", "command A"),
    bad("a folder of drawings without any", "handwriting p", {"p/a.txt": "hello"}, "p", "drawings"),
    good("drawings of InkML", "handwriting p", ink("<ink><trace>0 0, 1 1</trace></ink>"), drawings=25),
    good("a dot of SVG", "handwriting p", svg('<svg><path d="M3 3 z"/></svg>'), drawings=25),
    asks("words as tokens of a pen", "handwriting a.jsonl tokens=word", lines(""), "tokens does not apply"),
]  # fmt: skip

CASES = [*NPZ, *FILES]
