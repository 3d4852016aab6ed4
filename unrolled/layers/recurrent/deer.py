"""DEER: a non-linear recurrence solved for all ticks at once (Lim et al. 2024, "Parallelizing non-linear sequential
models over the sequence length", ICLR).

The states of h_t = f(x_t, h_{t-1}) are the root of r_t = f(x_t, s_{t-1}) - s_t. Newton's iteration linearises f at the
current guess s, with J_t = df/dh at (x_t, s_{t-1}), and solves the linear recurrence that this leaves,

    s <- s + d,    d_t = J_t d_{t-1} + r_t,    d_0 = 0,

by an associative scan of affine maps, in 2 log2 T rounds instead of T. `jacobian="diagonal"` keeps only the diagonal
of J_t (Gonzalez et al. 2024): less work per iteration, more iterations; where the native kernel serves it runs that
recurrence tick by tick, which is faster on a CPU (the depth counts the rounds all the same). When a step does not
contract, J is damped (times 1/2, 1/4, 1/8, 0). T iterations are always enough, but the solver gives up sooner, and says
so. Rows are independent: each has its own damping and its own residual, relative to its own states, and stops when it
has converged.

The gradient is exact and is one more scan, backwards: lambda_t = g_t + J_{t+1}^T lambda_{t+1}, after which each tick
passes lambda_t to its input and weights alone. With the diagonal variant that system, too, is solved by iteration.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unrolled.core.errors import Diverged, UsageError, listed
from unrolled.core.trace import note
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.linear_scan import linear_scan, reverse_scan, rounds
from unrolled.layers.recurrent.scan import Scan, check_sizes

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
    residual: float  # the largest |f(x_t, h_{t-1}) - h_t| of a row, relative to its largest state or 1
    converged: bool
    depth: int  # scan rounds that had to wait for each other; a loop has T
    failed: tuple[int, ...] = ()  # the rows that did not converge


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
    before = g.new_full((B,), torch.inf)
    moving = torch.ones(B, dtype=torch.bool, device=g.device)  # rows that still change
    for _ in range(T):
        back = pull(adjoint.flatten(0, 1))[0].view(B, T, N)[:, 1:]  # J_{t+1}^T lambda_{t+1} [B, T - 1, N]
        left = g - adjoint
        left[:, :-1] += back
        size = largest(left) / largest(adjoint).clamp(min=torch.finfo(g.dtype).tiny)  # [B]
        moving = moving & ~((size <= tolerance) & (size >= before / 2))  # within the tolerance, and as good as it gets
        if not moving.any():
            return adjoint
        before = size
        adjoint = torch.where(moving[:, None, None], adjoint + reverse_scan(J, left), adjoint)
    return adjoint


def largest(z: Tensor) -> Tensor:
    """The largest magnitude in each row of z [B, T, N]: [B]; NaN where there is one."""
    return z.abs().amax((1, 2))


class Window(NamedTuple):
    """One window of time, solved or not."""

    linear: Linear
    J: Tensor
    iterations: int
    residual: Tensor  # [B]
    scans: int


def newton(
    cell: Cell, x: Tensor, h0: Tensor, kind: JacobianKind, tolerance: float, max_iterations: int
) -> Window:  # fmt: skip
    """Iterate from s_t = h_0 until each row's residual is within the tolerance, is not finite, or patience ends.

    Of the dampings a row takes the first that brings its ticks closer on average; the last, J = 0, if none does, for
    even that makes one more tick exact. A row that is done stays as it is.
    """
    s = h0.unsqueeze(1).expand(-1, x.shape[1], -1)  # [B, T, N]
    at = linearise(cell, x, h0, s)
    J, (residual, merit), scans = at.jacobian(kind), errors(at.values, s), 0
    damping = torch.zeros(len(x), dtype=torch.long, device=x.device)  # [B]
    before = torch.full_like(residual, torch.inf)
    for iteration in range(max_iterations):
        done = residual <= tolerance
        if kind == "diagonal":
            done = done & (residual >= before / 2)  # the diagonal one creeps: let it settle
        moving = ~done & residual.isfinite()
        if not moving.any():
            return Window(at, J, iteration, residual, scans)
        trial, chosen, rounds_ = damped(cell, x, h0, s, at.values, J, merit, moving, damping, tolerance)
        scans += rounds_
        s = torch.where(moving[:, None, None], trial, s)
        damping = torch.where(moving, chosen, damping)
        at = linearise(cell, x, h0, s)
        J, before = at.jacobian(kind), torch.where(moving, residual, before)
        residual, merit = errors(at.values, s)
    return Window(at, J, max_iterations, residual, scans)


def damped(
    cell: Cell,
    x: Tensor,
    h0: Tensor,
    s: Tensor,
    values: Tensor,
    J: Tensor,
    merit: Tensor,
    moving: Tensor,
    damping: Tensor,
    tolerance: float,
) -> tuple[Tensor, Tensor, int]:
    """One step for every moving row: the next states [B, T, N], the damping each took [B], and how many were tried."""
    index = (damping - 1).clamp(min=0)  # begin where the last step got to
    asked, chosen, tried = moving.clone(), s, 0
    scales = torch.tensor(DAMPINGS, dtype=s.dtype, device=s.device)
    while bool(asked.any()):
        scale = scales[index].view(-1, *[1] * (J.dim() - 1))
        trial = s + linear_scan(scale * J, values - s)
        after, merit_after = errors(linearise(cell, x, h0, trial).values, trial)
        tried += 1
        good = (after <= tolerance) | (merit_after < merit) | (index == len(DAMPINGS) - 1)  # with NaN: False
        chosen = torch.where((asked & good)[:, None, None], trial, chosen)
        asked = asked & ~good
        index = torch.where(asked, index + 1, index)
    return chosen, index, tried


def errors(values: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row the largest residual relative to its largest state or 1; a mean over ticks that no tick dominates."""
    r = (values - s) / largest(s).clamp(min=1.0)[:, None, None]  # [B, T, N]
    size = r.norm(dim=-1)  # [B, T]
    return largest(r), (size / (1 + size)).mean(1)  # [B], [B]


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

    >>> from unrolled.layers.recurrent.cells import GRU
    >>> solution = solve(GRU(2, 4), torch.randn(1, 100, 2), torch.zeros(1, 4))
    >>> solution.converged, solution.iterations < 20
    (True, True)
    """
    if jacobian not in ("full", "diagonal"):
        raise UsageError(f"invalid value jacobian = '{jacobian}': expected 'full' or 'diagonal'")
    check_sizes(cell, x, h0)
    B, N = h0.shape
    if tolerance is None:
        tolerance = TOLERANCES.get(h0.dtype, 16 * torch.finfo(h0.dtype).eps)
    window = window or max(1, BUDGET // (B * N * (N if jacobian == "full" else 8)))
    pieces: list[Tensor] = []
    iterations, depth = 0, 0
    residual, solved = h0.new_zeros(B), torch.ones(B, dtype=torch.bool, device=x.device)  # [B]
    for piece in torch.split(x, window, dim=1):
        with torch.no_grad():
            found = newton(cell, piece, h0, jacobian, tolerance, max_iterations)
        iterations, depth = max(iterations, found.iterations), depth + found.scans * rounds(piece.shape[1])
        residual = torch.where(solved, torch.maximum(residual, found.residual), residual)
        solved = solved & (found.residual <= tolerance)
        if bool(solved.all()):
            pieces.append(attach(cell, piece, h0, found, tolerance))
            h0 = pieces[-1][:, -1]
        else:  # the others go on, without a gradient; a row that failed has no states behind that
            pieces.append(found.linear.values.detach())
            h0 = torch.where(solved[:, None], pieces[-1][:, -1], torch.nan)
    states = torch.cat(pieces, dim=1)
    if bool(solved.all()):
        return Solution(states, iterations, float(residual.max()) if B else 0.0, True, depth)
    failed = tuple((~solved).nonzero().flatten().tolist())
    return Solution(states.detach(), iterations, float(residual[~solved].max()), False, depth, failed)


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
            f"DEER did not converge for {type(cell).__name__} over {x.shape[1]} steps in {_named(solution.failed)}: "
            f"residual {solution.residual:.1e} after {solution.iterations} iterations"
        )
        if self.fallback is None:
            raise NotConverged(f"{sentence}; use the scan 'loop' or 'fused', or deer.scan(fallback=loop)")
        if not self.warned:
            warnings.warn(f"{sentence}; using the fallback scan instead", RuntimeWarning, stacklevel=2)
            self.warned = True
        return self.fallback(cell, x, h0)


def _named(rows: tuple[int, ...]) -> str:
    """Rows in a sentence, the first few of many."""
    shown = listed(rows[:8]) if len(rows) <= 8 else f"{', '.join(map(str, rows[:8]))} and {len(rows) - 8} more"
    return f"row{'' if len(rows) == 1 else 's'} {shown}"


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
"""The scan with default settings: raises NotConverged rather than returning anything else than the loop would."""
