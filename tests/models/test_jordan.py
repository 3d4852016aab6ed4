"""Output feedback by name: eq. (7.3), one input that starts a sequence, the true output, and numbers fed back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.core import discover
from unrolled.core.spec import Sizes

SPEC = discover.model("jordan")
SEQUENCE = {"tokens": lambda z: z.softmax(-1), "bits": torch.sigmoid, "horizon": lambda z: z}


def made(targets: str = "tokens", **settings: str) -> torch.nn.Module:
    torch.manual_seed(0)
    step = {"d_step": 2, "horizon": 2} if targets == "horizon" else {}
    return SPEC.make(SPEC.config.parse({"d_state": 5, **settings}), Sizes(3, 4, targets=targets, **step)).double()


@pytest.mark.parametrize("targets", list(SEQUENCE))
@pytest.mark.parametrize("inputs", ["all", "first"])
def test_equation_7_3(targets: str, inputs: str) -> None:
    """h = tanh(W_hh h' + W_hx (x + T y') + b), and what y' is depends on what outputs mean; with inputs = first x is 0
    after the first step."""
    body = made(targets, feedback="both", inputs=inputs)
    weights = {name.split("cell.")[-1]: each.detach() for name, each in body.named_parameters()}
    x, h, z = torch.randn(1, 4, 3).double(), torch.zeros(5).double(), torch.zeros(4).double()
    y = body(x)[0][0]
    for t in range(4):
        read = x[0, t] if t == 0 or inputs == "all" else torch.zeros(3).double()
        read = read + weights["weight_t"] @ SEQUENCE[targets](z)
        h = torch.tanh(weights["inner.weight_hh"] @ h + weights["inner.weight_ih"] @ read + weights["inner.bias"])
        z = weights["weight_yh"] @ h + weights["bias_y"]
        torch.testing.assert_close(y[t], z)


def test_one_input_starts_a_whole_sequence() -> None:
    """Later inputs change nothing, also where the sequence comes in pieces; the first one does."""
    for feedback in ("output", "both"):
        body = made(feedback=feedback, inputs="first")
        x = torch.randn(2, 6, 3).double()
        other = torch.cat([x[:, :1], torch.randn(2, 5, 3).double()], 1)
        y, _ = body(x)
        torch.testing.assert_close(body(other)[0], y)
        assert not torch.allclose(body(x + 1)[0], y)
        begun, state = body(x[:, :2])
        torch.testing.assert_close(torch.cat([begun, body(other[:, 2:], state)[0]], 1), y)


def test_the_true_output_is_what_was_just_read() -> None:
    """The same weights; of a forecast the values of a step stand for each step of the horizon."""

    def by_hand(body: torch.nn.Module, x: Tensor, true: Tensor) -> Tensor:
        cell = body.layer.cell
        h = torch.tanh(torch.cat([x, true], -1) @ cell.inner.weight_ih.mT + cell.inner.bias)
        return cell.read(h)

    x = torch.randn(2, 5, 3).double()
    body = made("horizon", feedback_from="truth")
    torch.testing.assert_close(body(x)[0], by_hand(body, x, x[..., [0, 1, 0, 1]]))
    tokens = torch.tensor([[0, 2, 1]])
    body = made("tokens", feedback_from="truth")
    one = torch.eye(4).double()[tokens]
    torch.testing.assert_close(
        body(tokens)[0], by_hand(body, one[..., :3], torch.cat([one[..., :3], one[..., :1]], -1))
    )
