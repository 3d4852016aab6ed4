"""Attention weights, by layer and head.

    alpha^(t) = softmax over tau of s(z_q^(t), z_k^(tau)),        sum over tau of alpha_tau^(t) = 1        eq. (7.20)

Row t of a picture is alpha^(t) (Fig. 7.11): a grid of tokens for self-attention, target by source for attention to a
source. The entropy of a row is 0 when it looks at one position only and log n when it looks at n alike. Of a run that
reads bags, these are the weights of its pooling: which instances count.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.errors import UsageError
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.bags import weights_of_instances, why_no_weights
from unrolled.inspect.tools.looking import Look, glance, look_at, models_where, reads_whole, rounded, vocabulary_of
from unrolled.pictures.alignment import is_of_source
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Heatmap
from unrolled.runs.run import Run

MOST_LAYERS, MOST_HEADS = 6, 8  # pictures
PAST, INPUT = "earlier positions and itself", "positions of the input"  # what is looked at
SOURCE, REGIONS = "positions of the source", "regions of the source"


class Config(config.Config):
    length: int = Field(48, ge=1, le=4096)
    """Number of positions to show, from the first."""
    layer: int = Field(0, ge=0)
    """The layer whose heads are drawn individually, counted from 1; 0: the last layer."""


def applies(run: Run) -> str | None:
    if run.task.ports().pooling:
        return why_no_weights(run)
    if glance(run).seen["attention"]:
        return None
    attending = models_where(lambda _, seen: bool(seen["attention"]))
    return f"this {run.config.model} has no attention layers; models that have: {', '.join(attending)}"


def ask(run: Run, value: Any, config: Config) -> Answer:
    if run.task.ports().pooling:
        return weights_of_instances(run, value)
    look = look_at(run, value, config.length)
    layers = [weights[0].double().cpu() for weights in look.seen["attention"]]  # [H, T, S] each
    number = config.layer or len(layers)
    if number > len(layers):
        raise UsageError(f"invalid value layer = {number}: this model has {len(layers)} attention layer(s)")
    off = max(deviation(alpha) for alpha in layers)
    heads = [
        {"layer": i, "head": h, **figures(alpha, at := axes(alpha, look, run)[2]), "looks_at": at}
        for i, layer in enumerate(layers, 1)
        for h, alpha in enumerate(layer, 1)
    ]
    shown = [(f"layer {i}, mean of {len(layer)} heads", layer.mean(0)) for i, layer in spread(layers)]
    chosen = layers[number - 1]
    if len(chosen) > 1:
        shown += [(f"layer {number}, head {h}", alpha) for h, alpha in enumerate(chosen[:MOST_HEADS], 1)]
    return Answer(
        reading=_reading(heads, off) + look.left_out,
        numbers={"positions": look.names, "largest_deviation_from_one": off, "heads": heads},
        arrays={f"layer_{i}": layer for i, layer in enumerate(layers, 1)},
        pictures=[picture(title, alpha, look, run) for title, alpha in shown],
    )


def deviation(alpha: Tensor) -> float:
    """How far the sum of a row is from 1; a row that may see nothing is all zeros and does not count."""
    sums = alpha.sum(-1)
    return float(torch.where(sums == 0, 0.0, (sums - 1).abs()).max())


def figures(alpha: Tensor, looks_at: str) -> dict[str, float]:
    """What a head [T, S] does on average; distances count from the query's own place among the keys, if it has one."""
    T, S = alpha.shape
    entropy = -torch.xlogy(alpha, alpha).sum(-1)  # [T]
    sharpness = {
        "entropy": float(entropy.mean()),
        "entropy_if_even": float((alpha > 0).sum(-1).clamp(min=1).log().mean()),
    }
    if looks_at in (SOURCE, REGIONS) or (looks_at == INPUT and T != S):
        return sharpness
    back = torch.arange(T)[:, None] + (S - T) - torch.arange(S)  # [T, S]
    return sharpness | {
        "distance": float((alpha * back.abs()).sum(-1).mean()),
        "on_itself": float(alpha[back == 0].mean()) if T <= S else 0.0,
        "on_previous": float(alpha[back == 1].mean()) if S > 1 else 0.0,
    }


def spread(layers: list[Tensor]) -> list[tuple[int, Tensor]]:
    """At most MOST_LAYERS layers, the first and the last among them, with their numbers."""
    n = len(layers)
    some = {round(i * (n - 1) / max(MOST_LAYERS - 1, 1)) for i in range(MOST_LAYERS)} if n > MOST_LAYERS else range(n)
    return [(i + 1, layers[i]) for i in sorted(some)]


def picture(title: str, alpha: Tensor, look: Look, run: Run) -> Heatmap:
    rows, columns, x_label = axes(alpha, look, run)
    who = "target token" if x_label in (SOURCE, REGIONS) else "query position"
    return Heatmap(
        title=f"Attention weights, {title}",
        alt=f"Each row shows the attention weights of one position over {x_label}; rows sum to one.",
        values=rounded(alpha), rows=rows, columns=columns, x_label=x_label, y_label=who, low=0.0,
    )  # fmt: skip


def axes(alpha: Tensor, look: Look, run: Run) -> tuple[list[str], list[str], str]:
    """Names of rows and columns: a source has its own, self-attention those of the input behind what came before it."""
    T, S = alpha.shape
    rows = look.names if len(look.names) == T else [str(t) for t in range(T)]
    if reads_whole(run):
        asks = rows if T != 1 or S == 1 else ["answer"]  # a readout that asks once
        return asks, look.names if len(look.names) == S else [str(s) for s in range(S)], INPUT
    source = look.source
    if source is not None and source.dim() > 1 and is_of_source(alpha, source.shape[1]):
        return written(look, T), run.task.source_names(source[0]), SOURCE
    if source is not None and source.dim() > 2 and is_of_source(alpha, S):  # an encoder that made other positions of it
        return written(look, T), [str(s) for s in range(S)], REGIONS
    known = vocabulary_of(run)
    labels = () if known is None else known.names
    before = [f"({labels[int(source[0])]})"] if labels and source is not None else []
    older = S - T - len(before)
    return rows, [*(f"-{i}" for i in range(older, 0, -1)), *before[: S - T], *rows][-S:], PAST


def written(look: Look, T: int) -> list[str]:
    """The tokens that are written at the T positions of a target: each is the input of the next."""
    names = [*look.names[1:], look.follows]
    return names if len(names) == T else [str(t) for t in range(T)]


def _reading(heads: list[dict[str, Any]], off: float) -> str:
    sums = (
        f"each row sums to one (within {off:.0e})" if off < 1e-3 else f"rows do not sum to one: off by up to {off:.2g}"
    )
    sharp = min(heads, key=lambda head: head["entropy"])
    far = max((head for head in heads if "distance" in head), key=lambda head: head["distance"], default=None)
    farthest = ""
    if far is not None:
        who, distance = f"head {far['head']} of layer {far['layer']}", far["distance"]
        farthest = f", the one with the longest reach is {who} ({distance:.1f} positions away on average)"
    return (
        f"Row t shows the attention weights of position t; {sums}. The sharpest is head {sharp['head']} of "
        f"layer {sharp['layer']} (entropy {sharp['entropy']:.2f} nats, {sharp['entropy_if_even']:.2f} for "
        f"uniform weights){farthest}."
    )


QUESTION = QuestionSpec(
    summary="Which positions does each position attend to, by layer and head? Which instances of a bag count?",
    config=Config,
    ask=ask,
    applies=applies,
    bags=True,
)
