"""Which task a source is for: a table of sources of every kind, each looked at once."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unrolled.core import opening
from unrolled.core.errors import DataError, UnrolledError, UsageError
from unrolled.data.files import text_file as plain
from unrolled.data.look import look
from unrolled.runs.guess import guess_task

ROWS = [{"text": f"some words {i}", "label": "ab"[i % 2]} for i in range(40)]
PAIRS = [(f"satz nummer {i}", f"sentence number {i}") for i in range(60)]
SERIES = np.arange(240, dtype=float).reshape(40, 6)


def text(name: str, content: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
        return folder / name

    return make


def table(name: str, header: str, row: Callable[[int], str], n: int = 40) -> Callable[[Path], Any]:
    return text(name, "\n".join([*([header] if header else []), *(row(i) for i in range(n))]) + "\n")


def jsonl(name: str, rows: list[Any]) -> Callable[[Path], Any]:
    return text(name, "\n".join(json.dumps(row) for row in rows))


def npz(**arrays: Any) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        np.savez(folder / "a.npz", **arrays)
        return folder / "a.npz"

    return make


def files(*made: Callable[[Path], Any], name: str = "") -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        for each in made:
            each(folder)
        return folder / name

    return make


def image(name: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        values = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], np.uint8)
        Image.fromarray(values.reshape(4, 4)).save(folder / name)

    return make


def sound(name: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / name), "wb") as clip:
            clip.setnchannels(1)
            clip.setsampwidth(2)
            clip.setframerate(8000)
            clip.writeframes(hashlib.sha256(name.encode()).digest() * 50)

    return make


def packed(folder: Path) -> Path:
    (folder / "r.csv.gz").write_bytes(gzip.compress(b"text,label\n" + b"x y,a\nz w,b\n" * 20))
    return folder / "r.csv.gz"


def frame(columns: dict[str, Any]) -> Callable[[Path], Any]:
    def make(folder: Path) -> Any:
        import polars

        return polars.DataFrame(columns)

    return make


def parquet(folder: Path) -> Path:
    import polars

    polars.DataFrame(ROWS).write_parquet(folder / "r.parquet")
    return folder / "r.parquet"


def of(value: Any) -> Callable[[Path], Any]:
    return lambda folder: value


def idx(folder: Path) -> Path:
    for part in ("train", "t10k"):
        images, labels = bytes([0, 0, 8, 3, 0, 0, 0, 30, 0, 0, 0, 2, 0, 0, 0, 2]), bytes([0, 0, 8, 1, 0, 0, 0, 30])
        (folder / f"{part}-images-idx3-ubyte").write_bytes(images + bytes(120))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels + bytes(i % 10 for i in range(30)))
    return folder


STROKES = [{"strokes": [[[0, 0], [1, 1], [2, 1]]], "text": f"w{i}"} for i in range(9)]
TS = "@classLabel true 1 2\n@data\n1,2:1\n2,3:2\n"
WORDS = "The_DT dog_NN barks_VBZ ._.\n" * 30


def encoded(name: str, encoding: str, header: str, row: Callable[[int], str]) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes("\r\n".join([header, *map(row, range(40)), ""]).encode(encoding))
        return folder / name

    return make


def said(i: int) -> str:
    """A sentence of its own."""
    return f"the {['film', 'book', 'song'][i % 3]} was {['good', 'bad'][i % 2]} on day {i}"


def parquet_of(columns: dict[str, Any]) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        import polars

        polars.DataFrame(columns).write_parquet(folder / "r.parquet")
        return folder / "r.parquet"

    return make


SIDE = ["positive", "negative"]
EXPORTED: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "Excel in German: classes": (
        encoded("r.csv", "cp1252", "Text;Kategorie", lambda i: f"schöne Grüße {i};{'äß'[i % 2]}"),
        {},
        "classify",
    ),
    "Excel in German: numbers": (encoded("r.csv", "cp1252", "Text;y", lambda i: f"Tür {i};{i},5"), {}, "regress"),
    "Excel in German: a column of unknown name": (
        encoded("r.csv", "cp1252", "Bezeichnung;Preis", lambda i: f"Stück Nr. {i} in Grün;{i},95"),
        {},
        "regress",
    ),
    "Excel: Unicode text": (
        encoded("r.txt", "utf-16", "text\tlabel", lambda i: f"{said(i)}\t{SIDE[i % 2]}"),
        {},
        "classify",
    ),
    "Excel: sep=": (encoded("r.csv", "utf-8", "sep=;\r\ntext;label", lambda i: f"{said(i)};{i % 2}"), {}, "classify"),
    "R: row names": (
        table("r.csv", '"","text","label"', lambda i: f'"{i}","{said(i)}","{SIDE[i % 2]}"'),
        {},
        "classify",
    ),
    "R: row names of series": (
        table("r.csv", '"","a","b","c","class"', lambda i: f'"{i}",{i},1.5,2,"{"xy"[i % 2]}"'),
        {},
        "classify",
    ),
    "pandas: index": (table("r.csv", ",review,stars", lambda i: f"{i},{said(i)},{i % 5}"), {}, "classify"),
    "Kaggle: id, text and target": (
        table("train.csv", "id,text,target", lambda i: f"{100 + i},{said(i)},{i % 2}"),
        {},
        "classify",
    ),
    "Kaggle: other names": (
        table("train.csv", "qid,question_text,insincere", lambda i: f"{i:05x},{said(i)},{i % 2}"),
        {},
        "classify",
    ),
    "Kaggle: without a target": (table("test.csv", "id,text", lambda i: f"{i},{said(i)}"), {}, "next-token"),
    "Kaggle: keyword and place beside": (
        table("train.csv", "id,keyword,location,text,target", lambda i: f"{i},,,{said(i)},{i % 2}"),
        {},
        "classify",
    ),
    "sheet: tsv with a header": (
        table("r.tsv", "Comment\tMood", lambda i: f"{said(i)}\t{SIDE[i % 2]}"),
        {},
        "classify",
    ),
    "sheet: tsv with the label first": (
        table("r.tsv", "Mood\tComment", lambda i: f"{SIDE[i % 2]}\t{said(i)}"),
        {},
        "classify",
    ),
    "sentiment: tsv": (table("s.tsv", "", lambda i: f"{said(i)}\t{i % 2}"), {}, "classify"),
    "sentiment: tsv with the label first": (table("s.tsv", "", lambda i: f"{i % 2}\t{said(i)}"), {}, "classify"),
    "sentiment: quotes in sentences": (table("s.tsv", "", lambda i: f'{i % 2}\t"{said(i)} he said'), {}, "classify"),
    "sentiment: csv without a header": (table("s.csv", "", lambda i: f'{i % 2},"{said(i)}, again"'), {}, "classify"),
    "spam: a file without an ending": (
        table("SMS", "", lambda i: f"{['ham', 'spam'][i % 2]}\t{said(i)}"),
        {},
        "classify",
    ),
    "ratings behind a tab": (table("s.txt", "", lambda i: f"{said(i)}\t{i * 0.37:.2f}"), {}, "regress"),
    "ratings in a tsv": (table("s.tsv", "", lambda i: f"{said(i)}\t{i * 0.37:.2f}"), {}, "regress"),
    "names and their languages": (
        table("n.csv", "name,origin", lambda i: f"Ana{i},{['Greek', 'Irish', 'Dutch'][i % 3]}"),
        {},
        "classify",
    ),
    "fasttext with another ending": (
        table("cooking.train", "", lambda i: f"__label__{SIDE[i % 2]} {said(i)}"),
        {},
        "classify",
    ),
    "conll called txt": (
        text("train.txt", "EU NNP B-ORG\nrejects VBZ O\ncalls NNS O\n\nNow RB O\nhe PRP O\n\n" * 20),
        {},
        "tag",
    ),
    "conll without an ending": (
        text("eng.train", "-DOCSTART- -X- O\n\n" + "EU NNP B-ORG\nrejects VBZ O\ncalls NNS O\n\n" * 20),
        {},
        "tag",
    ),
    "a chat": (
        table("chat.txt", "", lambda i: f"12.03.21, 10:{i:02} - {['Ann', 'Bob'][i % 2]}: {said(i)}"),
        {},
        "next-token",
    ),
    "a chat between tabs": (
        table("chat.txt", "", lambda i: f"2021-03-12 10:{i:02}\t{['Ann', 'Bob'][i % 2]}\t{said(i)}"),
        {},
        "next-token",
    ),
    "texts and other columns": (
        table("p.csv", "id,date,body,likes", lambda i: f"{i},2021-03-{i % 28 + 1:02},{said(i)},{i * 7 % 31}"),
        {},
        "next-token",
    ),
    "poems in short lines": (
        text("poem.txt", "roses red\nviolets blue\nsugar sweet\nlike you\n\n" * 20),
        {},
        "next-token",
    ),
    "a dictionary": (table("d.tsv", "", lambda i: f"Wort{i}\tword{i}"), {}, "translate"),
    "a dictionary with repeated words": (table("d.tsv", "", lambda i: f"Wort{i // 2}\tword{i}"), {}, "translate"),
    "questions and answers": (
        table("q.csv", "question,answer", lambda i: f"{said(i)}?,because of {i}"),
        {},
        "translate",
    ),
    "parquet with other names": (
        parquet_of({"idx": range(40), "sentence1": [said(i) for i in range(40)], "gold": SIDE * 20}),
        {},
        "classify",
    ),
    "parquet of texts": (
        parquet_of({"url": [f"u{i}" for i in range(40)], "content": [said(i) * 3 for i in range(40)]}),
        {},
        "next-token",
    ),
    "UTF-16 of a sheet": (
        encoded("r.csv", "utf-16", "text\tlabel", lambda i: f"{said(i)}\t{SIDE[i % 2]}"),
        {},
        "classify",
    ),
    "a table between bars": (table("r.csv", "text|label", lambda i: f"{said(i)}|{SIDE[i % 2]}"), {}, "classify"),
    "a separator that is given": (
        table("r.csv", "text~label", lambda i: f"{said(i)}~{SIDE[i % 2]}"),
        {"separator": "~"},
        "classify",
    ),
}

TABLE: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = EXPORTED | {
    # files
    "a text": (text("a.txt", "just a text\nin lines\n" * 30), {}, "next-token"),
    "an empty text": (text("a.txt", ""), {}, "next-token"),
    "a text of another ending": (text("page.xml", "<page>some text</page>\n" * 9), {}, "next-token"),
    "a text without an ending": (text("poem", "roses are red\n" * 9), {}, "next-token"),
    "no file": (lambda folder: folder / "none.txt", {}, ""),
    "fasttext lines": (text("a.txt", "__label__a some text\n__label__b more\n" * 9), {}, "classify"),
    "fasttext lines of several": (text("a.txt", "__label__a __label__b text\n" * 9), {}, "classify"),
    "lines with a class": (table("c.txt", "", lambda i: f"text {i}\tclass{i % 3}", 60), {}, "classify"),
    "lines with a translation": (table("c.txt", "", lambda i: "\t".join(PAIRS[i]), 60), {}, "translate"),
    "conll": (text("a.conll", "EU B-ORG\nrejects O\n\nNow O\n"), {}, "tag"),
    "conllu": (text("a.conllu", "1\tThe\tthe\tDET\n2\tdog\tdog\tNOUN\n"), {}, "tag"),
    "tagged words": (text("a.txt", WORDS), {}, "tag"),
    "tagged words, and that": (text("a.txt", WORDS), {"untagged": "skip"}, "tag"),
    "ts with classes": (text("a.ts", TS), {}, "classify"),
    "ts with numbers": (text("a.ts", "@targetLabel true\n@data\n1,2:0.5\n"), {}, "regress"),
    "ts by its set's name": (
        files(text("set/G_TRAIN.ts", TS), text("set/G_TEST.ts", TS), name="set/G"), {}, "classify"),
    # tables
    "reviews": (table("r.csv", "text,label", lambda i: f"good {i},{'ab'[i % 2]}"), {}, "classify"),
    "reviews, packed": (packed, {}, "classify"),
    "reviews in parquet": (parquet, {}, "classify"),
    "reviews with stars": (table("r.csv", "review,sentiment", lambda i: f"good {i},{i % 5}"), {}, "classify"),
    "scores": (table("r.csv", "text,score", lambda i: f"good {i},{i}.5"), {}, "regress"),
    "many whole numbers": (table("r.csv", "text,y", lambda i: f"good {i},{i}"), {}, "regress"),
    "an unknown column": (table("r.csv", "text,other", lambda i: f"good {i},{i % 2}"), {}, "classify"),
    "an unknown column, named": (
        table("r.csv", "text,other", lambda i: f"good {i},{i % 2}"), {"target": "other"}, "classify"),
    "several classes": (
        table("r.csv", "text,labels", lambda i: f"good {i},{'a|b' if i % 2 else 'a'}"), {"class_separator": "|"},
        "classify"),
    "texts with a condition": (
        table("n.csv", "name,language", lambda i: f"ana{i},{'ab'[i % 2]}"), {"condition": "language"}, "next-token"),
    "an empty table": (text("m.csv", ""), {}, "next-token"),
    "a header alone": (text("m.csv", "text,label\n"), {}, "next-token"),
    "a table with semicolons": (table("m.csv", "text;label", lambda i: f"a {i};{'bc'[i % 2]}"), {}, "classify"),
    "series along rows": (table("w.csv", "a,b,c,class", lambda i: f"{i},1,2,{'xy'[i % 2]}"), {}, "classify"),
    "numbers without a header": (table("w.csv", "", lambda i: f"{i},1,2"), {}, "next-token"),
    "a long table of series": (
        table("l.csv", "id,time,value,label", lambda i: f"{i // 8},{i % 8},{i}.5,{'xy'[i // 8 % 2]}", 80), {},
        "classify"),
    "a noisy and a clean column": (table("d.csv", "time,noisy,clean", lambda i: f"{i},{i}.5,{i}"), {}, "denoise"),
    "clean series with noise": (npz(x=SERIES), {"noise": "white"}, "denoise"),
    "texts in json lines": (jsonl("t.jsonl", [{"text": f"line {i}", "n": i} for i in range(30)]), {}, "next-token"),
    "tags in json lines": (jsonl("t.jsonl", [{"tokens": ["a", "b"], "tags": ["X", "Y"]}] * 9), {}, "tag"),
    "classes in json": (text("t.json", json.dumps(ROWS)), {}, "classify"),
    "damaged json": (text("t.json", "[{"), {}, "next-token"),
    "pairs in a table": (table("p.csv", "source,target", lambda i: ",".join(PAIRS[i])), {}, "translate"),
    "pairs by language": (table("p.csv", "de,en", lambda i: ",".join(PAIRS[i])), {}, "translate"),
    "pairs of unknown columns": (table("p.csv", "title,body", lambda i: ",".join(PAIRS[i])), {}, "next-token"),
    "named pairs of unknown columns": (
        table("p.csv", "title,body", lambda i: ",".join(PAIRS[i])),
        {"source_column": "title", "target_column": "body"}, "translate"),
    "classes called target": (table("c.csv", "source,target", lambda i: f"text {i},class{i % 3}", 60), {}, "classify"),
    "numbers called target": (table("n.csv", "source,target", lambda i: f"text {i},{i}", 60), {}, "regress"),
    "pairs with a tab": (table("p.tsv", "", lambda i: "\t".join(PAIRS[i])), {}, "translate"),
    "pairs with a tab and a header": (table("p.tsv", "source\ttarget", lambda i: "\t".join(PAIRS[i])), {}, "translate"),
    "classes with a tab": (table("c.tsv", "", lambda i: f"text {i}\tclass{i % 3}", 60), {}, "classify"),
    "pairs in json lines": (
        jsonl("p.jsonl", [{"source": s, "target": t} for s, t in PAIRS]), {}, "translate"),
    "captions": (files(image("a.png"), text("captions.csv", "image,caption\na.png,black\n"), name="captions.csv"),
                 {}, "caption"),
    "clips": (files(sound("a.wav"), text("t.csv", "file,text\na.wav,yes\n"), name="t.csv"), {}, "recognise"),
    "strokes": (jsonl("s.jsonl", STROKES), {}, "recognise"),
    # arrays
    "series with classes": (npz(x=SERIES, y=np.arange(40) % 2), {}, "classify"),
    "series with numbers": (npz(x=SERIES, y=SERIES[:, 0] / 7), {}, "regress"),
    "series with many numbers": (npz(x=SERIES, y=SERIES), {}, "regress"),
    "series with series": (npz(x=SERIES[:, :, None], y=SERIES[:, :, None]), {}, "denoise"),
    "series in splits": (npz(x_train=SERIES, y_train=np.arange(40) % 2), {}, "classify"),
    "images with captions": (npz(images=np.zeros((4, 3, 3)), captions=list("abcd")), {}, "caption"),
    "a piano roll": (npz(roll=np.zeros((40, 88), bool)), {}, "next-frame"),
    "a damaged npz": (text("a.npz", "PK"), {}, "next-frame"),
    "a mat file": (text("a.mat", "MATLAB 5.0"), {}, "next-frame"),
    # folders
    "a folder of texts by class": (
        files(*(text(f"{c}/{i}.txt", f"{c} words {i}") for c in "ab" for i in range(4))), {}, "classify"),
    "a folder with a text for each class": (
        files(text("Greek.txt", "a\nb\n"), text("Irish.txt", "c\nd\n")), {}, "classify"),
    "a folder with one text": (files(text("only.txt", "just a text\nin lines of words\n" * 9)), {}, "next-token"),
    "an empty folder": (files(), {}, "next-token"),
    "a folder of conll files": (files(text("a.conll", "a X\n"), text("b.conll", "b Y\n")), {}, "tag"),
    "a folder of images by class": (
        files(*(image(f"{c}/{i}.png") for c in "ab" for i in range(3))), {}, "classify"),
    "a folder of images": (files(image("a.png"), image("b.png")), {}, "classify"),
    "a folder with an ending for each class": (
        files(text("README.txt", "about\n"), *(table(f"r.{c}", "", said) for c in ("pos", "neg"))), {}, "classify"),
    "a folder of data and what it is": (
        files(text("set.data", "1,2\n" * 30), text("set.info", "it is\n" * 30)), {}, "next-token"),
    "a folder with a text and what it is": (
        files(text("README.txt", "about\n"), text("a.txt", "a text\n" * 30)), {}, "next-token"),
    "a folder of tagged words": (files(text("list.txt", "a\n"), *(text(f"{c}/1.txt", WORDS) for c in "ab")), {}, "tag"),
    "a folder of three languages": (
        files(*(text(f"train.{side}", "".join(f"{p[0]}\n" for p in PAIRS)) for side in ("de", "en", "fr"))), {},
        "translate"),
    "numbers with a class behind": (
        table("p.csv", "", lambda i: f"{i * 7 % 100},{i * 3},{i * 11 % 97},{i % 5}"), {}, "classify"),
    "numbers with a class before": (
        table("p.tsv", "", lambda i: f"{i % 2}\t{i * 0.3:.3f}\t{i * 0.7:.3f}\t{i * 1.1:.3f}"), {}, "classify"),
    "a folder of images with a pattern": (
        files(image("a_1.png"), image("b_2.png")), {"pattern": r"(?P<answer>\w)_\d"}, "classify"),
    "a folder of images with captions": (
        files(image("a.png"), text("captions.csv", "image,caption\na.png,black\n")), {}, "caption"),
    "a folder of sounds by class": (
        files(*(sound(f"{c}/{i}.wav") for c in "ab" for i in range(3))), {}, "classify"),
    "a folder of clips with texts": (
        files(sound("a.wav"), text("transcripts.csv", "file,text\na.wav,yes\n")), {}, "recognise"),
    "a folder by number": (
        files(*(image(f"{i}.5/{i}.png") for i in range(4))), {}, "regress"),
    "a folder of splits": (
        files(*(text(f"{part}.csv", "text,label\nx,a\ny,b\n") for part in ("train", "test"))), {}, "classify"),
    "a folder of splits of folders": (
        files(*(image(f"{part}/{c}/1.png") for part in ("train", "test") for c in "ab")), {}, "classify"),
    "a folder of two languages": (
        files(*(text(f"{part}.{side}", "".join(f"{p[side == 'en']}\n" for p in PAIRS))
                for part in ("train", "val") for side in ("de", "en"))), {}, "translate"),
    "idx files": (idx, {}, "classify"),
    # in memory
    "texts": (of([f"text {i}" for i in range(40)]), {}, "next-token"),
    "rows": (of(ROWS), {}, "classify"),
    "rows of pairs": (of([{"source": s, "target": t} for s, t in PAIRS]), {}, "translate"),
    "tuples": (of(PAIRS), {}, "translate"),
    "splits of tuples": (of({"train": PAIRS, "valid": PAIRS}), {}, "translate"),
    "splits of rows": (of({"train": ROWS, "test": ROWS}), {}, "classify"),
    "a frame": (frame({"text": ["a b", "c d"] * 20, "label": ["x", "y"] * 20}), {}, "classify"),
    "a frame of numbers": (frame({"text": ["a b", "c d"] * 20, "y": [0.5, 1.5] * 20}), {}, "regress"),
    "a frame of texts": (frame({"text": ["a b", "c d"] * 20}), {}, "next-token"),
    "tokens": (of(np.arange(400) % 7), {}, "next-token"),
    "x and classes": (of((SERIES, ["a", "b"] * 20)), {}, "classify"),
    "x and numbers": (of((SERIES, SERIES[:, 0] / 7)), {}, "regress"),
    "x and series": (of((SERIES, SERIES[:, :, None])), {}, "denoise"),
    "arrays by name": (of({"x": SERIES, "y": ["a", "b"] * 20}), {}, "classify"),
    "images and captions": (of({"images": np.zeros((4, 3, 3)), "captions": list("abcd")}), {}, "caption"),
    # built-in
    "builtin:python-docs": (of("builtin:python-docs"), {}, "next-token"),
    "builtin:python-source": (of("builtin:python-source"), {}, "next-token"),
    "builtin:unicode-names": (of("builtin:unicode-names"), {}, "next-token"),
    "builtin:digits": (of("builtin:digits"), {}, "classify"),
    "builtin:adding": (of("builtin:adding,length=10"), {}, "regress"),
    "builtin:maximum": (of("builtin:maximum"), {}, "regress"),
    "builtin:sinusoids": (of("builtin:sinusoids"), {}, "denoise"),
    "builtin:dates": (of("builtin:dates"), {}, "translate"),
    "builtin:numbers": (of("builtin:numbers,from=french"), {}, "translate"),
    "builtin:reversal": (of("builtin:reversal"), {}, "translate"),
    "builtin:shapes": (of("builtin:shapes"), {}, "caption"),
    "builtin:none": (of("builtin:none"), {}, "next-token"),
}  # fmt: skip


CLASSES = "@classLabel true\n@data\n" + "".join(f"1,2:{i}\n" for i in range(30))
ONCE_WRONG: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "a folder with one text of few words": (files(text("only.txt", "a b c\n" * 9)), {}, "next-token"),
    "an empty cell among the targets": (
        table("r.csv", "text,label", lambda i: f"good {i},{'ab'[i % 2] if i != 7 else ''}"), {}, "classify"),
    "a missing value in a series": (text("a.ts", TS + "1,?:2\n"), {}, "classify"),
    "thirty classes in a ts file": (text("a.ts", CLASSES), {}, "classify"),
    "a damaged image among others": (
        files(*(image(f"{c}/1.png") for c in "ab"), text("a/2.png", "no image")), {}, "classify"),
    "noisy and clean sounds": (files(*(sound(f"{c}/1.wav") for c in ("noisy", "clean"))), {}, "denoise"),
    "a frame of pairs": (frame({"source": [p[0] for p in PAIRS], "target": [p[1] for p in PAIRS]}), {}, "translate"),
    "a folder of pairs in splits": (
        files(*(table(f"{part}.tsv", "", lambda i: "\t".join(PAIRS[i])) for part in ("train", "valid"))), {},
        "translate"),
    "a class for each series of a long table": (
        frame({"id": [i // 9 for i in range(90)], "time": [i % 9 for i in range(90)],
               "level": [0.5 * i for i in range(90)], "kind": ["ab"[i // 9 % 2] for i in range(90)]}),
        {"target": "kind"}, "classify"),
    "strokes in memory": (of(STROKES), {}, "recognise"),
    "piano rolls in json": (text("c.json", json.dumps({"train": [[[60, 64], [], [62]]] * 9})), {}, "next-frame"),
    "piano rolls in memory": (of([[[60, 64], [], [62]]] * 9), {}, "next-frame"),
    "a folder of splits with a page for people": (
        files(text("README.md", "what it is"),
              *(text(f"{part}.csv", "text,label\nx,a\ny,b\n") for part in ("train", "test"))), {}, "classify"),
    "a lexicon": (table("words.dict", "", lambda i: f"word{i} W {'AH ER'.split()[i % 2]}1 D # note"), {}, "translate"),
    "a lexicon beside its licence": (
        files(text("LICENSE", "free\n"), table("w.dict", "", lambda i: f"word{i} W{i % 3} ER1 D")), {}, "translate"),
    "short lines of words": (table("a.dict", "", lambda i: f"word{i} is near word{i + 1}"), {}, "next-token"),
    "numbers behind an id": (table("a.dat", "", lambda i: f"{i} 0 1 0 1"), {}, "next-token"),
    "numbers in a file called data": (
        table("clean.data", "", lambda i: f"{i * 7 % 97},{i * 3},{i * 11 % 97},{i % 2}."), {}, "classify"),
    "names and numbers in a file called data": (
        table("clean.data", "", lambda i: f"B-{i // 4},{i}_c,{i},{i * 3},{i * 7},{i * 11},{i // 4 % 2}.", 120), {},
        "classify"),
    "numbers with a name of the class behind": (
        table("iris.data", "", lambda i: f"5.{i},3.{i % 9},1.{i % 8},0.{i % 7},{['setosa', 'virginica'][i % 2]}"), {},
        "classify"),
    "data beside its description": (
        files(table("s.data", "", lambda i: f"{i},{i * 3},{i * 7},{i % 2}"), text("s.names", "about it\n" * 30)), {},
        "classify"),
    "one table and a page for people": (
        files(text("README.md", "what it is"), table("r.csv", "text,label", lambda i: f"good {i},{'ab'[i % 2]}")), {},
        "classify"),
    "bits of which the last is no class": (
        table("b.data", "", lambda i: ",".join(str(i >> k & 1) for k in range(6))), {}, "next-token"),
    "arrays without targets": (npz(train_points=SERIES, train_offsets=np.array([0, 20, 40])), {}, ""),
    "clips after each other, with a target": (
        npz(audio=np.arange(400.0), offsets=np.arange(0, 401, 10), digit=np.arange(40) % 2), {"target": "digit"},
        "classify"),
    "builtin:random-patterns": (of("builtin:random-patterns"), {}, "recall"),
}  # fmt: skip
TABLE |= ONCE_WRONG


@pytest.mark.parametrize("name", TABLE)
def test_the_task_of_a_source(name: str, tmp_path: Path) -> None:
    make, settings, expected = TABLE[name]
    try:
        found = guess_task(make(tmp_path), settings)[0]
    except UnrolledError:
        found = ""
    assert found == expected


OPENED = ["a text", "reviews", "reviews, packed", "classes in json", "tags in json lines", "pairs with a tab",
          "captions", "ts with classes", "conll", "series with classes", "a piano roll", "numbers without a header",
          "a table with semicolons", "an empty table"]  # fmt: skip


@pytest.mark.parametrize("name", OPENED)
def test_a_file_is_opened_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, settings, _ = TABLE[name]
    source, opened, real = make(tmp_path), [], opening.open_regular

    def counted(path: Path, *more: Any, **others: Any) -> Any:
        if Path(path).is_relative_to(tmp_path):  # not the code of readers and tasks
            opened.append(path)
        return real(path, *more, **others)

    for module in [each for each in sys.modules.values() if vars(each).get("open_regular") is real]:
        monkeypatch.setattr(module, "open_regular", counted)
    guess_task(source, settings)
    assert opened == [source]


def test_a_look_at_a_large_table_reads_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table("r.csv", "text,label", lambda i: f"{'good ' * 9}{i},{'ab'[i % 2]}", 60_000)(tmp_path)
    assert path.stat().st_size > 2 * plain.PIECE
    read = []
    real = plain.TextFile._chunks
    monkeypatch.setattr(plain.TextFile, "_chunks", lambda file: (read.append(len(c)) or c for c in real(file)))
    seen = look(path)
    assert sum(read) <= plain.PIECE
    assert seen.table is not None
    assert seen.table.columns() == ["text", "label"]
    assert len(list(seen.table.rows(["label"]))) == len(seen.lines) == 1000


def test_what_was_guessed_is_told_with_its_reason() -> None:
    told = str(guess_task(ROWS, {}))
    assert told == 'classify (guessed because its targets are classes; override with task="NAME")'


def test_a_target_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = TABLE["reviews"][0](tmp_path)
    with pytest.raises(UsageError, match=r"no column 'labl'.*did you mean 'label'"):
        guess_task(path, {"target": "labl"})
    with pytest.raises(UsageError, match=r"no column 'txt' for column=\.\.\..*did you mean 'text'"):
        guess_task(path, {"target": "label", "column": "txt"})


def test_a_setting_that_cannot_be_is_told_where_it_decides_what_the_data_is(tmp_path: Path) -> None:
    path = table("r.csv", "date,value", lambda i: f"2024-01-{i + 1:02},{i}", 30)(tmp_path)
    assert guess_task(path, {"calendar": "weekday"}).task == "forecast"
    with pytest.raises(UsageError, match=r"'wekday': expected some of minute, hour"):
        guess_task(path, {"calendar": "hour,wekday"})


def test_a_path_that_leads_nowhere_is_told_before_a_task_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"poem\.txt: no such file"):
        guess_task(tmp_path / "poem.txt", {})
    with pytest.raises(UsageError, match="URLs are not opened"):
        guess_task("https://example.com/poem.txt", {})
