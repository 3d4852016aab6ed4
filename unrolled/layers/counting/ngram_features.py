"""N-grams of tokens as features: which are kept, and how often each example has them.

An n-gram is a number in base V + 1, which no other n-gram shares. <start> and <stop> stand around every example, so
that beginnings and ends are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.task import Known
from unrolled.layers.memory.saved_tables import Stored

START, STOP = 2, 3  # ids that every codec gives to <start> and <stop>
FEW = 1000  # different tokens that are taken for characters
MOST_WEIGHTS = 1 << 21  # n-grams times classes, so that a solver's memory is bounded
PENDING = 1 << 21  # n-grams that wait to be counted
KEPT = 4  # times as many n-grams as are wanted are held while they are counted

Rows = NDArray[np.int64]


class Grams(NamedTuple):
    """The n-grams of some examples: which are there, and where how often."""

    keys: Rows  # [U] different ones, in order
    rows: Rows  # [M] the example
    numbers: Rows  # [M] the n-gram, as its place in `keys`
    counts: Rows  # [M]


class OfGrams(Stored):
    """Tokens x [B, T] with mask [B, T] -> y [B, 1, C] from the counts of the n-grams that are kept, of 1 to N tokens.

    A subclass keeps its own tables beside `keys`, one row for each n-gram.
    """

    keys: Tensor  # [G] n-grams, in order

    def __init__(self, n_tokens: int, d_out: int, longest: int | None, n_features: int) -> None:
        super().__init__()
        self.d_out, self.n_features = d_out, n_features
        self.base = max(n_tokens, STOP + 1) + 1
        wanted = longest or (4 if n_tokens < FEW else 2)
        self.longest = min(wanted, int(63 / math.log2(self.base)))  # longer ones would not fit into 64 bits
        self.register_buffer("keys", torch.zeros(0, dtype=torch.long))

    def fault(self, tables: dict[str, Tensor]) -> str:
        keys, others = tables["keys"], [table for name, table in tables.items() if name != "keys"]
        if keys.dim() != 1 or any(other.shape not in (keys.shape, (len(keys), self.d_out)) for other in others):
            return "the sizes of its tables do not match"
        return "its n-grams are not sorted" if bool((keys.diff() <= 0).any()) else ""

    def grams(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All n-grams of all examples as numbers [M], and the example [M] that each is in.

        Those of a bag, x [B, I, T], are those of its instances.
        """
        if mask.dim() == 3:
            real = mask.any(2)  # [B, I]
            key, instance = self.grams_of_rows(x[real], mask[real])
            return key, real.nonzero()[instance, 0]
        return self.grams_of_rows(x, mask)

    def grams_of_rows(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same of sequences [B, T]."""
        return runs(x, mask, self.base, self.longest)

    def second(self, keys: Rows) -> NDArray[np.bool_] | None:
        """[G] which n-grams are of a second set, where both sets are to count alike; None: there is one set."""
        return None

    def counts(self, x: Tensor, mask: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """The n-grams that these examples have [U], as places in `keys`, and how often each has them [B, U]."""
        key, row = self.grams(x, mask)
        place = torch.searchsorted(self.keys, key).clamp(max=max(len(self.keys) - 1, 0))
        known = self.keys[place] == key if len(self.keys) else torch.zeros_like(key, dtype=torch.bool)
        used, local = place[known].unique(return_inverse=True)  # [U], [M]
        z = like.new_zeros(len(x), len(used))  # [B, U]
        z.index_put_((row[known], local), z.new_ones(()), accumulate=True)
        return used, z

    def count(self, batches: Known) -> tuple[Any, Rows, Tensor]:
        """The n-grams of the most examples: their counts, a sparse matrix [n, G], their keys [G], and the answers."""
        held = [(x.int(), mask, y) for x, mask, y in batches]
        most = min(self.n_features, max(1, MOST_WEIGHTS // self.d_out))
        keys, _ = most_frequent((self._counted(x, mask) for x, mask, _ in held), most)
        z, y = self.count_in(held, keys)
        return z, keys, y

    def count_in(self, batches: Known, keys: Rows) -> tuple[Any, Tensor]:
        """How often these examples have some n-grams, [n, G] sparse, and their targets."""
        held = list(batches)
        z = matrix((self._counted(x, mask) for x, mask, _ in held), [len(x) for x, _, _ in held], keys)
        return z, torch.cat([y for _, _, y in held])

    def _counted(self, x: Tensor, mask: Tensor) -> Grams:
        key, row = (values.cpu().numpy() for values in self.grams(x.long(), mask))
        keys, number = np.unique(key, return_inverse=True)
        pair, counts = np.unique(row * max(len(keys), 1) + number, return_counts=True)
        rows, numbers = np.divmod(pair, max(len(keys), 1))
        return Grams(keys, rows, numbers, counts)


def runs(x: Tensor, mask: Tensor, base: int, longest: int, shortest: int = 1) -> tuple[Tensor, Tensor]:
    """All runs of tokens [B, T] as numbers [M], and the example [M] that each is in; a run of one is never an end."""
    B, T = mask.shape
    n = mask.sum(1)  # [B]
    s = x.new_full((B, T + 2), START)  # [B, T + 2]
    s[:, 1 : T + 1] = x.masked_fill(~mask, 0)
    s[torch.arange(B, device=x.device), n + 1] = STOP
    at = torch.arange(T + 2, device=x.device)  # [T + 2]
    row = torch.arange(B, device=x.device)[:, None].expand(B, T + 2)
    one = key = s + 1
    is_token = (at >= 1) & (at <= n[:, None])  # [B, T + 2]
    found = [(key[is_token], row[is_token])]
    for N in range(2, longest + 1):
        key = key[:, :-1] * base + one[:, N - 1 :]  # [B, T + 3 - N]
        real = at[N - 1 :] <= n[:, None] + 1
        found.append((key[real], row[:, : key.shape[1]][real]))
    found = found[shortest - 1 :]
    return torch.cat([keys for keys, _ in found]), torch.cat([rows for _, rows in found])


def most_frequent(counted: Iterable[Grams], most: int) -> tuple[Rows, Rows]:
    """The n-grams of the most examples, in order, and how many examples have each; memory is bounded."""
    keys, seen = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Grams] = []

    def merge(keep: int) -> tuple[Rows, Rows]:
        found, place = np.unique(np.concatenate([keys, *(each.keys for each in waiting)]), return_inverse=True)
        own = [np.bincount(each.numbers, minlength=len(each.keys)) for each in waiting]
        n = np.bincount(place, np.concatenate([seen, *own]), minlength=len(found)).astype(np.int64)
        chosen = np.sort(np.argsort(-n, kind="stable")[:keep])
        return found[chosen], n[chosen]

    for each in counted:
        waiting.append(each._replace(rows=each.rows[:0], counts=each.counts[:0]))
        if sum(len(one.numbers) for one in waiting) > PENDING:
            keys, seen = merge(KEPT * most)
            waiting.clear()
    return merge(most)


def matrix(counted: Iterable[Grams], sizes: list[int], keys: Rows) -> Any:
    """How often all examples have the n-grams that are kept, as a sparse matrix [n, G]."""
    from scipy.sparse import csr_matrix

    parts = list(_entries(counted, sizes, keys))
    rows, columns, values = (np.concatenate(each) for each in zip(*parts))
    return csr_matrix((values, (rows, columns)), shape=(sum(sizes), len(keys)))


def _entries(counted: Iterable[Grams], sizes: list[int], keys: Rows) -> Iterator[tuple[Any, Any, Any]]:
    first = 0
    for grams, size in zip(counted, sizes):
        place = np.searchsorted(keys, grams.keys).clip(max=len(keys) - 1)  # [U]
        known = (keys[place] == grams.keys)[grams.numbers]  # [M]
        columns = place[grams.numbers[known]]
        yield (first + grams.rows[known]).astype(np.int32), columns.astype(np.int32), grams.counts[known].astype(float)
        first += size
