"""Next pixel: predict the next pixel of grey images in raster order from those before it, and so generate images.

    C = - sum_t log p(c_t | c_1 .. c_{t-1})            c_t one of 2 to 256 levels of brightness, row by row

A pixel is a token, so models, n-grams and figures are those of next-token; what is read and written are images. All
images have one size. Van den Oord et al. 2016 (Pixel Recurrent Neural Networks), section 2.
"""

from __future__ import annotations

import json
import math
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
from unrolled.core.opening import read_json
from unrolled.core.outside import write_new
from unrolled.core.spec import Asks, Ports
from unrolled.core.tokens import EMPTY, SPECIALS, START, STOP, UNKNOWN
from unrolled.data.collate import collate
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.files.cell_values import as_number, as_numbers
from unrolled.data.files.data_uri import bytes_of, to_text
from unrolled.data.long_examples import example_batches
from unrolled.data.pixels_prepare import Grid, decode, encode, examples_of, images_of, prepare_pixels
from unrolled.data.prepared import kept, n_values, settings_of, used
from unrolled.decode.config import Decoding
from unrolled.decode.text import Begun
from unrolled.emissions.categorical import Categorical
from unrolled.objectives import metrics
from unrolled.pictures.kinds import Images
from unrolled.tasks import _next
from unrolled.tasks._sound_writing import written

ALIASES = ("pixels", "pixel-rnn")

CODEC = "pixels.json"
USED = {"split", "seed", "fraction", "held_out"}  # of the settings of data; the others are about text
LARGEST = 4096  # pixels a side of a saved run
PICTURED, KEPT = 4, 50  # images of the report, and of the saved predictions


class Config(config.Config):
    levels: int = Field(16, ge=2, le=256)
    """Levels of brightness to which pixels are rounded."""


