"""Everything needed to build a run again, as one frozen config. Imports no torch, for help must be quick."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from unrolled.core.config import Config, Record, explain, merge
from unrolled.core.errors import UsageError, listed
from unrolled.core.front import option
from unrolled.data.config import DataConfig, FilesConfig
from unrolled.runs.keys import flat, leaf_paths, no_setting
from unrolled.runs.values import Seconds, decays, seconds, words


class Budget(Config):
    """How long to train: one of four measures; without any, five minutes."""

    steps: int | None = Field(None, ge=1)
    """Number of optimiser steps."""
    epochs: float | None = Field(None, gt=0)
    """Number of passes over the training data."""
    train_tokens: int | None = Field(None, ge=1)
    """Number of training tokens to process."""
    time: Seconds | None = Field(None, json_schema_extra={"flag": "--budget"})
    """Wall-clock time such as 90s, 5m or 1h, evaluation included; training stops when it is used up. Settings that are
    not given are then chosen from the data and the speed of this machine, unless --plain is set."""
    horizon: int | None = Field(None, ge=1, json_schema_extra={"flag": "--schedule-steps"})
    """Number of steps that the learning rate schedule is planned for, if it differs from the number of steps taken (a
    time budget that ran late)."""
    patience: int | None = Field(None, ge=1)
    """Stop early after this many evaluations without a better validation score."""

    @model_validator(mode="after")
    def one_measure(self) -> Budget:
        given = [name for name in ("steps", "epochs", "train_tokens", "time") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give one budget, not {listed(map(option, given))}")
        return self


class Optimiser(Config):
    """How weights move."""

    optimiser: Literal["adamw", "sgd"] = "adamw"
    """AdamW (Loshchilov & Hutter 2019) or SGD with Nesterov momentum 0.9."""
    lr: float = Field(4e-3, gt=0, le=100)
    """Peak learning rate."""
    weight_decay: float = Field(0.01, ge=0, le=10)
    """Decoupled weight decay, on matrices only."""
    betas: Annotated[tuple[float, float], AfterValidator(decays)] = (0.9, 0.99)
    """Decay rates of the running mean and mean square of AdamW."""
    schedule: Literal["trapezoid", "cosine", "plateau", "constant"] = "trapezoid"
    """Learning rate after the warm-up: constant and then linear to zero, cosine to zero, halved on a plateau, or
    constant."""
    warmup: int = Field(50, ge=0)
    """Number of steps over which the learning rate rises from zero."""
    clip: float | None = Field(1.0, gt=0)
    """Maximum norm of the gradient (gradient clipping)."""
    accumulate: int = Field(1, ge=1)
    """Number of batches whose gradients are accumulated for one step."""
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    """Precision of matrix products; auto measures both on this machine and records the faster one."""
    shard: bool = False
    """Divide weights, gradients and what the optimiser remembers between the processes of a run (FSDP2)."""
    teacher: float = Field(1.0, ge=0, le=1)
    """Teacher forcing: probability that an input is the true previous token instead of the model's own choice
    (scheduled sampling)."""
    teacher_steps: int = Field(0, ge=0)
    """Number of steps over which that probability falls linearly from 1; 0: constant from the start."""


class Batching(Config):
    """How examples are put together."""

    batch_size: int = Field(32, ge=1)
    """Rows per batch."""
    batch_tokens: int | None = Field(None, ge=1)
    """Source and target tokens per batch, padding included, for tasks that write a target for a source; none: as many
    as `batch_size` examples of mean length."""
    length: int = Field(64, ge=1)
    """Positions of a stream per row and step: k1 of truncated back-propagation through time."""
    back: int | None = Field(None, ge=1)
    """How many positions gradients flow back: k2 of truncated back-propagation through time. [default: length]"""
    chunk: int | None = Field(None, ge=1)
    """Maximum number of positions of one example per row and step: longer examples are trained in consecutive chunks,
    the state carried over, where models predict what comes next, otherwise on random crops; none: whole examples."""
    windows: Literal["auto", "carried", "cut", "random"] = "auto"
    """How a stream is cut into windows: consecutive with the state carried over, consecutive with the state reset, or
    at random; auto: carried, unless the model's state grows."""

    @model_validator(mode="after")
    def back_covers_length(self) -> Batching:
        if self.back is not None and self.back < self.length:
            raise ValueError(f"back = {self.back} must be at least length = {self.length}")
        return self


