"""`POST /v1/completions`: texts that continue prompts, whole or as they are written."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.core.task import Given
from unrolled.core.tokens import START
from unrolled.core.verb import WritesTokens, started
from unrolled.decode.choose import log_probabilities
from unrolled.decode.rollout import SAMPLE
from unrolled.decode.text import Writer
from unrolled.decode.together import Row, Token, likeliest
from unrolled.runs.asking import asked_of
from unrolled.runs.run import Run
from unrolled.serve.completion_request import Asked
from unrolled.serve.hosted import Hosted
from unrolled.serve.job import Writing
from unrolled.serve.limits import Limits
from unrolled.serve.stop_texts import StopTexts

SHARED = 0.01  # seconds within which tokens share an event


class Choice:
    """One text of an answer, as it grows."""

    def __init__(self, asked: Asked, index: int) -> None:
        self.index, self._asked = index, asked
        self.reason: str | None = None
        self.n_prompt = self.n_own = 0
        self.offset = 0
        self._stops = StopTexts(asked.stops)
        self._text: Any = None
        self._writer: Any = None

    def bind(self, writer: Writer, row: Row, given: list[int]) -> None:
        """In the thread of the run: how tokens are spelt, and the tokens of the prompt."""
        self._writer, self._text, self.n_prompt = writer, writer.codec.stream(), len(given)
        self.given, self.read = given, len(row.history)

    def prompted(self, y: Tensor) -> dict[str, Any] | None:
        """In the thread of the run: the prompt [P] with the outputs after each of its tokens [P, V], where it is to be
        part of the text."""
        if not self._asked.request.echo:
            return None
        part = {"text": self._writer.spell(self.given), "logprobs": None}
        if (n := self._asked.request.logprobs) is not None:
            part["logprobs"] = self._scored(y, n)
        return part

    def begun(self, part: dict[str, Any] | None) -> dict[str, Any] | None:
        """The text begins with its prompt, where that is part of it."""
        if not self._asked.max_tokens:
            self.reason = "length"
        self.offset = 0 if part is None else len(part["text"])
        return part

    def _scored(self, y: Tensor, n: int) -> dict[str, Any]:
        """Log-probabilities of the prompt; that of its first token is unknown where nothing stands before it."""
        log_p = log_probabilities(y)
        skip = len(self.given) - (self.read - 1)  # tokens that nothing was read before: 0, or the first
        found = _none()
        offset = 0
        for k, token in enumerate(self.given):
            before = log_p[k - skip] if k >= skip else None
            top = [] if before is None else likeliest(before, n)
            own = None if before is None else float(before[token])
            offset += self._noted(found, token, own, top, offset)
        return found

    def _noted(self, found: dict[str, Any], token: int, own: float | None, top: Any, offset: int) -> int:
        """Add a token to log-probabilities; the number of its letters."""
        name = self._spelt(token)
        found["tokens"].append(name)
        found["token_logprobs"].append(own)
        found["top_logprobs"].append({self._spelt(k): p for k, p in top} if top else None)
        found["text_offset"].append(offset)
        return len(name)

    def _spelt(self, token: int) -> str:
        return self._writer.spell([token]) or self._writer.codec.name(token)

    def push(self, token: Token) -> dict[str, Any] | None:
        """What a token adds; None: nothing, because the text has ended before it."""
        if self.reason is not None:
            return None
        self.n_own += 1
        piece = "" if token.stopped else self._text.push(token.token)
        if token.last:
            piece += self._text.close()
        text = self._stops.push(piece)
        if self._stops.found or token.stopped:
            self.reason = "stop"
        elif token.last:
            self.reason = "length"
        if token.last:
            text += self._stops.close()
        part: dict[str, Any] = {"text": text, "logprobs": None}
        if self._asked.request.logprobs is not None:
            part["logprobs"] = _none()
            if not token.stopped:
                self._noted(part["logprobs"], token.token, token.log_p, token.top, self.offset)
        self.offset += len(text)
        return part


def _none() -> dict[str, Any]:
    return {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


class Answering:
    """A completion request that is worked on."""

    def __init__(self, hosted: Hosted, body: dict[str, Any]) -> None:
        self._hosted = hosted
        self.asked = Asked(body, hosted.limits)
        self.name = hosted.require(self.asked.request.model).name
        self.choices = [Choice(self.asked, i) for i in range(len(self.asked.prompts) * self.asked.n)]
        self.head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": self.name,
        }
        begin = partial(_begun, self.asked, self.choices, hosted.limits)  # not a method: nothing leads back to here
        read = partial(_prompted, self.choices)
        self.job: Writing = hosted.submit(self.name, Writing(begin, read, hosted.limits.seconds))

    def told(self, items: list[Any]) -> Iterator[tuple[Choice, dict[str, Any]]]:
        """What some results of the run add to the texts."""
        for i, item in items:
            choice = self.choices[i]
            part = choice.push(item) if isinstance(item, Token) else choice.begun(item)
            if part is not None:
                yield choice, part
        if all(choice.reason for choice in self.choices):
            self.job.cancel()

    @property
    def ended(self) -> bool:
        return all(choice.reason for choice in self.choices)

    def usage(self) -> dict[str, int]:
        read = sum(choice.n_prompt for choice in self.choices[:: self.asked.n])
        own = sum(choice.n_own for choice in self.choices)
        self._hosted.counted.add("unrolled_generated_tokens_total", own)
        return {"prompt_tokens": read, "completion_tokens": own, "total_tokens": read + own}

    async def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        parts: list[dict[str, Any]] = [{} for _ in self.choices]
        while not self.ended and (items := await self.job.some()):
            for choice, part in self.told(items):
                _add(parts[choice.index], part)
        made = [_choice(choice, part) for choice, part in zip(self.choices, parts)]
        return {**self.head, "choices": made, "usage": self.usage()}

    async def events(self) -> AsyncIterator[bytes]:
        """The answer piece by piece, as server-sent events; tokens that are ready within some milliseconds share
        one."""
        options = self.asked.request.stream_options
        with_usage = options is not None and options.include_usage
        try:
            while not self.ended and (items := await self.job.some()):
                parts: dict[int, dict[str, Any]] = {}
                for choice, part in self.told(items):
                    _add(parts.setdefault(choice.index, {}), part)
                for index, part in parts.items():
                    choice = self.choices[index]
                    if part["text"] or choice.reason or part["logprobs"]:
                        last = {"usage": None} if with_usage else {}
                        yield _event({**self.head, "choices": [_choice(choice, part)], **last})
                if not self.ended:
                    await asyncio.sleep(SHARED)
            usage = self.usage()
            if with_usage:
                yield _event({**self.head, "choices": [], "usage": usage})
            yield b"data: [DONE]\n\n"
        finally:
            self.job.cancel()


def _begun(asked: Asked, choices: list[Choice], limits: Limits, run: Run) -> list[Row]:
    """In the thread of the run: all rows that are to be written."""
    served = run.served
    decoding = asked.decoding()
    asked_of(served, "generate", decoding.model_dump(exclude_unset=True))
    task = served.task
    if not isinstance(task, WritesTokens):
        raise UsageError(f"runs of the task '{served.name}' do not write text token by token")
    settled = decoding.settled(samples=True, max_tokens=16)
    writer, rows = task.writer(None), []
    for k, prompt in enumerate(asked.prompts):
        if isinstance(prompt, str) and len(prompt) > 64 * limits.tokens:
            raise UsageError(f"the prompt has {len(prompt):,} characters, more than this server reads")
        (given,) = started([Given(prompt)], decoding.condition)
        for j in range(asked.n):
            begun = task.begun(run.model, given)
            row = Row(begun, settled, writer.stops, writer.never, j * SAMPLE, asked.request.logprobs or 0)
            _require_room(row, begun.step, limits.tokens)
            row.left = asked.max_tokens
            choices[k * asked.n + j].bind(writer, row, _given(prompt, row))
            rows.append(row)
    return rows


def _prompted(choices: list[Choice], i: int, y: Tensor) -> dict[str, Any] | None:
    return choices[i].prompted(y)


def _require_room(row: Row, layer: Any, most: int) -> None:
    n = len(row.history)
    if n > most:
        raise UsageError(f"the prompt has {n:,} tokens: this server reads at most {most:,}")
    if layer.max_length is not None and n + row.left - 1 > layer.max_length:
        raise UsageError(
            f"the prompt has {n} tokens and {row.left} are to be generated, but this model has positions for at "
            f"most {layer.max_length}; shorten the prompt or lower max_tokens"
        )


def _given(prompt: Any, row: Row) -> list[int]:
    """The tokens of a prompt, without the start that may stand before it."""
    return [] if not prompt else row.history[row.history[0] == START :]


def _add(text: dict[str, Any], part: dict[str, Any]) -> None:
    text["text"] = text.get("text", "") + part["text"]
    before, new = text.get("logprobs"), part["logprobs"]
    joined = new if before is None else before if new is None else {key: before[key] + new[key] for key in before}
    text["logprobs"] = joined


def _choice(choice: Choice, part: dict[str, Any]) -> dict[str, Any]:
    logprobs = part.get("logprobs")
    return {"index": choice.index, "text": part.get("text", ""), "logprobs": logprobs, "finish_reason": choice.reason}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
