"""Words and the words around them: what word vectors learn from, drawn anew in every epoch.

    a word w of frequency f stays with probability sqrt(t/f) + t/f             (subsampling, as word2vec has it)
    its context: the words up to b places away, b drawn from 1 .. window       (nearer words count more)
    for each word k others, drawn with probability q(w) = n_w^a / sum n^a      (negative sampling)

Everything drawn is a function of (seed, epoch, place in the text), whatever is drawn together.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import TARGET, Batch
from unrolled.core.tokens import EMPTY

Words = NDArray[np.int32]
Method = Literal["skip-gram", "cbow"]

TABLE = 20  # bits of the table that words are drawn from
STREAMS = {"stays": 1, "reach": 2, "others": 3}  # of random numbers
EACH = 0xD1342543DE82EF95  # streams are this far apart


class Text(NamedTuple):
    """Words in order."""

    words: Words  # [n]
    lines: Words  # [n], a number for each line or row; contexts do not cross them


class Drawn(NamedTuple):
    """Positions with their inputs and targets."""

    x: Words  # [N, I, S]: I inputs of S words, EMPTY where there are fewer
    y: Words  # [N, 1 + k]: the word itself, then drawn ones, EMPTY where that is the same word
    places: NDArray[np.int64]  # [N] in the text

    def batch(self) -> Batch:
        x, y = torch.from_numpy(self.x), torch.from_numpy(self.y)
        return Batch(x, x != EMPTY, {TARGET: y}, {TARGET: y != EMPTY}, places=torch.from_numpy(self.places))


class Contexts:
    """What is drawn from a text, by how often words occur in the training text."""

    def __init__(
        self, counts: NDArray[np.int64], window: int, negatives: int, subsample: float, power: float, method: Method
    ) -> None:
        self.window, self.negatives, self.method = window, negatives, method
        total = max(int(counts.sum()), 1)
        share = counts / total  # [V]
        ratio = subsample / np.maximum(share, 1 / total) if subsample else np.ones(len(counts))
        self.stays = np.minimum(np.sqrt(ratio) + ratio, 1.0)  # [V]
        weights = np.where(counts > 0, counts.astype(np.float64) ** power, 0.0)
        self.noise = weights / max(weights.sum(), 1e-300)  # q [V]
        middle = (np.arange(1 << TABLE) + 0.5) / (1 << TABLE)
        self.table = np.searchsorted(np.cumsum(self.noise), middle).clip(max=len(counts) - 1).astype(np.int32)

    def log_noise(self) -> NDArray[np.float32]:
        """log k q(w) [V]; of words that are never drawn, very small."""
        return np.log(np.maximum(self.negatives * self.noise, 1e-12)).astype(np.float32)

    def draw(self, text: Text, first: int, last: int, seed: int, epoch: int) -> Drawn:
        """What the places from `first` up to `last` give; contexts end there."""
        places = np.arange(first, last, dtype=np.int64)
        words, lines = text.words[first:last], text.lines[first:last]
        chance = uniform(places, seed, epoch, "stays")
        there = chance < self.stays[words]
        places, words, lines = places[there], words[there], lines[there]
        x = self._around(words, lines, 1 + (uniform(places, seed, epoch, "reach") * self.window).astype(np.int64))
        real = (x != EMPTY).any(1)
        places, words, x = places[real], words[real], x[real]
        y = np.concatenate([words[:, None], self._others(places, words, seed, epoch)], axis=1)
        return Drawn(x[:, :, None] if self.method == "skip-gram" else x[:, None, :], y, places)

    def _around(self, words: Words, lines: Words, reach: NDArray[np.int64]) -> Words:
        """[N, 2 window] the words around each one, those before it first."""
        n, found = len(words), np.zeros((len(words), 2 * self.window), np.int32)
        for away in range(1, min(self.window, n - 1) + 1):
            near = lines[away:] == lines[:-away]  # [n - away]
            found[away:, self.window - away] = np.where(near & (reach[away:] >= away), words[:-away], EMPTY)
            found[:-away, self.window + away - 1] = np.where(near & (reach[:-away] >= away), words[away:], EMPTY)
        return found

    def _others(self, places: NDArray[np.int64], words: Words, seed: int, epoch: int) -> Words:
        """[N, k] drawn words."""
        numbers = places[:, None] * self.negatives + np.arange(self.negatives)  # [N, k]
        drawn = self.table[(bits(numbers, seed, epoch, "others") >> np.uint64(64 - TABLE)).astype(np.int64)]
        return np.where(drawn == words[:, None], EMPTY, drawn).astype(np.int32)


class ContextBatches:
    """Training batches: a step is a piece of the text, of the same length."""

    def __init__(self, contexts: Contexts, text: Text, length: int, seed: int) -> None:
        self.contexts, self.text, self.seed = contexts, text, seed
        n = len(text.words)
        self.steps_per_epoch = max(1, -(-n // length))
        self.tokens_per_step = -(-n // self.steps_per_epoch)
        self.notes: list[str] = []

    def batch(self, step: int) -> Batch:
        epoch, piece = divmod(step, self.steps_per_epoch)
        first = piece * self.tokens_per_step
        last = min(first + self.tokens_per_step, len(self.text.words))
        return self.contexts.draw(self.text, first, last, self.seed, epoch).batch()


def bits(numbers: NDArray[np.int64], seed: int, epoch: int, stream: str) -> NDArray[np.uint64]:
    """Random 64 bits for each number (Steele et al. 2014, SplitMix64)."""
    key = (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + STREAMS[stream] * EACH) % 2**64
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(numbers: NDArray[np.int64], seed: int, epoch: int, stream: str) -> NDArray[np.float64]:
    """Random numbers from 0 up to 1, one for each number."""
    return (bits(numbers, seed, epoch, stream) >> np.uint64(11)).astype(np.float64) / 2**53
