"""Series of unlike lengths beside each other: brought to one length, and the nearest by Euclidean distance."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.compose import without_padding

NUMBERS = 1 << 22  # distances that are in memory at once
ROUNDING = 4 * torch.finfo(torch.float32).eps  # of a level: a standard deviation below that is no shape
DIFFERENCES = "donot_use_mm_for_euclid_dist"  # torch's word for exact distances


def resampled(x: Tensor, mask: Tensor, L: int) -> Tensor:
    """Series of any length as L steps [B, L, D], on straight lines between neighbours."""
    x = without_padding(x, mask)
    last = (mask.sum(1) - 1).clamp(min=0)  # [B]
    at = torch.linspace(0, 1, L, device=x.device, dtype=torch.float64) * last[:, None]  # [B, L]
    low = at.floor().long()
    part = (at - low)[..., None]  # [B, L, 1]
    high = torch.minimum(low + 1, last[:, None])
    if not x.shape[1]:
        return x.new_zeros(len(x), L, x.shape[2])
    row = torch.arange(len(x), device=x.device)[:, None]
    left, right = x[row, low].double(), x[row, high].double()  # [B, L, D]
    return (left + (right - left) * part).to(x)


def normalised(z: Tensor) -> Tensor:
    """[n, L, D] with each channel of each series at mean 0 and standard deviation 1; one that never varies is 0.

    Computed in double precision; what varies by less than the rounding of its own level does not vary.
    """
    mean = z.double().mean(1, keepdim=True)
    centred = z.double() - mean
    scale = centred.square().mean(1, keepdim=True).sqrt()
    least = (ROUNDING * mean.abs()).clamp(min=torch.finfo(z.dtype).tiny)
    return torch.where(scale > least, centred / scale.clamp(min=least), 0.0).to(z)


def are_sets(y: Tensor) -> bool:
    """Whether answers [n, C] that are no single classes are sets of them, 1 for each that is in, and not numbers."""
    return bool(((y == 0) | (y == 1)).all())


def nearest(z: Tensor, examples: Tensor, own: Tensor | None = None) -> Tensor:
    """The number [B] of the example [n, L, D] that is nearest to each z [B, L, D], the first of equal ones.

    Distances are sums of squared differences in double precision: |z|^2 - 2 z e + |e|^2 would cancel where series have
    a common offset. Where z are examples themselves, `own` [B] are their numbers, which do not count.
    """
    if not len(z):
        return torch.zeros(0, dtype=torch.long, device=z.device)
    z, examples = z.flatten(1).double(), examples.flatten(1).to(z.device, torch.float64)  # [B, F], [n, F]
    size = max(1, NUMBERS // max(len(examples), z.shape[1]))
    found = []
    for start in range(0, len(z), size):
        distance = torch.cdist(z[start : start + size], examples, compute_mode=DIFFERENCES)  # [b, n]
        if own is not None:
            distance.scatter_(1, own[start : start + size, None], torch.inf)
        found.append(distance.argmin(1))
    return torch.cat(found)
