"""The state of causal attention: the keys and values so far, with spare room, and how many positions each row has.

Position p stands in slot p, or with a window of W in slot p mod W: a ring, which overwrites what no query can see any
more. Room grows by doubling (to W at most), so that adding a position is cheap on average.

With gradients off new positions are written into the spare room of the state that was given (law 4): nothing is copied,
and two continuations of one state share memory. A caller that continues a state twice clones it first. With gradients
on the state that was given is never touched, and the one returned is no memory that a graph has saved: it has no spare
room, or is a copy. `state.where(active, new, old)` needs equal shapes, so it refuses two states between which room
grew; continue both rows alike until it has grown, or give the longer one's rows by `take`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

LEAST_ROOM = 32  # positions


class KeyValue(NamedTuple):
    """Keys and values of the positions so far, [B, H, room, .], and their number in each row, [B]."""

    keys: Tensor
    values: Tensor
    length: Tensor


def common_length(state: KeyValue) -> int | None:
    """The number of positions when all rows have equally many; None where they differ, or for a graph."""
    if torch.compiler.is_exporting():
        return None
    lengths = state.length.tolist()
    return lengths[0] if lengths.count(lengths[0]) == len(lengths) else None


def begun(k: Tensor, v: Tensor, window: int | None) -> KeyValue:
    """The state after a first chunk k [B, H, T, m], v [B, H, T, m_v]."""
    B, _, T, _ = k.shape
    length = torch.full((B,), T, device=k.device)
    if window is not None and window <= T:
        return KeyValue(ring(k, T, window), ring(v, T, window), length)
    return KeyValue(k, v, length)


def ring(new: Tensor, end: int, window: int) -> Tensor:
    """The last `window` of the positions up to `end` in their slots."""
    return new[:, :, -window:].roll(end % window, 2)


def in_order(buffer: Tensor, n: int, window: int) -> Tensor:
    """The last min(n, W - 1) positions of a ring, oldest first: what a new query can still see."""
    if n <= buffer.shape[2] and n < window:
        return buffer[:, :, :n]
    head = n % window  # the slot of the oldest, which is W positions back: out of sight
    return torch.cat([buffer[:, :, head + 1 :], buffer[:, :, :head]], 2)  # [B, H, W - 1, .]


def may_overwrite(buffer: Tensor) -> bool:
    """True when a call may write into the state it was given."""
    return (
        not torch.is_grad_enabled()
        and not buffer.requires_grad
        and buffer.is_inference() == torch.is_inference_mode_enabled()
    )


def apart(buffer: Tensor) -> Tensor:
    """A buffer in which a later call may write: with gradients on, attention has saved the one it read."""
    return buffer.clone() if torch.is_grad_enabled() else buffer


def with_room(buffer: Tensor, n: int, needed: int, limit: int | None) -> Tensor:
    """A buffer [B, H, room, .] with room for `needed` positions that begins with the first n of this one."""
    room = max(2 * buffer.shape[2], needed, LEAST_ROOM)
    room = room if limit is None else min(room, limit)
    if torch.is_grad_enabled():
        return F.pad(buffer[:, :, :n], (0, 0, 0, room - n))
    grown = buffer.new_zeros(*buffer.shape[:2], room, buffer.shape[3])
    grown[:, :, :n] = buffer[:, :, :n]
    return grown


def written(buffer: Tensor, new: Tensor, n: int, window: int | None) -> Tensor:
    """The buffer after positions n .. n + T - 1 of all rows were put into their slots."""
    T = new.shape[2]
    if window is not None and window <= T:
        return ring(new, n + T, window)
    needed = n + T if window is None else min(n + T, window)
    if needed > buffer.shape[2]:
        buffer = with_room(buffer, n, needed, window)
    elif not may_overwrite(buffer):
        buffer = buffer.clone()
    slot = n if window is None else n % window
    if window is not None and slot + T > window:
        first = window - slot
        buffer[:, :, slot:] = new[:, :, :first]
        buffer[:, :, : T - first] = new[:, :, first:]
    else:
        buffer[:, :, slot : slot + T] = new
    return buffer


def written_by_row(buffer: Tensor, new: Tensor, at: Tensor, window: int | None) -> Tensor:
    """The buffer after the positions `at` [B, T], different in each row, were put into their slots."""
    longest = int(at.max()) + 1
    needed = longest if window is None else window
    if needed > buffer.shape[2]:
        buffer = with_room(buffer, buffer.shape[2], needed, window)
    elif not may_overwrite(buffer):
        buffer = buffer.clone()
    if window is not None:
        new, at = new[:, :, -window:], at[:, -window:] % window
    rows = torch.arange(len(at), device=at.device)[:, None]  # [B, 1]
    buffer.transpose(1, 2)[rows, at] = new.transpose(1, 2)
    return buffer


def slot_positions(length: Tensor, window: int) -> Tensor:
    """The position in each slot of a full ring [B, W], negative where there is none yet."""
    slots = torch.arange(window, device=length.device)  # [W]
    last = length[:, None] - 1  # [B, 1]
    return last - (last - slots).remainder(window)


def gathered(state: KeyValue, k: Tensor, v: Tensor, window: int | None) -> tuple[KeyValue, Tensor | None]:
    """The state after one tick as a graph has it, which looks at no value, and which positions the query may see.

    Keys and values stand in order: all of them, or with a window W always W, of which the first are none while a row
    has not so many.
    """
    first = 0 if window is None else 1
    keys = torch.cat([state.keys[:, :, first:], k], 2)  # [B, H, n + 1 or W, m]
    values = torch.cat([state.values[:, :, first:], v], 2)
    after = KeyValue(keys, values, state.length + 1)
    if window is None:
        return after, None
    slots = torch.arange(window, device=k.device)  # [W]
    return after, (slots >= window - after.length[:, None])[:, None, None]  # [B, 1, 1, W]


def full_ring(buffer: Tensor, window: int) -> Tensor:
    """A ring with all its slots; those without a position hold zeros."""
    return F.pad(buffer, (0, 0, 0, window - buffer.shape[2])) if buffer.shape[2] < window else buffer
