"""Writing with a model of tokens: a prompt in, texts out. What a token means is the codec's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from unrolled.core.finite import require_finite
from unrolled.core.state import State
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Sampling
from unrolled.decode.rollout import Candidate, Step, best_of, rollout


class Pieces(Protocol):
    """Text that grows token by token."""

    def push(self, token: int) -> str: ...
    def close(self) -> str: ...


class TextCodec(Protocol):
    """Tokens as text."""

    def decode(self, ids: Any) -> str: ...
    def name(self, token: int) -> str: ...
    def stream(self) -> Pieces: ...


class Generated(NamedTuple):
    """A text that a model wrote."""

    text: str
    logp: float  # under the model as it is, whatever the temperature
    tokens: int
    finished: bool  # ended by a stop, not by the limit


class Search(NamedTuple):
    """How texts are looked for: by samples, the best of more samples, or by beam."""

    n: int = 1
    best_of_n: int | None = None
    beam: int | None = None
    length_penalty: float = 0.0
    max_tokens: int = 300


class Begun(NamedTuple):
    """Where writing starts: the prompts' tokens [B, P], the step function and the state before them."""

    prompt: Tensor
    step: Step
    state: State


class Writer:
    """Texts by a codec; `stops` end a text, `never` are tokens that are not written."""

    def __init__(self, codec: TextCodec, stops: Sequence[int], never: Sequence[int]) -> None:
        self.codec, self.stops, self.never = codec, list(stops), list(never)

    def write(self, begun: Begun, search: Search, sampling: Sampling) -> list[Generated]:
        """n texts from one prompt, the most probable first."""
        return [self._text(candidate) for candidate in self.candidates(begun, search, sampling)[0]]

    def candidates(
        self, begun: Begun, search: Search, sampling: Sampling, rows: Tensor | None = None
    ) -> list[list[Candidate]]:
        """n sequences from every prompt, best first; `rows` [B] are the numbers by which prompts draw their noise."""
        prompt, step, state = begun
        n, most = search.n, search.max_tokens
        if search.beam is not None:
            found = beam_search(
                step, state, prompt, self.stops, max(search.beam, n), most, search.length_penalty, n,
                forbidden=self.never,
            )  # fmt: skip
        else:
            choose = make_chooser(sampling, self.never)
            tries = max(n, search.best_of_n or n)
            found = best_of(tries, step, state, prompt, None, choose, self.stops, most, rows, sampling.seed)
        require_finite([candidate.log_p for each in found for candidate in each])
        return [each[:n] for each in found]

    def _text(self, candidate: Candidate) -> Generated:
        ids = candidate.tokens[:-1] if candidate.finished else candidate.tokens
        return Generated(self.codec.decode(ids), candidate.log_p, len(candidate.tokens), candidate.finished)

    @torch.no_grad()
    def stream(self, begun: Begun, sampling: Sampling, max_tokens: int) -> Iterator[str]:
        """One text, piece by piece as it is written."""
        prompt, step, state = begun
        text, choose = self.codec.stream(), make_chooser(sampling, self.never)
        for column in rollout(step, state, prompt, None, choose, self.stops, max_tokens, seed=sampling.seed):
            require_finite(float(column.log_p[0]))
            token = int(column.tokens[0])
            if token in self.stops:
                break
            if piece := text.push(token):
                yield piece
        yield text.close()

    def likely(self, begun: Begun, top: int) -> list[dict[str, Any]]:
        """The most probable next tokens with their probabilities."""
        with torch.no_grad():
            p = begun.step(begun.prompt, begun.state)[0][0, -1].double().softmax(-1)  # [V]
        best = p.topk(min(top, len(p)))
        return [{"token": self.codec.name(int(k)), "p": float(q)} for q, k in zip(*best, strict=True)]
