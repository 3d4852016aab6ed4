"""`join`: runs of several folds as one run of its own: answering together, or solved again on all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError
from unrolled.core.task import Fitted, Model, Task
from unrolled.data.files.file_form import files_as
from unrolled.layers.parts.ensemble import Together
from unrolled.runs import build, closed_form
from unrolled.runs.config import Member, RunConfig
from unrolled.runs.run import Run, load, own_file_for
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.locks import in_use
from unrolled.training.finishing import finish


def join(
    members: Sequence[str | Path],
    data: Any,
    out: str | Path,
    own_file: str | Path | None = None,
    baselines: Mapping[str, Any] | None = None,
) -> Run:
    """A run whose model is all of theirs: the mixture of their predictions. A model that is fitted in closed form needs
    no validation data to end by, so it is solved once more on all folds.

    They must be of one model and of the same data, cut into the same folds. The figures on test data are those of the
    new run; the figures on validation data are the mean of theirs, each on the fold that it has not seen. `left_out` is
    the score by which models of folds are ranked.
    """
    started = time.monotonic()
    runs = [load(path, own_file=own_file_for(path, own_file)) for path in members]
    first = runs[0].config
    solved = closed_form.applies(first, runs[0].task.ports())
    cut = {f"task_settings.{runs[0].task.FOLD}": {"of": len(runs)}}
    config = first.updated({**({"members": 1} if solved else _together(runs)), **cut})
    task = build.make_task(config)
    with files_as(config.files.form()):
        task.prepare(data)
    for run in runs:
        if run.task.ports().shape() != task.ports().shape():
            raise DataError(f"{run.path}: this run was trained on other data than the others; train it again")
    model = build.make_model(config, task)
    fitted = Fitted()
    if isinstance(model, Together):
        for member, run in zip(model.members, runs, strict=True):
            member.load_state_dict(run.model.state_dict())
    else:
        fitted = closed_form.fit(config, task, model)
    task.learn_from([run.task for run in runs])
    outcome = _outcome([run.result for run in runs]) | {"baselines": dict(baselines or {})}
    outcome |= {"notes": closed_form.notes(config, fitted), "chosen": dict(fitted.chosen)} if solved else {}
    outcome["left_out"] = left_out([_curve(run, task.criterion) for run in runs])
    return saved(out, config, task, model, outcome, started, own_file)


def saved(
    out: str | Path,
    config: RunConfig,
    task: Task,
    model: Model,
    outcome: dict[str, Any],
    started: float,
    own_file: str | Path | None,
) -> Run:
    """A model that was not trained by itself as a run like any other, with its figures on all held-out data."""
    with in_use(Path(out)):
        is_finished = (Path(out) / "result.json").exists()
        directory = RunDirectory.create(out, overwrite=not is_finished)  # what an interrupted comparison left of it
        task.save_codec(directory.path / "codec")
        directory.seal()
        directory.write_config(config.model_dump(mode="json"))
        directory.write_json("baselines.json", outcome["baselines"])
        directory.write_tensors("model.safetensors", model.state_dict())
        finish(directory, config, task, model, outcome, started)
    return load(out, own_file=own_file_for(out, own_file))


def _together(runs: Sequence[Run]) -> dict[str, Any]:
    """What the config of one model says of several, which may differ in size: each had its own time."""
    shapes = [(run.config.model_settings, run.config.ends) for run in runs]
    if all(shape == shapes[0] for shape in shapes):
        return {"members": len(runs), "combine": "mixture"}
    members = [Member.of(run.path.name, run.config, 1 / len(runs)) for run in runs]
    return {"ensemble": [member.model_dump() for member in members], "combine": "mixture"}


def _outcome(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What training came to: the mean figures on validation data, all folds, and the sum of the work."""
    found: dict[str, Any] = {
        "valid": mean_figures([result["valid"] for result in results]),
        "folds": [result["valid"] for result in results],
        "steps": sum(result["steps"] for result in results),
        "training_seconds": round(sum(result["training_seconds"] for result in results), 2),
    }
    if all("tokens_per_second" in result for result in results):
        found["tokens_per_second"] = round(float(np.mean([result["tokens_per_second"] for result in results])))
    return found


def _curve(run: Run, score: str) -> list[float]:
    """The scores on the fold left out while the run was trained; of a model that was solved the one that there is."""
    lines = RunDirectory.open(run.path).read_metrics()
    curve = [line[score] for line in lines if line.get("split") == "valid"]
    return curve or [run.result["valid"][score]]


def left_out(curves: Sequence[Sequence[float]]) -> float:
    """The mean score of folds, each read at the evaluation that is best for the others.

    The weights of a run are those at which its own fold is best; a score read there is kinder than new data will be,
    the more so the smaller the fold, and kinder than that of a model with nothing to choose. The moment that the others
    choose owes the fold nothing. A curve that ended earlier counts with its end.

    >>> left_out([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]])  # the least would be 1.0
    2.0
    """
    n = max(map(len, curves))
    each = np.array([[curve[min(i, len(curve) - 1)] for i in range(n)] for curve in curves])  # [K, n]
    others = np.stack([np.delete(each, k, axis=0).mean(0) for k in range(len(each))])
    chosen = n - 1 - others[:, ::-1].argmin(1)  # of equal ones the later, as in training
    return float(np.take_along_axis(each, chosen[:, None], 1).mean())


def mean_figures(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure that all folds have; `tokens` are counted together.

    >>> mean_figures([{"error": 0.5, "tokens": 10}, {"error": 0.25, "tokens": 11}])
    {'error': 0.375, 'tokens': 21}
    """
    names = [name for name in figures[0] if all(name in each for each in figures)]
    means = {name: float(np.mean([each[name] for each in figures])) for name in names}
    return means | {"tokens": int(sum(each["tokens"] for each in figures))}
