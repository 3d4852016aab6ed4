"""Runs on a Ray cluster, or on Ray on this machine (the extra [ray], imported only when it is asked for).

    --engine ray               the cluster of RAY_ADDRESS, otherwise Ray is started here, on loopback, and ended again
    --engine ray://HOST:PORT   a cluster by its client port

Every process that does runs is an actor which asks for the cores of its runs. Where one is lost with its node, its run
is continued by another from the last checkpoint. Without a shared folder checkpoints come back through Ray.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import unrolled
from unrolled.comparison.claims import DEATHS
from unrolled.comparison.engine import LOOK, PATIENCE, Stop
from unrolled.comparison.parcels import pack, unpack
from unrolled.comparison.runner import Heard, Runner, needed
from unrolled.comparison.worker import ENDS, Event
from unrolled.core.errors import OutOfMemory, UnrolledError, UsageError, needs_extra
from unrolled.core.front import option, reader
from unrolled.core.outside import explained
from unrolled.report.page import write_report

NAME, SCHEME = "ray", "ray://"
ANSWER = 5.0  # seconds in which an address must answer
NODES = 60.0  # seconds in which every node must tell its version
STORE = 200 * 2**20  # bytes of memory for what is carried between processes of this machine


class Cluster:
    """The cluster that an address means; within it, it is connected."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.given = address if address.startswith(SCHEME) else os.environ.get("RAY_ADDRESS")
        self.private: tempfile.TemporaryDirectory[str] | None = None
        if self.given is None and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
            self._make_token()  # Ray reads these when it is imported
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # as there: all on loopback
        self.ray = _imported()
        self.own = not self.ray.is_initialized()

    def __enter__(self) -> Cluster:
        if self.own:
            self._connect()
        _require_same(self.ray)
        return self

    def __exit__(self, *_: object) -> None:
        if self.own:
            self.ray.shutdown()
        if self.private is not None:
            self.private.cleanup()

    def slots(self, threads: int) -> int:
        """Runs of so many threads that the cluster has room for."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 0)) // threads)

    def require_cores(self, threads: int) -> None:
        """That some node has the cores of one run; a cluster that has none yet may grow."""
        cores = [node["Resources"].get("CPU", 0) for node in self.ray.nodes() if node["Alive"]]
        if 0 < max(cores, default=0) < threads:
            most = int(max(cores))
            raise UsageError(f"no node of the Ray cluster has more than {most} cores; use {option('threads', most)}")

    def _connect(self) -> None:
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        try:
            if self.given is None:  # for this user alone, on loopback, without a dashboard
                local = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
                self.ray.init(**local, object_store_memory=STORE, **quiet)
            else:
                _require_answer(self.given)
                self.ray.init(self.given, **quiet)
        except UsageError:
            raise
        except Exception as error:  # of many kinds, by what is wrong at the other end
            why = str(error).strip().splitlines() or [type(error).__name__]
            raise UsageError(f"no Ray cluster at {self.given or 'this machine'}: {why[0][:300]}") from error

    def _make_token(self) -> None:
        """What tells this user from others on this machine, in a file that no other user can read."""
        self.private = tempfile.TemporaryDirectory(prefix="unrolled-ray-")
        token = Path(self.private.name) / "token"
        descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, secrets.token_hex(32).encode())
        os.close(descriptor)
        os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN_PATH"] = "token", str(token)


def _imported() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise needs_extra(error, NAME, f"{option('engine', NAME)} needs") from None
    return ray


def _require_answer(address: str) -> None:
    """That somebody listens there; Ray itself would try for minutes."""
    host, _, port = address.removeprefix(SCHEME).partition("/")[0].rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"invalid value {option('engine', address)}: expected ray, or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"no Ray cluster at {address}: no connection ({why}); start one, or name another") from None


def _require_same(ray: Any) -> None:
    """That every node has this version of the library."""

    def version() -> str | None:  # sent as it is, to nodes that may not have the library
        try:
            import unrolled
        except ImportError:
            return None
        return unrolled.__version__

    there = ray.remote(num_cpus=0)(version)
    by_node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = [there.options(scheduling_strategy=by_node(node["NodeID"], soft=False)).remote() for node in nodes]
    for node, ref in zip(nodes, asked):
        name = node["NodeManagerHostname"]
        try:
            found = ray.get(ref, timeout=NODES)
        except ray.exceptions.RayError as error:
            raise UsageError(f"the node {name} of the Ray cluster does not respond ({type(error).__name__})") from None
        require_version(name, found)


def require_version(node: str, found: str | None) -> None:
    """That a node has this version of the library."""
    if found != unrolled.__version__:
        has = "has no unrolled" if found is None else f"has unrolled {found}"
        raise UsageError(
            f"the node {node} of the Ray cluster {has}, this is {unrolled.__version__}; install the same version there"
        )


class _Place:
    """An actor, what it is asked at the moment, and the order that it does."""

    def __init__(self, actor: Any, ref: Any) -> None:
        self.actor, self.ref = actor, ref
        self.order: Event | None = None
        self.shared = True
        self.there = False  # it has told its facts


class RayEngine:
    """Runs by `at_once` actors of so many threads each."""

    def __init__(self, cluster: Cluster, folder: Path, at_once: int, threads: int, mark: str | None = None) -> None:
        self.ray, self.folder, self.at_once, self.threads = cluster.ray, folder, at_once, threads
        self.mark = mark or f".shared-{secrets.token_hex(8)}"
        self.places: list[_Place] = []
        self.deaths: dict[str, int] = {}
        self.stillborn = 0  # actors in a row that were lost before they told their facts
        self.stopping: float | None = None
        if mark is None:
            (self.folder / self.mark).touch()

    def events(self, orders: Sequence[Event], stop: Stop) -> Iterator[Event]:
        waiting = list(orders)
        self.waiting = waiting
        while len(self.places) < min(self.at_once, len(waiting)):
            self._hire()
        for place in self.places:
            if place.order is None and place.ref is None:
                yield from self._next(place)
        while (waiting and self.stopping is None) or any(place.order for place in self.places):
            if stop.asked:
                self._stop()
                if not any(place.order for place in self.places):
                    return
            refs = [place.ref for place in self.places if place.ref is not None]
            ready, _ = self.ray.wait(refs, num_returns=1, timeout=LOOK) if refs else ([], None)
            for ref in ready:
                yield from self._heard(next(place for place in self.places if place.ref == ref))

    def _hire(self) -> None:
        actor = (
            self.ray.remote(Runner)
            .options(num_cpus=self.threads, max_restarts=0)
            .remote(self.threads, str(self.folder), self.mark, reader(), os.getcwd())
        )
        self.places.append(_Place(actor, actor.facts.remote()))

    def _heard(self, place: _Place) -> Iterator[Event]:
        try:
            found = self.ray.get(place.ref)
        except self.ray.exceptions.RayActorError as error:
            yield from self._lost(place, error)
            return
        except self.ray.exceptions.RayTaskError as error:
            found = Heard([_failed(error.cause)])
        place.ref = None
        if isinstance(found, dict):
            require_version(found["host"], found["unrolled"])
            place.shared, place.there, self.stillborn = found["shared"], True, 0
            yield from self._next(place)
            return
        assert place.order is not None
        unpack(self.folder, found.parcel)
        run = place.order["folder"]
        for event in found.events:
            if event["event"] == "done" and not place.shared:
                write_report([self.folder / run])  # the one that came back has the paths of the node
            yield {**event, "folder": run}
            if event["event"] in ENDS:
                place.order = None
                break
        if place.order is None:
            yield from self._next(place)
        else:
            place.ref = place.actor.heard.remote()

    def _next(self, place: _Place) -> Iterator[Event]:
        """Give an order to an actor that has none."""
        if not self.waiting or self.stopping is not None:
            return
        order = place.order = self.waiting.pop(0)
        parcel = {} if place.shared else pack(self.folder, needed(order, str(self.folder)))
        place.ref = place.actor.begin.remote(order, parcel, time.time())
        if self.deaths.get(order["folder"]) is None:
            yield {"event": "begin", "folder": order["folder"]}

    def _lost(self, place: _Place, error: Exception) -> Iterator[Event]:
        """Another takes over what an actor did that is gone."""
        self.places.remove(place)
        self._kill(place)  # it may only be out of reach
        self.stillborn += not place.there
        if self.stillborn > DEATHS:
            why = str(error).strip().splitlines()[-1].strip()
            raise UnrolledError(f"processes on the Ray cluster end before their first run: {why[:300]}")
        if place.order is not None:
            run = place.order["folder"]
            self.deaths[run] = self.deaths.get(run, 0) + 1
            if self.stopping is not None:
                yield {"event": "stopped", "folder": run}
            elif self.deaths[run] > DEATHS:
                why = f"its node was lost {DEATHS + 1} times, most likely because it ran out of memory"
                yield {"event": "failed", "folder": run, "why": why, "code": OutOfMemory.exit_code}
            else:
                yield {"event": "said", "folder": run, "text": "its node was lost; continued elsewhere"}
                self.waiting.insert(0, place.order)
        if self.waiting and self.stopping is None:
            self._hire()

    def _stop(self) -> None:
        """Ask those that work to save and leave; those that do not for a long time are ended."""
        if self.stopping is None:
            self.stopping = time.monotonic()
            for place in self.places:
                if place.order is not None:
                    place.actor.stop.remote()
        elif time.monotonic() - self.stopping > PATIENCE:
            for place in self.places:
                self._kill(place)

    def _kill(self, place: _Place) -> None:
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(place.actor)

    def close(self) -> None:
        for place in self.places:
            if place.there:  # otherwise it still waits for a core
                with suppress(self.ray.exceptions.RayError):
                    self.ray.get(place.actor.close.remote(), timeout=PATIENCE)
            self._kill(place)
        self.places = []
        with suppress(OSError):
            (self.folder / self.mark).unlink()


def _failed(error: BaseException) -> Event:
    """What went wrong on a node beside the run itself."""
    known = explained(error) or UnrolledError(f"internal error: {type(error).__name__}: {error}")
    return {"event": "failed", "why": str(known), "code": known.exit_code}
