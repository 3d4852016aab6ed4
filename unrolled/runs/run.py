"""A saved run, opened again: what is served is what was saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError
from unrolled.core.finite import require_finite
from unrolled.core.front import invocation, option, quoted, reader
from unrolled.core.opening import shortened
from unrolled.core.task import Given, Model, Task
from unrolled.core.verb import Result, Served, Streams, started
from unrolled.data.config import FilesConfig
from unrolled.data.files.file_form import each_within, files_as
from unrolled.data.given_splits import names_of_sources, with_given
from unrolled.pictures.answer import Answer
from unrolled.results import Figures, Generated, Prediction, RunResult, Scored
from unrolled.runs import fitting, summary
from unrolled.runs.asking import asked_of, called, drawable, why_not
from unrolled.runs.baselines import measure_baselines
from unrolled.runs.build import make_model, make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.device import own_device, pick_device
from unrolled.runs.embedding import arrays_of
from unrolled.runs.narrowed import narrow
from unrolled.runs.results import read_result
from unrolled.runs.selection import run_at
from unrolled.runs.session import Session
from unrolled.runs.storage.directory import CONFIG, RunDirectory
from unrolled.runs.trust import data_of, is_same, named_beside, opening, own_file_of, paths_among, reading, saved


class Run:
    """A trained model with everything that turns user data into tensors and back.

    What it can do are verbs: `run.generate("ROMEO:")`, `run.score([...])`, `run.predict([...])`, `run.do(verb, ...)`.
    """

    def __init__(self, directory: RunDirectory, config: RunConfig, task: Task, model: Model) -> None:
        self.directory, self.config, self.task = directory, config, task
        self.trained_on: Any = None
        """The data that the run was trained on, if the caller named it; a path in the directory is not opened."""
        self.target_file: str | None = None
        """The file of targets of that data, if they are in a separate file and the caller named it."""
        self.notes: dict[str, None] = {}
        """What was found out of the files that were read: their encoding, what separates columns."""
        self.form = config.files.form(is_habit=True)._replace(told=self.notes)
        self.model: Any = model  # which kind it is, the task knows
        self._prepared = False

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def result(self) -> RunResult:
        """The metrics at the end of training."""
        return cast(RunResult, read_result(self.directory))

    def evaluate(self, data: Any = None, split: str | None = None) -> Figures:
        """Metrics on other data, or on a split (valid, test) of the data that the run was trained on.

        That data is opened if it is built in or named: `load("runs/mine", trained_on="my.csv")`.
        """
        measured = self._measure(data, split)(self.model)
        require_finite(measured)
        return measured

    def evaluate_baselines(self, data: Any = None, split: str | None = None) -> dict[str, Figures]:
        """The same metrics of the task's baselines, fitted again on the run's training data; {} without that data."""
        return self._baselines(self._measure(data, split)) if self._has_own_data() else {}

    def evaluate_beside(self, data: Any = None, split: str | None = None) -> tuple[Figures, dict[str, Figures]]:
        """The metrics of the run and of the baselines, on data that is read once."""
        measure = self._measure(data, split)
        figures = measure(self.model)
        require_finite(figures)
        return figures, self._baselines(measure) if self._has_own_data() else {}

    def _baselines(self, measure: Callable[[Model], Figures]) -> dict[str, Figures]:
        return measure_baselines(self.config, self.task, measure)

    def _has_own_data(self) -> bool:
        """Whether the data that the run was trained on is there, as it was; it is read for that."""
        try:
            self._prepare()
        except DataError:
            return False
        return True

    def _measure(self, data: Any, split: str | None) -> Callable[[Model], Figures]:
        """What measures a model on that data."""
        if data is not None:
            with reading(self.path, data), files_as(self.form):
                return self.task.measure_on(data)
        self._prepare()
        return partial(self.task.evaluate, split=self._held_out(split))

    def _held_out(self, split: str | None) -> str:
        parts = self.task.splits()
        split = split or ("test" if "test" in parts else "valid")
        if split not in parts:
            raise UsageError(f"there is no split '{split}'; the data has {', '.join(parts)}")
        return split

    def source_of(self, split: str | None = None) -> str:
        """The name of the data that `evaluate` measures on."""
        names: dict[Any, str] = {"train": self.config.source, **self.config.given, **names_of_sources(self.trained_on)}
        self._prepare()
        return names.get(self._held_out(split), names["train"])

    def _prepare(self) -> None:
        """Read the run's own data once, by what was fitted in training; refuse it when it has changed."""
        if self._prepared:
            return
        verb = "evaluate" if reader() == "command line" else "load"
        named = {"trained_on": shortened(self.config.source), **named_beside(self.config.given)}
        again = invocation(verb, named, quoted(str(self.path)))
        source = data_of(self.path, self.config.source, self.config.given, self.trained_on, again)
        targets = paths_among(self.config.task_settings).get("target_file")
        if targets is None and self.target_file is not None:
            raise UsageError(f"{self.path}: was trained without a file of targets; leave out {option('target_file')}")
        if targets is not None and not is_same(self.target_file, targets):
            flag = option("target_file", shortened(targets))
            raise DataError(
                f"{self.path}: its targets are in a file that is opened only if you name it explicitly; add {flag}"
            )
        if not prepare_again(self.directory, self.config, self.task, source):
            raise DataError(
                f"{self.path}: the data has changed since training, so its held-out splits may contain training "
                "examples; restore it, or name other data to evaluate on"
            )
        self._prepared = True

    def __repr__(self) -> str:
        return summary.in_words(self.directory, self.config)

    def _repr_html_(self) -> str:
        return summary.in_html(self.directory, self.config)

    def narrow(self, weights: str) -> str:
        """Round the weights of the decoder to "bf16" or "int8" (docs/native.md); what that comes to, which is a note
        of the run too."""
        told = narrow(self.directory, self.task, self.model, weights)
        self.notes[told] = None
        return told

    # ---- verbs

    @property
    def served(self) -> Served:
        """What verbs are asked of."""
        return Served(self.task, self.model, self.config.task, str(self.path))

    def generate(self, prompt: Any = "", **request: Any) -> list[Generated]:
        """What continues the prompt, the most probable first: `run.generate("ROMEO:", n=3, max_tokens=100)`."""
        return cast(list[Generated], self.do("generate", prompt, **request))

    def stream(self, prompt: Any = "", **request: Any) -> Iterator[str]:
        """One text, token by token as it is generated; the settings are those of `generate`."""
        asked = asked_of(self.served, "generate", request)[1]
        if not isinstance(self.task, Streams):
            raise UsageError(f"a run of the task '{self.config.task}' does not write text; use generate")
        (begun,) = started([Given(prompt)], asked.condition)
        return self.task.stream(self.model, begun, asked)

    def score(self, examples: Any, conditions: Sequence[str | None] | None = None, **request: Any) -> list[Scored]:
        """Log-probability of each example, in order; examples are read as for `predict`."""
        return cast(list[Scored], self._results("score", examples, conditions, request))

    def predict(
        self, examples: Any, conditions: Sequence[str | None] | None = None, **request: Any
    ) -> list[Prediction]:
        """The prediction for each example, in order; tasks that generate text take settings too, such as `beam=5`.

        Examples are bare inputs in a list, or data in any form that can be trained on (rows, a data frame, arrays, a
        path), of which the inputs are found by the columns of the run. A series of a long table is one example.
        """
        return cast(list[Prediction], self._results("predict", examples, conditions, request))

    def embed(self, examples: Any, **request: Any) -> NDArray[Any] | list[NDArray[Any]]:
        """A vector for each example [n, D], or with `pool="none"` a list with the vectors [T, D] of its positions;
        `layer` is the layer that they are from. Examples are read as for `predict`."""
        found = arrays_of(self._results("embed", examples, None, request))
        return np.split(found["vectors"], found["offsets"][1:-1]) if "offsets" in found else found["vectors"]

    def do(self, verb: str, inputs: Any, own_file: str | Path | None = None, **request: Any) -> list[Result]:
        """Any verb: `run.do("my-verb", data, top=3)`; `own_file` is a Python file that defines it."""
        if own_file is not None:
            discover.verbs.add_file(own_file)
        return self._results(verb, inputs, None, request)

    def _results(
        self, verb: str, inputs: Any, conditions: Sequence[str | None] | None, request: Mapping[str, Any]
    ) -> list[Result]:
        found = self.each(verb, inputs, request, conditions)
        return [{**given.names, **line} for given, line in found]

    def each(
        self,
        verb: str,
        inputs: Any,
        request: Mapping[str, Any] | None = None,
        conditions: Sequence[str | None] | None = None,
    ) -> Iterator[tuple[Given, Result]]:
        """Inputs with their results, as they are made, so that data of any size passes."""
        spec, asked = asked_of(self.served, verb, request or {})
        if spec.takes != "examples":
            alone = [Given(inputs)] if spec.takes == "prompt" or isinstance(inputs, str) else [*map(Given, inputs)]
            yield from ((alone[0], result) for result in called(self.served, verb, alone, asked))
            return
        done = 0
        for some in self._started(inputs, conditions):
            results = called(self.served, verb, some, asked, done)
            yield from (
                (given, result) for result, given in zip(results, some)
            )  # all results, so that they are counted
            done += len(some)

    def why_not(self, verb: str) -> str | None:
        """Why this run cannot do what a verb does; None: it can."""
        return why_not(self.served, verb)

    def session(self, condition: str | None = None) -> Session:
        """A stream, read row by row as it arrives: `session.push(row)`; an error if the model cannot run live."""
        return Session(self.served, condition)

    def _started(self, inputs: Any, conditions: Sequence[str | None] | None) -> Iterator[list[Given]]:
        """The inputs, each with the class that starts it, where these are given one by one."""
        done = 0
        for some in self.examples(inputs):
            if conditions is not None:
                own = conditions[done : done + len(some)]
                if len(own) < len(some):
                    raise UsageError(
                        f"found {len(conditions)} conditions for more examples than that: give one for each"
                    )
                some = [given._replace(condition=each) for given, each in zip(some, own)]
            done += len(some)
            yield some
        if conditions is not None and len(conditions) > done:
            raise UsageError(f"found {len(conditions)} conditions for {done} examples: give one for each")

    def examples(self, source: Any) -> Iterator[list[Given]]:
        """The inputs of some data, some at a time; `-` is standard input."""
        with reading(self.path, source):
            yield from each_within(lambda: files_as(self.form), lambda: self.task.read(source))

    def typed(self, words: str) -> Any:
        """An input as it is named in a command (see `Task.typed`)."""
        with reading(self.path, words), files_as(self.form):
            return self.task.typed(words)

    def inspect(
        self,
        question: str,
        value: Any = None,
        settings: Mapping[str, Any] | None = None,
        own_file: str | Path | None = None,
    ) -> Answer:
        """Inspect the model: `run.inspect("attention", "To be or not")`; `unrolled inspect` lists the questions.

        Without an input, the first example of the run's predictions is used. `own_file` is a Python file that
        defines the question.
        """
        if own_file is not None:
            discover.questions.add_file(own_file)
        spec = discover.question(question)
        reason = self.unanswered(question)
        if reason is not None:
            raise UsageError(f"'{question}' does not apply to {self.path}: {reason}")
        own = spec.config.parse(settings or {})
        if value is None:
            with opening(self.path):
                value = self.first_input()
                self.task.example(value)
        with discover.questions.own_mistakes(), discover.models.own_mistakes():
            answer = drawable(spec.ask, self, value, own)
        if not isinstance(answer, Answer):
            found = type(answer).__name__
            raise UsageError(f"ask of the question '{question}' must return an Answer, found {found}")
        require_finite(answer.numbers)
        return answer

    def unanswered(self, question: str) -> str | None:
        """Why a question does not apply to this run; None: it does."""
        with discover.questions.own_mistakes(), discover.models.own_mistakes():
            spec = discover.question(question)
            alone = "this run reads bags of sequences, of which it looks at no single position"
            why = alone if self.task.ports().pooling and not spec.bags else spec.applies(self)
        if why is not None and not isinstance(why, str):
            raise UsageError(f"applies of the question '{question}' must return None or the reason, found {why!r}")
        return why

    def first_input(self) -> Any:
        """What the first saved prediction is for."""
        if isinstance(line := next(iter(self.directory.read_lines("predictions.jsonl")), None), dict):
            return self.task.input_of(line)
        raise DataError(f"{self.path / 'predictions.jsonl'}: there is no example in it; give an input")


