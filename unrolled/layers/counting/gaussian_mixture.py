"""A mixture of Gaussians with full covariances, fitted by expectation maximisation.

    r_nk = w_k N(x_n; m_k, S_k) / sum_j w_j N(x_n; m_j, S_j)                                       E
    w_k = N_k / N,  m_k = sum_n r_nk x_n / N_k,  S_k = sum_n r_nk (x_n - m_k)(x_n - m_k)' / N_k + floor I      M

Dempster, Laird & Rubin (1977). Centres are begun by k-means++ (Arthur & Vassilvitskii 2007). The likelihood of the data
rises with every step but for the floor, which keeps components that meet one point from becoming infinitely narrow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS, ENOUGH = 80, 1e-4  # EM steps at most; nats per point below which a step is the last


class Components(NamedTuple):
    """K Gaussians with their weights."""

    weights: Floats  # [K]
    means: Floats  # [K, D]
    covariances: Floats  # [K, D, D]

    def log_joint(self, x: Floats) -> Floats:
        """log w_k N(x_n; m_k, S_k) [N, K]."""
        lower = np.linalg.cholesky(self.covariances)  # [K, D, D]
        found = np.empty((len(x), len(self.weights)))
        for k, (L, m) in enumerate(zip(lower, self.means)):
            z = np.linalg.solve(L, (x - m).T)  # [D, N]
            found[:, k] = -0.5 * (z**2).sum(axis=0) - np.log(np.diag(L)).sum()
        return found + np.log(self.weights) - 0.5 * x.shape[1] * np.log(2 * np.pi)


def responsibilities(log_joint: Floats) -> tuple[Floats, float]:
    """r [N, K], and the mean log-likelihood of a point.

    >>> r, nats = responsibilities(np.log(np.array([[0.1, 0.3]])))
    >>> r.round(2).tolist(), round(np.exp(nats), 2)
    ([[0.25, 0.75]], 0.4)
    """
    top = log_joint.max(axis=1, keepdims=True)
    total = top + np.log(np.exp(log_joint - top).sum(axis=1, keepdims=True))
    return np.exp(log_joint - total), float(total.mean())


def fit_mixture(x: Floats, n: int, floor: float, random: np.random.Generator) -> Components:
    """n components for points x [N, D]; where there are fewer points than that, some have next to no weight."""
    r = _begun(x, n, random)  # [N, K]
    found, before = _maximised(x, r, floor), -np.inf
    for _ in range(STEPS):
        r, nats = responsibilities(found.log_joint(x))
        found = _maximised(x, r, floor)
        if nats - before < ENOUGH:
            break
        before = nats
    return found


def _maximised(x: Floats, r: Floats, floor: float) -> Components:
    N = r.sum(axis=0) + 1e-6  # [K]
    means = (r.T @ x + 1e-6 * x.mean(axis=0)) / N[:, None]
    covariances = np.empty((len(N), x.shape[1], x.shape[1]))
    for k, m in enumerate(means):
        off = x - m
        covariances[k] = (r[:, k, None] * off).T @ off / N[k] + floor * np.eye(x.shape[1])
    return Components(N / N.sum(), means, covariances)


def _begun(x: Floats, n: int, random: np.random.Generator) -> Floats:
    """Every point with the nearest of n centres, each of which is drawn by its squared distance to those before."""
    centres = [x[random.integers(len(x))]]
    far = ((x - centres[0]) ** 2).sum(axis=1)  # [N]
    for _ in range(n - 1):
        total = float(far.sum())
        chosen = random.choice(len(x), p=far / total) if total > 0 else random.integers(len(x))
        centres.append(x[chosen])
        far = np.minimum(far, ((x - centres[-1]) ** 2).sum(axis=1))
    nearest = np.argmin(((x[:, None] - np.array(centres)) ** 2).sum(axis=-1), axis=1)
    return np.eye(n)[nearest]
