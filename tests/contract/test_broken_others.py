"""The checks of encoders, conditional models, cells and scans can fail too, and name the law."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.testing import LawBroken, check_cell, check_conditional, check_encoder, check_scan

D, N = 4, 5


def kept(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[..., None], x, 0.0)


# --- encoders


class Centred(Encoder):
    """Sound: every position minus the mean of the real ones."""

    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Linear(D, D)

    def forward(self, x, mask):
        v = self.u(kept(x, mask))
        mean = kept(v, mask).sum(1, keepdim=True) / mask.sum(1)[:, None, None]
        return v - mean, mask


class Halved(Encoder):
    """Sound: pairs of positions become one, S' = ceil(S / 2)."""

    d_in = D

    def forward(self, x, mask):
        x = kept(x, mask)
        if x.shape[1] % 2:
            x, mask = nn.functional.pad(x, (0, 0, 0, 1)), nn.functional.pad(mask, (0, 1))
        return x[:, ::2] + x[:, 1::2], mask[:, ::2]


class Pooled(Encoder):
    """Sound: one vector per row."""

    d_in = D

    def forward(self, x, mask):
        return x.masked_fill(~mask[..., None], -torch.inf).amax(1, keepdim=True), mask.any(1, keepdim=True)


class PooledWithZeros(Encoder):
    """The padding counts as zeros, so a padded row has no negative maximum."""

    d_in = D

    def forward(self, x, mask):
        return kept(x, mask).amax(1, keepdim=True), mask.any(1, keepdim=True)


class Tokens(Encoder):
    """Sound, on tokens."""

    vocabulary = 7

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, D)

    def forward(self, x, mask):
        v = kept(self.embedding(x), mask)
        return v.sum(1, keepdim=True) + v, mask


class MeansPadding(Centred):
    def forward(self, x, mask):
        v = self.u(x)
        return v - v.mean(1, keepdim=True), mask


class MultipliesMask(Centred):
    """NaN * 0 is NaN."""

    def forward(self, x, mask):
        v = self.u(x) * mask[..., None]
        return v - v.sum(1, keepdim=True) / mask.sum(1)[:, None, None], mask


class NanInGradient(Centred):
    """The values are masked, but only after the weights have touched the padding."""

    def forward(self, x, mask):
        v = kept(self.u(x), mask)
        return v - v.sum(1, keepdim=True) / mask.sum(1)[:, None, None], mask


class CountsPadding(Centred):
    """Divides by the padded length."""

    def forward(self, x, mask):
        v = self.u(kept(x, mask))
        return v - kept(v, mask).mean(1, keepdim=True), mask


