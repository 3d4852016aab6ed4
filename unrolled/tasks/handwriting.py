"""Handwriting: predict where a pen goes next, so that a model draws by itself, or writes a given text.

    C = - sum_t log p(dx_t, dy_t, state_t | all moves before t)            Graves (2013), eq. (26)

p is a mixture of bivariate Gaussians for the move and a distribution over what the pen does after it: it stays down,
is lifted, or the drawing ends. With `text` the model is also given the text of each drawing, as a source. Moves are
divided by their root mean square in the training data; `nats` are per point in these units, so they may be negative.
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
from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.flow import Flow
from unrolled.core.forward import device_of, evaluating
from unrolled.core.front import option
from unrolled.core.opening import read_json
from unrolled.core.outside import write_new
from unrolled.core.spec import Asks, Ports, SourcePorts
from unrolled.core.state import State
from unrolled.data.builtin_sets import builtin_holds
from unrolled.data.codecs.text import CharCodec
from unrolled.data.collate import collate, n_targets
from unrolled.data.config import DataConfig
from unrolled.data.drawings_prepare import TEXT, examples_of, prepare_drawings
from unrolled.data.examples import Examples
from unrolled.data.files.in_memory import values_of
from unrolled.data.long_examples import example_batches
from unrolled.data.look import Look
from unrolled.data.prepared import kept, n_values, settings_of, used
from unrolled.data.sources import drawings
from unrolled.data.sources.pen_moves import DOWN, END, LIFT, Drawing, Moves, drawing_of, placed, scaled
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.decode.text import Begun
from unrolled.emissions.pen import STATES, WIDTH, Bias, Pen
from unrolled.engine.stepper import stepped
from unrolled.objectives import metrics
from unrolled.pictures.kinds import Drawings
from unrolled.tasks import _next, _sheet

ALIASES = ("pen", "strokes", "sketch", "drawing")

CODEC = "pen.json"
USED = {"split", "seed", "fraction", "held_out"}  # of the settings of data; the others are about text
SHOWN = 12  # drawings of a sheet in the report


class Config(config.Config):
    n_mixtures: int = Field(20, ge=1, le=1000)
    """Components of the mixture from which a move is drawn."""
    text: bool | None = None
    """Condition on the text of each drawing. [default: with models that read a source]"""


class Asked(Decoding):
    """What a picture asks for."""

    text: str | None = None
    bias: float = 0.0


class Task(_next.NextTask):
    FIGURES = ("nats", "nats_move", "nats_pen")
    UNIT = "points"
    ACCEPTS = ("causal", "conditional")
    FOR_KIND = {"conditional": {"text": True}}
    OBEYS = {"generate": ("n", "max_tokens", "seed", "best_of", "bias", "text")}

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.scale, self.longest = 1.0, 1
        self.texts = CharCodec("")

    # ---- data

    def prepare(self, source: Any) -> None:
        plain = type(self.data)()
        unused = [n for n in type(self.data).model_fields if n not in USED and vars(self.data)[n] != vars(plain)[n]]
        if unused:
            raise UsageError(f"{unused[0]} does not apply to handwriting, which has {', '.join(sorted(USED))}")
        text = bool(self.config.text)
        asked = {"task": type(self).__module__, "text": text, "data": settings_of(self.data)}
        found = kept(source, asked, lambda: prepare_drawings(source, self.data, text))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.scale, self.longest = found.told["scale"], int(found.sections["train"].lengths(TARGET).max())
        self.texts = found.codecs.get(TEXT, self.texts)

    def save_codec(self, directory: Path) -> None:
        told = {"scale": self.scale, "longest": self.longest, "characters": self.texts.characters}
        write_new(directory / CODEC, json.dumps(told).encode() + b"\n")

    def load_codec(self, directory: Path) -> None:
        try:
            told = read_json(directory / CODEC, within=directory)
            self.scale, self.longest = float(told["scale"]), int(told["longest"])
            self.texts = CharCodec(str(told["characters"]))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise DataError(f"{directory / CODEC}: damaged, the scale of moves is not valid ({error})") from None
        if not (0 < self.scale < float("inf") and self.longest > 0):
            raise DataError(f"{directory / CODEC}: invalid scale {self.scale} or length {self.longest}: expected > 0")

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        return {"encoder.embedding": task.Vocabulary(self.texts)} if self.config.text else {}

    def describe(self) -> dict[str, Any]:
        return {}

    def recall(self, facts: Mapping[str, Any]) -> None:
        pass

    def asks(self) -> Asks:
        """Models of both kinds where texts are there and none is asked for: each kind has its own default."""
        if self.config.text:
            return Asks(("conditional",), "next", "numbers", "tokens", "pen")
        read = self.prepared is None or self.prepared.told["texts"]
        both = self.config.text is None and read
        return Asks(self.ACCEPTS if both else ("causal",), "next", "numbers", None, "pen")

    def ports(self) -> Ports:
        source = SourcePorts(self.texts.size) if self.config.text else None
        return Ports(n_tokens=0, d_out=self.emission.d_out, d_in=WIDTH, targets="pen", source=source)

    @property
    def emission(self) -> Pen:
        return Pen(self.config.n_mixtures)

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        train = self.sections["train"].first(n)
        return [
            {"points": len(moves), "strokes": len(placed(moves)), "split": "train"} for moves in train.fields[TARGET]
        ]

    def size(self, split: str) -> int:
        return n_targets(self.sections[split])

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        known = isinstance(source, str | Path | Mapping)
        found = drawings.read_drawings(source) if known else values_of(source)
        yield [task.Given(each, number=i, place=f"drawing {i}") for i, each in enumerate(found)]

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return example_batches(self.sections["train"], batching, self.form, carried, seed)

    def uses(self) -> list[task.Use]:
        text = ("--text", "TEXT", "--bias", "1") if self.config.text else ("-n", "16")
        return [
            task.Use("draw a sheet of samples", "generate", (*text, "-o", "NEW_FILE.svg")),
            task.Use("score each drawing of a file", "score", ("NEW_DATA",)),
            task.Use("predict the next move of each drawing", "predict", ("NEW_DATA",)),
        ]

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:  # noqa: ARG003
        if look.builtin:
            return task.Guess(0.9, "it is pen strokes") if builtin_holds(look.builtin, "drawings") else None
        seen = look.first
        if seen.suffix in (".inkml", ".svg"):
            return task.Guess(0.9, "such files hold strokes of a pen")
        if seen.arrays and drawings.is_like_drawings(seen.arrays):
            return task.Guess(0.8, "its arrays are moves of a pen")
        if seen.folder is not None and seen.files and all(drawings.is_ink(path) for path in seen.files):
            return task.Guess(0.9, "it is a folder of files with strokes of a pen")
        why = drawings.strokes_alone(seen)
        return task.Guess(0.95, why) if why else None

    def baselines(self) -> list[task.Baseline]:
        """They have no use for texts."""
        words = {0: "memoryless mixture", 1: "first-order mixture"}
        return [task.Baseline(word, "pen-mixture", {"order": order}) for order, word in words.items()]

    # ---- figures

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        section = self._section(list(drawings.read_drawings(source)))
        return lambda model: self.measure(model, section, None)

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        log_e = y[..., -len(STATES) :].double().log_softmax(-1)  # [B, T, 3]
        pen = -(batch.y[..., DOWN:] * log_e).sum(-1).masked_fill(~batch.real, 0.0)
        return {"pen": float(pen.sum())}

    def figures(self, sums: _next.Sums, section: Examples, whole: bool) -> dict[str, float]:
        """Nats per point, of the move and of what the pen does after it."""
        n = int(sums["tokens"])
        nats, pen = metrics.mean(sums["nats"], n), metrics.mean(sums["pen"], n)
        return {"nats": nats, "nats_move": nats - pen, "nats_pen": pen, "tokens": n}

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split].first(limit)
        nats, counts = self.row_nats(model, self.batches(model, section), section.n_examples)
        for i, moves in enumerate(section.fields[TARGET]):
            text = self.texts.decode(section.fields[SOURCE][i]) if self.config.text else f"{split}, drawing {i}"
            strokes = _sheet.rounded(placed(moves), self.scale)
            yield {"text": text, **_nats(nats[i], counts[i]), "strokes": strokes}

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-density of each drawing, in order."""
        section = self._section(
            [self._drawing(each.value, each.place or f"drawing {i}") for i, each in enumerate(given)]
        )
        batches = self.batches(model, section) if len(given) else ()
        nats, counts = self.row_nats(model, batches, len(given))
        for i in range(len(given)):
            yield {"text": f"drawing {i}", **_nats(nats[i], counts[i])}

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        """After each drawing, without its end: the mean of the likeliest component, and what the pen does after it."""
        for i, each in enumerate(given):
            found = self._drawing(each.value, each.place or f"drawing {i}")
            with evaluating(model):
                step, state = self._begin(model, found.text)
                y = step(self._start(found.moves).to(device_of(model)), state)[0][0, -1].double()
            log_pi, mu, _, _, log_e = self.emission.parameters(y)
            way = (self.scale * mu[log_pi.argmax()]).tolist()
            likely = dict(zip(STATES, log_e.exp().tolist()))
            yield {"drawing": i, "points": len(found.moves), "next": way, "p": likely}

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """A drawing, or an object with strokes and text; names are the numbers of points."""
        batch = collate(self._section([self._drawing(value, "the input")]), np.arange(1), self.form)
        return batch, [str(t) for t in range(batch.x.shape[1])]

    def source_names(self, source: Tensor) -> list[str]:
        return [self.texts.name(int(token)) for token in source]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return {"strokes": line["strokes"], "text": line["text"]}

    def offered(self, value: Any) -> task.Offered:
        return task.Offered("pen", value if self.config.text else value["strokes"])

    def input_columns(self) -> list[str]:
        return ["dx", "dy", *STATES]

    def flow(self, model: Any, condition: str | None = None) -> Flow:
        raise UsageError("the task 'handwriting' does not run live; generate draws, and score judges whole drawings")

    def _drawing(self, value: Any, place: str) -> Drawing:
        found = value if isinstance(value, Drawing) else drawing_of(value, place)
        if self.config.text and not found.text:
            raise DataError(f"{place}: the drawing has no text, but the run was trained with texts; give its text")
        return found

    def _section(self, found: Sequence[Drawing]) -> Examples:
        if self.config.text and (missing := next((each for each in found if not each.text), None)):
            raise DataError(f"{missing.place}: the drawing has no text, but the run was trained with texts")
        return examples_of(found, self.scale, self.texts if self.config.text else None)

    # ---- drawing

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n drawings, the most probable first; those of a run with texts write `text`.

        The prompt is a drawing, or a file whose first drawing is continued, in the style of its writer where a text
        is written (Graves 2013, section 5.5): the model is then given both texts, and what is returned is the new one.
        """
        given = self._prompt(prompt.value)
        text = self._text(decoding.text, given)
        before = np.zeros((0, WIDTH), np.float32) if given is None else _open(given.moves)
        with evaluating(model) as device:
            step, state = self._begin(model, text)
            found = self._drawn(Begun(self._start(before).to(device), step, state), decoding)
        if self.config.text:
            return [{"text": decoding.text, **self._made(moves, logp, ended)} for moves, logp, ended in found]
        first = scaled(before, self.scale)
        return [self._made(np.concatenate([first, moves]), logp, ended, len(first)) for moves, logp, ended in found]

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        return [self._made(*each) for each in self._drawn(begun, decoding)]

    def _drawn(self, begun: Begun, decoding: Any) -> list[tuple[Moves, float, bool]]:
        """Moves, their log-density, and whether the drawing ended by itself."""
        asked, pen = decoding.settled(samples=True, max_tokens=self.longest), self.emission
        n, (start, step, state) = max(asked.n, asked.best_of or 1), begun  # start [1, 1 + P, 5]
        step = stepped(step)
        choose = pen.chooser(Bias(bias=decoding.bias))
        (found,) = best_of(n, step, state, start, None, choose, (), asked.max_tokens, seed=asked.seed, of=pen)
        return [(np.array(each.tokens, np.float32), each.log_p, each.finished) for each in found[: asked.n]]

    def _made(self, moves: Moves, logp: float, finished: bool, given: int = 0) -> dict[str, Any]:
        strokes = [(self.scale * stroke).tolist() for stroke in placed(moves)]
        return {"strokes": strokes, "given": given, "logp": logp, "finished": finished}

    def files_of(self, made: list[dict[str, Any]], out: str | Path) -> dict[Path, bytes]:
        """A sheet with all drawings (.svg or .png), or the strokes themselves (.json or .npz)."""
        return _sheet.files(made, Path(out))

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        """Drawings of the data, and drawings of the model."""
        some = self.sections[split].first(SHOWN)
        texts = [self.texts.decode(ids) for ids in some.fields[SOURCE]] if self.config.text else []
        if texts:
            made = [self.generate(model, task.Given(""), Asked(text=text, seed=i))[0] for i, text in enumerate(texts)]
        else:
            made = self.generate(model, task.Given(""), Asked(n=SHOWN))
        data = [_sheet.rounded(placed(moves), self.scale) for moves in some.fields[TARGET]]
        drawn = [_sheet.rounded([np.array(stroke) for stroke in each["strokes"]], 1.0) for each in made]
        return {
            "drawn": Drawings(title="Drawings of the model", captions=texts, drawings=drawn,
                              alt="Samples of the model; colours go from the first point to the last."),
            "drawings": Drawings(title=f"Drawings of the {split} data", captions=texts, drawings=data,
                                 alt="The first held-out drawings; colours go from the first point to the last."),
        }  # fmt: skip

    def _begin(self, model: Causal | Conditional, text: str | None) -> tuple[Causal, State]:
        if not self.config.text:
            return begin(model)
        ids = torch.from_numpy(self.texts.encode(text or "")).to(device_of(model))
        return begin(model, ids[None], torch.ones_like(ids[None], dtype=torch.bool))

    def _text(self, text: str | None, given: Drawing | None) -> str | None:
        """What a model is given to write: the text of the prompt, which it has been fed, and then the new one."""
        if not self.config.text:
            if text is not None:
                raise UsageError(f"this run was trained without texts, so {option('text')} has no effect: leave it out")
            return None
        if not text:
            raise UsageError(f"this run writes texts: say which with {option('text')}")
        unknown = self.texts.unknown(text)
        if unknown:
            raise UsageError(
                f"the text has characters that the run was not trained on: {listed([repr(c) for c in unknown])}; "
                f"it knows {''.join(self.texts.characters)!r}"
            )
        if given is not None and not given.text:
            raise DataError("the prompt has no text, but the run was trained with texts: give strokes with their text")
        between = " " if " " in self.texts.characters else ""
        return text if given is None else f"{given.text}{between}{text}"

    def _prompt(self, prompt: Any) -> Drawing | None:
        if isinstance(prompt, str) and not prompt:
            return None
        if isinstance(prompt, str | Path):
            found = next(iter(drawings.read_drawings(prompt)), None)
            if found is None:
                raise DataError(f"{prompt}: there are no drawings in it")
            return found
        return self._drawing(prompt, "the prompt")

    def _start(self, moves: Moves) -> Tensor:
        """Zeros and then the moves: [1, 1 + T, 5]."""
        rows = np.concatenate([np.zeros((1, WIDTH), np.float32), scaled(moves, self.scale)])
        return torch.from_numpy(rows.astype(np.float32))[None]


def _open(moves: Moves) -> Moves:
    """A drawing that will be continued: its last move lifts the pen, and does not end it."""
    found = np.array(moves)
    found[-1:, DOWN:] = np.where(found[-1:, END:] > 0, np.eye(3)[LIFT - DOWN], found[-1:, DOWN:])
    return found


def _nats(nats: float, n: int) -> dict[str, Any]:
    return {"logp": -float(nats), "tokens": int(n), "nats_per_point": float(nats) / max(int(n), 1)}
