"""Where a decoder looked in its source: which of the attention weights that layers note are about it, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unrolled.pictures.kinds import Heatmap


def is_of_source(alpha: Any, n_source: int) -> bool:
    """Whether weights [.., T, S] look at a source of n positions: as wide, and not only at what was before.

    Self-attention of a decoder never looks beyond its own position, so its weights are zero there.
    """
    T, S = alpha.shape[-2:]
    return bool(n_source == S and (T == 1 or alpha.triu(1 + S - T).any() or S < T))


def of_source(noted: Sequence[Any], n_source: int) -> list[Any]:
    """Those of the weights [H, T, S] that look at the source."""
    return [alpha for alpha in noted if is_of_source(alpha, n_source)]


def picture(alpha: Any, targets: list[str], sources: list[str]) -> Heatmap:
    """Weights [T, S] as a picture: a row for each token that is written."""
    return Heatmap(
        title="Alignment between target and source (attention weights)",
        alt="Each row is a target token and shows its attention weights over the positions of the source.",
        values=alpha.double().cpu().round(decimals=5).tolist(), rows=targets, columns=sources,
        x_label="source", y_label="written", low=0.0,
    )  # fmt: skip
