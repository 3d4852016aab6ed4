"""A table of contexts as a causal layer: log-probabilities of the next token given the last few.

Contexts form a tree: the root is the empty context, and the child of a context adds the next older token. Nodes are
numbered level by level, so with keys[child] = parent * d_in + older token (and keys[root] = -1) the one array `keys`
is sorted, and a search in it is a step down the tree; no vocabulary is too large for it. The followers of node c are
tokens[offsets[c] : offsets[c + 1]] with their shares, and

    p(w | c) = share(c, w) + backoff(c) p(w | parent of c),        p(w | above the root) = 1 / number of tokens

so any interpolated smoothing fits (see models/ngram.py). Without tables the root has no followers and a backoff of 1:
the uniform distribution.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State
from unrolled.core.tokens import EMPTY

NEVER = -1e4  # stands for log 0: finite, but exp(NEVER) is 0
PIECE = 1 << 21  # numbers worked on at once

TABLES = ("keys", "offsets", "tokens", "shares", "backoff")


class NGram(Causal):
    """Tokens x [B, T] -> log p of the next token [B, T, V]; the state is the last order - 1 tokens [B, order - 1].

    y[:, t] depends on x[:, t - order + 2 : t + 1], which are order - 1 inputs. That is an upper bound: order 1 looks at
    nothing, and no table looks further back than its contexts reach.
    """

    d_in: int

    receptive_field_tight = False

    ever: Tensor  # [V] False for tokens that are never predicted
    keys: Tensor  # [M] int64, sorted
    offsets: Tensor  # [M + 1] int64
    tokens: Tensor  # [E] int32
    shares: Tensor  # [E]
    backoff: Tensor  # [M]

    def __init__(self, order: int, d_in: int, d_out: int, never: Collection[int] = ()) -> None:
        super().__init__()
        self.order, self.d_in, self.d_out = order, d_in, d_out
        self.receptive_field = max(order - 1, 1)
        ever = [token not in never for token in range(d_out)]
        self.register_buffer("ever", torch.tensor(ever if any(ever) else [True] * d_out), persistent=False)
        self.register_buffer("keys", torch.tensor([-1]))
        self.register_buffer("offsets", torch.tensor([0, 0]))
        self.register_buffer("tokens", torch.empty(0, dtype=torch.int32))
        self.register_buffer("shares", torch.empty(0))
        self.register_buffer("backoff", torch.ones(1))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if bool(((x < 0) | (x >= self.d_in)).any()):
            raise IndexError(f"a token is outside the vocabulary of {self.d_in}")
        (B, T), n = x.shape, self.order - 1
        past = x.new_full((B, n), EMPTY) if state is None else state  # no context contains EMPTY
        tokens = torch.cat([past, x], dim=1)  # [B, n + T]
        node = torch.zeros_like(x)  # [B, T]: the longest known context at every position, so far the root
        known = torch.ones_like(x, dtype=torch.bool)
        for k in range(n):
            older = tokens[:, n - k : n - k + T]  # [B, T]: k steps back
            key = node * self.d_in + older
            child = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
            known = known & (self.keys[child] == key)
            node = torch.where(known, child, node)
        y = self._log_p(node.flatten()).view(B, T, self.d_out)
        return y, tokens[:, T:]

    def _log_p(self, nodes: Tensor) -> Tensor:
        """log p(. | context) of R nodes, in pieces of bounded memory: [R, V]."""
        log_p = self.shares.new_empty(len(nodes), self.d_out)
        rows = max(PIECE // self.d_out, 1)
        for begin in range(0, len(nodes), rows):
            some, place = torch.unique(nodes[begin : begin + rows], return_inverse=True)  # few contexts, many positions
            torch.index_select(self._distributions(some), 0, place, out=log_p[begin : begin + rows])
        return log_p

    def _distributions(self, nodes: Tensor) -> Tensor:
        """log p of U distinct nodes, interpolated from the root down: [U, V]."""
        ever = self.ever.to(self.shares)
        p = (ever / ever.sum())[None]  # [1, V]
        root = nodes.new_zeros(1)
        self._interpolate(p, root, fresh=root == 0)
        p = p.repeat(len(nodes), 1)  # [U, V]
        path = [nodes]
        for _ in range(self.order - 2):
            path.append((self.keys[path[-1]] // self.d_in).clamp(min=0))  # the parent; the root's is the root
        above = torch.zeros_like(nodes)
        for node in reversed(path):
            self._interpolate(p, node, fresh=node != above)
            above = node
        return p.log_().clamp_(min=NEVER)

    def _interpolate(self, p: Tensor, node: Tensor, fresh: Tensor) -> None:
        """p <- share(c, .) + backoff(c) p, in place, for the rows whose node is fresh (the others stand at the end)."""
        p.mul_(torch.where(fresh, self.backoff[node], 1.0)[:, None])
        first = self.offsets[node]
        n = torch.where(fresh, self.offsets[node + 1] - first, 0)  # [U] followers
        row = torch.repeat_interleave(torch.arange(len(n), device=n.device), n)  # [sum n]
        entry = torch.arange(len(row), device=n.device) - (n.cumsum(0) - n - first)[row]  # [sum n]
        p.view(-1).index_add_(0, row * self.d_out + self.tokens[entry], self.shares[entry])

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Tables come with the sizes that the data gave them."""
        found = {name: state_dict[prefix + name] for name in TABLES if prefix + name in state_dict}
        if len(found) == len(TABLES):
            wrong = self._fault(**found)
            if wrong:
                others[-1].append(f"the n-gram tables are damaged: {wrong}")
                return
        for name, table in found.items():
            own = getattr(self, name)
            setattr(self, name, torch.empty(table.shape, dtype=own.dtype, device=own.device))
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _fault(self, keys: Tensor, offsets: Tensor, tokens: Tensor, shares: Tensor, backoff: Tensor) -> str:
        """What would make these tables lead astray; empty if nothing."""
        M, E = keys.numel(), tokens.numel()
        if keys.dim() != 1 or M < 1 or offsets.shape != (M + 1,) or backoff.shape != (M,) or shares.shape != (E,):
            return "their sizes do not match"
        if int(keys[0]) != -1 or bool((keys.diff() <= 0).any()) or int(keys[-1]) // self.d_in >= M:
            return "the contexts are not sorted"
        if int(offsets[0]) != 0 or int(offsets[-1]) != E or bool((offsets.diff() < 0).any()):
            return "the next tokens of contexts are not sorted"
        if E and (int(tokens.min()) < 0 or int(tokens.max()) >= self.d_out):
            return f"a token is outside the vocabulary of {self.d_out}"
        if not bool(((shares >= 0) & (shares <= 1)).all() and ((backoff >= 0) & (backoff <= 1)).all()):
            return "a probability is outside 0 to 1"
        return ""
