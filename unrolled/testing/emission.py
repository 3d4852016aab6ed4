"""The laws of an emission: its losses add up, padding does not exist, rows are independent, draws follow log p.

A draw follows the log-probability that is told of it where the mean of d log p(choice | y) / dy over many draws is 0,
which holds for whatever distribution is drawn from as it says, with whole numbers or real ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.emission import Collapsed, Emission, Sampled
from unrolled.decode.noise import Noise
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.subject import sealed

TOLERANCE = 1e-9
DRAWS = 8_000
SURE = 5.0  # standard errors


def check_emission(emission: Emission, target: Tensor, mask: Tensor, *, seed: int = 0) -> list[str]:
    """Put an emission through its laws on targets [B, T, ..] of which the mask [B, T] says which are real.

    At least two rows, one of them with padding. The mask of a `Collapsed` emission, such as CTC, is that of its
    outputs [B, S]. Returns the names of the laws that hold.
    """
    with sealed(seed):
        y = torch.randn(*mask.shape, emission.d_out, dtype=torch.float64)
        _check_form(emission, y, target, mask)
        _check_sums(emission, y, target, mask)
        _check_padding(emission, y, target, mask)
        _check_gradient(emission, y, target, mask)
        found = [laws.FORM, laws.SUMS, laws.PADDING, laws.GRADIENT]
        if isinstance(emission, Sampled):
            _check_draws(emission, target, seed)
            found += [laws.ROWS, laws.DRAWS]
    return found


def _check_form(emission: Emission, y: Tensor, target: Tensor, mask: Tensor) -> None:
    with Law(laws.FORM) as law:
        law.holds(bool((~mask).any()) and len(mask) > 1, "the check needs two rows or more, and padding in one")
        losses = emission.losses(y, target, mask)
        shape = [len(mask), 1] if isinstance(emission, Collapsed) else list(mask.shape)
        law.holds(list(losses.shape) == shape, f"losses have shape {list(losses.shape)} instead of {shape}")
        total, count = emission.loss(y, target, mask)
        law.holds(total.dim() == count.dim() == 0, "loss returns (total, count), each one number")
        law.holds(bool(total.isfinite()) and bool(losses.isfinite().all()), "the loss is not finite")
        if not isinstance(emission, Collapsed):
            law.nothing(losses.masked_fill(mask, 0), 0, 1, "the loss of a position without a target")


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
        filled = y.masked_fill(~mask.unsqueeze(-1), torch.nan)
        other = target
        if not isinstance(emission, Collapsed):  # whose targets have padding of their own
            real = mask.view(*mask.shape, *[1] * (target.dim() - 2))
            other = target.masked_fill(~real, torch.nan) if target.is_floating_point() else target
        law.same(emission.losses(filled, other, mask), emission.losses(y, target, mask), 0, "a loss")
        before, after = y.clone().requires_grad_(), filled.clone().requires_grad_()
        emission.loss(before, target, mask)[0].backward()
        emission.loss(after, other, mask)[0].backward()
        assert before.grad is not None
        assert after.grad is not None
        law.same(after.grad, before.grad, 0, "a gradient")
        law.nothing(after.grad.masked_fill(mask.unsqueeze(-1), 0), 0, 1, "the gradient at padding")


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
    with Law(laws.DRAWS) as law:
        at = y.expand(DRAWS, -1).clone().requires_grad_()
        log_p = emission.log_prob(at, choice)
        law.holds(list(log_p.shape) == [DRAWS], f"log_prob has shape {list(log_p.shape)} instead of [{DRAWS}]")
        log_p.sum().backward()
        assert at.grad is not None
        mean, spread = at.grad.mean(0), at.grad.std(0) / DRAWS**0.5  # [d_out]
        off = (mean.abs() > SURE * spread.clamp_min(1e-12)) & (mean.abs() > 1e-9)
        where = int(off.nonzero()[0, 0]) if bool(off.any()) else 0
        law.holds(
            not bool(off.any()),
            f"draws do not follow log_prob: its mean slope is {float(mean[where]):.3g} +- {float(spread[where]):.1g}, "
            f"not 0, where slopes reach {largest(at.grad):.2g}",
            output=where,
        )
