"""Neighbours in an embedding table, and a map of it.

    cos(e_a, e_b) = e_a . e_b / (|e_a| |e_b|)

Neighbours are those of the largest cosine; the map shows the table on its first two principal directions. Special
tokens such as <start> are left out of both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.errors import UsageError, nearest
from unrolled.core.inspection import QuestionSpec
from unrolled.data.codecs.text import Codec
from unrolled.inspect.tools.looking import look_at, principal_plane, rounded, vocabulary_of
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars, Plot, Series, Table
from unrolled.runs.run import Run

ASKED = 15  # tokens of the input whose neighbours are listed
SHOWN = 60  # tokens of the map


class Config(config.Config):
    token: str | None = None
    """The token whose neighbours to show; none: the tokens of the input."""
    top: int = Field(5, ge=1, le=1000)
    """Number of neighbours."""
    table: int = Field(1, ge=1)
    """Which embedding table, if the model has several."""


class Named(NamedTuple):
    """An embedding table with names for its rows."""

    place: str
    vectors: Tensor  # [V, D]
    names: list[str]
    first: int  # rows before it are special tokens


def applies(run: Run) -> str | None:
    if tables(run.model):
        return None
    return f"this {run.config.model} has no embedding table (runs on tokens have one, unless input = one-hot)"


def ask(run: Run, value: Any, config: Config) -> Answer:
    found = tables(run.model)
    if config.table > len(found):
        raise UsageError(f"invalid value table = {config.table}: this model has {len(found)}")
    table = named(run, *found[config.table - 1])
    x = look_at(run, value, 10_000).x
    x = x if x.is_floating_point() or x.dim() == 2 else x[..., 0]  # letters come behind the word
    tokens = [] if x.is_floating_point() else [t for t in dict.fromkeys(x[0].tolist()) if table.first <= t]
    tokens = [t for t in tokens if t < len(table.names)] or list(range(table.first, len(table.names)))
    asked = tokens[:ASKED] if config.token is None else [row_of(config.token, table, run)]
    near = neighbours(table, asked, config.top)
    plane = principal_plane(table.vectors[table.first :])
    return Answer(
        reading=_reading(table, asked, near, plane.shares),
        numbers={
            "table": table.place,
            "tokens": len(table.names),
            "width": table.vectors.shape[1],
            "effective_dimension": plane.dimension,
            "neighbours": {
                table.names[t]: [{"token": table.names[n], "cosine": c} for n, c in row]
                for t, row in zip(asked, near, strict=True)
            },
        },
        arrays={"vectors": table.vectors, "map": plane.points, "asked": torch.tensor(asked)},
        pictures=[listed(table, asked, near, config), mapped(table, plane, asked if config.token else tokens)],
    )


def tables(model: nn.Module) -> list[tuple[str, nn.Embedding]]:
    """Every embedding table of a model by its place; one that is used twice (tied) comes once."""
    return [(place, module) for place, module in model.named_modules() if isinstance(module, nn.Embedding)]


def named(run: Run, place: str, module: nn.Embedding) -> Named:
    """Rows by the codec's names, classes behind them; by number where the table is of something else."""
    vectors = module.weight.detach().float().cpu()
    known = vocabulary_of(run)
    if known is None or len(vectors) != known.size:
        return Named(place, vectors, [str(i) for i in range(len(vectors))], 0)
    return Named(place, vectors, known.rows(), known.specials)


def row_of(token: str, table: Named, run: Run) -> int:
    """The row of a token by its name, or of a text that is one token."""
    if token in table.names:
        return table.names.index(token)
    known = vocabulary_of(run)
    is_text = known is not None and isinstance(known.codec, Codec)
    ids = [int(i) for i in known.codec.encode(token)] if known is not None and is_text and token else []
    if len(ids) == 1 and table.first <= ids[0] < len(table.names):
        return ids[0]
    raise UsageError(f"'{token}' is not a token of this run; {nearest(token, table.names)}"[:400])


def neighbours(table: Named, asked: list[int], top: int) -> list[list[tuple[int, float]]]:
    """The rows of the largest cosine to each asked one, itself left out."""
    units = nn.functional.normalize(table.vectors.double(), dim=1)  # [V, D]
    cosines = units[asked] @ units.T  # [n, V]
    cosines[:, : table.first] = -torch.inf
    cosines[torch.arange(len(asked)), asked] = -torch.inf
    best = cosines.topk(min(top, cosines.shape[1]), dim=1)
    return [
        [(n, c) for n, c in zip(rows, values, strict=True) if c > -torch.inf]
        for rows, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def listed(table: Named, asked: list[int], near: list[list[tuple[int, float]]], config: Config) -> Table | Bars:
    if config.token is not None:
        name = table.names[asked[0]]
        return Bars(
            title=f"Nearest to {name}", alt=f"Cosine similarity of {name} and its nearest tokens.", x_label="cosine",
            names=[table.names[n] for n, _ in near[0]], values=[round(c, 5) for _, c in near[0]],
        )  # fmt: skip
    rows: list[list[str | float | int | None]] = [
        [table.names[t], ", ".join(f"{table.names[n]} ({c:.2f})" for n, c in row)]
        for t, row in zip(asked, near, strict=True)
    ]
    return Table(
        title="Nearest tokens", alt="Tokens of the input and their nearest tokens (cosine similarity).",
        columns=["token", "nearest (cosine similarity)"], rows=rows,
    )  # fmt: skip


def mapped(table: Named, plane: Any, tokens: list[int]) -> Plot:
    """The tokens of the input and, while there is room, others."""
    rest = [t for t in range(table.first, len(table.names)) if t not in set(tokens)]
    series = []
    for name, some in (("of the input", tokens[:SHOWN]), ("others", rest[: max(SHOWN - len(tokens), 0)])):
        if some:
            x, y = rounded(plane.points[[t - table.first for t in some]].T)
            series.append(Series(name=name, x=x, y=y, style="points", labels=[table.names[t] for t in some]))
    first, second = (f"{share:.0%} of the variance" for share in plane.shares)
    return Plot(
        title="Map of the embedding table", series=series, x_label=f"first component, {first}",
        y_label=f"second component, {second}", alt="Tokens on the first two principal components of the table.",
    )  # fmt: skip


def _reading(table: Named, asked: list[int], near: list[list[tuple[int, float]]], shares: list[float]) -> str:
    pairs = [(row[0][1], t, row[0][0]) for t, row in zip(asked, near, strict=True) if row]
    closest = ""
    if pairs:
        cosine, a, b = max(pairs)
        closest = f" Closest: {table.names[a]} and {table.names[b]} (cosine {cosine:.2f})."
    return (
        "Tokens that the model treats alike are close to each other; a cosine similarity of 1 is the same "
        f"direction, 0 is orthogonal.{closest} The map explains {sum(shares):.0%} of the "
        f"variance{', so rely on the cosine similarities rather than on the map' if sum(shares) < 0.5 else ''}."
    )


QUESTION = QuestionSpec(
    summary="Which tokens are close to each other in the embedding table?",
    config=Config,
    ask=ask,
    applies=applies,
    aliases=("neighbours", "neighbors"),
)
