"""Hopfield classifier: the training examples are the stored patterns, and their targets the values that are read.

    z = each series brought to L steps, and each of its channels to mean 0 and standard deviation 1 where `normalise`
    p = softmax_n( beta z^T z^n )          the answer is sum_n p_n y^n                                    (7.7), (7.10)

One update of a continuous memory, attention to all training examples. beta and `normalise`, where they are not given,
are those with the smallest error where each training example is answered by the others. Ramsauer et al. (2020).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.counting.neighbours import normalised, resampled
from unrolled.layers.memory.saved_tables import Stored

TRIED = 1000  # training examples, evenly spread, that are answered by the others
BETAS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)  # times 1 / (mean square length of a pattern)
LEAST = 1e-3  # the probability that is shared by all classes
BLOCK = 1 << 22


class Config(Base):
    beta: float | None = Field(None, gt=0)
    """Inverse temperature of the retrieval, for patterns of unit length; none: chosen on the training examples."""
    normalise: bool | None = None
    """Whether each series is normalised by its own mean and scale; none: chosen on the training examples."""
    length: int = Field(500, ge=1)
    """Maximum length that series are resampled to."""
    examples: int = Field(20_000, ge=1)
    """Maximum number of training examples that are stored, evenly spread."""


class Associative(Stored):
    """Series x [B, T, D] with mask [B, T] -> the retrieved answer [B, 1, C]."""

    TABLES = ("patterns", "values", "beta", "normalised")
    patterns: Tensor  # [n, L, D]
    values: Tensor  # [n, C] probabilities, or numbers
    beta: Tensor  # []
    normalised: Tensor  # [] 0 or 1

    def __init__(self, config: Config, d_in: int, d_out: int, targets: str) -> None:
        super().__init__()
        self.config, self.d_in, self.d_out, self.targets = config, d_in, d_out, targets
        self.register_buffer("patterns", torch.zeros(1, 1, d_in))
        self.register_buffer("values", torch.zeros(1, d_out))
        self.register_buffer("beta", torch.ones(()))
        self.register_buffer("normalised", torch.zeros(()))

    def fault(self, tables: dict[str, Tensor]) -> str:
        patterns, values, beta, normal = (tables[name] for name in self.TABLES)
        fits = patterns.dim() == 3 and patterns.numel() > 0 and patterns.shape[2] == self.d_in
        fits = fits and values.shape == (len(patterns), self.d_out) and beta.shape == normal.shape == ()
        return "" if fits else "the sizes of its tables do not match"

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = resampled(x, mask, self.patterns.shape[1])  # [B, L, D]
        if bool(self.normalised):
            z = normalised(z)
        found = retrieved(z, self.patterns, self.values, float(self.beta))  # [B, C]
        return self._outputs(found).unsqueeze(1).to(x), mask.new_ones(len(mask), 1)

    def _outputs(self, found: Tensor) -> Tensor:
        """log p of classes, logits of sets, numbers as they are."""
        if self.targets == "class":
            return ((1 - LEAST) * found + LEAST / self.d_out).log()
        return found.clamp(LEAST, 1 - LEAST).logit() if self.targets == "classes" else found

    def solve(self, batches: Known, held_out: Known = ()) -> dict[str, float | bool]:
        """From series, mask and answers (classes [B], sets or numbers [B, C]) of all examples."""
        held = list(batches)
        lengths = torch.cat([mask.sum(1) for _, mask, _ in held])
        L = max(1, min(int(lengths.median()), self.config.length))
        plain, y = torch.cat([resampled(x, mask, L) for x, mask, _ in held]), torch.cat([y for _, _, y in held])
        kept = torch.arange(k := min(len(plain), self.config.examples)) * len(plain) // k
        plain, y = plain[kept], y[kept]
        values = y.double() if y.is_floating_point() else F.one_hot(y.clamp(min=0), self.d_out).double()
        best: tuple[float, float, bool, Tensor] | None = None
        for normal in (False, True) if self.config.normalise is None else (self.config.normalise,):
            z = normalised(plain) if normal else plain
            unit = 1 / float(z.double().flatten(1).square().sum(1).mean().clamp(min=1e-12))
            for beta in BETAS if self.config.beta is None else (self.config.beta,):
                miss = self._miss(z, values, y, beta * unit)
                if best is None or miss < best[0]:
                    best = miss, beta, normal, torch.tensor(beta * unit)
        assert best is not None
        _, beta, normal, scaled = best
        self.keep({
            "patterns": normalised(plain) if normal else plain, "values": values.float(), "beta": scaled,
            "normalised": torch.tensor(float(normal)),
        })  # fmt: skip
        return {"beta": beta, "normalise": normal}

    def _miss(self, z: Tensor, values: Tensor, y: Tensor, beta: float) -> float:
        """The mean loss of examples that the others answer."""
        if len(z) < 2:
            return 0.0
        some = torch.arange(n := min(len(z), TRIED)) * len(z) // n
        found = retrieved(z[some], z, values, beta, own=some)  # [n, C]
        if self.targets == "numbers":
            return float((found - values[some]).square().mean())
        y_some, outputs = y[some], self._outputs(found)
        if self.targets == "class":
            return float(F.nll_loss(outputs, y_some.clamp(min=0)))
        return float(F.binary_cross_entropy_with_logits(outputs, values[some]))


def retrieved(z: Tensor, patterns: Tensor, values: Tensor, beta: float, own: Tensor | None = None) -> Tensor:
    """sum_n softmax_n(beta z^T z^n) v^n [B, C] in blocks; `own` [B] are patterns that do not count for their row."""
    z, keys = z.flatten(1).double(), patterns.flatten(1).double()  # [B, F], [n, F]
    found = []
    for start in range(0, len(z), size := max(1, BLOCK // len(keys))):
        s = beta * z[start : start + size] @ keys.T  # [b, n]
        if own is not None:
            s.scatter_(1, own[start : start + size, None], -torch.inf)
        found.append(s.softmax(1) @ values.double())
    return torch.cat(found) if found else values.new_zeros(0, values.shape[1], dtype=torch.float64)


def make(config: Config, sizes: Sizes) -> Associative:
    return Associative(config, sizes.d_in, sizes.d_out, sizes.targets)


MODEL = ModelSpec(
    summary="Hopfield classifier: attention to all training series, whose targets are averaged",
    kind="encoder",
    config=Config,
    tiny=Config(length=4),
    make=make,
    reference="Ramsauer et al. 2020",
    aliases=("hopfield-classifier",),
    reads=("numbers",),
    outputs=("whole",),
    owns_head=True,
    closed_form=("class", "classes", "numbers"),
)
