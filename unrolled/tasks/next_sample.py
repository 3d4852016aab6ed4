"""Next sample: predict the next sample of sound from those before it.

    C = - sum_t log p(c_t | c_1 .. c_{t-1}, h)            c_t one of 256 levels (mu-law), or of 65,536

p is a probability for each level, or the mass that a mixture of logistic distributions gives to it; both are of the
same levels, so that bits per sample can be compared. h is what is known beforehand: classes, numbers, or features frame
by frame. Van den Oord et al. 2016 (WaveNet), 2018 (Parallel WaveNet).

This is a task of its own, not a source of next-token: what next-token reads, scores and writes are texts. What both
share (figures, closed forms, chunks) is `_next.NextTask`, and with `categorical` a sample is a token, for n-grams too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.causal import Causal, Conditional, begin, decoder_of
from unrolled.core.errors import DataError
from unrolled.core.flow import Flow
from unrolled.core.forward import carries, evaluating
from unrolled.core.spec import Asks, ConditionPorts, Ports
from unrolled.core.tokens import EMPTY, SPECIALS, START, STOP, UNKNOWN
from unrolled.data.builtin_sets import builtin_holds
from unrolled.data.examples import Examples
from unrolled.data.files.cell_values import as_number
from unrolled.data.long_examples import example_batches, stretches
from unrolled.data.look import Look
from unrolled.data.sampler import pooled_batches
from unrolled.data.sources.clips import SUFFIXES, one_clip
from unrolled.decode.config import Decoding
from unrolled.decode.text import Begun
from unrolled.emissions.categorical import Categorical
from unrolled.emissions.logistic_mixture import LogisticMixture
from unrolled.objectives import metrics
from unrolled.tasks import _next
from unrolled.tasks._sound import Numbered, SoundTask
from unrolled.tasks._sound_config import SoundConfig
from unrolled.tasks._sound_pictures import pictures_of_sound
from unrolled.tasks._sound_writing import steps_of, written

ALIASES = ("sound", "audio", "next-audio-sample")

PICTURED = 1500  # samples of a picture
PICTURED_AS = "A piece of the data, and what the model generates under the same condition."
TOGETHER = 1 << 14  # positions of all rows that are evaluated at once
SHOWN = 4000  # samples of a recording that the saved predictions keep
KEPT = 10  # recordings of which they keep them


class Config(SoundConfig):
    output: Literal["categorical", "logistic-mixture"] = "categorical"
    """What is predicted of a sample: a probability for each level, or a mixture of logistic distributions."""
    components: int = Field(10, ge=1, le=100)
    """Components of the logistic mixture."""

    @model_validator(mode="after")
    def _check_bits(self) -> Self:
        if self.bits == 16 and self.output == "categorical":
            raise ValueError(
                "bits = 16 needs output = logistic-mixture: there are too many levels for a probability each"
            )
        return self


class Task(SoundTask):
    FIGURES = ("bits_per_sample", "nats")
    UNIT = "samples"
    DEFAULT_MODEL = "wavenet"
    FOR_KIND = {"causal": {"batching.length": 512, "batching.chunk": 512, "batching.batch_size": 8}}
    OBEYS = {
        "generate": ("n", "seconds", "max_tokens", "sample", "temperature", "seed", "best_of", "condition"),
        "score": ("condition",),
        "predict": ("condition",),
    }

    config: Config

    # ---- data

    @property
    def is_numbers(self) -> bool:
        return self.config.output != "categorical"

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "numbers" if self.is_numbers else "tokens", None, "samples")

    def ports(self) -> Ports:
        width = self.conditions.width
        condition = ConditionPorts(width, self.conditions.hop) if width else None
        if self.is_numbers:
            return Ports(0, self.emission.d_out, d_in=1, targets="samples", condition=condition)
        return Ports(self.codec.size, self.codec.size, targets="samples", condition=condition)

    # ---- training

    @property
    def emission(self) -> Any:
        if self.is_numbers:
            return LogisticMixture(self.config.components, self.codec.levels)
        return Categorical(self.codec.size, never=(EMPTY, UNKNOWN, START, STOP))

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        self._require_aligned(batching, carried)
        found = example_batches(self.sections["train"], batching, self.form, carried, seed)
        return Numbered(found, self.as_read) if self.is_numbers else found

    def uses(self) -> list[task.Use]:
        words = self.conditions.example()
        started = ("--condition", words) if words else ()
        return [
            task.Use("write a second of sound", "generate", ("--seconds", "1", *started, "-o", "NEW_FILE.wav")),
            task.Use("score each recording of a folder", "score", ("NEW_DATA",)),
        ]

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        if builtin_holds(look.builtin, "sounds"):
            return task.Guess(0.97, "it is built-in sound")
        sounds = [path for path in look.files if path.suffix.lower() in SUFFIXES]
        if look.is_file and look.suffix in SUFFIXES:
            return task.Guess(0.6, "it is one recording")
        if look.folder is None or not sounds or len(sounds) < len(look.files):
            return None
        if given.get("condition") is not None:
            return task.Guess(0.95, "it is sound, and a condition was given")
        named = given.get("pattern") is not None or any(path.parent != look.folder for path in sounds)
        return None if named else task.Guess(0.85, "it is sound without classes and texts")

    def baselines(self) -> list[task.Baseline]:
        linear = task.Baseline("linear prediction", "linear-prediction", {"order": 32})
        if self.is_numbers:
            return [linear]
        words = {1: "level frequencies", 2: "bigram", 3: "trigram"}
        return [linear, *(task.Baseline(word, "ngram", {"order": order}) for order, word in words.items())]

    # ---- figures

    def batches(self, model: Causal | Conditional, section: Examples) -> Iterator[Batch]:
        """Every sample once, in chunks whose state is carried; of a model whose state grows, each from its start."""
        carried, rows = carries(model), _next.EVALUATION_ROWS
        length = TOGETHER // rows
        if not carried:
            length = min(length, decoder_of(model).max_length or length)
        if not carried and self.conditions.features != "none":
            length = max(int(section.lengths(TARGET).max(initial=0)) + 1, 1)  # whole pieces, as in training
        for whole in pooled_batches(section, rows, self.form):
            for at in range(0, whole.x.shape[1], length):
                cut = stretches(whole, np.full(len(whole.x), at), length)
                yield self.as_read(replace(cut, fresh=at == 0 or not carried))

    def measure(
        self, model: Causal | Conditional, section: Examples, limit: int | None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        """Beside the figures, how far back the model looks."""
        figures = super().measure(model, section, limit, ledger)
        field = decoder_of(model).receptive_field
        if limit is None and field is not None:
            figures |= {"receptive_field": field, "receptive_field_ms": round(1000 * field / self.rate, 3)}
        return figures

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        return {}

    def figures(self, sums: _next.Sums, section: Examples, whole: bool) -> dict[str, float]:
        count = int(sums["tokens"])
        if count == 0:
            raise DataError("there are no samples to predict in this split: give more sound")
        nats = metrics.mean(sums["nats"], count)
        return {"nats": nats, "bits_per_sample": nats / math.log(2), "tokens": count}

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split].first(min(limit, KEPT))
        nats, counts = self.row_nats(model, self.batches(model, section), section.n_examples)
        for number, ids in enumerate(section.fields[TARGET]):
            heard = [round(float(x), 5) for x in self.codec.decode(ids[:SHOWN])]
            line = _scored(f"{split}, piece {number}", float(nats[number]), int(counts[number]))
            known = {"condition": section.fields[SOURCE][number].tolist()} if SOURCE in section.fields else {}
            yield {**line, "samples": heard, **known}

    def row_nats(
        self, model: Causal | Conditional, batches: Any, n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Rows come in several chunks."""
        nats, counts = np.zeros(n), np.zeros(n, np.int64)
        for batch, y in _next.outputs(model, batches):
            assert batch.rows is not None
            rows = batch.rows.cpu().numpy()
            nats[rows] += self.emission.losses(y, batch.y, batch.y_mask).double().sum(1).cpu().numpy()
            counts[rows] += batch.real.sum(1).cpu().numpy()
        return nats, counts

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-probability of each recording, in order."""
        for each in given:
            samples = one_clip(each.value, self.rate, each.place)
            section = self._examples([self.codec.encode(samples)], self._vectors(each, samples))
            nats, counts = self.row_nats(model, self.batches(model, section), 1)
            yield _scored(each.place, float(nats[0]), int(counts[0]))

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        """The likeliest next sample after each recording, and what is expected of it."""
        for each in given:
            samples = one_clip(each.value, self.rate, each.place)
            vectors = self._vectors(each, samples)
            begun = self._begin(model, samples, vectors[0] if vectors else None)
            with evaluating(model):
                p = self._masses(begun.step(begun.prompt, begun.state)[0][0, -1])
            heard = self.codec.decode(np.arange(self.codec.levels) + len(SPECIALS))
            best = int(p.argmax())
            yield {
                "clip": each.place, "samples": len(samples), "next": float(heard[best]), "p": float(p[best]),
                "expected": float((p.cpu().numpy() * heard).sum()),
            }  # fmt: skip

    def _masses(self, y: Tensor) -> Tensor:
        """p [L] of the levels under outputs y [D']."""
        if not self.is_numbers:
            return self.emission.log_probabilities(y).exp()[len(SPECIALS) :]
        places = 2 * torch.arange(self.codec.levels).double() / (self.codec.levels - 1) - 1
        return self.emission.log_mass(y.double().expand(len(places), -1), places).exp()

    # ---- writing

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n recordings of `seconds`, the most probable first, each behind the prompt, a file or samples."""
        empty = prompt.value is None or (isinstance(prompt.value, str) and not prompt.value)
        given = np.empty(0, np.float32) if empty else one_clip(prompt.value, self.rate, "the prompt")
        vectors = self._asked(prompt.condition)
        begun = self._begin(model, given, vectors)
        with evaluating(model):
            made = self.go_on(begun, self._as_long(decoding, vectors))
        whole = self.codec.decode(self.codec.encode(given))
        return [{**each, "samples": np.concatenate([whole, each["samples"]]), "given": len(given)} for each in made]

    def _as_long(self, decoding: Any, vectors: NDArray[Any] | None) -> Any:
        """Features of a file say how long a recording is, where nobody asks for another length."""
        asked = decoding.max_tokens or dict(decoding).get("seconds")
        if asked or vectors is None or len(vectors) == 1:
            return decoding
        return decoding.updated({"max_tokens": len(vectors) * self.conditions.hop})

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        steps = steps_of(decoding, self.rate)
        made = written(begun, decoding, steps, self.emission)
        facts = {"given": 0, "rate": self.rate, "seconds": steps / self.rate}
        return [{"samples": self._heard(each.tokens), "logp": each.log_p, **facts} for each in made]

    def _begin(self, model: Causal | Conditional, samples: NDArray[Any], vectors: NDArray[Any] | None) -> Begun:
        ids = torch.from_numpy(np.concatenate([[START], self.codec.encode(samples)]).astype(np.int64))[None]
        source = None if vectors is None else torch.from_numpy(vectors)[None]
        with evaluating(model) as device:
            decoder, state = begin(model, None if source is None else source.to(device))
            prompt = self._places(ids) if self.is_numbers else ids
        return Begun(prompt.to(device), decoder, state)

    def pictures(self, model: Causal | Conditional, split: str) -> dict[str, Any]:
        """A piece of the data beside what the model generates under its condition."""
        section = self.sections[split].first(1)
        data = self.codec.decode(section.fields[TARGET][0][:PICTURED])
        vectors = section.fields[SOURCE][0] if SOURCE in section.fields else None
        room = min(len(data), (decoder_of(model).max_length or len(data) + 1) - 1)
        begun = self._begin(model, np.empty(0, np.float32), vectors)
        with evaluating(model):
            (made,) = self.go_on(begun, Decoding(max_tokens=room))
        return pictures_of_sound({f"{split} data": data, "generated": made["samples"]}, self.rate, PICTURED_AS)

    def flow(self, model: Causal | Conditional, condition: str | None = None) -> Flow:
        """How probable each sample was: a row is one sample between -1 and 1."""
        self.require_next()
        begun = self._begin(model, np.empty(0, np.float32), self._asked(condition))
        assert isinstance(begun.step, Causal)
        first = begun.prompt.cpu()
        return Flow(begun.step, self._sample, self.told, self._line, first, begun.state, first=first)

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"logp": float(self.emission.log_prob(y[None].double(), x[None]))}

    def _sample(self, row: Any, place: str) -> Tensor:
        ids = torch.from_numpy(self.codec.encode(np.atleast_1d(np.asarray(row, np.float64))).astype(np.int64))[None]
        return self._places(ids) if self.is_numbers else ids

    def _line(self, line: str, place: str) -> Any:
        return as_number(line.strip(), place) if line.strip() else None


def _scored(place: str, nats: float, n: int) -> dict[str, Any]:
    return {"text": place, "logp": -nats, "tokens": n, "bits_per_sample": nats / math.log(2) / max(n, 1)}
