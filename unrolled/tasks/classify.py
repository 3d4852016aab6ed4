"""Classify: predict the class (or classes) of a sequence.

    C = - sum_n w_{c_n} log p(c_n | x_1 .. x_T) / sum_n w_{c_n}         one class, weights w if asked for
    C = - sum_{n,k} [c_k log p_k + (1 - c_k) log(1 - p_k)]              several classes at once

Probabilities are calibrated: logits are divided by a temperature that was fitted on validation data (Guo et al. 2017).
Every p and every figure of a trained model is of these probabilities, so that nats = -log p(target).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.core.metric import Metric
from unrolled.core.tokens import NO_ANSWER
from unrolled.data.codecs.labels import ClassCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.reading import Answers
from unrolled.emissions.bits import Bits
from unrolled.emissions.categorical import Categorical
from unrolled.objectives import answers, calibration, classes
from unrolled.pictures import predictions
from unrolled.tasks import _labelled
from unrolled.tasks._confusion import confusion_pictures
from unrolled.tasks._labelled_config import Readout, WholeConfig
from unrolled.tasks._told import OfClasses

ALIASES = ("classification", "sentiment", "text-classification")

SHOWN = 30  # classes that a picture of confusions shows
TOLD = ("p_target", "nats")  # of a target


class Config(WholeConfig):
    readout: Readout = "mean"
    """How the outputs at all positions are reduced to one vector: the last one, first and last, their mean or maximum,
    or a mean weighted by attention or by a learned query."""
    class_weights: float = Field(0.0, ge=0, le=1)
    """How much rare classes are upweighted, in training and in the selection of weights: 0: all examples count the
    same; 1: all classes count the same."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Label smoothing: share of the target spread over all classes in training; metrics do not use it."""


