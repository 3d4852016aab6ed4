"""The laws of an emission: its losses add up, padding does not exist, rows are independent, draws follow log p.

A draw follows the log-probability that is given for it where p(choice | y') / p(choice | y) has mean 1 over many
draws, for other outputs y' that make nothing possible that was impossible: sum_c p(c | y) p(c | y') / p(c | y) = 1,
over whole numbers or as an integral over real ones.
"""

from __future__ import annotations

import json

import torch
from torch import Tensor

from unrolled.core.emission import Collapsed, Distribution, Emission, Finite, Numeric, Sampled, average
from unrolled.decode.noise import Noise
from unrolled.testing import law as laws
from unrolled.testing.law import Law
from unrolled.testing.subject import sealed

TOLERANCE = 1e-9
DRAWS = 8_000
SURE = 5.0  # standard errors
ASIDE = 0.1  # how far other outputs are from those that are drawn from
LEVELS = (0.02, 0.2, 0.5, 0.7, 0.95)


def check_emission(emission: Emission, target: Tensor, mask: Tensor, *, seed: int = 0) -> list[str]:
    """Put an emission through its laws on targets [B, T, ..] of which the mask [B, T] says which are real.

    At least two rows, one of them with padding. The mask of a `Collapsed` emission, such as CTC, is that of its
    outputs [B, S]; that of a `Numeric` one may be [B, T, d]. Returns the names of the laws that hold.
    """
    with sealed(seed):
        y = torch.randn(*mask.shape[:2], emission.d_out, dtype=torch.float64)
        _check_form(emission, y, target, mask)
        _check_sums(emission, y, target, mask)
        _check_padding(emission, y, target, mask)
        _check_gradient(emission, y, target, mask)
        _check_mixture(emission, y, target, mask)
        found = [laws.FORM, laws.SUMS, laws.PADDING, laws.GRADIENT, laws.MIXTURE]
        if isinstance(emission, Sampled):
            _check_draws(emission, target, seed)
            found += [laws.ROWS, laws.DRAWS]
        if isinstance(emission, Numeric):
            _check_numbers(emission, y)
            found += [laws.SCALE]
        if isinstance(emission, Distribution):
            _check_quantiles(emission, target, seed)
            found += [laws.QUANTILES]
    return found


