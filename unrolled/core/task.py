"""What a task is: the questions that training, saved runs and comparisons ask of it. They know nothing else of a task.

A task file defines `Config` (its own settings) and `Task`, a subclass of the class here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.config import Config
from unrolled.core.emission import Emission
from unrolled.core.metric import Metric
from unrolled.core.spec import Asks, Ports

Model = Causal | Conditional | Encoder


Known = Iterable[tuple[Tensor, Tensor, Tensor]]
"""Examples with their targets, (x, mask, y) some at a time: what a closed form of a task with given targets is handed,
for the fit and, as `held_out`, for the choice of what it leaves open; none where there are no others."""


@runtime_checkable
class Solvable(Protocol):
    """A body, or a model with such a body, that is fitted in closed form to what the task hands it."""

    def solve(self, data: Any) -> Any: ...


def share_of(size: int, limit: int | None) -> float:
    """The share of so many tokens that about `limit` of them are.

    >>> share_of(200, 50), share_of(20, 50), share_of(200, None)
    (0.25, 1.0, 1.0)
    """
    return 1.0 if limit is None or size <= limit else limit / size


class Fitted(NamedTuple):
    """How a model was fitted in closed form."""

    share: float = 1.0  # of the training data that was used
    chosen: Mapping[str, Any] = {}  # settings that held-out data decided, by name
    chosen_on: str = ""  # which data, as a sentence goes on: on validation data


def fitted(section: Any, size: int, limit: int | None, fit: Callable[[Any], Any]) -> Fitted:
    """Fit to a section of so many tokens, or to the share of it that has about `limit`."""
    share = share_of(size, limit)
    return Fitted(share, fit(section.share(share)) or {}, "on training data")


class Given(NamedTuple):
    """One input to predict for, as the task takes it."""

    value: Any
    condition: str | None = None
    names: Mapping[str, Any] = {}
    """what tells it apart in the data, such as the id of a series"""


class Baseline(NamedTuple):
    """A model that every result is set beside, by name."""

    label: str
    model: str
    settings: Mapping[str, Any]


class Guess(NamedTuple):
    """That some data is meant for a task."""

    certainty: float  # 0 to 1; the surest task is taken
    why: str


class Explained(NamedTuple):
    """An answer that a model gave, as a function: what is asked of an explanation is what moved it."""

    name: str
    what: str  # what the function is: log p, or the name of a number
    unit: str
    of: Callable[[Tensor], Tensor]  # outputs y [n, S', D'] -> one number for each row [n]


class Use(NamedTuple):
    """Something that a saved run of a task can do: `unrolled VERB RUN WORDS`."""

    what: str
    verb: str
    words: tuple[str, ...]


class Vocabulary(NamedTuple):
    """What the rows of a table or of a head stand for: the ids of a codec, and names that follow them."""

    codec: Any  # has to_json()
    names: tuple[str, ...] = ()

    def meaning(self) -> tuple[str, tuple[str, ...]]:
        """Equal where rows stand for the same."""
        return self.codec.to_json(), self.names


class Sampler(Protocol):
    """Training batches as a pure function of the step number, so that a position in the data is one integer."""

    steps_per_epoch: int
    tokens_per_step: int
    notes: list[str]  # what differs from what was asked for, such as a smaller batch

    def batch(self, step: int) -> Batch: ...


class Ledger:
    """Statistics of every unit of some data (an example, or a piece of a stream), by metric: what intervals are from.

    They are added over units before the formula of the metric is applied; those of a unit that was not measured are
    NaN. `score` is the metric that `add` is about; `seconds` is how long texts may be written out.

    >>> ledger = Ledger("nats")
    >>> ledger.add(torch.tensor([2, 0, 2]), torch.tensor([1.0, 3.0, 4.0]), torch.tensor([1, 2, 1]))
    >>> ledger.statistics["nats"].tolist()
    [[3.0, 2.0], [nan, nan], [5.0, 2.0]]
    """

    def __init__(self, score: str, seconds: float = math.inf) -> None:
        self.score, self.seconds = score, seconds
        self.unit = "examples"  # what the units are
        self.statistics: dict[str, Tensor] = {}  # [U, k]

    def add(self, units: Tensor, totals: Tensor, counts: Tensor, unit: str = "") -> None:
        """Add to the units (long, any shape, not negative) the total and count that stand in the same places.

        `unit` says what they are where they are not examples.
        """
        self.unit = unit or self.unit
        self.put(self.score, units.flatten(), torch.stack([totals.flatten().double(), counts.flatten().double()], 1))

    def put(self, metric: str, units: Tensor, statistics: Tensor) -> None:
        """Add statistics [n, k] of a metric to the units [n]."""
        units, statistics = units.cpu(), statistics.cpu().double()
        kept = self.statistics.get(metric, statistics[:0])
        missing = int(units.max()) + 1 - len(kept) if units.numel() else 0
        if missing > 0:
            kept = torch.cat([kept, kept.new_full((missing, kept.shape[1]), math.nan)])
        kept[units] = kept[units].nan_to_num(0.0)
        self.statistics[metric] = kept.index_add(0, units, statistics)

    def tensors(self) -> dict[str, Tensor]:
        """The statistics of each metric, [U, k] with the same units for all."""
        n = max(map(len, self.statistics.values()), default=0)
        return {
            name: torch.cat([kept, kept.new_full((n - len(kept), kept.shape[1]), math.nan)])
            for name, kept in self.statistics.items()
        }

    @property
    def n_units(self) -> int:
        """Units whose score was measured."""
        kept = self.statistics.get(self.score)
        return 0 if kept is None else int((~kept.isnan().any(1)).sum())

    @property
    def left_out(self) -> bool:
        """Whether the score of some unit was not measured."""
        return bool(self.tensors()[self.score].isnan().any())


class Task:
    """The base of all tasks."""

    SCORE: ClassVar[str]  # the metric that ranks models
    CRITERION: ClassVar[str | None] = None  # the one by which weights are chosen, smaller is better; None: the score
    FIGURES: ClassVar[tuple[str, ...]]  # the figures that tables show, in this order
    ACCEPTS: ClassVar[tuple[str, ...]]  # kinds of model
    ADVICE: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # settings of models that this task is best done with
    UNIT: ClassVar[str] = "tokens"  # what the figure `tokens` and `size` count
    FOLD: ClassVar[str | None] = None  # its group of settings (`of`, `number`) that cuts its data into folds, if any

    def __init__(self, config: Config, data: Config) -> None:
        self.config = config
        self.data = data

    def metrics(self) -> list[Metric]:
        """The score, and metrics beside it that are likewise kept by unit; where they rank otherwise it is said."""
        return [Metric(self.SCORE)]

    @property
    def ranks_by(self) -> Metric:
        """The score."""
        return self.metrics()[0]

    @property
    def criterion(self) -> str:
        """The metric by which the weights of a run are chosen; smaller is better."""
        return self.CRITERION or self.SCORE

    def prepare(self, source: Any) -> None:
        """Read the data, fit the codec on its training part, split."""
        raise NotImplementedError

    def save_codec(self, directory: Path) -> None:
        """Write whatever turns user data into tensors and back."""
        raise NotImplementedError

    def load_codec(self, directory: Path) -> None:
        raise NotImplementedError

    def vocabularies(self) -> dict[str, Vocabulary]:
        """What the rows of a model's tables and head stand for, by part (see runs/parts.py), where they are names."""
        return {}

    def reuse(self, vocabularies: Mapping[str, Vocabulary]) -> None:
        """Before `prepare`: read by the vocabulary of a saved run where the data is of its kind, not by a fitted one.

        `vocabularies` are by the parts encoder.embedding and decoder.embedding.
        """

    def describe(self) -> dict[str, Any]:
        """What a saved run must know of its data beside the codec, as JSON values."""
        raise NotImplementedError

    def recall(self, facts: Mapping[str, Any]) -> None:
        """Take back what `describe` gave."""
        raise NotImplementedError

    def asks(self) -> Asks:
        """What is asked of a model as far as the settings tell, so that a misfit is told before data is prepared."""
        return Asks(self.ACCEPTS)

    def ports(self) -> Ports:
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """What was understood of the data; `fingerprint` tells data apart."""
        raise NotImplementedError

    def size(self, split: str) -> int:
        """How much there is to predict in a part, in the unit of the figure `tokens`."""
        raise NotImplementedError

    def splits(self) -> tuple[str, ...]:
        """The parts that there are: train, valid and perhaps test."""
        raise NotImplementedError

    def held_out(self) -> tuple[str, ...]:
        """The splits that nothing is trained on: those whose figures are told."""
        return tuple(split for split in self.splits() if split != "train")

    def sampler(self, batching: Any, carried: bool, seed: int) -> Sampler:
        raise NotImplementedError

    def solve(self, model: Any, limit: int | None = None) -> Fitted:
        """Fit a model in closed form, to the training data or to about `limit` tokens of it."""
        raise NotImplementedError

    def look_at_training(self, model: Any) -> None:
        """Let a model count in the training part what it needs to know before its weights move (tf-idf does)."""

    def after_training(self, model: Any) -> None:
        """Learn from validation data what the chosen weights leave open (how sure to be of an answer, say)."""

    def learn_from(self, members: Sequence[Task]) -> None:
        """Take over what the tasks of models that now answer together learned from their validation data."""

    @property
    def emission(self) -> Emission:
        """What a model's outputs mean."""
        raise NotImplementedError

    def loss(self, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Training loss as (total, count)."""
        return self.emission.loss(y, batch.y, batch.y_mask)

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: Ledger | None = None
    ) -> dict[str, float]:
        """The figures of a model on a part of the data; `ledger` is told the statistics of those of `metrics`.

        With a limit, which training asks for, at least the criterion.
        """
        raise NotImplementedError

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        """What gives the figures of a model on the whole of other data, which is read once, as the run's own was."""
        raise NotImplementedError

    def uses(self) -> list[Use]:
        """What a saved run can do with new data, for the model card and the report; NEW_DATA stands for a file."""
        return [Use("predict", "predict", ("NEW_DATA",))]

    def more_seconds(self, model: Any) -> float:
        """How much longer the final figures will take than an evaluation in training lets expect: to write texts."""
        return 0.0

    def how_measured(self) -> dict[str, str]:
        """By figure, how it was computed, where its name does not say it all: the signature of BLEU."""
        return {}

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Examples of a part with their losses, for the run directory."""
        raise NotImplementedError

    def baselines(self) -> list[Baseline]:
        raise NotImplementedError

    @classmethod
    def guess(cls, look: Any, given: Mapping[str, Any]) -> Guess | None:
        """Whether some data is for this task, by one look at it (data/look.py); `given` are the settings by their last
        word."""
        raise NotImplementedError

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        """Pictures (unrolled.pictures.kinds) of a trained model on a part, by file name, for the report."""
        return {}

    def inputs_of(self, source: Any) -> list[Given]:
        """The inputs of some data, in order, found as in training: by the columns of the saved run, without targets."""
        raise NotImplementedError

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """An input as a user gives it, as a batch of one row, and a name for each of its positions: to look inside."""
        raise NotImplementedError

    def completed(self, model: Any, value: Any) -> Any:
        """An input for `example`; what a model is to write, where it is not given, is what this one does write."""
        return value

    def explained(self, y: Tensor, at: int) -> Explained:
        """What outputs y [1, S', D'] say at position `at`; for tasks whose answers are not what comes next."""
        raise NotImplementedError

    def input_of(self, line: Mapping[str, Any]) -> Any:
        """The input of a line of `predictions`, as `example` takes it."""
        raise NotImplementedError
