"""Words as vectors: a table of words, and beside it what their letters say.

    v_t = (E[w_t], max_i tanh(W (c_{i-1}, c_i, c_{i+1}) + b))        c_i the vector of the i-th letter of word t

A word that the table does not know is still known by its letters (Ma & Hovy 2016).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core.compose import without_padding
from unrolled.core.tokens import EMPTY, UNKNOWN
from unrolled.layers.parts.dropout import WordDropout


class SpeltWords(nn.Module):
    """Ids x [B, T, 1 + L], a word and its letters -> [B, T, d_word + d_letters]; `unknown` words are dropped in to
    train what letters are worth."""

    def __init__(self, n_words: int, n_letters: int, d_word: int, d_letters: int = 50, dropout: float = 0.0) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, d_word)
        self.letters = nn.Embedding(n_letters, d_letters // 2)
        self.conv = nn.Conv1d(d_letters // 2, d_letters, 3, padding=1)
        self.drop = WordDropout(dropout)
        self.d_out = d_word + d_letters
        with torch.no_grad():
            self.words.weight[UNKNOWN] = 0  # as a word that was dropped, from which letters learn to speak alone

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        spelt = x[..., 1:].flatten(0, 1)  # [B T, L]
        c = without_padding(self.letters(spelt), spelt != EMPTY)  # [B T, L, d]
        z = torch.tanh(self.conv(c.transpose(1, 2)))  # [B T, d_letters, L]
        z = z.masked_fill((spelt == EMPTY).unsqueeze(1), -1.0).amax(-1)  # [B T, d_letters]
        return torch.cat([self.drop(self.words(x[..., 0])), z.view(B, T, -1)], dim=-1)  # [B, T, d_word + d_letters]