class Task(_labelled.LabelledTask):
    SCORE = "error"
    FIGURES = ("error", "accuracy", "macro_f1", "mean_recall", "auc", "nats", "calibration_error")
    KINDS = ("class", "classes")
    OBEYS = {"predict": ("n",)}
    ADVICE = {"linear-text": {}, "hydra": {}}  # of texts and of series: hard to beat where there is little data

    config: Config
    answers: ClassCodec

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self._weights: Tensor | None = None
        if config.class_weights and config.reading.class_separator is None:
            self.SCORE = "weighted_error"  # type: ignore[misc]
            self.FIGURES = ("weighted_error", *self.FIGURES)  # type: ignore[misc, assignment]

    def _answers_of(self, source: Any) -> Answers:
        return "classes" if self.reading.class_separator is not None else "class"

    def _readout(self) -> str:
        return self.config.readout

    def weights(self) -> Tensor | None:
        """How much each class counts [C]; None: as much as its examples."""
        if self._weights is None and self.config.class_weights:
            counts = torch.from_numpy(self.answers.counts.clip(min=1).astype(np.float64))
            self._weights = answers.balanced_weights(counts, self.config.class_weights).float()
        return self._weights

    def _weights_of(self, y: Tensor) -> Tensor:
        """How much each target [n] counts; one of a class that training never showed as if it had been shown once."""
        weights = self.weights()
        if weights is None:
            return torch.ones(len(y), dtype=torch.double)
        alone = weights[:1] * float(self.answers.counts[0]) ** self.config.class_weights
        return torch.cat([weights, alone]).double()[y.clamp(max=self.answers.size)]

    # ---- training

    @property
    def emission(self) -> Categorical | Bits:
        size, weights, smoothing = self.answers.size, self.weights(), self.config.label_smoothing
        if self.answers_are == "classes":
            return Bits(size, weights, "answers", self.temperature)
        return Categorical(size, NO_ANSWER, smoothing, weights=weights, temperature=self.temperature)

    def baselines(self) -> list[task.Baseline]:
        found = [task.Baseline("class frequencies", "prior", {})]
        if self.kind != "series" and not self.config.letters and self.answers_are == "class":
            found.append(task.Baseline("naive Bayes", "naive-bayes", {}))
        if self.kind == "series" and self.bags:
            found.append(task.Baseline("SVM on minimum and maximum", "min-max-svm", {}))
        if self.kind != "series" and not self.config.letters:
            weighted = {"class_weights": self.config.class_weights} if self.config.class_weights else {}
            found.append(task.Baseline("logistic regression", "logistic", weighted))
        return [*found, *self.neighbours()]

    # ---- figures

    def metrics(self) -> list[Metric]:
        return [Metric(self.SCORE, formula="rate")]

    def said(self, model: Any, section: Examples) -> tuple[Tensor, Tensor]:
        """Logits [n, C], whose softmax (or sigmoid) is what is shown as p, and the nats of each target [n]."""
        y = self.answers_to(model, section).double()
        return self.emission.scaled(y), self.emission.losses(y, self.known(torch.from_numpy(section.values(TARGET))))

    def known(self, y: Tensor) -> Tensor:
        """Targets [n] with NO_ANSWER where training never showed the class, which has no probability; of sets those
        classes that it showed [n, C]."""
        size = self.answers.size
        return y[:, :size] if self.answers_are == "classes" else y.masked_fill(y >= size, NO_ANSWER)

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        logits, nats = self.said(model, section)  # [n, C], [n]
        y = torch.from_numpy(section.values(TARGET))  # [n] or [n, C + U]
        if self.answers_are == "classes":
            return self._measure_sets(logits, nats, y, ledger)
        said, known = logits.argmax(1), self.known(y)
        wrong = (said != y).double()  # [n]
        w = self._weights_of(y)  # [n]
        if ledger is not None:
            ledger.add(torch.arange(len(y)), w * wrong, w)
        hits = classes.hits_of(classes.confusion_matrix(said, y, len(self.answers.all_names)))
        p = logits.softmax(1)
        figures = {
            "error": float(wrong.mean()),
            "accuracy": 1 - float(wrong.mean()),
            "macro_f1": float(classes.macro_f1(hits)),
            "mean_recall": float(classes.mean_recall(hits)),
            "calibration_error": float(calibration.expected_calibration_error(calibration.reliability(p, y))),
            "tokens": len(y),
        }
        count = int((known != NO_ANSWER).sum())
        if count < len(y):
            figures["unseen_targets"] = len(y) - count
        if count:
            figures["nats"] = float(nats.sum() / count)
            if len(y.unique()) > 1:
                figures["auc"] = float(classes.macro_roc_auc(classes.log_odds(logits), y))
        if self.weights() is not None:
            figures["weighted_error"] = float((w * wrong).sum() / w.sum())
        return figures

    def _measure_sets(self, logits: Tensor, nats: Tensor, y: Tensor, ledger: task.Ledger | None) -> dict[str, float]:
        said = F.pad(logits > 0, (0, y.shape[1] - logits.shape[1]))  # [n, C + U]
        wrong = (said != (y > 0)).any(1).double()  # [n] a set that is not all right
        if ledger is not None:
            ledger.add(torch.arange(len(y)), wrong, torch.ones(len(y)))
        hits = classes.multilabel_hits(said, y)
        figures = {
            "error": float(wrong.mean()),
            "accuracy": 1 - float(wrong.mean()),
            "macro_f1": float(classes.macro_f1(hits)),
            "micro_f1": float(classes.micro_f1(hits)),
            "nats": float(nats.mean()),
            "tokens": len(y),
        }
        if n := int((y[:, self.answers.size :] > 0).any(1).sum()):
            figures["unseen_targets"] = n
        return figures

    # ---- predictions

    def after_training(self, model: Any) -> None:
        """Fit the temperature on validation data."""
        if "valid" not in self.sections:
            return
        section = self.sections["valid"]
        y = self.answers_to(model, section)
        self.temperature = self.emission.calibrate(y, self.known(torch.from_numpy(section.values(TARGET)))).temperature

    def learn_from(self, members: Sequence[task.Task]) -> None:
        """The (geometric) mean of their temperatures."""
        found = [member.temperature for member in members if isinstance(member, Task)]
        self.temperature = math.exp(sum(map(math.log, found)) / len(found))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "temperature": self.temperature}

    def recall(self, facts: Mapping[str, Any]) -> None:
        super().recall(facts)
        self.temperature = OfClasses.among(facts).temperature

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Examples with their target, its probability and nats = -log of it; null where training never showed it."""
        some = self.first_of(split, limit)
        logits, nats = self.said(model, some)
        if self.answers_are == "class":
            nats = nats.masked_fill(self.known(torch.from_numpy(some.values(TARGET))) == NO_ANSWER, math.nan)
        for i, found in enumerate(map(self._answer, logits)):
            true = self.answers.decode(some.at(TARGET, i))
            true = list(true) if isinstance(true, tuple) else true
            read = self.shown(some, i)
            line = {"input": read, "target": true, **found, "right": found["prediction"] == true}
            loss = float(nats[i])
            told = {"p_target": math.exp(-loss), "nats": loss} if not math.isnan(loss) else dict.fromkeys(TOLD)
            yield {**line, **told}

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """The class of each example and its probability; asked for several, the most probable ones too."""
        n = 1 if decoding is None else decoding.n
        for logits in self.emission.scaled(self.answers_to(model, self.encoded(given)).double()):
            yield self._answer(logits) | ({} if n == 1 else {"candidates": self._candidates(logits, n)})

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return self._answer(self.emission.scaled(y.double()))

    def _answer(self, logits: Tensor) -> dict[str, Any]:
        """Calibrated logits [C] in words."""
        if self.answers_are == "classes":
            each = logits.sigmoid().tolist()
            return {"prediction": list(self.answers.decode(each)), "p": dict(zip(self.answers.names, each))}
        p = logits.softmax(0)
        best = int(p.argmax())
        return {"prediction": self.answers.label(best), "p": float(p[best])}

    def _candidates(self, logits: Tensor, n: int) -> list[dict[str, Any]]:
        """The n most probable classes of calibrated logits [C]."""
        p = logits.sigmoid() if self.answers_are == "classes" else logits.softmax(0)
        best = p.argsort(descending=True, stable=True)[:n].tolist()
        return [{"class": self.answers.label(i), "p": float(p[i])} for i in best]

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        section = self.sections[split]
        if self.answers_are == "classes" or self.answers.size > SHOWN:
            return {}
        logits, y = self.said(model, section)[0], torch.from_numpy(section.values(TARGET))
        bins = calibration.reliability(logits.softmax(1), y)
        full = bins.n > 0
        curve = predictions.reliability(bins.confidence[full].tolist(), bins.accuracy[full].tolist())
        return {**confusion_pictures(logits.argmax(1), y, self.answers, split), "reliability": curve}
