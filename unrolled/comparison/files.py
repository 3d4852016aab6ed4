"""The two files of a comparison beside its runs: `plan.json`, what was decided, and `table.json`, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.comparison.plan import Plan
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.opening import require_own_folders, shortened
from unrolled.runs.storage import atomic, formats
from unrolled.runs.storage.directory import TABLE
from unrolled.runs.trust import paths_among, saved

PLAN = "plan.json"


def write_plan(folder: Path, plan: Plan) -> None:
    """What is decided, before the first run, and the share of each when that is known."""
    _write(folder / PLAN, plan.model_dump(mode="json"))


def write_table(folder: Path, table: Mapping[str, Any]) -> None:
    """Everything that is known so far."""
    _write(folder / TABLE, dict(table))


def _write(path: Path, value: Any) -> None:
    atomic.write_text(path, formats.json_text(formats.with_check(formats.numbered(value)), str(path)))


def read_plan(folder: Path) -> Plan:
    """What was decided; it may come from anybody."""
    if not (folder / PLAN).exists():
        raise DataError(f"{folder} is not a comparison: it has no {PLAN}")
    require_own_folders(folder)
    values = formats.read_checked(folder / PLAN, within=folder)
    with saved(folder / PLAN):
        return Plan.parse(values)


def require_named(folder: Path, plan: Plan, given: Mapping[str, str]) -> None:
    """Paths in the settings of a plan are opened only if they are named again."""
    for settings in (plan.settings, *plan.apart.values(), *(job.settings for job in plan.jobs)):
        for name, path in paths_among(settings).items():
            if given.get(name) != path:
                flag = option(name, shortened(path))
                raise DataError(f"{folder}: its {name} is opened only if you name it explicitly; add {flag}")