def _gone(emission: Emission, mask: Tensor) -> Tensor:
    """The outputs [B, T, d_out] that have no target."""
    if mask.dim() == 2:
        return ~mask.unsqueeze(-1)
    return ~torch.cat([mask] * (emission.d_out // mask.shape[2]), dim=-1)


def _check_form(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    with Law(laws.FORM) as law:
        law.holds(bool((~mask).any()) and len(mask) > 1, "the check needs two rows or more, and padding in one")
        losses = emission.losses(y, target, mask)
        shape = [len(mask), 1] if isinstance(emission, Collapsed) else list(mask.shape[:2])
        law.holds(list(losses.shape) == shape, f"losses have shape {list(losses.shape)} instead of {shape}")
        total, count = emission.loss(y, target, mask)
        told = json.loads(emission.to_json())
        law.holds(told["name"] == emission.name, f"to_json has the name {told['name']!r}, not {emission.name!r}")
        law.holds(told["d_out"] == emission.d_out, f"to_json has d_out {told['d_out']}, not {emission.d_out}")
        law.holds(total.dim() == count.dim() == 0, "loss returns (total, count), each one number")
        law.holds(bool(total.isfinite()) and bool(losses.isfinite().all()), "the loss is not finite")
        if not isinstance(emission, Collapsed):
            empty = _gone(emission, mask).all(-1)
            law.nothing(losses.masked_fill(~empty, 0), 0, 1, "the loss of a position without a target")


def _check_sums(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    """Batches add up: the loss of all rows is the sum of the rows' own."""
    with Law(laws.SUMS) as law:
        each = [emission.loss(*(part[row : row + 1] for part in (y, target, mask))) for row in range(len(y))]
        total, count = emission.loss(y, target, mask)
        law.same(torch.stack([t for t, _ in each]).sum(), total, TOLERANCE, "the sum over rows of the total")
        law.same(torch.stack([c for _, c in each]).sum(), count, TOLERANCE, "the sum over rows of the count")
        alone = torch.cat([emission.losses(*(part[row : row + 1] for part in (y, target, mask)))
                           for row in range(len(y))])  # fmt: skip
        law.same(alone, emission.losses(y, target, mask), TOLERANCE, "the losses of a row alone")


def _check_padding(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    """Whatever stands where the mask is False, NaN included, changes neither a value nor a gradient."""
    with Law(laws.PADDING) as law:
        gone = _gone(emission, mask)
        filled = y.masked_fill(gone, torch.nan)
        other = target
        if not isinstance(emission, Collapsed):  # whose targets have padding of their own
            real = mask.view(*mask.shape, *[1] * (target.dim() - mask.dim()))
            other = target.masked_fill(~real, torch.nan) if target.is_floating_point() else target
        law.same(emission.losses(filled, other, mask), emission.losses(y, target, mask), 0, "a loss")
        before, after = y.clone().requires_grad_(), filled.clone().requires_grad_()
        emission.loss(before, target, mask)[0].backward()
        emission.loss(after, other, mask)[0].backward()
        assert before.grad is not None
        assert after.grad is not None
        law.same(after.grad, before.grad, 0, "a gradient")
        law.nothing(after.grad.masked_fill(~gone, 0), 0, 1, "the gradient at padding")


def _check_gradient(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    """The gradient of the loss against differences, along one direction."""
    with Law(laws.GRADIENT) as law:
        along, step = torch.randn_like(y), 1e-5
        at = y.clone().requires_grad_()
        emission.loss(at, target, mask)[0].backward()
        assert at.grad is not None
        ahead, behind = (float(emission.loss(y + sign * step * along, target, mask)[0]) for sign in (1, -1))
        found, wanted = float((at.grad * along).sum()), (ahead - behind) / (2 * step)
        scale = max(abs(found), abs(wanted), 1e-3)
        law.holds(abs(found - wanted) < 1e-3 * scale, f"the loss rises by {wanted:.6g}, its gradient says {found:.6g}")


def _check_mixture(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    """A mixture of equals is each of them; of one among finitely many choices, probabilities are averaged."""
    with Law(laws.MIXTURE) as law:
        weights = torch.tensor([0.2, 0.5, 0.3], dtype=y.dtype)
        same = emission.mix(y.expand(3, *y.shape), weights)
        law.holds(same.shape == y.shape, f"the mixture has shape {list(same.shape)} instead of {list(y.shape)}")
        alone = emission.losses(y, target, mask)
        law.same(emission.losses(same, target, mask), alone, TOLERANCE, "the loss of outputs mixed with themselves")
        ys = torch.stack([y, y.roll(1, dims=-1), -y])
        only = emission.mix(ys, torch.tensor([1.0, 0.0, 0.0], dtype=y.dtype))
        law.same(emission.losses(only, target, mask), alone, TOLERANCE, "the loss of outputs that have all the weight")
        each = weights.view(-1, *[1] * (y.dim() - 1)).expand(ys.shape[:-1])  # [K, B, T]
        constant, mixed = (emission.losses(emission.mix(ys, some), target, mask) for some in (weights, each))
        law.same(mixed, constant, TOLERANCE, "the loss of a mixture with the same weights at every position")
        if isinstance(emission, Finite):
            p = torch.stack([emission.log_probabilities(each).exp() for each in ys])
            mixed = emission.log_probabilities(emission.mix(ys, weights)).exp()
            law.same(mixed, average(p, weights), TOLERANCE, "the probability of a choice in a mixture")


def _check_draws(emission: Sampled, target: Tensor, seed: int) -> None:
    options = emission.options()
    choose = emission.chooser(options)
    y = torch.randn(1, emission.d_out, dtype=torch.float64)
    noise = Noise(seed, torch.arange(DRAWS), emission.n_noise)(0)
    history = target[:1, :1].expand(DRAWS, *target[:1, :1].shape[1:])
    with Law(laws.ROWS) as law:
        choice = choose(y.expand(DRAWS, -1), history, noise)
        law.holds(len(choice) == DRAWS, f"{len(choice)} choices for {DRAWS} rows")
        mixed = torch.randperm(DRAWS)
        again = choose(y.expand(DRAWS, -1), history, noise[mixed])
        law.same(again.double(), choice[mixed].double(), 0, "the choice of a row among others")
    with Law(laws.DRAWS) as law, torch.no_grad():
        log_p = emission.log_prob(y.expand(DRAWS, -1), choice)
        law.holds(list(log_p.shape) == [DRAWS], f"log_prob has shape {list(log_p.shape)} instead of [{DRAWS}]")
        for output, aside in enumerate(ASIDE * torch.eye(emission.d_out, dtype=y.dtype)):
            ratio = (emission.log_prob((y + aside).expand(DRAWS, -1), choice) - log_p).exp()
            off, error = float(ratio.mean() - 1), float(ratio.std()) / DRAWS**0.5
            law.holds(
                abs(off) <= max(SURE * error, TOLERANCE),
                f"draws do not follow log_prob: the mean ratio of probabilities is {1 + off:.4g} +- {error:.1g}, not 1",
                output=output,
            )


def _check_numbers(emission: Numeric, y: Tensor) -> None:
    """Outputs in other units: half as large numbers."""
    with Law(laws.SCALE) as law:
        shift, scale = torch.zeros(emission.d, dtype=y.dtype), torch.full((emission.d,), 0.5, dtype=y.dtype)
        other, mean = emission.rescaled(y, shift, scale), emission.mean(y)
        law.holds(mean.shape == (*y.shape[:-1], emission.d), f"mean has shape {list(mean.shape)}")
        law.same(emission.mean(other), scale * mean, TOLERANCE, "the mean of rescaled outputs")


def _check_quantiles(emission: Distribution, target: Tensor, seed: int) -> None:
    y = torch.randn(1, emission.d_out, dtype=torch.float64)
    levels = torch.tensor(LEVELS, dtype=y.dtype).view(-1, 1, 1)  # [Q, 1, 1]
    with Law(laws.QUANTILES) as law:
        found = emission.quantiles(y, LEVELS)  # [Q, 1, d]
        shape = [len(LEVELS), 1, emission.d]
        law.holds(list(found.shape) == shape, f"quantiles have shape {list(found.shape)} instead of {shape}")
        law.same(emission.median(y), found[LEVELS.index(0.5)], TOLERANCE, "the median")
        at, before = (torch.stack([emission.cdf(y, each - less) for each in found]) for less in (0, 1e-6))
        axes = ("level",)
        law.nothing((levels - at).clamp_min(0), TOLERANCE, 1, "the probability that a quantile lacks", axes)
        law.nothing((before - levels).clamp_min(0), TOLERANCE, 1, "the probability that a quantile has too much", axes)
        choose, noise = emission.chooser(emission.options()), Noise(seed, torch.arange(DRAWS), emission.n_noise)(0)
        history = target[:1, :1].double().expand(DRAWS, *target[:1, :1].shape[1:])
        choice = choose(y.expand(DRAWS, -1), history, noise)  # [n, d]
        share = (choice.unsqueeze(0) <= found).double().mean(1, keepdim=True)  # [Q, 1, d]
        error = (at * (1 - at) / DRAWS).sqrt()
        law.nothing(((share - at).abs() - SURE * error).clamp_min(0), 0, 1, "the share of draws below a quantile", axes)
