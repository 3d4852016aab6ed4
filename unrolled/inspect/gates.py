"""The gates of recurrent and of gated layers.

An entry of a gate near 1 is open, near 0 closed. Open and closed are counted above 0.9 and below 0.1 (Karpathy, Johnson
& Fei-Fei 2015). For LSTM and GRU see eqs (7.16)-(7.19), for the gated units of WaveNet van den Oord et al. (2016).
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.errors import UsageError
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.looking import both_ways, glance, look_at, models_where, rounded
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Heatmap, Plot, Series
from unrolled.runs.run import Run

OPEN, CLOSED = 0.9, 0.1
LABELLED = 32  # tokens that can still be read along a line


class Config(config.Config):
    length: int = Field(64, ge=1, le=4096)
    """Number of positions to show, from the first."""
    layer: int = Field(0, ge=0)
    """The layer to draw, counted from 1; 0: the last layer."""
    units: int = Field(32, ge=1, le=1024)
    """Number of units to draw, from the most open to the most closed."""


def applies(run: Run) -> str | None:
    if glance(run).seen["gates"]:
        return None
    gated = models_where(lambda _, seen: bool(seen["gates"]))
    return f"this {run.config.model} has no gates; models that have: {', '.join(gated)}"


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at(run, value, config.length)
    seen = look.seen
    layers = [{name: z[0].float().cpu() for name, z in gates.items()} for gates in seen["gates"]]  # [T, N] each
    cells = [parts["cell"][0].float().cpu() for parts in seen["parts"] if "cell" in parts]  # [T, N] each
    number = config.layer or len(layers)
    if number > len(layers):
        raise UsageError(f"invalid value layer = {number}: this model has {len(layers)} gated layer(s)")
    gates = [{name: z for name, z in layer.items() if is_gate(z)} for layer in layers]
    counted = [
        {"layer": i, "gate": name, **figures(z)} for i, layer in enumerate(gates, 1) for name, z in layer.items()
    ]
    pictures: list[Any] = [averages(gates[number - 1], look.names, number)]
    for name, z in gates[number - 1].items():
        title = f"{name.capitalize()}{'' if name == 'gate' else ' gate'}, layer {number}"
        pictures.append(units_by_token(title, z, look.names, config.units, (0.0, 1.0)))
    if len(cells) == len(layers):
        title = f"Cell state, layer {number}"
        pictures.append(units_by_token(title, cells[number - 1], look.names, config.units, None))
    arrays = {f"layer_{i}_{name}": z for i, layer in enumerate(layers, 1) for name, z in layer.items()}
    return Answer(
        reading=_reading([each for each in counted if each["layer"] == number]) + both_ways(run) + look.left_out,
        numbers={"positions": look.names, "gates": counted},
        arrays=arrays | {f"layer_{i}_cell": c for i, c in enumerate(cells, 1)},
        pictures=pictures,
    )


def is_gate(z: Tensor) -> bool:
    """A gate lies between 0 and 1; what else a cell offers (candidates, filters) is what its gates act on."""
    return bool(((z >= 0) & (z <= 1)).all())


def figures(z: Tensor) -> dict[str, float]:
    """Of a gate [T, N]: its mean, the shares of its entries that are open and closed, and those of units always so."""
    is_open, is_closed = z > OPEN, z < CLOSED
    return {
        "mean": float(z.mean()),
        "open": float(is_open.float().mean()),
        "closed": float(is_closed.float().mean()),
        "units_always_open": float(is_open.all(0).float().mean()),
        "units_always_closed": float(is_closed.all(0).float().mean()),
    }


def averages(gates: dict[str, Tensor], names: list[str], layer: int) -> Plot:
    """The mean over units at each token; a gate alone in a band that holds the middle 80 % of its units."""
    series: list[Series] = []
    for name, z in gates.items():
        low, high = (rounded(torch.quantile(z, q, dim=1)) if len(gates) == 1 else None for q in (0.1, 0.9))  # [T]
        series.append(
            Series(
                name=name,
                x=[float(t) for t in range(len(z))],
                y=rounded(z.mean(1)),
                low=low,
                high=high,
                labels=names if not series and len(names) <= LABELLED else None,
            )
        )
    band = "; the band covers 80 % of the units" if len(gates) == 1 else ""
    return Plot(
        title=f"Gates of layer {layer}, mean over units", x_label="position", y_label="open",
        alt=f"Mean over units of {', '.join(gates)} at each token{band}.", series=series,
    )  # fmt: skip


def units_by_token(title: str, z: Tensor, names: list[str], most: int, limits: tuple[float, float] | None) -> Heatmap:
    """Units of z [T, N] against tokens, sorted by their mean; of many units an even choice."""
    order = z.mean(0).argsort(descending=True)
    kept = order[torch.linspace(0, len(order) - 1, min(most, len(order))).round().long()]  # [n]
    largest = float(z.abs().max())
    low, high = limits or (-largest, largest)
    return Heatmap(
        title=title, alt=f"{len(kept)} of {z.shape[1]} units, sorted by their mean, along the tokens.",
        values=rounded(z[:, kept].T), rows=[str(int(unit)) for unit in kept], columns=names, x_label="token",
        y_label="unit", low=low, high=high, scale="sequential" if limits else "diverging",
    )  # fmt: skip


def _reading(counted: list[dict[str, Any]]) -> str:
    said = "; ".join(
        f"{each['gate']} {each['mean']:.2f} on average, {each['open']:.0%} open, {each['closed']:.0%} closed"
        for each in counted
    )
    return f"1 is open, 0 is closed (counted above {OPEN} and below {CLOSED}). Layer {counted[0]['layer']}: {said}."


QUESTION = QuestionSpec(
    summary="Which units are open and which are closed, token by token?", config=Config, ask=ask, applies=applies
)
