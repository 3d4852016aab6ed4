"""Prediction reads what training read: every form that can be trained on, by the saved columns, or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import unrolled
from unrolled.core.errors import UnrolledError
from unrolled.runs.run import Run, load

QUICK = {"threads": 1, "steps": 2, "batch_size": 8, "warmup": 1}
WORDS = ["good", "bad"]
TEXTS = [f"{WORDS[i % 2]} film number {i}" for i in range(40)]
LABELS = [WORDS[i % 2] for i in range(40)]
ROWS = [{"number": i, "review": text, "verdict": label} for i, (text, label) in enumerate(zip(TEXTS, LABELS))]
SERIES = np.random.default_rng(0).normal(size=(24, 5)) + np.repeat([[0.0], [4.0]], 12, 0)
SIDES = ["low"] * 12 + ["high"] * 12
BY_TEXT = {"tokens": "word", "task.reading.column": "review", "task.reading.target": "verdict"}


def trained(data: Any, folder: Path, task: str = "classify", model: str = "naive-bayes", **settings: Any) -> Run:
    return load(unrolled.train(data, task=task, model=model, out=folder / "run", settings=QUICK | settings).path)


def said(run: Run, source: Any) -> list[Any]:
    return [line["prediction"] for line in run.predict(source)]


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The rows with their columns in another order, and some left out."""
    return [{name: row[name] for name in reversed(row) if name not in names} for row in rows]


TEXT_FORMS = {
    "rows": ROWS,
    "frame": polars.DataFrame(ROWS),
    "columns": {"review": TEXTS, "verdict": LABELS},
    "arrays by name": {"review": np.array(TEXTS), "verdict": np.array(LABELS)},
}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_texts_in_the_form_of_training_are_predicted_as_bare_texts(form: str, tmp_path: Path) -> None:
    run = trained(TEXT_FORMS[form], tmp_path, **BY_TEXT)
    wanted = said(run, TEXTS)
    assert sum(a == b for a, b in zip(wanted, LABELS, strict=True)) > 35
    assert said(run, TEXT_FORMS[form]) == wanted
    for other in (ROWS, without(ROWS), without(ROWS, "verdict", "number"), np.array(TEXTS), polars.Series(TEXTS)):
        assert said(run, other) == wanted
    assert said(run, polars.DataFrame(without(ROWS, "verdict"))) == wanted
    polars.DataFrame(without(ROWS, "verdict")).write_csv(tmp_path / "new.csv")
    assert said(run, tmp_path / "new.csv") == wanted
    assert said(run, {"review": TEXTS}) == wanted


@pytest.mark.parametrize("source", [
    [{"text": "good film"}], polars.DataFrame({"text": ["good film"]}), {"text": ["good film"]},
    [("good film", "good")], [3], "good film", {"review": "good film"},
], ids=repr)  # fmt: skip
def test_what_is_not_the_input_of_training_is_refused(source: Any, texts: Run) -> None:
    with pytest.raises(UnrolledError) as told:
        texts.predict(source)
    if not isinstance(source, list | str) or isinstance(source[0], dict):
        assert "'review'" in str(told.value)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(ROWS, tmp_path_factory.mktemp("texts"), **BY_TEXT)


WIDE = [{"side": side, **{f"t{t}": value for t, value in enumerate(row)}} for side, row in zip(SIDES, SERIES.tolist())]
LONG = [
    {"case": f"c{i}", "tick": t, "side": SIDES[i], "level": float(SERIES[i, t])} for t in range(5) for i in range(24)
]
SERIES_FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "arrays": ((SERIES, SIDES), {}),
    "lists of series": ((list(SERIES), SIDES), {}),
    "cells": ([{"x": row, "side": side} for row, side in zip(SERIES.tolist(), SIDES)], {"task.reading.target": "side"}),
    "wide": (polars.DataFrame(WIDE), {"task.reading.target": "side"}),
    "long": (LONG, {"task.reading.target": "side", "task.reading.id": "case", "task.reading.time": "tick"}),
}


