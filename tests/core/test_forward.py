"""One way from a model and a batch to outputs: the kinds of model, carried states, and the mode that is put back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.causal import Causal, Conditional, Encoder, decoder_of
from unrolled.core.compose import Each, Serial
from unrolled.core.forward import carries, device_of, evaluated, evaluating, forward, outputs, start
from unrolled.core.state import State
from unrolled.layers.recurrent.cells import LSTM
from unrolled.layers.recurrent.recurrent import Recurrent

X = torch.randn(3, 8, 2, generator=torch.Generator().manual_seed(0))  # [B, T, D]


class Total(Causal):
    """y_t = x_1 + .. + x_t, in the memory of its state where gradients are off."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y = x.cumsum(1) + (0 if state is None else state[:, None])
        if state is None or torch.is_grad_enabled():
            return y, y[:, -1]
        return y, state.copy_(y[:, -1])


class Growing(Total):
    state_grows = True


class From(Conditional):
    """The sum goes on from the sum of the source's real values."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = Total()

    def condition(self, source: Tensor, mask: Tensor | None) -> State:
        return (source if mask is None else source * mask[:, :, None]).sum(1)


class Mean(Encoder):
    """The mean of what is real, at each position."""

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        real = mask[:, :, None].to(x)
        return ((x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)).expand_as(x), mask


def batch(x: Tensor = X, **parts: object) -> Batch:
    named = {f"{name}s": {SOURCE: parts.pop(name)} for name in ("source", "source_mask") if name in parts}
    return Batch(x, targets={TARGET: x}, **parts, **named)  # type: ignore[arg-type]


# ---- the mode and the device


def mixed_modes() -> nn.Module:
    """A model in training of which a part rests."""
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)))
    model[1].eval()
    model[1][1].train()
    return model


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def test_every_module_is_in_its_own_mode_again() -> None:
    model = mixed_modes()
    before = modes(model)
    with evaluating(model) as device:
        assert not any(modes(model))
        assert not torch.is_grad_enabled()
        assert device == torch.device("cpu")
    assert modes(model) == before == [True, True, False, False, True]
    assert torch.is_grad_enabled()


def test_also_after_an_exception_and_one_inside_the_other() -> None:
    model = mixed_modes()
    before = modes(model)
    with pytest.raises(KeyboardInterrupt), evaluating(model), evaluating(model[1]):
        raise KeyboardInterrupt
    assert modes(model) == before
    assert torch.is_grad_enabled()


def test_what_a_model_does_when_its_mode_changes_is_done_both_ways() -> None:
    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heard: list[bool] = []

        def train(self, mode: bool = True) -> Told:
            self.heard.append(mode)
            return super().train(mode)

    model = Told()
    with evaluating(model):
        pass
    assert model.heard == [False, True]
    model.eval()
    model.heard.clear()
    with evaluating(model):
        pass
    assert model.heard == []


def test_the_device_is_that_of_a_parameter_or_a_buffer_or_the_processor() -> None:
    counts = nn.Module()
    counts.register_buffer("n", torch.zeros(2, device="meta"))
    assert device_of(nn.Linear(2, 2, device="meta")) == torch.device("meta")
    assert device_of(counts) == torch.device("meta")
    assert device_of(nn.Identity()) == torch.device("cpu")


def test_pieces_are_made_while_evaluating_and_used_as_before() -> None:
    model = mixed_modes()
    before, inside = modes(model), []

    def pieces() -> Iterator[int]:
        for i in range(3):
            inside.append(any(modes(model)) or torch.is_grad_enabled())
            yield i

    for _ in evaluated(model, pieces()):
        assert modes(model) == before
        assert torch.is_grad_enabled()
    assert inside == [False] * 3
    left = evaluated(model, pieces())
    next(left)
    assert modes(model) == before  # though nobody closes it


# ---- a batch


def test_the_decoder_of_a_model() -> None:
    causal, conditional, encoder = Total(), From(), Mean()
    assert decoder_of(causal) is causal
    assert decoder_of(conditional) is conditional.decoder
    assert decoder_of(encoder) is encoder


@pytest.mark.parametrize(("model", "auto"), [(Total(), True), (From(), True), (Growing(), False), (Mean(), False)])
def test_a_state_is_carried_where_it_does_not_grow_or_as_asked(
    model: Causal | Conditional | Encoder, auto: bool
) -> None:
    assert carries(model) is carries(model, "auto") is auto
    assert carries(model, "carried")
    assert not carries(model, "cut")
    assert not carries(model, "random")


def test_an_encoder_without_a_mask_takes_all_as_real() -> None:
    real = torch.arange(8) < torch.tensor([[3], [8], [1]])
    y, state = forward(Mean(), batch())
    assert state is None
    assert torch.equal(y, forward(Mean(), batch(mask=torch.ones(3, 8, dtype=torch.bool)))[0])
    masked = forward(Mean(), batch(mask=real))[0]
    assert torch.allclose(masked[0, 0], X[0, :3].mean(0))
    assert not torch.equal(y, masked)


def test_a_source_starts_a_batch_and_a_state_goes_on() -> None:
    source, real = torch.ones(3, 4, 2), torch.arange(4) < torch.tensor([[4], [2], [1]])
    y, state = forward(From(), batch(source=source, source_mask=real))
    assert torch.allclose(y, X.cumsum(1) + torch.tensor([4.0, 2.0, 1.0])[:, None, None])
    assert torch.equal(state, y[:, -1])
    more, _ = forward(From(), batch(source=source, source_mask=real, fresh=False), state)
    assert torch.allclose(more, X.cumsum(1) + state[:, None])
    again, _ = forward(From(), batch(source=source, source_mask=real), state)
    assert torch.equal(again, y)  # a fresh batch asks for no state
    anew, _ = forward(From(), batch(source=source, source_mask=real, fresh=False))
    assert torch.equal(anew, y)  # and without one the source starts it
    assert start(From(), batch(source=source, fresh=False), state)[1] is state


@pytest.mark.parametrize("gradients", [True, False])
def test_the_state_that_goes_on_is_the_one_after_the_kept_positions(gradients: bool) -> None:
    with torch.set_grad_enabled(gradients):
        y, state = forward(Total(), batch(keep=5), torch.zeros(3, 2))
        assert torch.allclose(y, X.cumsum(1))
        assert torch.allclose(state, X[:, :5].sum(1))
        assert torch.allclose(forward(Total(), batch(keep=8))[1], X.sum(1))


# ---- the evaluation loop


def dropped() -> Serial:
    torch.manual_seed(0)
    return Serial(Recurrent(LSTM(2, 4)), Each(nn.Dropout(0.5)), Each(nn.Linear(4, 3))).train()


def test_a_stream_in_batches_gives_what_it_gives_whole() -> None:
    model = dropped()
    parts = [batch(X[:, :3]), batch(X[:, 3:4], fresh=False), batch(X[:, 4:], fresh=False), batch(X[:, :2])]
    found = list(outputs(model, parts))
    assert model.training
    assert not any(y.requires_grad for _, y in found)
    (_, whole), *_ = outputs(model, [batch()])
    assert torch.allclose(torch.cat([y for _, y in found[:3]], 1), whole, atol=1e-6)
    assert torch.allclose(found[3][1], whole[:, :2], atol=1e-6)
    assert all(there.x.equal(each.x) for (there, _), each in zip(found, parts, strict=True))


def test_between_batches_a_model_is_as_it_was() -> None:
    model = dropped()
    (_, wanted), *_ = outputs(model, [batch()])
    two = zip(outputs(model, [batch()] * 3), outputs(model, [batch()] * 2), strict=False)
    for (_, first), (_, second) in two:
        assert model.training
        assert torch.is_grad_enabled()
        assert torch.equal(first, wanted)
        assert torch.equal(second, wanted)
    next(outputs(model, [batch()] * 2))  # given up half-way
    assert model.training


def test_a_model_that_fails_is_in_its_mode_again() -> None:
    class Failing(Causal):
        def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
            raise RuntimeError("here")

    model = Failing()
    with pytest.raises(RuntimeError, match="here"):
        next(outputs(model, [batch()]))
    assert model.training
    assert torch.is_grad_enabled()


def test_the_first_rows_of_a_batch() -> None:
    whole = batch(source=torch.ones(3, 4, 2), rows=torch.arange(3), keep=2, fresh=False)
    some = whole.first(2)
    assert torch.equal(some.x, X[:2])
    assert torch.equal(some.y, X[:2])
    assert some.source is not None
    assert some.source.shape == (2, 4, 2)
    assert some.rows is not None
    assert some.rows.tolist() == [0, 1]
    assert (some.keep, some.fresh, some.mask) == (2, False, None)
