"""What saved runs and comparisons give, as types. At run time each is a plain dictionary, and JSON but for arrays.

    from unrolled.results import Prediction

    def certain(found: list[Prediction]) -> list[Prediction]: ...

Which keys a result has depends on the task; the comments say which. Rows of a table that were predicted for keep the
columns that name them (`id`, `name`) beside these keys. A task of your own may give other keys, too.
"""

from __future__ import annotations

from typing import Any, Literal, Required, TypedDict

from numpy import uint8
from numpy.typing import NDArray

Figures = dict[str, float]
"""Metrics by name, {"nats": 1.53, "accuracy": 0.61}, and what was counted, such as `tokens`."""


Steps = list[float | None] | list[list[float | None]]
"""A number for each step of a series, or several; None: missing."""


class Likely(TypedDict, total=False):
    """A token, or a key of a piano, that may come next."""

    token: str
    key: str
    p: Required[float]


class Candidate(TypedDict):
    """One of several texts that were asked for by `n`."""

    text: str
    logp: float
    score: float  # what it is ranked by


class Forecast(TypedDict, total=False):
    """The next steps of a series, of the task forecast: the median, and the ends of intervals of so many %."""

    series: str
    times: list[str]
    forecast: Steps
    low_50: Steps
    high_50: Steps
    low_80: Steps
    high_80: Steps
    low_95: Steps
    high_95: Steps


class Prediction(Forecast, total=False):
    """Of `run.predict`, for one example."""

    prediction: str | float | list[str] | list[float] | list[list[float]]
    # classify: a class, or those that apply; regress: a number, or several; tag: a tag for each word;
    # denoise: the series [T, D]; translate, caption, recognise: a text
    p: float | list[float] | dict[str, float]  # classify: of the class, or of every class; tag: of each tag; next-token
    words: list[str]  # tag
    source: Any  # translate, caption, recognise
    logp: float
    finished: bool
    candidates: list[Candidate]
    text: str  # next-token
    next: str | list[float] | float  # of text a token, of drawings the likeliest move [x, y], of sound, images a value
    likely: list[Likely]  # next-token, next-frame
    sequence: int  # next-frame
    frames: int
    drawing: int  # handwriting
    points: int


class Generated(TypedDict, total=False):
    """Of `run.generate`, one for each text or roll."""

    logp: Required[float]  # under the model as it is, whatever the temperature
    text: str  # next-token
    tokens: int
    finished: bool  # ended by a stop, not by the limit
    roll: NDArray[uint8]  # next-frame: [T, D]
    given: int  # frames of the prompt, with which the roll begins; handwriting: points of the prompt
    strokes: list[list[list[float]]]  # handwriting: each stroke as its places [x, y], y downwards


class Scored(TypedDict, total=False):
    """Of `run.score`, for one example."""

    text: str  # next-token, next-frame
    logp: float
    tokens: int
    nats_per_token: float  # next-token
    nats_per_frame: float  # next-frame
    nats_per_point: float  # handwriting
    times: list[str]  # forecast: each step but the first
    values: Steps
    expected: list[float | None]
    p: list[float | None]  # of a value at least as far out
    surprise: list[float | None]  # minus the logarithm of that


class Tick(Forecast, total=False):
    """Of `session.push` and `session.end`, for one tick of a stream."""

    logp: float  # next-token, next-frame: of the row that came
    token: str  # next-token
    prediction: str | float | list[str] | list[float]  # classify and regress: of all rows so far; tag, denoise: of this
    p: float | dict[str, float]


class MetricFacts(TypedDict):
    """What a metric is."""

    name: str
    larger: bool  # whether larger values are better
    formula: str  # by which it follows from statistics of units


class Use(TypedDict):
    """Something that a run can do with new data, as a command."""

    what: str
    verb: str
    words: list[str]  # of the command, behind the run


class Cost(TypedDict, total=False):
    """What training and streaming take."""

    receptive_field: int | None  # None: the whole past
    serial_depth: int
    state_grows: bool | None
    memory_megabytes: float
    state_bytes: int
    tick_microseconds: float


class RunResult(TypedDict, total=False):
    """Of `run.result`: what was measured at the end of training."""

    parameters: Required[int]
    valid: Figures
    test: Figures
    baselines: dict[str, dict[str, Figures]]  # by name and split
    score: str  # the metric that ranks
    metrics: list[MetricFacts]
    criterion: str  # the metric by which weights were chosen, on validation data
    figures: list[str]  # the metrics that tables show
    how_measured: dict[str, str]
    units: int  # how many examples, or pieces of a stream, were measured
    unit: str
    steps: int  # 0: fitted in closed form
    best_step: int
    horizon: int | None
    chosen: dict[str, Any]
    trained_parameters: int
    training_seconds: float
    closing_seconds: float
    seconds: float
    tokens_per_second: float
    cost: Cost
    uses: list[Use]
    notes: list[str]
    recipe: list[str]
    weights: dict[str, float]  # of an ensemble, by the name of a run
    members: list[
        dict[str, Any]
    ]  # `run`, `weight`, its score `alone`, that `without` and `with` it, share of the `cost`


class Row(TypedDict):
    """Of `comparison.rows`: a model or a baseline; numbers are means over its runs."""

    label: str
    kind: Literal["model", "baseline", "ensemble"]
    model: str
    fraction: float  # of the training data
    runs: list[str]  # folders: `comparison.run(folder)`
    score: float | None  # on test data; None: no run came to its end
    interval: list[float] | None  # 95 %, bootstrap
    spread: float | None  # standard deviation over seeds
    valid: float | None  # which ranks
    valid_of_runs: list[float]
    valid_nats: float | None
    figures: Figures
    beaten_by: list[str]  # baselines
    parameters: int | None
    steps: int | None
    recipe: list[str]  # settings that were chosen from the data
    weights: dict[str, float]  # of an ensemble, by the folder of a run
    seconds_given: float | None  # the time budget of a run; in a race they differ
    rung: int | None  # of a race: the last one in which it was trained
    stopped: str | None  # of a race: why it was stopped early
    training_seconds: float | None
    tokens_per_second: float | None
    receptive_field: int | None
    serial_depth: int | None
    tick_microseconds: float | None
    memory_megabytes: float | None
    failed: str | None
    not_trained: str | None


class Table(TypedDict, total=False):
    """Of `comparison.table`: its rows, and the conditions under which they were measured."""

    name: Required[str]
    data: Required[str]
    task: Required[str]
    guessed: str | None
    rows: Required[list[Row]]  # by their scores on validation data
    score: Required[str]
    split: Literal["valid", "test"]
    verdict: str
    selected: str | None
    winner: str | None
    metrics: list[MetricFacts]
    criterion: str
    figures: list[str]
    match: str
    folds: int | None
    budget_seconds: float | None
    share_seconds: float | None
    race: list[dict[str, Any]]  # rungs: `time`, `until`, `runs`, `scores` on validation data, `stopped` rows and why
    steps: int | None
    seeds: list[int]
    threads: int
    jobs: int
    units: int | None
    unit: str | None
    facts: dict[str, Any]
    versions: dict[str, str]
    command: str
    notes: list[str]
    finished: bool
    failures: dict[str, Any]


__all__ = [
    "Candidate",
    "Cost",
    "Figures",
    "Forecast",
    "Generated",
    "Likely",
    "MetricFacts",
    "Prediction",
    "Row",
    "RunResult",
    "Scored",
    "Steps",
    "Table",
    "Tick",
    "Use",
]