@pytest.mark.parametrize("form", SERIES_FORMS)
def test_series_in_the_form_of_training_are_predicted_as_bare_series(form: str, tmp_path: Path) -> None:
    data, settings = SERIES_FORMS[form]
    run = trained(data, tmp_path, model="nearest", **settings)
    wanted = said(run, SERIES)
    assert wanted == said(run, SERIES.tolist()) == said(run, list(SERIES)) == said(run, data)
    assert sum(a == b for a, b in zip(wanted, SIDES, strict=True)) > 20
    if form in ("cells", "wide", "long"):
        rows = data.to_dicts() if form == "wide" else data
        assert said(run, without(rows, "side")) == said(run, polars.DataFrame(without(rows, "side"))) == wanted
    if form == "long":
        assert [line["case"] for line in run.predict(LONG)] == [f"c{i}" for i in range(24)]
        with pytest.raises(UnrolledError, match="'case'"):
            run.predict(without(LONG, "case"))
    if form == "wide":
        with pytest.raises(UnrolledError, match="'t3'"):
            run.predict(without(WIDE, "t3"))


def test_images_are_read_in_the_order_of_training(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 100, (20, 4, 4)).astype(np.uint8)
    images[10:] += 100
    settings = {"task.reading.images.order": "pixels"}
    run = trained((images, ["dark"] * 10 + ["light"] * 10), tmp_path, model="nearest", **settings)
    assert said(run, images) == said(run, list(images)) == said(run, (images, None)) == ["dark"] * 10 + ["light"] * 10


def test_words_numbers_and_clean_series(tmp_path: Path) -> None:
    tags = [{"words": ["the", f"w{i}"], "tags": ["D", "N"]} for i in range(30)]
    tagger = trained(tags, tmp_path / "tag", "tag", "tag-counts")
    bare = said(tagger, [row["words"] for row in tags])
    assert said(tagger, tags) == said(tagger, polars.DataFrame(without(tags, "tags"))) == bare
    numbers = [{"x": row, "height": sum(row)} for row in SERIES.tolist()]
    regress = trained(numbers, tmp_path / "n", "regress", "nearest", **{"task.reading.target": "height"})
    assert said(regress, numbers) == said(regress, without(numbers, "height")) == said(regress, SERIES)
    noisy = [{"x": row, "clean": [value / 2 for value in row]} for row in SERIES.tolist()]
    denoise = trained(noisy, tmp_path / "d", "denoise", "gru", **{"model.d_state": 4})
    assert said(denoise, noisy) == said(denoise, without(noisy, "clean")) == said(denoise, SERIES)


def test_pairs(tmp_path: Path) -> None:
    rows = [{"id": i, "english": f"one {i}", "french": f"un {i}"} for i in range(30)]
    settings = {"task.pairs.source_column": "english", "task.pairs.target_column": "french"}
    run = trained(rows, tmp_path, "translate", "dictionary", **settings)
    sources = [row["english"] for row in rows]
    wanted = said(run, sources)
    assert len(set(wanted)) > 1
    tuples = [(row["english"], row["french"]) for row in rows]
    frame = polars.DataFrame(without(rows, "french"))
    for form in (rows, without(rows, "french", "id"), frame, tuples, {"train": rows[:10], "test": rows[10:]}):
        assert said(run, form) == wanted
    for bad in ([{"german": "eins", "id": 1}], [{"french": "un 1"}], [3]):
        with pytest.raises(UnrolledError, match=r"english|expected a text"):
            run.predict(bad)


