"""What `POST /v1/completions` is asked, as the OpenAI API names it. Imports no torch."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from pydantic import Field, StrictInt

from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.serve.limits import MOST_CHOICES, Limits
from unrolled.verbs.generate import Request

MOST_PROMPTS = 32
MOST_STOPS = 4


class StreamOptions(Record):
    include_usage: bool = False
    """Whether the last event has the numbers of tokens that were read and written."""
    include_obfuscation: bool | None = None
    """Has no effect."""


class Completion(Record):
    """A request of texts that continue prompts."""

    model: str
    """The name of a run."""
    prompt: str | list[str] | list[StrictInt] | list[list[StrictInt]] | None = ""
    """A text, a list of token ids, or a list of either."""
    max_tokens: int | None = Field(16, ge=0)
    """Maximum number of tokens to generate; 0, with echo and logprobs, only scores the prompt."""
    temperature: float | None = Field(1.0, ge=0, le=100)
    """Sampling temperature; 0 is greedy."""
    top_p: float | None = Field(1.0, ge=0, le=1)
    """Nucleus sampling."""
    n: int | None = Field(1, ge=1, le=MOST_CHOICES)
    """Number of texts for each prompt."""
    stop: str | list[str] | None = None
    """Texts at which to stop, four at most; they are not part of the result."""
    seed: int | None = None
    """The same seed, prompt and run give the same text; none: another text each time."""
    logprobs: int | None = Field(None, ge=0, le=20)
    """Number of alternatives that are listed with their log-probabilities, beside each token itself."""
    echo: bool | None = False
    """Whether the prompt is part of the text; with logprobs its tokens are scored too."""
    stream: bool | None = False
    """Whether the text is sent while it is written."""
    stream_options: StreamOptions | None = None


class Tolerated(Record):
    """What clients of the OpenAI API send without asking for anything by it; another value is refused."""

    best_of: int | None = Field(None, ge=1, le=1)
    """Is not supported."""
    presence_penalty: float | None = Field(0, ge=0, le=0)
    """Is not supported; see repetition_penalty."""
    frequency_penalty: float | None = Field(0, ge=0, le=0)
    """Is not supported; see repetition_penalty."""
    logit_bias: dict[str, float] | None = Field(None, max_length=0)
    """Is not supported."""
    suffix: Literal[""] | None = None
    """Is not supported."""
    user: str | None = None
    """Has no effect."""


class Extended(Record):
    """Settings of this library, which a request may have in addition."""

    condition: str | None = None
    """The class to generate for, if the run was trained with a condition."""
    top_k: int | None = Field(None, ge=1)
    """Sample only from the k most probable tokens."""
    repetition_penalty: float = Field(1.0, ge=1)
    """Above 1, tokens that have already occurred become less probable."""


class Asked:
    """A completion request, checked."""

    def __init__(self, body: dict[str, Any], limits: Limits) -> None:
        Tolerated.parse(_of(Tolerated, body))
        self.extended = Extended.parse(_of(Extended, body))
        others = Tolerated.model_fields.keys() | Extended.model_fields.keys()
        self.request = Completion.parse({key: value for key, value in body.items() if key not in others})
        self.prompts = _prompts(self.request.prompt)
        self.stops = _stops(self.request.stop)
        self.n = self.request.n or 1
        if len(self.prompts) > MOST_PROMPTS or len(self.prompts) * self.n > 2 * MOST_PROMPTS:
            raise UsageError(f"this server writes at most {MOST_PROMPTS} prompts and {2 * MOST_PROMPTS} texts at once")
        self.max_tokens = 16 if self.request.max_tokens is None else self.request.max_tokens
        if not self.max_tokens and not self.request.echo:
            raise UsageError("invalid value max_tokens = 0: expected an integer >= 1, or echo = true")
        if self.max_tokens > limits.tokens:
            raise UsageError(
                f"invalid value max_tokens = {self.max_tokens}: this server allows at most {limits.tokens}"
            )
        self.seed = secrets.randbits(62) if self.request.seed is None else self.request.seed % 2**63

    def decoding(self) -> Request:
        """The request of the verb `generate` that asks the same of one text."""
        asked, own = self.request, self.extended
        temperature = 1.0 if asked.temperature is None else asked.temperature
        top_p = 1.0 if asked.top_p is None else asked.top_p
        values: dict[str, Any] = {
            "max_tokens": max(self.max_tokens, 1),
            "seed": self.seed,
            "temperature": temperature if top_p else 0.0,
        }
        values |= {"top_p": top_p or 1.0, "top_k": own.top_k, "repetition_penalty": own.repetition_penalty}
        return Request.parse({**values, "condition": own.condition})


def schema() -> dict[str, Any]:
    """The JSON schema of a request, with all that it may have."""
    found = Completion.model_json_schema()
    for more in (Extended, Tolerated):
        found["properties"] |= more.model_json_schema()["properties"]
    return found


def _of(kind: type[Record], body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key in kind.model_fields}


def _prompts(prompt: Any) -> list[Any]:
    """Each a text or a list of tokens."""
    if prompt is None:
        return [""]
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    if not prompt:
        raise UsageError("invalid value prompt = []: expected a text, token ids, or a list of either")
    return list(prompt)


def _stops(stop: str | list[str] | None) -> list[str]:
    found = [stop] if isinstance(stop, str) else list(stop or [])
    if len(found) > MOST_STOPS or not all(found):
        raise UsageError(f"invalid value of stop: expected up to {MOST_STOPS} texts that are not empty")
    return found
