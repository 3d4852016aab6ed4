"""Neither kernels nor native programs leave out what a module does beyond its class: hooks, pruning, subclasses.

Every model is changed in one of these ways and run twice: as a chunk with gradients, and tick by tick by its stepper.
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
from unrolled.core.causal import Conditional
from unrolled.core.compose import Serial
from unrolled.core.spec import Sizes
from unrolled.core.state import State
from unrolled.engine.stepper import Stepper, stepped
from unrolled.kernels import native
from unrolled.layers.parts.embedding import Table
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, LinearUnit
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.scan import loop

D = 6
MODELS = {
    "ar": {}, "tcn": {"kernel": 2, "widths": (6, 4)}, "wavenet": {"d_global": 0}, "transformer": {},
    "encdec-transformer": {}, "lstm": {}, "gru": {}, "elman": {}, "linear-rnn": {}, "seq2seq": {},
}  # fmt: skip


@pytest.fixture(autouse=True)
def highest() -> Iterator[None]:
    """Whatever the environment says."""
    with native.using([level for level in ["off", *native.built()] if level in ["off", *native.allowed()[0]]][-1]):
        yield


class Run:
    """Tokens -> table -> body -> head, with a source where the body takes one."""

    def __init__(self, name: str, rows: int) -> None:
        torch.manual_seed(0)
        module = discover.models.load(name)
        body = body_of(module.MODEL, module.MODEL.tiny.updated(MODELS[name]), Sizes(D, D, D)).double().eval()
        self.whole, self.rows = body, rows
        inner: Any = body.decoder if isinstance(body, Conditional) else body
        width = inner(torch.zeros(1, 1, D).double(), self.start(1))[0].shape[-1]
        self.layer = Serial(Table(9, D, scale=D**0.5), inner, nn.Linear(width, 5)).double().eval()
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
        ys, state, step = [], self.begin(), stepped(self.layer)
        with torch.no_grad():
            for t in range(self.x.shape[1]):
                y, state = step(self.x[:, t : t + 1], state)
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


@pytest.mark.skipif(not native.built(), reason="no native library was built")
@pytest.mark.parametrize("name", MODELS)
def test_unchanged_models_are_lowered(name: str) -> None:
    run = Run(name, 1)
    assert isinstance(stepped(run.layer), Stepper)
    torch.testing.assert_close(run.ticks(), run.chunk())


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