class ForgetsMask(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y, torch.ones_like(mask)


class PooledIsAlwaysOne(Halved):
    """All windows are called real, also those of padding."""

    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y, torch.ones_like(mask)


class MaskIsFloat(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y, mask.float()


class EncoderMixesRows(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y + kept(x, mask).mean((0, 1)), mask


class EncoderBatchNorm(Encoder):
    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(D)

    def forward(self, x, mask):
        return self.norm(kept(x, mask).mT).mT, mask


class EncoderRemembers(Centred):
    last = 0.0

    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        y, self.last = y + self.last, y.detach().mean() if torch.is_grad_enabled() else self.last
        return y, mask


class EncoderOverwrites(Centred):
    def forward(self, x, mask):
        result = super().forward(x, mask)
        x.data[~mask] = 0
        return result


class EncoderSingle(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y.float(), mask


class EncoderPlainTensor(Centred):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.tensor(2.0)

    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y * self.scale, mask


class TokensPadding(Tokens):
    def forward(self, x, mask):
        v = self.embedding(x)
        return v.sum(1, keepdim=True) + v, mask


ENCODERS = {
    MeansPadding: "padding",
    MultipliesMask: "padding",
    NanInGradient: "padding",
    CountsPadding: "padding",
    ForgetsMask: "padding",
    PooledIsAlwaysOne: "padding",
    TokensPadding: "padding",
    PooledWithZeros: "padding",
    MaskIsFloat: "form",
    EncoderMixesRows: "rows",
    EncoderBatchNorm: "rows",
    EncoderRemembers: "state",
    EncoderOverwrites: "state",
    EncoderSingle: "dtype",
    EncoderPlainTensor: "saving",
}


@pytest.mark.parametrize("encoder", [Centred, Halved, Pooled, Tokens], ids=lambda e: e.__name__)
def test_sound_encoders_pass(encoder):
    assert {"rows", "padding", "saving"} <= set(check_encoder(encoder(), fresh=encoder))


@pytest.mark.parametrize(("encoder", "law"), ENCODERS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_broken_encoder_is_caught_by_its_law(encoder, law):
    with pytest.raises(LawBroken) as caught:
        check_encoder(encoder())
    assert caught.value.law == law, str(caught.value)


def test_encoder_takes_an_example_with_its_mask():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert "padding" in check_encoder(Centred(), torch.randn(2, 3, D), mask)
    with pytest.raises(UsageError, match="padding in at least one"):
        check_encoder(Centred(), torch.randn(2, 3, D), torch.ones(2, 3, dtype=torch.bool))


# --- conditional models


class Adds(Causal):
    """Sound decoder: y_t = v (s + x_1 + .. + x_t), where s is the summary of the source, in Fixed."""

    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.v = nn.Linear(D, 3)

    def forward(self, x, state=None):
        if state is None:
            state = {"source": Fixed(x.new_zeros(len(x), D)), "total": x.new_zeros(len(x), D)}
        total = state["total"][:, None] + x.cumsum(1)  # [B, T, D]
        y = self.v(state["source"].tree[:, None] + total)
        return y, {"source": state["source"], "total": total[:, -1]}


class Summary(Conditional):
    """Sound: the mean of the real positions of the source."""

    def __init__(self, decoder: Causal | None = None) -> None:
        super().__init__()
        self.encoder = Centred()
        self.u = nn.Linear(D, D)
        self.decoder = Adds() if decoder is None else decoder

    def summary(self, source, mask):
        return self.u(kept(source, mask).sum(1)) / mask.sum(1)[:, None]

    def condition(self, source, mask):
        s = self.summary(source, mask)
        return {"source": Fixed(s), "total": torch.zeros_like(s)}


class Starts(Conditional):
    """Sound: a class [B] without a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, D)
        self.decoder = Adds()

    def condition(self, source, mask):
        return {"source": Fixed(self.table(source)), "total": self.table.weight.new_zeros(len(source), D)}


class SummaryMixesRows(Summary):
    def summary(self, source, mask):
        s = super().summary(source, mask)
        return s + s.mean(0)


class SummaryMixesGradient(Summary):
    def summary(self, source, mask):
        s = super().summary(source, mask)
        return s + (s.roll(1, 0) - s.roll(1, 0).detach())


class SummaryOfPadding(Summary):
    def summary(self, source, mask):
        return self.u(source.mean(1))


class SummaryOfNan(Summary):
    def summary(self, source, mask):
        return self.u((source * mask[..., None]).sum(1)) / mask.sum(1)[:, None]


class SummaryIgnored(Summary):
    def summary(self, source, mask):
        return 0 * super().summary(source, mask)


class StateNotBatchFirst(Summary):
    def condition(self, source, mask):
        s = self.summary(source, mask)
        return {"source": Fixed(s), "total": torch.zeros_like(s), "again": s.T}


class DecoderIgnoresState(Adds):
    """It starts anew with every chunk."""

    def forward(self, x, state=None):
        y, new = super().forward(x, {**state, "total": torch.zeros_like(state["total"])} if state else None)
        return y, new


class DecoderChangesFixed(Adds):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return y, {**new, "source": Fixed(new["source"].tree + new["total"]), "total": torch.zeros_like(new["total"])}


class DecoderOverwritesFixed(Adds):
    """Without gradients the memory of a state may be reused, but never that of a constant that beams share."""

    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if state is not None and not torch.is_grad_enabled():
            state["source"].tree.mul_(2)
        return y, new


class DecoderLooksAhead(Adds):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return y + x.mean((1, 2), keepdim=True), new


CONDITIONALS = {
    SummaryMixesRows: "rows",
    SummaryMixesGradient: "rows",
    SummaryOfPadding: "padding",
    SummaryOfNan: "padding",
    SummaryIgnored: "condition",
    DecoderIgnoresState: "chunks",
    DecoderChangesFixed: "state",
    DecoderOverwritesFixed: "state",
    DecoderLooksAhead: "causality",
}


def example(width: int = D) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    return torch.randn(2, 6, width, generator=generator), mask, torch.randn(2, 5, width, generator=generator)


def test_sound_conditionals_pass():
    assert {"condition", "padding", "chunks", "rows"} <= set(check_conditional(Summary(), *example(), fresh=Summary))
    assert "condition" in check_conditional(Starts(), torch.tensor([0, 3, 5]), None, example()[2])


@pytest.mark.parametrize(("model", "law"), CONDITIONALS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_broken_conditional_is_caught_by_its_law(model, law):
    with pytest.raises(LawBroken) as caught:
        check_conditional(Summary(model()) if issubclass(model, Adds) else model(), *example())
    assert caught.value.law == law, str(caught.value)


def test_conditional_needs_unlike_rows():
    source, mask, target = example()
    with pytest.raises(UsageError, match="two rows"):
        check_conditional(Summary(), source[:1], mask[:1], target)
    same = source[:1].expand(2, -1, -1)
    with pytest.raises(LawBroken, match="alike"):
        check_conditional(Summary(), same, torch.ones(2, 6, dtype=torch.bool), target)


# --- cells


class Tick(nn.Module):
    """Sound: h = tanh(W x + R h), y = h[:, :3]."""

    input_size, state_size = D, N

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(D, N)
        self.r = nn.Linear(N, N, bias=False)

    def forward(self, x_t, h):
        return torch.tanh(self.w(x_t) + self.r(h))

    def output(self, h):
        return h[:, :3]


class TickRemembers(Tick):
    last = 0.0

    def forward(self, x_t, h):
        h = super().forward(x_t, h) + self.last
        self.last = h.detach().mean()
        return h


class TickOverwrites(Tick):
    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        h.data.copy_(new)
        return new


class TickReuses(Tick):
    """Returns the same memory at every tick."""

    def __init__(self) -> None:
        super().__init__()
        self.space = None

    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        if self.space is None or self.space.shape != new.shape or self.space.dtype != new.dtype:
            self.space = torch.empty_like(new)
        self.space.data.copy_(new)
        return self.space


class TickMixesRows(Tick):
    def forward(self, x_t, h):
        return super().forward(x_t, h) + h.mean(0)


class TickOutputMixesRows(Tick):
    def output(self, h):
        return h[:, :3] - h[:, :3].mean(0)


class TickPair(Tick):
    def forward(self, x_t, h):
        h = super().forward(x_t, h)
        return h, h


class TickNarrows(Tick):
    def forward(self, x_t, h):
        return super().forward(x_t, h)[:, :2]


class WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(_, a):
        return a.tanh()

    @staticmethod
    def backward(_, g):
        return g


class TickWrongGradient(Tick):
    def forward(self, x_t, h):
        return WrongBackward.apply(self.w(x_t) + self.r(h))


class TickDetaches(Tick):
    """The gradient of one parameter is lost."""

    def forward(self, x_t, h):
        return torch.tanh(self.w(x_t) + h @ self.r.weight.detach().T)


class TickSingle(Tick):
    def forward(self, x_t, h):
        return super().forward(x_t, h).float().to(h.dtype)


class TickPlainTensor(Tick):
    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.rand(N)

    def forward(self, x_t, h):
        return super().forward(x_t, h) * self.gain


CELLS = {
    TickRemembers: "state",
    TickOverwrites: "state",
    TickReuses: "state",
    TickMixesRows: "rows",
    TickOutputMixesRows: "rows",
    TickPair: "form",
    TickNarrows: "form",
    TickWrongGradient: "gradient",
    TickDetaches: "gradient",
    TickSingle: "dtype",
    TickPlainTensor: "saving",
}


def test_sound_cell_passes():
    assert check_cell(Tick(), fresh=Tick) == ["form", "state", "rows", "saving", "dtype", "gradient"]


@pytest.mark.parametrize(("cell", "law"), CELLS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_broken_cell_is_caught_by_its_law(cell, law):
    with pytest.raises(LawBroken) as caught:
        check_cell(cell())
    assert caught.value.law == law, str(caught.value)


def test_gradient_names_the_parameter():
    with pytest.raises(LawBroken) as caught:
        check_cell(TickDetaches())
    assert caught.value.position == {"parameter": "r.weight"}


# --- scans


def loop(cell, x, h0):
    ys, h = [], h0
    for t in range(x.shape[1]):
        h = cell(x[:, t], h)
        ys.append(cell.output(h))
    return torch.stack(ys, 1), h


def drops_h0_gradient(cell, x, h0):
    return loop(cell, x, h0.detach())


def drops_last_gradient(cell, x, h0):
    y, last = loop(cell, x, h0)
    return y, last.detach()


def drops_parameter_gradient(cell, x, h0):
    y, last = loop(cell, x, h0)
    with torch.no_grad():
        still = cell.w.bias.clone()
    return y + (still - cell.w.bias).sum(), last


def last_is_first(cell, x, h0):
    y, _ = loop(cell, x, h0)
    return y, h0 + 0 * y.sum()


def one_step_is_skipped(cell, x, h0):
    return loop(cell, x, h0) if x.shape[1] > 1 else (cell.output(h0)[:, None], h0)


def without_gradients_is_different(cell, x, h0):
    y, last = loop(cell, x, h0)
    return (y if torch.is_grad_enabled() else y + 1e-3), last


def overwrites_h0(cell, x, h0):
    result = loop(cell, x, h0)
    h0.data.zero_()
    return result


SCANS = [
    drops_h0_gradient,
    drops_last_gradient,
    drops_parameter_gradient,
    last_is_first,
    one_step_is_skipped,
    without_gradients_is_different,
    overwrites_h0,
]


def test_sound_scan_passes():
    assert check_scan(loop, Tick()) == ["scan"]
    assert check_scan(loop, Tick(), torch.randn(2, 40, D)) == ["scan"]


@pytest.mark.parametrize("scan", SCANS, ids=lambda scan: scan.__name__)
def test_broken_scan_is_caught(scan):
    with pytest.raises(LawBroken) as caught:
        check_scan(scan, Tick())
    assert caught.value.law == "scan"


def test_scan_names_what_has_the_wrong_gradient():
    with pytest.raises(LawBroken) as caught:
        check_scan(drops_h0_gradient, Tick())
    assert caught.value.position["parameter"] == "h0"
