"""Writing with a model of tokens: a prompt in, texts out. What a token means is the codec's business."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from unrolled.core.finite import require_finite
from unrolled.core.state import State
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import Candidate, Step, best_of, drawn


class Pieces(Protocol):
    """Text that grows token by token."""

    def push(self, token: int) -> str: ...
    def close(self) -> str: ...


class TextCodec(Protocol):
    """Tokens as text."""

    def decode(self, ids: Any) -> str: ...
    def name(self, token: int) -> str: ...
    def stream(self) -> Pieces: ...


class Written(NamedTuple):
    """A text that a model wrote."""

    text: str
    logp: float  # under the model as it is, whatever the temperature
    tokens: int
    finished: bool  # ended by a stop, not by the limit
    score: float  # what it was ranked by


class Begun(NamedTuple):
    """Where writing starts: the prompts' tokens [B, P], the step function and the state before them."""

    prompt: Tensor
    step: Step
    state: State


class Writer:
    """Texts by a codec, or by another way to `spell` tokens; `stops` end a text, `never` are tokens that are not
    written."""

    def __init__(
        self,
        codec: TextCodec,
        stops: Sequence[int],
        never: Sequence[int],
        spell: Callable[[Sequence[int]], str] | None = None,
    ) -> None:
        self.codec, self.stops, self.never = codec, list(stops), list(never)
        self.spell = spell or codec.decode

    def write(self, begun: Begun, decoding: Decoding, rows: Tensor | None = None) -> list[list[Written]]:
        """n texts from every prompt, best first, by a decoding that is settled; `rows` [B] are the numbers by which
        prompts draw their noise."""
        prompt, step, state = begun
        n, most = decoding.n, decoding.max_tokens
        assert most is not None
        if decoding.beam is not None:
            found = beam_search(
                step, state, prompt, self.stops, max(decoding.beam, n), most, decoding.length_penalty, n,
                forbidden=self.never,
            )  # fmt: skip
        else:
            choose = make_chooser(decoding, self.never)
            tries = max(n, decoding.best_of or n)
            found = best_of(tries, step, state, prompt, None, choose, self.stops, most, rows, decoding.seed)
        require_finite([candidate.log_p for each in found for candidate in each])
        return [[self._text(candidate) for candidate in each[:n]] for each in found]

    def _text(self, candidate: Candidate) -> Written:
        ids = candidate.tokens[:-1] if candidate.finished else candidate.tokens
        text, n = self.spell(ids), len(candidate.tokens)
        return Written(text, candidate.log_p, n, candidate.finished, candidate.score)

    @torch.no_grad()
    def stream(self, begun: Begun, decoding: Decoding) -> Iterator[str]:
        """One text, piece by piece as it is written."""
        prompt, step, state = begun
        assert decoding.max_tokens is not None
        text, choose = self.codec.stream(), make_chooser(decoding, self.never)
        blocks = drawn(step, state, prompt, None, choose, self.stops, decoding.max_tokens, seed=decoding.seed)
        for token, log_p in (tick for each in blocks for tick in zip(each.tokens[0].tolist(), each.log_p[0].tolist())):
            require_finite(log_p)
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
