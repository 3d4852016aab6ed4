"""Which instances of a bag mattered: the weights of the pooling."""

from __future__ import annotations

from typing import Any

import torch

from unrolled.core.forward import evaluating, forward
from unrolled.core.trace import trace
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars
from unrolled.runs.run import Run

MOST = 20  # instances that are told and drawn
LONG = 40  # letters of a name


def pooled_weights(run: Run, value: Any) -> tuple[torch.Tensor | None, list[str]]:
    """The weight of each instance [I], the mean over queries and heads, and their names; None: it has no weights."""
    batch, names = run.task.example(value)
    with evaluating(run.model) as device, trace() as seen:
        forward(run.model, batch.to(device))
    found = seen["attention"]
    return (found[-1][0].double().cpu().mean((0, 1)) if found else None), names


def why_no_weights(run: Run) -> str | None:
    if pooled_weights(run, run.first_input())[0] is not None:
        return None
    return (
        f"bags are pooled by '{run.task.ports().pooling}' here, which has no weights; those of attention, query and "
        "hopfield say which instances mattered"
    )


def weights_of_instances(run: Run, value: Any) -> Answer:
    weights, names = pooled_weights(run, value)
    assert weights is not None
    order = weights.argsort(descending=True, stable=True)[:MOST].tolist()
    first = [{"instance": i, "name": names[i], "weight": float(weights[i])} for i in order]
    total = float(weights[order].sum())
    entropy = -float(torch.xlogy(weights, weights).sum())
    n = len(names)
    largest = f"instance {order[0]}" if names[order[0]] == str(order[0]) else f"instance {order[0]}, {names[order[0]]}"
    return Answer(
        reading=(
            f"The weights say how much each of the {n:,} instances counts in the prediction; they sum to one. The "
            f"{len(order)} largest have {total:.0%} of it, the largest is that of {largest} ({weights[order[0]]:.3f}; "
            f"{1 / n:.2g} if all counted the same)."
        ),
        numbers={"n_instances": n, "instances": first, "entropy": entropy},
        arrays={"weights": weights},
        pictures=[
            Bars(
                title=f"Weights of the {len(order)} instances that count most, of {n:,}",
                alt="The longer the bar, the more the instance counts in the prediction for the bag.",
                names=[_called(each["instance"], each["name"]) for each in first],
                values=[round(each["weight"], 5) for each in first],
                x_label="weight",
            )
        ],
    )


def _called(number: Any, name: Any) -> str:
    text = str(name)
    short = text if len(text) <= LONG else f"{text[:LONG]}…"
    return short if text == str(number) else f"{number} {short}"
