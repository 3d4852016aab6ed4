"""Odd paths: what is no file, what never ends, what is called strangely."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from tests.faults.corpus.case import asks, bad, good
from tests.faults.corpus.tables import LABELS
from tests.faults.corpus.text import LINES

LONG_NAME = "n" * 240 + ".txt"


def listens(path: Path) -> None:
    before = Path.cwd()
    with socket.socket(socket.AF_UNIX) as door:
        os.chdir(path.parent)
        try:
            door.bind(path.name)
        finally:
            os.chdir(before)


def locked(path: Path) -> None:
    path.write_text(LINES, encoding="utf-8")
    path.chmod(0)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def every(name: str, source: str, files: Any, *says: str) -> list[Any]:
    """A source for tasks that read in different ways."""
    ways = {
        "data": source,
        "classify": source,
        "regress": source,
        "tag": source,
        "translate": source,
        "next-frame": source,
        "caption": source,
        "recognise": source,
        "denoise": source,
    }
    return [bad(f"{name}: {way}", f"{way} {named}", files, *says) for way, named in ways.items()]


CASES = [
    *every("no such file", "nowhere.csv", {}, "nowhere.csv", "no such file"),
    *every("pipe", "pipe.csv", {"pipe.csv": os.mkfifo}, "pipe.csv", "pipe"),
    bad("pipe called npz", "next-frame pipe.npz", {"pipe.npz": os.mkfifo}, "pipe.npz", "pipe"),
    bad("pipe called npz to classify", "classify pipe.npz", {"pipe.npz": os.mkfifo}, "pipe.npz", "pipe"),
    bad("pipe called mat", "next-frame pipe.mat", {"pipe.mat": os.mkfifo}, "pipe.mat", "pipe"),
    bad("pipe called json", "next-frame pipe.json", {"pipe.json": os.mkfifo}, "pipe.json", "pipe"),
    bad("pipe called parquet", "data pipe.parquet", {"pipe.parquet": os.mkfifo}, "pipe.parquet", "pipe"),
    bad("pipe called gzip", "data pipe.txt.gz", {"pipe.txt.gz": os.mkfifo}, "pipe.txt.gz", "pipe"),
    bad("pipe among targets", "translate a.de target_file=a.en", {"a.de": LINES, "a.en": os.mkfifo}, "a.en", "pipe"),
    bad("zeros without end", "data /dev/zero", {}, "/dev/zero", "device"),
    bad("zeros without end to classify", "classify /dev/zero", {}, "/dev/zero", "device"),
    bad(
        "zeros without end by a link",
        "data a.txt",
        {"a.txt": lambda path: path.symlink_to("/dev/zero")},
        "a.txt",
        "device",
    ),
    bad("nothing", "data /dev/null", {}, "/dev/null", "device"),
    bad("socket", "data door.txt", {"door.txt": listens}, "door.txt", "socket"),
    bad("socket to classify", "classify door.csv", {"door.csv": listens}, "door.csv", "socket"),
    bad("link to nothing", "data a.txt", {"a.txt": lambda path: path.symlink_to("gone.txt")}, "a.txt", "no such file"),
    bad("link to itself", "data a.txt", {"a.txt": loop}, "a.txt", "link"),
    bad("link to itself to classify", "classify a.csv", {"a.csv": loop}, "a.csv", "link"),
    bad("folder called csv", "classify a.csv", {"a.csv": lambda path: path.mkdir()}, "a.csv", "folder"),
    bad("folder called npz", "next-frame a.npz", {"a.npz": lambda path: path.mkdir()}, "a.npz", "folder"),
    bad("file where a folder is named", "data a.txt/b.txt", {"a.txt": LINES}, "b.txt"),
    bad("name too long", f"data {'n' * 300}.txt", {}, "n" * 20),
    asks("path too long", f"data {'folder/' * 700}a.txt", {}, "path"),
    asks("address", "classify https://example.org/a.csv", {}, "https://example.org/a.csv", "download"),
    asks("address of a text", "data https://example.org/a.txt", {}, "https://example.org/a.txt", "download"),
    bad("shell pattern", "data '*.txt'", {"a.txt": LINES}, "*.txt", "no such file"),
    bad("home", "data '~/nowhere/a.txt'", {}, "~/nowhere", "no such file"),
    asks("empty name", "data ''", {"a.txt": LINES}, "path is empty"),
    asks("empty name to classify", "classify ''", {"a.txt": LINES}, "path is empty"),
    bad("escape in a name", "data 'a\x1b[31mb.txt'", {}, "no such file"),
    bad("pipe in a folder of texts", "data texts", {"texts/a.txt": os.mkfifo}, "texts", ".txt"),
    bad("pipe in a folder of images", "classify shown", {"shown/a/a.png": os.mkfifo}, "shown", "no file"),
    good("pipe beside texts", "next-token texts", {"texts/a.txt": LINES, "texts/b.txt": os.mkfifo}, characters=900),
    good("spaces and brackets", "next-token 'ödd näme [1] .txt'", {"ödd näme [1] .txt": LINES}, characters=900),
    good("new line in a name", "next-token 'a\nb.txt'", {"a\nb.txt": LINES}, characters=900),
    good("name that begins with a dash", "data -- -a.txt", {"-a.txt": LINES}, "900"),
    good("long name", f"next-token {LONG_NAME}", {LONG_NAME: LINES}, characters=900),
    good("no ending", "next-token readme", {"readme": LINES}, characters=900),
    good("unknown ending", "next-token a.log", {"a.log": LINES}, characters=900),
    good("capital ending", "classify A.CSV", {"A.CSV": LABELS}, examples=40),
    good(
        "link to a file",
        "next-token a.txt",
        {"b.txt": LINES, "a.txt": lambda path: path.symlink_to("b.txt")},
        characters=900,
    ),
    good("bytes in a name that are not UTF-8", "next-token caf\udce9.txt", {"caf\udce9.txt": LINES}, characters=900),
    good("quotes in a name", 'next-token "a\'b.txt"', {"a'b.txt": LINES}, characters=900),
]

if os.geteuid():
    CASES.append(bad("no permission", "data a.txt", {"a.txt": locked}, "a.txt", "permission"))
