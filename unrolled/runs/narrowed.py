"""Weights in fewer bits, on request: what a run then generates from, and how much its loss changes.

The weights of the decoder are rounded when a run is opened, so everything that is done with it, in whatever way, is
done with the same numbers; native programs keep and read them in 2 bytes or 1. The change of the loss is measured on
the first predictions that the run keeps (`predictions.jsonl`), with the weights as they are saved and rounded.
"""

from __future__ import annotations

from collections.abc import Iterator

from unrolled.core.batch import Batch
from unrolled.core.causal import Causal, Conditional, decoder_of
from unrolled.core.errors import UsageError
from unrolled.core.finite import require_finite
from unrolled.core.forward import outputs
from unrolled.core.front import option
from unrolled.core.task import Model, Task
from unrolled.engine.builder import CannotLower
from unrolled.engine.forms import FORMS
from unrolled.engine.operations import Form
from unrolled.engine.rounding import round_weights
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import opening

POSITIONS = 4096  # on which the change of the loss is measured, about


def narrow(directory: RunDirectory, task: Task, model: Model, weights: str) -> str:
    """Round the weights of a run that was opened; what that comes to, in a sentence."""
    form = form_of(weights)
    why = "it reads whole sequences and generates nothing"
    if isinstance(model, Causal | Conditional):
        with opening(directory.path):
            batches = [*kept_batches(directory, task)]
            before = loss_of(task, model, batches)
        try:
            kept = round_weights(decoder_of(model), form)
        except CannotLower as reason:
            why = str(reason)
        else:
            after = loss_of(task, model, batches)
            return f"weights in {weights}: {_share(kept.in_form, kept.in_all)}; {_change(before, after, weights)}"
    raise UsageError(f"{option('weights', weights)} does not apply to {directory.path}: {why}")


def form_of(weights: str) -> Form:
    """The form of a name."""
    if weights not in FORMS:
        raise UsageError(f"invalid value {option('weights', weights)}: expected {' or '.join(FORMS)}")
    return FORMS[weights]


def kept_batches(directory: RunDirectory, task: Task) -> Iterator[Batch]:
    """The first examples of which a run keeps predictions, each a batch of its own."""
    n = 0
    for line in directory.read_lines("predictions.jsonl"):
        try:
            batch, _ = task.example(task.input_of(line))
        except NotImplementedError:  # examples of this task are not read one by one
            return
        yield batch
        n += batch.n_targets
        if n >= POSITIONS:
            return


def loss_of(task: Task, model: Model, batches: list[Batch]) -> tuple[float, int]:
    """The sum of the losses of all targets, and their number."""
    total, n = 0.0, 0
    for batch in batches:
        ((there, y),) = outputs(model, [batch])
        total += float(task.emission.losses(y, there.y, there.y_mask).double().sum())
        n += there.n_targets
    require_finite([total])
    return total, n


def _share(some: int, of: int) -> str:
    words = f"{of:,} numbers that a tick multiplies by"
    return f"all {words}" if some == of else f"{some:,} of the {words}, the others are computed and stay float32"


def _change(before: tuple[float, int], after: tuple[float, int], weights: str) -> str:
    n = before[1]
    if n == 0:
        asked = option("weights", weights)
        return (
            f"the run keeps no example to measure the loss on: compare the metrics of evaluate with and without {asked}"
        )
    old, new = before[0] / n, after[0] / n
    return f"the loss of {n:,} positions of its predictions changes from {old:.5g} to {new:.5g} ({new - old:+.2g})"
