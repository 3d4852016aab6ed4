"""The checks can fail: for every law a layer that breaks it and nothing else, and the check must name that law."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.compose import Each, Serial
from unrolled.core.errors import UsageError
from unrolled.testing import LawBroken, check_causal

D = 4


class Sum(Causal):
    """The sound layer that the others spoil: y_t = w * (x_1 + ... + x_t) + b."""

    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(D))
        self.b = nn.Parameter(torch.randn(D))

    def forward(self, x, state=None):
        s = x.new_zeros(x.shape[0], D) if state is None else state
        total = s[:, None] + x.cumsum(1)  # [B, T, D]
        return self.w * total + self.b, total[:, -1]


class Delay(Causal):
    """y_t = x_t + x_{t-1} + x_{t-2}: receptive field 3, the state is the last two inputs."""

    d_in = D
    receptive_field = 3

    def forward(self, x, state=None):
        before = x.new_zeros(x.shape[0], 2, x.shape[2]) if state is None else state
        line = torch.cat([before, x], 1)  # [B, 2 + T, D]
        return line[:, 2:] + line[:, 1:-1] + line[:, :-2], line[:, -2:]


# --- state is a value


class KeepsState(Sum):
    h = None

    def forward(self, x, state=None):
        y, self.h = super().forward(
            x, self.h if state is None and self.h is not None and len(self.h) == len(x) else state
        )
        return y, self.h


class KeepsStateForSteps(Sum):
    """Right in one stream: at T = 1 it trusts what it remembers instead of what it is given."""

    h = None

    def forward(self, x, state=None):
        if x.shape[1] == 1 and state is not None and self.h is not None and self.h.shape == state.shape:
            state = self.h
        y, new = super().forward(x, state)
        self.h = new
        return y, new


class OverwritesState(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if state is not None:
            state.data.copy_(new)
        return y, new


class OverwritesInput(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if torch.is_grad_enabled():
            x.data.mul_(2)
        return y, new


class OverwritesInputWithoutGradients(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if not torch.is_grad_enabled():
            x.data.mul_(2)
        return y, new


class CloneIsNotEnough(Sum):
    """Without gradients it carries on from the last state it made, whatever it is given."""

    last = None

    def forward(self, x, state=None):
        if state is not None and not torch.is_grad_enabled() and self.last is not None and len(state) == len(self.last):
            state = self.last
        y, new = super().forward(x, state)
        self.last = new
        return y, new


class StillRandom(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return (y + torch.randn_like(y) if self.training else y), state


# --- causality


class Ahead(Sum):
    """One step into the future."""

    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y + torch.cat([x[:, 1:], x[:, -1:]], 1), state


class FaintlyAhead(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y + 1e-8 * torch.cat([x[:, 1:], x[:, -1:]], 1), state


class AheadInGradient(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        future = torch.cat([x[:, 1:], x[:, -1:]], 1)
        return y + (future - future.detach()), state


class AheadInValue(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y + torch.cat([x[:, 1:], x[:, -1:]], 1).detach(), state


class AheadWhenContinued(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y if state is None else y + x.mean(1, keepdim=True)), new


class MeanOverTime(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y - y.mean(1, keepdim=True), state


class WeaklyMasked(Causal):
    """Attention whose mask is a large number instead of infinity: a large input in the future gets through."""

    d_in = D
    state_grows = True

    def forward(self, x, state=None):
        seen = x if state is None else torch.cat([state, x], 1)  # [B, S, D]
        scores = x @ seen.mT  # [B, T, S]
        future = torch.arange(seen.shape[1]) > torch.arange(seen.shape[1] - x.shape[1], seen.shape[1])[:, None]
        return (scores - 1e4 * future).softmax(-1) @ seen, seen


class BatchNorm(Causal):
    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(D)

    def forward(self, x, state=None):
        return self.norm(x.mT).mT, ()


class TokenAhead(Causal):
    """Tokens have no gradient of their own: found through the embedding."""

    vocabulary = 6

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, D)

    def forward(self, x, state=None):
        e = self.embedding(x)
        future = torch.cat([e[:, 1:], e[:, -1:]], 1)
        return e + (future - future.detach()), ()


# --- rows


class MixesRows(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y + 0.1 * x.mean(0, keepdim=True), state


class MixesRowsInGradient(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        others = x.roll(1, 0)
        return y + (others - others.detach()), state


class FaintlyMixesRows(Sum):
    """Only a large value in another row shows it."""

    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y + 1e-12 * x.roll(1, 0).detach(), state


class AloneIsDifferent(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return (1.001 * y if len(x) == 1 else y), state


class RolledState(Sum):
    """Row i of the state belongs to row i + 1 of the batch."""

    def forward(self, x, state=None):
        y, state = super().forward(x, None if state is None else state.roll(1, 0))
        return y, state.roll(-1, 0)


class TimeFirstState(Causal):
    """The state is [layers, B, D], as torch.nn has it."""

    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(D, D, batch_first=True)

    def forward(self, x, state=None):
        return self.rnn(x, state)


class ScalarInState(Sum):
    def forward(self, x, state=None):
        y, s = super().forward(x, None if state is None else state[0])
        return y, (s, torch.tensor(0.0))


class CountsForAll(Causal):
    """A counter per row, but row 0's is used for everybody: wrong when rows are a step apart."""

    d_in = D

    def forward(self, x, state=None):
        n = torch.zeros(len(x), dtype=torch.long) if state is None else state
        position = n[:1, None] + torch.arange(1, x.shape[1] + 1)  # [1, T]
        return x * position[:, :, None], n + x.shape[1]


