"""What a page is made from: run directories and comparison directories, read once into plain values.

A run that is named by itself must be whole and finished. Within a comparison every run is taken as far as it goes: what
is unfinished, damaged or lost becomes a note on the page, and never hides the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError, UnrolledError
from unrolled.runs.results import read_result
from unrolled.runs.selection import read_table
from unrolled.runs.storage.directory import CONFIG, TABLE, RunDirectory
from unrolled.runs.storage.manifest import NAME as MANIFEST
from unrolled.runs.trust import named_beside, resume_command


@dataclass(frozen=True)
class RunFacts:
    """What a run directory says of itself."""

    path: Path
    config: dict[str, Any]
    result: dict[str, Any] = field(default_factory=dict)  # empty: it is not finished
    facts: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def model(self) -> str:
        return str(self.config.get("model", "?"))

    @property
    def task(self) -> str:
        return str(self.config.get("task", "?"))

    @property
    def is_finished(self) -> bool:
        return bool(self.result)

    @property
    def split(self) -> str:
        """The part that figures are of: test, or valid where there is no test."""
        return "test" if "test" in self.result else "valid"

    @property
    def figures(self) -> dict[str, Any]:
        return mapping(self.result.get(self.split))

    @property
    def score_name(self) -> str:
        """The metric that runs are ordered by."""
        told = self.result.get("score")
        if isinstance(told, str) and told in self.figures:
            return told
        return "nats" if "nats" in self.figures else next(iter(self.figures), "score")

    @property
    def score(self) -> float | None:
        return number(self.figures.get(self.score_name))


@dataclass(frozen=True)
class Comparison:
    """What a comparison directory says of itself; its runs by folder name."""

    path: Path
    table: dict[str, Any]
    runs: dict[str, RunFacts]
    notes: list[str]


def mapping(value: Any) -> dict[str, Any]:
    """A table of a file, or an empty one where something else stands."""
    return dict(value) if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_run(path: Path) -> bool:
    return (path / CONFIG).is_file() and (path / MANIFEST).is_file()


def is_comparison(path: Path) -> bool:
    return (path / TABLE).is_file()


def read_run(path: Path) -> RunFacts:
    """A run as far as it goes; what cannot be read of it, except its configuration, is noted."""
    directory = RunDirectory.open(path)
    config = directory.read_config()
    notes: list[str] = []

    def attempt(read: Any, name: str, empty: Any) -> Any:
        try:
            found = read(name) if name == "metrics.jsonl" or directory.has(name) else empty
        except UnrolledError as error:
            notes.append(str(error))
            return empty
        return found if isinstance(found, type(empty)) else empty

    lines = attempt(directory.read_lines, "predictions.jsonl", [])
    return RunFacts(
        path=path,
        config=config,
        result=attempt(lambda _: read_result(directory), "result.json", {}),
        facts=mapping(attempt(directory.read_json, "data.json", {}).get("facts")),
        metrics=attempt(lambda _: directory.read_metrics(), "metrics.jsonl", []),
        predictions=[line for line in lines if isinstance(line, dict)],
        notes=notes,
    )


def read_finished_run(path: Path) -> RunFacts:
    """A run that is named by itself: whole and finished, or one sentence on why not."""
    run = read_run(path)
    if run.notes:
        raise DataError(run.notes[0])
    if not run.is_finished:
        given = run.config.get("given")
        named = named_beside(given if isinstance(given, dict) else {})
        again = resume_command("train", path, str(run.config.get("source", "")), named)
        raise DataError(f"{path} is not finished, so there is nothing to report; resume it with: {again}")
    return run


def read_comparison(path: Path) -> Comparison:
    """A table and its runs, those that can be read."""
    table = read_table(path)
    runs: dict[str, RunFacts] = {}
    notes: list[str] = []
    stopped = _stopped(table)
    for folder in sorted(path.iterdir()):
        hidden = folder.is_symlink() or folder.name.startswith(".") or folder.name in stopped
        if folder.is_dir() and not hidden and is_run(folder):
            try:
                runs[folder.name] = read_run(folder)
            except UnrolledError as error:
                notes.append(f"{folder.name} is left out: {error}.")
    for row in table["rows"]:
        lost = [name for name in row.get("runs") or [] if not (path / str(name)).is_dir()]
        if lost:
            notes.append(f"The run directories of {row['label']} are no longer available: {', '.join(map(str, lost))}.")
    for name, run in runs.items():
        notes += [f"{name}: {note}." for note in run.notes]
        if not run.is_finished and not any(name in (row.get("runs") or []) for row in table["rows"]):
            notes.append(f"{name} is unfinished.")
    return Comparison(path, table, runs, notes)


def _stopped(table: dict[str, Any]) -> set[str]:
    """The trials of a search that were stopped early: they are among its trials, and not unfinished."""
    trials = mapping(table.get("tuning")).get("trials")
    found = map(mapping, trials if isinstance(trials, list) else [])
    return {str(each.get("run")) for each in found if each.get("state") in ("stopped", "failed")}


def read_any(path: Path) -> RunFacts | Comparison:
    """Whatever a path is, or one sentence on why it is neither."""
    if is_comparison(path):
        return read_comparison(path)
    if path.is_dir() and not (path / CONFIG).exists() and not (path / MANIFEST).exists():
        raise DataError(f"{path} is neither a run directory nor a comparison (it has no {CONFIG} and no {TABLE})")
    return read_finished_run(path)