class Watching(Config):
    """When to look and when to save."""

    evaluate_every: int = Field(250, ge=1)
    """Steps between evaluations on validation data."""
    evaluate_tokens: int = Field(60_000, ge=1)
    """Validation tokens used for evaluations during training; the final metrics use all of them."""
    save_every: Seconds = 60.0
    """Maximum time between two checkpoints."""


class Ends(Config):
    """What stands before and behind the body of a model."""

    input: Literal["embedding", "one-hot"] = "embedding"
    """Input layer: a learned embedding (for numbers a linear layer), or one-hot (numbers as they are)."""
    d_embedding: int = Field(128, ge=1)
    """Width of the embedding."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the input vectors and before the head."""
    input_stride: int = Field(1, ge=1, le=256)
    """Number of neighbouring positions that a convolution behind the input layer joins into one, for long inputs of
    models with one prediction per input (and embedded inputs)."""
    tied: bool = False
    """Tie the weights of the head to the embedding (needs d_embedding equal to the body's output width)."""
    shared: bool = False
    """Share one embedding between source and target (needs one vocabulary for both)."""
    target_dropout: float = Field(0.0, ge=0, lt=1)
    """Word dropout: share of the previous target tokens that are hidden from a decoder in training, so that it relies
    on the source (Bowman et al. 2016)."""

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, values: Any) -> Any:
        """Runs that were saved when `input_stride` was called `stride`, a word that forecasts use otherwise."""
        if isinstance(values, Mapping) and "stride" in values:
            return {("input_stride" if key == "stride" else key): value for key, value in values.items()}
        return values


class Start(Config):
    """What a model begins with, and what of it stays."""

    from_run: str | None = Field(None, json_schema_extra={"flag": "--from"})
    """Start from the weights of this saved run, wherever they fit, and its vocabulary if the data is of that kind."""
    decoder_from: str | None = Field(None, json_schema_extra={"flag": "--decoder-from"})
    """With --from, for models with a source: take the decoder and its vocabulary from this other run."""
    take: Annotated[list[str], BeforeValidator(words)] = Field([], json_schema_extra={"flag": "--take"})
    """With --from: only the weights of these parts, separated by commas, such as embedding."""
    freeze: Annotated[list[str], BeforeValidator(words)] = Field([], json_schema_extra={"flag": "--freeze"})
    """Parts that are not trained, separated by commas: encoder, decoder, embedding, body, head,
    everything-but-the-head, or the start of a parameter name such as encoder.body.layers.0."""
    vectors: str | None = Field(None, json_schema_extra={"flag": "--vectors"})
    """Start with the word vectors of this file (word2vec or GloVe format) or saved run, for the words of the vocabulary
    that it has; the embedding is as wide as they are."""
    layer_rate: float = Field(1.0, gt=0, le=1, json_schema_extra={"flag": "--layer-rate"})
    """Learning rate of a layer relative to the one behind it; below 1, layers near the input move less."""
    unfreeze_every: int | None = Field(None, ge=1, json_schema_extra={"flag": "--unfreeze-every"})
    """Gradual unfreezing: the head is trained alone, and every so many steps one more layer, the last one first."""

    @model_validator(mode="after")
    def a_second_run_needs_a_first(self) -> Start:
        if self.from_run is None and (self.decoder_from is not None or self.take):
            name = "take" if self.take else "decoder_from"
            raise ValueError(f"{option(name)} needs {option('from_run')}, the first run to take weights from")
        return self


