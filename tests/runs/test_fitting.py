"""A config that asks for more than its weights hold is refused before memory is spent on it."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError
from unrolled.runs.run import load
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.formats import stored_tensors

SMALL = {"steps": 1, "d_state": 4, "d_embedding": 4, "batch_size": 4, "threads": 1}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitting")
    return unrolled.train([f"row {i} of {i * i}" for i in range(40)], out=folder / "run", settings=SMALL).path


def changed(path: Path, **settings: Any) -> None:
    directory = RunDirectory.open(path)
    config = directory.read_json("config.json")
    directory.write_json("config.json", {**config, "model_settings": {**config["model_settings"], **settings}})


@pytest.mark.parametrize(
    "settings", [{"d_state": 40_000}, {"d_state": 10**9}, {"n_layers": 10**9}, {"n_layers": 50_000}]
)
def test_more_than_the_weights_is_refused_at_once(path: Path, settings: dict[str, int]) -> None:
    before = RunDirectory.open(path).read_json("config.json")
    changed(path, **settings)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="do not belong together"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
        RunDirectory.open(path).write_json("config.json", before)
    assert load(path)


def test_somewhat_other_sizes_are_told_briefly(path: Path) -> None:
    before = RunDirectory.open(path).read_json("config.json")
    changed(path, d_state=5)
    with pytest.raises(DataError, match=r"do not match the model in its config.json") as error:
        load(path)
    assert len(str(error.value)) < 1000
    RunDirectory.open(path).write_json("config.json", before)


def header(*entries: Any, size: int = 0) -> tuple[io.BytesIO, int]:
    text = json.dumps(dict(entries)).encode()
    return io.BytesIO(len(text).to_bytes(8, "little") + text), 8 + len(text) + size


def entry(shape: Any, ends: Any, dtype: Any = "F32") -> tuple[str, Any]:
    return "w", {"dtype": dtype, "shape": shape, "data_offsets": ends}


def test_a_header_tells_what_is_stored() -> None:
    found = stored_tensors(*header(entry([2, 3], [0, 24]), size=24), "file")
    assert found["w"].shape == (2, 3) and found["w"].numel == 6


@pytest.mark.parametrize(("made", "size"), [
    (entry([10**9, 10**9], [0, 24]), 24), (entry([-1], [0, 24]), 24), (entry([2, 3], [0, 24]), 0),
    (entry([2, 3], [24, 0]), 24), (entry([2, 3], [0]), 24), (entry("x", [0, 24]), 24), (entry([0], [0, 24]), 24),
    (entry([2, 3], [0, 10**15]), 24), (entry([1e308], [0, 24]), 24), (("w", 3), 0), (entry([6], [0, 24], 3), 24),
])  # fmt: skip
def test_a_header_that_cannot_be_true_is_refused(made: Any, size: int) -> None:
    with pytest.raises(DataError, match=r"^file"):
        stored_tensors(*header(made, size=size), "file")


def test_the_length_of_a_header_is_checked_before_it_is_read() -> None:
    for length in (2**63, 2**40, 100):
        with pytest.raises(DataError, match="header"):
            stored_tensors(io.BytesIO(length.to_bytes(8, "little")), 2**62, "file")


@pytest.mark.parametrize(("facts", "says"), [
    ({"longest_target": 1e308}, "longest_target"), ({"longest_target": 10**12}, "longest_target"),
    ({"kinds": 3}, "kinds"), ({"reading": []}, "PairReading"),
])  # fmt: skip
def test_what_was_learned_of_the_data_has_limits(tmp_path: Path, facts: dict[str, Any], says: str) -> None:
    pairs = [(f"{'ab' * (i % 4 + 1)}{i}", str(i)) for i in range(40)]
    run = unrolled.train(pairs, "translate", "dictionary", out=tmp_path / "run", settings={"threads": 1})
    directory = run.directory
    directory.write_json("data.json", {**directory.read_json("data.json"), **facts})
    with pytest.raises(DataError, match=says):
        load(run.path)


def test_a_model_is_whole_in_a_process_that_has_not_seen_it(tmp_path: Path) -> None:
    """Constants of a model file that is first imported while sizes are compared would have no numbers."""
    rows = [f"{i % 7},{i % 5},{i % 3},{i % 11}" for i in range(40)]
    (tmp_path / "rows.csv").write_text("a,b,c,level\n" + "\n".join(rows) + "\n")
    settings = {"threads": 1, "layout": "wide", "target": "level"}
    unrolled.train(tmp_path / "rows.csv", "regress", "minirocket", out=tmp_path / "run", settings=settings)
    assert len(run_unrolled("predict", "run", "rows.csv", cwd=tmp_path).stdout.splitlines()) == 40
