"""Grouped-query attention: several queries share a head of keys and values (Ainslie et al. 2023), as in Llama."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.core.errors import UsageError
from unrolled.layers.attention.attention import MultiHead


class GroupedHeads(MultiHead):
    """z_q = W_q^h x for h = 1 .. H, z_k = W_k^g x and v = W_v^g x for g = 1 .. G, where head h attends by group
    g = ceil(h G / H); keys and values are handed on once for each h."""

    def __init__(
        self, d_in: int, n_heads: int, n_key_heads: int, d_source: int | None = None, bias: bool = False
    ) -> None:
        if n_heads % n_key_heads:
            raise UsageError(
                f"invalid value n_key_heads = {n_key_heads}: expected a divisor of n_heads = {n_heads}, or 0"
            )
        super().__init__(d_in, n_heads, d_source=d_source, bias=bias)
        self.n_key_heads = n_key_heads
        self.W_kv = nn.Linear(self.d_source, n_key_heads * (self.d_key + self.d_value), bias=bias)

    def key_value(self, source: Tensor) -> tuple[Tensor, Tensor]:
        G, times = self.n_key_heads, self.n_heads // self.n_key_heads
        k, v = self.W_kv(source).split([G * self.d_key, G * self.d_value], 2)
        k = k.unflatten(2, (G, self.d_key)).transpose(1, 2)  # [B, G, S, m]
        v = v.unflatten(2, (G, self.d_value)).transpose(1, 2)  # [B, G, S, m_v]
        return k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)  # [B, H, S, .]
