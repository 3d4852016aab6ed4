"""Caption: write a text that describes an image.

    C = - sum_t log p(y_t | y_1 .. y_{t-1}, image)

An image is read as the sequence of its rows [H, W C]; the encoder `cnn` makes regions of it that a decoder attends to.
Every score stands beside the most frequent caption and the caption of the most similar training image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from unrolled.core import task
from unrolled.core.causal import Conditional
from unrolled.core.errors import DataError
from unrolled.core.forward import evaluating, start
from unrolled.core.front import option
from unrolled.core.trace import trace
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import as_numbers
from unrolled.data.files.data_uri import HEAD, from_text, to_text
from unrolled.data.files.pixels import Pixels, coloured, fitted, read_image
from unrolled.data.look import Look
from unrolled.data.reading import CaptionReading
from unrolled.data.sources.captions import as_rows, guess_captions, open_captions, pictures_in
from unrolled.data.sources.vector_pairs import VectorPairs
from unrolled.pictures import alignment, kinds
from unrolled.pictures.images import heated
from unrolled.tasks import _sensed, _written

ALIASES = ("captioning", "image-to-text")

LOOKS = 14  # words whose looks are shown
SIDE = 512  # pixels of an image that is shown


class Config(_written.Config):
    pairs: CaptionReading = CaptionReading()


class Task(_sensed.SensedTask):
    READING: ClassVar[type[CaptionReading]] = CaptionReading
    DEFAULT_MODEL: ClassVar[str] = "encdec"
    ADVICE: ClassVar[Mapping[str, Mapping[str, Any]]] = {"encdec": {"encoder": "cnn"}}

    config: Config
    reading: CaptionReading

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data, config.pairs)

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        return None if cls.is_for_others(given) else guess_captions(look)

    def open(self, source: Any, reading: Any) -> VectorPairs:
        return open_captions(source, reading)

    # ---- images

    def vectors_of(self, value: Any, place: str) -> np.ndarray:
        """An image file, a data URI, bytes [H, W, 3] or [H, W], or rows of brightness [H, W C]."""
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f":
            return value
        if isinstance(value, str) and value.startswith(HEAD):
            pixels = from_text(value, place)
        elif isinstance(value, str | Path):
            pixels = read_image(Path(value), self.reading.grey)
        else:
            pixels = as_numbers(value, place)
            if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
                raise DataError(f"{place}: expected the name of an image file, or bytes [height, width, 3]")
        pixels = fitted(coloured(pixels, self.reading.grey), self.reading.size)
        wide, wanted = pixels.shape[1], self.source_codec.size // (1 if self.reading.grey else 3)
        if wide != wanted:
            raise DataError(
                f"{place}: the image is {wide} pixels wide, but this run reads {wanted}; resize it, or train "
                f"with {option('size', 32)} or so, which resizes every image"
            )
        return as_rows(pixels)

    def pixels_of(self, rows: np.ndarray) -> np.ndarray:
        """Rows of brightness [H, W C] as bytes [H, W, 3] or [H, W]."""
        pixels = (255 * np.asarray(rows, np.float64)).round().clip(0, 255).astype(np.uint8)
        return pixels if self.reading.grey else pixels.reshape(len(pixels), -1, 3)

    def shown_source(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(HEAD):
            return "an image"
        return str(value) if isinstance(value, str | Path) else f"an image of {len(value)} rows"

    def sources_of(self, source: Any) -> Iterator[Any]:
        return pictures_in(source, self.reading)

    def is_nothing(self, value: Any) -> bool:
        return isinstance(value, str) and not value.strip()

    def predictions(self, model: Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split]
        for i, line in enumerate(super().predictions(model, split, limit)):
            image = to_text(self.pixels_of(self.source_at(section, i)))
            yield {**line, "source": f"image {int(section.rows[i]) + 1} of the data", "image": image}

    def input_of(self, line: Mapping[str, Any]) -> Any:
        if not isinstance(line["image"], str) or not line["image"].startswith(HEAD):
            raise DataError("a saved prediction does not contain the image, and a file that it names is not opened")
        return {"source": line["image"], "target": line["target"]}

    def offered(self, value: Any) -> task.Offered:
        return task.Offered("image", value["source"])

    # ---- pictures

    def pictures(self, model: Conditional, split: str) -> dict[str, Any]:
        """Images with what was written, and where the model looked for each word of the first."""
        lines = list(self.predictions(model, split, _written.SHOWN))
        images = [from_text(line["image"], "an image") for line in lines]
        said = [
            line["prediction"] if line["right"] else f"{line['prediction']} [{line['target']}]"
            for line in lines
        ]  # fmt: skip
        found = {
            "samples": kinds.Images(
                title="Predictions", captions=said, images=[to_text(_small(image)) for image in images],
                alt=f"Images of the {split} data with predicted captions; where one is wrong, the target follows in "
        "brackets.",
            )
        }  # fmt: skip
        looks = self.looks(model, lines[0])
        return found | ({} if looks is None else {"looks": looks})

    def looks(self, model: Conditional, line: Mapping[str, Any]) -> kinds.Images | kinds.Heatmap | None:
        """Attention weights for each word: over the image, or over its rows; None: it does not look."""
        batch, _ = self.example({"source": line["image"], "target": line["prediction"] or line["target"]})
        with evaluating(model) as device, trace() as seen:
            batch = batch.to(device)
            decoder, state = start(model, batch)
            before = len(seen["attention"])
            decoder(batch.x, state)
        assert batch.source is not None
        grid = seen["grid"][-1] if seen["grid"] else None
        n = batch.source.shape[1] if grid is None else grid[0] * grid[1]
        weights = alignment.of_source([each[0] for each in seen["attention"][before:]], n)
        if not weights:
            return None
        alpha: Tensor = weights[-1].mean(0)  # [T, S']
        names = [self.codec.name(token) for token in batch.x[0, 1:].tolist()]
        if grid is None:
            return alignment.picture(alpha[:-1], names, self.source_names(batch.source[0]))
        image = _small(from_text(line["image"], "an image"))
        image = image if image.ndim == 3 else image[:, :, None].repeat(3, axis=2)
        heats = alpha[:-1].view(-1, *grid).double().cpu().numpy()[:LOOKS]  # [T, H', W']
        return kinds.Images(
            title="Attention weights for each word", captions=names[:LOOKS],
            alt="The image once for each predicted word, dark where the attention weights are small.",
            images=[to_text(heated(image, heat)) for heat in heats],
        )  # fmt: skip


def _small(image: Pixels) -> Pixels:
    """An image [H, W] or [H, W, 3] as it is drawn: every k-th pixel, so that no side has more than SIDE."""
    k = -(-max(image.shape[:2]) // SIDE)
    return image[::k, ::k]
