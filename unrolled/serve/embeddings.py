"""`POST /v1/embeddings`: the vectors that a run makes of texts, as the OpenAI API names them."""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from pydantic import Field, StrictInt

from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.serve import verb_calls
from unrolled.serve.hosted import Hosted
from unrolled.serve.job import Job


class Embeddings(Record):
    """A request of vectors, one for each text."""

    model: str
    """The name of a run."""
    input: str | list[str] | list[StrictInt] | list[list[StrictInt]]
    """A text, or a list of texts."""
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(None, ge=1)
    """Vectors have the width of the model; another is refused."""
    user: str | None = None
    """Has no effect."""


class Embedding:
    """A request that is worked on."""

    def __init__(self, hosted: Hosted, body: dict[str, Any]) -> None:
        self._asked = asked = Embeddings.parse(body)
        texts: Any = [asked.input] if isinstance(asked.input, str) else asked.input
        if not texts or not all(isinstance(text, str) for text in texts):
            raise UsageError("invalid value of input: this server embeds texts, given as one text or a list of them")
        self.name = hosted.require(asked.model).name
        self.job: Job = verb_calls.ask(hosted, self.name, "embed", {"inputs": texts})

    async def whole(self) -> dict[str, Any]:
        results = await self.job.all()
        data = []
        for index, result in enumerate(results):
            vector: Any = result["vector"]
            if self._asked.dimensions not in (None, len(vector)):
                raise UsageError(f"invalid value of dimensions: the vectors of this run have {len(vector)}")
            if self._asked.encoding_format == "base64":
                vector = base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "model": self.name, "data": data, "usage": usage}
