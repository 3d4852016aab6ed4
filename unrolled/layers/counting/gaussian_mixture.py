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

STEPS, ENOUGH = 1000, 5e-5  # EM steps at most; nats per point below which a step is the last (decisions/0030)

LITTLE = 1e-6  # of a point, that a component without points has of all


class Components(NamedTuple):
    """K Gaussians with their weights."""

    weights: Floats  # [K]
    means: Floats  # [K, D]
    covariances: Floats  # [K, D, D]

    def log_joint(self, x: Floats) -> Floats:
        """log w_k N(x_n; m_k, S_k) [N, K]."""
        P, (_, log_det) = np.linalg.inv(self.covariances), np.linalg.slogdet(self.covariances)  # [K, D, D], [K]
        Pm = (P @ self.means[:, :, None])[:, :, 0]  # [K, D]
        distance = squares(x) @ P.reshape(len(P), -1).T - 2 * x @ Pm.T + (Pm * self.means).sum(axis=1)  # [N, K]
        return np.log(self.weights) - (distance + log_det + x.shape[1] * np.log(2 * np.pi)) / 2


def squares(x: Floats) -> Floats:
    """x x' of each point, flat: [N, D D]."""
    return (x[:, :, None] * x[:, None]).reshape(len(x), -1)


def responsibilities(log_joint: Floats) -> tuple[Floats, float]:
    """r [N, K], and the mean log-likelihood of a point.

    >>> r, nats = responsibilities(np.log(np.array([[0.1, 0.3]])))
    >>> r.round(2).tolist(), round(float(np.exp(nats)), 2)
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
    N = r.sum(axis=0) + LITTLE  # [K]
    means = (r.T @ x + LITTLE * x.mean(axis=0)) / N[:, None]
    D, xx = x.shape[1], squares(x)
    second = ((r.T @ xx + LITTLE * xx.mean(axis=0)) / N[:, None]).reshape(-1, D, D)  # [K, D, D]
    return Components(N / N.sum(), means, second - means[:, :, None] * means[:, None] + floor * np.eye(D))


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
