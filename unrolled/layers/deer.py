"""DEER: a non-linear recurrence solved for all ticks at once (Lim et al. 2024, "Parallelizing non-linear sequential
models over the sequence length", ICLR).

The states of h_t = f(x_t, h_{t-1}) are the root of r_t = f(x_t, s_{t-1}) - s_t. Newton's iteration linearises f at the
current guess s, with J_t = df/dh at (x_t, s_{t-1}), and solves the linear recurrence that this leaves,

    s <- s + d,    d_t = J_t d_{t-1} + r_t,    d_0 = 0,

by an associative scan of affine maps, in 2 log2 T rounds instead of T. `jacobian="diagonal"` keeps only the diagonal
of J_t (Gonzalez et al. 2024): less work per iteration, more iterations. When a step does not contract, J is damped
(times 1/2, 1/4, 1/8, 0). T iterations are always enough, but the solver gives up sooner, and says so.

The gradient is exact and is one more scan, backwards: lambda_t = g_t + J_{t+1}^T lambda_{t+1}, after which each tick
passes lambda_t to its input and weights alone. With the diagonal variant that system, too, is solved by iteration.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unrolled.core.errors import Diverged, UsageError
from unrolled.core.trace import note
from unrolled.layers.affine import affine_scan, reverse_scan, rounds
from unrolled.layers.cells import Cell
from unrolled.layers.scan import Scan

JacobianKind = Literal["full", "diagonal"]
Pull = Callable[[Tensor], tuple[Tensor]]  # v [B T, N] -> (J^T v,): the cell's own vector-Jacobian product, all ticks

BUDGET = 1 << 25  # numbers that the Jacobians of one window of time may hold: 128 MB in float32
TOLERANCES = {torch.float32: 2e-6, torch.float64: 1e-12}
DAMPINGS = (1.0, 0.5, 0.25, 0.125, 0.0)


class NotConverged(Diverged):
    """DEER did not reach its tolerance."""


class Solution(NamedTuple):
    """What `solve` found; without convergence the states carry no gradient and are NaN after the first bad window."""

    states: Tensor  # [B, T, N]
    iterations: int  # Newton steps (the most that any window of time took)
    residual: float  # the largest |f(x_t, h_{t-1}) - h_t|, relative to the largest state or 1
    converged: bool
    depth: int  # scan rounds that had to wait for each other; a loop has T


@dataclass
class Linear:
    """f at all ticks at once around given previous states: its values, and its Jacobians when they are asked for."""

    values: Tensor  # [B, T, N]
    pull: Pull

    def jacobian(self, kind: JacobianKind) -> Tensor:
        B, T, N = self.values.shape
        basis = torch.eye(N, dtype=self.values.dtype, device=self.values.device)  # [N, N]

        def row(e: Tensor) -> Tensor:  # row i of J at all ticks, or its diagonal element
            J_i = self.pull(e.expand(B * T, N))[0]  # [B T, N]
            return J_i if kind == "full" else (J_i * e).sum(-1)

        at_once = max(1, BUDGET // (B * T * N * 8))
        J = torch.func.vmap(row, chunk_size=at_once)(basis)  # [N, B T, N] or [N, B T]
        if kind == "diagonal":
            return J.t().reshape(B, T, N)
        return J.transpose(0, 1).reshape(B, T, N, N)


def linearise(cell: Cell, x: Tensor, h0: Tensor, s: Tensor) -> Linear:
    B, T, N = s.shape
    flat = x.flatten(0, 1)  # [B T, D]
    values, pull, *_ = torch.func.vjp(lambda h: cell(flat, h), previous(h0, s))
    return Linear(values.view(B, T, N), pull)


def previous(h0: Tensor, s: Tensor) -> Tensor:
    """h_0, s_1 .. s_{T-1} as rows [B T, N]."""
    return torch.cat([h0.unsqueeze(1), s[:, :-1]], dim=1).flatten(0, 1)


class Adjoint(torch.autograd.Function):
    """The states as they are; the gradient g_t that reaches them becomes lambda_t, which includes all later ticks."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, J: Tensor, pull: Pull, tolerance: float) -> Tensor:
        ctx.save_for_backward(J)
        ctx.pull, ctx.tolerance = pull, tolerance
        return values.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        (J,) = ctx.saved_tensors
        adjoint = reverse_scan(J, g)
        if J.dim() == 3:
            adjoint = refine(J, g, adjoint, ctx.pull, ctx.tolerance)
        return adjoint, None, None, None


