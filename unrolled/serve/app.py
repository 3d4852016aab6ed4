"""The addresses of a server and what answers at each; FastAPI describes them (`/openapi.json`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, WebSocket
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

import unrolled
from unrolled.core import discover
from unrolled.serve import completion_request, found, live, orders, page, page_calls, sessions, verb_calls
from unrolled.serve.addresses import Handler, add, explained, inlined, while_connected
from unrolled.serve.body import read_body
from unrolled.serve.completions import Answering
from unrolled.serve.contests import Contests
from unrolled.serve.embeddings import Embedding, Embeddings
from unrolled.serve.guard import Guard
from unrolled.serve.hosted import Hosted
from unrolled.serve.refused import Refused


def make_app(hosted: Hosted, hosts: Collection[str], token: str | None, contests: Contests) -> Guard:
    """The whole server as an ASGI application."""
    kept = sessions.Sessions(hosted)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(kept))
        if contests.trained is not None:
            await run_in_threadpool(contests.trained.uploads.sweep)
        yield
        sweeping.cancel()
        if contests.trained is not None:
            await contests.trained.close()
        await orders.end_all()
        hosted.close()

    app = FastAPI(
        title="unrolled", version=unrolled.__version__, docs_url=None, redoc_url=None, lifespan=lifespan,
        redirect_slashes=False, strict_content_type=False,
    )  # fmt: skip
    app.state.names = {"run": list(hosted.places), "file": list(page.files()), "target": discover.exports.names()}
    app.add_exception_handler(HTTPException, _not_here)
    hosted.counted.gauges["unrolled_runs_loaded"] = lambda: len(hosted)
    _add_page(app)
    _add_facts(app, hosted)
    _add_openai(app, hosted)
    _add_verbs(app, hosted)
    _add_sessions(app, hosted, kept)
    page_calls.add_training(app, hosted, contests)
    page_calls.add_comparisons(app, hosted, contests)
    page_calls.add_taking(app, hosted)
    return Guard(app, hosts, token, hosted.limits, hosted.counted)


async def _sweep(kept: sessions.Sessions) -> None:
    while True:
        await asyncio.sleep(5)
        kept.sweep()


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refused = Refused(error.status_code, str(error.detail))
    return JSONResponse(refused.as_json(), refused.status, dict(error.headers or {}))


def _add_page(app: FastAPI) -> None:
    def sent(name: str) -> Response:
        one = page.files().get(name)
        if one is None:
            raise Refused(404, "the page has no file of that name")
        return Response(one.text, media_type=one.kind, headers={"Content-Security-Policy": page.POLICY})

    def of_html(name: str) -> Handler:
        async def handle(request: Request) -> Response:
            return sent(name)

        return handle

    async def file(request: Request) -> Response:
        return sent(request.path_params["file"])

    add(app, "GET", "/", "The web page.", of_html(page.HTML["/"]))
    for path in page.HTML.keys() - {"/"}:
        add(app, "GET", path, "A page with all addresses, which can be tried there.", of_html(page.HTML[path]))
    add(app, "GET", "/page/{file:path}", "A file of the web page.", file)


def _add_facts(app: FastAPI, hosted: Hosted) -> None:
    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "runs": len(hosted.places), "loaded": len(hosted)})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(hosted.counted.text(), media_type="text/plain; version=0.0.4")

    add(app, "GET", "/health", "Whether the server runs.", health)
    add(app, "GET", "/metrics", "Counters, in the text format of Prometheus.", metrics)


def _add_openai(app: FastAPI, hosted: Hosted) -> None:
    def listed(name: str) -> dict[str, Any]:
        place = hosted.require(name)
        return {"id": place.name, "object": "model", "created": place.created, "owned_by": "unrolled"}

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [listed(name) for name in hosted.places]})

    async def model(request: Request) -> Response:
        return JSONResponse(listed(request.path_params["run"]))

    async def completions(request: Request) -> Response:
        answering = Answering(hosted, await read_body(request, hosted.limits))
        if not answering.asked.request.stream:
            return JSONResponse(await while_connected(request, answering.whole(), answering.job))
        events = answering.events()
        try:
            first = await anext(events)  # so that a request that cannot be is answered with its status
        except BaseException:
            answering.job.cancel()
            raise
        return StreamingResponse(_after(first, events), media_type="text/event-stream")

    async def embeddings(request: Request) -> Response:
        embedding = Embedding(hosted, await read_body(request, hosted.limits))
        return JSONResponse(await while_connected(request, embedding.whole(), embedding.job))

    add(app, "GET", "/v1/models", "The runs that are served.", models)
    add(app, "GET", "/v1/models/{run}", "One run.", model)
    add(
        app,
        "POST",
        "/v1/completions",
        "Texts that continue prompts.",
        completions,
        inlined(completion_request.schema()),
    )
    add(app, "POST", "/v1/embeddings", "Vectors of texts.", embeddings, inlined(Embeddings.model_json_schema()))


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Events; an error that occurs after some have been sent is the last one."""
    try:
        yield first
        async for each in rest:
            yield each
    except Exception as error:
        yield b"data: " + bytes(explained(error, "/v1/completions").body) + b"\n\n"
    finally:
        await rest.aclose()  # type: ignore[attr-defined]