def test_texts_to_go_on_from(tmp_path: Path) -> None:
    rows = [{"line": f"the state number {i}", "kind": "ab"[i % 2]} for i in range(40)]
    run = trained(rows, tmp_path, "next-token", "ngram", column="line")
    lines = [row["line"] for row in rows]
    for form in (rows, without(rows, "kind"), polars.DataFrame(rows)):
        assert run.score(form) == run.score(lines)
        assert run.predict(form) == run.predict(lines)
    (tmp_path / "new.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run.score(tmp_path / "new.txt") == run.score(lines)
    (tmp_path / "western.txt").write_bytes(b"caf\xe9\n")
    assert run.score(tmp_path / "western.txt") == run.score(["caf\xe9"])
    assert any("Windows-1252" in note for note in run.notes)
    russian = unrolled.load(run.path, encoding="cp1251")
    assert russian.score(tmp_path / "western.txt") == run.score(["caf\u0439"])
    for bad in ([{"text": "the"}], [("the", "state")], "the state"):
        with pytest.raises(UnrolledError):
            run.score(bad)


def test_arrays_are_found_by_the_names_that_training_chose(tmp_path: Path) -> None:
    run = trained({"data": SERIES, "labels": np.array(SIDES)}, tmp_path, model="nearest")
    wanted = said(run, SERIES)
    decoy = {"x": -SERIES, "data": SERIES, "y": np.array(SIDES[::-1]), "labels": np.array(SIDES)}
    np.savez(tmp_path / "new.npz", **decoy)
    for form in (decoy, {"data": SERIES}, tmp_path / "new.npz", (SERIES, None)):
        assert said(run, form) == wanted
    assert run.evaluate(decoy) == run.evaluate(tmp_path / "new.npz") == run.evaluate((SERIES, np.array(SIDES)))
    for bad in ({"x": SERIES}, [{"x": row} for row in SERIES.tolist()]):
        with pytest.raises(UnrolledError, match="'data'"):
            run.predict(bad)


def test_names_of_columns_may_contain_commas(tmp_path: Path) -> None:
    names = [f"t, {t}" for t in range(5)]
    wide = [dict(zip([*names, "side"], [*row, side])) for row, side in zip(SERIES.tolist(), SIDES)]
    run = trained(wide, tmp_path, model="nearest", **{"task.reading.target": "side"})
    assert said(run, wide) == said(run, without(wide, "side")) == said(run, SERIES)
    assert run.evaluate(polars.DataFrame(without(wide))) == run.evaluate(wide)
    with pytest.raises(UnrolledError, match="'t, 3'"):
        run.predict(without(wide, "t, 3"))
    two = [{"x": row, "sum, all": sum(row), "first, alone": row[0]} for row in SERIES.tolist()]
    targets = {"task.reading.target": ["sum, all", "first, alone"]}
    both = trained(two, tmp_path / "two", "regress", "nearest", **targets)
    assert said(both, two) == said(both, without(two, "sum, all")) == said(both, SERIES)
    assert both.evaluate(without(two)) == both.evaluate(two)


def test_texts_are_found_in_the_column_that_training_chose(tmp_path: Path) -> None:
    lines = [f"the state number {i}" for i in range(40)]
    rows = [{"text": line, "note": "zzzz"} for line in lines]
    run = trained(polars.DataFrame(rows), tmp_path, "next-token", "ngram")
    alone = trained(polars.DataFrame({"body": lines}), tmp_path / "alone", "next-token", "ngram")
    for name, each in (("text", run), ("body", alone)):
        wanted, figures = each.score(lines), each.evaluate([{name: line} for line in lines])
        others = [{"text": "zzzz", "body": "zzzz"} | {name: line, "note": "zzzz"} for line in lines]
        polars.DataFrame(others).write_csv(tmp_path / "new.csv")
        (tmp_path / "new.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for form in (others, without(others), polars.DataFrame(without(others)), tmp_path / "new.csv"):
            assert each.score(form) == wanted
            assert each.evaluate(form) == figures
        assert each.score(tmp_path / "new.txt") == wanted
        read = each.task.read(str(tmp_path / "new.csv"))
        assert [example.value for some in read for example in some] == lines
        for bad in ([{"note": "zzzz"}], polars.DataFrame({"note": ["zzzz"]})):
            for verb in (each.score, each.evaluate):
                with pytest.raises(UnrolledError, match=f"'{name}'"):
                    verb(bad)
