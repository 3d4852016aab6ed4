"""Recall: store patterns, and complete a damaged one to the stored pattern that it came from.

    xi_0 = a damaged pattern,   xi <- update(xi) until it stands still,   E(xi) never rises

All patterns are stored; queries of validation and test are damaged copies of them, drawn with different seeds. The
error of bits is the share of wrong ones, that of numbers the distance to the pattern relative to its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.errors import UsageError
from unrolled.core.forward import evaluating
from unrolled.core.metric import Metric
from unrolled.core.spec import Asks, Ports
from unrolled.data.builtin_sets import known
from unrolled.data.codecs.patterns import PatternCodec, Scaling
from unrolled.data.collate import BESIDE
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, Examples
from unrolled.data.files.cell_values import as_series
from unrolled.data.files.data_uri import bytes_of, to_text
from unrolled.data.labelled import LabelledSource
from unrolled.data.look import Look
from unrolled.data.patterns import NAMES, Asked, Damage, prepare_patterns, queries_of
from unrolled.data.prepared import Prepared, kept
from unrolled.data.reading import Kind, Reading
from unrolled.data.sampler import Pooled
from unrolled.data.sources.labelled_inputs import first_labelled, inputs_of
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.emissions.point import Point
from unrolled.layers.memory.memory import Recalled
from unrolled.layers.memory.recaller import Recaller, damaged
from unrolled.pictures import recalled as pictures
from unrolled.tasks._prepared import PreparedTask

ALIASES = ("memory", "associative-memory", "hopfield")

AT_ONCE = 256  # queries that are answered together
CLOSE = 0.1  # relative error below which numbers count as recalled
SHOWN = 4  # queries of the picture
STATES = 4  # of a query that is drawn into a file
SIDE = 96  # pixels of one of its images, at least
DECIMALS = 6


class Config(config.Config):
    reading: Reading = Reading()
    bits: Literal["auto", "yes", "no"] = "auto"
    """Whether patterns are bits: auto: where there are two different values; yes: cut at the threshold."""
    threshold: float | None = None
    """Numbers above it are 1, others 0; none: the mean of all, where bits are asked for."""
    scaling: Scaling = "none"
    """For numbers: compare patterns as they are, or each with mean 0 and standard deviation 1 (pattern)."""
    damage: Damage | None = None
    """How queries are damaged: flip (bits), mask, cover (the last part) or noise; none: flip for bits, noise for
    numbers."""
    amount: float = Field(0.1, ge=0, le=1)
    """Share of a pattern that is damaged; of noise, its standard deviation relative to that of the pattern."""


class Task(PreparedTask):
    SCORE = "error"
    FIGURES = ("error", "exact", "overlap", "steps")
    ACCEPTS = ("memory",)
    MIXES = False
    DEFAULT_MODEL = "dense-hopfield"
    UNIT = "queries"

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec = PatternCodec((1, 1))
        self.kind: Kind = "series"
        self.reading = config.reading.completed(data)
        self._loaded = False

    # ---- data

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:  # noqa: ARG003
        spec = known(look.builtin)
        alone = spec is not None and spec.holds == "labelled" and spec.answers is None
        return task.Guess(0.8, "it is built-in patterns without targets") if alone else None

    def prepare(self, source: Any) -> None:
        found = kept(source, self._asked(), lambda: self._prepared(source))
        self.prepared, self.codec = found, found.codecs["patterns"]
        self.kind, self.reading = found.told["kind"], Reading.parse(found.told["reading"])

    def _wanted(self) -> Asked:
        own = self.config
        return Asked(own.bits, own.threshold, own.scaling, own.damage, own.amount, self.data.seed)  # type: ignore[attr-defined]

    def _asked(self) -> dict[str, Any]:
        codec = self.codec.to_json() if self._loaded else None
        return {
            "task": "recall",
            "reading": self.reading.model_dump(mode="json"),
            "codec": codec,
            **asdict(self._wanted()),
        }

    def _prepared(self, source: Any) -> Prepared:
        return prepare_patterns(self._opened(source), self._wanted(), self.codec if self._loaded else None, damaged)

    def _opened(self, source: Any) -> LabelledSource:
        return open_labelled(source, self.reading, "none")

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec, self._loaded = PatternCodec.load(directory), True

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "reading": self.reading.model_dump(mode="json")}

    def recall(self, facts: Mapping[str, Any]) -> None:
        self.kind = "text" if facts["kind"] == "text" else "series"
        self.reading = Reading.parse(facts["reading"])

    def columns(self) -> dict[str, str]:
        return self.reading.uses()

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_labelled(self._opened(source), n)

    # ---- the model

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "each", "numbers", None, "bit-pattern" if self.config.bits == "yes" else None)

    def ports(self) -> Ports:
        d = self.codec.size
        return Ports(0, d, d_in=d, answers="each", targets="bit-pattern" if self.codec.are_bits else "pattern")

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return Pooled(self.sections["train"], batching.batch_size, BESIDE, seed)

    @property
    def emission(self) -> Point:
        return Point(self.codec.size)

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("nearest pattern", "nearest-pattern", {})]

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        train = self.sections["train"]
        keys, values = (torch.from_numpy(train.values(name)) for name in (INPUT, TARGET))
        return task.Fitted(1.0, model.solve(keys, None if torch.equal(keys, values) else values), "by the patterns")

    # ---- metrics

    def metrics(self) -> list[Metric]:
        return [Metric("error")]

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        section = self.sections[split]
        return self._measure(model, section if limit is None else section.spread(limit), ledger)

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        found = self._prepared(source).sections["test"]
        return lambda model: self._measure(model, found, None)

    def _measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        target = torch.from_numpy(section.values(TARGET))
        y, found = self._recalled(model, section)
        error, steps = self._errors(y, target), found.steps.double()
        overlap = torch.cosine_similarity(y.double(), target.double(), dim=1)
        if ledger is not None:
            ledger.add(torch.arange(len(error)), error, torch.ones_like(error))
        exact = error == 0 if self.codec.are_bits else error <= CLOSE
        return {
            "error": float(error.mean()), "exact": float(exact.double().mean()), "overlap": float(overlap.mean()),
            "steps": float(steps.mean()), "tokens": len(error),
        }  # fmt: skip

    def _errors(self, y: Tensor, target: Tensor) -> Tensor:
        """[n] the share of wrong bits, or the distance relative to the length of the pattern."""
        if self.codec.are_bits:
            return ((y > 0) != (target > 0)).double().mean(1)
        length = target.double().norm(dim=1)
        return (y - target).double().norm(dim=1) / torch.where(length > 0, length, 1.0)

    def _recalled(self, model: Recaller, section: Examples, path: bool = False) -> tuple[Tensor, Recalled]:
        """What is read for each query, and how it was found."""
        x = torch.from_numpy(section.values(INPUT))
        with evaluating(model) as device:
            found = model.found(x.to(device), path)
            return model.body.read(found.state).cpu(), found

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        some = self.sections[split].first(limit)
        target = torch.from_numpy(some.values(TARGET))
        y, _ = self._recalled(model, some)
        for i, (told, error) in enumerate(zip(self._told(model, some), self._errors(y, target).tolist())):
            shown = {"input": self._shown(some.at(INPUT, i)[0]), "target": self._shown(some.at(TARGET, i)[0])}
            yield {**shown, **told, "error": error}

    def _shown(self, x: np.ndarray) -> Any:
        value = self.codec.decode(x)
        return value if isinstance(value, str) else value.round(DECIMALS).tolist()

    def _told(self, model: Any, section: Examples) -> Iterator[dict[str, Any]]:
        y, found = self._recalled(model, section)
        nearest = model.body.nearest(found.state)
        names = self._names()
        for i, row in enumerate(y.numpy()):
            n = int(nearest[i])
            yield {
                "prediction": self._shown(row), "nearest": names[n] if n < len(names) else f"pattern {n + 1}",
                "overlap": round(float(model.body.overlap(found.state[i : i + 1])[0, n]), DECIMALS),
                "steps": int(found.steps[i]), "ended": found.how[i],
                "energy": [float(e) for e in found.energy[: int(found.steps[i]) + 1, i]],
            }  # fmt: skip

    def _names(self) -> list[str]:
        return [] if self.prepared is None else [str(name) for name in self.prepared.sections["train"].columns[NAMES]]

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        some = self.sections[split].first(SHOWN)
        _, found = self._recalled(model, some, path=True)
        assert found.path is not None
        energy = pictures.energies([[float(e) for e in row] for row in found.energy.T], split)
        if self.codec.alphabet is not None:
            lines = [{"query": self._shown(some.at(INPUT, i)[0]), "recalled": self._shown(found.state[i].numpy()),
                      "stored": self._shown(some.at(TARGET, i)[0])} for i in range(some.n_examples)]  # fmt: skip
            return {"recalled": pictures.texts(lines, split), "energy": energy}
        frames = [self._frames(found, some, i) for i in range(some.n_examples)]
        return {"recalled": pictures.strips(frames, split), "energy": energy}

    def _frames(self, found: Recalled, some: Examples, i: int) -> dict[str, str]:
        assert found.path is not None
        last = max(1, min(int(found.steps[i]), len(found.path) - 1))
        shown = {"query": found.path[0, i], "after 1 update": found.path[1, i], "recalled": found.path[last, i]}
        stored = self.codec.keys(some.values(TARGET)[i : i + 1])[0]
        return {name: grey(np.asarray(x).reshape(self.codec.shape)) for name, x in {**shown, "stored": stored}.items()}

    # ---- queries

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        found = enumerate(inputs_of(source, self.reading, self.kind), 1)
        given = (task.Given(each.input, number=number, place=each.place) for number, each in found)
        while some := list(islice(given, AT_ONCE)):
            yield some

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        yield from self._told(model, self._queries([(each.value, each.place) for each in given]))

    def drawing(self, model: Any, given: Sequence[task.Given]) -> bytes:
        """A row of grey images for each query: the query, its states, what is recalled, the nearest stored pattern. A
        state that stands still early is repeated."""
        if self.codec.alphabet is not None:
            raise UsageError("texts cannot be drawn; leave out the .png file")
        section = self._queries([(each.value, each.place) for each in given])
        _, found = self._recalled(model, section, path=True)
        assert found.path is not None
        stored = model.body.patterns[model.body.nearest(found.state)]
        rows = []
        for i in range(section.n_examples):
            last = int(found.steps[i]) if found.steps[i] < len(found.path) else len(found.path) - 1
            shown = np.unique(np.linspace(0, last, min(last + 1, STATES)).round().astype(int))
            rows.append([*found.path[shown, i], *([found.path[last, i]] * (STATES - len(shown))), stored[i]])
        return strip([[np.asarray(x).reshape(self.codec.shape) for x in row] for row in rows])

    def _queries(self, given: list[tuple[Any, str]]) -> Examples:
        texts = self.codec.alphabet is not None
        return queries_of([(value if texts else as_series(value, place), place) for value, place in given], self.codec)

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        section = self._queries([(value, "the input")])
        x = torch.from_numpy(section.values(INPUT))[None]  # [1, 1, d]
        return Batch(x, torch.ones(1, 1, dtype=torch.bool)), ["the pattern"]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        value = line["input"]
        return value if isinstance(value, str) else np.asarray(value, np.float64)

    def offered(self, value: Any) -> task.Offered:
        found = task.offered(value)
        return found if found.form == "text" else found._replace(form="pattern")


def pixels(x: np.ndarray) -> np.ndarray:
    """Numbers [T, D] as grey bytes from the smallest to the largest."""
    low, high = float(x.min()), float(x.max())
    return ((x - low) * (255 / (high - low) if high > low else 0.0)).round().astype(np.uint8)


def grey(x: np.ndarray) -> str:
    """Numbers [T, D] as a grey image in a data URI."""
    return to_text(pixels(x))


def strip(rows: Sequence[Sequence[np.ndarray]]) -> bytes:
    """Images [T, D] side by side, row by row, each enlarged, with a border between them, as a PNG file."""
    times = max(1, -(-SIDE // max(rows[0][0].shape)))
    lines = []
    for row in rows:
        cells = [np.pad(np.kron(pixels(x), np.ones((times, times), np.uint8)), 2, constant_values=128) for x in row]
        lines.append(np.concatenate(cells, axis=1))
    return bytes_of(np.concatenate(lines))
