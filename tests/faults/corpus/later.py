"""Data for runs that are trained: to predict, to evaluate, to score, to compare. RUN stands for a run of a task."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from tests.faults.corpus.arrays import ROLL, npz
from tests.faults.corpus.case import bad, good
from tests.faults.corpus.images import drawn, saved
from tests.faults.corpus.sounds import TONE, sound
from tests.faults.corpus.tables import LABELS

ALL: list[Any] = [
    bad("predict: empty csv", "predict classify-run a.csv", {"a.csv": ""}, "a.csv", "empty"),
    bad("predict: header only", "predict classify-run a.csv", {"a.csv": "text\n"}, "a.csv", "no row"),
    good("predict: Latin-1", "predict classify-run a.csv", {"a.csv": b"text\na\ncaf\xe9\n"}, "Windows-1252", "caf\xe9"),
    bad("predict: bad bytes", "predict classify-run a.csv", {"a.csv": b"text\na\ncaf\x81\n"}, "a.csv, line 3", "0x81"),
    bad(
        "predict: empty cell",
        "predict classify-run a.csv",
        {"a.csv": "text,x\na,1\n,2\n"},
        "a.csv, line 3, column 'text'",
    ),
    bad("predict: pipe", "predict classify-run a.csv", {"a.csv": os.mkfifo}, "a.csv", "pipe"),
    bad("predict: no such file", "predict classify-run nowhere.csv", {}, "nowhere.csv", "no such file"),
    bad("predict: no such column", "predict classify-run a.csv", {"a.csv": "body\na\n"}, "a.csv", "text", "body"),
    bad("predict: png to a run of texts", "predict classify-run a.png", {"a.png": saved(drawn())}, "a.png"),
    bad("predict: npz to a run of texts", "predict classify-run a.npz", {"a.npz": npz(x=np.zeros((3, 4)))}, "text"),
    good(
        "predict: other columns", "predict classify-run a.csv", {"a.csv": "x,text,label\n1,word,none\n"}, '"prediction"'
    ),
    good("predict: letters never seen", "predict classify-run a.csv", {"a.csv": "text\n日本語\n"}, '"prediction"'),
    good("predict: lines", "predict classify-run a.txt", {"a.txt": "one\ntwo\n"}, '"prediction"'),
    bad(
        "predict: a series of another width",
        "predict series-run a.npz",
        {"a.npz": npz(x=np.zeros((3, 4, 2)))},
        "2 numbers",
        "1",
    ),
    bad(
        "predict: series of NaN",
        "predict series-run a.npz",
        {"a.npz": npz(x=np.full((3, 4), np.nan))},
        "nan",
        "example 0",
    ),
    bad("predict: text to a run of series", "predict series-run a.txt", {"a.txt": "hello\n"}, "a.txt"),
    bad("predict: series of 1e300", "predict series-run a.npz", {"a.npz": npz(x=np.full((3, 4), 1e300))}, "1e+300"),
    bad("evaluate: empty", "evaluate classify-run a.csv", {"a.csv": ""}, "a.csv", "empty"),
    bad("evaluate: no target", "evaluate classify-run a.csv", {"a.csv": "text\nword\n"}, "a.csv", "label"),
    bad("evaluate: empty target", "evaluate classify-run a.csv", {"a.csv": LABELS + "x,\n"}, "line 42, column 'label'"),
    bad("evaluate: bad bytes", "evaluate token-run a.txt", {"a.txt": b"good\nbad\x81\n" * 9}, "a.txt, line 2", "0x81"),
    bad("evaluate: empty text", "evaluate token-run a.txt", {"a.txt": ""}, "a.txt", "empty"),
    bad("evaluate: one character", "evaluate token-run a.txt", {"a.txt": "a"}, "a.txt"),
    bad("score: empty", "score token-run a.txt", {"a.txt": ""}, "a.txt", "empty"),
    good("score: Latin-1", "score token-run a.txt", {"a.txt": b"good\ncaf\xe9\n" * 9}, "Windows-1252", "caf\xe9"),
    bad("score: bad bytes", "score token-run a.txt", {"a.txt": b"good\nbad\x81\n" * 9}, "a.txt, line 2", "0x81"),
    bad("score: png", "score token-run a.png", {"a.png": saved(drawn())}, "a.png", "PNG"),
    bad("score: folder of nothing", "score token-run a", {"a": lambda path: path.mkdir()}, "a", ".txt"),
    good("score: blank lines", "score token-run a.txt", {"a.txt": "one\n\ntwo\n"}, "one", "two"),
    good("score: one character", "score token-run a.txt", {"a.txt": "a"}, "a"),
    bad("predict: rolls of another width", "predict frame-run a.npz", {"a.npz": npz(a=ROLL[:, :80])}, "80", "88"),
    bad("predict: rolls that tell of 8 TB", "predict frame-run a.mid", {"a.mid": b"MThd"}, "a.mid", ".npz"),
    bad("evaluate: rolls of other numbers", "evaluate frame-run a.npz", {"a.npz": npz(a=ROLL * 5)}, "a.npz", "5"),
    bad("compare: empty", "compare a.csv --budget 5s -o c", {"a.csv": ""}, "a.csv", "empty"),
    bad("compare: no such file", "compare nowhere.csv --budget 5s -o c", {}, "nowhere.csv", "no such file"),
    bad("compare: binary", "compare a.txt --budget 5s -o c", {"a.txt": bytes(range(1, 32)) * 40}, "a.txt", "binary"),
    bad(
        "compare: a single label",
        "compare a.csv --task classify --budget 5s -o c",
        {"a.csv": LABELS.replace("fr", "en")},
        "a.csv",
        "single",
    ),
    bad("compare: pipe", "compare a.csv --budget 5s -o c", {"a.csv": os.mkfifo}, "a.csv", "pipe"),
    bad(
        "compare: cut wav",
        "compare clips --task classify --budget 5s -o c",
        {f"clips/{'ab'[i % 2]}/{i}.wav": sound(TONE * i / 30)[: -700 if i == 5 else None] for i in range(20)},
        "5.wav",
        "cut off",
    ),
]

SHORT = (
    "predict: empty csv",
    "predict: empty cell",
    "predict: pipe",
    "predict: letters never seen",
    "evaluate: no target",
)
CASES = [dataclasses.replace(case, long=case.name not in SHORT) for case in ALL]
