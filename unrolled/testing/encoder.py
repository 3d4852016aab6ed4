"""The laws of an encoder: rows are independent, and what stands in the padding, NaN included, changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.saving import check_dtype, check_saving
from unrolled.testing.shapes import other_widths, refuses
from unrolled.testing.subject import (
    ROWS,
    SETTINGS,
    STEPS,
    Inputs,
    Setting,
    cast,
    differentiable,
    gradients,
    inputs_for,
    own_input,
    prepared,
    sealed,
    stirred,
)
from unrolled.testing.ticks import WITHOUT, check_own_memory


def check_encoder(
    encoder: Encoder,
    x: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    d_in: int | None = None,
    vocabulary: int | None = None,
    fresh: Callable[[], nn.Module] | None = None,
    seed: int = 0,
) -> list[str]:
    """Put an encoder through its laws; returns their names, raises LawBroken at the first that fails.

    x, mask: an example [B, S, D] (or tokens [B, S]) with its mask, when lengths matter (images); else rows of
    several lengths are made, of width d_in or with tokens of a vocabulary.
    """
    if not isinstance(encoder, Encoder):
        raise UsageError(f"{type(encoder).__name__} is not an Encoder; derive it from unrolled.core.causal.Encoder")
    with sealed(seed):
        inputs = inputs_for(encoder, x, d_in, vocabulary, seed)
        encoder = stirred(encoder, seed)  # type: ignore[assignment]
        if x is not None and mask is not None:
            example, mask = x.detach(), mask.detach()
            if len(x) < 2 or bool(mask.all()):
                raise UsageError("an example with a mask needs at least two rows, and padding in at least one")
        else:
            mask = torch.arange(STEPS) < torch.tensor([STEPS, STEPS - 4, 1])[:, None]  # [B, S]
            example, mask = inputs.draw(ROWS, STEPS, torch.float64), mask.to(inputs.device)

        def run(model: nn.Module, dtype: torch.dtype) -> Tensor:
            y, out = model(cast(example, dtype), mask.clone())
            real: Tensor = y[out]
            return real  # [real positions, D']

        check_form(prepared(encoder, SETTINGS[2]), cast(example, torch.float32), mask.clone(), SETTINGS[2])
        check_sizes(prepared(encoder, SETTINGS[2]), inputs, cast(example, torch.float32), mask.clone(), SETTINGS[2])
        check_saving(encoder, run, fresh)
        check_dtype(encoder, run)
        for law in (check_value, check_rows, check_padding):
            for setting in SETTINGS:
                law(prepared(encoder, setting), inputs, cast(example, setting.dtype), mask.clone(), setting)
        return [laws.FORM, laws.SAVING, laws.DTYPE, laws.STATE, laws.ROWS, laws.PADDING]


def check_form(encoder: nn.Module, x: Tensor, mask: Tensor, setting: Setting) -> None:
    """y [B, S', ...] and a boolean mask [B, S'], finite where real, real positions first."""
    with Law(laws.FORM, str(setting)) as law:
        result = encoder(x, mask.clone())
        law.holds(isinstance(result, tuple) and len(result) == 2, "forward does not return the pair (y, mask)")
        y, out = result
        law.holds(out.dtype == torch.bool, f"the returned mask is {out.dtype}, not bool (True = real)")
        law.holds(len(y) == len(x), f"x is {list(x.shape)} but y is {list(y.shape)}, not batch-first")
        law.holds(out.shape == y.shape[:2], f"y is {list(y.shape)} but its mask is {list(out.shape)}, not [B, S']")
        law.holds(bool(y[out].isfinite().all()), "y is not finite at a real position")
    with Law(laws.PADDING, str(setting)) as law:
        if out.shape[1] == mask.shape[1]:
            law.same(out.float(), mask.float(), 0.0, "the length is kept, but the returned mask")
        law.holds(not bool((out[:, 1:] & ~out[:, :-1]).any()), "the returned mask has padding before a real position")


def check_value(encoder: nn.Module, inputs: Inputs, x: Tensor, mask: Tensor, setting: Setting) -> None:
    """The same call twice gives the same, whatever ran in between, and x and mask stay as they are."""
    with Law(laws.STATE, str(setting)) as law:
        before = x.clone(), mask.clone()
        torch.manual_seed(1)
        y, out = encoder(x, mask)
        law.same(x, before[0], 0.0, "the encoder wrote into its input: x")
        law.holds(torch.equal(mask, before[1]), "the encoder wrote into its mask")
        encoder(inputs.draw(len(x), x.shape[1], setting.dtype), mask)
        torch.manual_seed(2)
        again, _ = encoder(x, mask)
        with torch.no_grad():
            without, _ = encoder(x, mask)
        law.same(_real(again, out), _real(y, out), setting.tolerance, "y of the second of two equal calls")
        law.same(_real(without, out), _real(y, out), setting.tolerance, "y without gradients")
        law.same(x, before[0], 0.0, "without gradients the encoder wrote into its input: x")
        law.holds(torch.equal(mask, before[1]), "without gradients the encoder wrote into its mask")
        check_own_memory(law, y, {"x": x}, (), encoder)


def _real(y: Tensor, mask: Tensor) -> Tensor:
    """y with zeros at the padding, so that positions keep their place."""
    return torch.where(mask.view(*mask.shape, *[1] * (y.dim() - 2)), y, 0.0)  # [B, S', D']


def check_sizes(encoder: nn.Module, inputs: Inputs, x: Tensor, mask: Tensor, setting: Setting) -> None:
    """An x of another width and a mask of another batch are refused; B = 0 gives y [0, S', ...]."""
    with Law(laws.FORM, str(setting)) as law:
        for width in other_widths(encoder, inputs):
            wide = torch.zeros(*x.shape[:2], width, dtype=x.dtype, device=x.device)
            what = f"the encoder tells an input width of {own_input(encoder)[0]}, but takes an x of width {width}"
            refuses(law, lambda wide=wide: encoder(wide, mask), what)  # type: ignore[misc]
        refuses(law, lambda: encoder(x, mask[:1]), f"a mask of 1 row is taken for an x of {len(x)} rows")
        y, out = encoder(x, mask)
        nothing, none = encoder(x[:0], mask[:0])
        shapes, wanted = [list(nothing.shape), list(none.shape)], [[0, *y.shape[1:]], [0, *out.shape[1:]]]
        law.holds(shapes == wanted, f"for B = 0 y and mask have the shapes {shapes} instead of {wanted}")


def check_rows(encoder: nn.Module, inputs: Inputs, x: Tensor, mask: Tensor, setting: Setting) -> None:
    """Rows do not see each other, by perturbation, by gradient and alone."""
    everyone = torch.arange(len(x))
    with Law(laws.ROWS, str(setting)) as law:
        with differentiable(encoder, x) as (entry, leaves):
            y, out = encoder(entry, mask)
        weights = inputs.weights(y)
        for row in range(len(x)):
            others = everyone[everyone != row]
            changed = x.clone()
            changed[row] = inputs.garbage(x)[row]
            seen, _ = encoder(changed, mask)
            what = f"row {row} changed and so did another's y: it"
            law.same(_real(seen, out)[others], _real(y, out)[others], setting.tolerance, what)
            for found in gradients(_real(y, out)[row], weights[row], leaves):
                law.nothing(found[others], setting.leak, largest(found), f"d y[{row}] / d x of another row")
            alone, own = encoder(x[row : row + 1], mask[row : row + 1])
            law.same(_real(alone, own)[0], _real(y, out)[row], setting.tolerance, "a row alone: y", ("time",), row=row)
            for name, mode in WITHOUT.items():
                with mode():
                    alone, own = encoder(x[row : row + 1].clone(), mask[row : row + 1].clone())
                what = f"a row alone, {name}: y"
                law.same(_real(alone, own)[0], _real(y, out)[row], setting.tolerance, what, ("time",), row=row)


def check_padding(encoder: nn.Module, inputs: Inputs, x: Tensor, mask: Tensor, setting: Setting) -> None:
    """Garbage, infinity and NaN in the padding change no output, no gradient; less padding changes nothing either."""
    parameters = {name: p for name, p in encoder.named_parameters() if p.requires_grad}
    with Law(laws.PADDING, str(setting)) as law:
        place = mask.view(*mask.shape, *[1] * (x.dim() - 2))
        wanted: tuple[Tensor, Tensor, list[Tensor]] | None = None
        weights: Tensor | None = None
        for kind, garbage in fillings(inputs, x):
            entry = torch.where(place, x, garbage)
            entry.requires_grad_(x.is_floating_point())
            y, out = encoder(entry, mask)
            y = _real(y, out)
            weights = inputs.weights(y) if weights is None else weights
            leaves = [*parameters.values(), *([entry] if entry.requires_grad else [])]
            grads = gradients(y, weights, leaves)
            wanted = (y, out, grads) if wanted is None else wanted
            law.holds(torch.equal(out, wanted[1]), f"with {kind} in the padding the returned mask changes")
            law.same(y, wanted[0], setting.tolerance, f"with {kind} in the padding y")
            scale = max((largest(g) for g in wanted[2]), default=0.0)
            for name, found, before in zip([*parameters, "x"], grads, wanted[2]):
                what = f"with {kind} in the padding the gradient of {name}"
                axes = ("row", "time") if name == "x" else ()
                law.same(found, before, setting.tolerance, what, axes, scale, parameter=name)
        assert wanted is not None
        for row in range(len(x)):
            length = int(mask[row].sum())
            short, own = encoder(x[row : row + 1, :length], mask[row : row + 1, :length])
            kept = wanted[1][row]
            law.holds(
                int(own.sum()) == int(kept.sum()),
                f"padded from {length} to {x.shape[1]} the mask has {int(kept.sum())} real positions "
                f"instead of {int(own.sum())}",
                row=row,
            )
            what = f"padded from {length} to {x.shape[1]}: y"
            law.same(wanted[0][row][kept], short[0][own[0]], setting.tolerance, what, ("time",), row=row)


def fillings(inputs: Inputs, x: Tensor) -> list[tuple[str, Tensor]]:
    """What may stand in the padding."""
    if not x.is_floating_point():
        return [("the tokens drawn", x), ("other tokens", inputs.garbage(x)), ("token 0", torch.zeros_like(x))]
    constant = [(word, torch.full_like(x, float(word))) for word in ("inf", "-inf", "nan")]
    return [("ordinary values", x), ("large values", inputs.garbage(x)), *constant]
