"""Every emission keeps the laws, and an emission that breaks one is told which."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from unrolled.core import discover
from unrolled.core.emission import Chooser, Distribution, Emission, Sampled, average
from unrolled.decode.config import Decoding
from unrolled.emissions.bits import Bits
from unrolled.emissions.categorical import Categorical
from unrolled.emissions.ctc import CTC
from unrolled.emissions.gaussian import Gaussian
from unrolled.emissions.point import Point
from unrolled.testing import LawBroken, check_emission

TOKENS = discover.emissions.load("categorical").TINY
FRAMES = discover.emissions.load("bits").TINY
POINTS = discover.emissions.load("point").TINY
NUMBERS = discover.emissions.load("gaussian").TINY
MANY: dict[str, Emission] = {
    "smoothed": Categorical(5, smoothing=0.1, prior=torch.tensor([0.0, 0.25, 0.25, 0.25, 0.25])),
    "weighted": Categorical(5, weights=torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0])),
    "calibrated": Categorical(5, temperature=0.5),
}


@pytest.mark.parametrize("name", discover.emissions.names())
def test_every_emission_keeps_the_laws(name: str) -> None:
    tried = discover.emissions.load(name).TINY
    found = check_emission(tried.emission, tried.target, tried.mask)
    assert found[:5] == ["form", "sums", "padding", "gradient", "mixture"]
    assert ("draws" in found) == isinstance(tried.emission, Sampled)
    assert ("quantiles" in found) == isinstance(tried.emission, Distribution)


@pytest.mark.parametrize("name", MANY)
def test_settings_keep_the_laws(name: str) -> None:
    check_emission(MANY[name], TOKENS.target, TOKENS.mask)


@pytest.mark.parametrize("distance", ["l1", "l2", "huber"])
def test_distances_keep_the_laws(distance: Any) -> None:
    tried = discover.emissions.load("point").TINY
    check_emission(Point(2, distance), tried.target, tried.mask)


def test_answers_count_one_by_one() -> None:
    check_emission(Bits(3, weights=torch.tensor([1.0, 2.0, 3.0]), counted="answers"), FRAMES.target, FRAMES.mask)


# ---- broken ones


@dataclass(frozen=True, eq=False)
class Means(Categorical):
    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total, count = super().loss(y, target, mask)
        return total / count, torch.ones_like(count)


@dataclass(frozen=True, eq=False)
class SeesPadding(Bits):
    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().losses(y, target) if mask is None else super().losses(y, target) * mask


@dataclass(frozen=True, eq=False)
class DrawsHot(Bits):
    def chooser(self, options: Any) -> Chooser:
        return super().chooser(options.updated({"temperature": 1.3}))


@dataclass(frozen=True, eq=False)
class DrawsTheLikeliest(Categorical):
    def chooser(self, options: Any) -> Chooser:
        return super().chooser(options.updated({"temperature": 0.7}))


@dataclass(frozen=True, eq=False)
class LooksAtOthers(Categorical):
    def chooser(self, options: Any) -> Chooser:
        choose = super().chooser(options)
        return lambda y, history, noise: choose(y, history, noise.roll(1))


@dataclass(frozen=True, eq=False)
class Detached(Categorical):
    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total, count = super().loss(y, target, mask)
        return total + 0.3 * (total.detach() - total), count


@dataclass(frozen=True, eq=False)
class OneNumber(Categorical):
    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().losses(y, target, mask).sum(1)


@dataclass(frozen=True, eq=False)
class MixesOutputs(Categorical):
    """The geometric mean of probabilities."""

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        return average(ys, weights)


@dataclass(frozen=True, eq=False)
class MixesWithoutTemperature(Categorical):
    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        return replace(self, temperature=1.0).mix(ys, weights)


@dataclass(frozen=True)
class MixesWider(Gaussian):
    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        return super().mix(torch.cat([ys[..., :2], ys[..., 2:] + 1e-3], -1), weights)


@dataclass(frozen=True)
class WithoutWeights(Point):
    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        return ys.mean(0)


@dataclass(frozen=True, eq=False)
class Nameless(Categorical):
    def to_json(self) -> str:
        return '{"name": "", "d_out": 5}'


@dataclass(frozen=True)
class OtherUnits(Gaussian):
    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        return y


@dataclass(frozen=True)
class TooWide(Gaussian):
    def quantiles(self, y: Tensor, levels: Any) -> Tensor:
        return super().quantiles(torch.cat([y[..., :2], y[..., 2:] + 0.1], -1), levels)


@dataclass(frozen=True)
class WholePositions(Gaussian):
    """Takes a position with one observed number for observed."""

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().losses(y, target, None if mask is None else mask.any(-1))


BROKEN: dict[str, tuple[str, Emission]] = {
    "means": ("sums", Means(5)), "padding": ("padding", SeesPadding(3)), "hot": ("draws", DrawsHot(3)),
    "sharp": ("draws", DrawsTheLikeliest(5)), "others": ("rows", LooksAtOthers(5)), "form": ("form", OneNumber(5)),
    "gradient": ("gradient", Detached(5)), "units": ("scale", OtherUnits(2)), "wide": ("quantiles", TooWide(2)),
    "missing": ("padding", WholePositions(2)), "geometric": ("mixture", MixesOutputs(5)),
    "cold": ("mixture", MixesWithoutTemperature(5, temperature=2.0)), "wider": ("mixture", MixesWider(2)),
    "unweighted": ("mixture", WithoutWeights(2)), "nameless": ("form", Nameless(5)),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_law_is_named(name: str) -> None:
    law, emission = BROKEN[name]
    tried = {5: TOKENS, 3: FRAMES, 4: NUMBERS, 2: POINTS}[emission.d_out]
    with pytest.raises(LawBroken) as caught:
        check_emission(emission, tried.target, tried.mask)
    assert caught.value.law == law


def test_the_check_wants_padding() -> None:
    with pytest.raises(LawBroken, match="padding"):
        check_emission(Categorical(5), TOKENS.target, torch.ones_like(TOKENS.mask))


# ---- values


def test_calibration_finds_the_temperature_that_logits_were_made_with() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(4000, 4, generator=generator).double()
    target = torch.multinomial(z.softmax(-1), 1, generator=generator)[:, 0]
    found = Categorical(4, ignore=-1).calibrate(3 * z[:, None], target[:, None])
    assert found.temperature == pytest.approx(3, rel=0.1)
    alone = Categorical(4, ignore=-1).losses(z[:, None], target[:, None])
    torch.testing.assert_close(replace(found, temperature=3.0).losses(3 * z[:, None], target[:, None]), alone)
    bits = (torch.rand(4000, 4, generator=generator) < z.sigmoid()).double()
    assert Bits(4).calibrate(2 * z[:, None], bits[:, None]).temperature == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_a_mixture_has_the_mean_probabilities(temperature: float) -> None:
    ys, w = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0)).double(), torch.tensor([0.6, 0.1, 0.3])
    w = w.double()
    one, bits = Categorical(5, temperature=temperature), Bits(5, temperature=temperature)
    found = (one.mix(ys, w) / temperature).softmax(-1)
    torch.testing.assert_close(found, average((ys / temperature).softmax(-1), w))
    found = (bits.mix(ys, w) / temperature).sigmoid()
    torch.testing.assert_close(found, average((ys / temperature).sigmoid(), w))
    torch.testing.assert_close(CTC(5).mix(ys, w).softmax(-1), average(ys.softmax(-1), w))
    assert bits.mix(1e4 * ys, w).isfinite().all()  # as sure as can be
    impossible = ys.clone()
    impossible[:, :, 0] = -torch.inf
    assert one.mix(impossible, w)[:, 0].tolist() == [-torch.inf] * 4


def test_what_outputs_mean_is_told_as_json() -> None:
    told = {
        name: json.loads(discover.emissions.load(name).TINY.emission.to_json()) for name in discover.emissions.names()
    }
    assert told["categorical"] == {"name": "categorical", "d_out": 5, "temperature": 1.0}
    assert told["ctc"] == {"name": "ctc", "d_out": 4, "blank": 0}
    assert told["point"] == {"name": "point", "d_out": 2, "distance": "l2"}
    assert told["quantiles"] == {"name": "quantiles", "d_out": 6, "d": 2, "spread": 1.0, "levels": [0.1, 0.5, 0.9]}
    assert json.loads(replace(Bits(3), temperature=1.5).to_json())["temperature"] == 1.5


def test_a_search_of_ctc_finds_what_the_best_path_misses() -> None:
    """Two frames, p(a) = .4 and p(-) = .6 in each: the best path says nothing, but "a" has .16 + 2 * .24 = .64."""
    y = torch.tensor([0.6, 0.4]).log().expand(1, 2, 2)
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert CTC(2).decode(y, mask, Decoding())[0][0].tokens == []
    (best, second) = CTC(2).decode(y, mask, Decoding(beam=1, n=2))[0]
    assert (best.tokens, second.tokens) == ([1], [])
    assert best.log_p == pytest.approx(torch.tensor(0.64).log().item(), rel=1e-5)