class Choice(Config):
    """What is chosen from the data, the speed of this machine and a time budget; what is chosen has its own place."""

    plain: bool = False
    """Keep the default of every setting that is not given, instead of choosing it from the data, the speed of this
    machine and the time budget."""
    rates: list[Annotated[float, Field(gt=0, le=100)]] = Field([], max_length=10)
    """Learning rates to try first, such as [0.01, 0.004], each for up to a fifth of the run; the best one on validation
    data continues. Empty: lr."""


class Member(Record):
    """One of several models that predict together: what it is built from, and its weight."""

    run: str = ""
    """The name of its run in the comparison."""
    weight: float = Field(ge=0, le=1)
    model: str
    model_settings: dict[str, Any] = {}
    ends: Ends = Ends()
    members: int = Field(1, ge=1, le=100)
    combine: Literal["outputs", "mixture"] = "outputs"
    ensemble: list[Member] = Field([], max_length=100)
    """Where it is several models itself."""

    @model_validator(mode="after")
    def are_runs_or_folds(self) -> Member:
        if any(member.ensemble for member in self.ensemble):
            raise ValueError("the members of a member are single models")
        return self

    @classmethod
    def of(cls, run: str, config: RunConfig, weight: float) -> Member:
        """The model of a run."""
        own = {name: getattr(config, name) for name in cls.model_fields if name not in ("run", "weight")}
        return cls(run=run, weight=weight, **own)

    def as_run(self) -> dict[str, Any]:
        """The fields of the config of a run with this model."""
        return {name: value for name, value in self if name not in ("run", "weight")}


MOST_THREADS = 1024


class RunConfig(Record):
    """A run: task, model, data, training, seed."""

    task: str = "next-token"
    """What to learn; see `unrolled tasks`."""
    model: str = "lstm"
    """The model; see `unrolled models`."""
    source: str = ""
    """Where the data came from: a path, builtin:NAME, or memory for data passed from Python."""
    given: dict[Literal["valid", "test"], str] = {}
    """Where validation and test data came from, if they were given separately."""
    own_file: str | None = None
    """The user's file that defines the model (--with), by name; loading asks for it again."""
    own_file_sha256: str | None = None
    """Its fingerprint."""
    from_run_sha256: str | None = None
    """The fingerprint of the weights that this run began with, where they came from a saved run."""
    vectors_sha256: str | None = None
    """The fingerprint of the file of word vectors that it began with."""
    decoder_from_sha256: str | None = None
    """The same of the run that gave the decoder."""
    teacher_sha256: str | None = None
    """The same of the run that it learns from."""
    members: int = Field(1, ge=1, le=100)
    """Number of models in an ensemble, each trained on other folds of the data; 1: a single model."""
    combine: Literal["outputs", "mixture", "gate"] = "outputs"
    """How an ensemble predicts: by the mean of the outputs, as in runs saved without this setting, by mixing
    predictions, or by mixing them with weights that depend on how sure each member is at a position."""
    ensemble: list[Member] = Field([], max_length=100)
    """Models of other runs that predict together, with the weights that validation data gave them; `model` is the one
    with the largest. Empty: a run of its own."""
    from_vocabularies: list[str] = []
    """Parts whose vocabulary came from there."""
    task_settings: dict[str, Any] = {}
    model_settings: dict[str, Any] = {}
    data: DataConfig = DataConfig()
    files: FilesConfig = FilesConfig()
    budget: Budget = Budget()
    optimiser: Optimiser = Optimiser()
    batching: Batching = Batching()
    watching: Watching = Watching()
    ends: Ends = Ends()
    start: Start = Start()
    choice: Choice = Choice()
    seed: int = Field(0, ge=0, lt=2**31)
    """Random seed of initial weights, example order and dropout."""
    device: str = "cpu"
    """Where tensors live: cpu, cuda, cuda:1, mps."""
    threads: int | None = Field(None, ge=1, le=MOST_THREADS)
    """Number of CPU threads; recorded, because results with another number differ in the last digits."""
    processes: int = Field(1, ge=1, le=4096)
    """Number of processes that train it together, each on its rows of every batch; recorded, because results with
    another number differ in the last digits."""
    versions: dict[str, str] = {}
    """Versions that the run was made with."""

    @property
    def is_alone(self) -> bool:
        """Whether one model predicts, not several together."""
        return self.members == 1 and not self.ensemble

    @property
    def title(self) -> str:
        """The model in words."""
        names = dict.fromkeys(member.model for member in self.ensemble)
        return f"ensemble of {listed(names)}" if names else self.model


