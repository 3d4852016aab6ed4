"""Next sample: predict the next sample of sound from those before it.

    C = - sum_t log p(c_t | c_1 .. c_{t-1}, h)            c_t one of 256 levels (mu-law), or of 65,536

p is a probability for each level, or the mass that a mixture of logistic distributions gives to it; both are of the
same levels, so that bits per sample can be compared. h is what is known beforehand: classes, numbers, or features frame
by frame. Van den Oord et al. 2016 (WaveNet), 2018 (Parallel WaveNet).

This is a task of its own, not a source of next-token: what next-token reads, scores and writes are texts. What both
share (figures, closed forms, chunks) is `_next.NextTask`, and with `categorical` a sample is a token, for n-grams too.
"""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.causal import Causal, Conditional, begin, decoder_of
from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.core.forward import carries, evaluating
from unrolled.core.opening import read_json
from unrolled.core.outside import write_new
from unrolled.core.progress import advanced
from unrolled.core.spec import Asks, ConditionPorts, Ports
from unrolled.core.tokens import EMPTY, SPECIALS, START, STOP, UNKNOWN
from unrolled.data.builtin_sets import builtin_holds
from unrolled.data.codecs.samples import Samples
from unrolled.data.collate import collate
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, Examples, ragged
from unrolled.data.files.cell_values import as_number
from unrolled.data.long_examples import example_batches, stretches
from unrolled.data.look import Look
from unrolled.data.prepared import kept, n_values, settings_of, used
from unrolled.data.sampler import pooled_batches
from unrolled.data.sound_conditions import Conditions
from unrolled.data.sounds_prepare import prepare_sounds
from unrolled.data.sources.clips import SUFFIXES, clips, one_clip
from unrolled.decode.rollout import best_of
from unrolled.decode.text import Begun
from unrolled.emissions.categorical import Categorical
from unrolled.emissions.logistic_mixture import LogisticMixture
from unrolled.objectives import metrics
from unrolled.tasks import _next
from unrolled.tasks._sound_config import SoundConfig

ALIASES = ("sound", "audio", "next-audio-sample")

CODEC = "sound.json"
USED = {"split", "seed", "fraction", "held_out", "condition"}  # of the settings of data; the others are about text
TOGETHER = 1 << 14  # positions of all rows that are evaluated at once
SHOWN = 4000  # samples of a recording that the saved predictions keep
USUAL = 1.0  # seconds that are written unless others are asked for
KEPT = 10  # recordings of which they keep them
LONGEST = 10**8  # samples that are written

Config = SoundConfig


