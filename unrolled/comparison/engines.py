"""Which engine does the runs of a comparison, by what was asked for: `processes` of this machine, or Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.comparison.engine import Engine, Inline, Processes
from unrolled.comparison.plan import Plan
from unrolled.comparison.worker import Event
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.data.given_splits import MEMORY, names_of_sources

PROCESSES = "processes"


class Place(NamedTuple):
    """Where runs are done."""

    slots: int | None
    """runs of one thread at the same time; None: as many as this machine has cores"""
    engine: Callable[[Path, Plan, Any, Callable[[Event], None]], Engine]
    """engine(folder, plan, data, watch)"""


@contextmanager
def place(name: str) -> Iterator[Place]:
    """The place of a name, as long as it is needed."""
    if name == PROCESSES:
        yield Place(None, _here)
        return
    from unrolled.comparison import ray_engine

    if name != ray_engine.NAME and not name.startswith(ray_engine.SCHEME):
        raise UsageError(f"invalid value {option('engine', name)}: expected processes, ray, or ray://HOST:PORT")
    with ray_engine.Cluster(name) as cluster:

        def there(folder: Path, plan: Plan, *_: Any) -> Engine:
            return ray_engine.RayEngine(cluster, folder, plan.at_once, plan.threads)

        yield Place(cluster.slots(1), there)


def _here(_folder: Path, plan: Plan, data: Any, watch: Callable[[Event], None]) -> Engine:
    return Inline(data, watch) if in_memory(data) else Processes(plan.at_once, plan.threads)


def in_memory(data: Any) -> bool:
    """Whether data is in this process, so that other processes cannot read it."""
    return MEMORY in names_of_sources(data).values()


def require_files(data: Any, why: str) -> None:
    """Refuse data in memory where other processes read it."""
    if in_memory(data):
        raise UsageError(f"{why} reads its data from files: save what is in memory to a file, and name that")
