"""Piano rolls as Standard MIDI Files, format 0: one track, a fixed tempo, every key an acoustic grand piano's.

A file is two chunks, a header and a track of events, each event after a number of ticks in base 128 with the high bit
set on all digits but the last ("Standard MIDI Files 1.0", MIDI Manufacturers Association 1988). A key that sounds in
several frames on end is one long note, for a roll does not say where a key is struck again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError

TICKS, TEMPO = 480, 500_000  # ticks per quarter note, microseconds per quarter note: 120 quarters a minute
NOTE_OFF, NOTE_ON, PROGRAM, META = 0x80, 0x90, 0xC0, 0xFF
VELOCITY = 80


def midi_bytes(roll: NDArray[np.uint8], frame_seconds: float, lowest: int) -> bytes:
    """The file of a roll [T, keys] whose first key is the MIDI number `lowest`.

    >>> midi_bytes(np.ones((2, 1), np.uint8), 0.5, lowest=60)[:14]
    b'MThd\\x00\\x00\\x00\\x06\\x00\\x00\\x00\\x01\\x01\\xe0'
    """
    if lowest < 0 or lowest + roll.shape[1] > 128:
        raise DataError(f"{roll.shape[1]} keys starting at number {lowest} do not fit into MIDI, which has 128")
    track = bytearray(b"\x00" + bytes([META, 0x51, 3]) + TEMPO.to_bytes(3, "big"))
    track += b"\x00" + bytes([PROGRAM, 0])
    before = 0
    for frame, status, key in _events(roll):
        now = round(frame * frame_seconds * 1e6 / TEMPO * TICKS)
        track += _variable(now - before) + bytes([status, lowest + key, VELOCITY if status == NOTE_ON else 0])
        before = now
    end = round(len(roll) * frame_seconds * 1e6 / TEMPO * TICKS)
    track += _variable(end - before) + bytes([META, 0x2F, 0])
    return _chunk(b"MThd", struct.pack(">HHH", 0, 1, TICKS)) + _chunk(b"MTrk", bytes(track))


def _events(roll: NDArray[np.uint8]) -> Iterator[tuple[int, int, int]]:
    """(frame, status, key) in order; at one time keys are let go before others are struck."""
    silence = np.zeros((1, roll.shape[1]), np.int8)
    change = np.diff(np.concatenate([silence, roll.astype(np.int8), silence]), axis=0)  # [T + 1, keys]
    for frame, row in enumerate(change):
        for value, status in ((-1, NOTE_OFF), (1, NOTE_ON)):
            for key in np.flatnonzero(row == value):
                yield frame, status, int(key)


def _variable(number: int) -> bytes:
    """A number in base 128, the high bit set on all digits but the last."""
    digits = [number & 0x7F]
    while number := number >> 7:
        digits.append(number & 0x7F | 0x80)
    return bytes(reversed(digits))


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack(">I", len(content)) + content
