"""MIDI files are parsed back by a reader of this test's own."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.errors import DataError
from unrolled.data.files.midi import midi_bytes


def parse(data: bytes) -> tuple[list[tuple[float, float, int]], float, list[int]]:
    """Notes as (start, end, number) in seconds, the length of the track in seconds, and all statuses."""
    assert data[:8] == b"MThd\0\0\0\6" and data[14:18] == b"MTrk"
    kind, tracks, ticks = (int.from_bytes(data[i : i + 2], "big") for i in (8, 10, 12))
    assert (kind, tracks) == (0, 1)
    assert int.from_bytes(data[18:22], "big") == len(data) - 22
    at, now, tempo, open_notes, notes, statuses = 22, 0.0, 0, {}, [], []
    while True:
        delta = 0
        while True:
            delta, more = delta << 7 | data[at] & 0x7F, data[at] & 0x80
            at += 1
            if not more:
                break
        now += delta * tempo / ticks / 1e6
        status = data[at]
        statuses.append(status)
        if status == 0xFF:
            content = data[at + 3 : at + 3 + data[at + 2]]
            tempo = int.from_bytes(content, "big") if data[at + 1] == 0x51 else tempo
            if data[at + 1] == 0x2F:
                assert at + 3 == len(data) and not open_notes
                return notes, now, statuses
            at += 3 + data[at + 2]
        elif status == 0xC0:
            at += 2
        elif status == 0x90:
            assert data[at + 1] not in open_notes and data[at + 2] > 0
            open_notes[data[at + 1]] = now
            at += 3
        else:
            assert status == 0x80
            notes.append((open_notes.pop(data[at + 1]), now, data[at + 1]))
            at += 3


def test_a_roll_comes_back() -> None:
    roll = (np.random.default_rng(0).random((40, 88)) < 0.2).astype(np.uint8)
    notes, length, _ = parse(midi_bytes(roll, 0.25, lowest=21))
    again = np.zeros_like(roll)
    for start, end, number in notes:
        again[round(start / 0.25) : round(end / 0.25), number - 21] = 1
    np.testing.assert_array_equal(again, roll)
    assert length == pytest.approx(10.0)


def test_a_held_key_is_one_note_and_keys_are_let_go_first() -> None:
    roll = np.array([[1, 0], [1, 0], [0, 1]], np.uint8)
    notes, _, statuses = parse(midi_bytes(roll, 0.5, lowest=60))
    assert notes == [(0.0, 1.0, 60), (1.0, 1.5, 61)]
    assert statuses == [0xFF, 0xC0, 0x90, 0x80, 0x90, 0x80, 0xFF]


def test_odd_frame_lengths_do_not_drift() -> None:
    """Ticks are rounded from the beginning of the piece, not from frame to frame; long silences need long numbers."""
    roll = np.zeros((3000, 1), np.uint8)
    roll[-1] = 1
    notes, length, _ = parse(midi_bytes(roll, 1 / 7, lowest=60))
    assert notes[0][0] == pytest.approx(2999 / 7, abs=1e-3)
    assert length == pytest.approx(3000 / 7, abs=1e-3)


def test_silence_is_a_file_too() -> None:
    assert parse(midi_bytes(np.zeros((4, 88), np.uint8), 0.5, lowest=21))[:2] == ([], 2.0)


def test_too_many_keys_are_refused() -> None:
    with pytest.raises(DataError, match="128"):
        midi_bytes(np.zeros((4, 120), np.uint8), 0.5, lowest=21)
