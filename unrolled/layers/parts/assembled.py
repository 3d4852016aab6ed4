"""A body between the layers that a task puts around it, each part under its name.

    Decoder   what comes next:             embedding -> body -> head                  the state is the body's
    Reader    all was read before:         embedding -> body -> (readout ->) head

The name of a weight is the name of its part: `embedding.weight`, `body.layers.0.cell.bias`, `head.weight`. Dropout
between parts has no weights, so what stands there changes no name. A part may be absent: None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Causal, Encoder, Selective, serial_depth, tick_multiply_adds
from unrolled.core.compose import Serial, pick, require_right_padding, without_padding
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.trace import note
from unrolled.layers.parts.embedding import Borrowed
from unrolled.layers.readouts.last import Last
from unrolled.layers.readouts.mean import Mean, RunningMean


def watched(module: nn.Module, *given: Any) -> None:
    """Tell who watches the calls of a module of one of another name; torch's own hooks of that do not listen here."""
    others = module._forward_pre_hooks_with_kwargs
    for watching in [hook for number, hook in module._forward_pre_hooks.items() if number not in others]:
        watching(module, given)


class Decoder(Causal):
    """y_t = head(body(embedding(x_t), state)); `before` and `behind` the body stand layers without weights."""

    def __init__(
        self,
        embedding: nn.Module | None,
        body: Causal,
        head: nn.Module | Borrowed | None = None,
        *,
        before: Sequence[nn.Module] = (),
        behind: Sequence[nn.Module] = (),
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.body = body
        self.head = head
        self.before, self.behind = nn.ModuleList(before), nn.ModuleList(behind)
        self.receptive_field, self.max_length = body.receptive_field, body.max_length
        self.state_grows = body.state_grows
        if isinstance(embedding, nn.Linear):
            self.d_in = embedding.in_features

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.before:
            x = layer(x)
        y, state = self.body(x, state)
        note("output", y)
        for layer in self.behind:
            y = layer(y)
        return y if self.head is None else self.head(y), state

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """y [B, K, D'] at places [B, K]: the head is computed there alone, and of a body that has a shorter way to one
        place no more than that needs, which gives no state."""
        watched(self, x, state)
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.before:
            x = layer(x)
        if state is None and places.shape[1] == 1 and isinstance(self.body, Acceptor):
            read = torch.arange(x.shape[1], device=x.device) <= places  # [B, T]
            y = self.body.ending(without_padding(x, read), read)
        else:
            y, state = self.body(x, state)
            y = pick(y, places)
        for layer in self.behind:
            y = layer(y)
        return y if self.head is None else self.head(y), state

    def _received(self, state: State, rows: int) -> State:
        """The body looks at its own."""
        return state

    def behind_embedding(self) -> Decoder:
        """The same for vectors [B, T, D] that an input layer made."""
        rest = Decoder(None, self.body, self.head, before=[*self.before], behind=[*self.behind])
        rest.training = self.training  # of its parts each keeps its own
        return rest

    def _parts(self) -> Iterator[nn.Module]:
        for part in (self.embedding, self.body, self.head):
            if part is not None:
                yield part.module if isinstance(part, Borrowed) else part

    def serial_steps(self, length: int) -> int:
        return sum(depth(part, length) for part in self._parts())

    def tick_multiply_adds(self, position: int) -> int:
        return sum(tick_multiply_adds(part, position) for part in self._parts())


def depth(part: nn.Module, length: int) -> int:
    """Steps of a part that wait for one another; a plain module with weights is one."""
    return serial_depth(part, length) or int(any(True for _ in part.parameters()))


@runtime_checkable
class Acceptor(Protocol):
    """A causal layer that has a shorter way to its last output, [B, 1, D'], than by all of them."""

    def ending(self, x: Tensor, mask: Tensor) -> Tensor: ...


class Reader(Encoder):
    """Without a readout y [B, S', D'] of the body's positions; with one, one answer [B, 1, D'] for the whole sequence.

    The body is an encoder or a causal layer, which reads each row from its start. A causal one may answer `delay` steps
    late: y_t is what it says when it has seen x up to t + delay; behind the end of each row it reads zeros, so that
    every step is answered, also of a short row beside a long one. Of an `Acceptor` whose last output alone is asked
    for, only that is computed. A row without a real position is answered too: by what the head makes of zeros.

    >>> import torch
    >>> from unrolled.core.compose import Each
    >>> reader = Reader(None, Each(nn.Identity()), delay=2)
    >>> y, _ = reader(torch.arange(1.0, 5).view(1, 4, 1), torch.ones(1, 4, dtype=torch.bool))
    >>> y.flatten().tolist()
    [3.0, 4.0, 0.0, 0.0]
    """

    def __init__(
        self,
        embedding: nn.Module | None,
        body: Encoder | Causal,
        readout: nn.Module | None = None,
        head: nn.Module | None = None,
        *,
        before: Sequence[nn.Module] = (),
        behind: Sequence[nn.Module] = (),
        delay: int = 0,
    ) -> None:
        super().__init__()
        if delay and not isinstance(body, Causal):
            raise UsageError("only causal layers can be delayed; an encoder has read the whole input when it predicts")
        self.embedding = embedding
        self.body = body
        self.readout = readout
        self.head = head
        self.before, self.behind = nn.ModuleList(before), nn.ModuleList(behind)
        self.delay = delay
        self.max_length = None if body.max_length is None else body.max_length - delay
        if isinstance(embedding, nn.Linear):
            self.d_in = embedding.in_features

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if self.delay:
            x = F.pad(without_padding(x, mask), (0, 0) * (x.dim() - 2) + (0, self.delay))  # [B, T + delay, ..]
            y, _ = self._answers(x, F.pad(mask, (self.delay, 0), value=True))
            return without_padding(y[:, self.delay :], mask), mask
        return self._answers(x, mask)

    def at(self, x: Tensor, places: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """y [B, K, D'] of the positions `places` [B, K]: the head is computed there alone. Of a model that answers once
        for the whole, that."""
        watched(self, x, mask)
        if self.readout is not None:
            return self(x, mask)
        if self.embedding is None and self.head is None and isinstance(self.body, Selective):
            return self.body.at(x, places, mask)
        if self.delay or self.head is None:
            return pick(self(x, mask)[0], places), mask
        around = self._around(self.embedding, None, None)
        y = pick(around(x, mask)[0], places)
        return self.head(y), mask

    def _answers(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        if self.embedding is not None:
            x, mask = read(self.embedding, x, mask)
        for layer in self.before:
            x = layer(x)
        y, mask = self._positions(x, mask)
        note("output", y)
        note("output mask", mask)
        for layer in self.behind:
            y = layer(y)
        if self.readout is None:
            return (y, mask) if self.head is None else read(self.head, y, mask)
        whole = self.readout(y, mask)  # [B, D']
        answer = whole if self.head is None else self.head(whole)
        return answer.unsqueeze(1), mask.new_ones(mask.shape[0], 1)  # [B, 1, D'], [B, 1]

    def _positions(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        # a graph takes the whole way, because how much shorter the other is depends on the length
        if torch.compiler.is_exporting() or not (isinstance(self.readout, Last) and isinstance(self.body, Acceptor)):
            return read(self.body, x, mask)
        require_right_padding(mask, "a causal layer")
        begun = mask.any(1, keepdim=True)  # [B, 1]
        return without_padding(self.body.ending(without_padding(x, mask), mask), begun), begun  # [B, 1, D']

    def by_position(self) -> Reader:
        """Up to where it answers at each position, and at once: of one that answers once, what its readout reads."""
        head = self.head if self.readout is None else None
        return self._around(self.embedding, None, head)

    def behind_embedding(self) -> Reader:
        """The same for vectors [B, S, D] that an input layer made, without delay."""
        return self._around(None, self.readout, self.head)

    def _around(self, embedding: nn.Module | None, readout: nn.Module | None, head: nn.Module | None) -> Reader:
        around = Reader(embedding, self.body, readout, head, before=[*self.before], behind=[*self.behind])
        around.training = self.training  # of its parts each keeps its own
        return around

    def causal(self) -> Decoder | None:
        """The same parts as one causal layer, to run along a stream; None where the model looks ahead."""
        if not isinstance(self.body, Causal) or isinstance(self.embedding, Encoder) or self.readout is not None:
            return None
        live = Decoder(self.embedding, self.body, self.head, before=[*self.before], behind=[*self.behind])
        live.training = self.training
        return live

    def so_far(self) -> Decoder | None:
        """The same as one causal layer, with a readout too: what it would answer if the sequence ended at t.

        None where the model looks ahead, or its readout needs all positions again.
        """
        if self.readout is None:
            return self.causal()
        if not isinstance(self.readout, Last | Mean):
            return None
        live = self.by_position().causal()
        if live is None:
            return None
        body = live.body if isinstance(self.readout, Last) else Serial(live.body, *self.behind, RunningMean())
        behind = [*self.behind] if isinstance(self.readout, Last) else []
        found = Decoder(self.embedding, body, self.head, before=[*self.before], behind=behind)
        found.training = self.training
        return found

    def serial_steps(self, length: int) -> int:
        parts = (self.embedding, self.body, self.readout, self.head)
        return sum(depth(part, length) for part in parts if part is not None)


def read(part: nn.Module, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """An encoder as it is; a causal layer or a plain module on x without what stands in the padding."""
    if isinstance(part, Encoder):
        found: tuple[Tensor, Tensor] = part(x, mask)
        return found
    x = without_padding(x, mask)
    if isinstance(part, Causal):
        require_right_padding(mask, "a causal layer")
        y, _ = part(x)
    else:
        y = part(x)
    return without_padding(y, mask), mask
