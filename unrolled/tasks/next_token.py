"""Next token: predict the next token (or the one `ahead` steps on) of text, bytes or any other tokens.

    C = - sum_t log p(x_{t+tau} | x_1 .. x_t)            eq. (7.5), tau = ahead

A stream carries its state from chunk to chunk; lines and rows are separate examples from the initial state, between
<start> and <stop>; a class may start each of them (`condition`).
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.causal import Causal, Conditional, begin, decoder_of
from unrolled.core.errors import DataError, UsageError, nearest
from unrolled.core.flow import Flow
from unrolled.core.forward import carries, evaluated, evaluating, outputs
from unrolled.core.front import option
from unrolled.core.opening import shortened
from unrolled.core.spec import Asks, ConditionPorts, Ports
from unrolled.core.tokens import EMPTY, START, STOP, UNKNOWN
from unrolled.data.builtin_sets import known
from unrolled.data.codecs.text import Codec
from unrolled.data.collate import collate
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples, frequencies, ragged
from unrolled.data.files.joined_columns import number_columns
from unrolled.data.long_examples import example_batches
from unrolled.data.look import Look
from unrolled.data.prepare import prepare, prepare_all, prepare_whole
from unrolled.data.sampler import StreamRows, Windows, pooled_batches, stream_batches
from unrolled.data.sources.rows_beside import rows_in
from unrolled.data.sources.split_text import first_texts
from unrolled.data.sources.text_inputs import bound, read_inputs
from unrolled.decode.config import WRITTEN, Decoding
from unrolled.decode.text import Begun, Writer
from unrolled.emissions.categorical import Categorical
from unrolled.engine.stepper import stepped
from unrolled.objectives import metrics
from unrolled.pictures import kinds, predictions
from unrolled.tasks import _next
from unrolled.tasks._next import EVALUATION_ROWS, PIECE
from unrolled.tasks._number_condition import NumberCondition, in_vectors
from unrolled.tasks._told import OfText

ALIASES = ("lm", "language-model", "language-modelling", "language-modeling", "text-generation", "generate", "text")
EVALUATION_LENGTH, WARM_UP, SAMPLE_TEMPERATURE, SAMPLE_TOKENS = 256, 256, 0.8, 160
MOST_TOKENS, LIKELY = 300, 5  # that are written unless more are asked for; that are told of those that may follow
SHOWN = 256  # tokens of an example that a picture shows


class Config(config.Config):
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Label smoothing: share of the target given to the prior in training, eq. (8.3); metrics do not use it."""
    prior: Literal["uniform", "training"] = "uniform"
    """Prior of the label smoothing: uniform, or the token frequencies of the training data."""