class NumbersInState(Sum):
    def forward(self, x, state=None):
        y, s = super().forward(x, None if state is None else state[0])
        return y, [s]


# --- chunks


class WrongAtOneStep(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y * 1.001 if x.shape[1] == 1 else y), new


class DetachesState(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y, state.detach()


class IgnoresStateGradient(Sum):
    def forward(self, x, state=None):
        return super().forward(x, None if state is None else state.detach())


class ForgetsState(Sum):
    def forward(self, x, state=None):
        return super().forward(x, None)


class LongIsDifferent(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return (y + 1e-6 if x.shape[1] > 64 else y), state


class FastPathIsDifferent(Sum):
    """Right with gradients, wrong without, in pieces."""

    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y if torch.is_grad_enabled() or state is None else y + 1e-3 * x), new


class ParameterGradient(Sum):
    """Only the gradient of a parameter depends on the cut."""

    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y if state is None else y + self.b.detach() - self.b), new


class RaisesAtOneStep(Sum):
    def forward(self, x, state=None):
        if x.shape[1] == 1:
            raise RuntimeError("expected at least two steps")
        return super().forward(x, state)


class StateAtZero(Sum):
    """T = 0 must not move the state; this layer handles it by itself, wrongly."""

    def __call__(self, x, state=None):
        if x.shape[1] == 0:
            return x[:, :0], torch.ones(len(x), D, dtype=x.dtype) if state is None else state + 1
        return super().__call__(x, state)


class NothingIsDouble(Sum):
    def __call__(self, x, state=None):
        return (x[:, :0].double(), state) if x.shape[1] == 0 else super().__call__(x, state)


class NothingIsWide(Sum):
    def __call__(self, x, state=None):
        return (x.new_zeros(len(x), 0, D + 1), state) if x.shape[1] == 0 else super().__call__(x, state)


# --- receptive field, state size, length


class FieldTooSmall(Delay):
    receptive_field = 2


class FieldTooSmallInValue(FieldTooSmall):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return x + (y - x).detach(), state


class FieldTooSmallInGradient(FieldTooSmall):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return x + (y - y.detach()), state


class FieldTooLarge(Delay):
    receptive_field = 4


