"""A source that starts a decoder, or that runs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State


class Started(Conditional):
    """A class starts any causal token model (C0): it is a token of its own, read before the first one.

    The decoder's vocabulary is n_tokens + n_classes; class k enters as token n_tokens + k, and the state it leaves
    behind is the decoder's initial state. So it serves every causal model, whatever its state is made of.
    """

    def __init__(self, decoder: Causal, n_tokens: int, head: nn.Module | None = None) -> None:
        super().__init__()
        self.decoder = decoder
        self.head = head  # that the decoder has `Borrowed`
        self.n_tokens = n_tokens

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        return self.decoder((source + self.n_tokens)[:, None])[1]


@runtime_checkable
class Sourced(Protocol):
    """A causal layer that takes a source of its own before the first tick, under a name; None: it takes none."""

    source: str | None

    def start(self, source: Tensor, mask: Tensor | None) -> State: ...


class Appended(Causal):
    """A sequence known beforehand runs beside x: y_t = (x_t, s_t), s_t = 0 after its end.

    The sequence [B, S, L] (a local condition, covariates known for the future) is constant and sits in the state, with
    a cursor per row. Before any `start` there is no sequence, and zeros are appended.

    >>> layer = Appended(2)
    >>> state = layer.start(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), None)
    >>> layer(torch.full((1, 3, 1), 9.0), state)[0].tolist()
    [[[9.0, 1.0, 2.0], [9.0, 3.0, 4.0], [9.0, 0.0, 0.0]]]
    """

    receptive_field = 1
    source: str | None = "local"

    def __init__(self, d_source: int) -> None:
        super().__init__()
        self.d_source = d_source

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        """The state before the first tick; padding (mask False) counts as after the end."""
        if source.dim() != 3 or source.shape[-1] != self.d_source:
            raise UsageError(f"expected a local source of shape [B, S, {self.d_source}], found {list(source.shape)}")
        if mask is not None:
            source = torch.where(mask[:, :, None], source, 0)
        end = source.new_zeros(source.shape[0], 1, self.d_source)
        cursor = torch.zeros(source.shape[0], dtype=torch.long, device=source.device)  # [B]
        return Fixed(torch.cat([source, end], dim=1)), cursor  # [B, S+1, L], [B]

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        fixed, cursor = self.start(x.new_zeros(x.shape[0], 0, self.d_source)) if state is None else state
        source: Tensor = fixed.tree
        if source.dim() != 3 or source.shape[-1] != self.d_source or cursor.dim() != 1:
            raise UsageError(
                f"expected a state of a local source of shapes [B, S, {self.d_source}] and [B], found "
                f"{list(source.shape)} and {list(cursor.shape)}"
            )
        T = x.shape[1]
        at = (cursor[:, None] + torch.arange(T, device=x.device)).clamp(max=source.shape[1] - 1)  # [B, T]
        beside = source.gather(1, at[:, :, None].expand(-1, -1, self.d_source))  # [B, T, L]
        return torch.cat([x, beside], dim=-1), (fixed, cursor + T)


class Held(Appended):
    """Vectors known beforehand run beside x, each for `hop` steps and the last for all after it: one for each frame of
    sound, or one for the whole.

    >>> layer = Held(1, hop=2)
    >>> state = layer.start(torch.tensor([[[1.0], [3.0]]]), None)
    >>> layer(torch.full((1, 5, 1), 9.0), state)[0][0, :, 1].tolist()
    [1.0, 1.0, 3.0, 3.0, 3.0]
    """

    def __init__(self, d_source: int, hop: int = 1) -> None:
        super().__init__(d_source)
        self.hop = hop

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        """The state before the first tick; behind its real frames (mask True) a row holds the last of them."""
        if source.dim() != 3 or source.shape[-1] != self.d_source:
            raise UsageError(f"expected a condition of shape [B, M, {self.d_source}], found {list(source.shape)}")
        if source.shape[1] == 0:
            source = source.new_zeros(source.shape[0], 1, self.d_source)
        elif mask is not None:
            at = torch.arange(source.shape[1], device=source.device)
            last = (mask.sum(1, keepdim=True) - 1).clamp(min=0)  # [B, 1]
            source = source.gather(1, torch.minimum(at, last)[..., None].expand(-1, -1, self.d_source))
        cursor = torch.zeros(source.shape[0], dtype=torch.long, device=source.device)  # [B]
        return Fixed(source), cursor

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        fixed, cursor = self.start(x.new_zeros(x.shape[0], 0, self.d_source)) if state is None else state
        source: Tensor = fixed.tree
        T, M = x.shape[1], source.shape[1]
        if M == 1:
            return torch.cat([x, source.expand(-1, T, -1)], dim=-1), (fixed, cursor + T)
        at = (cursor[:, None] + torch.arange(T, device=x.device)).div(self.hop, rounding_mode="floor")  # [B, T]
        beside = source.gather(1, at.clamp(max=M - 1)[..., None].expand(-1, -1, self.d_source))  # [B, T, L]
        return torch.cat([x, beside], dim=-1), (fixed, cursor + T)


class Told(Conditional):
    """p(x | c): a learned map of the condition c runs beside the input of any causal body, at every step.

        e_m = W tanh(V c_m + v) + w          m = t // hop

    c [B, M, C] is what is known: classes as 0 and 1, numbers, or frames of features (C0; the global and the local
    condition of van den Oord et al. 2016 in one). A body that does not look further back than some steps, as a
    convolution, never loses it. The decoder is a `Decoder` whose body begins with `Held`; or it knows no condition.
    """

    def __init__(self, decoder: Causal, width: int, d_beside: int, head: nn.Module | None = None) -> None:
        super().__init__()
        self.decoder, self.head = decoder, head
        self.inner = nn.Linear(width, 2 * d_beside)  # V
        self.outer = nn.Linear(2 * d_beside, d_beside)  # W

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        body: Serial = self.decoder.body  # type: ignore[assignment]
        held, *others = body
        mapped = self.outer(torch.tanh(self.inner(source)))  # [B, M, L]
        return (held.start(mapped, mask), *[None] * len(others))


class Guided(Conditional):
    """p(x | sources): layers of the decoder that take a source by name (`Sourced`) are started with it.

    The source is a dict of tensors by name, such as {"local": [B, S, L], "global": [B, G]}; where the decoder takes
    only one, the tensor alone. The mask [B, S] is that of a sequence.
    """

    def __init__(self, decoder: Serial) -> None:
        super().__init__()
        self.decoder: Serial = decoder
        self.names = [layer.source if isinstance(layer, Sourced) else None for layer in decoder]

    def condition(self, source: Tensor | Mapping[str, Tensor], mask: Tensor | None = None) -> State:
        wanted = sorted(name for name in self.names if name)
        given = dict.fromkeys(wanted[:1], source) if isinstance(source, Tensor) else dict(source)
        if sorted(given) != wanted:
            found = "one tensor" if isinstance(source, Tensor) else ", ".join(sorted(given)) or "nothing"
            raise UsageError(f"this decoder takes the sources {', '.join(wanted) or 'none'}; found {found}")
        pairs = zip(self.decoder, self.names, strict=True)
        return tuple(layer.start(given[name], mask) if name else None for layer, name in pairs)
