"""Next token: text, bytes or any tokens in, the next one (or the one `ahead` steps on) out.

    C = - sum_t log p(x_{t+tau} | x_1 .. x_t)            eq. (7.5), tau = ahead

A stream carries its state from chunk to chunk; lines and rows are separate examples from the initial state, between
<start> and <stop>; a class may start each of them (`condition`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.errors import DataError, UsageError, nearest
from unrolled.core.state import State
from unrolled.data.batch import Batch, Examples, StreamRows, Windows, evaluation_batches, example_batches
from unrolled.data.codec import Codec
from unrolled.data.config import DataConfig
from unrolled.data.prepare import TextData, prepare, prepare_all
from unrolled.data.store import Section
from unrolled.objectives import losses, metrics

EVALUATION_ROWS, EVALUATION_LENGTH, WARM_UP = 32, 256, 256
PIECE = 256  # tokens of a stream per line of predictions.jsonl


class Config(config.Config):
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of the target given to the prior in training, eq. (8.3); figures never use it."""
    prior: Literal["uniform", "training"] = "uniform"
    """Where smoothing goes: to all tokens alike or by their frequency in the training data."""


class Task(task.Task):
    SCORE = "nats"
    ACCEPTS = ("causal",)

    data: DataConfig
    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.text: TextData | None = None
        self.codec: Codec
        self.labels: list[str] | None = None
        self.is_stream = True
        self._prior: Tensor | None = None

    # ---- data

    def prepare(self, source: Any) -> None:
        codec = getattr(self, "codec", None)
        self.text = prepare(source, self.data, codec=codec, labels=self.labels)
        self.codec, self.labels = self.text.codec, self.text.labels
        self.is_stream = self.text.sections["train"].is_stream
        if self.config.label_smoothing and self.config.prior == "training":
            self._prior = self._frequencies(self.text.sections["train"])

    def _frequencies(self, section: Section) -> Tensor:
        counts = np.zeros(self.codec.size, dtype=np.int64)
        for begin_at in range(0, len(section.tokens), 1 << 22):
            counts += np.bincount(section.tokens[begin_at : begin_at + (1 << 22)], minlength=self.codec.size)
        return torch.from_numpy((counts / counts.sum()).astype(np.float32))

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec = Codec.load(directory)

    def describe(self) -> dict[str, Any]:
        return {"labels": self.labels, "is_stream": self.is_stream}

    def recall(self, facts: Mapping[str, Any]) -> None:
        self.labels, self.is_stream = facts["labels"], facts["is_stream"]

    def ports(self) -> task.Ports:
        return task.Ports(self.codec.size, self.codec.size, len(self.labels or []))

    def facts(self) -> dict[str, Any]:
        return self._text().facts

    def splits(self) -> tuple[str, ...]:
        return tuple(self._text().sections)

    def _text(self) -> TextData:
        if self.text is None:
            raise UsageError("no data has been read yet: call prepare(source) first")
        return self.text

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        train, ahead = self._text().sections["train"], self.data.ahead
        if not self.is_stream:
            return Examples(train, batching.batch_size, ahead=ahead, seed=seed)
        if batching.windows == "random" or not carried:
            return Windows(train, batching.batch_size, batching.length, ahead=ahead, seed=seed)
        return StreamRows(train, batching.batch_size, batching.length, back=batching.back, ahead=ahead, seed=seed)

    def solve(self, model: Causal) -> None:
        model.solve(self._text().sections["train"], ahead=self.data.ahead)  # type: ignore[operator]

    def loss(self, y: Tensor, batch: task.Batch) -> tuple[Tensor, Tensor]:
        return losses.cross_entropy(y, batch.y, smoothing=self.config.label_smoothing, prior=self._prior)

    def baselines(self) -> list[task.Baseline]:
        words = {1: "unigram", 2: "bigram", 3: "trigram"}
        return [task.Baseline(word, "ngram", {"order": order}) for order, word in words.items()]

    # ---- figures

    def evaluate(self, model: Causal | Conditional, split: str, limit: int | None = None) -> dict[str, float]:
        return self.measure(model, self._text().sections[split], limit)

    def evaluate_source(self, model: Causal | Conditional, source: Any) -> dict[str, float]:
        """The figures on a whole other file, read with the saved codec."""
        return self.measure(model, prepare_all(source, self.data, self.codec, self.labels), None)

    def measure(self, model: Causal | Conditional, section: Section, limit: int | None) -> dict[str, float]:
        """Nats per token; and, when the whole section is read, bits per character and byte."""
        total, count, right = 0.0, 0, 0
        for y, batch in self._outputs(model, self._batches(model, section)):
            nats, n = losses.cross_entropy(y, batch.y)
            total, count = total + float(nats), count + int(n)
            right += int(metrics.accuracy(y, batch.y)[0])
            if limit is not None and count >= limit:
                break
        if count == 0:
            raise DataError("there is no token to predict in this part of the data: give more of it")
        figures = {"nats": total / count, "perplexity": metrics.perplexity(total, count), "accuracy": right / count}
        if limit is None:
            per_token = len(section.tokens) / count  # the first token of a stream is given, not predicted
            figures["bits_per_character"] = metrics.bits_per_character(total * per_token, section.n_chars)
            figures["bits_per_byte"] = metrics.bits_per_byte(total * per_token, section.n_bytes)
            figures["unknown_share"] = section.n_unknown / max(len(section.tokens), 1)
        return {**figures, "tokens": count}

    def _batches(self, model: Causal | Conditional, section: Section) -> Iterator[Batch]:
        if not section.is_stream:
            return example_batches(section, EVALUATION_ROWS, ahead=self.data.ahead)
        grows = begin_decoder(model).state_grows
        return evaluation_batches(
            section, EVALUATION_ROWS, EVALUATION_LENGTH, ahead=self.data.ahead, context=WARM_UP, carried=not grows
        )

    @torch.no_grad()
    def _outputs(self, model: Causal | Conditional, batches: Iterator[Batch]) -> Iterator[tuple[Tensor, Batch]]:
        """The model's outputs batch by batch, the state carried wherever a batch asks for it."""
        device = next(iter(model.parameters()), torch.zeros(0)).device
        was_training = model.training
        model.eval()
        state: State = None
        try:
            for batch in batches:
                batch = batch.to(str(device))
                decoder, fresh = begin(model, batch.source) if batch.fresh else (begin_decoder(model), state)
                y, state = decoder(batch.x, fresh)
                yield y, batch
        finally:
            model.train(was_training)

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Examples, or pieces of a stream, in order, with their nats."""
        section = self._text().sections[split]
        if section.is_stream:
            ends = np.minimum(np.arange(1, limit + 1) * PIECE, len(section.tokens))
            offsets = np.concatenate([[0], np.unique(ends)])
        else:
            offsets = section.offsets[: limit + 1]
        texts = [self.codec.decode(section.tokens[a:b]) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        yield from self.score(model, texts)

    def score(
        self, model: Causal | Conditional, texts: list[str], conditions: list[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Log-probability of each text, in order; <stop> counts where examples are separate."""
        for at in range(0, len(texts), 1000):
            some = texts[at : at + 1000]
            classes = None if conditions is None else self._class_ids(conditions[at : at + 1000])
            section = Section.of([self.codec.encode(text) for text in some], classes, is_stream=False)
            nats, counts = np.zeros(len(some)), np.zeros(len(some), dtype=np.int64)
            batches = example_batches(section, EVALUATION_ROWS, ahead=self.data.ahead, bare=self.is_stream)
            for y, batch in self._outputs(model, batches):
                each = losses.token_losses(y, batch.y)  # [B, T]
                nats[batch.rows] = each.sum(1).double().cpu().numpy()
                counts[batch.rows] = (batch.y != 0).sum(1).cpu().numpy()
            for text, total, n in zip(some, nats, counts, strict=True):
                yield {"text": text, "logp": -float(total), "tokens": int(n), "nats_per_token": total / max(n, 1)}

    def _class_ids(self, names: list[str]) -> np.ndarray:
        if not self.labels:
            raise UsageError("this run was trained without --condition, so no class can start it")
        known = {name: i for i, name in enumerate(self.labels)}
        for name in names:
            if name not in known:
                raise UsageError(f"there is no class '{name}'; {nearest(name, known)}")
        return np.array([known[name] for name in names], dtype=np.int64)


def begin_decoder(model: Causal | Conditional) -> Causal:
    return model.decoder if isinstance(model, Conditional) else model
