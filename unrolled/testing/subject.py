"""What is put through the laws: a private copy of the user's layer, its inputs, and the settings it must hold in."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.causal import Causal, Conditional, decoder_of
from unrolled.core.compose import AsEncoder, Each, Residual, Serial, SerialEncoder
from unrolled.core.errors import UsageError
from unrolled.core.forward import device_of
from unrolled.core.state import State
from unrolled.layers.parts.assembled import Decoder, Reader

ROWS, STEPS = 3, 7  # the batch that is tried
LARGE = 1e6  # a large finite value: what stands in the future, in the padding or in another row


class Setting(NamedTuple):
    """One way in which the laws must hold."""

    dtype: torch.dtype
    training: bool

    @property
    def tolerance(self) -> float:
        """Allowed relative difference between two ways to the same number."""
        return 1e-9 if self.dtype == torch.float64 else 5e-4

    @property
    def thorough(self) -> bool:
        """Float64 shows every fault of the mathematics; float32 is there for kernels of its own."""
        return self.dtype == torch.float64

    @property
    def leak(self) -> float:
        """Allowed size of a gradient that should be zero, relative to those that are not."""
        return 1e-12 if self.dtype == torch.float64 else 1e-6

    def __str__(self) -> str:
        return f"{'train' if self.training else 'eval'} mode, {str(self.dtype).removeprefix('torch.')}"


SETTINGS = [Setting(dtype, training) for dtype in (torch.float64, torch.float32) for training in (False, True)]


class Inputs:
    """Draws inputs [B, T, ...] like the example, or of the given width, or tokens of the given vocabulary."""

    def __init__(
        self, example: Tensor | None, d_in: int | None, vocabulary: int | None, device: torch.device, seed: int
    ) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.device = device
        self.d_in = d_in
        self.pool = None if example is None else example.detach().cpu().flatten(0, 1)  # [B*T, ...]
        if self.pool is not None and len(self.pool) == 0:
            raise UsageError("the example input holds no position; give at least one row and one step")
        self.tokens = vocabulary is not None if self.pool is None else not self.pool.is_floating_point()
        self.vocabulary = vocabulary or (int(self.pool.max()) + 1 if self.pool is not None and self.tokens else None)

    def draw(self, rows: int, steps: int, dtype: torch.dtype) -> Tensor:
        """Ordinary values."""
        if self.pool is not None:
            index = torch.randint(len(self.pool), (rows, steps), generator=self.generator)
            x = self.pool[index]  # [B, T, ...]
            if not self.tokens:  # digits beyond float32, so that a layer that drops them is seen
                x = x * (1 + 1e-10 * torch.randn(x.shape, generator=self.generator, dtype=torch.float64))
        elif self.tokens:
            x = torch.randint(self.vocabulary or 1, (rows, steps), generator=self.generator)  # [B, T]
        else:
            x = torch.randn(rows, steps, self.d_in or 1, generator=self.generator, dtype=torch.float64)  # [B, T, D]
        return (x if self.tokens else x.to(dtype)).to(self.device)

    def garbage(self, like: Tensor) -> Tensor:
        """Large finite values, or other tokens."""
        if self.tokens:
            step = torch.randint(1, max(self.vocabulary or 2, 2), like.shape, generator=self.generator)
            return (like + step.to(self.device)) % (self.vocabulary or 1)
        noise = torch.randn(like.shape, generator=self.generator, dtype=torch.float64)
        return (LARGE * noise).to(like)

    def weights(self, like: Tensor) -> Tensor:
        """Random weights for a loss, so that no sum cancels what a gradient should show."""
        return torch.randn(like.shape, generator=self.generator, dtype=torch.float64).to(like.device, _real(like.dtype))

    def cuts(self, steps: int) -> list[int]:
        """Random pieces that add up to `steps`; some are empty, some hold one step."""
        points = torch.randint(0, steps + 1, (max(2, min(5, steps)),), generator=self.generator).tolist()
        edges = [0, *sorted(points), steps]
        return [after - before for before, after in itertools.pairwise(edges)]


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.float64


def inputs_for(layer: nn.Module, x: Tensor | None, d_in: int | None, vocabulary: int | None, seed: int) -> Inputs:
    """Inputs from the example, the widths given, or what the layer says about itself."""
    if x is not None and x.dim() < 2:
        raise UsageError(f"the example input has shape {list(x.shape)}; it should be [B, T, D], or [B, T] for tokens")
    if x is None and d_in is None and vocabulary is None:
        d_in, vocabulary = own_input(layer)
        if d_in is None and vocabulary is None:
            raise UsageError(
                f"the input width of {type(layer).__name__} is not known: give x, d_in or vocabulary, "
                "or let the layer have an attribute d_in"
            )
    if d_in is not None and vocabulary is not None:
        raise UsageError("give d_in for vectors or vocabulary for tokens, not both")
    return Inputs(x, d_in, vocabulary, device_of(layer), seed)


def own_input(layer: nn.Module) -> tuple[int | None, int | None]:
    """(width, None) or (None, vocabulary) when the layer, its cell or its first part tells; else (None, None)."""
    if isinstance(layer, nn.Embedding):
        return None, layer.num_embeddings
    for name in ("vocabulary", "n_tokens"):
        if isinstance(getattr(layer, name, None), int):
            return None, int(getattr(layer, name))
    for owner in (layer, getattr(layer, "cell", None)):
        for name in ("d_in", "input_size", "in_features", "in_channels"):
            if isinstance(getattr(owner, name, None), int):
                return int(getattr(owner, name)), None
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return layer.normalized_shape[-1], None
    parts = {Serial: "layers", Each: "module", Residual: "layer",
             SerialEncoder: "layers", AsEncoder: "causal"}  # fmt: skip
    for kind, name in parts.items():
        if isinstance(layer, kind):
            inner = getattr(layer, name)
            return own_input(inner[0] if isinstance(inner, nn.ModuleList) else inner)
    if isinstance(layer, Decoder | Reader):
        return own_input(layer.body if layer.embedding is None else layer.embedding)
    if isinstance(layer, nn.Sequential) and len(layer):
        return own_input(layer[0])
    return None, None


def stirred(layer: nn.Module, seed: int) -> nn.Module:
    """A copy without dropout whose parameters have moved a little, for a layer that starts at zero hides its faults."""
    layer = copy.deepcopy(layer)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.add_((0.05 * noise).to(parameter))
    for module in layer.modules():
        for name, value in vars(module).items():
            is_dropout = "dropout" in name or (name == "p" and "dropout" in type(module).__name__.lower())
            if is_dropout and isinstance(value, float):
                setattr(module, name, 0.0)
    return layer


def prepared(layer: nn.Module, setting: Setting) -> nn.Module:
    """A copy in the dtype and mode of the setting."""
    layer = copy.deepcopy(layer)
    layer = layer.double() if setting.dtype == torch.float64 else layer.float()
    return layer.train(setting.training)


def cast(values: Any, dtype: torch.dtype) -> Any:
    """A copy of a tree of tensors with its floating-point leaves in the given dtype."""
    if isinstance(values, Tensor):
        return values.to(dtype if values.is_floating_point() else values.dtype, copy=True)
    if isinstance(values, dict):
        return {key: cast(value, dtype) for key, value in values.items()}
    if isinstance(values, tuple):
        parts = [cast(value, dtype) for value in values]
        return type(values)(*parts) if hasattr(values, "_fields") else tuple(parts)
    return values


class Subject:
    """The causal half of a model and the state it starts from: None, or what `condition` makes of a source."""

    def __init__(self, model: nn.Module, source: Any = None, mask: Tensor | None = None) -> None:
        self.model = model
        self.source = source
        self.mask = mask
        self.causal: Causal = decoder_of(model)  # type: ignore[call-overload]

    def on(self, model: nn.Module, dtype: torch.dtype) -> Subject:
        """The same source in front of another copy of the model."""
        return Subject(model, cast(self.source, dtype), cast(self.mask, dtype))

    def start(self, rows: Tensor) -> State:
        """The initial state of these rows."""
        if not isinstance(self.model, Conditional):
            return None
        mask = None if self.mask is None else self.mask[rows]
        return self.model.condition(tree.take(self.source, rows), mask)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self.causal(x, state)
        return y, state

    def length(self, steps: int) -> int:
        """As many steps as the layer can take."""
        longest = self.causal.max_length
        return steps if longest is None else min(steps, longest)

    def parameters(self) -> dict[str, Tensor]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}


@contextmanager
def sealed(seed: int) -> Iterator[None]:
    """Gradients on and a random state of its own: a check leaves no trace in the caller's."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        torch.manual_seed(seed)
        yield


@contextmanager
def differentiable(layer: nn.Module, x: Tensor) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """(x, leaves): tensors [B, T, ...] through which x enters and to which a gradient can be taken.

    Vectors are their own leaf. Tokens have no gradient, but what an nn.Embedding makes of them has: zeros are added
    there, one tensor per embedding that sees the tokens.
    """
    if x.is_floating_point():
        x = x.clone().requires_grad_()
        yield x, [x]
        return
    added: list[Tensor] = []

    def add_zeros(_: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if arguments[0].shape != x.shape:
            return output
        added.append(torch.zeros_like(output).requires_grad_())
        return output + added[-1]

    hooks = [m.register_forward_hook(add_zeros) for m in layer.modules() if isinstance(m, nn.Embedding)]
    try:
        yield x, added
    finally:
        for hook in hooks:
            hook.remove()


def gradients(y: Tensor, weights: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """d sum(y * weights) / d leaf, zeros where there is no path."""
    if not y.requires_grad or not leaves:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad((y * weights).sum(), leaves, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found)]
