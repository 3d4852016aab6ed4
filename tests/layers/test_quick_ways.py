"""A quick way through generation leaves out no module that does more than its class: hooks, pruning, subclasses.

Every model is changed in one of these ways and run twice: as a chunk with gradients, and tick by tick without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

from tests.thorough import every
from unrolled.core import discover
from unrolled.core import state as tree
from unrolled.core.causal import Causal, Conditional
from unrolled.core.compose import Serial
from unrolled.core.spec import Sizes
from unrolled.core.state import State
from unrolled.layers.attention import tick_block
from unrolled.layers.attention.packed import packed_weights
from unrolled.layers.conv.conv import CausalConv
from unrolled.layers.parts.embedding import Affine, Table
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.layers.recurrent import tick
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, LinearUnit
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.scan import loop

D = 6
MODELS = {
    "ar": {}, "tcn": {"kernel": 2, "widths": (6, 4)}, "wavenet": {"d_global": 0}, "transformer": {},
    "encdec-transformer": {}, "lstm": {}, "gru": {}, "elman": {}, "linear-rnn": {}, "seq2seq": {},
}  # fmt: skip


class Run:
    """Tokens -> table -> body -> head, with a source where the body takes one."""

    def __init__(self, name: str, rows: int) -> None:
        torch.manual_seed(0)
        module = discover.models.load(name)
        body = body_of(module.MODEL, module.MODEL.tiny.updated(MODELS[name]), Sizes(D, D, D)).double().eval()
        self.whole, self.rows = body, rows
        inner: Any = body.decoder if isinstance(body, Conditional) else body
        width = inner(torch.zeros(1, 1, D).double(), self.start(1))[0].shape[-1]
        self.layer = Serial(Table(9, D, scale=D**0.5), inner, Affine(width, 5)).double().eval()
        self.x = torch.randint(9, (rows, 7))

    def start(self, rows: int) -> State:
        if not isinstance(self.whole, Conditional):
            return None
        generator = torch.Generator().manual_seed(1)
        return self.whole.condition(torch.randn(rows, 4, D, generator=generator).double(), None)

    def begin(self) -> State:
        start = self.start(self.rows)
        return None if start is None else (None, start, None)

    def chunk(self) -> Tensor:
        return self.layer(self.x, self.begin())[0].detach()

    def ticks(self) -> Tensor:
        ys, state = [], self.begin()
        with torch.no_grad(), packed_weights():
            for t in range(self.x.shape[1]):
                y, state = self.layer(self.x[:, t : t + 1], state)
                ys.append(y.clone())
        return torch.cat(ys, 1)


def used(run: Run) -> Iterator[tuple[str, nn.Module]]:
    """The modules that a chunk calls."""
    seen: dict[nn.Module, None] = {}
    hooks = [m.register_forward_hook(lambda m, *_: seen.setdefault(m)) for m in run.layer.modules()]
    run.chunk()
    for hook in hooks:
        hook.remove()
    for name, module in run.layer.named_modules():
        if module in seen:
            yield name, module


def places(run: Run) -> list[str]:
    """Where modules are that a chunk calls: of those that have one name in modules of one kind, the last."""
    owners = {name: type(run.layer.get_submodule(name.rpartition(".")[0])) for name, _ in used(run)}
    return [*{(owners[name], name.rpartition(".")[2], type(module)): name for name, module in used(run)}.values()]


def _moved(_: nn.Module, __: Any, output: Any) -> Any:
    return (output[0] * 1.5 + 0.25, *output[1:]) if isinstance(output, tuple) else output * 1.5 + 0.25


def _entered(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return (inputs[0] * 1.5, *inputs[1:]) if inputs[0].is_floating_point() else None


class Other(nn.Module):
    def forward(self, w: Tensor) -> Tensor:
        return 1.5 * w


def _weights(module: nn.Module) -> list[str]:
    return [name for name, p in module.named_parameters(recurse=False) if p.dim() >= 2]


def hooked(module: nn.Module) -> bool:
    module.register_forward_hook(_moved)
    return True


def hooked_before(module: nn.Module) -> bool:
    module.register_forward_pre_hook(_entered)
    return True


def pruned(module: nn.Module) -> bool:
    for name in _weights(module):
        prune.random_unstructured(module, name, amount=0.5)
    return bool(_weights(module)) or any(name.endswith("_orig") for name, _ in module.named_parameters(recurse=False))


def parametrised(module: nn.Module) -> bool:
    names = _weights(module)
    for name in names:
        parametrize.register_parametrization(module, name, Other())
    return bool(names)


def normed(module: nn.Module) -> bool:
    if not isinstance(module, nn.Linear):
        return False
    parametrizations.weight_norm(module)
    module.parametrizations.weight.original0.data.mul_(2)  # type: ignore[union-attr,operator]
    return True


def subclassed(module: nn.Module) -> bool:
    """What LoRA does: a class of its own in the place of the usual one."""
    kind: Any = type(module)

    class Adapted(kind):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            return _moved(self, inputs, super().forward(*inputs))

    module.__class__ = Adapted
    return True


def patched(module: nn.Module) -> bool:
    forward = module.forward
    module.forward = lambda *inputs: _moved(module, inputs, forward(*inputs))  # type: ignore[method-assign]
    return True


CHANGES: dict[str, Callable[[nn.Module], bool]] = {
    each.__name__: each for each in (hooked, hooked_before, pruned, parametrised, normed, subclassed, patched)
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("name", "rows"), every(3, [*((name, 1) for name in MODELS), ("encdec-transformer", 3), ("lstm", 3)])
)
def test_what_is_done_to_a_module_is_done_in_generation_too(name: str, rows: int, change: str) -> None:
    plain = Run(name, rows)
    before = plain.chunk()
    changed = 0
    for place in places(plain):
        run = Run(name, rows)
        if not CHANGES[change](run.layer.get_submodule(place)):
            continue
        with torch.random.fork_rng():
            chunk = run.chunk()
        torch.testing.assert_close(run.ticks(), chunk, rtol=1e-9, atol=1e-9, msg=lambda m, p=place: f"{p}: {m}")
        changed += not torch.equal(chunk, before)
    assert changed, "some change must show"


@pytest.mark.parametrize("name", MODELS)
def test_a_hook_on_all_modules_is_called_in_generation(name: str) -> None:
    run = Run(name, 1)
    called: list[nn.Module] = []
    hook = nn.modules.module.register_module_forward_hook(lambda module, *_: called.append(module))
    try:
        ticks = run.ticks()
    finally:
        hook.remove()
    assert {module for _, module in used(run)} <= set(called)
    torch.testing.assert_close(ticks, run.chunk())


@pytest.mark.parametrize("name", MODELS)
def test_a_hook_may_come_and_go_between_ticks(name: str) -> None:
    run, (place, module) = Run(name, 1), [*used(Run(name, 1))][-2]
    del module
    wanted = run.chunk()
    with torch.no_grad():
        state, ys = run.begin(), []
        for t in range(run.x.shape[1]):
            seen: list[int] = []
            hook = run.layer.get_submodule(place).register_forward_hook(lambda *_, seen=seen: seen.append(1))
            y, state = run.layer(run.x[:, t : t + 1], state)
            assert len(seen) == 1
            hook.remove()
            ys.append(y.clone())
            _, state = (y, state) if t % 2 else (y, tree.clone(state))
    torch.testing.assert_close(torch.cat(ys, 1), wanted)


# ---- cells by their kernels


@pytest.mark.parametrize("kind", [LSTM, GRU, BookGRU, Elman, LinearUnit])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("enabled", [True, False])
def test_kernels_are_for_bare_cells(kind: Callable[[int, int], Cell], change: str, enabled: bool) -> None:
    cell = kind(4, 3).double()
    if not CHANGES[change](cell):
        return
    with torch.set_grad_enabled(enabled):
        for rows, steps in ((1, 1), (2, 1), (2, 4)):
            x, h0 = torch.randn(rows, steps, 4).double(), torch.randn(rows, cell.state_size).double()
            torch.testing.assert_close(fused(cell, x, h0), loop(cell, x, h0))


# ---- the quick ways are taken where they may be


@pytest.mark.parametrize("name", ["tcn", "wavenet", "transformer", "encdec-transformer", "lstm", "gru", "elman", "ar"])
def test_bare_modules_take_the_quick_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(name, 1)
    taken: list[Any] = []
    original = tick.arrays

    def watched(*given: Any) -> Any:
        taken.append(original(*given))
        return taken[-1]

    places = [
        "recurrent.tick", "attention.tick_block", "conv.conv", "conv.temporal", "conv.wave", "parts.embedding",
    ]  # fmt: skip
    for place in places:
        monkeypatch.setattr(f"unrolled.layers.{place}.arrays", watched)
    torch.testing.assert_close(run.ticks(), run.chunk())
    assert len(taken) >= 3 * 6
    assert all(each is not None for each in taken)
    assert tick_block.arrays is watched


# ---- weights that change


def _swap_data(p: nn.Parameter) -> None:
    p.data = torch.randn_like(p)


def _transpose(p: nn.Parameter) -> None:
    p.data = p.data.t()


def _reverse(p: nn.Parameter) -> None:
    p.data = p.data.flip(0)


def _in_place(p: nn.Parameter) -> None:
    p.data.copy_(torch.randn_like(p))


def _flat(p: nn.Parameter) -> None:
    p.data = p.data[:1].expand_as(p)  # the same memory, other strides


@pytest.mark.parametrize("swap", [_swap_data, _transpose, _reverse, _in_place, _flat])
def test_generation_sees_weights_that_change(swap: Callable[[nn.Parameter], None]) -> None:
    torch.manual_seed(0)
    layer = Serial(Table(4, 4), Affine(4, 4), CausalConv(4, 4, 2))
    x = torch.tensor([[2]])
    for weight in (layer.layers[0].module.weight, layer.layers[1].module.weight):
        with torch.no_grad():
            layer(x)  # whatever is kept of the weights is kept now
            swap(weight)
            torch.testing.assert_close(layer(x)[0], layer(x.expand(2, 1))[0][:1])


@pytest.mark.parametrize("kind", [LSTM, GRU, Elman])
def test_a_cell_sees_a_square_matrix_turned(kind: Callable[[int, int], Cell]) -> None:
    cell: Any = kind(4, 4)
    x, h = torch.randn(1, 1, 4), torch.randn(1, cell.state_size)
    with torch.no_grad():
        fused(cell, x, h)
        if kind is Elman:
            cell.weight_hh.data = cell.weight_hh.data.t()
        else:
            blocks = cell.weight_hh.data.view(-1, 4, 4)
            cell.weight_hh.data = blocks.mT.reshape(-1, 4)
        torch.testing.assert_close(fused(cell, x, h), loop(cell, x, h))


def test_other_types_and_loaded_weights_are_seen() -> None:
    layer, other = Serial(Affine(4, 4)), Serial(Affine(4, 4))
    x = torch.randn(1, 1, 4)
    with torch.no_grad():
        layer(x)
        layer.load_state_dict(other.state_dict(), assign=True)
        torch.testing.assert_close(layer(x)[0], other(x)[0])
        for dtype in (torch.float64, torch.float32, torch.float64):
            layer.to(dtype)
            y = layer(x.to(dtype))[0]
            assert y.dtype == dtype
            torch.testing.assert_close(y.float(), other(x)[0])
        with pytest.raises(RuntimeError, match="dtype"):  # as a chunk is
            layer(x)


def test_an_output_is_no_window_on_the_table() -> None:
    table = Table(4, 3)
    before = table.weight.detach().clone()
    with torch.no_grad():
        table(torch.tensor([[1]])).fill_(7)
    assert torch.equal(table.weight, before)


@pytest.mark.parametrize("token", [-1, 4])
def test_a_token_outside_the_table_is_refused_alone_too(token: int) -> None:
    with torch.no_grad(), pytest.raises(IndexError):
        Table(4, 3)(torch.tensor([[token]]))


def test_a_table_that_limits_its_rows_does_so_for_one_token() -> None:
    table = Table(4, 3)
    table.max_norm = 0.1
    with torch.no_grad():
        assert table(torch.tensor([[1]])).norm().item() == pytest.approx(0.1, rel=1e-3)


def test_weights_that_are_transformed_are_not_looked_at() -> None:
    """Several models at once: the weights are batched where x is not."""
    linear = Affine(3, 2)
    x = torch.randn(1, 1, 3)
    stacked = {name: torch.stack([p.detach(), 2 * p.detach()]) for name, p in linear.named_parameters()}
    with torch.no_grad():
        linear(x)
        y = torch.func.vmap(lambda w: torch.func.functional_call(linear, w, (x,)))(stacked)
    torch.testing.assert_close(y[1], 2 * y[0])


def test_identity_gives_a_copy() -> None:
    x = torch.randn(1, 2, 3)
    layer: Causal = Serial(nn.Identity())
    assert layer(x)[0].data_ptr() != x.data_ptr()
