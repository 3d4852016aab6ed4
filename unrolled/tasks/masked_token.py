"""Masked token: predict hidden tokens of a text from both sides, and whether one segment follows another (BERT).

    C = - 1/N sum_t log p(w_t | x)  -  w 1/M sum_n log p(follows_n | x_n)          over the N hidden positions, M rows

A row is <class> a <separator> b <separator>; see data/masking.py. What is hidden is drawn anew in every epoch.
Devlin et al. (2019). Models that are trained so are a start for others: `--from`.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.batch import Batch
from unrolled.core.errors import DataError
from unrolled.core.forward import outputs
from unrolled.core.opening import exists
from unrolled.core.sharing import totals
from unrolled.core.spec import Asks, Ports
from unrolled.core.tokens import BREAKS, EMPTY, GAPS, MASK, NO_ANSWER
from unrolled.data.codecs.text import Codec
from unrolled.data.config import DataConfig
from unrolled.data.documents import all_rows, documents_in, open_documents, prepare_documents, require_others
from unrolled.data.examples import INPUT, Examples
from unrolled.data.files.cell_values import shown
from unrolled.data.labelled_prepare import spaced, unspaced
from unrolled.data.masking import NEXT, MaskedRows, Masking, Row, batch_of, measured_batches
from unrolled.data.prepared import kept, settings_of, used
from unrolled.data.sources.rows_beside import rows_in
from unrolled.data.sources.split_text import first_texts
from unrolled.data.sources.text_inputs import bound, read_inputs
from unrolled.emissions.categorical import Categorical
from unrolled.objectives import metrics
from unrolled.pictures import kinds
from unrolled.tasks._prepared import PreparedTask
from unrolled.tasks._told import OfText

ALIASES = (
    "mlm",
    "masked-language-model",
    "masked-language-modelling",
    "fill-mask",
    "cloze",
    "pre-train",
    "pre-training",
)
EVALUATION_ROWS, LIKELY, SHOWN = 32, 5, 3
GAP, BREAK = GAPS[-1], re.compile("|".join(map(re.escape, BREAKS)))


class Config(config.Config):
    row_length: int = Field(128, ge=8, le=100_000)
    """Maximum number of tokens in a row, special ones included; documents are cut into rows of whole sentences."""
    masked: float = Field(0.15, gt=0, lt=1)
    """Share of the tokens that is predicted: 80 % of them are shown as <mask>, 10 % as another token, 10 % as they
    are."""
    whole_words: bool = False
    """Hide whole words, for tokens that are parts of words."""
    next_sentence: float = Field(1.0, ge=0, le=100)
    """Weight of next-sentence prediction in the loss: whether the second segment of a row follows the first; 0: rows
    have one segment."""


class Task(PreparedTask):
    SCORE = "nats"
    FIGURES = ("nats", "masked_accuracy", "masked_perplexity", "next_sentence_accuracy")
    ACCEPTS = ("encoder", "causal")
    ADVICE = {"bert": {"tied": True}}
    DEFAULT_MODEL = "bert"
    OBEYS = {"predict": ("n",)}
    TYPED = True

    config: Config
    data: DataConfig

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec: Codec
        self.has_codec = False
        self.column: str | None = None
        self._offered: Codec | None = None

    # ---- data

    def prepare(self, source: Any) -> None:
        codec = self.codec if self.has_codec else None
        found = kept(source, self._asked(), lambda: prepare_documents(
            source, self.data, self._room, codec, self._offered))  # fmt: skip
        sections = used(found.sections, self.data, lambda section: len(section.values(INPUT)))
        self.prepared = replace(found, sections=sections)
        self.codec, self.has_codec, self.column = found.codecs["text"], True, found.told["column"]
        if self.config.next_sentence:
            for part, section in sections.items():
                require_others(section, part, str(found.facts["source"]))

    @property
    def _room(self) -> int:
        """Tokens of the data that fit into a row."""
        return self.config.row_length - (3 if self.config.next_sentence else 2)

    def _asked(self) -> dict[str, Any]:
        codecs = [each for each in (self.codec if self.has_codec else None, self._offered) if each is not None]
        return {
            "task": type(self).__module__, "data": settings_of(self.data), "room": self._room,
            "loaded": self.has_codec, "codecs": [codec.to_json() for codec in codecs],
        }  # fmt: skip

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec, self.has_codec = Codec.load(directory), True
        if self.codec.special(MASK) is None:
            raise DataError(f"{directory}: the tokenizer has no {MASK}, which this task needs; restore the file")

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        return {"encoder.embedding": task.Vocabulary(self.codec), "head": task.Vocabulary(self.codec)}

    def reuse(self, vocabularies: Mapping[str, task.Vocabulary]) -> None:
        found = vocabularies.get("encoder.embedding")
        self._offered = found.codec if found is not None and isinstance(found.codec, Codec) else None

    def describe(self) -> dict[str, Any]:
        return {"labels": None, "is_stream": False, "column": self.column}

    def recall(self, facts: Mapping[str, Any]) -> None:
        self.column = OfText.among(facts).column

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "each", "tokens", None, "tokens", spelt=True)

    def ports(self) -> Ports:
        outputs = self.codec.size + (2 if self.config.next_sentence else 0)
        return Ports(self.codec.size, outputs, answers="each", segments=2)

    def columns(self) -> dict[str, str]:
        uses = {self.column: "text", self.data.part: "split"}
        return {name: use for name, use in uses.items() if name is not None}

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_texts(source, self.data, self.codec, n)

    def size(self, split: str) -> int:
        return len(self.sections[split].values(INPUT))

    # ---- training

    @cached_property
    def masking(self) -> Masking:
        asked = self.config
        return Masking(self.codec, asked.masked, asked.whole_words, pairs=bool(asked.next_sentence))

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return MaskedRows(self.sections["train"], batching.batch_size, self.masking, seed)

    @property
    def emission(self) -> Categorical:
        return Categorical(self.codec.size, never=tuple(range(len(self.codec.specials))))

    @property
    def follows(self) -> Categorical:
        """What the outputs behind those of tokens mean."""
        return Categorical(2, ignore=NO_ANSWER)

    def loss(self, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        terms = self.terms(y, batch)
        if len(terms) == 1:
            return terms[0]
        (total, count), (more, rows) = terms
        return total / count.clamp_min(1) + more / rows.clamp_min(1), torch.ones_like(total)

    def terms(self, y: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Of hidden tokens, and of which segment follows which, with its weight."""
        V, weight = self.codec.size, self.config.next_sentence
        hidden = self.emission.loss(y[..., :V], batch.y, batch.y_mask)
        if not weight:
            return [hidden]
        more, rows = self.follows.loss(y[:, :1, V:], batch.targets[NEXT][:, None])
        return [hidden, (weight * more, rows)]

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        train = self.sections["train"]
        return task.fitted(train, len(train.values(INPUT)), limit, lambda some: model.solve(list(self._whole(some))))

    def _whole(self, section: Examples) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows as they are, with themselves as targets, for models that count."""
        for at in range(0, section.n_examples, EVALUATION_ROWS):
            rows = np.arange(at, min(at + EVALUATION_ROWS, section.n_examples))
            made = []
            for row in rows:
                ids, segments, real = self.masking.framed([section.fields[INPUT][int(row)]])
                places = np.flatnonzero(real)
                made.append(Row(ids, segments, places, ids[places], NO_ANSWER))
            batch = batch_of(made, rows)
            x, mask = batch.x[..., 0], batch.mask
            assert mask is not None
            yield x, mask, x.masked_fill(x < len(self.codec.specials), EMPTY)

    def baselines(self) -> list[task.Baseline]:
        words = {"unigram": "none", "left bigram": "left", "two-sided n-gram": "both"}
        return [task.Baseline(label, "masked-ngram", {"context": context}) for label, context in words.items()]

    def uses(self) -> list[task.Use]:
        return [task.Use("predict what stands in a gap", "predict", (f"text with a {GAP}",))]

    # ---- figures

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        return self.measure(model, self.sections[split], limit, ledger)

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        opened = open_documents(source, bound(source, self.data, self.column))
        section = all_rows((each.input for each in documents_in(opened)), self.codec, self._room)
        if self.config.next_sentence:
            require_others(section, "given", opened.name)
        return lambda model: self.measure(model, section, None)

    def measure(
        self, model: Any, section: Examples, limit: int | None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        """The figures of a section, or of rows of it with about `limit` tokens, evenly spread."""
        n, V = section.n_examples, self.codec.size
        some = max(1, math.ceil(n * task.share_of(len(section.values(INPUT)), limit)))
        rows = np.arange(some) * n // some
        sums: Counter[str] = Counter()
        for batch, y in outputs(model, measured_batches(section, rows, EVALUATION_ROWS, self.masking)):
            tokens, real = y[..., :V].float(), batch.real
            nats = self.emission.losses(tokens, batch.y, batch.y_mask).double()  # [B, K]
            assert batch.rows is not None
            if ledger is not None:
                ledger.add(batch.rows[:, None].expand_as(nats), nats, real, "rows of text")
            right = (tokens.argmax(-1) == batch.y) & real
            sums.update({"nats": float(nats.sum()), "hidden": int(real.sum()), "right": int(right.sum())})
            if self.config.next_sentence:
                follows = batch.targets[NEXT]
                told = (y[:, 0, V:].argmax(-1) == follows) & (follows != NO_ANSWER)
                sums.update(told=int(told.sum()), pairs=int((follows != NO_ANSWER).sum()))
        if ledger is not None:
            ledger.gather()
        sums = totals(sums)
        total, count = float(sums["nats"]), int(sums["hidden"])
        figures = {"nats": total / count, "masked_accuracy": sums["right"] / count}
        figures["masked_perplexity"] = metrics.perplexity(total, count)
        if sums["pairs"]:
            figures["next_sentence_accuracy"] = sums["told"] / sums["pairs"]
        return {**figures, "tokens": int(section.fields[INPUT].lengths_at(rows).sum())}

    # ---- predictions

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """A text with a gap as it is typed, or the texts of data."""
        if isinstance(source, str) and any(mark in source for mark in (*GAPS, *BREAKS)) and not exists(source):
            return iter([[task.Given(source, number=1)]])
        return read_inputs(source, self.data, self.column)

    def typed(self, words: str) -> Any:
        return sys.stdin.read().removesuffix("\n") if words == "-" else words  # always a text, never a file

    def rows_in(self, path: Path) -> task.Rows | None:
        return rows_in(path)

    def _encoded(self, text: str) -> Row:
        parts = [" ".join(part.split()) for part in BREAK.split(text)]
        if len(parts) > 2:
            raise DataError(f"found {len(parts)} segments in {shown(text)}, expected at most two")
        found = [self.codec.with_gaps(spaced(part, self.codec.kind)) for part in parts]
        ids, segments, _ = self.masking.framed(found)
        places = np.flatnonzero(ids == self.codec.special(MASK))
        return Row(ids, segments, places, np.full(len(places), EMPTY), NO_ANSWER if len(parts) == 1 else 0)

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """The most probable tokens at each gap of a text, and the text with the most probable ones in them; where
        [SEP] separates two segments, how probable it is that the second follows the first."""
        n = LIKELY if decoding is None or decoding.n == 1 else decoding.n
        for each in given:
            row = self._encoded(str(each.value))
            asks_next = row.follows != NO_ANSWER and bool(self.config.next_sentence)
            if not len(row.places) and not asks_next:
                where = f"{each.place or f'text {each.number}'}: " if each.number else ""
                raise DataError(f"{where}there is no gap to fill; write {GAP} where a token is to be predicted")
            ((logp, follows),) = self._outputs(model, [row])
            gaps = []
            for place in logp:
                p, best = place.exp().topk(min(n, self.codec.size - len(self.codec.specials)))
                pairs = zip(best.tolist(), p.tolist())
                gaps.append([{"token": self.codec.name(token), "p": round(share, 6)} for token, share in pairs])
            ids = row.ids.copy()
            ids[row.places] = logp.argmax(-1).numpy()
            filled = unspaced(self.codec.decode(ids), self.codec.kind)
            found = {"text": each.value, "prediction": filled}
            found |= {"token": gaps[0][0]["token"], "p": gaps[0][0]["p"], "gaps": gaps} if gaps else {}
            yield found | ({"p_next": round(float(follows.softmax(-1)[0]), 6)} if asks_next else {})

    def _outputs(self, model: Any, made: Sequence[Row]) -> Iterable[tuple[Tensor, Tensor]]:
        """The log-probabilities [k, V] of the tokens at the k places of each row, special ones have none; and what is
        put out of its segments."""
        for at in range(0, len(made), EVALUATION_ROWS):
            some = made[at : at + EVALUATION_ROWS]
            ((_, y),) = outputs(model, [batch_of(some, np.arange(len(some)))])
            y, V = y.double().cpu(), self.codec.size
            y[..., : len(self.codec.specials)] = -torch.inf
            for row, own in zip(some, y):
                yield own[1 : 1 + len(row.places), :V].log_softmax(-1), own[0, V:]

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Rows with tokens hidden, all as gaps, what stood there, what is predicted, and the nats of it."""
        section = self.sections[split]
        masking = replace(self.masking, pairs=False, shares=(1.0, 1.0))
        some = range(min(limit, section.n_examples))
        made = [masking.row(section, i, np.random.default_rng((0, i))) for i in some]
        for row, (logp, _) in zip(made, self._outputs(model, made)):
            best, target = logp.argmax(-1), torch.from_numpy(row.hidden)
            nats = -logp.gather(1, target[:, None])[:, 0]
            finite = nats[nats.isfinite()]  # what training never showed is <unknown>, which is not predicted
            yield {
                "text": self._shown(row.ids),
                "target": [self.codec.name(int(token)) for token in row.hidden],
                "prediction": [self.codec.name(int(token)) for token in best],
                "p": [round(float(logp[k, token].exp()), 6) for k, token in enumerate(best)],
                "nats": float(finite.mean()) if len(finite) else None,
            }

    def _shown(self, ids: np.ndarray) -> str:
        """A row as a text in which gaps are written as they are read again."""
        gap, takes_space = self.codec.special(MASK), self.codec.kind in ("word", "bpe")
        pieces = np.split(ids, np.flatnonzero(ids == gap))
        mark = f" {GAP}" if takes_space else GAP
        text = "".join(f"{mark if len(p) and p[0] == gap else ''}{self.codec.decode(p)}" for p in pieces)
        return unspaced(text, self.codec.kind)

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        lines = list(self.predictions(model, split, SHOWN))
        texts = [line["text"] for line in lines]
        told = [", ".join(f"{a} ({b}, {p:.2f})" for a, b, p in zip(line["target"], line["prediction"], line["p"]))
                for line in lines]  # fmt: skip
        captions = [f"hidden tokens (predicted, its probability): {each}" for each in told]
        return {"gaps": kinds.Texts(title=f"Texts of the {split} split with gaps", captions=captions, texts=texts)}

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        row = self._encoded(str(value))
        batch = batch_of([row], np.arange(1))
        return Batch(batch.x, batch.mask), [self.codec.name(int(token)) for token in row.ids]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return line["text"]

    def explained(self, y: Tensor, at: int) -> task.Explained:
        tokens, V = self.emission, self.codec.size
        target = y[0, at, :V].detach().argmax()
        name = self.codec.name(int(target))
        return task.Explained(name, "log p", "nats", lambda y: -tokens.losses(y[:, at, :V], target.expand(len(y))))