def prepare_again(directory: RunDirectory, config: RunConfig, task: Task, data: Any) -> bool:
    """Read the data of a saved run by its settings; whether it is what it was."""
    with reading(directory.path, data, config.source), files_as(config.files.form()):
        task.prepare(data)
    with opening(directory.path):
        before = directory.read_json("data.json")["facts"]["fingerprint"]
    return bool(task.facts()["fingerprint"] == before)


def saved_config(path: str | Path) -> RunConfig:
    """The config of a run directory, or of the model that a comparison selected on validation data."""
    return config_in(RunDirectory.open(run_at(Path(path))))


def config_in(directory: RunDirectory) -> RunConfig:
    """The config of a run directory; what is wrong in it is bad data."""
    values = directory.read_config()
    told = values.get("versions")
    with saved(directory.path / CONFIG, told.get("unrolled") if isinstance(told, dict) else None):
        return RunConfig.parse(values)


def load(
    path: str | Path,
    own_file: str | Path | None = None,
    device: str | None = None,
    trained_on: Any = None,
    valid: Any = None,
    test: Any = None,
    encoding: str | None = None,
    separator: str | None = None,
    weights: str | None = None,
) -> Run:
    """Open a run directory, or the model that a comparison selected on validation data.

    A damaged directory is an error. Code and data are opened only if they are given here, not because the directory
    names them: `own_file` is the Python file that defines its model, `trained_on` the training data, needed to evaluate
    its held-out splits, with `valid` and `test` if these were given to training. `encoding` and `separator` are those
    of the files that it is to read, where they are not recognised. With `weights` "bf16" or "int8" those of its decoder
    are rounded to fewer bits, which native ticks read faster; the change of the loss is in `run.notes`.
    """
    directory = RunDirectory.open(run_at(Path(path)))
    config = config_in(directory)
    if config.own_file is None and directory.path != Path(path):
        own_file = None  # of other models in a comparison
    device = pick_device(device) if device is not None else own_device(config.device)
    config = config.model_copy(update={"device": device})
    own_file_of(directory.path, config.own_file, config.own_file_sha256, own_file)
    with opening(directory.path, config.versions.get("unrolled")):
        run = _opened(directory, config)
    run.trained_on = with_given(trained_on, valid, test)
    given = {key: value for key, value in (("encoding", encoding), ("separator", separator)) if value is not None}
    if given:
        run.form = FilesConfig.parse(given).form()._replace(told=run.notes)
    if weights is not None:
        run.narrow(weights)
    return run


def own_file_for(path: str | Path, own_file: str | Path | None) -> str | Path | None:
    """A user's file where a run needs it, of several that were trained with it at hand; None where it does not."""
    return None if own_file is None or saved_config(path).own_file is None else own_file


def _opened(directory: RunDirectory, config: RunConfig) -> Run:
    task = make_task(config)
    directory.verify(directory.names("codec"))
    task.load_codec(directory.path / "codec")
    facts = directory.read_json("data.json")
    if not isinstance(facts, dict):
        raise DataError(f"{directory.path / 'data.json'}: damaged, expected a JSON object")
    task.recall(facts)
    stored = directory.stored_tensors("model.safetensors")
    fitting.require_fit(config, task.ports(), task.ACCEPTS, stored)
    with fitting.within(stored):
        model = make_model(config, task)
    fitting.require_no_more(model, stored)
    tensors = directory.read_tensors("model.safetensors")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        why = shortened(" ".join(str(error).split()))
        raise DataError(f"{directory.path}: the weights do not match the model in its config.json ({why})") from None
    model.eval()
    return Run(directory, config, task, model)