class Task(_next.NextTask):
    FIGURES = ("bits_per_sample", "nats")
    UNIT = "samples"
    DEFAULT_MODEL = "wavenet"
    FOR_KIND = {"causal": {"batching.length": 512, "batching.chunk": 512, "batching.batch_size": 8}}
    OBEYS = {
        "generate": ("n", "seconds", "max_tokens", "sample", "temperature", "seed", "best_of", "condition"),
        "score": ("condition",),
        "predict": ("condition",),
    }

    config: SoundConfig

    def __init__(self, config: SoundConfig, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec = Samples(config.bits)
        self.rate = config.rate or 0
        self.conditions = Conditions()
        self._is_saved = False

    # ---- data

    def prepare(self, source: Any) -> None:
        plain = type(self.data)()
        unused = [n for n, value in self.data if n not in USED and value != dict(plain)[n]]
        if unused:
            raise UsageError(f"{unused[0]} is a setting for text; next-sample has {', '.join(sorted(USED))}")
        known = self.conditions if self._is_saved else None
        own = None if known is None else known.model_dump(mode="json")
        asked = {"task": type(self).__module__, "data": settings_of(self.data), "known": own}
        asked["sound"] = self.config.model_dump(mode="json", exclude={"output", "components"})
        found = kept(source, asked, lambda: prepare_sounds(source, self.data, self.config.form(), known))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.rate, self.conditions = found.told["rate"], Conditions.parse(found.told["conditions"])

    def save_codec(self, directory: Path) -> None:
        told = {"rate": self.rate, "bits": self.codec.bits, "conditions": self.conditions.model_dump(mode="json")}
        write_new(directory / CODEC, json.dumps(told).encode() + b"\n")

    def load_codec(self, directory: Path) -> None:
        try:
            told = read_json(directory / CODEC, within=directory)
            self.rate, self.conditions = int(told["rate"]), Conditions.parse(told["conditions"])
        except (ValueError, TypeError, KeyError, OverflowError, UsageError) as error:
            raise DataError(f"{directory / CODEC}: damaged, it does not say how sound was read ({error})") from None
        if not 1 <= self.rate <= 10_000_000:
            raise DataError(f"{directory / CODEC}: damaged, the rate {self.rate} is not possible")
        self._is_saved = True

    def describe(self) -> dict[str, Any]:
        return {}

    def recall(self, facts: Mapping[str, Any]) -> None:
        pass

    @property
    def is_numbers(self) -> bool:
        """Whether samples are read as numbers, not as tokens."""
        return self.config.output != "categorical"

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "numbers" if self.is_numbers else "tokens", None, "samples")

    def ports(self) -> Ports:
        width = self.conditions.width
        condition = ConditionPorts(width, self.conditions.hop) if width else None
        if self.is_numbers:
            return Ports(0, self.emission.d_out, d_in=1, targets="samples", condition=condition)
        return Ports(self.codec.size, self.codec.size, targets="samples", condition=condition)

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        lengths = self.sections["train"].lengths(TARGET)
        return [{"samples": int(m), "seconds": round(int(m) / self.rate, 3), "split": "train"} for m in lengths[:n]]

    def size(self, split: str) -> int:
        return len(self.sections[split].values(TARGET))

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """Recordings with what is known of them; bare ones in a list are files, or samples at the rate of the run."""
        if isinstance(source, list | tuple):
            yield [task.Given(each, number=i, place=f"clip {i}") for i, each in enumerate(source)]
            return
        hearing = self.config.form().hearing
        rate, found = clips(source, hearing if hearing.rate else hearing._replace(rate=None))
        if rate != self.rate:
            raise DataError(f"{source}: has {rate:,} samples a second, but this run has {self.rate:,}; convert it first")
        for number, clip in enumerate(found):
            names = [each.name for each in self.conditions.columns]
            words = ",".join(f"{name}={clip.known[name]}" for name in names if name in clip.known)
            yield [task.Given(clip.samples, words or None, {"file": clip.place}, number, clip.place)]

    # ---- training

    @property
    def emission(self) -> Any:
        if self.is_numbers:
            return LogisticMixture(self.config.components, self.codec.levels)
        return Categorical(self.codec.size, never=(EMPTY, UNKNOWN, START, STOP))

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        self._require_carried(carried)
        found = example_batches(self.sections["train"], batching, self.form, carried, seed)
        return Numbered(found, self.as_read) if self.is_numbers else found

    def _require_carried(self, carried: bool) -> None:
        if not carried and self.conditions.features != "none":
            raise UsageError("features run along with the samples: they need a model whose state does not grow")

    def as_read(self, batch: Batch) -> Batch:
        """A batch of ids as the model reads it: where it reads numbers, the places of their levels, 0 for <start>."""
        if not self.is_numbers:
            return batch
        y, real = self._places(batch.y), batch.y >= len(SPECIALS)
        return replace(batch, x=self._places(batch.x), targets={TARGET: y}, target_masks={TARGET: real})

    def _places(self, ids: Tensor) -> Tensor:
        u = (ids - len(SPECIALS)).double() * (2 / (self.codec.levels - 1)) - 1
        return u.masked_fill(ids < len(SPECIALS), 0.0).float().unsqueeze(-1)  # [B, T, 1]

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
        flat = all(path.parent == look.folder for path in sounds)
        return task.Guess(0.6, "it is sound without classes and texts") if flat else None

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
            self._require_carried(False)
            length = min(length, decoder_of(model).max_length or length)
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

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        found = prepare_sounds(source, self.data, self.config.form(), self.conditions)
        if found.told["rate"] != self.rate:
            raise DataError(
                f"{source}: has {found.told['rate']:,} samples a second, but this run has {self.rate:,}; convert it "
                "first"
            )
        parts = list(found.sections.values())
        ids = [piece for part in parts for piece in part.fields[TARGET]]
        vectors = [piece for part in parts if SOURCE in part.fields for piece in part.fields[SOURCE]]
        section = self._examples(ids, vectors)
        return lambda model: self.measure(model, section, None)

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

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """Samples, or a saved prediction with its condition; the names are places in milliseconds."""
        line = value if isinstance(value, Mapping) else {"samples": value}
        ids = self.codec.encode(one_clip(line["samples"], self.rate, "the input"))
        vectors = []
        if self.conditions.width:
            given = line.get("condition") or np.zeros((1, self.conditions.width)).tolist()
            vectors = [np.array(given, np.float32)]
        batch = self.as_read(collate(self._examples([ids], vectors), np.arange(1), self.form))
        return batch, [f"{1000 * t / self.rate:.4g} ms" for t in range(batch.x.shape[1])]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return {name: line[name] for name in ("samples", "condition") if name in line}

    def _examples(self, ids: Sequence[NDArray[Any]], vectors: Sequence[NDArray[Any]]) -> Examples:
        fields = {TARGET: ragged(ids), **({SOURCE: ragged(vectors)} if len(vectors) else {})}
        return Examples(fields, {ENDS: np.zeros(len(ids), bool)})

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-probability of each recording, in order."""
        for each in given:
            samples = one_clip(each.value, self.rate, each.place)
            section = self._examples([self.codec.encode(samples)], self._vectors(each, samples))
            nats, counts = self.row_nats(model, self.batches(model, section), 1)
            yield _scored(each.place, float(nats[0]), int(counts[0]))

    def _vectors(self, given: task.Given, samples: NDArray[Any]) -> list[NDArray[Any]]:
        """What is known of an input: what its condition says, and features of its own samples."""
        if not self.conditions.width:
            return [] if not given.condition else [self._asked(given.condition)]  # refused
        return [self.conditions.of_input(given.condition, samples)]

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
        begun = self._begin(model, given, self._asked(prompt.condition))
        with evaluating(model):
            made = self.go_on(begun, decoding)
        whole = self.codec.decode(self.codec.encode(given))
        return [{**each, "samples": np.concatenate([whole, each["samples"]]), "given": len(given)} for each in made]

    def _asked(self, words: str | None) -> NDArray[Any] | None:
        return self.conditions.asked(words, lambda file: one_clip(file, self.rate, file))

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        steps = decoding.max_tokens or max(1, round((dict(decoding).get("seconds") or USUAL) * self.rate))
        seconds = steps / self.rate
        if steps > LONGEST:
            raise UsageError(f"{seconds:,} seconds are {steps:,} samples: at most {LONGEST:,} are written at once")
        asked, emission = decoding.settled(samples=True, max_tokens=steps), self.emission
        n, (start, step, state) = max(asked.n, asked.best_of or 1), begun
        began, choose = time.perf_counter(), emission.chooser(asked)
        counted = Counted(step, steps)
        (found,) = best_of(n, counted, state, start, None, choose, (), steps, seed=asked.seed, of=emission)
        took = max(time.perf_counter() - began, 1e-9)
        note = f"{n * seconds:.4g} s of sound in {took:.3g} s: {n * seconds / took:.3g} x real time"
        return [
            {"samples": self._heard(each.tokens), "given": 0, "logp": each.log_p, "rate": self.rate, "note": note}
            for each in found[: asked.n]
        ]

    def _heard(self, choices: list[Any]) -> NDArray[np.float32]:
        """Samples [T] of what was chosen: ids, or places."""
        values = np.array(choices)
        return self.codec.heard(values[:, 0]) if self.is_numbers else self.codec.decode(values)

    def _begin(self, model: Causal | Conditional, samples: NDArray[Any], vectors: NDArray[Any] | None) -> Begun:
        ids = torch.from_numpy(np.concatenate([[START], self.codec.encode(samples)]).astype(np.int64))[None]
        source = None if vectors is None else torch.from_numpy(vectors)[None]
        with evaluating(model) as device:
            decoder, state = begin(model, None if source is None else source.to(device))
            prompt = self._places(ids) if self.is_numbers else ids
        return Begun(prompt.to(device), decoder, state)

    def files_of(self, made: list[dict[str, Any]], out: str | Path) -> dict[Path, bytes]:
        """OUT.wav, or OUT-0.wav, OUT-1.wav, ... the most probable first; with 16 bits."""
        base = Path(out).with_suffix("") if Path(out).suffix.lower() in SUFFIXES else Path(out)
        names = [f"{base.name}.wav" if len(made) == 1 else f"{base.name}-{i}.wav" for i in range(len(made))]
        return {base.with_name(name): wav_bytes(each["samples"], self.rate) for name, each in zip(names, made)}

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


class Numbered:
    """Training batches of ids, as numbers."""

    def __init__(self, inner: task.Sampler, read: Callable[[Batch], Batch]) -> None:
        self.inner, self._read = inner, read
        self.steps_per_epoch, self.tokens_per_step, self.notes = inner.steps_per_epoch, inner.tokens_per_step, inner.notes

    def batch(self, step: int) -> Batch:
        return self._read(self.inner.batch(step))


class Counted:
    """A step that says how many of so many ticks are done."""

    def __init__(self, step: Any, of: int) -> None:
        self.step, self.of, self.done = step, of, 0

    def __call__(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.done += 1
        if self.done % 100 == 0 or self.done == self.of:
            advanced(self.done, self.of)
        found: tuple[Tensor, Any] = self.step(x, state)
        return found


def _scored(place: str, nats: float, n: int) -> dict[str, Any]:
    return {"text": place, "logp": -nats, "tokens": n, "bits_per_sample": nats / math.log(2) / max(n, 1)}


def wav_bytes(samples: NDArray[Any], rate: int) -> bytes:
    """A .wav file of 16 bits."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