def refine(J: Tensor, g: Tensor, adjoint: Tensor, pull: Pull, tolerance: float) -> Tensor:
    """With J only diagonal: correct by what the true vector-Jacobian product leaves over, until nothing is left.

    Each correction makes at least one more tick exact, so that T of them are always enough.
    """
    B, T, N = g.shape
    before = math.inf
    for _ in range(T):
        back = pull(adjoint.flatten(0, 1))[0].view(B, T, N)[:, 1:]  # J_{t+1}^T lambda_{t+1} [B, T - 1, N]
        left = g - adjoint
        left[:, :-1] += back
        size = float(left.abs().max() / adjoint.abs().max().clamp(min=torch.finfo(g.dtype).tiny))
        if size <= tolerance and size >= before / 2:  # within the tolerance, and as good as it gets
            return adjoint
        before = size
        adjoint = adjoint + reverse_scan(J, left)
    return adjoint


class Window(NamedTuple):
    """One window of time, solved or not."""

    linear: Linear
    J: Tensor
    iterations: int
    residual: float
    scans: int


def newton(
    cell: Cell, x: Tensor, h0: Tensor, kind: JacobianKind, tolerance: float, max_iterations: int
) -> Window:  # fmt: skip
    """Iterate from s_t = h_0 until the residual is within the tolerance or patience ends.

    Of the dampings the first that brings the ticks closer on average is taken; the last, J = 0, if none does, for even
    that makes one more tick exact.
    """
    s = h0.unsqueeze(1).expand(-1, x.shape[1], -1)  # [B, T, N]
    at = linearise(cell, x, h0, s)
    J, (residual, merit), scans, damping, before = at.jacobian(kind), errors(at.values, s), 0, 0, math.inf
    for iteration in range(max_iterations):
        if residual <= tolerance and (
            kind == "full" or residual >= before / 2
        ):  # the diagonal one creeps: let it settle
            return Window(at, J, iteration, residual, scans)
        for i in range(max(0, damping - 1), len(DAMPINGS)):
            trial = s + affine_scan(DAMPINGS[i] * J, at.values - s)
            there = linearise(cell, x, h0, trial)
            after, merit_after = errors(there.values, trial)
            scans += 1
            if after <= tolerance or merit_after < merit or i == len(DAMPINGS) - 1:  # comparisons with NaN are False
                break
        before = residual
        s, at, J, residual, merit, damping = trial, there, there.jacobian(kind), after, merit_after, i
        if not math.isfinite(residual):
            return Window(at, J, iteration + 1, residual, scans)
    return Window(at, J, max_iterations, residual, scans)


def errors(values: Tensor, s: Tensor) -> tuple[float, float]:
    """The largest residual relative to the largest state or 1; and a mean over ticks that no single tick dominates."""
    r = (values - s) / s.abs().max().clamp(min=1.0)  # [B, T, N]
    size = r.norm(dim=-1)  # [B, T]
    return float(r.abs().max()), float((size / (1 + size)).mean())


