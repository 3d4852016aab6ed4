"""Models that look up what they counted. Their tables are read where they are, so none is packed."""

from __future__ import annotations

import torch

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.operations import Do
from unrolled.layers.counting.ngram import NGram

DEEPEST = 63  # tokens of a context: native/ngram.h


def ngram(layer: NGram, x: Value, into: Builder) -> Value:
    """log p(. | the last order - 1 tokens)."""
    into.tokens(x)
    n = layer.order - 1
    if n > DEEPEST:
        raise CannotLower(f"contexts of more than {DEEPEST} tokens")
    followers = int(layer.offsets[1])  # of the root, the context of no tokens
    root = layer.backoff[0] * layer.ever / layer.ever.sum()
    root.index_add_(0, layer.tokens[:followers].long(), layer.shares[:followers])
    tables = {layer.keys: torch.int64, layer.offsets: torch.int64, layer.tokens: torch.int32,
              layer.shares: into.dtype, layer.backoff: into.dtype}  # fmt: skip
    contexts = torch.tensor([*(into.address(*each) for each in tables.items()), len(layer.keys), layer.d_in])
    slot, weight, at = into.slot(n, dtype=torch.long), into.vector(root), into.address(contexts, torch.int64)
    return into.emit(Do.NGRAM, layer.d_out, weight=weight, slot=slot, a=at, b=n)


RULES = {NGram: ngram}
