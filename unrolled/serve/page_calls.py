"""The addresses that the page asks beside those of runs: uploaded data, comparisons, and what can be taken away."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import Field

from unrolled.core import discover
from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.serve import taken
from unrolled.serve.addresses import add, while_connected
from unrolled.serve.body import read_body
from unrolled.serve.contests import Contests
from unrolled.serve.hosted import Hosted
from unrolled.serve.refused import Refused
from unrolled.serve.trained import Started, Trained
from unrolled.serve.uploads import cannot_keep, suffixes

STREAMED = 0.8  # share of the time of a request after which a stream of events ends; its reader asks again
PLACE = 2**40


class Looking(Record):
    """What is asked about an uploaded file."""

    file: str = Field(min_length=1, max_length=64)
    """The file, as POST /uploads named it."""
    task: str | None = Field(None, max_length=64)
    """The task to parse it for; none: it is guessed."""
    settings: dict[str, str | int | float | None] = {}
    """Settings of the data and of the task, such as {"target": "stars"}."""


class Comparing(Looking):
    """A comparison of models on an uploaded file."""

    budget: float = 300.0
    """Seconds that the whole comparison may take."""
    models: str | None = Field(None, max_length=200)
    """Names of the models, separated by commas; none: they are chosen for the task and the data."""


def add_training(app: FastAPI, hosted: Hosted, contests: Contests) -> None:
    """Data of visitors, and comparisons on it; refused where the server was not started for that."""

    def trained() -> Trained:
        if contests.trained is None:
            raise Refused(403, "this server trains nothing; start it with --train FOLDER", "no_training")
        return contests.trained

    async def may_train(request: Request) -> Response:
        mine = contests.trained
        running = None if mine is None or mine.running is None else mine.running.name
        tasks = [{"task": name, "summary": _summary(name)} for name in discover.tasks.names()]
        limits = {"upload_bytes": hosted.limits.upload, "seconds": hosted.limits.training}
        return JSONResponse(
            {"enabled": mine is not None, "running": running, "tasks": tasks, "suffixes": suffixes(), **limits}
        )

    async def upload(request: Request) -> Response:
        found = await trained().uploads.take(request, request.query_params.get("name", ""))
        return JSONResponse({"file": found.number, "name": found.path.name, "bytes": found.size}, 201)

    async def data(request: Request) -> Response:
        mine, asked = trained(), Looking.parse(await read_body(request, hosted.limits))
        found = mine.describe(mine.uploads.require(asked.file), asked.task, asked.settings)
        return JSONResponse(await while_connected(request, found))

    async def start(request: Request) -> Response:
        mine, asked = trained(), Comparing.parse(await read_body(request, hosted.limits))
        own = {"time": asked.budget} | ({} if asked.models is None else {"models": asked.models})
        begun = await mine.start(mine.uploads.require(asked.file), asked.task, asked.settings, own)
        return JSONResponse(_begun(begun), 201)

    add(app, "GET", "/training", "Whether comparisons can be started here, and on which files.", may_train)
    add(app, "POST", "/uploads", "Upload a file of data.", upload, {"type": "string", "format": "binary"},
        {"name": {"type": "string"}}, "application/octet-stream")  # fmt: skip
    add(app, "POST", "/data", "How an uploaded file will be parsed.", data, Looking.model_json_schema())
    add(app, "POST", "/comparisons", "Start a comparison on an uploaded file.", start, Comparing.model_json_schema())


def add_comparisons(app: FastAPI, hosted: Hosted, contests: Contests) -> None:
    """What is known of comparisons, what happens in them, and who may stop them."""

    async def listed(request: Request) -> Response:
        return JSONResponse({"comparisons": await run_in_threadpool(contests.listed)})

    async def one(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(contests.about, request.path_params["comparison"]))

    async def events(request: Request) -> Response:
        name, start = request.path_params["comparison"], _place(request.query_params.get("start", "0"))
        await run_in_threadpool(contests.require, name)
        found = contests.events(name, start, STREAMED * hosted.limits.seconds)
        return StreamingResponse(found, media_type="text/event-stream")

    async def stop(request: Request) -> Response:
        name = request.path_params["comparison"]
        contests.require(name)
        _mine(contests).stop(name)
        return JSONResponse({"comparison": name, "state": "stopping"}, 202)

    async def resume(request: Request) -> Response:
        name = request.path_params["comparison"]
        folder, mine = contests.require(name), _mine(contests)
        mine.require_idle()
        return JSONResponse(_begun(await mine.resume(folder, await run_in_threadpool(contests.data_of, name))), 202)

    place = "/comparisons/{comparison}"
    add(app, "GET", "/comparisons", "The comparisons, the newest first.", listed)
    add(app, "GET", place, "A comparison: its state and its table.", one)
    add(app, "GET", f"{place}/events", "What happens in a comparison, as server-sent events.", events,
        query={"start": {"type": "integer", "minimum": 0}})  # fmt: skip
    add(app, "POST", f"{place}/stop", "Save a comparison and end it; it can be resumed.", stop)
    add(app, "POST", f"{place}/resume", "Continue a comparison that was stopped.", resume)


def add_taking(app: FastAPI, hosted: Hosted) -> None:
    """Runs as files."""

    async def zipped(request: Request) -> Response:
        place = hosted.require(request.path_params["run"])
        try:
            pieces = await run_in_threadpool(taken.zipped, place.path, place.name, hosted.limits.memory)
        except OSError as error:
            raise cannot_keep(error, place.path) from None
        return StreamingResponse(pieces, media_type="application/zip", headers=_named(f"{place.name}.zip"))

    exports = taken.Exports(hosted.limits, hosted.own_file)

    async def targets(request: Request) -> Response:
        place = hosted.require(request.path_params["run"])
        return JSONResponse({"targets": await while_connected(request, exports.targets(place))})

    async def export(request: Request) -> Response:
        place, target = hosted.require(request.path_params["run"]), request.path_params["target"]
        await read_body(request, hosted.limits)
        if target not in discover.exports.names():
            raise Refused(404, f"there is no target '{target[:60]}' of exports", "not_found")
        suffix, content = await while_connected(request, exports.made(place, target))
        return Response(content, media_type="application/octet-stream", headers=_named(f"{place.name}{suffix}"))

    add(app, "GET", "/runs/{run}/zip", "The run directory as a zip file.", zipped)
    add(app, "GET", "/runs/{run}/exports", "Where the run can be exported to, or why not.", targets)
    add(app, "POST", "/runs/{run}/exports/{target}", "The run in another form.", export, {"type": "object"})


def _mine(contests: Contests) -> Trained:
    if contests.trained is None:
        raise Refused(409, "this server did not start the comparison", "not_running")
    return contests.trained


def _begun(started: Started) -> dict[str, Any]:
    return {"comparison": started.name, "state": "starting"}


def _named(name: str) -> dict[str, str]:
    """As a file to be kept; names of runs are plain letters."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _place(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= PLACE):
        raise UsageError("invalid value start: expected an integer >= 0")
    return int(text)


def _summary(task: str) -> str:
    """The first line of what a task says of itself, behind its name."""
    return str(discover.tasks.told(task)["__doc__"]).strip().partition("\n")[0].partition(": ")[2]
