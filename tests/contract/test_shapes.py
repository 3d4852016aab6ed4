"""Every model refuses what its weights do not fit, by one kind of error, and takes a batch without rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core import state as tree
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.core.state import Fixed, State
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, Memoryless
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.layers.recurrent.scan import Scan, loop, trajectory

D_IN = 5


def body(name: str) -> tuple[nn.Module, bool]:
    """A model of its tiny settings, and whether it reads tokens."""
    module = discover.models.load(name)
    torch.manual_seed(0)
    sizes = Sizes(D_IN, 6, D_IN, horizon=3, d_step=2, observed=True)
    model = body_of(module.MODEL, module.MODEL.tiny, sizes).eval()
    return model, module.MODEL.reads[0] == "tokens"


def example(tokens: bool, rows: int, steps: int, width: int = D_IN) -> Tensor:
    return torch.randint(D_IN, (rows, steps)) if tokens else torch.randn(rows, steps, width)


NAMES = discover.models.names()
CARRYING = [name for name in NAMES if discover.model(name).kind in ("causal", "conditional")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_batch_without_rows(name: str, steps: int) -> None:
    model, tokens = body(name)
    x, mask = example(tokens, 1, steps), torch.ones(1, steps, dtype=torch.bool)
    with torch.no_grad():
        if isinstance(model, Encoder):
            (y, real), (nothing, none) = model(x, mask), model(x[:0], mask[:0])
            assert none.shape == (0, *real.shape[1:])
        elif isinstance(model, Causal | Conditional):
            decoder = model.decoder if isinstance(model, Conditional) else model
            source = example(discover.model(name).reads_source[0] == "tokens", 1, steps)
            states: list[State] = [
                model.condition(source[:rows], mask[:rows]) if isinstance(model, Conditional) else None
                for rows in (0, 1)
            ]
            (nothing, state), (y, _) = decoder(x[:0], states[0]), decoder(x, states[1])
            again, _ = decoder(x[:0], state)
            assert again.shape == nothing.shape
        else:
            y, nothing = model(x[:, 0]), model(x[:0, 0])
    assert nothing.shape == (0, *y.shape[1:])
    assert nothing.dtype == y.dtype


def test_gradients_of_no_rows_are_zero() -> None:
    model, _ = body("gru")
    x = torch.randn(0, 4, D_IN, requires_grad=True)
    model(x)[0].sum().backward()
    assert x.grad is not None
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def widened(state: State) -> Iterator[tuple[str, State]]:
    """The state with one leaf, each in turn, a column wider or narrower; a leaf [B] becomes [B, 1]."""
    found = list(tree.leaves(state))
    for place, leaf in enumerate(found):
        if leaf.dim() == 1:
            others = [leaf[:, None]]
        else:
            others = [torch.cat([leaf, leaf[..., :1]], -1), leaf[..., :-1]]
        for other in others:
            leaves = iter([other if i == place else each for i, each in enumerate(found)])
            yield f"leaf {place} {list(leaf.shape)} as {list(other.shape)}", _filled(state, leaves)


def _filled(state: State, leaves: Iterator[Tensor]) -> State:
    if isinstance(state, Tensor):
        return next(leaves)
    if isinstance(state, Fixed):
        return Fixed(_filled(state.tree, leaves))
    if isinstance(state, tuple):
        parts = [_filled(part, leaves) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state


OURS = ["ar", "elman", "encdec-transformer", "gru", "jordan", "linear-rnn", "lstm", "memoryless", "seq2seq", "tcn",
        "transformer", "wavenet"]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("without", [nullcontext, torch.no_grad])
def test_a_state_of_another_width_or_batch_is_refused(name: str, rows: int, steps: int, without: Any) -> None:
    model, _ = body(name)
    decoder: Any = model.decoder if isinstance(model, Conditional) else model
    source, mask = torch.randn(3, 4, D_IN), torch.ones(3, 4, dtype=torch.bool)

    def begun(rows: int) -> State:
        start = model.condition(source[:rows], mask[:rows]) if isinstance(model, Conditional) else None
        return decoder(torch.randn(rows, 3, D_IN), start)[1]

    x = torch.randn(rows, steps, D_IN)
    with without():
        for what, state in widened(begun(rows)):
            with pytest.raises((UsageError, RuntimeError, IndexError)):
                decoder(x, state)
                raise AssertionError(what)
        for others in {1, 2, 3} - {rows}:
            with pytest.raises(UsageError, match=r"another batch|expected a state"):
                decoder(x, begun(others))
        for width in (1, D_IN - 1, D_IN + 1):
            with pytest.raises(UsageError, match="expects an input of width"):
                decoder(torch.randn(rows, steps, width), begun(rows))


CELLS: list[Callable[[], Cell]] = [
    lambda: LSTM(4, 3), lambda: LSTM(4, 3, d_proj=2), lambda: GRU(4, 3), lambda: BookGRU(4, 3), lambda: Elman(4, 3),
    lambda: Memoryless(4, 3),
]  # fmt: skip


@pytest.mark.parametrize("make", CELLS)
@pytest.mark.parametrize("scan", [loop, fused, deer, lambda *given: (trajectory(*given),) * 2])
@pytest.mark.parametrize("enabled", [True, False])
def test_every_scan_refuses_other_shapes(make: Callable[[], Cell], scan: Scan, enabled: bool) -> None:
    cell = make()
    N = cell.state_size
    with torch.set_grad_enabled(enabled):
        for rows, steps in ((1, 1), (2, 1), (2, 3)):
            for width in (3, 5, 1):
                with pytest.raises(UsageError, match="width 4"):
                    scan(cell, torch.randn(rows, steps, width), torch.zeros(rows, N))
            for shape in ((rows, N + 1), (rows, N - 1), (rows + 1, N), (N,), (1, rows, N)):
                with pytest.raises(UsageError, match="state of"):
                    scan(cell, torch.randn(rows, steps, 4), torch.zeros(shape))
            scan(cell, torch.randn(rows, steps, 4), torch.zeros(rows, N))


def test_the_reported_call() -> None:
    with pytest.raises(UsageError, match=r"width 8, found x of shape \[4, 10, 9\]"):
        Recurrent(LSTM(8, 32))(torch.randn(4, 10, 9))
