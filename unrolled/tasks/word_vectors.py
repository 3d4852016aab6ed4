"""Word vectors: learn a vector for each word of a text such that words used alike are near each other.

    C = - sum over inputs X of each word y:  log sigma(s_y) + sum_{j=1..k} log sigma(-s_j),   s = scores from X, j drawn

The loss on held-out text is the average over all its inputs, with words that are drawn once for all models and epochs,
so that losses can be compared. `related` is how often two words that held-out text uses together have a larger cosine
than one of them and a random other word (area under the ROC curve).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core import config, task
from unrolled.core.batch import Batch
from unrolled.core.errors import DataError, UsageError
from unrolled.core.forward import evaluating
from unrolled.core.front import option
from unrolled.core.outline import Outline
from unrolled.core.spec import Asks, Ports
from unrolled.core.tokens import EMPTY, SPECIALS
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.config import DataConfig
from unrolled.data.contexts import ContextBatches, Contexts, Drawn, Method, Text
from unrolled.data.look import Look
from unrolled.data.plain_words import Case, PlainWords, cut, read, read_all
from unrolled.data.sources.split_text import first_texts
from unrolled.data.sources.text_inputs import bound, read_inputs
from unrolled.data.word_vectors import WordVectors
from unrolled.emissions.categorical import Categorical
from unrolled.layers.parts.context_words import ContextWords
from unrolled.objectives.related import area, related_pairs
from unrolled.pictures import kinds
from unrolled.tasks._told import OfWords

ALIASES = ("embeddings", "word-embeddings", "vectors", "word2vec", "skip-gram", "cbow", "glove")
PIECE, UNIT = 4096, 256  # words that are evaluated together; that are one unit of intervals
HELD_OUT = 0  # the seed of what is drawn in held-out text
SHOWN, NEAR, LIKELY = 12, 6, 5  # words of the picture and their neighbours; words that are told


class Config(config.Config):
    method: Method = "skip-gram"
    """What a word is predicted from: each word of its context alone (skip-gram), or the mean of all (cbow)."""
    window: int = Field(5, ge=1, le=100)
    """Number of words before and behind a word that its context has at most; the number is drawn anew each time."""
    negatives: int = Field(5, ge=1, le=100)
    """Number of words drawn for each word, which a model learns to tell it from (negative sampling)."""
    subsample: float = Field(1e-3, ge=0, le=1)
    """Words that are a larger share of the text than this are left out at random, more often the more frequent they
    are; 0: none."""
    power: float = Field(0.75, ge=0, le=1)
    """Exponent of the word counts by which words are drawn: 1 as often as they occur, 0 all alike."""
    min_count: int = Field(5, ge=1)
    """Words that occur less often in the training text are left out."""
    case: Case = "lower"
    """Whether words are read in lower case, or as they are written (keep)."""


class Task(task.Task):
    SCORE = "loss"
    FIGURES = ("loss", "accuracy", "related")
    ACCEPTS = ("encoder",)
    DEFAULT_MODEL = "word2vec"
    FOR_KIND = {"encoder": {"vocabulary": 20_000, "epochs": 10}}
    UNIT = "words"
    TYPED = True
    LOOKS = "epoch"
    MIXES = False

    config: Config
    data: DataConfig

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        if data.tokens not in ("char", "word"):  # the first is what is not given
            raise UsageError(f"word vectors are vectors of words; leave out {option('tokens', data.tokens)}")
        self.codec: WordListCodec
        self._loaded = False
        self.column: str | None = None
        self._found: PlainWords | None = None
        self._contexts: Contexts | None = None

    # ---- data

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:  # noqa: ARG003
        return None  # text may always be meant for next-token: it must be named

    def prepare(self, source: Any) -> None:
        own = self.config
        found = self._found = read(source, self.data, own.case, own.min_count, self.codec if self._loaded else None)
        self.codec, self._loaded, self.column = found.codec, True, found.prepared.told["column"]
        self._contexts = Contexts(found.counts, own.window, own.negatives, own.subsample, own.power, own.method)

    @property
    def found(self) -> PlainWords:
        if self._found is None:
            raise UsageError("no data has been read yet: call prepare(source) first")
        return self._found

    @property
    def contexts(self) -> Contexts:
        if self._contexts is None:
            raise UsageError("no data has been read yet: call prepare(source) first")
        return self._contexts

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec, self._loaded = WordListCodec.load(directory), True

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        return {"encoder.embedding": task.Vocabulary(self.codec), "head": task.Vocabulary(self.codec)}

    def describe(self) -> dict[str, Any]:
        return {"column": self.column}

    def recall(self, facts: Mapping[str, Any]) -> None:
        self.column = OfWords.among(facts).column

    def facts(self) -> dict[str, Any]:
        prepared, found = self.found.prepared, self.found
        sizes = {split: {"tokens": len(text.words)} for split, text in found.texts.items()}
        words = {"tokens_are": "words", "vocabulary": found.codec.size, "split": sizes}
        return {**prepared.facts, **words, "fingerprint": prepared.fingerprint}

    def columns(self) -> dict[str, str]:
        uses = {self.column: "text", self.data.part: "split"}
        return {name: use for name, use in uses.items() if name is not None}

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_texts(source, self.data, self.found.prepared.codecs["text"], n)

    def size(self, split: str) -> int:
        return len(self.found.texts[split].words)

    def splits(self) -> tuple[str, ...]:
        return tuple(self.found.texts)

    def outline(self) -> Outline:
        return Outline()

    # ---- the model

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "context", "tokens", None, "context")

    def ports(self) -> Ports:
        return Ports(self.codec.size, self.codec.size, answers="context", targets="context")

    @property
    def emission(self) -> Categorical:
        return Categorical(self.codec.size, never=tuple(range(len(SPECIALS))))

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return ContextBatches(self.contexts, self.found.texts["train"], batching.batch_size * batching.length, seed)

    def look_at_training(self, model: Any) -> None:
        if isinstance(model, ContextWords):
            model.base.copy_(torch.from_numpy(self.contexts.log_noise()))

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        text = self.found.texts["train"]
        n = len(text.words) if limit is None else min(limit, len(text.words))
        pieces = self._pieces(Text(text.words[:n], text.lines[:n]))
        first = next(pieces, None)
        pieces = self._pieces(text) if first is None else chain([first], pieces)  # of few words none may be drawn
        return task.Fitted(task.share_of(len(text.words), limit), model.solve(map(self._known, pieces)) or {})

    def _known(self, drawn: Drawn) -> tuple[Tensor, Tensor, Tensor]:
        """Contexts [N, S], their mask, and the words in them [N]."""
        x = torch.from_numpy(drawn.x).flatten(1).long()
        return x, x != EMPTY, torch.from_numpy(drawn.y[:, 0]).long()

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("unigram", "prior", {}), task.Baseline("counts (PPMI, SVD)", "ppmi", {})]

    # ---- metrics

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        return self._measure(model, self.found.texts[split], limit, ledger)

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        text = read_all(source, bound(source, self.data, self.column), self.config.case, self.codec)
        return lambda model: self._measure(model, text, None, None)

    def _pieces(self, text: Text) -> Iterator[Drawn]:
        """What is drawn from a text that is not trained on, always the same."""
        for first in range(0, len(text.words), PIECE):
            drawn = self.contexts.draw(text, first, min(first + PIECE, len(text.words)), HELD_OUT, 0)
            if len(drawn.y):
                yield drawn

    def _measure(self, model: Any, text: Text, limit: int | None, ledger: task.Ledger | None) -> dict[str, float]:
        total, right, count, words = 0.0, 0, 0, 0
        for drawn in self._pieces(text):
            nats, best, mask = self._losses(model, drawn)
            total, right, count = total + float(nats.sum()), right + int(best.sum()), count + int(mask.sum())
            words += PIECE
            if ledger is not None:
                units = torch.from_numpy(drawn.places // UNIT)[:, None].expand(mask.shape)
                ledger.add(units, nats, mask, f"chunks of {UNIT} words")
            if limit is not None and words >= limit:
                break
        if not count:
            raise DataError("there are no words with a context in this split: give more text")
        figures = {"loss": total / count, "accuracy": right / count}
        if limit is None and isinstance(model, ContextWords):
            pairs = related_pairs(text.words, text.lines, self.config.window, len(SPECIALS))
            figures |= {} if pairs is None else {"related": area(self.word_vectors(model).units, pairs, len(SPECIALS))}
        return {**figures, "tokens": min(words, len(text.words))}

    def _losses(self, model: Any, drawn: Drawn) -> tuple[Tensor, Tensor, Tensor]:
        """[N, I] the loss of each input, whether the word itself has the largest score, and which inputs are real."""
        x, y = torch.from_numpy(drawn.x).long(), torch.from_numpy(drawn.y).long()
        mask = x != EMPTY  # [N, I, S]
        with evaluating(model) as device:
            x, y, mask = x.to(device), y.to(device), mask.to(device)
            log_noise = torch.from_numpy(self.contexts.log_noise()).to(device)
            s = self._logits(model, x, mask, y) - log_noise[y][:, None]  # [N, I, 1 + k]
            real = (y != EMPTY)[:, None]  # [N, 1, 1 + k]
            sign = torch.ones(y.shape[1], device=device)
            sign[0] = -1
            nats = torch.where(real, F.softplus(sign * s), 0.0).double().sum(2)
            best = (s[..., :1] > torch.where(real, s, -torch.inf)[..., 1:]).all(2)
            there = mask.any(2)
        return torch.where(there, nats, 0.0).cpu(), (best & there).cpu(), there.cpu()

    def _logits(self, model: Any, x: Tensor, mask: Tensor, y: Tensor) -> Tensor:
        if isinstance(model, ContextWords):
            return model.among(x, mask, y)
        whole = model(x.flatten(0, 1), mask.flatten(0, 1))[0][:, 0]  # [N I, V]
        chosen = y[:, None].expand(-1, x.shape[1], -1).flatten(0, 1)  # [N I, 1 + k]
        return whole.gather(1, chosen).view(*x.shape[:2], -1)

    # ---- verbs

    def word_vectors(self, model: Any) -> WordVectors:
        if not isinstance(model, ContextWords):
            raise UsageError("this model has no word vectors; those of word2vec and ppmi have")
        table = model.embedding.weight.detach().cpu().numpy()
        return WordVectors(self.codec.words, table[len(SPECIALS) :])

    def uses(self) -> list[task.Use]:
        a, b, c = (self._shown_words() * 3)[:3]
        near, alike = task.Use("words near a word", "neighbours", (a,)), "how similar two words are"
        which = task.Use("a is to b as c is to which word", "analogy", (a, b, c))
        return [
            near,
            task.Use(alike, "similarity", (a, b)),
            which,
            task.Use("words that fit", "predict", ("NEW_DATA",)),
        ]

    def _shown_words(self) -> list[str]:
        """Frequent words that are not very short, if there are such."""
        words = self.codec.words if self._loaded else ["WORD"]
        return [word for word in words if len(word) > 3][:SHOWN] or words[:SHOWN]

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        return read_inputs(source, self.data, self.column)

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """The words that fit best among those of each text."""
        for each in given:
            batch, _ = self.example(each.value)
            yield {"text": each.value, **self._likely(model, batch)[0]}

    def _likely(self, model: Any, batch: Batch) -> list[dict[str, Any]]:
        with evaluating(model) as device:
            y, _ = model(batch.x.to(device), batch.mask.to(device))  # type: ignore[union-attr]
            log_p = self.emission.log_probabilities(y[:, 0]).cpu()  # [n, V]
        log_p[:, : len(SPECIALS)] = -torch.inf
        best = log_p.topk(min(LIKELY, self.codec.size - len(SPECIALS)), dim=1)
        found = []
        for values, words in zip(best.values.exp().tolist(), best.indices.tolist()):
            likely = [{"word": self.codec.name(word), "p": p} for word, p in zip(words, values)]
            found.append({"prediction": likely[0]["word"], "p": likely[0]["p"], "likely": likely})
        return found

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        drawn = next(self._pieces(self.found.texts[split]))
        some = Drawn(drawn.x[:limit], drawn.y[:limit], drawn.places[:limit])
        nats, _, there = self._losses(model, some)
        x, mask, y = self._known(some)
        likely = self._likely(model, Batch(x, mask))
        for row in range(len(y)):
            words = [self.codec.name(int(word)) for word in x[row][mask[row]]]
            loss = float(nats[row].sum()) / max(int(there[row].sum()), 1)
            target = self.codec.name(int(y[row]))
            yield {"input": " ".join(words), "target": target, "loss": loss, **likely[row]}

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        """Frequent words and their neighbours."""
        if not isinstance(model, ContextWords):
            return {}
        vectors = self.word_vectors(model)
        rows: list[list[Any]] = []
        for word in self._shown_words():
            near = vectors.neighbours(word, NEAR)
            rows.append([word, ", ".join(f"{each['word']} ({each['cosine']:.2f})" for each in near)])
        return {
            "neighbours": kinds.Table(
                title="Nearest words", alt="Frequent words and the words nearest to them (cosine).",
                columns=["word", "nearest (cosine)"], rows=rows,
            )
        }  # fmt: skip

    # ---- looking inside

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        words = [word for word in cut(str(value), self.config.case) if word in self._known_words()]
        if not words:
            raise DataError("none of the words of this text is known to the run; give some that are")
        x = torch.from_numpy(self.codec.encode(words))[None]  # [1, S]
        return Batch(x, torch.ones_like(x, dtype=torch.bool)), words

    def _known_words(self) -> set[str]:
        return set(self.codec.words)

    def explained(self, y: Tensor, at: int) -> task.Explained:
        word = int(y[0, 0, len(SPECIALS) :].argmax()) + len(SPECIALS)
        return task.Explained(
            self.codec.name(word), "log p", "nats", lambda y: self.emission.log_probabilities(y)[:, 0, word].to(y)
        )

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return line["input"]