class Task(_next.NextTask):
    FIGURES = ("nats", "bits_per_character", "bits_per_byte", "perplexity", "accuracy")
    OBEYS = {"predict": ("condition",), "score": ("condition",), "generate": ("condition", "stop", *WRITTEN)}

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec: Codec
        self.has_codec = False  # that of a saved run, or fitted before
        self.labels: list[str] | None = None
        self.numbers: NumberCondition | None = None  # a condition of numbers, which is no class
        self.column: str | None = None  # of a table, which training read
        self.is_stream = True
        self._prior: Tensor | None = None
        self._offered: Codec | None = None

    def prepare(self, source: Any) -> None:
        codec = self.codec if self.has_codec else None
        labels = None if number_columns(self.data.condition) else self.labels
        text = self.prepared = prepare(source, self.data, codec=codec, labels=labels, offered=self._offered)
        self.codec, self.has_codec = text.codecs["text"], True
        self.labels, self.column = text.told["labels"], text.told["column"]
        if names := number_columns(self.data.condition):
            self.numbers, self.prepared, self.labels = *in_vectors(text, names, self.numbers), []
        self.is_stream = text.sections["train"].is_stream
        if self.config.label_smoothing and self.config.prior == "training":
            self._prior = torch.from_numpy(frequencies(text.sections["train"].values(TARGET), self.codec.size))

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec, self.has_codec = Codec.load(directory), True

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        read = task.Vocabulary(self.codec, tuple(self.labels or ()))
        return {"decoder.embedding": read, "head": task.Vocabulary(self.codec)}

    def reuse(self, vocabularies: Mapping[str, task.Vocabulary]) -> None:
        found = vocabularies.get("decoder.embedding")
        self._offered = found.codec if found is not None and isinstance(found.codec, Codec) else None

    def describe(self) -> dict[str, Any]:
        known = {} if self.numbers is None else {"numbers": self.numbers.model_dump()}
        return {"labels": self.labels, "is_stream": self.is_stream, "column": self.column, **known}

    def recall(self, facts: Mapping[str, Any]) -> None:
        told = OfText.among(facts)
        self.labels, self.is_stream, self.column = told.labels, told.is_stream, told.column
        self.numbers = told.numbers

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "tokens", None, "tokens")

    def ports(self) -> Ports:
        condition = None if self.numbers is None else ConditionPorts(len(self.numbers.names))
        return Ports(self.codec.size, self.codec.size, len(self.labels or []), condition=condition)

    def columns(self) -> dict[str, str]:
        named: dict[str | None, str] = dict.fromkeys(number_columns(self.data.condition), "number")
        uses = {self.column: "text", **(named or {self.data.condition: "class"}), self.data.part: "split"}
        return {name: use for name, use in uses.items() if name is not None}

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_texts(source, self.data, self.codec, n)

    def size(self, split: str) -> int:
        section = self.sections[split]
        return len(section.values(TARGET)) + (0 if section.is_stream else section.n_examples)

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        return read_inputs(source, self.data, self.column)

    def typed(self, words: str) -> Any:
        return sys.stdin.read().removesuffix("\n") if words == "-" else words  # always a text, never a file

    def rows_in(self, path: Path) -> task.Rows | None:
        return rows_in(path)

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        train, ahead = self.sections["train"], self.data.ahead
        if not self.is_stream:
            return example_batches(train, batching, self.form, carried, seed)
        if not carried:
            return Windows(train, batching.batch_size, batching.length, ahead=ahead, seed=seed)
        return StreamRows(train, batching.batch_size, batching.length, back=batching.back, ahead=ahead, seed=seed)

    @property
    def _started(self) -> str | None:
        """A condition, where the run needs one."""
        return self.numbers.example() if self.numbers is not None else self.labels[0] if self.labels else None

    def uses(self) -> list[task.Use]:
        started = ("--condition", self._started) if self._started else ()
        each = {"score each line of a file": "score", "predict what follows each line": "predict"}
        made = task.Use("continue a text", "generate", ("--prompt", "TEXT", *started))
        return [made, *(task.Use(what, verb, ("NEW_DATA", *started)) for what, verb in each.items())]

    @property
    def emission(self) -> Categorical:
        never = (EMPTY, UNKNOWN, START, *([STOP] if self.is_stream else []))
        return Categorical(self.codec.size, smoothing=self.config.label_smoothing, prior=self._prior, never=never)

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        if given.get("condition") is not None:
            return task.Guess(0.9, "a condition was given")
        spec = known(look.builtin)
        if look.suffix == ".npz" or (spec is not None and spec.holds not in ("text", "rows")):
            return None
        return task.Guess(0.1, "text can always be continued")

    def baselines(self) -> list[task.Baseline]:
        words = {1: "unigram", 2: "bigram", 3: "trigram", 6: "6-gram"}
        return [task.Baseline(word, "ngram", {"order": order}) for order, word in words.items()]

    # ---- figures

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        data = bound(source, self.data, self.column)
        if self.numbers is not None:
            found = prepare_whole(source, data, self.codec, None)
            section = self.numbers.in_vectors(found.sections["all"], found.told["labels"])
        else:
            section = prepare_all(source, data, self.codec, self.labels)
        return lambda model: self.measure(model, section, None)

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        return {"right": int(metrics.accuracy(y, batch.y)[0])}

    def figures(self, sums: _next.Sums, section: Examples, whole: bool) -> dict[str, float]:
        """Nats per token; and, when the whole section is read, bits per character and byte."""
        total, count = float(sums["nats"]), int(sums["tokens"])
        if count == 0:
            raise DataError("there are no tokens to predict in this split: give more data")
        figures = {"nats": total / count, "perplexity": metrics.perplexity(total, count)}
        figures["accuracy"] = sums["right"] / count
        if whole:
            if section.is_stream:  # its first token is given, not predicted, but its characters are counted
                total *= len(section.values(TARGET)) / count
            figures["bits_per_character"] = metrics.bits_per_character(total, section.counts["characters"])
            figures["bits_per_byte"] = metrics.bits_per_byte(total, section.counts["bytes"])
            figures["unknown_share"] = section.counts["unknown"] / max(len(section.values(TARGET)), 1)
        return {**figures, "tokens": count}

    def batches(self, model: Causal | Conditional, section: Examples) -> Iterator[Batch]:
        if not section.is_stream:
            return super().batches(model, section)
        length, context, carried = EVALUATION_LENGTH, WARM_UP, carries(model)
        if not carried:  # windows that overlap by half
            length = min(length, decoder_of(model).max_length or length)
            context = length // 2
        return stream_batches(section, EVALUATION_ROWS, length, self.data.ahead, context=context, carried=carried)

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Examples, or pieces of a stream, in order, with their nats."""
        section = self.sections[split]
        if section.is_stream:
            tokens = section.values(TARGET)
            ends = np.minimum(np.arange(1, limit + 1) * PIECE, len(tokens))
            pieces = [tokens[a:b] for a, b in pairwise([0, *np.unique(ends)])]
        else:
            pieces = list(section.first(limit).fields[TARGET])
        texts, labels = [self.codec.decode(piece) for piece in pieces], self.labels
        classes = section.columns.get(SOURCE)
        started = (
            [labels[int(k)] for k in classes[: len(texts)]] if labels and classes is not None else [None] * len(texts)
        )
        if self.numbers is not None:
            started = [self.numbers.words(each) for each in section.first(limit).fields[SOURCE]]
        yield from self.score(model, list(map(task.Given, texts, started)))

    def score(self, model: Causal | Conditional, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Log-probability of each text, in order; <stop> counts where examples are separate."""
        for at in range(0, len(given), 1000):
            some = [each.value for each in given[at : at + 1000]]
            classes = self._class_ids([each.condition for each in given[at : at + 1000]])
            batches = pooled_batches(self._examples(some, classes), EVALUATION_ROWS, self.form)
            nats, counts = self.row_nats(model, map(self._without_ends, batches), len(some))
            for i, text in enumerate(some):
                total, count = float(nats[i]), int(counts[i])
                yield {"text": text, "logp": -total, "tokens": count, "nats_per_token": total / (count or 1)}

    def pictures(self, model: Causal | Conditional, split: str) -> dict[str, Any]:
        """Texts that the model writes, and a piece of the data coloured by how much it surprised the model."""
        label = self._started
        room = min(SAMPLE_TOKENS, (decoder_of(model).max_length or 2 * SAMPLE_TOKENS) // 2)
        asked = Decoding(n=2, temperature=SAMPLE_TEMPERATURE, max_tokens=room)
        texts = [one["text"] for one in self.generate(model, task.Given("", label), asked)]
        begun = f", {'class' if self.labels else 'condition'} {label}" if label else ""
        titles = [f"temperature {SAMPLE_TEMPERATURE}{begun}, the more probable of two", "the less probable"]
        samples = kinds.Texts(title="Generated text", captions=titles, texts=texts)
        return {"samples": samples, "surprise": self._surprise(model, split)}

    def _surprise(self, model: Causal | Conditional, split: str) -> kinds.Tokens:
        line = next(iter(self.predictions(model, split, 1)))
        batch, _ = self.example(self.input_of(line))
        each, y = next(outputs(model, [batch]))
        nats = self.emission.losses(y, each.y)[0, :SHOWN].tolist()
        ids = each.y[0, :SHOWN].tolist()
        pairs = [(token, value) for token, value in zip(ids, nats) if token != EMPTY]
        names = [self.codec.name(token) for token, _ in pairs]
        return predictions.surprise(names, [value for _, value in pairs], split)

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """A text as one row; the names are those of the tokens that are read."""
        section = self._examples([str(value)], None if self._started is None else self._class_ids([self._started]))
        batch = self._without_ends(collate(section, np.arange(1), self.form))
        return batch, [self.codec.name(int(token)) for token in batch.x[0]]

    def _examples(self, texts: Sequence[str], classes: np.ndarray | None) -> Examples:
        fields = {TARGET: ragged([self.codec.encode(text) for text in texts])}
        if classes is None or classes.ndim == 1:
            return Examples(fields, {} if classes is None else {SOURCE: classes})
        return Examples({**fields, SOURCE: ragged(list(classes))})

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return line["text"]

    def _without_ends(self, batch: Batch) -> Batch:
        """For a model of streams, which knows no <start> and <stop>, texts are read as if after the end of a line."""
        if not self.is_stream:
            return batch
        x = torch.where(batch.x == START, self._line_end(), batch.x)
        y = torch.where(batch.y == STOP, EMPTY, batch.y)
        return dataclasses.replace(batch, x=x, targets={TARGET: y})

    def _line_end(self) -> int:
        """What a stream is begun with: the end of a line, or whatever token there is."""
        ids = [int(token) for token in self.codec.encode("\n")]
        return ids[-1] if ids and ids[-1] != UNKNOWN else len(self.codec.specials)

    # ---- writing

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n texts that continue the prompt, the most probable first: sampled, best of more samples, or by beam."""
        with evaluating(model):
            return self.go_on(self.begun(model, prompt), decoding)

    def go_on(self, begun: Begun, decoding: Any) -> list[dict[str, Any]]:
        decoding = decoding.settled(samples=True, max_tokens=MOST_TOKENS)
        (found,) = self.writer(decoding.stop).write(begun._replace(step=stepped(begun.step)), decoding)
        return [{"text": e.text, "logp": e.logp, "tokens": e.tokens, "finished": e.finished} for e in found]

    def stream(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> Iterator[str]:
        """One text, piece by piece as it is written."""
        decoding = decoding.settled(samples=True, max_tokens=MOST_TOKENS)
        begun = self.begun(model, prompt)
        with evaluating(model):
            begun = begun._replace(step=stepped(begun.step))
        return evaluated(model, self.writer(decoding.stop).stream(begun, decoding))

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        """The most probable tokens after each text."""
        writer = self.writer(None)
        for each in given:
            with evaluating(model):
                likely = writer.likely(self.begun(model, each), LIKELY)
            yield {"text": each.value, "next": likely[0]["token"], "p": likely[0]["p"], "likely": likely}

    def flow(self, model: Causal | Conditional, condition: str | None = None) -> Flow:
        """How probable each token was; a text that is separate from others ends with <stop>."""
        self.require_next()
        begun = self.begun(model, task.Given("", condition))
        assert isinstance(begun.step, Causal)
        last = None if self.is_stream else torch.tensor([[STOP]])
        first = begun.prompt.cpu()
        return Flow(begun.step, self._piece, self.told, self._line, first, begun.state, first=first, last=last)

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"token": self.codec.name(int(x)), "logp": float(self.emission.log_probabilities(y)[int(x)])}

    def _piece(self, row: Any, place: str) -> Tensor:
        return torch.tensor([[int(token) for token in self.codec.encode(row)]], dtype=torch.long)  # [1, n]

    def _line(self, line: str, place: str) -> str | None:
        """A stream continues over the ends of lines, which are tokens of it; other texts end with an empty line."""
        return f"{line}\n" if self.is_stream else line or None

    def begun(self, model: Causal | Conditional, prompt: task.Given) -> Begun:
        ids = self._tokens(prompt.value)
        if not self.is_stream:
            ids = [START, *ids]
        elif not ids:
            ids = [self._line_end()]
        classes = self._class_ids([prompt.condition])
        source = None if classes is None else torch.from_numpy(classes)
        with evaluating(model) as device:
            decoder, state = begin(model, None if source is None else source.to(device))
        return Begun(torch.tensor([ids], device=device), decoder, state)

    def _tokens(self, prompt: Any) -> list[int]:
        """Those of a text, or a list of them as they are."""
        if not isinstance(prompt, list):
            return [int(token) for token in self.codec.encode(prompt)] if prompt else []
        for token in prompt:
            if not isinstance(token, int) or not len(self.codec.specials) <= token < self.codec.size:
                first, last = len(self.codec.specials), self.codec.size - 1
                raise UsageError(f"invalid token {shortened(token)} in the prompt: expected {first} to {last}")
        return list(prompt)

    def writer(self, stop: str | None) -> Writer:
        ids = [] if stop is None else [int(token) for token in self.codec.encode(stop)]
        if len(ids) > 1 or ids == [UNKNOWN]:
            raise UsageError(f"invalid value stop = {stop!r}: expected a single token that the run knows")
        return Writer(self.codec, [STOP, *ids], self.emission.never)

    def _class_ids(self, names: Sequence[str | None]) -> np.ndarray | None:
        """The numbers of classes [n], or vectors of numbers [n, 1, C]; they must be given exactly where the run was
        trained with them."""
        if self.numbers is not None:
            return np.stack([self.numbers.vector(name) for name in names])
        if all(name is None for name in names):
            if self.labels:
                raise UsageError(f"this run needs a class: give {option('condition')}, one of {', '.join(self.labels)}")
            return None
        if not self.labels:
            raise UsageError(f"this run was trained without {option('condition')}, so it takes no class")
        known = {name: i for i, name in enumerate(self.labels)}
        for name in names:
            if name not in known:
                raise UsageError(f"there is no class '{name}'; {nearest(str(name), known)}")
        return np.array([known[str(name)] for name in names], dtype=np.int64)
