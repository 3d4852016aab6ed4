"""Parameters, counted and by formula.

With p inputs, m units and q outputs an Elman cell has m m + m p + m parameters and its read-out q m + q: 748 for
p = q = 8 and m = 20, eq. (7.2). LSTM: 4 of these cells, eqs (7.16)-(7.17); GRU: 3, eqs (7.18)-(7.19); a transformer
block: eq. (7.32), 3,150,336 for p = 512, N_1 = 2048, H = 8, m = m_v = 64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.layers.attention.attention import MultiHead
from unrolled.layers.attention.blocks import Block
from unrolled.layers.attention.feed_forward import FeedForward
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Elman, LinearUnit, Memoryless
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars, Table
from unrolled.runs.build import count_parameters
from unrolled.runs.run import Run


class Config(config.Config):
    """There is nothing to set."""


@dataclass(frozen=True)
class Formula:
    """What a layer should have by the book, with a remark where it has more or less."""

    text: str
    letters: dict[str, int]
    count: int
    source: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Group:
    """A layer and the tensors in it, by their names there."""

    place: str
    kind: str
    tensors: dict[str, Tensor]
    formula: Formula | None

    @property
    def count(self) -> int:
        return sum(tensor.numel() for tensor in self.tensors.values())


def applies(run: Run) -> str | None:
    if groups(run.model):
        return None
    return f"this {run.config.model} has no parameters and no tables"


def ask(run: Run, value: Any, config: Config) -> Answer:  # noqa: ARG001 (parameters are the same for every input)
    found = groups(run.model)
    parameters, trained = count_parameters(run.model), sum(weight.numel() for weight in run.model.parameters())
    total = sum(group.count for group in found)
    layers = [
        {
            "layer": group.place,
            "kind": group.kind,
            "count": group.count,
            "tensors": {name: list(tensor.shape) for name, tensor in group.tensors.items()},
            "formula": _formula(group),
        }
        for group in found
    ]
    names = [f"{group.kind} ({group.place})" for group in found]
    largest = max(found, key=lambda group: group.count)
    return Answer(
        reading=_reading(found, parameters, bool(trained), total, largest),
        numbers={"parameters": parameters, "trained": trained, "total": total, "layers": layers},
        pictures=[
            table(found, total),
            Bars(
                title="Parameters by layer", alt=f"Number of parameters of each layer; {largest.kind} has the most.",
                names=names, values=[group.count for group in found], x_label="numbers",
            ),
        ],
    )  # fmt: skip


def groups(model: nn.Module) -> list[Group]:
    """Every tensor that is saved, by the layer it belongs to: the outermost one with a formula, or its own module.

    Tied tensors come once. Tables that were counted, not trained, are buffers and belong to it too.
    """
    owners = {place: module for place, module in model.named_modules() if formula_of(module)}
    found: dict[str, dict[str, Tensor]] = {}
    saved = set(model.state_dict())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name not in saved:
            continue
        own = name.rpartition(".")[0]
        place = next((each for each in owners if own == each or own.startswith(f"{each}." if each else "")), own)
        found.setdefault(place, {})[name.removeprefix(f"{place}.")] = tensor
    modules = dict(model.named_modules())
    return [
        Group(place or "model", type(modules[place]).__name__, tensors, formula_of(modules[place]))
        for place, tensors in found.items()
    ]


def formula_of(module: nn.Module) -> Formula | None:
    """The formula of a layer, if it has one."""
    make = next((FORMULAS[kind] for kind in type(module).__mro__ if kind in FORMULAS), None)
    return None if make is None else make(module)


def _memoryless(cell: Any) -> Formula:
    m, p = cell.weight_ih.shape
    return Formula("m p + m", {"m": m, "p": p}, m * p + m)


def _linear_unit(cell: Any) -> Formula:
    m, p = cell.weight_ih.shape
    return Formula("m m + m p", {"m": m, "p": p}, m * m + m * p)


def _elman(cell: Any) -> Formula:
    m, p = cell.weight_ih.shape
    return Formula("m m + m p + m", {"m": m, "p": p}, m * m + m * p + m, "(7.2)")


def _gated(n: int, source: str, biases: int) -> Callable[[Any], Formula]:
    def make(cell: Any) -> Formula:
        m, p = cell.weight_ih.shape[0] // n, cell.weight_ih.shape[1]
        remark = f"torch's form has a second bias: {n} m more" if biases == 2 and cell.bias_hh is not None else ""
        if isinstance(cell, LSTM) and cell.weight_hr is not None:
            remark = "the projection of h changes the count"
        count = n * (m * m + m * p + m)
        return Formula(f"{n} (m m + m p + m)", {"m": m, "p": p}, count, source, remark)

    return make


def _block(block: Any) -> Formula | None:
    plain = type(block.attention.heads) is MultiHead and block.attention.heads.W_q.bias is None
    if not (plain and isinstance(block.feed_forward, FeedForward) and isinstance(block.norm_1, nn.LayerNorm)):
        return None  # it has other parameters
    heads, p, N = block.attention.heads, block.d_in, block.feed_forward.W_1.out_features
    H, m, m_v = heads.n_heads, heads.d_key, heads.d_value
    count = 4 * p + 2 * N * p + N + p + H * (2 * m * p + 2 * m_v * p)
    letters = {"p": p, "N_1": N, "H": H, "m": m, "m_v": m_v}
    return Formula("4 p + 2 N_1 p + N_1 + p + H (2 m p + 2 m_v p)", letters, count, "(7.32)")


def _linear(linear: Any) -> Formula:
    q, m = linear.weight.shape
    if linear.bias is None:
        return Formula("q m", {"q": q, "m": m}, q * m)
    return Formula("q m + q", {"q": q, "m": m}, q * m + q)


def _embedding(table: Any) -> Formula:
    V, p = table.weight.shape
    return Formula("V p", {"V": V, "p": p}, V * p)


def _conv(conv: Any) -> Formula:
    q, k, p = conv.weight.shape
    remark = "lengths and directions apart: q more" if isinstance(conv, NormedConv) else ""
    return Formula("q k p + q", {"q": q, "k": k, "p": p}, q * k * p + q, remark=remark)


FORMULAS: dict[type[nn.Module], Callable[[Any], Formula | None]] = {
    Memoryless: _memoryless,
    LinearUnit: _linear_unit,
    Elman: _elman,
    LSTM: _gated(4, "(7.16)-(7.17)", 2),
    GRU: _gated(3, "(7.18)-(7.19)", 2),
    BookGRU: _gated(3, "(7.18)-(7.19)", 1),
    Block: _block,
    nn.Linear: _linear,
    nn.Embedding: _embedding,
    CausalConv: _conv,
}


def _formula(group: Group) -> dict[str, Any] | None:
    return None if group.formula is None else asdict(group.formula)


def table(found: list[Group], total: int) -> Table:
    """A line per layer with its formula, below it a line per tensor."""
    rows: list[list[str | float | int | None]] = []
    before: list[Formula] = []
    for group in found:
        said, by_formula = "", None
        if group.formula is not None:
            said = "as before" if group.formula in before else written(group.formula)
            by_formula = group.formula.count
            before.append(group.formula)
        place = group.place.replace("layers.", "")
        rows.append([f"{group.kind} {place}", said, group.count, by_formula, _share(group.count, total)])
        for name, tensor in group.tensors.items():
            shape = " x ".join(str(n) for n in tensor.shape) or "1"
            rows.append([f"    {name}", shape, tensor.numel(), None, _share(tensor.numel(), total)])
    known = [group.formula.count for group in found if group.formula is not None]
    rows.append(["total", "", total, sum(known) if len(known) == len(found) else None, "100 %"])
    return Table(
        title="Every tensor of the model", rows=rows,
        alt="One row per layer with its formula and one per tensor, with counts and shares.",
        columns=["layer, tensor", "formula, shape", "count", "formula count", "share"],
    )  # fmt: skip


def written(formula: Formula) -> str:
    letters = ", ".join(f"{letter} = {number}" for letter, number in formula.letters.items())
    return f"{formula.text} {formula.source}".strip() + f", {letters}"


def _share(count: int, total: int) -> str:
    return f"{100 * count / max(total, 1):.1f} %"


def _reading(found: list[Group], parameters: int, trained: bool, total: int, largest: Group) -> str:
    how = "" if trained else ", fitted in closed form"
    others = f", and {total - parameters:,} other numbers in tables" if total > parameters else ""
    other = [group for group in found if group.formula is not None and group.formula.count != group.count]
    apart = ""
    if other:
        formula = other[0].formula
        assert formula is not None
        apart = (
            f" {other[0].kind} has {other[0].count:,} where the formula {formula.source} gives {formula.count:,}"
            f"{f' ({formula.remark})' if formula.remark else ''}."
        )
    share = f"{largest.kind} ({largest.place}) has {_share(largest.count, total)} of all numbers"
    return f"{parameters:,} parameters{how}{others}; {share}.{apart}"


QUESTION = QuestionSpec(
    summary="How many parameters does each tensor have, and how many does the textbook formula give?",
    config=Config,
    ask=ask,
    applies=applies,
    bags=True,
    aliases=("weights", "size"),
)
