"""Built-in data: one file a set, found by itself, with checked settings and the contents of before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import Misused, UsageError
from unrolled.data import builtin_sets
from unrolled.data.reading import CaptionReading, PairReading, Reading
from unrolled.data.sources.captions import open_captions
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.runs.guess import guess_task

CONTENTS = {
    "builtin:digits": "a8aacf737ef23cf6",
    "builtin:adding,examples=50": "02fd068ec7e3f1e5",
    "builtin:adding,length=7,examples=20,seed=3": "3c22ad326062ffe5",
    "builtin:maximum,examples=50": "bd2943afa3587461",
    "builtin:sinusoids,examples=50": "b42d3e4e6aca5c95",
    "builtin:sinusoids,snr=-2.5,examples=20,length=30": "ffd5a3aff803ad32",
    "builtin:dates,examples=300": "e26070e81a08ecf9",
    "builtin:dates,examples=200,seed=4": "ca08b2e8dc973cf9",
    "builtin:numbers,examples=1200": "fc862ca1eded13b1",
    "builtin:numbers,from=french,examples=30": "3a64ed0371759b51",
    "builtin:reversal,examples=100": "655133fc6d1ee36b",
    "builtin:reversal,length=5,seed=2,examples=40": "35ab38c9b0fe812c",
    "builtin:shapes,examples=40": "8758d05baf64cfda",
    "builtin:shapes,examples=40,seed=1,held_out=bound": "0a03165d7097dde6",
}


def records(source: str) -> Iterable[Any]:
    name = source.removeprefix("builtin:").split(",")[0]
    if name == "shapes":
        return open_captions(source, CaptionReading())
    if name in ("dates", "numbers", "reversal"):
        return open_pairs(source, PairReading())
    answers: Any = {"digits": "class", "sinusoids": "series"}.get(name, "numbers")
    return open_labelled(source, Reading(), answers)


def contents(found: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for record in found:
        for value in (*record[:2], *record[3:7]):  # all but the place, and the bag, which none of these has
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
            else:
                digest.update(f"\0{value!r}".encode())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("source", CONTENTS)
def test_contents_are_those_of_before(source: str) -> None:
    assert contents(records(source)) == CONTENTS[source]


def test_every_set_is_a_file_with_a_declaration() -> None:
    listed = {entry["name"] for entry in json.loads(run_unrolled("data", "--json").stdout)}
    assert (
        listed == {f"builtin:{name}" for name in builtin_sets.names()} >= {source.split(",")[0] for source in CONTENTS}
    )
    for name in builtin_sets.names():
        spec = builtin_sets.asked(f"builtin:{name}").spec
        assert spec.summary and spec.licence and spec.size and spec.use and spec.holds in builtin_sets.HOLDS
        assert spec.answers is None or spec.holds in ("labelled", "bags")
        assert bool(spec.columns) == (spec.holds in ("rows", "bags"))


OWN = '''"""Squares of numbers."""

from pydantic import Field
from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made


class Settings(Config):
    """How many."""

    examples: int = Field(40, ge=1)
    """pairs"""


def read(settings):
    return (Made(f"n{i}", f"n{i * i}", f"number {i}") for i in range(settings.examples))


BUILTIN = BuiltinSpec(summary="squares", licence="mine", size="40 pairs", holds="pairs", use="translate",
                      settings=Settings, read=read)
'''


@pytest.fixture
def squares(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "the_squares.py").write_text(OWN, encoding="utf-8")
    name = discover.builtins.add_file(tmp_path / "the_squares.py")
    yield name
    discover.builtins.forget(name)


def test_a_set_is_one_file(squares: str) -> None:
    assert squares == "the-squares" in builtin_sets.names()
    assert builtin_sets.about(squares)["description"] == "squares"
    found = list(open_pairs("builtin:the-squares,examples=3", PairReading()))
    assert [(pair.source, pair.target) for pair in found] == [("n0", "n0"), ("n1", "n1"), ("n2", "n4")]
    assert found[2].place == "builtin:the-squares,examples=3, number 2"
    assert guess_task("builtin:the-squares", {})[0] == "translate"
    assert builtin_sets.is_usual("builtin:the-squares") and not builtin_sets.is_usual("builtin:the-squares,examples=41")
    for words, says in {
        "exmples=3": "there is no setting 'exmples'; did you mean 'examples'",
        "examples=0": "invalid value examples = '0': expected an integer >= 1",
        "examples=3,examples=4": "each name once",
        "examples": "expected name=value",
    }.items():
        with pytest.raises(Misused, match=says):
            open_pairs(f"builtin:the-squares,{words}", PairReading())
    with pytest.raises(
        UsageError, match="builtin:the-squares: this built-in data is pairs of texts; use it with translate"
    ):
        open_labelled("builtin:the-squares", Reading(), "class")
