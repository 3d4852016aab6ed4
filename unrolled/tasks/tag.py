"""Tag: predict a tag for each word.

    C = - 1/N sum_t log p(c_t | x_1 .. x_T)        over the N words of all sentences

Every word counts alike. Spans (B-X I-X O) are found when kind and both ends are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.core.metric import Metric
from unrolled.core.tokens import NO_ANSWER, UNKNOWN
from unrolled.data.codecs.labels import TagCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, Examples
from unrolled.data.labelled import Labelled
from unrolled.data.sources.untagged import open_words, sentence_files, words_alone
from unrolled.emissions.categorical import Categorical
from unrolled.objectives import classes, spans
from unrolled.tasks import _labelled
from unrolled.tasks._confusion import confusion_pictures

ALIASES = ("tagging", "ner", "pos", "token-classification", "sequence-labelling", "sequence-labeling")

SHOWN = 60  # tags that a picture of confusions shows


class Config(_labelled.Config):
    letters: int = Field(16, ge=0, le=64)
    """Number of letters of each word that are read in addition to the word; 0: none."""
    n_words: int = Field(100_000, ge=8)
    """Maximum number of words with an embedding of their own; rarer words are represented by their letters only."""
    least: int = Field(1, ge=1)
    """How often a word must occur in the training data to have an embedding of its own."""


class Task(_labelled.LabelledTask):
    SCORE = "error"
    FIGURES = ("error", "accuracy", "unseen_accuracy", "macro_f1", "span_f1")
    KINDS = ("tags",)
    UNIT = "words"

    config: Config
    answers: TagCodec

    def _data_config(self) -> DataConfig:
        return self.data.updated({"vocabulary": self.config.n_words})

    def _preparation(self) -> dict[str, Any]:
        return {**super()._preparation(), "least": self.config.least}

    def size(self, split: str) -> int:
        return len(self.sections[split].values(INPUT))

    def value_of(self, value: Any, place: str) -> Any:
        words = super().value_of(value, place)
        return words_alone(words, self.answers.names) if isinstance(value, str) else words

    def _inputs_in(self, source: Any) -> Iterable[Labelled]:
        files = sentence_files(Path(source)) if isinstance(source, str | PathLike) else []
        return open_words(files, self.reading, self.answers.names) if files else super()._inputs_in(source)

    # ---- training

    @property
    def emission(self) -> Categorical:
        return Categorical(self.answers.size, ignore=NO_ANSWER)

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("most frequent tag of each word", "tag-counts", {})]

    # ---- figures

    def metrics(self) -> list[Metric]:
        return [Metric(self.SCORE, formula="rate")]

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        y = torch.from_numpy(section.values(TARGET))  # [N]
        said = self.answers_along(model, section).argmax(1)  # [N]
        wrong = (said != y).double()
        if ledger is not None:
            sentences = torch.from_numpy(np.repeat(np.arange(section.n_examples), section.lengths(INPUT)))  # [N]
            ledger.add(sentences, wrong, torch.ones(len(y)))
        hits = classes.hits_of(classes.confusion_matrix(said, y, len(self.answers.all_names)))
        figures = {
            "error": float(wrong.mean()),
            "accuracy": 1 - float(wrong.mean()),
            "macro_f1": float(classes.macro_f1(hits)),
            "tokens": len(y),
        }
        unseen = torch.from_numpy(_words(section.values(INPUT)) == UNKNOWN)  # [N]
        if unseen.any():
            figures["unseen_accuracy"] = 1 - float(wrong[unseen].mean())
        if n := int((y >= self.answers.size).sum()):
            figures["unseen_targets"] = n
        if spans.is_bio(self.answers.names):
            found = spans.span_hits(self._sentences(said.numpy(), section), self._sentences(y.numpy(), section))[1]
            figures["span_f1"] = float(classes.micro_f1(found)) if len(found.found) else 0.0
        return figures

    def _sentences(self, tags: np.ndarray, section: Examples) -> list[list[str]]:
        """Numbers of tags [N] as names, sentence by sentence."""
        names = self.answers.all_names
        return [[names[tag] for tag in each] for each in np.split(tags, section.fields[INPUT].offsets[0][1:-1])]

    # ---- predictions

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        some = self.first_of(split, limit)
        logp = self.emission.log_probabilities(self.answers_along(model, some))  # [N, C]
        y = torch.from_numpy(some.values(TARGET))
        nats = self.emission.losses(logp, y.masked_fill(y >= self.answers.size, NO_ANSWER))  # [N]
        for i, (start, stop) in enumerate(zip(some.fields[INPUT].offsets[0][:-1], some.fields[INPUT].offsets[0][1:])):
            yield {
                "input": self.shown(some, i),
                "target": self.answers.decode(some.at(TARGET, i)),
                **self._answer(logp[start:stop]),
                "nats": _mean(nats[start:stop][y[start:stop] < self.answers.size]),
            }

    def say(self, model: Any, section: Examples) -> Iterator[dict[str, Any]]:
        logp = self.emission.log_probabilities(self.answers_along(model, section))  # [N, C]
        for start, stop in zip(section.fields[INPUT].offsets[0][:-1], section.fields[INPUT].offsets[0][1:]):
            yield self._answer(logp[start:stop])

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """Each sentence's words, their tags, and how probable these are."""
        for each, said in zip(given, super().predict(model, given)):
            yield {"words": each.value, **said}

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {name: each[0] for name, each in self._answer(self.emission.log_probabilities(y[None])).items()}

    def _answer(self, logp: Tensor) -> dict[str, Any]:
        """[T, C] in words."""
        p, best = logp.exp().max(1)
        return {"prediction": self.answers.decode(best), "p": [round(each, 6) for each in p.tolist()]}

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        if self.answers.size > SHOWN:
            return {}
        section = self.sections[split]
        said, y = self.answers_along(model, section).argmax(1), torch.from_numpy(section.values(TARGET))
        return confusion_pictures(said, y, self.answers, split)


def _mean(nats: Tensor) -> float | None:
    """Over the words whose tag has a probability, because training showed it; None: there is none."""
    return float(nats.mean()) if len(nats) else None


def _words(x: np.ndarray) -> np.ndarray:
    """Ids of words [N], of inputs with letters [N, 1 + L] or without."""
    return x[:, 0] if x.ndim == 2 else x
