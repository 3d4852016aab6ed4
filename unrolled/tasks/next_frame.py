"""Next frame: predict the next frame (or one `ahead` steps on) of sequences of binary vectors, such as piano rolls.

    C = - sum_t sum_k [ v_{t+1,k} log p_{t,k} + (1 - v_{t+1,k}) log(1 - p_{t,k}) ],     p_t = sigmoid(y_t)

Bits are independent given the past. The input begins with a frame of zeros, so that every frame is predicted once.
Figures are nats per frame, summed over the bits, all frames of all sequences counted alike: `nats` over every frame,
`nats_after_first` without the first of each sequence, as in the table of Bai, Kolter & Koltun (2018).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.causal import Causal, Conditional
from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.core.forward import evaluating
from unrolled.core.front import option
from unrolled.core.opening import read_json
from unrolled.core.outside import write_new
from unrolled.core.spec import Asks, Ports
from unrolled.data.collate import collate, n_targets
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.files.cell_values import as_number
from unrolled.data.files.in_memory import values_of
from unrolled.data.files.midi import midi_bytes
from unrolled.data.long_examples import example_batches
from unrolled.data.look import Look
from unrolled.data.prepared import kept, n_values, settings_of, used
from unrolled.data.sources import pianoroll
from unrolled.data.sources.pianoroll import (
    KEYS,
    LOWEST,
    Roll,
    check_roll,
    examples_of_rolls,
    is_like_roll,
    prepare_rolls,
    read_rolls,
)
from unrolled.decode.rollout import best_of
from unrolled.decode.text import Begun
from unrolled.emissions.bits import Bits
from unrolled.engine.stepper import stepped
from unrolled.objectives import metrics
from unrolled.tasks import _next

ALIASES = ("music", "midi", "piano-roll")

CODEC = "frames.json"
WIDEST = 1 << 16  # bits of a frame
MOST_FRAMES, LIKELY = 300, 8  # that are written unless more are asked for; keys that are told of those that may follow
USED = {"split", "seed", "ahead", "fraction", "held_out"}  # of the settings of data; the others are about text


class Config(config.Config):
    frame_seconds: float = Field(0.5, gt=0, le=60)
    """Duration of a frame in generated MIDI files; a quarter note is half a second."""


class Task(_next.NextTask):
    FIGURES = ("nats", "nats_after_first", "accuracy")
    UNIT = "frames"
    OBEYS = {"generate": ("n", "max_tokens", "sample", "temperature", "seed", "best_of")}

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.width = KEYS

    # ---- data

    def prepare(self, source: Any) -> None:
        plain = type(self.data)()
        unused = [
            n for n in type(self.data).model_fields if n not in USED and getattr(self.data, n) != getattr(plain, n)
        ]
        if unused:
            raise UsageError(f"{unused[0]} is a setting for text; next-frame has {', '.join(sorted(USED))}")
        asked = {"task": type(self).__module__, "data": settings_of(self.data)}
        found = kept(source, asked, lambda: prepare_rolls(source, self.data))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.width = found.told["width"]

    def save_codec(self, directory: Path) -> None:
        write_new(directory / CODEC, json.dumps({"width": self.width}).encode() + b"\n")

    def load_codec(self, directory: Path) -> None:
        try:
            self.width = int(read_json(directory / CODEC, within=directory)["width"])
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise DataError(f"{directory / CODEC}: damaged, the width of frames is not valid ({error})") from None
        if not 1 <= self.width <= WIDEST:
            raise DataError(f"{directory / CODEC}: invalid width of frames {self.width}: expected 1 to {WIDEST:,}")

    def describe(self) -> dict[str, Any]:
        return {}

    def recall(self, facts: Mapping[str, Any]) -> None:
        pass

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "numbers", None, "bits")

    def ports(self) -> Ports:
        return Ports(n_tokens=0, d_out=self.width, d_in=self.width, targets="bits")

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        lengths = self.sections["train"].lengths(TARGET)
        return [{"frames": int(length), "keys": self.width, "split": "train"} for length in lengths[:n]]

    def size(self, split: str) -> int:
        return n_targets(self.sections[split], self.data.ahead)

    def _read(self, source: Any) -> list[Roll]:
        """All sequences of another file, whatever their part, as wide as the run's."""
        found = [roll for rolls in read_rolls(source).values() for roll in rolls]
        if found[0].shape[1] != self.width:
            raise DataError(
                f"{source}: the frames have width {found[0].shape[1]}, expected {self.width} as in training"
            )
        return found

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        whole = isinstance(source, str | Path | Mapping)
        rolls = self._read(source) if whole else values_of(source)
        yield [task.Given(roll, number=i, place=f"sequence {i}") for i, roll in enumerate(rolls)]

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return example_batches(self.sections["train"], batching, self.form, carried, seed)

    def uses(self) -> list[task.Use]:
        return [
            task.Use("write a piano roll and a MIDI file", "generate", ("--max-tokens", "64", "-o", "NEW_FILE")),
            task.Use("score each sequence of a file", "score", ("NEW_DATA",)),
            task.Use("predict what follows each sequence", "predict", ("NEW_DATA",)),
        ]

    @property
    def emission(self) -> Bits:
        return Bits(self.width)

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:  # noqa: ARG003
        if look.suffix in (".npz", ".mat") and all(map(is_like_roll, look.arrays.values())):
            return task.Guess(0.5, "its arrays are zeros and ones" if look.arrays else "such files hold piano rolls")
        roll = next(iter(look.first.source), None) if isinstance(look.first.source, list) else None
        frames = isinstance(roll, list) and bool(roll) and all(isinstance(frame, list) for frame in roll)
        return task.Guess(0.5, "it lists the keys of each frame") if frames else None

    def baselines(self) -> list[task.Baseline]:
        words = {0: "key frequencies", 1: "key by key"}
        return [task.Baseline(word, "key-chain", {"order": order}) for order, word in words.items()]

    # ---- figures

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        section = examples_of_rolls(self._read(source))
        return lambda model: self.measure(model, section, None)

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        said, true = (y > 0) & batch.real[..., None], batch.y > 0  # [B, T, D]
        return {
            "first": float(nats[:, 0].sum()), "firsts": int(batch.real[:, 0].sum()),
            "right": int((said & true).sum()), "named": int((said | true).sum()),
        }  # fmt: skip

    def figures(self, sums: _next.Sums, section: Examples, whole: bool) -> dict[str, float]:
        """Nats per frame, and the share of right keys among all that sound or are said to (Bay et al. 2009)."""
        n = int(sums["tokens"])
        figures = {"nats": metrics.mean(sums["nats"], n), "accuracy": sums["right"] / max(sums["named"], 1)}
        if n > sums["firsts"]:  # sequences of one frame have nothing after it
            figures["nats_after_first"] = (sums["nats"] - sums["first"]) / (n - sums["firsts"])
        return {**figures, "tokens": n}

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split]
        rolls = list(section.first(limit).fields[TARGET])
        for number, (roll, line) in enumerate(zip(rolls, self.score(model, list(map(task.Given, rolls))))):
            on = [np.flatnonzero(frame).tolist() for frame in roll]
            yield {**line, "text": f"{split}, sequence {number}", "frames": on}

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """A sequence of frames, each the list of its bits that are on, or a whole roll; names are frame numbers."""
        roll = value
        if not hasattr(value, "shape"):
            if not isinstance(value, list | tuple):
                raise DataError("the input: expected a list of frames, each a list of the keys that are on")
            roll = np.zeros((len(value), self.width), np.uint8)
            for t, on in enumerate(value):
                roll[t, self._keys(on, t)] = 1
        batch = collate(examples_of_rolls([check_roll(roll, "input", self.width)]), np.arange(1), self.form)
        return batch, [str(t) for t in range(batch.x.shape[1])]

    def _keys(self, on: Any, t: int) -> Any:
        """The bits of a frame that are on."""
        try:
            keys = np.asarray(on)
        except (ValueError, OverflowError):
            keys = np.array("")
        if keys.shape == (0,):
            return keys.astype(int)
        if keys.ndim != 1 or keys.dtype.kind not in "iu" or keys.min() < 0 or keys.max() >= self.width:
            raise DataError(f"frame {t}: expected a list of the keys that are on, integers 0 to {self.width - 1}")
        return keys

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return line["frames"]

    def offered(self, value: Any) -> task.Offered:
        roll = [[int(key in on) for key in range(self.width)] for on in value]
        return task.Offered("frames", roll)

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-probability of each sequence, in order."""
        checked = [check_roll(each.value, f"sequence {i}", self.width) for i, each in enumerate(given)]
        batches = self.batches(model, examples_of_rolls(checked)) if checked else ()
        nats, counts = self.row_nats(model, batches, len(checked))
        for i, (total, n) in enumerate(zip(nats.tolist(), counts.tolist())):
            yield {"text": f"sequence {i}", "logp": -total, "tokens": n, "nats_per_frame": total / max(n, 1)}

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        """The most probable keys after each sequence."""
        for i, each in enumerate(given):
            roll = check_roll(each.value, f"sequence {i}", self.width)
            with evaluating(model) as device:
                p = model(self._start(roll).to(device))[0][0, -1].double().sigmoid()  # [D]
            best = p.topk(min(LIKELY, self.width))
            likely = [{"key": self.name(int(k)), "p": float(q)} for q, k in zip(*best, strict=True)]
            yield {"sequence": i, "frames": len(roll), "likely": likely}

    def name(self, key: int) -> str:
        """`C4` for a piano's key, its number otherwise."""
        if self.width != KEYS:
            return str(key)
        octave, step = divmod(key + LOWEST, 12)
        return f"{('C', 'C#', 'D', 'D#', 'E', 'F', 'F#', 'G', 'G#', 'A', 'A#', 'B')[step]}{octave - 1}"

    # ---- writing

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n rolls [T, D], each `max_tokens` frames longer than the prompt, the most probable first; the first `given`
        frames are the prompt's, and logp is of the others, under the model as it is, whatever the temperature.

        The prompt is an array [T, D], or a file whose first sequence is continued: `FILE`, or `FILE:16` for its
        first 16 frames. Every key is drawn by itself, by temperature and seed.
        """
        given = self._prompt(prompt.value)
        with evaluating(model) as device:
            found = self.go_on(Begun(self._start(given).to(device), model, None), decoding)
        return [
            {"roll": np.concatenate([given, each["roll"]]), "given": len(given), "logp": each["logp"]} for each in found
        ]

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        asked, bits = decoding.settled(samples=True, max_tokens=MOST_FRAMES), self.emission
        n, (start, step, state) = (
            max(asked.n, asked.best_of or 1),
            begun._replace(step=stepped(begun.step)),
        )  # start [1, 1 + P, D]
        choose = bits.chooser(asked)
        (found,) = best_of(n, step, state, start, None, choose, (), asked.max_tokens, seed=asked.seed, of=bits)
        return [
            {"roll": np.array(each.tokens, np.uint8), "given": 0, "logp": each.log_p} for each in found[: asked.n]
        ]  # [T, D]

    def flow(self, model: Causal | Conditional, condition: str | None = None) -> Flow:
        """How probable each frame was: a row of zeros and ones."""
        self.require_next()
        if condition is not None:
            raise UsageError(f"{option('condition')} does not apply to the task 'next-frame'")
        assert isinstance(model, Causal)
        first = self._start(np.zeros((0, self.width), np.uint8))  # [1, 1, D]
        return Flow(model, self._frame, self.told, self._line, first, first=first)

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"logp": float(self.emission.log_prob(y[None].double(), x[None].double()))}

    def _frame(self, row: Any, place: str) -> Tensor:
        return self._start(check_roll(np.asarray(row)[None], place, self.width))[:, 1:]

    def _line(self, line: str, place: str) -> Any:
        return [as_number(word, place) for word in line.replace(",", " ").split()] or None

    def files_of(self, made: list[dict[str, Any]], out: str | Path) -> dict[Path, bytes]:
        """OUT.npz with all rolls, `roll_0` the most probable, and where there are 88 keys a MIDI file of each."""
        base = Path(out).with_suffix("") if Path(out).suffix in (".npz", ".mid") else Path(out)
        files = {base.with_name(f"{base.name}.npz"): pianoroll.npz_bytes([each["roll"] for each in made])}
        for i, each in enumerate(made if self.width == KEYS else []):
            name = f"{base.name}.mid" if len(made) == 1 else f"{base.name}-{i}.mid"
            files[base.with_name(name)] = midi_bytes(each["roll"], self.config.frame_seconds, LOWEST)
        return files

    def _prompt(self, prompt: Any) -> Roll:
        if isinstance(prompt, str | Path) and str(prompt):
            name, colon, number = str(prompt).rpartition(":")
            if not (colon and number.isdigit()):
                name, number = str(prompt), ""
            roll = self._read(name)[0]
            return roll[: int(number)] if number else roll
        if isinstance(prompt, str):
            return np.zeros((0, self.width), np.uint8)
        return check_roll(prompt, "the prompt", self.width)

    def _start(self, roll: Roll) -> Tensor:
        """A frame of zeros and then the roll: [1, 1 + T, D]."""
        frames = np.concatenate([np.zeros((1, self.width)), roll]).astype(np.float32)
        return torch.from_numpy(frames)[None]
