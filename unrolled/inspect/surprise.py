"""The surprise at each token.

    surprise_t = -log p(x_{t+tau} | x_1 .. x_t)        nats, tau = ahead; eq. (7.5)

The sum over the text is minus its log-probability, as `unrolled score` gives it. One bit is log 2 = 0.693 nats.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.batch import Batch
from unrolled.core.emission import Finite
from unrolled.core.errors import UsageError
from unrolled.core.forward import outputs
from unrolled.core.inspection import QuestionSpec
from unrolled.core.tokens import EMPTY
from unrolled.inspect.tools.looking import look_at
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Picture, Table, Tokens
from unrolled.runs.run import Run

BEFORE = 12  # tokens shown before a surprising place


class Config(config.Config):
    top: int = Field(5, ge=1)
    """Number of alternatives to show at each position."""
    places: int = Field(10, ge=1)
    """Number of most surprising positions to list."""
    length: int = Field(4096, ge=1)
    """Maximum number of positions of the text to read."""


def applies(run: Run) -> str | None:
    ports = run.task.ports()
    if ports.answers != "next" or not ports.n_tokens or ports.d_out != ports.n_tokens or _names(run) is None:
        other = "; `unrolled score` shows how surprising each value is" if ports.answers == "horizon" else ""
        return f"the task '{run.config.task}' does not predict tokens{other}"
    return None


def _names(run: Run) -> Any:
    """What names the tokens that are predicted; None: none are."""
    known = run.task.vocabularies().get("head")
    return None if known is None else known.codec


def surprises(run: Run, batch: Batch) -> tuple[Tensor, Tensor]:
    """The surprise [T] and the log-probabilities of all tokens [T, V], at the positions that have a target."""
    y = next(outputs(run.model, [batch]))[1].cpu()  # [1, T, V]
    real = batch.y[0] != EMPTY
    emission = run.task.emission
    assert isinstance(emission, Finite)
    return emission.losses(y, batch.y)[0, real], emission.log_probabilities(y[0, real])


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at(run, value, config.length)
    batch, left_out = look.batch.to("cpu"), look.left_out
    nats, log_p = surprises(run, batch)
    if len(nats) == 0:
        raise UsageError("there are no tokens to predict in this text: give a longer one")
    codec = _names(run)
    assert codec is not None
    names = [codec.name(int(token)) for token in batch.y[0] if token != EMPTY]
    best = log_p.exp().topk(min(config.top, log_p.shape[1]))  # [T, top]
    expected = [
        [f"{codec.name(int(token))} {p:.2f}" for p, token in zip(row_p, row, strict=True)]
        for row_p, row in zip(best.values.tolist(), best.indices, strict=True)
    ]
    each = nats.tolist()
    order = sorted(range(len(each)), key=lambda t: -each[t])[: config.places]
    total = float(nats.double().sum())
    numbers: dict[str, Any] = {
        "tokens": len(each), "nats": total, "nats_per_token": total / len(each),
        "bits_per_token": total / len(each) / math.log(2),
        "first_choice_right": float((best.indices[:, 0] == batch.y[0][batch.y[0] != EMPTY]).double().mean()),
        "places": [
            {"position": t, "token": names[t], "nats": each[t], "p": math.exp(-each[t]), "expected": expected[t]}
            for t in order
        ],
    }  # fmt: skip
    pictures: list[Picture] = [_tokens(names, each, expected), _table(names, each, expected, order)]
    arrays = {"nats": nats, "expected": best.indices, "expected_p": best.values}
    return Answer(_reading(numbers) + left_out, numbers, arrays, pictures)


def _tokens(names: list[str], nats: list[float], expected: list[list[str]]) -> Tokens:
    hints = [
        f"{n:.2f} nats, p = {math.exp(-n):.3g}; expected: {', '.join(words)}"
        for n, words in zip(nats, expected, strict=True)
    ]
    return Tokens(
        title="Surprise of each token", alt="The text, with each token coloured by its surprise in nats.",
        tokens=names, values=nats, hints=hints, low=0.0, high=max(max(nats), 1.0), unit="nats",
    )  # fmt: skip


def _table(names: list[str], nats: list[float], expected: list[list[str]], order: list[int]) -> Table:
    rows: list[list[str | float | int | None]] = [
        [t, "".join(names[max(t - BEFORE, 0) : t]), names[t], round(nats[t], 2), ", ".join(expected[t])] for t in order
    ]
    return Table(
        title="Most surprising tokens", alt="Position, context, token, surprise and alternatives.",
        columns=["position", "after", "token", "nats", "expected instead"], rows=rows,
    )  # fmt: skip


def _reading(numbers: dict[str, Any]) -> str:
    worst = numbers["places"][0]
    return (
        f"{numbers['nats_per_token']:.3f} nats ({numbers['bits_per_token']:.3f} bits) per token over "
        f"{numbers['tokens']} tokens; the most probable token was correct in "
        f"{numbers['first_choice_right']:.0%} of the cases. Most surprising is '{worst['token']}' at position "
        f"{worst['position']} ({worst['nats']:.2f} nats), where {', '.join(worst['expected'][:3])} were "
        "expected. 0.7 nats corresponds to a choice between two equally probable tokens, 2.3 nats among ten."
    )


QUESTION = QuestionSpec(
    summary="Which tokens of a text surprise the model, and what did it expect instead?",
    config=Config,
    ask=ask,
    applies=applies,
    aliases=("perplexity", "loss"),
)
