"""The checks of cells and scans can fail too, and say what is wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.testing import LawBroken, check_cell, check_scan

D, N = 4, 5


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


class TickWritesInput(Tick):
    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        x_t.data.zero_()
        return new


class TickFlatOutput(Tick):
    def output(self, h):
        return h[:, 0]


class TickNotFinite(Tick):
    def output(self, h):
        return h / 0


class TickOutputCounts(Tick):
    asked = 0

    def output(self, h):
        self.asked += 1
        return h[:, :3] + self.asked


class TickInference(Tick):
    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        return new if torch.is_grad_enabled() else 1.001 * new


class TickAlone(Tick):
    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        return 1.001 * new if len(x_t) == 1 else new


class TickOutputAlone(Tick):
    def output(self, h):
        return 1.001 * h if len(h) == 1 else h


class TickSingle(Tick):
    def forward(self, x_t, h):
        return super().forward(x_t, h).float().to(h.dtype)


class TickPlainTensor(Tick):
    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.rand(N)

    def forward(self, x_t, h):
        return super().forward(x_t, h) * self.gain


class TickAloneWithoutGradients(Tick):
    """Another way for one row without gradients."""

    def forward(self, x_t, h):
        new = super().forward(x_t, h)
        return new + 1 if len(x_t) == 1 and not torch.is_grad_enabled() else new


class TickOfAnyWidth(Tick):
    def forward(self, x_t, h):
        return super().forward(nn.functional.pad(x_t, (0, D - x_t.shape[-1])), h)


CELLS = {
    TickAloneWithoutGradients: "rows",
    TickOfAnyWidth: "form",
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


CELL_WORDS = [
    (TickPair, "form", "not one tensor"),
    (TickNarrows, "form", "goes in as"),
    (TickFlatOutput, "form", "the output is"),
    (TickNotFinite, "form", "not finite"),
    (TickWritesInput, "state", "wrote into its input"),
    (TickOverwrites, "state", "wrote into the state"),
    (TickReuses, "state", "a later tick overwrote"),
    (TickRemembers, "state", "the same tick again"),
    (TickOutputCounts, "state", "asked twice"),
    (TickInference, "state", "without gradients"),
    (TickMixesRows, "rows", "another's h"),
    (TickOutputMixesRows, "rows", "another's y"),
    (TickAlone, "rows", "a row alone: h"),
    (TickOutputAlone, "rows", "a row alone: y"),
]


@pytest.mark.parametrize(("cell", "law", "words"), CELL_WORDS, ids=lambda v: getattr(v, "__name__", ""))
def test_broken_cell_is_described(cell, law, words):
    with pytest.raises(LawBroken, match=words) as caught:
        check_cell(cell())
    assert caught.value.law == law


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


def overwrites_x(cell, x, h0):
    result = loop(cell, x, h0)
    x.data.zero_()
    return result


def other_last_without_gradients(cell, x, h0):
    y, last = loop(cell, x, h0)
    return y, (last if torch.is_grad_enabled() else last + 1e-3)


def shifted(cell, x, h0):
    y, last = loop(cell, x, h0)
    return torch.cat([cell.output(h0)[:, None], y[:, :-1]], 1), last


def another_in_generation(cell, x, h0):
    y, h = loop(cell, x, h0)
    return (y + 1 if x.shape[:2] == (1, 1) and not torch.is_grad_enabled() else y), h


def overwrites_x_in_generation(cell, x, h0):
    y, h = loop(cell, x, h0)
    if x.shape[:2] == (1, 1) and not torch.is_grad_enabled():
        x.add_(1)
    return y, h


def one_memory_in_generation(cell, x, h0):
    y, h = loop(cell, x, h0)
    return (cell.output(h)[:, None] if x.shape[:2] == (1, 1) and not torch.is_grad_enabled() else y), h


def any_width(cell, x, h0):
    return loop(cell, x[..., :D], h0)


SCANS = {
    another_in_generation: "one row, T = 1, no_grad",
    overwrites_x_in_generation: "wrote into its input",
    one_memory_in_generation: "shares its memory with the last state",
    any_width: "too wide",
    drops_h0_gradient: "d y / d h0",
    drops_last_gradient: "d the last state / d",
    drops_parameter_gradient: "y / d w.bias",
    last_is_first: "the last state differs",
    one_step_is_skipped: "T = 1",
    without_gradients_is_different: "y without gradients",
    other_last_without_gradients: "the last state without gradients",
    overwrites_h0: "wrote into its initial state",
    overwrites_x: "wrote into its input",
    shifted: "scan: y differs",
}


def test_sound_scan_passes():
    assert check_scan(loop, Tick()) == ["scan"]
    assert check_scan(loop, Tick(), torch.randn(2, 40, D)) == ["scan"]


@pytest.mark.parametrize(("scan", "words"), SCANS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_broken_scan_is_caught(scan, words):
    with pytest.raises(LawBroken, match=words) as caught:
        check_scan(scan, Tick())
    assert caught.value.law == "scan"


def test_scan_names_what_has_the_wrong_gradient():
    with pytest.raises(LawBroken) as caught:
        check_scan(drops_h0_gradient, Tick())
    assert caught.value.position["parameter"] == "h0"
