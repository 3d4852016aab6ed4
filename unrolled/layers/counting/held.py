"""Series with missing values, row by row: what was last known stands in their place, and repeats as a naive forecast.

    z_t = y_t where it was observed, else z_{t-m} (m: the season; before a whole one was read: z_{t-1})
    forecast of t+h: z_{t+h-m} with as many more seasons taken off as it needs to lie in the past

Before the first observation z is 0. Hyndman & Athanasopoulos (2021), section 5.2.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Held(NamedTuple):
    """What is carried of a series."""

    line: Tensor  # [R, n] the last n values z, the oldest first
    clock: Tensor  # [R] how many steps were read from the first observation on; 0: there was none yet


def nothing_held(x: Tensor, n: int) -> Held:
    return Held(x.new_zeros(x.shape[0], n), torch.zeros(x.shape[0], dtype=torch.long, device=x.device))


def hold(y: Tensor, seen: Tensor, before: Held, season: int = 1) -> tuple[Tensor, Tensor]:
    """z with the values before it [R, n + T], n >= m, and the clock [R, T], of y [R, T] observed where `seen`."""
    m = season
    started = (before.clock > 0)[:, None] | (seen.cumsum(1) > 0)  # [R, T]
    clock = before.clock[:, None] + started.cumsum(1)
    z = _newest(torch.cat([before.line[:, -1:], y], 1), F.pad(seen, (1, 0), value=True))[:, 1:]
    if m > 1:
        known = seen | (clock <= m)
        ahead = -y.shape[1] % m  # so that whole seasons stand below one another
        line = F.pad(torch.cat([before.line[:, -m:], z], 1), (0, ahead))
        known = F.pad(known, (m, ahead), value=True)
        by_phase = [each.unflatten(1, (-1, m)).transpose(1, 2).flatten(0, 1) for each in (line, known)]  # [R m, K]
        z = _newest(*by_phase).unflatten(0, (-1, m)).transpose(1, 2).flatten(1)[:, m : m + y.shape[1]]
    return torch.cat([before.line, z], 1), clock


def _newest(line: Tensor, known: Tensor) -> Tensor:
    """At each place the newest value of a line [R, N] that is known; the first always is."""
    place = torch.arange(line.shape[1], device=line.device)
    return line.gather(1, torch.where(known, place, 0).cummax(1).values)


def held_after(line: Tensor, clock: Tensor, n: int) -> Held:
    """The state behind a line."""
    return Held(line[:, line.shape[1] - n :].clone(), clock[:, -1].clone())


def repeated(line: Tensor, clock: Tensor, season: int, horizon: int) -> Tensor:
    """The naive forecasts [R, T, H] from a line [R, n + T] and its clock [R, T]."""
    T, m = clock.shape[1], season
    last = line[:, -T:, None].expand(-1, -1, horizon)  # [R, T, H]
    if m == 1:
        return last
    seasons = line[:, line.shape[1] - T - m + 1 :].unfold(1, m, 1)  # [R, T, m]
    steps = torch.arange(horizon, device=line.device) % m
    return torch.where((clock >= m)[:, :, None], seasons[:, :, steps], last)
