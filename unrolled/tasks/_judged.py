"""What written texts are judged by: the metrics of whole texts, the one that ranks, and as many texts as time allows.

    chrF, BLEU          texts (see objectives/corpus)
    exact match         the share of texts that are just as they should be
    error rates         edits per character or word of the text that it should be

Where all texts cannot be written in the time, those are that come first in one random order, the same for every model:
so models are compared on the texts that all of them wrote.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.metric import Metric
from unrolled.core.sharing import agreed, each_own, own, totals
from unrolled.core.task import Ledger
from unrolled.core.tokens import EMPTY
from unrolled.data.examples import Examples, Whole
from unrolled.data.target_words import TargetWords
from unrolled.objectives import losses
from unrolled.objectives import metrics as figures
from unrolled.objectives.corpus import Array, value_of
from unrolled.objectives.edits import character_statistics, word_statistics
from unrolled.objectives.written import bleu_statistics, chrf_statistics, exact_statistics

NATS = Metric("nats")
CHRF = Metric("chrf", larger=True, formula="chrf")
BLEU = Metric("bleu", larger=True, formula="bleu")
EXACT = Metric("exact_match", larger=True, formula="rate")
CHARACTER_ERRORS = Metric("character_error_rate")
WORD_ERRORS = Metric("word_error_rate")

STATISTICS: dict[Metric, Callable[[Sequence[str], Sequence[str]], Array]] = {
    CHRF: chrf_statistics,
    BLEU: bleu_statistics,
    EXACT: exact_statistics,
    CHARACTER_ERRORS: character_statistics,
    WORD_ERRORS: word_statistics,
}
FIRST, MOST = 50, 400  # texts that are written before time is looked at, and between two looks: many at once are cheap
PROBING = 0.02  # of the time of training, that may go into finding out how long writing takes


def chosen(asked: str, able: Sequence[Metric], usual: Metric) -> list[Metric]:
    """The metrics of a task, the one that ranks first: that which was asked for, or the usual one."""
    named = {metric.name: metric for metric in (*able, NATS)}
    if asked != "auto" and asked not in named:
        raise UsageError(f"invalid value score = '{asked}': expected one of {listed(['auto', *named])}")
    first = usual if asked == "auto" else named[asked]
    return [first, *(metric for metric in named.values() if metric != first)]


def usual_score(words: TargetWords) -> Metric:
    """Texts are ranked by chrF; short strings, which are right or wrong, by exact matches."""
    return EXACT if words.are_strings else CHRF


def token_figures(outputs: Iterable[tuple[Batch, Tensor]], ledger: Ledger | None) -> dict[str, float]:
    """Figures of each token given the true ones before it."""
    sums: Counter[str] = Counter()
    for batch, y in outputs:
        nats, real = losses.token_losses(y, batch.y), batch.y != EMPTY  # [B, T]
        right = int(figures.accuracy(y, batch.y)[0])
        sums.update({"total": float(nats.sum()), "count": int(real.sum()), "right": right})
        if ledger is not None:
            assert batch.rows is not None
            ledger.put(NATS.name, batch.rows, torch.stack([nats.sum(1).double(), real.sum(1).double()], 1))
    if ledger is not None:
        ledger.gather()
    sums = totals(sums)
    total, count, right = float(sums["total"]), int(sums["count"]), int(sums["right"])
    if count == 0:
        raise DataError("there are no tokens to predict in this split: give more data")
    found = {NATS.name: total / count, "perplexity": figures.perplexity(total, count)}
    return {**found, "token_accuracy": right / count, "tokens": count}


def judge(metrics: Sequence[Metric], written: Sequence[str], references: Sequence[str]) -> dict[Metric, Array]:
    """The statistics [n, k] of each metric of whole texts."""
    return {metric: STATISTICS[metric](written, references) for metric in metrics if metric in STATISTICS}


def enter(ledger: Ledger, statistics: dict[Metric, Array], rows: Whole) -> None:
    for metric, each in statistics.items():
        ledger.put(metric.name, torch.from_numpy(rows), torch.from_numpy(each))


def values(statistics: dict[Metric, Array]) -> dict[str, float]:
    return {metric.name: float(value_of(metric.formula, each.sum(0))) for metric, each in statistics.items()}


def write_within(seconds: float, section: Examples, write: Callable[[Examples], list[str]]) -> tuple[Whole, list[str]]:
    """Which examples were written, in their own order, and their texts: all of them, or as many as there is time for,
    FIRST at least."""
    if math.isinf(seconds) or section.n_examples <= FIRST:
        return np.arange(section.n_examples), _written_together(section, write)
    order, begun = np.random.default_rng(0).permutation(section.n_examples), time.monotonic()
    texts, size = list[str](), FIRST
    while size > 0:
        texts += _written_together(section.take(order[len(texts) : len(texts) + size]), write)
        passed = agreed(time.monotonic() - begun)
        room = (seconds - passed) * len(texts) / max(passed, 1e-9)
        size = min(2 * size, MOST, section.n_examples - len(texts), int(room))
    rows = order[: len(texts)]
    natural = np.argsort(rows)
    return rows[natural], [texts[i] for i in natural]


def _written_together(section: Examples, write: Callable[[Examples], list[str]]) -> list[str]:
    """The texts of all examples, of which each of several processes writes its share."""
    n = section.n_examples
    if own(n) == slice(0, n):
        return write(section)
    return each_own(n, lambda rows: write(section.take(np.arange(rows.start, rows.stop))))


class Pace:
    """How long it takes to write a text, found out now and then in training."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.spent = self.each = 0.0

    def probe(self, write: Callable[[], int]) -> None:
        """Measure how long `write` takes, which says how many texts it wrote; not where that would cost too much."""
        before = time.monotonic()
        self.begun = before if self.begun is None else self.begun
        if self.spent > PROBING * (before - self.begun):
            return
        n = write()
        taken = time.monotonic() - before
        self.spent, self.each = self.spent + taken, taken / max(n, 1)