def _add_verbs(app: FastAPI, hosted: Hosted) -> None:
    async def runs(request: Request) -> Response:
        await run_in_threadpool(hosted.refresh)
        about = await run_in_threadpool(lambda: [found.about(place) for place in hosted.places.values()])
        return JSONResponse({"runs": list(hosted.places), "about": about})

    async def one(request: Request) -> Response:
        name = hosted.require(request.path_params["run"]).name
        job = hosted.ask(name, lambda run: iter([verb_calls.about(name, run)]))
        (found,) = await while_connected(request, job.all(), job)
        return JSONResponse(found)

    def of_verb(verb: str) -> Handler:
        async def handle(request: Request) -> Response:
            body = await read_body(request, hosted.limits)
            name = hosted.require(request.path_params["run"]).name
            job = verb_calls.ask(hosted, name, verb, body)
            return JSONResponse({"results": await while_connected(request, job.all(), job)})

        return handle

    def of_question(question: str) -> Handler:
        async def handle(request: Request) -> Response:
            body = await read_body(request, hosted.limits)
            name = hosted.require(request.path_params["run"]).name
            job = verb_calls.inspect(hosted, name, question, body)
            (found,) = await while_connected(request, job.all(), job)
            return JSONResponse(found)

        return handle

    add(app, "GET", "/runs", "Names of the runs, and the task and model of each.", runs)
    add(app, "GET", "/runs/{run}", "What a run is, and what it can do.", one)
    for verb in discover.verbs.names():
        spec = discover.verb(verb)
        schema = inlined(verb_calls.schema_of(spec))
        add(app, "POST", f"/runs/{{run}}/{verb}", spec.summary, of_verb(verb), schema)
    for question in discover.questions.names():
        summary, schema = discover.question(question).summary, inlined(verb_calls.question_schema(question))
        add(app, "POST", f"/runs/{{run}}/inspect/{question}", summary, of_question(question), schema)


def _add_sessions(app: FastAPI, hosted: Hosted, kept: sessions.Sessions) -> None:
    def place(request: Request) -> tuple[str, str]:
        return request.path_params["run"], request.path_params["session"]

    async def opened(request: Request) -> Response:
        body = await read_body(request, hosted.limits)
        return JSONResponse(await while_connected(request, kept.begin(request.path_params["run"], body)), 201)

    async def push(request: Request) -> Response:
        body = await read_body(request, hosted.limits)
        return JSONResponse(await while_connected(request, kept.push(*place(request), body)))

    async def end(request: Request) -> Response:
        return JSONResponse(await while_connected(request, kept.end(*place(request))))

    async def ahead(request: Request) -> Response:
        body = await read_body(request, hosted.limits)
        return JSONResponse(await while_connected(request, kept.ahead(*place(request), body)))

    async def closed(request: Request) -> Response:
        return JSONResponse(kept.close(*place(request)))

    async def websocket(socket: WebSocket) -> None:
        await live.talk(socket, hosted, kept)

    room, one = "/runs/{run}/sessions", "/runs/{run}/sessions/{session}"
    add(app, "POST", room, "Open a session.", opened, sessions.Opening.model_json_schema())
    add(app, "POST", f"{one}/push", "Push rows; the results that there are now.", push,
         sessions.Pushing.model_json_schema())  # fmt: skip
    add(app, "POST", f"{one}/end", "End a series; the results that are still owed.", end)
    add(app, "POST", f"{one}/ahead", "What a verb makes of the stream so far.", ahead,
         sessions.Ahead.model_json_schema())  # fmt: skip
    add(app, "DELETE", one, "Close a session.", closed)
    app.add_api_websocket_route("/runs/{run}/live", websocket)