class FieldNonsense(Delay):
    receptive_field = 0


class StateGrows(Causal):
    d_in = D

    def forward(self, x, state=None):
        seen = x if state is None else torch.cat([state, x], 1)
        return seen.cumsum(1)[:, -x.shape[1] :], seen


class NoLimit(Sum):
    max_length = 5


# --- dtype and saving


class SingleOutput(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y.float(), state


class SingleInside(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y.float().to(x.dtype), state


class AlwaysDouble(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y.double(), state


class OtherInSingle(Sum):
    """A fast path for float32 that computes something else, the same in every piece."""

    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return (1.1 * y if x.dtype == torch.float32 else y), state


class SingleInput(Sum):
    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Linear(D, D)

    def forward(self, x, state=None):
        return super().forward(self.u(x.float()), state)


class PlainTensor(Sum):
    def __init__(self) -> None:
        super().__init__()
        self.u = torch.randn(D)

    def forward(self, x, state=None):
        return super().forward(x * self.u, state)


class PlainList(Sum):
    def __init__(self) -> None:
        super().__init__()
        self.parts = [nn.Linear(D, D)]

    def forward(self, x, state=None):
        return super().forward(self.parts[0](x), state)


class ForgottenBuffer(Sum):
    """Random and not in the state dict: only a layer that is made anew shows it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("u", torch.randn(D), persistent=False)

    def forward(self, x, state=None):
        return super().forward(x * self.u, state)


# --- form


class NoPair(Sum):
    def forward(self, x, state=None):
        return super().forward(x, state)[0]


class LosesTime(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y[:, -1], state


class NotFinite(Sum):
    def forward(self, x, state=None):
        y, state = super().forward(x, state)
        return y / 0, state


BROKEN = {
    KeepsState: "state",
    KeepsStateForSteps: "state",
    OverwritesState: "state",
    OverwritesInput: "state",
    OverwritesInputWithoutGradients: "state",
    CloneIsNotEnough: "state",
    StillRandom: "state",
    Ahead: "causality",
    FaintlyAhead: "causality",
    AheadInGradient: "causality",
    AheadInValue: "causality",
    AheadWhenContinued: "causality",
    MeanOverTime: "causality",
    WeaklyMasked: "causality",
    BatchNorm: "causality",
    TokenAhead: "causality",
    MixesRows: "rows",
    MixesRowsInGradient: "rows",
    FaintlyMixesRows: "rows",
    AloneIsDifferent: "rows",
    RolledState: "rows",
    TimeFirstState: "rows",
    ScalarInState: "rows",
    CountsForAll: "rows",
    NumbersInState: "form",
    WrongAtOneStep: "chunks",
    DetachesState: "chunks",
    IgnoresStateGradient: "chunks",
    ForgetsState: "chunks",
    LongIsDifferent: "chunks",
    FastPathIsDifferent: "chunks",
    ParameterGradient: "chunks",
    RaisesAtOneStep: "chunks",
    StateAtZero: "chunks",
    NothingIsDouble: "chunks",
    NothingIsWide: "chunks",
    FieldTooSmall: "receptive field",
    FieldTooSmallInValue: "receptive field",
    FieldTooSmallInGradient: "receptive field",
    FieldTooLarge: "receptive field",
    FieldNonsense: "receptive field",
    StateGrows: "state size",
    NoLimit: "length",
    SingleOutput: "dtype",
    SingleInside: "dtype",
    AlwaysDouble: "dtype",
    OtherInSingle: "dtype",
    SingleInput: "dtype",
    PlainTensor: "saving",
    PlainList: "saving",
    NoPair: "form",
    LosesTime: "form",
    NotFinite: "form",
}


@pytest.mark.parametrize("layer", [Sum, Delay], ids=lambda layer: layer.__name__)
def test_the_sound_originals_pass(layer):
    assert {"state", "causality", "rows", "chunks", "padding"} <= set(check_causal(layer(), fresh=layer))


@pytest.mark.parametrize(("layer", "law"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_broken_layer_is_caught_by_its_law(layer, law):
    with pytest.raises(LawBroken) as caught:
        check_causal(layer())
    assert caught.value.law == law, str(caught.value)
    assert str(caught.value).startswith(f"{law}: ")


def test_random_buffer_is_found_by_making_the_layer_anew():
    with pytest.raises(LawBroken) as caught:
        check_causal(ForgottenBuffer(), fresh=ForgottenBuffer)
    assert caught.value.law == "saving"


def test_padding_is_stated_alone_when_causality_is_not():
    """The law of padding by itself: a layer that looks at the length of the batch it is padded to."""
    from unrolled.testing.causal import check_padding
    from unrolled.testing.subject import SETTINGS, Inputs, Subject

    class LooksAtLength(Sum):
        def forward(self, x: Tensor, state=None):
            y, state = super().forward(x, state)
            return y + 0.01 * x.shape[1], state

    inputs = Inputs(None, D, None, torch.device("cpu"), 0)
    with pytest.raises(LawBroken) as caught:
        check_padding(Subject(LooksAtLength().double()), inputs, SETTINGS[0])
    assert caught.value.law == "padding"
    assert caught.value.position["row"] == 1


def test_message_names_law_place_and_size():
    with pytest.raises(LawBroken) as caught:
        check_causal(MeanOverTime())
    assert caught.value.position == {"row": 0, "time": 0}
    assert "eval mode, float64" in str(caught.value)
    assert "differs by" in str(caught.value)
    with pytest.raises(LawBroken) as caught:
        check_causal(ParameterGradient())
    assert caught.value.position["parameter"] == "b"


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (TimeFirstState, "not batch-first"),
        (StillRandom, "still random"),
        (KeepsState, "kept on self"),
        (NoPair, "not the pair"),
        (CloneIsNotEnough, "without gradients"),
        (FieldNonsense, "not a number >= 1"),
        (MixesRows, "row 0 changed"),
        (RolledState, "take"),
        (StateAtZero, "T = 0"),
        (NothingIsWide, "T = 0"),
        (PlainList, r"parts\[0\].weight"),
        (SingleInside, "digits of float32"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_sentence_says_what_is_wrong(layer, words):
    with pytest.raises(LawBroken, match=words):
        check_causal(layer())


def test_batch_norm_is_only_caught_in_train_mode():
    with pytest.raises(LawBroken, match="train mode"):
        check_causal(BatchNorm())


def test_a_part_of_the_model_may_be_broken():
    with pytest.raises(LawBroken) as caught:
        check_causal(Serial(nn.Linear(D, D), Ahead(), nn.Tanh()))
    assert caught.value.law == "causality"


def test_the_users_layer_and_random_state_are_left_alone():
    layer = Serial(nn.Linear(D, D), nn.Dropout(0.5), Sum()).train()
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.no_grad():
        check_causal(layer)
    assert torch.equal(torch.rand(2), expected)
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())
    assert layer.training
    assert next(layer.parameters()).dtype == torch.float32
    assert [m.p for m in layer.modules() if isinstance(m, nn.Dropout)] == [0.5]


def test_a_claim_that_is_only_a_bound():
    class Bound(Delay):
        receptive_field = 6
        receptive_field_tight = False

    assert "receptive field" in check_causal(Bound())


def test_usage_errors_say_what_to_give():
    class Mystery(Causal):
        def forward(self, x, state=None):
            return x, ()

    with pytest.raises(UsageError, match="d_in"):
        check_causal(Mystery())
    with pytest.raises(UsageError, match="not a Causal"):
        check_causal(nn.Linear(2, 2))
    with pytest.raises(UsageError, match="not both"):
        check_causal(Mystery(), d_in=2, vocabulary=3)
    assert check_causal(Mystery(), torch.randn(1, 1, 7))
    assert check_causal(Each(nn.Embedding(5, 2)), torch.tensor([[1, 4]]))


# --- generation: one row, one step, without gradients


class OneMoreInGeneration(Sum):
    """The way that only generation takes: one row, one step, no gradients."""

    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y + 1 if x.shape[:2] == (1, 1) and not torch.is_grad_enabled() else y), new


class OneMoreInInference(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y + 1 if x.shape[:2] == (1, 1) and torch.is_inference_mode_enabled() else y), new


class OneMoreInTrainMode(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        quick = x.shape[:2] == (1, 1) and not torch.is_grad_enabled() and self.training
        return (y + 1 if quick else y), new


class OneMoreInSingle(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        quick = x.shape[:2] == (1, 1) and not torch.is_grad_enabled() and x.dtype == torch.float32
        return (y + 1 if quick else y), new


class OverwritesInputInGeneration(Sum):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if x.shape[:2] == (1, 1) and not torch.is_grad_enabled():
            x.mul_(2)
        return y, new


class GraphInGeneration(Sum):
    """The state of a tick without gradients says that it has a history."""

    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return y, new.requires_grad_() if x.shape[:2] == (1, 1) and not torch.is_grad_enabled() else new


class TableItself(Causal):
    """One token alone is answered with the row of the table, and not with a copy."""

    vocabulary = 6

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, D)

    def forward(self, x, state=None):
        if x.numel() == 1 and not torch.is_grad_enabled():
            return self.embedding.weight[int(x)].detach()[None, None], ()
        return self.embedding(x), ()


class OutputIsState(Causal):
    """The last output is the state, in one memory."""

    d_in = D

    def forward(self, x, state=None):
        s = x.new_zeros(x.shape[0], D) if state is None else state
        total = s[:, None] + x.cumsum(1)  # [B, T, D]
        return total, total[:, -1]


class OutputIsInput(Causal):
    """A view of x."""

    d_in = D

    def forward(self, x, state=None):
        return x.view_as(x), ()


class HistoryGoesOn(Causal):
    """A buffer of the last input is overwritten in place, and keeps the history that it had."""

    d_in = D
    receptive_field = 2

    def _received(self, state, rows):
        return state

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(D))

    def forward(self, x, state=None):
        last = x.new_zeros(len(x), D) if state is None else state
        line = torch.cat([last[:, None], x * self.w], 1)  # [B, 1 + T, D]
        y = line[:, 1:] + line[:, :-1]
        if torch.is_grad_enabled() or state is None:
            return y, line[:, -1].clone()
        return y, state.copy_(line[:, -1])


# --- shapes


class AnyWidth(Sum):
    """It tells a width, and takes another: the base is left out."""

    def __call__(self, x, state=None):
        return super().__call__(x[..., :D] if x.shape[-1] > D else nn.functional.pad(x, (0, D - x.shape[-1])), state)


class AnyRows(Sum):
    def _received(self, state, rows):
        return state


class NoRows(Sum):
    def _empty(self, x, state):
        return super()._empty(x, state) if x.shape[1] == 0 else (x.new_zeros(0, x.shape[1], 1), state)


GENERATION = {
    OneMoreInGeneration: "chunks",
    OneMoreInInference: "chunks",
    OneMoreInTrainMode: "chunks",
    OneMoreInSingle: "chunks",
    OverwritesInputInGeneration: "state",
    GraphInGeneration: "state",
    TableItself: "state",
    OutputIsInput: "state",
    OutputIsState: "state",
    HistoryGoesOn: "state",
    AnyWidth: "form",
    AnyRows: "form",
    NoRows: "form",
}


@pytest.mark.parametrize(("layer", "law"), GENERATION.items(), ids=lambda value: getattr(value, "__name__", value))
def test_what_only_generation_or_another_shape_shows_is_caught(layer, law):
    with pytest.raises(LawBroken) as caught:
        check_causal(layer())
    assert caught.value.law == law, str(caught.value)
