"""Composition and the base class: state is derived, T = 0 is handled once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import Causal, Conditional, Encoder, begin, serial_depth
from unrolled.core.compose import AsEncoder, Each, Residual, Serial, SerialEncoder, pick, without_padding
from unrolled.core.errors import UsageError
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.testing import check_encoder


class Total(Causal):
    """y_t = x_1 + ... + x_t."""

    def forward(self, x, state=None):
        y = x.cumsum(1) + (0 if state is None else state[:, None])
        return y, y[:, -1]


class Limited(Total):
    max_length = 3
    state_grows = True
    receptive_field = 2


class NeedsSource(Causal):
    """A decoder that cannot start from nothing."""

    def forward(self, x, state=None):
        (source,) = state
        return x @ torch.ones(2, 5) + source[:, :1, None], state


X = torch.arange(12.0).view(2, 3, 2)


def test_serial_threads_a_tuple_of_states():
    layer = Serial(Total(), nn.Tanh(), Total())
    y, state = layer(X)
    assert torch.equal(y, X.cumsum(1).tanh().cumsum(1))
    assert torch.equal(state[0], X.sum(1))
    assert state[1] == ()
    again, _ = layer(X, state)
    whole, _ = layer(torch.cat([X, X], 1))
    assert torch.allclose(again, whole[:, 3:])


def test_serial_refuses_a_state_of_another_form():
    with pytest.raises(ValueError, match="zip"):
        Serial(Total(), Total())(X, (X[:, 0],))


def test_serial_of_nothing_is_the_identity():
    y, state = Serial()(X)
    assert torch.equal(y, X)
    assert state == ()
    assert Serial().receptive_field == 1


def test_claims_are_derived():
    layer = Serial(Limited(), nn.Identity(), Limited())
    assert (layer.receptive_field, layer.max_length, layer.state_grows) == (3, 3, True)
    assert Serial(Limited(), Total()).receptive_field is None
    assert Serial(Total()).max_length is None
    assert not Serial(Total()).state_grows
    residual = Residual(Limited())
    assert (residual.receptive_field, residual.max_length, residual.state_grows) == (2, 3, True)
    assert next(iter(layer)).max_length == 3


def test_residual_adds_its_input():
    y, state = Residual(Total())(X)
    assert torch.equal(y, X + X.cumsum(1))
    assert torch.equal(state, X.sum(1))
    assert torch.equal(Residual(nn.Tanh())(X)[0], X + X.tanh())


def test_parameters_of_parts_are_registered():
    layer = Serial(nn.Linear(2, 3), Residual(nn.Linear(3, 3)), Each(nn.LayerNorm(3)))
    assert sum(p.numel() for p in layer.parameters()) == 9 + 12 + 6


@pytest.mark.parametrize(
    ("layer", "width"), [(Total(), 2), (Serial(nn.Linear(2, 7)), 7), (Residual(Total()), 2), (Each(nn.Linear(2, 4)), 4)]
)
def test_no_steps_give_no_output_and_no_news(layer, width):
    y, state = layer(X)
    nothing, after = layer(X[:, :0], state)
    assert nothing.shape == (2, 0, width)
    assert nothing.dtype == y.dtype
    assert after is state
    assert layer(X[:, :0])[1] is None


def test_no_steps_of_tokens():
    y, _ = Serial(nn.Embedding(5, 3))(torch.zeros(2, 0, dtype=torch.long))
    assert y.shape == (2, 0, 3)
    assert y.dtype == torch.float32


def test_no_steps_for_a_decoder_that_needs_its_source():
    state = (torch.ones(2, 3),)
    y, after = NeedsSource()(X[:, :0], state)
    assert y.shape == (2, 0, 5)
    assert after is state


def test_no_steps_at_the_longest_length():
    class Strict(Total):
        def forward(self, x, state=None):
            if state is not None:
                raise UsageError("too long")
            return super().forward(x, state)

    y, _ = Strict()(X[:, :0], torch.zeros(2, 2))
    assert y.shape == (2, 0, 2)


def test_no_steps_leave_the_state_as_it_was():
    class Overwrites(Total):
        def forward(self, x, state=None):
            y, new = super().forward(x, state)
            return y + 1, new if state is None else state.copy_(new + 1)

    state = torch.zeros(2, 2)
    _, after = Overwrites()(X[:, :0], state)
    assert after is state
    assert state.abs().max() == 0


def test_what_must_be_defined_is_said():
    with pytest.raises(NotImplementedError, match="Causal must define forward"):
        Causal()(X)
    with pytest.raises(NotImplementedError, match="Encoder must define forward"):
        Encoder()(X, X[..., 0] > 0)
    with pytest.raises(NotImplementedError, match="Conditional must define condition"):
        Conditional().condition(X, None)


def test_begin_gives_the_causal_half_and_its_start():
    class Started(Conditional):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = Total()

        def condition(self, source, mask):
            return source.sum(1)

    layer = Total()
    assert begin(layer) == (layer, None)
    model = Started()
    decoder, state = begin(model, X)
    assert decoder is model.decoder
    assert torch.equal(state, X.sum(1))


# ---- encoders


class Running(Causal):
    """The sum so far, times a weight: a layer with memory."""

    d_in = d_out = 3
    receptive_field = None

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(3, 3)

    def forward(self, x, state=None):
        y = self.w(x).cumsum(1) + (0 if state is None else state[:, None])
        return y, y[:, -1]


class Centred(Encoder):
    d_in = d_out = 3

    def forward(self, x, mask):
        x = without_padding(x, mask)
        return without_padding(x - x.sum(1, keepdim=True) / mask.sum(1)[:, None, None].clamp_min(1), mask), mask


MASK = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]

ENCODERS = {
    "as encoder": lambda: AsEncoder(Running()),
    "as encoder of a serial": lambda: AsEncoder(Serial(nn.Linear(4, 3), Running())),
    "serial of encoders": lambda: SerialEncoder(nn.Linear(4, 3), Running(), Centred(), nn.Linear(3, 2)),
    "serial on tokens": lambda: SerialEncoder(nn.Embedding(7, 3), Centred(), Running()),
}


@pytest.mark.parametrize("make", ENCODERS.values(), ids=ENCODERS)
def test_composed_encoders_obey_the_laws(make) -> None:
    assert "padding" in check_encoder(make())


def test_a_causal_layer_as_an_encoder_says_the_same_and_nothing_at_padding() -> None:
    layer, x = Running(), torch.randn(3, 5, 3)
    y, mask = AsEncoder(layer)(x, MASK)
    assert mask is MASK
    assert (y[~MASK] == 0).all()
    torch.testing.assert_close(y[MASK], layer(x)[0][MASK])


def test_claims_of_a_causal_layer_are_kept() -> None:
    class Limited(Running):
        max_length = 9
        receptive_field = 4

    encoder = AsEncoder(Limited())
    assert (encoder.receptive_field, encoder.max_length, encoder.d_out) == (4, 9, 3)


def test_holes_in_a_mask_are_refused() -> None:
    with pytest.raises(UsageError, match="a causal layer needs right padding"):
        AsEncoder(Running())(torch.zeros(1, 3, 3), torch.tensor([[True, False, True]]))


def test_serial_depth_of_composed_encoders() -> None:
    assert serial_depth(AsEncoder(Recurrent(GRU(3, 2))), 50) == 50
    assert serial_depth(SerialEncoder(nn.Linear(3, 3), Recurrent(GRU(3, 2)), nn.Dropout(0.1)), 50) == 51


@pytest.mark.parametrize(
    "places",
    [[[4, 3, 2]] * 2, [[0, 2, 4]] * 2, [[4, 2, 0]] * 2, [[1]] * 2, [[3, 1, 2]] * 2, [[1, 2], [2, 3]], [[2, 2]] * 2],
)
def test_outputs_at_places_are_those_of_a_gather(places):
    y, at = torch.randn(2, 5, 3, requires_grad=True), torch.tensor(places)
    wanted = y.gather(1, at[..., None].expand(-1, -1, 3))
    weights = torch.randn(wanted.shape)
    found = pick(y, at)
    assert torch.equal(found, wanted)
    slopes = [torch.autograd.grad((each * weights).sum(), y)[0] for each in (found, wanted)]
    assert torch.equal(*slopes)