def solve(
    cell: Cell,
    x: Tensor,
    h0: Tensor,
    *,
    jacobian: JacobianKind = "full",
    tolerance: float | None = None,
    max_iterations: int = 100,
    window: int | None = None,
) -> Solution:
    """All states of a cell over x [B, T, D] from h_0 [B, N] by Newton's iteration.

    `window` cuts time into pieces that are solved one after the other, by default so that the Jacobians fit memory.

    >>> from unrolled.layers.cells import GRU
    >>> solution = solve(GRU(2, 4), torch.randn(1, 100, 2), torch.zeros(1, 4))
    >>> solution.converged, solution.iterations < 20
    (True, True)
    """
    if jacobian not in ("full", "diagonal"):
        raise UsageError(f"jacobian = '{jacobian}' is not possible: allowed is 'full' or 'diagonal'")
    B, T, N = x.shape[0], x.shape[1], h0.shape[1]
    if tolerance is None:
        tolerance = TOLERANCES.get(h0.dtype, 16 * torch.finfo(h0.dtype).eps)
    window = window or max(1, BUDGET // (B * N * (N if jacobian == "full" else 8)))
    pieces: list[Tensor] = []
    iterations, residual, depth = 0, 0.0, 0
    for piece in torch.split(x, window, dim=1):
        with torch.no_grad():
            found = newton(cell, piece, h0, jacobian, tolerance, max_iterations)
        iterations, residual = max(iterations, found.iterations), max(residual, found.residual)
        depth += found.scans * rounds(piece.shape[1])
        if not found.residual <= tolerance:
            done = sum(p.shape[1] for p in pieces) + piece.shape[1]
            pieces += [found.linear.values, h0.new_full((B, T - done, N), float("nan"))]
            return Solution(torch.cat(pieces, dim=1).detach(), iterations, found.residual, False, depth)
        pieces.append(attach(cell, piece, h0, found, tolerance))
        h0 = pieces[-1][:, -1]
    return Solution(torch.cat(pieces, dim=1), iterations, residual, True, depth)


def attach(cell: Cell, x: Tensor, h0: Tensor, found: Window, tolerance: float) -> Tensor:
    """The solved states with their gradient: every tick once more, with the history of h_0 but of no other state."""
    if not torch.is_grad_enabled():
        return found.linear.values
    values = cell(x.flatten(0, 1), previous(h0, found.linear.values.detach()))  # [B T, N]
    states: Tensor = Adjoint.apply(values.view_as(found.linear.values), found.J, found.linear.pull, tolerance)
    return states  # [B, T, N]


class Deer:
    """DEER as a scan. No convergence is an error; or, with a fallback, a warning (once) and the fallback's result."""

    def __init__(
        self, jacobian: JacobianKind, tolerance: float | None, max_iterations: int, fallback: Scan | None
    ) -> None:  # fmt: skip
        self.jacobian: JacobianKind = jacobian
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.fallback = fallback
        self.warned = False

    def __call__(self, cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        solution = solve(
            cell, x, h0, jacobian=self.jacobian, tolerance=self.tolerance, max_iterations=self.max_iterations
        )
        note("deer", solution)
        if solution.converged:
            return cell.output(solution.states), solution.states[:, -1].clone()
        sentence = (
            f"DEER did not converge for {type(cell).__name__} over {x.shape[1]} steps: "
            f"residual {solution.residual:.1e} after {solution.iterations} iterations"
        )
        if self.fallback is None:
            raise NotConverged(f"{sentence}; use the scan 'loop' or 'fused', or deer.scan(fallback=loop)")
        if not self.warned:
            warnings.warn(f"{sentence}; the fallback scan runs instead", RuntimeWarning, stacklevel=2)
            self.warned = True
        return self.fallback(cell, x, h0)


def scan(
    *,
    jacobian: JacobianKind = "full",
    tolerance: float | None = None,
    max_iterations: int = 100,
    fallback: Scan | None = None,
) -> Scan:
    """DEER with settings of your own, as a scan."""
    return Deer(jacobian, tolerance, max_iterations, fallback)


deer: Scan = scan()
"""The scan with default settings: raises NotConverged rather than return anything else than the loop would."""
