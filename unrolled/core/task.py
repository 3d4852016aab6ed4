"""What a task is: the questions that training, saved runs and comparisons ask of it. They know nothing else of a task.

A task file defines `Config` (its own settings) and `Task`, a subclass of the class here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.config import Config
from unrolled.core.emission import Emission
from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.core.ledger import Ledger as Ledger
from unrolled.core.metric import Metric
from unrolled.core.opening import exists
from unrolled.core.outline import Outline, TokenLook
from unrolled.core.spec import Asks, Ports

Model = Causal | Conditional | Encoder

Known = Iterable[tuple[Tensor, Tensor, Tensor]]
"""Examples with their targets, (x, mask, y) some at a time: what a closed form of a task with given targets is handed,
for the fit and, as `held_out`, for the choice of what it leaves open; none where there are no others."""


@runtime_checkable
class Solvable(Protocol):
    """A body, or a model with such a body, that is fitted in closed form to what the task hands it."""

    def solve(self, data: Any) -> Any: ...


@runtime_checkable
class Learner(Protocol):
    """A model that moves its own weights, example after example, where there is no gradient of a whole batch."""

    def learn(self, batch: Batch, rate: float) -> tuple[float, int]:
        """Move the weights by a batch; the sum of the losses of some of its predictions, and of how many."""
        ...


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
    unused: str = ""  # what of the data the model has no use for, in words


def fitted(section: Any, size: int, limit: int | None, fit: Callable[[Any], Any]) -> Fitted:
    """Fit to a section of so many tokens, or to the share of it that has about `limit`."""
    share = share_of(size, limit)
    return Fitted(share, fit(section.share(share)) or {}, "on training data")


class Given(NamedTuple):
    """One input to predict for, as the task takes it."""

    value: Any
    condition: str | None = None
    names: Mapping[str, Any] = {}
    """what identifies it in the data, such as the id of a series"""
    number: int = 0  # of its line or row, by which it draws its noise
    place: str = ""  # where it stands, for messages


class Rows(NamedTuple):
    """A table whose rows hold examples, so that predictions can stand beside them."""

    table: Any  # has columns() and rows(names)
    named: bool = True  # whether its columns have names
    steps: Callable[[], list[tuple[int, int]]] | None = None  # the example and step of each row; None: one by one
    each: bool = False  # whether an example is given one prediction for each of its steps


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

    codec: Any  # has size, specials, name(id) and to_json()
    names: tuple[str, ...] = ()

    @property
    def specials(self) -> int:
        """How many rows, the first, stand for no token of the data."""
        return len(self.codec.specials)

    @property
    def size(self) -> int:
        return int(self.codec.size) + len(self.names)

    def rows(self) -> list[str]:
        """The name of each row."""
        return [*(self.codec.name(i) for i in range(self.codec.size)), *(f"(class {name})" for name in self.names)]

    def spelt(self) -> list[Any]:
        """What each row stands for, equal in other vocabularies where it is the same: a special token or class by its
        name, other tokens by the bytes that they stand for."""
        own, n = list(self.codec.spelling()), self.specials
        return [*self.codec.specials, *own[n:], *(f"(class {name})" for name in self.names)]

    def meaning(self) -> tuple[str, tuple[str, ...]]:
        """Equal where rows stand for the same."""
        return self.codec.to_json(), self.names


class Sampler(Protocol):
    """Training batches as a pure function of the step number, so that a position in the data is one integer."""

    steps_per_epoch: int
    tokens_per_step: int
    notes: list[str]  # what differs from what was asked for, such as a smaller batch

    def batch(self, step: int) -> Batch: ...


class Task:
    """The base of all tasks."""

    SCORE: ClassVar[str]  # the metric that ranks models
    CRITERION: ClassVar[str | None] = None  # the one by which weights are chosen, smaller is better; None: the score
    FIGURES: ClassVar[tuple[str, ...]]  # the figures that tables show, in this order
    ACCEPTS: ClassVar[tuple[str, ...]]  # kinds of model
    ADVICE: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # settings of models that this task is best done with
    ALWAYS: ClassVar[tuple[str, ...]] = ()  # models that every comparison has, also one of named models
    DEFAULT_MODEL: ClassVar[str] = "lstm"  # the model where none is named
    FOR_KIND: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # its own settings for models of a kind
    UNIT: ClassVar[str] = "tokens"  # what the figure `tokens` and `size` count
    OBEYS: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # by verb, the settings of its request that are of use here
    WRITES: ClassVar[bool] = False  # whether a prediction is a text, which is printed alone
    TYPED: ClassVar[bool] = False  # whether an input can be typed in a command, where no file is of that name
    MIXES: ClassVar[bool] = True  # whether models that predict together are of use
    PREDICTS: ClassVar[bool] = True  # whether a run has a prediction for an example
    LOOKS: ClassVar[Literal["steps", "epoch"]] = "steps"  # when training evaluates: every so many steps, or each epoch
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
        """Read and split the data, and fit the codec on the training split."""
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

    def unknown_share(self) -> float:
        """The share of the tokens that are read in training that the vocabulary lacks."""
        return 0.0

    def describe(self) -> dict[str, Any]:
        """What a saved run must know of its data beside the codec, as JSON values."""
        raise NotImplementedError

    def recall(self, facts: Mapping[str, Any]) -> None:
        """Take back what `describe` gave."""
        raise NotImplementedError

    def asks(self) -> Asks:
        """What is asked of a model as far as the settings tell, so that a misfit is an error before data is
        prepared."""
        return Asks(self.ACCEPTS)

    def ports(self) -> Ports:
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """How the data was parsed; `fingerprint` identifies it."""
        raise NotImplementedError

    def columns(self) -> dict[str, str]:
        """What the columns or arrays of the prepared data are used for, by name; empty where it has no names."""
        return {}

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        """The first examples of the prepared data, as they are read and as JSON values."""
        return []

    def size(self, split: str) -> int:
        """How much there is to predict in a part, in the unit of the figure `tokens`."""
        raise NotImplementedError

    def splits(self) -> tuple[str, ...]:
        """The parts that there are: train, valid and perhaps test."""
        raise NotImplementedError

    def held_out(self) -> tuple[str, ...]:
        """The splits that are not trained on, whose metrics are reported."""
        return tuple(split for split in self.splits() if split != "train")

    def outline(self) -> Outline:
        """What settings can be chosen from, of prepared data."""
        return Outline()

    def token_look(self) -> TokenLook | None:
        """By what tokens are chosen, where inputs are texts and the score does not depend on what a token is."""
        return None

    def sampler(self, batching: Any, carried: bool, seed: int) -> Sampler:
        raise NotImplementedError

    def solve(self, model: Any, limit: int | None = None) -> Fitted:
        """Fit a model in closed form, to the training data or to about `limit` tokens of it."""
        raise NotImplementedError

    def look_at_training(self, model: Any) -> None:
        """Let a model count in the training split what it needs to know before its weights move (tf-idf does)."""

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

    def terms(self, y: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """The training loss as a sum of means, each as (total, count); of several, one of nothing is 0."""
        return [self.loss(y, batch)]

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: Ledger | None = None
    ) -> dict[str, float]:
        """The metrics of a model on a split; `ledger` receives the statistics of those of `metrics`. With a limit,
        which training asks for, at least the criterion."""
        raise NotImplementedError

    def heard(self, model: Any, split: str, limit: int | None = None) -> Iterator[tuple[Batch, Tensor]]:
        """What `evaluate` reads, batch by batch, with outputs [B, T, D']; nothing where targets have no positions."""
        return iter(())

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
    def guess(cls, look: Any, given: Mapping[str, Any]) -> Guess | None:  # noqa: ARG003
        """Whether some data is for this task, by one look at it (data/look.py); `given` are the settings by their last
        word. None: it must be named."""
        return None

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        """Pictures (unrolled.pictures.kinds) of a trained model on a part, by file name, for the report."""
        return {}

    def read(self, source: Any) -> Iterator[list[Given]]:
        """The inputs of some data, in order, some at a time, so that a file of any size passes; `-` is standard input.

        They are found as in training, by the columns of the saved run, without targets; or they are bare, in a list.
        """
        raise NotImplementedError

    def predict(self, model: Any, given: Sequence[Given], decoding: Any) -> Iterator[dict[str, Any]]:
        """What a model predicts for each input, in order; `decoding` is for tasks that write."""
        raise NotImplementedError

    def typed(self, words: str) -> Any:
        """An input as it is named in a command: typed as it is where that is possible, or the first of a file."""
        if self.TYPED and words != "-" and not exists(words):
            return words
        first = next(self.read(words), None)
        if not first:
            raise DataError(f"{words}: there are no examples in it")
        return first[0].value

    def flow(self, model: Any, condition: str | None = None) -> Flow:
        """How a model reads a stream row by row; refused where it reads an input to its end before it predicts."""
        raise UsageError("models of this task read a whole input before they predict, so they cannot run live")

    def rows_in(self, path: Path) -> Rows | None:
        """The table in a file, whose rows `read` reads; None: it is none."""
        return None

    def source_names(self, source: Tensor) -> list[str]:
        """A name for each position of an encoded source."""
        return [str(s) for s in range(len(source))]

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """An input as a user gives it, as a batch of one row, and a name for each of its positions: to look inside."""
        raise NotImplementedError

    def input_columns(self) -> list[str]:
        """Names of the columns of an input of numbers; those of one name belong together. Empty: they have none."""
        return []

    def completed(self, model: Any, value: Any) -> Any:
        """An input for `example`; what a model is to write, where it is not given, is what this one does write."""
        return value

    def explained(self, y: Tensor, at: int) -> Explained:
        """What outputs y [1, S', D'] say at position `at`; for tasks whose answers are not what comes next."""
        raise NotImplementedError

    def input_of(self, line: Mapping[str, Any]) -> Any:
        """The input of a line of `predictions`, as `example` takes it."""
        raise NotImplementedError
