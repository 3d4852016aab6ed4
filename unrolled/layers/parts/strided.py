"""A front end for long inputs: windows of s neighbouring vectors become one, so that the body reads T / s positions.

    z_k = relu(W (v_{k s - s/2 + 1} .. v_{k s + 3 s/2}) + b) + U mean(v_{k s + 1} .. v_{k s + s})        k = 0, 1, ..

A convolution of kernel 2 s and stride s over what the input layer made, whose vectors may be narrow, beside the mean of
each stretch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding


class Strided(Encoder):
    """x [B, S, ..] -> [B, ceil(S / stride), d_out], with the mask of stretches that have a real position.

    >>> front = Strided(nn.Linear(2, 3), 3, 4, stride=3)
    >>> y, mask = front(torch.zeros(1, 7, 2), torch.arange(7)[None] < 4)
    >>> y.shape, mask.tolist()
    (torch.Size([1, 3, 4]), [[True, True, False]])
    """

    def __init__(self, embedding: nn.Module, d_vector: int, d_out: int, stride: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.stride, self.d_out = stride, d_out
        self.conv = nn.Conv1d(d_vector, d_out, 2 * stride, stride)
        self.mean = nn.Linear(d_vector, d_out, bias=False)
        if isinstance(embedding, nn.Linear):
            self.d_in = embedding.in_features

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        s, S = self.stride, mask.shape[1]
        v = without_padding(self.embedding(x), mask).transpose(1, 2)  # [B, D, S]
        more = -S % s
        real = F.pad(mask, (0, more)).unflatten(1, (-1, s)).sum(2)  # [B, S'] real positions of each stretch
        v = F.pad(v, (s // 2, more + s - s // 2))  # [B, D, S + more + s]
        z = torch.relu(self.conv(v)).transpose(1, 2)  # [B, S', D']
        means = v[:, :, s // 2 : s // 2 + S + more].unflatten(2, (-1, s)).sum(3) / real.clamp(min=1)[:, None]
        return without_padding(z + self.mean(means.transpose(1, 2)), real > 0), real > 0
