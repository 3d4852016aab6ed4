"""No task leaks by default: what belongs together is on one side of every split, as the prepared splits show.

A case is data in which things are there several times: equal inputs with other targets, windows of a series, groups,
versions, copies. `of` tells from a prepared example which thing it is. A new task fails here until it has a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from PIL import Image

from unrolled.core import discover
from unrolled.core.batch import SOURCE, TARGET
from unrolled.data.examples import INPUT, Examples
from unrolled.data.time_series import prepare as along
from unrolled.runs.build import make_task
from unrolled.training.api import configure

N, TIMES = 40, 3  # different things, and how often each is there
NOISE = np.array([0.1, 0])
Of = Callable[[Any, Any], Any]  # of the input and the target of an example, as prepared


class Case(NamedTuple):
    task: str
    data: Callable[[Path], Any]
    settings: dict[str, Any] = {}
    of: Of = lambda x, _: x.tobytes()
    things: int = N


def random(number: int) -> np.random.Generator:
    return np.random.default_rng(number)


def rows(**columns: Callable[[int], Any]) -> Callable[[Path], Any]:
    """N TIMES rows of a table; number i of N is there TIMES times."""
    return lambda _: [{name: cell(i) for name, cell in columns.items()} for i in range(N * TIMES)]


def documents(folder: Path) -> Path:
    """Each of N documents TIMES times, between blank lines."""
    (folder / "text.txt").write_text("\n\n".join(f"unit {i % N:02} it is" for i in range(N * TIMES)))
    return folder / "text.txt"


def series(number: int, T: int = 30) -> np.ndarray:
    """[T, 2]: noise, and the number of the series all along."""
    return np.stack([random(number).normal(size=T), np.full(T, float(number))], axis=1)


def many_series(per_group: int = 1) -> np.ndarray:
    """[N, T, 2], the second channel saying the series or its group."""
    found = np.stack([series(i) for i in range(N)])
    found[:, :, 1] //= per_group
    return found


def told(x: Any, _: Any) -> float:
    """The thing that the second channel tells."""
    return round(float(x[0, 1]), 3)


def series_along_time(_: Path) -> list[dict[str, float | str]]:
    """Series that begin one after the other, up to one time: a thing is a time."""
    return [
        {"id": i, "time": str(np.datetime64("2024-01-01") + t), "value": float(random(i * 100 + t).normal())}
        for i in range(3)
        for t in range(5 * i, N)
    ]


def table_of_series(_: Path) -> list[dict[str, float | str]]:
    """A long table: 8 groups of 5 series."""
    clean = many_series(per_group=5)
    return [
        {"id": i, "t": t, "x": x[0] + 0.1, "g": x[1], "clean_x": x[0], "clean_g": x[1], "who": f"p{x[1]:g}"}
        for i in range(N)
        for t, x in enumerate(clean[i].tolist())
    ]


def clips(folder: Path, names: Callable[[int], str]) -> None:
    for i in range(N * TIMES):
        path = folder / names(i)
        path.parent.mkdir(exist_ok=True, parents=True)
        soundfile.write(path, 0.1 * random(i % N).normal(size=600), 8000)


def clips_by_class(folder: Path) -> Path:
    clips(folder, lambda i: f"{'ab'[i // N % 2]}/{i:03}.wav")
    return folder


def clips_with_texts(folder: Path) -> Path:
    clips(folder, lambda i: f"{i:03}.wav")
    lines = [f"{i:03}.wav,text {i}\n" for i in range(N * TIMES)]
    (folder / "texts.csv").write_text("file,text\n" + "".join(lines))
    return folder


def pictures(folder: Path) -> Path:
    """Every picture in two files, with two captions each."""
    lines = []
    for i in range(N):
        pixels = Image.fromarray(random(i).integers(0, 256, (6, 6, 3), np.uint8))
        for name in (f"{i}.png", f"again_{i}.bmp"):
            pixels.save(folder / name)
            lines += [f"{name},one {i} {name}\n", f"{name},two {i} {name}\n"]
    (folder / "captions.csv").write_text("image,caption\n" + "".join(lines))
    return folder


def noisy_and_clean(folder: Path) -> Path:
    """15 clips of 5 speakers in two folders."""
    for i in range(15):
        clean = 0.001 * random(i).normal(size=400) + (i % 5) / 10  # [T], the level says the speaker
        for kind, values in (("noisy", clean + 0.002 * random(100 + i).normal(size=400)), ("clean", clean)):
            (folder / kind).mkdir(exist_ok=True)
            soundfile.write(folder / kind / f"{i:02}_p{i % 5}.wav", values, 8000, subtype="FLOAT")
    return folder


def copies(folder: Path) -> Path:
    """Ten texts, each in three files."""
    for i in range(30):
        lines = [f"text {i % 10} has line {j} {random(i % 10).integers(10**6) + j}\n" for j in range(40)]
        (folder / f"{i:02}.txt").write_text("".join(lines))
    return folder


def bags(_: Path) -> list[dict[str, Any]]:
    """Bags of two texts and of several classes, each bag TIMES times under other names."""
    return [
        {"who": f"p{i}", "text": f"unit {i % N:02} part {j}", "label": f"c{i // N % 2}"}
        for i in range(N * TIMES)
        for j in range(2)
    ]


def tables_by_class(folder: Path) -> Path:
    """A series in each of the tables of two folders, TIMES times."""
    for i in range(N * TIMES):
        path = folder / "ab"[i // N % 2] / f"{i:03}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in series(i % N, 6).round(4)))
    return folder


def pictures_in_two_forms(folder: Path) -> Path:
    """Grey pictures, each as .png and as .bmp, in two folders."""
    for i in range(N):
        pixels = Image.fromarray(random(i).integers(0, 256, (6, 6), np.uint8))
        for kind, place in (("png", "a"), ("bmp", "b")):
            (folder / place).mkdir(exist_ok=True)
            pixels.save(folder / place / f"{i}.{kind}")
    return folder


def lines_of(x: Any, _: Any) -> Any:
    raise NotImplementedError  # see `examples`: of a stream the lines are the examples


CASES: dict[str, Case] = {
    "times of series": Case("forecast", series_along_time, {"horizon": 2}),
    "texts of two classes": Case(
        "classify", rows(text=lambda i: f"unit {i % N:02}", label=lambda i: f"c{i // N % 2}"),
    ),
    "texts with groups": Case(
        "classify",
        rows(text=lambda i: f"of {i % N // 4:02}: {i:03}", label=lambda i: f"c{i % 2}", who=lambda i: f"p{i % N // 4}"),
        {"column": "text", "target": "label", "group": "who"}, lambda x, _: x[:6].tobytes(), N // 4,
    ),
    "series of two classes": Case(
        "classify", lambda _: (many_series()[np.arange(N * TIMES) % N], [f"c{i // N % 2}" for i in range(N * TIMES)]),
        {}, told,
    ),
    "clips in two folders": Case("classify", clips_by_class),
    "texts with other numbers": Case(
        "regress", rows(text=lambda i: f"unit {i % N:02}", value=lambda i: float(i)), {"target": "value"},
    ),
    "sentences with other tags": Case(
        "tag", rows(words=lambda i: ["unit", f"w{i % N}"], tags=lambda i: ["x", f"t{i % 3}"]),
    ),
    "equal noisy series": Case(
        "denoise",
        lambda _: ((many_series() + NOISE)[np.arange(N * TIMES) % N], many_series()[np.arange(N * TIMES) % N]),
        {}, told,
    ),
    "versions of one clean series": Case(
        "denoise",
        lambda _: (
            np.stack([series(i % N) + 0.1 * random(1000 + i).normal(size=(30, 2)) for i in range(N * TIMES)]),
            many_series()[np.arange(N * TIMES) % N],
        ),
        {}, lambda _, y: told(y, None),
    ),
    "windows of versions of one clean series": Case(
        "denoise",
        lambda _: (
            np.stack([series(i % N) + 0.1 * random(1000 + i).normal(size=(30, 2)) for i in range(N * TIMES)]),
            many_series()[np.arange(N * TIMES) % N],
        ),
        {"window": 10}, lambda _, y: told(y, None),
    ),
    "windows of versions of two series": Case(
        "denoise",
        lambda _: (
            np.stack([series(i % 2, 400) + 0.1 * random(9 + i).normal(size=(400, 2)) for i in range(8)]),
            np.stack([series(i % 2, 400) for i in range(8)]),
        ),
        {"window": 10}, lambda _, y: y.tobytes(), 80,
    ),
    "windows of one series that is there twice": Case(
        "denoise", lambda _: (np.stack([series(7, 400) + NOISE] * 2), np.stack([series(7, 400)] * 2)),
        {"window": 10}, things=40,
    ),
    "windows": Case("denoise", lambda _: (many_series() + NOISE, many_series()), {"window": 7}, told),
    "windows with our noise": Case("denoise", lambda _: (many_series(),), {"window": 7, "noise": "white"}, told),
    "equal series with our noise": Case(
        "denoise", lambda _: (many_series()[np.arange(N * TIMES) % N],), {"noise": "pink"}, told,
    ),
    "windows of a table": Case(
        "denoise", table_of_series,
        {"window": 10, "column": "x,g", "target": "clean_x,clean_g", "id": "id", "reading.time": "t", "group": "who"},
        told, N // 5,
    ),
    "windows of clips of speakers": Case(
        "denoise", noisy_and_clean,
        {"window": 50, "group": "who", "pattern": r"(?P<answer>\d+)_(?P<who>p\d)"},
        lambda x, _: round(float(x.mean()), 1), 5,
    ),
    "equal rows": Case("next-token", rows(text=lambda i: f"unit {i % N:02}")),
    "equal texts under several conditions": Case(
        "next-token", rows(text=lambda i: f"unit {i % N:02}", kind=lambda i: f"k{i // N}"),
        {"column": "text", "condition": "kind"},
    ),
    "equal numbers": Case("next-token", lambda _: [[i % N // 10, i % N % 10, 1] for i in range(N * TIMES)]),
    "copies of files": Case("next-token", copies, {}, lines_of, 400),
    "lines of copies of files": Case("next-token", copies, {"examples": "lines"}, things=400),
    "lines of copies of files by file": Case(
        "next-token", copies, {"examples": "lines", "condition": "file"}, things=400,
    ),
    "equal rolls": Case(
        "next-frame", lambda _: [(random(i % N).random((6, 8)) < 0.5).astype(np.uint8) for i in range(N * TIMES)],
    ),
    "equal drawings": Case(
        "handwriting", lambda _: [random(i % N).normal(size=(5, 2)).tolist() for i in range(N * TIMES)],
    ),
    "equal drawings with other texts": Case(
        "handwriting",
        lambda _: [
            {"strokes": random(i % N).normal(size=(5, 2)).tolist(), "text": f"text {i}"} for i in range(N * TIMES)
        ],
        {"task.text": True}, lambda _, y: y.tobytes(),
    ),
    "equal grey images": Case(
        "next-pixel", lambda _: np.stack([random(i % N).random((4, 5)) for i in range(N * TIMES)]), {"levels": 9},
    ),
    "equal recordings": Case(
        "next-sample", lambda _: [{"sound": random(i % N).uniform(-1, 1, 9), "a": i} for i in range(N * TIMES)],
        {"rate": 1000, "condition": "a:number"},
        lambda _, y: y.tobytes(),
    ),
    "equal recordings of flows": Case(
        "sound-flow", lambda _: [{"sound": random(i % N).uniform(-1, 1, 9), "a": i} for i in range(N * TIMES)],
        {"rate": 1000, "condition": "a:number"},
        lambda _, y: y.tobytes(),
    ),
    "pictures in two folders": Case("classify", pictures_in_two_forms, {"grey": True}),
    "pictures in two forms": Case("next-pixel", pictures_in_two_forms, {"levels": 200}),
    "bags of several names": Case(
        "classify", bags, {"column": "text", "target": "label", "bag": "who", "readout": "max"},
    ),
    "tables in two folders": Case("classify", tables_by_class, {}, told),
    "captions of one picture": Case("caption", pictures, {"grey": True}),
    "lists of captions": Case(
        "caption",
        lambda _: (
            np.stack([random(i % N).integers(0, 256, (6, 6), np.uint8) for i in range(N * TIMES)]),
            [[f"one {i}", f"two {i}"] for i in range(N * TIMES)],
        ),
        {"grey": True},
    ),
    "recordings with two texts": Case("recognise", clips_with_texts),
    "documents that are there again": Case("masked-token", documents),
    "sources with several targets": Case(
        "translate", rows(source=lambda i: f"unit {i % N:02}", target=lambda i: f"target {i}"),
    ),
    "sources that are equal in small letters": Case(
        "translate", rows(source=lambda i: f"{['Unit', 'UNIT', 'unit'][i // N]} {i % N:02}",
                          target=lambda i: f"target {i}"),
        {"lower": True},
    ),
}  # fmt: skip


def times(section: Examples) -> Iterator[int]:
    """The times of a span, of all series."""
    spans = zip(section.fields[along.TIMES], section.values(along.FIRST), section.values(along.LAST))
    for stamps, first, last in spans:
        yield from stamps[first:last].tolist()


def examples(task: Any, split: str, of: Of) -> Iterator[Any]:
    """The things that the examples of a prepared split are."""
    section = task.sections[split]
    read = next((field for field in (INPUT, SOURCE) if field in section.fields), None)
    if along.TIMES in section.fields:
        yield from times(section)
    elif read is not None:
        target = TARGET in {**section.fields, **section.columns}
        yield from (
            of(section.at(read, i), section.at(TARGET, i) if target else None) for i in range(section.n_examples)
        )
    elif of is lines_of:  # whole lines: those at a cut are in two halves
        yield from task.codec.decode(section.values(TARGET)).split("\n")[1:-1]
    else:
        yield from (of(values, None) for values in section.fields[TARGET])


def sides(task: Any, of: Of) -> dict[Any, set[str]]:
    found: dict[Any, set[str]] = {}
    for split in task.splits():
        for thing in examples(task, split, of):
            found.setdefault(thing, set()).add(split)
    return found


def test_every_task_has_a_case() -> None:
    """A memory is asked for what it has stored, damaged; the text of word vectors is split as that of `next-token`."""
    assert {case.task for case in CASES.values()} == set(discover.tasks.names()) - {"recall", "word-vectors"}


@pytest.mark.parametrize("more", [{}, {"seed": 1, "split": "60/20/20"}], ids=["default", "another split"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_on_two_sides(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    case = CASES[name]
    data = case.data(tmp_path)
    task = make_task(configure(case.task, "memoryless", data, {**case.settings, **more}))
    task.prepare(data)
    found = sides(task, case.of)
    assert len(found) >= 0.9 * case.things  # what is told apart is what was put in
    assert len(found) <= case.things
    assert {split for sides in found.values() for split in sides} == {"train", "valid", "test"}
    assert [thing for thing, splits in found.items() if len(splits) > 1] == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.task in ("classify", "denoise", "tag")])
def test_nothing_is_on_two_sides_of_a_fold(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    data = case.data(tmp_path)
    task = make_task(
        configure(case.task, "memoryless", data, {**case.settings, "reading.fold.of": 3, "reading.fold.number": 1})
    )
    task.prepare(data)
    assert [thing for thing, splits in sides(task, case.of).items() if len(splits) > 1] == []
