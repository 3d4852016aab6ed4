"""Transformer blocks: attention and a feed-forward network, each with a residual connection and a normalisation.

    pre:    x <- x + Drop(Sub(LN(x)))        (6.5) of the lecture notes; a last LN stands behind all blocks
    post:   x <- LN(x + Drop(Sub(x)))        eq. (7.31)

    LN is one of the normalisations of norms.py: by default torch.nn.LayerNorm; that of the lecture notes (6.6) and
    the root mean square of Llama are choices.

A block has 4 p + 2 N_1 p + N_1 + p + H (2 m p + 2 m_v p) parameters (eq. 7.32), with biases in the feed-forward only.
A decoder block has 2 p + H (2 m p + 2 m_v p) more, for cross-attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

from pydantic import Field
from torch import Tensor, nn

from unrolled.core.causal import Causal, Encoder
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.layers.attention.attention import CausalSelfAttention, CrossAttention, MultiHead, SelfAttention
from unrolled.layers.attention.feed_forward import Activation
from unrolled.layers.attention.grouped import GroupedHeads
from unrolled.layers.attention.norms import NORMS, Norm


class BlocksConfig(Config):
    """The settings of any stack of blocks."""

    d_model: int = Field(128, ge=1)
    """Width of the residual stream (p of the equations)."""
    n_layers: int = Field(4, ge=1)
    """Blocks."""
    n_heads: int = Field(4, ge=1)
    """Number of heads per block (H); d_model is divided evenly among them."""
    d_ff: int = Field(512, ge=1)
    """Hidden units of the feed-forward network (N_1)."""
    activation: Activation = "gelu"
    """Activation function of the feed-forward network; gelu-tanh is GPT-2's, swiglu the gated network of Llama, without
    biases."""
    norm: Literal["pre", "post"] = "pre"
    """Whether the normalisation comes before or after each sublayer."""
    norm_by: Norm = "layer"
    """Normalisation: by mean and variance (layer), by mean and sample deviation (6.6), or by the root mean square."""
    epsilon: float = Field(1e-5, gt=0, lt=1)
    """Number that keeps a normalisation from dividing by zero."""
    bias: bool = False
    """Biases in the maps of attention, as in BERT and GPT-2."""
    n_key_heads: int = Field(0, ge=0)
    """Number of heads of keys and values, each shared by several queries (grouped-query attention); 0: as many as
    n_heads."""
    n_positions: int = Field(1024, ge=1)
    """Maximum number of positions for learned, joint or one-hot encodings; other kinds have no limit."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the output of each attention and feed-forward layer."""

    def resized(self, width: int) -> Self:
        """The feed-forward network stays four times as wide as the residual stream."""
        return self.updated({"d_model": width, "d_ff": 4 * width})

    def heads(self, d_source: int | None = None) -> MultiHead:
        """The heads of an attention layer; of one that attends to a source, of that width."""
        if not self.n_key_heads or self.n_key_heads == self.n_heads:
            return MultiHead(self.d_model, self.n_heads, d_source=d_source, bias=self.bias)
        return GroupedHeads(self.d_model, self.n_heads, self.n_key_heads, d_source, self.bias)

    def normalisation(self, width: int) -> nn.Module:
        return NORMS[self.norm_by](width, self.epsilon)


class Block(nn.Module):
    """Attention and feed-forward; `carried` is whatever the attention takes and returns: a state or a mask."""

    def __init__(
        self,
        attention: CausalSelfAttention | SelfAttention,
        feed_forward: nn.Module,
        norm: Literal["pre", "post"] = "pre",
        dropout: float = 0.0,
        normalisation: Callable[[int], nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.norm = norm
        self.d_in, self.d_out = attention.d_in, int(attention.d_in)  # type: ignore[arg-type]
        self.norm_1, self.norm_2 = normalisation(self.d_out), normalisation(self.d_out)
        self.dropout = nn.Dropout(dropout)

    def run(self, x: Tensor, carried: State | Tensor) -> tuple[Tensor, State | Tensor]:
        if self.norm == "pre":
            u, carried = self.attention(self.norm_1(x), carried)
            x = x + self.dropout(u)
            return x + self.dropout(self.feed_forward(self.norm_2(x))), carried
        u, carried = self.attention(x, carried)
        x = self.norm_1(x + self.dropout(u))
        return self.norm_2(x + self.dropout(self.feed_forward(x))), carried


class CausalBlock(Block, Causal):
    """A block along a stream; its state is that of its attention."""

    def __init__(
        self,
        attention: CausalSelfAttention,
        feed_forward: nn.Module,
        norm: Literal["pre", "post"] = "pre",
        dropout: float = 0.0,
        normalisation: Callable[[int], nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__(attention, feed_forward, norm, dropout, normalisation)
        self.receptive_field = attention.receptive_field
        self.state_grows = attention.state_grows

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self.run(x, state)


class DecoderBlock(Causal):
    """Causal self-attention, attention to the source (eq. 7.33), feed-forward, as in Fig. 7.15 (b).

    The state is that of the self-attention, and the source's keys and values, which no tick changes.
    """

    source: str | None = "source"

    def __init__(
        self,
        attention: CausalSelfAttention,
        cross: CrossAttention,
        feed_forward: nn.Module,
        norm: Literal["pre", "post"] = "pre",
        dropout: float = 0.0,
        normalisation: Callable[[int], nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.norm = norm
        self.d_in, self.d_out = attention.d_in, int(attention.d_in)  # type: ignore[arg-type]
        self.norm_1, self.norm_2, self.norm_3 = (normalisation(self.d_out) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.receptive_field = attention.receptive_field
        self.state_grows = attention.state_grows

    def start(self, source: Tensor, mask: Tensor) -> State:
        return None, self.cross.condition(source, mask)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError("a decoder block needs a source: start with the state that start(source, mask) returns")
        past, about = state
        if self.norm == "pre":
            u, past = self.attention(self.norm_1(x), past)
            x = x + self.dropout(u)
            u, about = self.cross(self.norm_2(x), about)
            x = x + self.dropout(u)
            return x + self.dropout(self.feed_forward(self.norm_3(x))), (past, about)
        u, past = self.attention(x, past)
        x = self.norm_1(x + self.dropout(u))
        u, about = self.cross(x, about)
        x = self.norm_2(x + self.dropout(u))
        return self.norm_3(x + self.dropout(self.feed_forward(x))), (past, about)


class EncoderBlock(Block, Encoder):
    """A block over a whole sequence."""

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.run(x.masked_fill(~mask.unsqueeze(-1), 0), mask)