class Task(_next.NextTask):
    FIGURES = ("bits_per_pixel", "nats")
    UNIT = "pixels"
    DEFAULT_MODEL = "tcn"
    OBEYS = {"generate": ("n", "sample", "temperature", "seed", "best_of")}

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.height = self.width = 0
        self.size_of = len(SPECIALS) + config.levels

    # ---- data

    def prepare(self, source: Any) -> None:
        plain = dict(type(self.data)())
        unused = [name for name, value in self.data if name not in USED and value != plain[name]]
        if unused:
            raise UsageError(f"{unused[0]} is a setting for text; next-pixel has {', '.join(sorted(USED))}")
        asked = {"task": type(self).__module__, "data": settings_of(self.data), "levels": self.config.levels}
        found = kept(source, asked, lambda: prepare_pixels(source, self.data, self.config.levels))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.height, self.width = found.told["height"], found.told["width"]

    def save_codec(self, directory: Path) -> None:
        told = {"height": self.height, "width": self.width}
        write_new(directory / CODEC, json.dumps(told).encode() + b"\n")

    def load_codec(self, directory: Path) -> None:
        try:
            told = read_json(directory / CODEC, within=directory)
            self.height, self.width = int(told["height"]), int(told["width"])
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise DataError(f"{directory / CODEC}: damaged, the size of images is not valid ({error})") from None
        if not (1 <= self.height <= LARGEST and 1 <= self.width <= LARGEST):
            raise DataError(f"{directory / CODEC}: invalid size of images: expected 1 to {LARGEST:,} pixels a side")

    def describe(self) -> dict[str, Any]:
        return {}

    def recall(self, facts: Mapping[str, Any]) -> None:
        pass

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "tokens", None, "pixels")

    def ports(self) -> Ports:
        return Ports(self.size_of, self.size_of, targets="pixels")

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        count = min(n, self.sections["train"].n_examples)
        return [{"height": self.height, "width": self.width, "split": "train"}] * count

    def size(self, split: str) -> int:
        return len(self.sections[split].values(TARGET))

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """Images of a file, a folder or an array; bare ones in a list are arrays [H, W] of brightness."""
        if isinstance(source, list | tuple):
            yield [task.Given(each, number=i, place=f"image {i}") for i, each in enumerate(source)]
            return
        found, *_ = images_of(source, self.config.levels, (self.height, self.width))
        yield [task.Given(self._shown(e.ids) / 255, number=i, place=f"image {i}") for i, e in enumerate(found)]

    def _shown(self, ids: Grid) -> Any:
        return decode(ids, self.config.levels, self.width)

    def _ids(self, image: Any, place: str) -> Grid:
        """Ids of an image [h, W] of brightness; h rows from the top."""
        pixels = as_numbers(image, place).astype(np.float64, copy=False)
        if pixels.ndim != 2 or pixels.shape[1] != self.width or len(pixels) > self.height:
            raise DataError(f"{place}: found shape {list(pixels.shape)}, expected [{self.height}, {self.width}]")
        if pixels.size and not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
            raise DataError(f"{place}: found values outside of 0 to 1, expected brightness; scale the image")
        return encode(pixels, self.config.levels)

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return example_batches(self.sections["train"], batching, self.form, carried, seed)

    @property
    def emission(self) -> Categorical:
        return Categorical(self.size_of, never=(EMPTY, UNKNOWN, START, STOP))

    def uses(self) -> list[task.Use]:
        return [
            task.Use("draw images", "generate", ("-n", "4", "-o", "NEW_FILE.png")),
            task.Use(
                "complete the upper half of an image", "generate", ("--prompt", "IMAGE.png", "-o", "NEW_FILE.png")
            ),
            task.Use("score each image of a folder", "score", ("NEW_DATA",)),
        ]

    def baselines(self) -> list[task.Baseline]:
        words = {1: "level frequencies", 2: "bigram", 3: "trigram"}
        counted = [task.Baseline(word, "ngram", {"order": order}) for order, word in words.items()]
        return [*counted, task.Baseline("left and upper pixel", "neighbours", {"width": self.width})]

    # ---- figures

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        found, *_ = images_of(source, self.config.levels, (self.height, self.width))
        section = examples_of([each.ids for each in found])
        return lambda model: self.measure(model, section, None)

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        return {}

    def figures(self, sums: _next.Sums, section: Examples, whole: bool) -> dict[str, float]:
        count = int(sums["tokens"])
        nats = metrics.mean(sums["nats"], count)
        return {"nats": nats, "bits_per_pixel": nats / math.log(2), "tokens": count}

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        some = self.sections[split].first(min(limit, KEPT)).fields[TARGET]
        images = [self._shown(ids) / 255 for ids in some]
        for number, line in enumerate(self.score(model, list(map(task.Given, images)))):
            yield {**line, "text": f"{split}, image {number}", "pixels": images[number].round(4).tolist()}

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        ids = self._ids(value, "the input")
        batch = collate(examples_of([ids]), np.arange(1), self.form)
        return batch, [f"{t // self.width},{t % self.width}" for t in range(batch.x.shape[1])]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return line["pixels"]

    def offered(self, value: Any) -> task.Offered:
        return task.Offered("image", value)

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-probability of each image, in order."""
        if not given:
            return
        section = examples_of([self._ids(each.value, each.place or f"image {i}") for i, each in enumerate(given)])
        nats, counts = self.row_nats(model, self.batches(model, section), len(given))
        for i, (total, n) in enumerate(zip(nats.tolist(), counts.tolist())):
            bits = total / math.log(2) / max(n, 1)
            yield {"text": f"image {i}", "logp": -total, "tokens": n, "bits_per_pixel": bits}

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        """The likeliest pixel behind the rows of each image; of a whole image there is none."""
        for i, each in enumerate(given):
            ids = self._ids(each.value, each.place or f"image {i}")
            begun = self._begin(model, ids[: self.height * self.width - 1])
            with evaluating(model):
                y = begun.step(begun.prompt, begun.state)[0][0, -1]
                p = self.emission.log_probabilities(y).exp()[len(SPECIALS) :]
            best = int(p.argmax())
            yield {"image": i, "next": best / (self.config.levels - 1), "p": float(p[best])}

    # ---- writing

    def _begin(self, model: Causal | Conditional, ids: Grid) -> Begun:
        with evaluating(model) as device:
            prompt = torch.from_numpy(np.concatenate([[START], ids]).astype(np.int64))[None].to(device)
        assert isinstance(model, Causal)
        return Begun(prompt, model, None)

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n images, the most probable first. A prompt is an image, of which the upper half is kept, or FILE:ROWS; of
        an array all rows are kept."""
        given = self._prompt(prompt.value)
        begun = self._begin(model, given)
        with evaluating(model):
            made = self.go_on(begun, decoding)
        return [{**each, "given": len(given) // self.width} for each in made]

    def _prompt(self, value: Any) -> Grid:
        if value is None or (isinstance(value, str) and not value):
            return np.empty(0, np.uint16)
        if not isinstance(value, str | Path):
            return self._ids(value, "the prompt")[: self.height * self.width - 1]
        name, colon, number = str(value).rpartition(":")
        name, rows = (name, int(number)) if colon and number.isdigit() else (str(value), self.height // 2)
        if not 0 < rows < self.height:
            raise UsageError(f"invalid prompt {value}: expected 1 to {self.height - 1} rows behind the colon")
        found, *_ = images_of(name, self.config.levels, (self.height, self.width))
        return found[0].ids[: rows * self.width]

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        behind = begun.prompt[0, 1:].cpu().numpy()
        left = self.height * self.width - len(behind)
        if left < 1:
            raise UsageError("the image is complete: there are no pixels left to generate")
        made = written(begun, decoding, left, self.emission)
        return [
            {"image": self._shown(np.concatenate([behind, np.array(each.tokens)])), "given": 0, "logp": each.log_p}
            for each in made
        ]

    def files_of(self, made: list[dict[str, Any]], out: str | Path) -> dict[Path, bytes]:
        """OUT.png, or OUT-0.png, OUT-1.png, ... the most probable first."""
        base = Path(out).with_suffix("") if Path(out).suffix.lower() == ".png" else Path(out)
        names = [f"{base.name}.png" if len(made) == 1 else f"{base.name}-{i}.png" for i in range(len(made))]
        return {base.with_name(name): bytes_of(each["image"]) for name, each in zip(names, made)}

    def pictures(self, model: Causal | Conditional, split: str) -> dict[str, Any]:
        """Images of the data, what the model makes of their upper halves, and what it generates from nothing."""
        half = self.height // 2 * self.width
        images = list(self.sections[split].first(PICTURED).fields[TARGET])
        shown, captions = [self._shown(each) for each in images], [f"{split} data"] * len(images)
        for given, caption in ((half, "upper half completed"), (0, "generated")):
            for number, ids in enumerate(images):
                begun = self._begin(model, ids[:given])
                with evaluating(model):
                    shown.append(self.go_on(begun, Decoding(seed=number))[0]["image"])
                captions.append(caption)
        title = f"Images of the {split} data, completed and generated"
        found = Images(title=title, alt=title, captions=captions, images=list(map(to_text, shown)), across=PICTURED)
        return {"images": found}

    def flow(self, model: Causal | Conditional, condition: str | None = None) -> Flow:
        """How probable each pixel was: a row is the brightness of one pixel."""
        self.require_next()
        begun = self._begin(model, np.empty(0, np.uint16))
        assert isinstance(begun.step, Causal)
        first = begun.prompt.cpu()
        return Flow(begun.step, self._pixel, self.told, self._line, first, first=first)

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"logp": float(self.emission.log_probabilities(y.double())[int(x)])}

    def _pixel(self, row: Any, place: str) -> Tensor:
        value = np.clip(np.atleast_2d(np.asarray(row, np.float64)), 0, 1)
        return torch.from_numpy(encode(value, self.config.levels).astype(np.int64))[None]

    def _line(self, line: str, place: str) -> Any:
        return as_number(line.strip(), place) if line.strip() else None
