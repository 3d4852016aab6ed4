"""The checks of encoders and conditional models can fail too, and say what is wrong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.testing import LawBroken, check_conditional, check_encoder

D = 4


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


class NotAPair(Centred):
    def forward(self, x, mask):
        return super().forward(x, mask)[0]


class MaskTooLong(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y[:, 1:], mask


class LosesARow(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y[1:], mask[1:]


class NotFinite(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y / 0, mask


class LeftPads(Halved):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y.flip(1), mask.flip(1)


class OverwritesMask(Centred):
    def forward(self, x, mask):
        result = super().forward(x, mask.clone())
        mask.fill_(True)
        return result


class InferenceIsDifferent(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return (y if torch.is_grad_enabled() else 1.001 * y), mask


class MixesInGradient(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y + (y.roll(1, 0) - y.roll(1, 0).detach()), mask


class MixesFaintly(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y + 1e-12 * kept(x, mask).sum((0, 1)).detach(), mask


class AloneIsDifferent(Centred):
    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return (1.001 * y if len(x) == 1 else y), mask


class MaskFromValues(Pooled):
    """It takes NaN for the sign of padding and believes it more than the mask."""

    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return y, mask & ~x.isnan().any((1, 2))[:, None]


class DropsTheOdd(Encoder):
    """A last position without partner is lost, unless padding gives it one."""

    d_in = D

    def forward(self, x, mask):
        x, even = kept(x, mask), x.shape[1] // 2 * 2
        if not even:
            return x, mask
        return x[:, :even:2] + x[:, 1:even:2], mask[:, :even:2]


class OneMoreWithoutGradients(Centred):
    """Another way for one row without gradients."""

    def forward(self, x, mask):
        y, mask = super().forward(x, mask)
        return (y + 1 if len(x) == 1 and not torch.is_grad_enabled() else y), mask


class OutputIsInput(Encoder):
    d_in = D

    def forward(self, x, mask):
        return x.view_as(x), mask


class AnyWidth(Centred):
    def __call__(self, x, mask):
        return super().__call__(x[..., :D] if x.shape[-1] > D else nn.functional.pad(x, (0, D - x.shape[-1])), mask)


ENCODERS = {
    OneMoreWithoutGradients: "rows",
    OutputIsInput: "state",
    AnyWidth: "form",
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


ENCODER_WORDS = [
    (NotAPair, "form", "the pair"),
    (MaskIsFloat, "form", "not bool"),
    (MaskTooLong, "form", "its mask is"),
    (LosesARow, "form", "not batch-first"),
    (NotFinite, "form", "not finite"),
    (ForgetsMask, "padding", "the length is kept"),
    (LeftPads, "padding", "padding before a real position"),
    (OverwritesMask, "state", "wrote into its mask"),
    (InferenceIsDifferent, "state", "without gradients"),
    (EncoderRemembers, "state", "two equal calls"),
    (MixesInGradient, "rows", "of another row"),
    (MixesFaintly, "rows", "row 0 changed"),
    (AloneIsDifferent, "rows", "a row alone"),
    (MaskFromValues, "padding", "nan in the padding the returned mask"),
    (MeansPadding, "padding", "large values in the padding y"),
    (NanInGradient, "padding", "inf in the padding the gradient of u.weight"),
    (DropsTheOdd, "padding", "real positions"),
    (CountsPadding, "padding", "padded from"),
]


@pytest.mark.parametrize(("encoder", "law", "words"), ENCODER_WORDS, ids=lambda v: getattr(v, "__name__", ""))
def test_broken_encoder_is_described(encoder, law, words):
    with pytest.raises(LawBroken, match=words) as caught:
        check_encoder(encoder())
    assert caught.value.law == law


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


class SummaryMixesValues(Summary):
    def summary(self, source, mask):
        s = super().summary(source, mask)
        return s + 0.1 * s.roll(1, 0).detach()


class SummaryNanGradient(Summary):
    """Masked after the weights have touched the padding."""

    def summary(self, source, mask):
        return kept(self.u(source), mask).sum(1) / mask.sum(1)[:, None]


class SummaryCountsPadding(Summary):
    def summary(self, source, mask):
        return self.u(kept(source, mask).mean(1))


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


class DecoderOneMoreInGeneration(Adds):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        return (y + 1 if x.shape[:2] == (1, 1) and not torch.is_grad_enabled() else y), new


class DecoderOverwritesFixedInGeneration(Adds):
    def forward(self, x, state=None):
        y, new = super().forward(x, state)
        if state is not None and x.shape[:2] == (1, 1) and not torch.is_grad_enabled():
            state["source"].tree.mul_(2)
        return y, new


CONDITIONALS = {
    DecoderOneMoreInGeneration: "chunks",
    DecoderOverwritesFixedInGeneration: "state",
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


CONDITIONAL_WORDS = [
    (SummaryOfPadding, "padding", "large values in the padding of the source y"),
    (SummaryNanGradient, "padding", "inf in the padding of the source the gradient of u.weight"),
    (SummaryCountsPadding, "padding", "padded to"),
    (SummaryIgnored, "condition", "does not depend on the source"),
    (SummaryMixesGradient, "rows", "d source of another row"),
    (SummaryMixesValues, "rows", "differs by"),
]


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


@pytest.mark.parametrize(("model", "law", "words"), CONDITIONAL_WORDS, ids=lambda v: getattr(v, "__name__", ""))
def test_broken_conditional_is_described(model, law, words):
    with pytest.raises(LawBroken, match=words) as caught:
        check_conditional(model(), *example())
    assert caught.value.law == law


def test_conditional_needs_unlike_rows():
    source, mask, target = example()
    with pytest.raises(UsageError, match="two rows"):
        check_conditional(Summary(), source[:1], mask[:1], target)
    same = source[:1].expand(2, -1, -1)
    with pytest.raises(LawBroken, match="alike"):
        check_conditional(Summary(), same, torch.ones(2, 6, dtype=torch.bool), target)
