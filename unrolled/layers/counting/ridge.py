"""Ridge regression whose strength is chosen by leaving out each example once, which costs no more than solving once.

    W = argmin sum_n |y_n - W z_n|^2 + a |W|^2        z, y less their means
    Z = Q S V^T:   H = 1/N + Q S^2/(S^2 + a) Q^T,   the error of n where it is left out = (y_n - (H y)_n) / (1 - H_nn)

Hoerl & Kennard (1970), Golub, Heath & Wahba (1979). Q and S come from the smaller of Z Z^T and Z^T Z.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SMALL = 1e-10  # of the largest S^2: a direction that has no more is none


class Ridge(NamedTuple):
    weight: Tensor  # [C, F], for z less its mean
    bias: Tensor  # [C], the mean of y
    left_out: Tensor  # [N, C], what is said of each example by all others


def solve(z: Tensor, y: Tensor, strengths: Tensor) -> Ridge:
    """The best of some strengths [A] for features z [N, F] of mean 0 and answers y [N, C], in double precision."""
    z, y = z.double(), y.double()
    bias = y.mean(0)
    wide = len(z) <= z.shape[1]
    squares, vectors = torch.linalg.eigh(z @ z.T if wide else z.T @ z)
    kept = squares > SMALL * squares[-1]
    squares, vectors = squares[kept], vectors[:, kept]
    Q = vectors if wide else z @ vectors / squares.sqrt()  # [N, r]
    along, share = Q.T @ (y - bias), Q.square()  # [r, C], [N, r]
    best: tuple[float, Tensor, Tensor] | None = None
    for strength in strengths.tolist():
        shrunk = squares / (squares + strength)  # [r]
        held_back = (1 - 1 / len(z) - share @ shrunk).clamp(min=1e-12)  # [N] 1 - H_nn
        errors = (y - bias - Q @ (shrunk[:, None] * along)) / held_back[:, None]  # [N, C]
        miss = float(errors.square().mean())
        if best is None or miss < best[0]:
            dual = Q @ (along / (squares + strength)[:, None])  # [N, C]
            best = miss, (z.T @ dual).T, y - errors
    assert best is not None
    return Ridge(best[1], bias, best[2])
