"""What people bring: exports of spreadsheets, statistics programs, notebooks, sound editors and phones."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import polars
from PIL import Image, ImageDraw

from tests.faults.corpus.arrays import X, Y, npz
from tests.faults.corpus.case import asks, bad, good
from tests.faults.corpus.images import pictures, saved
from tests.faults.corpus.sounds import TONE, clips, sound

TEXTS = [f"a text of number {i}" for i in range(40)]
LABELS = ["good" if i % 2 else "bad" for i in range(40)]
ROWS = list(zip(TEXTS, LABELS))
CSV = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS)
INDEXED = ",text,label\n" + "".join(f"{i},{text},{label}\n" for i, (text, label) in enumerate(ROWS))
RECORDS = [{"text": text, "label": label} for text, label in ROWS]


def photo(**options: Any) -> bytes:
    image = Image.new("RGB", (64, 48), "white")
    ImageDraw.Draw(image).ellipse((9, 9, 30, 30), fill="red")
    return saved(image, "JPEG", **options)


EXCEL = "sep=,\r\n" + CSV
R_TABLE = '"text","label"\n' + "".join(
    f'"{i + 1}","{text}","{label}"\n' for i, (text, label) in enumerate(zip(TEXTS, LABELS))
)
QUOTED = '"text","label"\n' + "".join(f'"{text}","{label}"\n' for text, label in ROWS)
GOOGLE_FORM = "Timestamp,How was it?,label\n" + "".join(
    f'2024/05/31 10:00:{i:02d},"Fine, {i}",{i % 2}\n' for i in range(40)
)
TWEETS = "".join(json.dumps({"id": i, "full_text": f"so good 😀 {i}", "label": i % 2}) + "\n" for i in range(40))
SENSOR = "time,x,y,z\n" + "".join(f"{t / 50:.2f},{t % 7},{t % 5},{t % 3}\n" for t in range(400))

SHEETS = [
    good("Excel: first line sep=", "classify a.csv", {"a.csv": EXCEL}, examples=40),
    bad(
        "Excel: title above the header",
        "classify a.csv",
        {"a.csv": "Results of May\n\n" + CSV},
        "a.csv, line 3",
        "2 cells",
    ),
    bad(
        "Excel: totals below",
        "regress a.csv",
        {"a.csv": "text,y\n" + "a,1\nb,2\n" * 9 + "Total,\n"},
        "line 20, column 'y'",
    ),
    bad(
        "Excel: empty columns at the end",
        "classify a.csv",
        {"a.csv": CSV.replace("\n", ",,\n")},
        "line 1, column 3",
        "no name",
    ),
    good(
        "Excel: empty rows at the end",
        "classify a.csv",
        {"a.csv": CSV + ",\n,\n"},
        "2 blank lines",
        examples=40,
    ),
    good(
        "Excel in German: ;",
        "regress a.csv",
        {"a.csv": "Text;y\n" + "".join(f"warm {i};{i},5\n" for i in range(30))},
        "';'",
        "decimal comma",
        examples=30,
    ),
    good(
        "Excel: Unicode text",
        "classify a.txt",
        {"a.txt": CSV.replace(",", "\t").encode("utf-16")},
        "UTF-16",
        "line 1 names the columns",
        examples=40,
    ),
    good("LibreOffice: everything quoted", "classify a.csv", {"a.csv": QUOTED}, examples=40),
    bad("R: names of rows", "classify a.csv", {"a.csv": R_TABLE}, "a.csv, line 2", "3 cells", "2"),
    good("R: NA among texts", "classify a.csv", {"a.csv": CSV + "NA,good\n"}, examples=41),
    bad(
        "R: NA among numbers",
        "regress a.csv",
        {"a.csv": "text,y\n" + "a,1\nb,2\n" * 9 + "c,NA\n"},
        "line 20, column 'y'",
        "NA",
    ),
    good("pandas: index and all", "classify a.csv", {"a.csv": INDEXED}, "row names", examples=40),
    good(
        "pandas: Unnamed: 0",
        "classify a.csv",
        {"a.csv": INDEXED.replace(",text", "Unnamed: 0,text", 1)},
        examples=40,
    ),
    good("pandas: records", "classify a.json", {"a.json": json.dumps(RECORDS)}, examples=40),
    good(
        "pandas: records by line",
        "classify a.jsonl",
        {"a.jsonl": "\n".join(map(json.dumps, RECORDS))},
        examples=40,
    ),
    bad(
        "pandas: columns of json",
        "classify a.json",
        {"a.json": json.dumps({"text": dict(enumerate(TEXTS)), "label": dict(enumerate(LABELS))})},
        "a.json",
        "object",
        "records",
    ),
    bad("pandas: pickle", "classify a.pkl", {"a.pkl": pickle.dumps(RECORDS)}, "a.pkl", "pickle"),
    good(
        "pandas: parquet with an index",
        "classify a.parquet",
        {
            "a.parquet": lambda path: polars.DataFrame(
                {"text": TEXTS, "label": LABELS, "__index_level_0__": range(40)}
            ).write_parquet(path)
        },
        examples=40,
    ),
    bad(
        "pandas: blanks read as NaN and written",
        "regress a.csv",
        {"a.csv": "text,y\n" + "a,1.0\n" * 39 + "b,\n"},
        "line 41, column 'y'",
        "empty",
    ),
    asks("a form of questions", "classify a.csv column=comment", {"a.csv": GOOGLE_FORM}, "comment", "How was it?"),
    good("a form of questions, named", "classify a.csv 'column=How was it?'", {"a.csv": GOOGLE_FORM}, examples=40),
    good("posts with other names", "classify a.jsonl", {"a.jsonl": TWEETS}, "full_text", "content", examples=40),
    good("posts with other names, named", "classify a.jsonl column=full_text", {"a.jsonl": TWEETS}, examples=40),
    bad(
        "stars of five, one of them text",
        "regress a.csv",
        {"a.csv": "text,stars\n" + "a,5\nb,4\n" * 9 + "c,five\n"},
        "line 20, column 'stars'",
        "five",
    ),
    good(
        "yes and no",
        "classify a.csv",
        {"a.csv": CSV.replace("good", "yes").replace("bad", "no")},
        outputs=2,
    ),
    bad(
        "labels with a missing one as nan",
        "classify a.csv",
        {"a.csv": CSV + "more,\n"},
        "line 42",
    ),
    good("a copy of the header in capitals", "classify a.csv", {"a.csv": CSV.upper()}, outputs=2),
]

SIGNALS = [
    good("a recording of a sensor, row by row", "classify a.csv target=z", {"a.csv": SENSOR}, "time, x, y", outputs=3),
    good("scikit-learn: x and y", "classify a.npz", {"a.npz": npz(X=X, y=Y)}, examples=40),
    good("scikit-learn: one-hot targets as a set", "regress a.npz", {"a.npz": npz(x=X, y=np.eye(2)[Y])}, examples=40),
    good("PyTorch: float labels", "classify a.npz", {"a.npz": npz(x=X.astype("f4"), y=Y.astype("f4"))}, outputs=2),
    good(
        "PyTorch: channels first",
        "classify a.npz",
        {"a.npz": npz(x=np.ones((40, 1, 8)) * np.arange(40)[:, None, None], y=Y)},
        examples=40,
    ),
    bad(
        "Audacity: a project",
        "classify clips",
        clips(None) | {"clips/a/x.aup3": b"SQLite format 3\0"} | {"clips/b/y.wav": b"SQLite format 3\0" + bytes(99)},
        "y.wav",
    ),
    bad(
        "Audacity: labels beside",
        "recognise clips",
        {"clips/a.wav": sound(), "clips/labels.txt": "0.0\t1.0\tword\n"},
        "clips",
    ),
    bad("phone: m4a called wav", "classify clips", clips(b"\0\0\0\x20ftypM4A " + bytes(300)), "odd.wav", "sound"),
    good(
        "phone: m4a beside wav",
        "classify clips",
        clips(b"\0\0\0\x20ftypM4A " + bytes(300), "odd.m4a"),
        "1 other file",
        examples=24,
    ),
    bad(
        "stereo of another length",
        "classify clips",
        clips(sound(np.stack([TONE, TONE], 1), rate=44100)),
        "odd.wav",
        "44100",
    ),
]

PHOTOS = [
    bad("phone: photos of many sizes", "classify shown", pictures(photo(), "IMG_1.JPG"), "IMG_1.JPG", "64 x 48"),
    bad(
        "phone: HEIC alone",
        "classify shown",
        {f"shown/{'ab'[i % 2]}/IMG_{i}.HEIC": b"\0\0\0\x24ftypheic" for i in range(9)},
        "shown",
        ".heic",
    ),
    bad(
        "web: page saved as jpg",
        "classify shown",
        pictures(b"<!DOCTYPE html><html>404</html>", "x.jpg"),
        "x.jpg",
        "image",
    ),
    bad(
        "screenshots without folders",
        "classify shown",
        {f"shown/Screenshot {i}.png": saved(Image.new("L", (8, 8), i)) for i in range(9)},
        "Screenshot 0.png",
        "folder",
    ),
    good(
        "Mac: an archive unpacked",
        "classify shown",
        pictures(None) | {"shown/__MACOSX/a/._1.png": b"\0\5\x16\7"},
        examples=24,
    ),
    good(
        "Windows: names with spaces and brackets",
        "classify shown",
        pictures(saved(Image.new("L", (8, 8), 9)), "Kopie von Bild (1).png"),
        examples=25,
    ),
]

CASES = [*SHEETS, *SIGNALS, *PHOTOS]
