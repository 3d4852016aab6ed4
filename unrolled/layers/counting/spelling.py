"""N-grams of what tokens spell: of the bytes of a text and of its words, whatever the tokens are.

A token of a text stands for some bytes. Those of an example after each other are its text again, in which runs of 2 to
5 bytes are counted, and words, runs of letters and digits in small letters, alone and in pairs. An n-gram of bytes is a
number in base 261; a word is the sum of its bytes times powers of a prime, modulo 2^61, which two words hardly ever
share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.task import Known
from unrolled.layers.counting.ngram_features import STOP, OfGrams, Rows, runs

SHORTEST, LONGEST = 2, 5  # bytes of an n-gram
SEVERAL = 4  # words of a text, on average, from which words and bytes count alike; names have fewer
PRIME, SECOND = 1_000_003, 998_244_353
ALONE, PAIRED = 1 << 61, 1 << 62  # bits that tell words and pairs of words from bytes
BASE = 256 + 4 + 1  # bytes follow the four special tokens
SPACE = 32


class OfSpelling(OfGrams):
    """Tokens x [B, T] with mask [B, T] -> y [B, 1, C] from the counts of n-grams of bytes and words.

    `spell` takes the bytes of each token, and must be called before `solve`.
    """

    apart: Tensor  # [] whether words and bytes are two sets that count alike
    spelling: Tensor  # [V, L] bytes of each token, -1 behind the last

    def __init__(self, n_tokens: int, d_out: int, longest: int | None, n_features: int) -> None:
        super().__init__(n_tokens, d_out, 1, n_features)
        self.longest = longest or LONGEST
        self.n_tokens = n_tokens
        self.register_buffer("apart", torch.zeros((), dtype=torch.bool))
        self.register_buffer("spelling", torch.full((n_tokens, 1), -1, dtype=torch.long))

    def spell(self, tokens: Sequence[bytes]) -> None:
        """Take the bytes of every token, in the order of their numbers."""
        table = torch.full((self.n_tokens, max(1, *map(len, tokens))), -1, dtype=torch.long)
        for i, token in enumerate(tokens[: self.n_tokens]):
            table[i, : len(token)] = torch.tensor(list(token), dtype=torch.long)
        self.keep({"spelling": table})

    def fault(self, tables: dict[str, Tensor]) -> str:
        own = tables["spelling"]
        if own.dim() != 2 or len(own) != self.n_tokens or not bool(((own >= -1) & (own < 256)).all()):
            return "the spelling of its tokens does not match"
        return super().fault({name: table for name, table in tables.items() if name != "spelling"})

    def text(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The bytes of each example [B, S], and which are real."""
        letters = self.spelling[x.masked_fill(~mask, 0)]  # [B, T, L]
        real = (letters >= 0) & mask[..., None]
        letters, real = letters.flatten(1), real.flatten(1)  # [B, T L]
        place = (real.cumsum(1) - 1)[real]
        row = torch.arange(len(x), device=x.device)[:, None].expand_as(real)[real]
        n = real.sum(1)  # [B]
        found = letters.new_zeros(len(x), int(n.max()) if len(n) else 0)  # [B, S]
        found[row, place] = letters[real]
        return found, torch.arange(found.shape[1], device=x.device) < n[:, None]

    def grams_of_rows(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All n-grams of all examples as numbers [M], and the example [M] that each is in."""
        text, real = self.text(x, mask)
        keys, rows = runs(text + STOP + 1, real, BASE, self.longest, min(SHORTEST, self.longest))
        words, owners = _words(text, real)
        both = owners[1:] == owners[:-1]
        pairs = (words[:-1] * SECOND + words[1:])[both] & (ALONE - 1) | PAIRED
        return torch.cat([keys, words | ALONE, pairs]), torch.cat([rows, owners, owners[1:][both]])

    def count(self, batches: Known) -> tuple[Any, Rows, Tensor]:
        """As for any n-grams; texts of several words have words and bytes apart."""
        held = list(batches)
        n = sum(len(_words(*self.text(x.long(), mask))[0]) for x, mask, _ in held)
        self.apart.fill_(n >= SEVERAL * sum(len(x) for x, _, _ in held))
        return super().count(held)

    def second(self, keys: Rows) -> NDArray[np.bool_] | None:
        """[G] which n-grams are of words, where these are to count as much as bytes, however few there are."""
        return keys >= ALONE if self.apart else None


def _words(text: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """The words of bytes [B, S] as numbers [W], and the example [W] that each is in."""
    upper = (text >= 65) & (text <= 90)
    small = torch.where(upper, text + SPACE, text)
    digit = (small >= 48) & (small <= 57)
    inside = ((small >= 97) & (small <= 122) | digit | (small >= 128)) & real  # [B, S]
    before = torch.nn.functional.pad(inside, (1, 0))[:, :-1]
    word = (inside & ~before).flatten().cumsum(0)[inside.flatten()] - 1  # [N] the number of the word of each byte
    at = torch.arange(text.shape[1], device=text.device)
    begin = torch.where(inside & ~before, at, 0).cummax(1).values  # [B, S]
    place = (at - begin)[inside]  # [N] of each byte in its word
    power = torch.full((int(place.max()) + 1 if len(place) else 1,), PRIME, device=text.device).cumprod(0)  # wraps
    found = text.new_zeros(int(word[-1]) + 1 if len(word) else 0)
    found.index_add_(0, word, (small[inside] + 1) * power[place])
    rows = torch.arange(len(text), device=text.device)[:, None].expand_as(inside)
    return found & (ALONE - 1), rows[inside & ~before]
