"""One run on one process or on several: all that training asks of the others, behind one small seam.

Every process holds the model and the same sample order, and reads its rows of every batch. What is divided is added up
again: gradients, the loss by the count of all targets, the figures. What only one can decide (a clock, a signal) is
decided by the first process, or as soon as any of them was asked. So every process takes the same steps.

    One             one process, for which there is nothing to do
    distributed.py  several, over lightning-fabric; imported only where there are several
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from unrolled.core.batch import Batch
from unrolled.core.errors import Interrupted, UsageError
from unrolled.core.front import option
from unrolled.core.sharing import Others
from unrolled.core.state import State
from unrolled.core.task import Learner, Sampler
from unrolled.runs.config import RunConfig

Value = TypeVar("Value")

NAME = "processes"  # the setting
LOOKED = 8  # batches whose rows are counted
RESTARTS = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"  # what torchrun needs, or processes that it restarts never meet


class Abandoned(Exception):
    """An evaluation that was given up because somebody asked to stop; it is made up for when the run is resumed."""


class GaveUp(Abandoned):
    """Another process has given it up."""


class LostProcess(Interrupted):
    """Another process of the run has ended; what was saved can be resumed."""


class Processes(Protocol):
    """The processes of a run, as one of them sees them; all call the same methods in the same order."""

    rank: int
    n: int
    others: Others | None
    """with whom it evaluates"""

    def setup(self, model: nn.Module) -> None:
        """Give all processes the weights of the first one, or to each of them its part."""
        ...

    def own(self, batch: Batch) -> tuple[Batch, bool]:
        """This process's rows of a batch; False where there is none, and what stands in for it does not count."""
        ...

    def evaluated(self, model: Any) -> Any:
        """What is evaluated: a model that each process can run by itself."""
        ...

    def backward(self, loss: Tensor) -> None:
        """The gradients of this process's share of the loss."""
        ...

    def total(self, count: Tensor) -> Tensor:
        """A count of all processes together."""
        ...

    def mean(self, value: float) -> float:
        """The sum of the shares of a mean that each process has."""
        ...

    def collect(self, weights: Sequence[Tensor]) -> None:
        """Add up the gradients of all processes."""
        ...

    def clip(self, weights: Sequence[Tensor], most: float) -> float:
        """Scale gradients down to a norm of at most so much; what it was."""
        ...

    def heard(self, now: float, asked: bool) -> tuple[float, bool]:
        """The clock of the first process, and whether any of them was asked to stop."""
        ...

    def first(self, make: Callable[[], Value]) -> Value:
        """What the first process makes."""
        ...

    def give_up(self) -> None:
        """Leave a block in which figures are computed together; it ends for all."""
        ...

    def finished(self) -> bool:
        """At the end of such a block: whether nobody has given up."""
        ...

    def part(self, tensor: Tensor) -> Tensor:
        """Of a weight or its gradient, the numbers that this process moves."""
        ...

    def whole(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Tensors of the whole model; those of the optimiser are divided as the weights that they belong to (`of`)."""
        ...

    def load(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        """Take tensors of the whole model."""
        ...

    def divided(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of whole tensors of the optimiser, cut as the weights of the same name are."""
        ...

    def joined(self, state: State) -> State:
        """The carried state of all rows."""
        ...

    def own_state(self, state: State) -> State:
        """Of the state of all rows, that of this process's."""
        ...

    def wait(self) -> None:
        """Until all processes are here."""
        ...

    def close(self) -> None: ...


class One:
    """A process by itself."""

    rank, n = 0, 1
    others: Others | None = None

    def setup(self, model: nn.Module) -> None: ...

    def own(self, batch: Batch) -> tuple[Batch, bool]:
        return batch, True

    def evaluated(self, model: Any) -> Any:
        return model

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def total(self, count: Tensor) -> Tensor:
        return count

    def mean(self, value: float) -> float:
        return value

    def collect(self, weights: Sequence[Tensor]) -> None: ...

    def clip(self, weights: Sequence[Tensor], most: float) -> float:
        return float(nn.utils.clip_grad_norm_(weights, most))

    def heard(self, now: float, asked: bool) -> tuple[float, bool]:
        return now, asked

    def first(self, make: Callable[[], Value]) -> Value:
        return make()

    def give_up(self) -> None: ...

    def finished(self) -> bool:
        return True

    def part(self, tensor: Tensor) -> Tensor:
        return tensor

    def whole(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        return dict(tensors)

    def load(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        model.load_state_dict(tensors)

    def divided(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(tensors)

    def joined(self, state: State) -> State:
        return state

    def own_state(self, state: State) -> State:
        return state

    def wait(self) -> None: ...

    def close(self) -> None: ...


class Launched(NamedTuple):
    """That torchrun has started this process, as one of several."""

    rank: int
    n: int
    restarts: int
    """how often it has started them again"""


def launched() -> Launched | None:
    """Where torchrun says that this process stands; None: nobody has started it as one of several."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    number = {name: int(os.environ.get(name, "0")) for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")}
    found = Launched(number["RANK"], number["WORLD_SIZE"], number["TORCHELASTIC_RESTART_COUNT"])
    return found if found.n > 1 else None


def require_rows(config: RunConfig, sampler: Sampler) -> None:
    """No process may be without data; single batches may be small."""
    rows = max(len(sampler.batch(step).x) for step in range(min(LOOKED, sampler.steps_per_epoch)))
    if rows < config.processes:
        raise UsageError(
            f"{config.processes} processes are too many for this data, whose batches have {rows} "
            f"{'row' if rows == 1 else 'rows'}, so that some would have none: use {option(NAME, max(1, rows))}"
        )


def require_gradients(config: RunConfig, model: nn.Module) -> None:
    """What is shared is the gradient; some models move their weights without one."""
    if isinstance(model, Learner):
        raise UsageError(
            f"the model '{config.model}' moves its own weights, example after example, which cannot be shared by "
            f"{config.processes} processes: leave out {option(NAME)}"
        )


def threads_of_each(n: int) -> int:
    """Threads of each of n processes on this machine, so that all of them together are as many as one had."""
    return max(1, torch.get_num_threads() // n)


def multiple(size: int, of: int) -> int:
    """The largest number of rows up to `size` that so many processes can share equally, at least one each.

    >>> multiple(15, 4), multiple(2, 4)
    (12, 4)
    """
    return max(1, math.floor(size / of)) * of


Order = dict[str, Any]
"""What the first process tells the others to train: the run, its settings, the data."""
