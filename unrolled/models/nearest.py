"""Nearest neighbour: the target of the most similar training series.

    z = each series brought to L steps, and each of its channels to mean 0 and standard deviation 1 where `normalise`
    n(x) = argmin_n sum_{t,d} (z_{t,d} - z^n_{t,d})^2        the answer is y_{n(x)}

Cover & Hart (1967), with the Euclidean distance that the time-series archives are measured by. Numbers are answered as
they are. A class has p = a, the others share 1 - a, where a is the share of training examples whose own nearest
neighbour has their answer; L is the median length of the training series. Everything is kept as it was seen.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.counting.neighbours import are_sets, nearest, normalised, resampled
from unrolled.layers.memory.saved_tables import Stored

TRIED = 1000  # training examples, evenly spread, whose own neighbours are looked for


class Config(Base):
    normalise: bool | None = None
    """Whether each series is normalised by its own mean and scale; none: whichever has the smaller error on the
    training examples."""
    length: int = Field(2000, ge=2)
    """Maximum length that series are resampled to."""


class Nearest(Stored):
    """Series x [B, T, D] with mask [B, T] -> the answer of the nearest one [B, 1, C]."""

    TABLES = ("examples", "answers", "normalised")
    examples: Tensor  # [n, L, D]
    answers: Tensor  # [n, C]
    normalised: Tensor  # [] 0 or 1

    def __init__(self, config: Config, d_in: int, d_out: int) -> None:
        super().__init__()
        self.config, self.d_in, self.d_out = config, d_in, d_out
        self.register_buffer("examples", torch.zeros(1, 1, d_in))
        self.register_buffer("answers", torch.zeros(1, d_out))
        self.register_buffer("normalised", torch.zeros(()))

    def fault(self, tables: dict[str, Tensor]) -> str:
        examples, answers, normalised = (tables[name] for name in self.TABLES)
        fits = examples.dim() == 3 and examples.numel() > 0 and examples.shape[2] == self.d_in
        fits = fits and answers.shape == (len(examples), self.d_out) and normalised.shape == ()
        return "" if fits else "the sizes of its tables do not match"

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = resampled(x, mask, self.examples.shape[1])  # [B, L, D]
        if bool(self.normalised):
            z = normalised(z)
        y = self.answers[nearest(z, self.examples)]  # [B, C]
        return y.unsqueeze(1).to(x), mask.new_ones(len(mask), 1)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From series, mask and answers (classes [B], sets or numbers [B, C]) of all examples."""
        held = list(batches)
        lengths = torch.cat([mask.sum(1) for _, mask, _ in held])
        L = min(int(lengths.median()), self.config.length)
        plain = torch.cat([resampled(x, mask, L) for x, mask, _ in held])  # [n, L, D]
        y = torch.cat([y for _, _, y in held])
        asked = self.config.normalise
        tried = {
            each: _miss(normalised(plain) if each else plain, y)
            for each in ((False, True) if asked is None else [asked])
        }
        chosen = min(tried, key=lambda each: tried[each])
        self.keep({
            "examples": normalised(plain) if chosen else plain,
            "answers": self._answers(y, 1 - tried[chosen]),
            "normalised": torch.tensor(float(chosen)),
        })  # fmt: skip

    def _answers(self, y: Tensor, a: float) -> Tensor:
        """log p of classes, logits of sets, numbers as they are: [n, C]."""
        n = min(len(y), TRIED)
        a = (a * n + 1) / (n + 2)  # never 0 or 1
        if not y.is_floating_point():
            rest = (1 - a) / max(self.d_out - 1, 1)
            return torch.where(F.one_hot(y, self.d_out) > 0, a, rest).log()
        if are_sets(y):
            return (2 * y - 1) * torch.tensor(a).logit().abs().clamp(min=1e-3)
        return y


def _miss(z: Tensor, y: Tensor) -> float:
    """How wrong the nearest other one is: a share of wrong answers, or the mean square of the difference."""
    n = min(len(z), TRIED)
    if len(z) < 2:
        return 0.0
    some = torch.arange(n) * len(z) // n
    said, true = y[nearest(z[some], z, own=some)], y[some]
    if not y.is_floating_point():
        return float((said != true).double().mean())
    if are_sets(y):
        return float((said != true).any(1).double().mean())
    return float((said - true).double().square().mean())


def make(config: Config, sizes: Sizes) -> Nearest:
    return Nearest(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="nearest neighbour: the target of the most similar training series",
    kind="encoder",
    config=Config,
    tiny=Config(length=4),
    make=make,
    reference="Cover & Hart 1967",
    aliases=("knn", "nearest-neighbour", "nearest-neighbor", "1nn"),
    reads=("numbers",),
    outputs=("whole",),
    owns_head=True,
    closed_form=("class", "classes", "numbers"),
)
