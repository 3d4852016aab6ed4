"""Closed form first: which models are fitted without gradient descent, and to how much of the training data.

One rule for a run, for the baselines beside it, for those of a comparison and for folds that are joined: a model whose
declaration names the task's targets in closed_form is fitted by `solve`, to all training data or, where there is more,
to TOKENS of it, so that its memory is bounded; `budget.train_tokens` says another number.
"""

from __future__ import annotations

from typing import Any

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.core.spec import Ports
from unrolled.core.task import Fitted, Model, Solvable, Task
from unrolled.runs.config import RunConfig

TOKENS = 5_000_000  # the most that models are fitted to unless told otherwise


def applies(config: RunConfig, ports: Ports) -> bool:
    """Whether the model of a run is fitted in closed form; models that answer together were trained before."""
    return config.is_alone and ports.targets in discover.model(config.model).closed_form


def require_weights(config: RunConfig, task: Task, model: Model) -> None:
    """A model that is not fitted in closed form must have something to train."""
    if not applies(config, task.ports()) and not any(True for _ in model.parameters()):
        raise UsageError(
            f"the model '{config.model}' has no trainable weights and no closed form for the targets of "
            f"'{config.task}' ({task.ports().targets})"
        )


def fit(config: RunConfig, task: Task, model: Model) -> Fitted:
    """Fit a model to which `applies`; what was chosen on held-out data, and how much of the training data was used."""
    limit = config.budget.train_tokens or TOKENS
    return task.solve(_solvable(config, model), limit=limit)


def notes(config: RunConfig, fitted: Fitted) -> list[str]:
    """What is to be said of it."""
    found = []
    if fitted.share < 1:
        limit = config.budget.train_tokens or TOKENS
        found.append(
            f"{config.model} was fitted to {fitted.share:.1%} of the training data ({limit:,} tokens); "
            f"{option('train_tokens')} changes this limit"
        )
    if fitted.chosen:
        words = ", ".join(f"{name} = {value}" for name, value in fitted.chosen.items())
        found.append(f"{config.model}: {words}, chosen {fitted.chosen_on}")
    if fitted.unused:
        found.append(f"{config.model} does not use {fitted.unused}")
    return found


def _solvable(config: RunConfig, model: Model) -> Any:
    """The outermost module with a closed form: the body, or what stands around it and knows how to hand it data."""
    for module in model.modules():
        if isinstance(module, Solvable):
            return module
    file = discover.models.load(config.model).__file__
    raise UsageError(f"{file}: it declares closed_form, but the object that make returns has no method solve")
