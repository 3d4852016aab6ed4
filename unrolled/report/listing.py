"""Which run directories and comparisons there are, what is in them, and how to be rid of them.

Listing never fails because of one directory: what cannot be read is listed as damaged. Deleting removes only what is a
run or a comparison beyond doubt, never follows a link, and takes the files that mark it as one last, so that an
interrupted deletion can be repeated.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unrolled.core.errors import CannotWrite, UnrolledError, UsageError
from unrolled.report.read import RunFacts, is_comparison, is_run, number, read_run
from unrolled.runs.selection import read_table, select
from unrolled.runs.storage import manifest
from unrolled.runs.storage.directory import CONFIG, TABLE
from unrolled.runs.storage.formats import OtherFormat
from unrolled.runs.storage.locks import LOCK, in_use, is_idle

DEEPEST = 5  # folders below the one that is looked through
MARKS = (CONFIG, TABLE, manifest.NAME)


@dataclass(frozen=True)
class Entry:
    """A run or a comparison as a line of the list; `model` of a comparison is the one that it selected."""

    path: str
    kind: str
    state: str  # finished, unfinished, damaged, older format or later format
    task: str = ""
    model: str = ""
    data: str = ""
    score_name: str = ""
    score: float | None = None
    parameters: int | None = None
    runs: int = 1
    bytes: int = 0
    age_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def list_all(folders: Sequence[str | Path]) -> list[Entry]:
    """Everything below some folders, newest first; runs within a comparison belong to it."""
    found = [_entry(path) for folder in folders for path in _find(Path(folder), DEEPEST)]
    return sorted(found, key=lambda entry: (entry.age_seconds, entry.path))


def _find(folder: Path, deepest: int) -> Iterator[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return
    if is_comparison(folder) or is_run(folder):
        yield folder
    elif deepest > 0:
        try:
            inner = sorted(folder.iterdir())
        except OSError:
            return
        for each in inner:
            if not each.name.startswith("."):
                yield from _find(each, deepest - 1)


def _entry(path: Path) -> Entry:
    size, changed = _weigh(path)
    told: dict[str, Any] = {"path": str(path), "bytes": size, "age_seconds": round(max(time.time() - changed, 0.0), 1)}
    kind = "comparison" if is_comparison(path) else "run"
    try:
        return _comparison(path, told) if kind == "comparison" else _run(read_run(path), told)
    except OtherFormat as other:
        return _of_other_format(other, kind, told)
    except UnrolledError:
        return Entry(kind=kind, state="damaged", **told)


def _of_other_format(other: OtherFormat, kind: str, told: dict[str, Any]) -> Entry:
    """What another release wrote, as far as its configuration or its table reads as those of this one."""
    task, model, data = (other.values.get(key) for key in ("task", "model", "source" if kind == "run" else "data"))
    return Entry(
        kind=kind, state=f"{'older' if other.is_older else 'later'} format", task=str(task or ""),
        model=str(model or ""), data=str(data or ""),
        runs=1 if kind == "run" else sum(map(is_run, _folders(Path(told["path"])))), **told,
    )  # fmt: skip


def _run(run: RunFacts, told: dict[str, Any]) -> Entry:
    state = "damaged" if run.notes else "finished" if run.is_finished else "unfinished"
    parameters = number(run.result.get("parameters"))
    return Entry(
        kind="run", state=state, task=run.task, model=run.model, data=str(run.config.get("source") or ""),
        score_name=run.score_name if run.score is not None else "", score=run.score,
        parameters=None if parameters is None else int(parameters), **told,
    )  # fmt: skip


def _comparison(path: Path, told: dict[str, Any]) -> Entry:
    table = read_table(path)
    selected = select(table)
    best = {} if selected is None else dict(selected.row)
    parameters = number(best.get("parameters"))
    return Entry(
        kind="comparison", state="finished" if table.get("finished", True) else "unfinished",
        task=str(table.get("task") or ""), model=str(best.get("label") or ""), data=str(table.get("data") or ""),
        score_name=str(table.get("score") or "") if best else "", score=number(best.get("score")),
        parameters=None if parameters is None else int(parameters), runs=sum(map(is_run, _folders(path))), **told,
    )  # fmt: skip


def _folders(path: Path) -> list[Path]:
    return [each for each in sorted(path.iterdir()) if each.is_dir() and not each.is_symlink()]


def _weigh(path: Path) -> tuple[int, float]:
    """Bytes of all files, links not followed, and when the newest was written, the report aside."""
    size, changed = 0, 0.0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                facts = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode):
                size += facts.st_size
                changed = changed if name == "report.html" else max(changed, facts.st_mtime)
    return size, changed or path.stat().st_mtime


def check_deletable(path: Path) -> None:
    """One sentence on why a path must not be deleted, if it must not."""
    if path.is_symlink():
        raise UsageError(f"{path} is a link, which is not followed: name the directory that it points to")
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory; `unrolled runs` lists those that can be deleted")
    if is_comparison(path):
        _require_table(path)
        others = [each.name for each in _folders(path) if not is_run(each) and not each.name.startswith(".")]
        if others:
            raise UsageError(f"{path} is not deleted: its folder {others[0]} is not a run directory")
        busy = [each for each in (path, *_folders(path)) if not is_idle(each)]
    elif is_run(path):
        manifest.read_manifest(path)
        busy = [] if is_idle(path) else [path]
    else:
        raise UsageError(f"{path} is not deleted: it is neither a run directory nor a comparison")
    if busy:
        raise UsageError(f"{path} is not deleted: {busy[0]} is in use by another process; stop that first")


def _require_table(path: Path) -> None:
    """Refuse a file that is only called table.json; one of an older format is a table."""
    try:
        read_table(path)
    except OtherFormat as other:
        if not other.is_older or not isinstance(other.values.get("rows"), list):
            raise


def delete(paths: Sequence[Path]) -> None:
    """Remove runs and comparisons, after all of them were checked."""
    for path in paths:
        check_deletable(path)
    for path in paths:
        try:
            with in_use(path):
                for each in sorted(path.iterdir(), key=lambda each: (each.name == LOCK, each.name in MARKS, each.name)):
                    if each.is_dir() and not each.is_symlink():
                        shutil.rmtree(each)
                    else:
                        each.unlink()
                path.rmdir()
        except OSError as error:
            raise CannotWrite(f"{path} could not be deleted completely ({error.strerror}: {error.filename})") from None
