"""`unrolled.train(...)`: data in, a run directory out. The command line calls the same function."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

import unrolled
from unrolled.core import config as configs
from unrolled.core import discover
from unrolled.core.errors import DataError, Misused, NotTrained, UsageError
from unrolled.core.front import invocation, option
from unrolled.core.opening import shortened
from unrolled.core.task import Task
from unrolled.data.files.file_form import files_as
from unrolled.data.given_splits import given_sources, names_of_sources, with_given
from unrolled.kernels import native
from unrolled.runs import build, closed_form, cost, parts, trust
from unrolled.runs.baselines import measure_baselines
from unrolled.runs.config import Ends, RunConfig, Start, assemble, full_keys, given_once
from unrolled.runs.device import own_device, pick_device
from unrolled.runs.guess import chosen
from unrolled.runs.keys import flat, leaf_paths
from unrolled.runs.results import read_baselines
from unrolled.runs.run import Run, config_in, load, own_file_for, prepare_again, saved_config
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import RunDirectory, first_free, is_free
from unrolled.runs.storage.locks import in_use
from unrolled.runs.trust import data_of, fingerprint, is_path, own_file_of, paths_among, resume_training, stopped
from unrolled.training import race, recipe, starting, token_choice, told, word_vectors
from unrolled.training.estimate import require_time
from unrolled.training.finishing import finish
from unrolled.training.fit import Ready, fit, require_few, require_processes, tell
from unrolled.training.launching import (
    Crew,
    begins_again,
    crew_of,
    first_of,
    followed,
    number_of,
    require_restarts,
    told_of,
)
from unrolled.training.memory import explain_memory, require_room
from unrolled.training.optimiser import require_used
from unrolled.training.precision import choose_precision
from unrolled.training.processes import NAME, LostProcess, launched, threads_of_each
from unrolled.training.progress import Progress, for_python
from unrolled.training.schedule import DEFAULT_TIME
from unrolled.training.signals import stop_at_once


def train(
    data: Any = None,
    task: str | None = None,
    model: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    recipe: str | Path | None = None,
    own_file: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    baselines: Mapping[str, Any] | None = None,
    from_run: str | Path | None = None,
    freeze: str | Sequence[str] = (),
    valid: Any = None,
    test: Any = None,
    **more: Any,
) -> Run:
    """Train a model on a task and return the saved run: `train("poems.txt", model="gru", steps=500, d_state=128)`.

    `data` is a path, builtin:NAME, a list of strings, an array, a tensor or a data frame. All settings of training,
    data, task and model are keyword arguments with the names of the command line; those with a dot go into `settings`,
    such as {"model.dropout": 0.1}, which accepts all others too. `valid` and `test` are held-out data in the same
    forms; a split that is not given is taken from `data`. `resume` is the directory of an interrupted run, which keeps
    its settings; data that is not built in, `own_file` and `from_run` must be given again, because no file is opened
    because a directory names it. `from_run` is a saved run to start from: its weights wherever they fit, its
    vocabulary, task and model; otherwise a task that is not given is guessed from the data, and the model is the
    default of the task. `freeze` names the parts that are not trained (see --freeze). `baselines` are metrics measured
    before on the same data, {label: {split: metrics}}. `progress` shows the progress (`unrolled.training.progress`);
    without one, a notebook shows a bar and a script nothing.
    """
    started = time.monotonic()
    shown = progress or for_python()
    settings, data = given_once(settings, more), with_given(data, valid, test)
    if from_run is not None and resume is None:
        settings["start.from_run"] = str(from_run)
    if freeze:
        settings["start.freeze"] = freeze if isinstance(freeze, str) else list(freeze)
    if (found := launched()) is not None:
        require_restarts()
    if found is not None and found.rank:
        path = followed(str(settings.get("device") or "cpu"))
        return load(path, own_file=own_file_for(path, own_file), trained_on=data)
    with first_of(found, str(settings.get("device") or "cpu")) as crew:
        if found is not None and resume is None and begins_again(found, out):
            resume, settings, recipe = out, paths_among(settings), None  # the run has the others
        if resume is not None:
            again = {"from_run": from_run} | paths_among(settings)
            left = [key for key in settings if not is_path(key) and key != NAME]
            if given := ", ".join(left) or recipe:
                raise UsageError(f"a resumed run keeps its settings: leave out {given}, or start a new run")
            run = _resume(Path(resume), data, own_file, again, shown, started, settings.get(NAME), crew)
            return told_of(crew, run)
        if own_file is not None:
            model = discover.join_for(own_file, model)
        if "train" not in given_sources(data):
            raise UsageError("no data was given: name a file, a folder or builtin:NAME (see `unrolled data`)")
        config = configure(task, model, data, settings, recipe, own_file, shown)
        keys = given_keys(config, settings, {} if recipe is None else configs.read_toml(recipe))
        with stop_at_once(), _begun(Path(out) if out is not None else _free_name(config), shown) as directory:
            if baselines is not None:
                directory.write_json("baselines.json", dict(baselines))
            return told_of(crew, _work(directory, config, data, shown, started, keys, crew))


@contextmanager
def _begun(path: Path, shown: Progress) -> Iterator[RunDirectory]:
    """A new run directory that no other process uses; it is gone again if training does not begin."""
    RunDirectory(path).require_free()  # before anything is put there
    with in_use(path):
        if RunDirectory(path).require_free():
            shown.say(f"{path}: a run was stopped here before training started; starting again")
        run = RunDirectory.create(path)
        try:
            yield run
        except NotTrained:
            atomic.remove_directory(path)  # there is nothing in it that was learned
            raise
        finally:
            if path.exists() and not run.has("config.json"):
                atomic.remove_directory(path)  # it never began: leave nothing half-made behind


def configure(
    task: str | None,
    model: str | None,
    data: Any,
    settings: Mapping[str, Any],
    recipe: str | Path | None = None,
    own_file: str | Path | None = None,
    shown: Progress | None = None,
) -> RunConfig:
    """The config of a run: defaults, the advice of model and task, what a saved run had, a recipe, `settings`; `shown`
    says what was guessed."""
    values = configs.read_toml(recipe) if recipe is not None else {}
    origin = starting.given_origin(settings, values)
    saved = None if origin is None else saved_config(origin)
    task, model = task or values.pop("task", None), model or values.pop("model", None)
    if saved is not None:
        if model is None:  # its model is taken too
            own_file_of(Path(str(origin)), saved.own_file, saved.own_file_sha256, own_file)
        task, model = task or saved.task, model or saved.model
    task, model, said = chosen(task, model, data, {**flat(values), **settings})
    if said and shown is not None:
        shown.say(said)
    spec, of_task = discover.model(model), discover.tasks.load(task)
    advice = {**spec.recipe, **of_task.Task.FOR_KIND.get(spec.kind, {}), **of_task.Task.ADVICE.get(model, {})}
    advice |= word_vectors.advice(settings, values)
    if saved is not None:
        named = {**flat(values), **settings}
        advice |= starting.inherited(saved, model) | starting.of_half("encoder", saved, spec.config, named)
        if (second := starting.given_decoder(settings, values)) is not None:
            advice |= starting.of_half("decoder", saved_config(second), spec.config, named)
    config = assemble(settings, values, advice, spec.config, of_task.Config)
    if not config.is_alone or config.combine != "outputs":
        raise UsageError(f"ensembles are trained with: {invocation('compare', {'folds': 5}, 'DATA')}")
    given = names_of_sources(data)
    facts: dict[str, Any] = {"task": task, "model": model, "source": given.pop("train"), "given": given}
    facts["versions"] = versions()
    n = number_of(config.processes, launched())
    facts |= {"threads": config.threads or threads_of_each(n), "device": pick_device(config.device), NAME: n}
    facts |= {} if own_file is None else {"own_file": Path(own_file).name, "own_file_sha256": fingerprint(own_file)}
    return config.model_copy(update=facts)


def given_keys(config: RunConfig, settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> frozenset[str]:
    """The full keys of what was given by hand, in a recipe file or by a saved run to start from: it stays so."""
    own = discover.model(config.model).config, discover.tasks.load(config.task).Config
    keys = {*full_keys(settings, *own), *flat(recipe)}
    if config.start.from_run is not None:
        keys |= {*leaf_paths(Ends, "ends."), *(f"model_settings.{name}" for name in config.model_settings)}
    if config.start.from_run is not None or config.start.vectors is not None:
        keys |= token_choice.GIVEN
    return frozenset(keys)


def versions() -> dict[str, str]:
    """What last digits depend on; "native" is the level of the kernels (docs/native.md)."""
    return {
        "unrolled": unrolled.__version__, "torch": torch.__version__, "python": platform.python_version(),
        "native": native.loaded().level,
    }  # fmt: skip


def _free_name(config: RunConfig) -> Path:
    """runs/lstm-python-docs, runs/lstm-python-docs-2, ..."""
    stem = Path(config.source.removeprefix("builtin:")).stem or "data"
    return first_free(Path("runs") / f"{config.model}-{stem}", is_free)


def _resume(
    path: Path, data: Any, own_file: str | Path | None, again: Mapping[str, Any], shown: Progress, started: float,
    asked: Any, crew: Crew | None,
) -> Run:  # fmt: skip
    run = RunDirectory.open(path)
    config = config_in(run)
    if _is_finished(run):
        run.tidy()
        shown.say(f"{path}: this run is finished")
        return load(path, own_file=own_file, trained_on=data)
    data = data_of(path, config.source, config.given, data, resume_training(path, config))
    own_file_of(path, config.own_file, config.own_file_sha256, own_file)
    for name, now in versions().items():
        before = config.versions.get(name, "off" if name == "native" else None)  # runs older than the kernels
        if before != now:
            told = f"native kernels were {before} and are" if name == "native" else f"{name} was {before} and is"
            shown.say(f"note: {told} {now}; last digits may differ")
    config = _named_again(run, config, again)
    if asked is None and crew is None:
        require_few(path, config)
    if (n := number_of(asked or (config.processes if crew is None else None), launched())) != config.processes:
        shown.say(f"note: processes were {config.processes} and are {n}; last digits may differ")
        own = config.optimiser.updated({"shard": config.optimiser.shard and n > 1})
        config = config.model_copy(update={NAME: n, "optimiser": own})
    if own_device(config.device) != config.device:
        new = f"start a new run with its weights by {option('from_run', path)}"
        raise DataError(
            f"{path}: this run was trained on {config.device}, which this machine does not have; resume it "
            f"elsewhere, or {new}"
        )
    with stop_at_once(), in_use(path):
        if _is_finished(run):  # by another process, just now
            return load(path, own_file=own_file, trained_on=data)
        return _work(run, config, data, shown, started, None, crew)


def _is_finished(run: RunDirectory) -> bool:
    """Its results are written last."""
    return (run.path / "result.json").exists()


def _named_again(run: RunDirectory, config: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    """The config with the paths that were named again; one that is needed and was not named is asked for."""
    named = paths_among(config.task_settings)
    if not starting.began(run):
        first = {name: path for name, path in config.start if is_path(name)}
        named |= {name: path for name, path in first.items() if path is not None}
    for name, before in named.items():
        if given.get(name) is None:
            again = resume_training(run.path, config)
            raise DataError(
                f"{run.path}: its {name} is {shortened(before)}, which is opened only if you name it explicitly: "
                f"{again}"
            )
        if name in ("target_file", "teacher_run") and not trust.is_same(given[name], before):
            what = "file of targets" if name == "target_file" else "teacher"
            raise DataError(f"{given[name]}: not the {what} that this run started with, {shortened(before)}")
    paths: dict[str, str] = {name: str(given[name]) for name, _ in config.start if name in named}
    return config.model_copy(update={"start": config.start.updated(paths)}) if paths else config


Given = frozenset[str] | None
"""Which settings were given; None: the run is resumed, and has all of them."""


def _work(
    run: RunDirectory, config: RunConfig, data: Any, shown: Progress, started: float, given: Given, crew: Crew | None
) -> Run:
    """All there is to do, stoppable at any moment."""
    require_processes(config)
    try:
        known = trust.saved(run.path, config.versions.get("unrolled"), (Misused, NotTrained))
        told = known if given is None else nullcontext()
        with discover.models.own_mistakes(), told, files_as(config.files.form()), crew_of(config, crew) as crew:
            return _train(run, config, data, shown, started, given, crew)
    except LostProcess as lost:
        raise stopped(str(lost), run.path, config) from None
    except KeyboardInterrupt:
        if not run.has("config.json"):
            raise
        raise stopped("stopped", run.path, config) from None


def _train(
    run: RunDirectory, config: RunConfig, data: Any, shown: Progress, started: float, given: Given, crew: Crew
) -> Run:
    resuming = given is None
    torch.set_num_threads(config.threads or torch.get_num_threads())
    cost.forget_peak()
    task, saved = build.make_task(config), _origin(run, config, resuming)
    config = starting.teach(task, config)
    build.require_model(config, task.asks())
    if resuming and config.from_vocabularies:
        starting.offer_own(run, config, task)
    elif saved is not None:
        starting.offer_vocabularies(task, saved)
    words: list[str] = []
    if given is not None:
        task.prepare(data)
        if saved is not None:
            starting.require_overlap(task, saved)
        config, task, words = token_choice.for_run(config, task, data, given)
    elif not prepare_again(run, config, task, data):
        raise DataError(f"{run.path}: the data has changed since this run started; restore it, or start a new run")
    before = run.read_json("data.json")["facts"].get("notes") if resuming else []
    tell(shown, [note for note in task.facts().get("notes", []) if note not in (before or [])])
    config = config if given is None else recipe.looking(config, task, given)
    choice = recipe.Chosen(config)
    if given is not None:
        left = (config.budget.time or DEFAULT_TIME) - (time.monotonic() - started)
        choice = recipe.chosen(config, task, given, left)
        config = choice.config
        told.add(run, [*words, *choice.words], shown)
    require_processes(config)
    require_room(config, task)
    model = build.make_model(config, task)
    closed_form.require_weights(config, task, model)
    require_used(model, config.model, config.optimiser, given or ())
    if closed_form.applies(config, task.ports()) and config.start != Start():
        wrong = f"{option('from_run')}, {option('vectors')} and {option('freeze')}"
        raise UsageError(f"the model '{config.model}' is fitted in closed form, not trained: leave out {wrong}")
    if not resuming:
        require_time(config, task, model, time.monotonic() - started, choice.pace)
    frozen = parts.freeze(model, config.start.freeze)
    vectors = None if resuming and starting.began(run) else word_vectors.take(run.path, config, task, model)
    if vectors is not None:
        told.add(run, [vectors.words], shown)
        config = config.model_copy(update={"vectors_sha256": vectors.sha256})
    if saved is not None:
        taken = starting.take_weights(model, task, saved, () if vectors is None else vectors.tensors, config.start.take)
        shown.say(taken.words(" and ".join(dict.fromkeys(str(each.path) for _, each in saved.by_half()))))
        starting.require_taken(frozen, taken)
    if not resuming:
        config = config.model_copy(
            update={"optimiser": choose_precision(config, task, model)}  # resolves precision = auto
        )
        if saved is not None:
            config = config.model_copy(update=starting.facts(task, saved))
        task.save_codec(run.path / "codec")
        run.seal()
        run.write_json("data.json", {**task.describe(), "facts": task.facts()})
        run.write_config(config.model_dump(mode="json"))
    baselines = _baselines(run, config, task)
    with explain_memory(config, task, model):
        config, started = race.raced(run, config, task, model, frozen, shown, started)
    own = discover.joined_file(config.own_file)
    found = fit(Ready(run, config, task, frozen, shown, started, resuming, crew, data, own), model)
    finish(run, config, task, found.model, found.outcome | {"baselines": baselines}, started, found.processes)
    done = load(run.path, own_file=own, trained_on=data)
    done.target_file = paths_among(config.task_settings).get("target_file")
    return done


def _origin(run: RunDirectory, config: RunConfig, resuming: bool) -> starting.Origin | None:
    """The saved runs that give the first weights; a resumed run that has its own needs them no more."""
    if config.start.from_run is None or (resuming and starting.began(run)):
        return None
    own, found = discover.joined_file(config.own_file), []
    named = {config.start.from_run: config.from_run_sha256, config.start.decoder_from: config.decoder_from_sha256}
    for path, sha256 in named.items():
        if path is not None:
            found.append(load(path, own_file=own_file_for(path, own), device=config.device))
            if resuming:
                starting.require_unchanged(run.path, found[-1], sha256)
    return starting.Origin(*found)


def _baselines(run: RunDirectory, config: RunConfig, task: Task) -> dict[str, Any]:
    """The figures of the task's own baselines on the held-out splits; made once, before training."""
    if (run.path / "baselines.json").exists():
        return read_baselines(run)
    parts = task.held_out()
    results = measure_baselines(config, task, lambda model: {split: task.evaluate(model, split) for split in parts})
    run.write_json("baselines.json", results)
    return results