def assemble(
    values: Mapping[str, Any],
    recipe: Mapping[str, Any],
    model_recipe: Mapping[str, Any],
    model_config: type[BaseModel],
    task_config: type[BaseModel],
) -> RunConfig:
    """Defaults, then what the model's file advises, then a recipe file, then what was given by hand."""
    advice, given = full_keys(model_recipe, model_config, task_config), full_keys(values, model_config, task_config)
    if any(key.startswith("budget.") for key in (*given, *flat(recipe))):  # one measure: that which was given
        advice = {key: value for key, value in advice.items() if not key.startswith("budget.")}
    chosen: dict[str, Any] = {}
    for layer in (advice, recipe, given):
        chosen = merge(chosen, flat(layer))
    config = RunConfig.parse(chosen)
    own = parse_settings(model_config, config.model_settings, "model")
    of_task = parse_settings(task_config, config.task_settings, "task")
    return config.model_copy(update={"model_settings": own.model_dump(), "task_settings": of_task.model_dump()})


def parse_settings(cls: type[BaseModel], values: Mapping[str, Any], group: str) -> BaseModel:
    try:
        return cls.model_validate(values)
    except ValidationError as error:
        raise UsageError(explain(error, cls, group)) from None


def given_once(settings: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in a table and as keyword arguments, each in one place."""
    found = dict(settings or {})
    for name in arguments.keys() & found.keys():
        raise UsageError(f"'{name}' is given twice, in settings and as an argument; give it once")
    found |= arguments
    if _is_column(found.get("time")):
        found["series.time"] = found.pop("time")
    return found


def _is_column(time: Any) -> bool:
    """Whether a value of `time` is no duration, and so the name of the column of times.

    >>> _is_column("date"), _is_column("5m"), _is_column(30), _is_column(None)
    (True, False, False, False)
    """
    try:
        seconds(time)
    except ValueError:
        return True
    return False


def full_keys(
    assignments: Mapping[str, Any], model_config: type[BaseModel], task_config: type[BaseModel]
) -> dict[str, Any]:
    """Short keys made full: `lr` -> `optimiser.lr`, `n_layers` or `model.n_layers` -> `model_settings.n_layers`.

    A last word that means two things must be written with its group. Where a model holds others by name (`encoder` and
    beside it `encoder_settings`), `encoder.d_state` is a setting of that one, which checks it itself.
    """
    inner = {name.removesuffix("_settings") for name in model_config.model_fields if name.endswith("_settings")}
    paths = list(leaf_paths(RunConfig))
    paths += [f"model_settings.{name}" for name in model_config.model_fields]
    paths += leaf_paths(task_config, "task_settings.")
    result = {}
    for key, value in assignments.items():
        given = re.sub(r"^(model|task)\.", r"\1_settings.", key)
        half, _, rest = given.removeprefix("model_settings.").partition(".")
        if half in inner and rest:
            result[f"model_settings.{half}_settings.{rest}"] = value
            continue
        fitting = [path for path in paths if path == given] or [p for p in paths if p.endswith(f".{given}")]
        least = min((path.count(".") for path in fitting), default=0)
        fitting = [path for path in fitting if path.count(".") == least]  # data.column before task.reading.column
        if not fitting:
            raise UsageError(no_setting(key, paths))
        if len(of_task := [path for path in fitting if path.startswith("task_settings.")]) == 1:
            fitting = of_task  # a forecast's horizon before that of the rate
        if len(fitting) > 1:
            choices = " or ".join(path.replace("_settings", "") for path in fitting)
            raise UsageError(f"'{key}' is ambiguous: use {choices}")
        result[fitting[0]] = value
    return result
