"""Small decoders of tokens of every family that is lowered."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from unrolled.core.causal import Causal
from unrolled.core.compose import Residual, Serial
from unrolled.core.spec import Sizes
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.embedding import OneHot, Table, TiedHead
from unrolled.layers.recurrent.cells import (
    GRU,
    LSTM,
    BookGRU,
    Cell,
    Elman,
    Jordan,
    LinearUnit,
    Memoryless,
    OutputFeedback,
)
from unrolled.layers.recurrent.recurrent import Recurrent, Stacked
from unrolled.models import tcn as temporal
from unrolled.models import transformer as gpt
from unrolled.models import wavenet as waves

V = 11
Make = Callable[[int, int], Causal]


def stack(cell: Callable[[int, int], Cell]) -> Make:
    def made(d: int, n: int) -> Causal:
        first = Recurrent(cell(d, n))
        return Stacked([first, Recurrent(cell(first.d_out, n + 2), initial="learned")], dropout=0.3)

    return made


def mixed(d: int, n: int) -> Causal:
    body = Serial(
        Recurrent(GRU(d, n)), nn.Dropout(0.2), Residual(Serial(nn.Linear(n, n), nn.Tanh())), Recurrent(LSTM(n, n))
    )
    body.d_out = n
    return body


BODIES: dict[str, Make] = {
    "lstm": stack(LSTM), "gru": stack(GRU), "book-gru": stack(BookGRU), "elman": stack(Elman),
    "elman-relu": stack(lambda d, n: Elman(d, n, "relu", bias=False)), "linear-rnn": stack(LinearUnit),
    "memoryless": stack(lambda d, n: Memoryless(d, n, "sigmoid")), "mixed": mixed,
    "projected": stack(lambda d, n: LSTM(d, n, d_proj=3)),
}  # fmt: skip


def transformer(**settings: object) -> Make:
    def made(d: int, n: int) -> Causal:
        n = 8 * max(n // 8, 1)
        known = {"d_model": n, "n_heads": 2, "n_layers": 2, "d_ff": n + 3, "n_positions": 128, "window": 0}
        return gpt.make(gpt.Config.parse({**known, **settings}), Sizes(d, V))

    return made


def tcn(**settings: object) -> Make:
    return lambda d, n: temporal.make(temporal.Config.parse({"widths": [n, n, n + 1], **settings}), Sizes(d, V))


def wavenet(**settings: object) -> Make:
    known = {"n_dilations": 3, "n_stacks": 2}
    return lambda d, n: waves.make(
        waves.Config.parse({"d_model": n, "d_skip": n + 3, **known, **settings}), Sizes(d, V)
    )


BODIES |= {
    "gpt": transformer(), "gpt-window": transformer(window=5), "gpt-post": transformer(norm="post", activation="relu"),
    "gpt2": transformer(position="learned", activation="gelu-tanh", bias=True),
    "llama": transformer(activation="swiglu", norm_by="rms", n_heads=4, n_key_heads=2, window=7),
    "sinusoid": transformer(position="sinusoid", norm_by="deviation"),
    "appended": transformer(position="sinusoid-appended"), "one-hot": transformer(position="one-hot"),
    "joint": transformer(position="joint"), "tcn": tcn(), "tcn-plain": tcn(form="plain", kernel=2),
    "tcn-normed": tcn(weight_norm=True, kernel=1), "wavenet": wavenet(), "wavenet-3": wavenet(kernel=3, n_stacks=1),
    "wavenet-global": wavenet(d_global=2),
}  # fmt: skip
OWN_HEAD: dict[str, Make] = {
    "jordan": lambda d, n: Recurrent(Jordan(d, n, V)),
    "jordan-sigmoid": lambda d, n: Recurrent(Jordan(d, n, V, "relu", "sigmoid")),
    "feedback": lambda d, n: Recurrent(OutputFeedback(d, n, V)),
}
CAUSAL = [*BODIES, *OWN_HEAD]


def decoder(name: str, width: int, seed: int = 0, sharpness: float = 1.0) -> Decoder:
    """By its width: one-hot inputs or a table, a head of its own or a tied one."""
    torch.manual_seed(seed)
    embedding: nn.Module = OneHot(V) if width % 2 else Table(V, width + 1, 2.0)
    d = V if width % 2 else width + 1
    if name in OWN_HEAD:
        return Decoder(embedding, OWN_HEAD[name](d, width), None).eval()
    body = BODIES[name](d, width)
    tied = isinstance(embedding, Table) and body.d_out == d
    head = TiedHead(embedding, V) if tied else nn.Linear(body.d_out, V)  # type: ignore[arg-type]
    made = Decoder(embedding, body, head, before=[nn.Dropout(0.1)], behind=[nn.Dropout(0.1)])
    with torch.no_grad():
        for p in head.parameters():
            p.mul_(sharpness)
        if name == "linear-rnn":
            for p in body.parameters():
                p.mul_(0.6)
    return made.eval()
