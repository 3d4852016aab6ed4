"""Models whose outputs on some data are computed once, call by call, and given again as often as they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from unrolled.core.causal import Causal, Conditional, Encoder, Selective
from unrolled.core.compose import pick
from unrolled.core.errors import UnrolledError
from unrolled.core.state import State


class Outputs:
    """Outputs that were computed once, call by call, and are given again."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.all: list[tuple[Tensor, Any]] = []
        self.next = 0
        self.complete = False

    def of(self, compute: Callable[[], tuple[Tensor, Any]], keep_second: bool) -> tuple[Tensor, Any]:
        if not self.complete:
            y, second = compute()
            if y.shape[-1] != self.width:
                raise UnrolledError(f"outputs of width {y.shape[-1]} cannot be mixed with others of {self.width}")
            self.all.append((y, second if keep_second else None))
            return y, second
        self.next += 1
        return self.all[self.next - 1]

    def rewind(self) -> None:
        self.next, self.complete = 0, True


class HeardEncoder(Encoder):
    """An encoder that reads every input once."""

    def __init__(self, model: Encoder, outputs: Outputs, max_length: int | None) -> None:
        super().__init__()
        self.model, self.max_length, self.outputs = model, max_length, outputs
        self.rewind, self.needs = self.outputs.rewind, 0.0

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs.of(lambda: self.model(x, mask), keep_second=True)


class HeardCausal(Causal):
    """A causal model that reads every input once; afterwards it has no state."""

    def __init__(self, model: Causal, outputs: Outputs, max_length: int | None, state_grows: bool) -> None:
        super().__init__()
        self.model, self.outputs, self.max_length, self.state_grows = model, outputs, max_length, state_grows
        self.d_out, self.rewind, self.needs = model.d_out, outputs.rewind, 0.0

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self.outputs.of(lambda: self.model(x, state), keep_second=False)

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        def compute() -> tuple[Tensor, State]:
            if isinstance(self.model, Selective):
                return self.model.at(x, places, state)
            y, after = self.model(x, state)
            return pick(y, places), after

        return self.outputs.of(compute, keep_second=False)


class HeardConditional(Conditional):
    """A conditional model whose decoder reads every input once."""

    def __init__(self, model: Conditional, outputs: Outputs, max_length: int | None, state_grows: bool) -> None:
        super().__init__()
        self.model, self.d_out, self.max_source = model, model.d_out, model.max_source
        self.outputs = outputs
        self.decoder = HeardCausal(model.decoder, outputs, max_length, state_grows)
        self.rewind, self.needs = outputs.rewind, 0.0

    def condition(self, source: Any, mask: Tensor | None) -> State:
        return None if self.outputs.complete else self.model.condition(source, mask)


def once(model: Any, outputs: Outputs, max_length: int | None, state_grows: bool) -> Any:
    """A model that computes its outputs once."""
    if isinstance(model, Encoder):
        return HeardEncoder(model, outputs, max_length)
    kind = HeardConditional if isinstance(model, Conditional) else HeardCausal
    return kind(model, outputs, max_length, state_grows)
