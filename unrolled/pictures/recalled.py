"""Pictures of memories: queries on their way to what is recalled, and the energy along it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unrolled.pictures.kinds import Images, Plot, Series, Table


def strips(frames: Sequence[Mapping[str, str]], split: str) -> Images:
    """Each query with the states that follow and the stored pattern, side by side; images as data URIs by caption."""
    return Images(
        title="Recall", captions=[name for shown in frames for name in shown],
        images=[image for shown in frames for image in shown.values()], across=max(map(len, frames)),
        alt=f"Queries of the {split} data, their states after one update and at the end, and the stored patterns.",
    )  # fmt: skip


def texts(lines: Sequence[Mapping[str, str]], split: str) -> Table:
    return Table(
        title="Recall", alt=f"Queries of the {split} data, what was recalled, and the stored texts.",
        columns=list(lines[0]), rows=[list(line.values()) for line in lines],
    )  # fmt: skip


def energies(rows: Sequence[Sequence[float]], split: str) -> Plot:
    """The energy of some queries after each update."""
    lines = [
        Series(name=f"query {i}", x=[float(t) for t in range(len(row))], y=list(row)) for i, row in enumerate(rows, 1)
    ]
    return Plot(
        title="Energy", alt=f"The energy of queries of the {split} data after each update.", series=lines,
        x_label="updates", y_label="energy",
    )  # fmt: skip
