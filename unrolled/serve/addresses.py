"""How an address is declared: what answers, what it takes, and that whatever goes wrong is one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from unrolled.serve.guard import ENDPOINT
from unrolled.serve.job import Job
from unrolled.serve.log import write
from unrolled.serve.refused import Refused, refusal_of

Handler = Callable[[Request], Awaitable[Response]]


def add(
    app: FastAPI, method: str, path: str, summary: str, handle: Handler, schema: dict[str, Any] | None = None,
    query: Mapping[str, Any] = {}, kind: str = "application/json",
) -> None:  # fmt: skip
    """An address with what it takes: a body of some kind, and values behind the `?`, each with its schema. Whatever
    goes wrong is answered with one sentence."""

    async def answered(request: Request) -> Response:
        request.scope[ENDPOINT] = path
        try:
            return await handle(request)
        except Exception as error:
            return explained(error, path)

    answered.__name__ = f"{method.lower()} {path}"
    extra: dict[str, Any] = {"parameters": [_parameter(name, app.state.names) for name in _parameters(path)]}
    extra["parameters"] += [{"name": name, "in": "query", "schema": each} for name, each in query.items()]
    if schema is not None:
        extra["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    app.add_api_route(
        path, answered, methods=[method], summary=summary, openapi_extra=extra, response_model=None,
        responses={"4XX": {"description": "What is wrong, in a sentence."}},
    )  # fmt: skip


def explained(error: Exception, path: str) -> Response:
    """The answer to a request that failed."""
    refused = refusal_of(error)
    if refused is None:
        write("unexpected", endpoint=path, error=repr(error)[:500])
        refused = Refused(500, f"internal error, please report it: {type(error).__name__}")
    return JSONResponse(refused.as_json(), refused.status, refused.headers)


def _parameters(path: str) -> list[str]:
    return [part[1:-1].partition(":")[0] for part in path.split("/") if part.startswith("{")]


def _parameter(name: str, names: Mapping[str, list[str]]) -> dict[str, Any]:
    """A part of an address; which names it takes, as far as they are known when the server starts."""
    schema = {"type": "string"} | ({"enum": names[name]} if names.get(name) else {})
    return {"name": name, "in": "path", "required": True, "schema": schema}


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references."""
    found = schema.pop("$defs", {})

    def placed(value: Any) -> Any:
        if isinstance(value, dict) and "$ref" in value:
            return placed(found[value["$ref"].split("/")[-1]])
        if isinstance(value, dict):
            return {key: placed(each) for key, each in value.items()}
        return [placed(each) for each in value] if isinstance(value, list) else value

    return dict(placed(schema))


async def while_connected(request: Request, work: Awaitable[Any], job: Job | None = None) -> Any:
    """What some work gives; it is stopped when the client has gone, with the job that it waits for."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refused(499, "the client has gone")
        return task.result()
    finally:
        if job is not None:
            job.cancel()
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)  # what they have begun has ended then, too
        del task  # an error that it holds leads back to here


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
