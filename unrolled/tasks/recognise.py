"""Recognise: transcribe a sound or pen strokes to text.

    attention    C = - sum_t log p(y_t | y_1 .. y_{t-1}, source)               the models that write for a source
    ctc          C = - log sum over alignments of prod_s q_s(pi_s)             the models that read, one answer a frame

Sound is read as frames of its log-mel spectrum, strokes as the ways of the pen. Error rates are edits of characters or
words per character or word of the text. Scores of the attention objective stand beside the most frequent text and that
of the nearest training example.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.errors import DataError
from unrolled.core.forward import outputs
from unrolled.core.metric import Metric
from unrolled.core.sharing import filled
from unrolled.core.spec import Asks, Ports
from unrolled.data.collate import FRAMES, Form
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.files.cell_values import NO_JSON, as_numbers, no_json
from unrolled.data.look import Look
from unrolled.data.pairs_prepare import Longest
from unrolled.data.readers.sound import features, read_clip
from unrolled.data.reading import RecognitionReading
from unrolled.data.sampler import bucketed_batches
from unrolled.data.sources.recognition import guess_recognition, open_recognition, sources_in
from unrolled.data.sources.strokes import as_strokes, strokes_of
from unrolled.data.sources.vector_pairs import VectorPairs
from unrolled.data.target_words import TargetWords
from unrolled.decode.config import Decoding
from unrolled.decode.text import Written
from unrolled.emissions.ctc import CTC
from unrolled.objectives import metrics
from unrolled.pictures import kinds
from unrolled.tasks import _frames, _sensed, _written
from unrolled.tasks._judged import CHARACTER_ERRORS, EXACT, WORD_ERRORS
from unrolled.tasks._writing import longest_source

ALIASES = ("recognize", "recognition", "asr", "speech", "speech-recognition", "ocr", "handwriting-recognition", "ctc")

STROKES = 3  # numbers of a way of the pen
MOST_NAMES, LEAST = 40, 0.05  # tokens of a picture of frames, and how probable they are somewhere


class Config(_written.Config):
    pairs: RecognitionReading = RecognitionReading()
    objective: Literal["attention", "ctc"] = "attention"
    """Training objective: write the text token by token with attention to the source, or predict at every frame and
    merge (CTC)."""


class Task(_sensed.SensedTask):
    SCORE: ClassVar[str] = "character_error_rate"
    FIGURES: ClassVar[tuple[str, ...]] = ("character_error_rate", "word_error_rate", "exact_match", "nats")
    JUDGED_BY: ClassVar[tuple[Metric, ...]] = (CHARACTER_ERRORS, WORD_ERRORS, EXACT)
    ACCEPTS: ClassVar[tuple[str, ...]] = ("conditional", "encoder", "causal")
    READING: ClassVar[type[RecognitionReading]] = RecognitionReading

    config: Config
    reading: RecognitionReading

    def __new__(cls, config: Config, data: DataConfig) -> Task:  # noqa: ARG004
        return super().__new__(ByFrames if config.objective == "ctc" else ByAttention)

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data, config.pairs)

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        return None if cls.is_for_others(given) else guess_recognition(look)

    def open(self, source: Any, reading: Any) -> VectorPairs:
        return open_recognition(source, reading)

    # ---- figures

    def judge_by(self, words: TargetWords) -> None:
        self.usual_score = WORD_ERRORS if self.data.tokens == "word" else CHARACTER_ERRORS

    def how_measured(self) -> dict[str, str]:
        return {}

    # ---- examples

    def vectors_of(self, value: Any, place: str) -> np.ndarray:
        """A file of sound, strokes of a pen as data has them, or the vectors themselves."""
        if isinstance(value, str | Path):
            samples, rate = read_clip(Path(value))
            return features(samples, rate, self.reading.sound)
        if self.source_codec.size == STROKES:
            return as_strokes(value, place)
        return as_numbers(value, place).astype(np.float32, copy=False)

    def shown_source(self, value: Any) -> Any:
        if isinstance(value, str | Path):
            return str(value)
        return f"{len(value)} {'strokes or points' if self.source_codec.size == STROKES else 'frames'}"

    def sources_of(self, source: Any) -> Iterator[Any]:
        return sources_in(source, self.reading)

    def is_nothing(self, value: Any) -> bool:
        return isinstance(value, str) and not value.strip()

    def line(self, line: str) -> Any:
        """The name of a clip, or strokes as JSON."""
        text = line.strip()
        if not text.startswith("["):
            return text
        try:
            return json.loads(text)
        except NO_JSON as error:
            raise DataError(f"'{text[:20]}…' is not a JSON list of strokes ({no_json(error)})") from None

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split]
        for i, line in enumerate(super().predictions(model, split, limit)):
            vectors = np.asarray(self.source_at(section, i), np.float64).round(5).tolist()
            yield {**line, "source": f"example {int(section.rows[i]) + 1} of the data", "vectors": vectors}

    def input_of(self, line: Mapping[str, Any]) -> Any:
        if not isinstance(line["vectors"], list):
            raise DataError("a saved prediction does not contain the source, and a file that it names is not opened")
        return {"source": line["vectors"], "target": line["target"]}

    def offered(self, value: Any) -> task.Offered:
        vectors = value["source"]
        return task.Offered("pen", strokes_of(vectors)) if self.source_codec.size == STROKES else task.offered(vectors)

    # ---- pictures

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        lines = list(self.predictions(model, split, _written.SHOWN))
        table = kinds.Table(
            title="Predictions", alt=f"Targets and predictions of the {split} data.",
            columns=["source", "target", "prediction"],
            rows=[[line["source"], line["target"], line["prediction"]] for line in lines],
        )  # fmt: skip
        asked = {"source": lines[0]["vectors"], "target": lines[0]["target"], "prediction": lines[0]["prediction"]}
        found = self.alignment_of(model, asked)
        return {"samples": table} | ({} if found is None else {"alignment": found})


class ByAttention(Task):
    """A model writes for the source token by token."""

    ACCEPTS: ClassVar[tuple[str, ...]] = ("conditional",)


class ByFrames(Task):
    """By CTC: a model answers at every frame, and what the frames say is merged to a text."""

    ACCEPTS: ClassVar[tuple[str, ...]] = ("encoder", "causal")
    DEFAULT_MODEL: ClassVar[str] = "lstm"
    OBEYS: ClassVar[Mapping[str, tuple[str, ...]]] = {"predict": ("n", "beam")}  # frames say one text
    FORM: ClassVar[Form] = FRAMES

    # ---- the model

    @property
    def emission(self) -> CTC:
        return CTC(self.codec.size)

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "each", "numbers")

    def ports(self) -> Ports:
        return Ports(0, self.codec.size, d_in=self.source_codec.size, answers="each")

    def baselines(self) -> list[task.Baseline]:
        return []

    def loss(self, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.emission.loss(y, batch.y, _frames.mask_of(y, batch))

    def look_at_training(self, model: Any) -> None:
        super().look_at_training(model)
        for part, section in self.sections.items():
            _frames.check_frames(section, part)

    def check_lengths(self, model: Any, found: Longest, where: str = "") -> None:
        most = longest_source(model)
        if most is not None and found.source > most:
            raise DataError(
                f"{found.source_place}{where}: {found.source} frames, but this model reads at most {most}; "
                f"{_written.shorten()}"
            )

    # ---- figures

    def measure_tokens(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        nats, counts = self.nats_of(model, section)
        if ledger is not None:
            ledger.put("nats", torch.arange(section.n_examples), torch.stack([nats, counts], 1))
        per_token = metrics.nats_per_token(float(nats.sum()), int(counts.sum()))
        return {"nats": per_token, "tokens": int(counts.sum())}

    def nats_of(self, model: Any, section: Examples) -> tuple[Tensor, Tensor]:
        nats, counts = torch.zeros(section.n_examples).double(), torch.from_numpy(section.lengths(TARGET)).double()
        for batch, y in outputs(model, bucketed_batches(section, _written.EVALUATION_TOKENS, self.FORM)):
            found = self.emission.losses(y, batch.y, _frames.mask_of(y, batch))  # [B, 1]
            nats[cast(Tensor, batch.rows).cpu()] = found[:, 0].double().cpu()
        return filled(nats), counts

    # ---- writing

    def most_tokens(self, model: Any) -> int:
        return self.longest_target + _written.ROOM

    def settled(self, model: Any, asked: Decoding) -> Decoding:
        return asked.settled(samples=False, max_tokens=self.most_tokens(model))

    def write(
        self,
        model: Any,
        section: Examples,
        decoding: Decoding | None = None,
        numbers: Tensor | None = None,
    ) -> list[list[Written]]:
        decoding = decoding or Decoding()
        found: list[list[Written]] = [[] for _ in range(section.n_examples)]
        for batch, y in outputs(model, bucketed_batches(section, _written.EVALUATION_TOKENS, self.FORM)):
            texts = self.emission.decode(y, _frames.mask_of(y, batch), decoding)
            for row, candidates in zip(cast(Tensor, batch.rows).tolist(), texts):
                found[row] = [
                    Written(self.text_of(each.tokens), each.log_p, len(each.tokens), True, each.score)
                    for each in candidates
                ]
        return found

    # ---- examples

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        frames = self.row_of(value)
        return frames, [str(s) for s in range(frames.x.shape[1])]

    def explained(self, y: Tensor, at: int) -> task.Explained:
        """The token that a frame says by its log p."""
        best, log_p = int(y[0, at].argmax()), self.emission.log_probabilities
        return task.Explained(self.codec.name(best), "log p", "nats", lambda y: log_p(y[:, at])[:, best])

    def alignment_of(self, model: Any, line: Mapping[str, Any]) -> kinds.Heatmap:
        """The probability of each token at each frame, of those that are likely anywhere."""
        batch, _ = self.example(line)
        _, y = next(outputs(model, [batch]))
        p = self.emission.log_probabilities(y[0]).exp().cpu()  # [S, V]
        highest = p.amax(0)  # [V]
        likely = [token for token in range(len(highest)) if highest[token] > LEAST][:MOST_NAMES]
        names = ["(blank)" if token == 0 else self.codec.name(token) for token in likely]
        return kinds.Heatmap(
            title="Token probabilities by frame", alt="Each row shows the probability of one token at every frame.",
            values=p[:, likely].T.round(decimals=5).tolist(), rows=names, x_label="frame", y_label="token", low=0.0,
            high=1.0,
        )  # fmt: skip
