"""What a model costs: multiply-adds and time per tick of a stream, the size of its state, steps that must wait.

Counts come from the layers, times and sizes are measured on the model itself, at batch 1, through the contract.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core import state as states
from unrolled.core.causal import Causal, Conditional, serial_depth, tick_multiply_adds
from unrolled.core.compose import AsEncoder
from unrolled.core.forward import evaluating
from unrolled.core.state import State
from unrolled.engine.stepper import stepped

LENGTH = 64  # of the training sequence whose serial depth is told, unless another is named
FAR = 10_000  # a position where every window is full
TICKS = 50  # per round of timing
ROUNDS = 4


def short(value: float) -> str:
    """
    >>> short(327_680), short(1_250_000), short(64.0)
    ('328 k', '1.2 M', '64')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.1f} {unit}" if scaled < 10 else f"{scaled:.0f} {unit}"
    return f"{value:.0f}"


def tick_cost(layer: Causal) -> tuple[int, int]:
    """Multiply-adds of a tick far into a stream, as (fixed, per position behind it)."""
    at, after = tick_multiply_adds(layer, FAR), tick_multiply_adds(layer, FAR + 1)
    return at - (after - at) * FAR, after - at


def tick_microseconds(layer: Causal, x: Tensor, state: State = None) -> float:
    """The shortest mean time of a tick over some rounds; x [1, T, ..] is fed again and again."""
    ticks = TICKS if layer.max_length is None else max(1, min(TICKS, layer.max_length // 2))
    first, best, t = states.clone(state), float("inf"), 0
    with evaluating(layer):
        step = stepped(layer)
        for round_ in range(ROUNDS + 1):
            if layer.max_length is not None:
                state = states.clone(first)
            begun = time.perf_counter()
            for _ in range(ticks):
                _, state = step(x[:, t % x.shape[1] : t % x.shape[1] + 1], state)
                t += 1
            if round_:  # the first one warms up
                best = min(best, (time.perf_counter() - begun) / ticks)
    return round(best * 1e6, 2)


@torch.no_grad()
def state_bytes(layer: Causal, x: Tensor, state: State = None) -> int:
    """Bytes that one stream holds after the positions of x [1, T, ..]."""
    return states.nbytes(layer(x[:, : layer.max_length and layer.max_length // 2], states.clone(state))[1])


def facts(layer: nn.Module, length: int = LENGTH) -> dict[str, Any]:
    """What is known of a layer before it is trained, as JSON values.

    Only causal layers have a state and a tick; an encoder and a table model (one vector per example) see all at once.
    """
    depth = serial_depth(layer, length)
    if isinstance(layer, Conditional):
        return {**facts(layer.decoder, length), "serial_depth": depth}
    if isinstance(layer, AsEncoder):
        layer = layer.causal
    if not isinstance(layer, Causal):
        return {"receptive_field": None, "state_grows": None, "serial_depth": depth}
    fixed, per_position = tick_cost(layer)
    return {
        "receptive_field": layer.receptive_field,
        "state_grows": layer.state_grows,
        "serial_depth": depth,
        "tick_multiply_adds": fixed,
        "tick_multiply_adds_per_position": per_position,
    }


def forget_peak() -> None:
    """Let the peak of this process's memory begin again here, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_megabytes() -> float | None:
    """The most memory that this process has held, None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024, 1)
    except (OSError, StopIteration):
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def available_bytes() -> int | None:
    """The memory that this process can still have, swap included; None where the system does not tell."""
    found = [_meminfo(), _cgroup("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")]
    return min((room for room in found if room is not None), default=None)


def _meminfo() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        return sum(int(lines[key].split()[0]) for key in ("MemAvailable", "SwapFree")) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _cgroup(most: str, used: str) -> int | None:
    """The room that a container has left."""
    try:
        return int(Path(most).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or "max"
        return None
