"""Examples on which models disagree, from their predictions.

With l[m, i] the loss of model m on example i, and the mean of a model taken off so that one which is worse everywhere
does not decide,

    d_i = max_m (l[m, i] - mean_j l[m, j]) - min_m (l[m, i] - mean_j l[m, j])

Where predictions have no loss, examples on which most different things were predicted come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unrolled.pictures.letters import shortened
from unrolled.report.group import Group
from unrolled.report.read import number

LOSSES = ("nats_per_token", "loss", "nats", "error")
ANSWERS = ("prediction", "predicted", "output", "label")
INPUTS = ("text", "input", "source", "example")
SHOWN = 8
LONGEST = 420  # letters of an input


@dataclass(frozen=True)
class Answer:
    label: str
    words: str
    is_best: bool


@dataclass(frozen=True)
class Example:
    """An input, what was true where that is known, and what each model made of it, the best first."""

    text: str
    target: str
    answers: list[Answer]


@dataclass(frozen=True)
class Disagreement:
    unit: str
    examples: list[Example]
    is_loss: bool  # of which the lowest is the best, and comes first


def disagreement(group: Group) -> Disagreement | None:
    """The examples on which models differ most; None where there are not two models with the same examples."""
    lines = {label: run.predictions for label, run in group.first_runs() if run.predictions}
    lines = _same_inputs(lines)
    if len(lines) < 2:
        return None
    first = next(iter(lines.values()))
    loss = next((key for key in LOSSES if all(number(line.get(key)) is not None for line in first)), None)
    if loss is not None:
        lines = {
            label: each for label, each in lines.items() if all(number(line.get(loss)) is not None for line in each)
        }
        return _by_loss(lines, loss) if len(lines) > 1 else None
    answer = next((key for key in ANSWERS if key in first[0]), None)
    return _by_answer(lines, answer) if answer is not None else None


def _input(line: dict[str, Any]) -> str:
    return str(next((line[key] for key in INPUTS if isinstance(line.get(key), str)), ""))


def _target(line: dict[str, Any]) -> str:
    return str(next((line[key] for key in ("target", "truth") if line.get(key) is not None), ""))


def _same_inputs(lines: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Those whose examples are the same, in the same order, as those of the best model."""
    if not lines:
        return {}
    first = [_input(line) for line in next(iter(lines.values()))]
    return {label: each for label, each in lines.items() if [_input(line) for line in each] == first and any(first)}


def _by_loss(lines: dict[str, list[dict[str, Any]]], key: str) -> Disagreement:
    values = {label: [float(line[key]) for line in each] for label, each in lines.items()}
    means = {label: sum(each) / len(each) for label, each in values.items()}
    n = len(next(iter(values.values())))
    apart = []
    for i in range(n):
        centred = [each[i] - means[label] for label, each in values.items()]
        apart.append((max(centred) - min(centred), -i))
    first = next(iter(lines.values()))
    examples = []
    for _, minus_i in sorted(apart, reverse=True)[:SHOWN]:
        i = -minus_i
        ranked = sorted(values, key=lambda label: values[label][i])
        answers = [Answer(label, f"{values[label][i]:.3f}", label == ranked[0]) for label in ranked]
        examples.append(Example(shortened(_input(first[i]), LONGEST), _target(first[i]), answers))
    return Disagreement(key.replace("_", " "), examples, is_loss=True)


def _by_answer(lines: dict[str, list[dict[str, Any]]], key: str) -> Disagreement | None:
    first = next(iter(lines.values()))
    said = {label: [str(line.get(key, "")) for line in each] for label, each in lines.items()}
    order = sorted(range(len(first)), key=lambda i: -len({each[i] for each in said.values()}))
    examples = []
    for i in order[:SHOWN]:
        if len({each[i] for each in said.values()}) > 1:
            target = _target(first[i])
            answers = [
                Answer(label, shortened(each[i], 80), bool(target) and each[i] == target)
                for label, each in said.items()
            ]
            examples.append(Example(shortened(_input(first[i]), LONGEST), target, answers))
    return Disagreement(key.replace("_", " "), examples, is_loss=False) if examples else None
