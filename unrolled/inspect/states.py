"""The state along the input.

Recurrent layers offer h_t by its parts (of an LSTM h and c). Of any other model the state after each position is taken
as one vector: those of its tensors that keep their shape. The effective dimension is (sum of variances)^2 over the sum
of their squares, over principal directions: 1 for a state that moves along a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.errors import UsageError
from unrolled.core.forward import carries
from unrolled.core.inspection import QuestionSpec
from unrolled.core.state import State
from unrolled.inspect.tools.looking import (
    Look,
    Plane,
    both_ways,
    glance,
    look_at,
    principal_plane,
    reads_whole,
    rounded,
)
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Plot, Series
from unrolled.runs.run import Run

SATURATED = 0.97  # tanh(2.1)

Paths = dict[str, Tensor]  # name -> [T, N]


class Config(config.Config):
    length: int = Field(40, ge=1, le=4096)
    """Number of positions to show, from the first."""
    layer: int = Field(0, ge=0)
    """The layer whose trajectory is drawn, counted from 1; 0: the last layer."""


def applies(run: Run) -> str | None:
    look = glance(run)
    if paths_by_layer(look):
        return None
    if reads_whole(run):
        return f"this {run.config.model} reads the whole input at once, so it has no state"
    if not carries(run.model) or any(leaf.is_floating_point() for leaf in moving(look.states[-1])):
        return f"the state of this {run.config.model} grows while it reads, so it has no trajectory in a fixed space"
    return f"the state of this {run.config.model} holds no real numbers"


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at(run, value, config.length)
    layers = paths_by_layer(look)
    number = config.layer or len(layers)
    if number > len(layers):
        raise UsageError(f"invalid value layer = {number}: this model has {len(layers)} layer(s) with a state")
    planes = {name: principal_plane(path) for name, path in layers[number - 1].items()}
    every = [(i, name, path) for i, paths in enumerate(layers, 1) for name, path in paths.items()]
    from_cell = bool(look.seen["parts"])
    figures = [{"layer": i, "part": name, **measured(path, from_cell and name == "state")} for i, name, path in every]
    pictures = [trajectory(name, number, plane, look.names) for name, plane in planes.items()]
    return Answer(
        reading=_reading([each for each in figures if each["layer"] == number]) + both_ways(run) + look.left_out,
        numbers={"positions": look.names, "states": figures},
        arrays={f"layer_{i}_{name}": path for i, name, path in every},
        pictures=[*pictures, norms(every, look.names)],
    )


def paths_by_layer(look: Look) -> list[Paths]:
    """The states along the input, by layer and part; one layer for a model whose layers offer none."""
    parts = look.seen["parts"]
    if parts:
        return [{name: path[0].float().cpu() for name, path in layer.items()} for layer in parts]
    each = [list(moving(state)) for state in look.states]
    kept = [
        leaves for leaves in zip(*each, strict=True)
        if leaves[0].is_floating_point() and leaves[0].numel() and len({leaf.shape for leaf in leaves}) == 1
    ]  # fmt: skip
    if not kept:
        return []
    return [{"state": torch.cat([torch.stack(leaves).flatten(1) for leaves in kept], dim=1).float().cpu()}]  # [T, N]


def moving(state: State) -> Iterator[Tensor]:
    """The tensors of a state but for those in Fixed, which no tick changes."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from moving(value)
    elif isinstance(state, tuple):
        for value in state:
            yield from moving(value)


def measured(path: Tensor, bounded: bool) -> dict[str, Any]:
    """Figures of a path [T, N]; saturation only of an h that stays within -1 and 1."""
    within = bounded and bool((path.abs() <= 1).all())
    norm = path.norm(dim=1)  # [T]
    return {
        "units": path.shape[1],
        "norm_first": float(norm[0]),
        "norm_last": float(norm[-1]),
        "step": float((path[1:] - path[:-1]).norm(dim=1).mean()) if len(path) > 1 else 0.0,
        "saturated": float((path.abs() > SATURATED).float().mean()) if within else None,
        "effective_dimension": principal_plane(path).dimension,
    }


def trajectory(part: str, layer: int, plane: Plane, names: list[str]) -> Plot:
    first, second = (f"{share:.0%} of the variance" for share in plane.shares)
    x, y = rounded(plane.points.T)
    return Plot(
        title=f"Trajectory of the {part}, layer {layer}",
        alt=f"The {part} after each token on its first two principal components ({first}, {second}).",
        series=[
            Series(name="path", x=x, y=y, style="line"),
            Series(name="after token", x=x, y=y, style="points", labels=names),
        ],
        x_label=f"first component, {first}", y_label=f"second component, {second}",
    )  # fmt: skip


def norms(every: list[tuple[int, str, Tensor]], names: list[str]) -> Plot:
    times = [float(t) for t in range(len(names))]
    series = [Series(name=f"layer {i}, {name}", x=times, y=rounded(path.norm(dim=1))) for i, name, path in every]
    return Plot(
        title="Norm of the state along the input", x_label="position", y_label="Euclidean norm", series=series,
        alt="Euclidean norm of the state after each position, one line per layer and part.",
    )  # fmt: skip


def _reading(figures: list[dict[str, Any]]) -> str:
    said = []
    for each in figures:
        words = f"the {each['part']} ({each['units']} units) uses about {each['effective_dimension']:.1f} directions"
        if each["saturated"] is not None:
            words += f", {each['saturated']:.1%} of its values are saturated (beyond {SATURATED})"
        said.append(f"{words}, and its norm changes from {each['norm_first']:.3g} to {each['norm_last']:.3g}")
    return f"Points close to each other are similar states. Layer {figures[0]['layer']}: " + ("; ".join(said) + ".")


QUESTION = QuestionSpec(
    summary="How does the state change while the input is read, and does it saturate?",
    config=Config,
    ask=ask,
    applies=applies,
    aliases=("hidden", "hidden-states"),
)
