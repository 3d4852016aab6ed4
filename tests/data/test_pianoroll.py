"""Piano rolls from files and memory: what they hold, how they are split, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.test_mat import header, matrix
from unrolled.core.errors import DataError
from unrolled.data.config import DataConfig
from unrolled.data.sources.pianoroll import npz_bytes, prepare_rolls, read_rolls

NOTES = [[[60, 64], [], [21, 108, -1]], [[60]]]


def rolls(n: int, seed: int = 0, width: int = 88) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [(random.random((int(random.integers(1, 9)), width)) < 0.1).astype(np.uint8) for _ in range(n)]


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.uint8


def test_notes_are_keys(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(NOTES))
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(json.dumps({"train": NOTES, "valid": NOTES[1:]}).encode()))
    first, second = read_rolls(tmp_path / "x.json")["all"]
    assert [np.flatnonzero(frame).tolist() for frame in first] == [[39, 43], [], [0, 87]]
    assert second.shape == (1, 88)
    parts = read_rolls(str(tmp_path / "x.json.gz"))
    same(parts["train"], [first, second])
    same(parts["valid"], [second])


def test_three_formats_hold_the_same(tmp_path: Path) -> None:
    wanted = {"train": rolls(3), "valid": rolls(2, 1), "test": rolls(1, 2)}
    np.savez(tmp_path / "x.npz", **{f"{part}_{i}": r for part, found in wanted.items() for i, r in enumerate(found)})
    (tmp_path / "x.mat").write_bytes(
        header() + b"".join(matrix(f"{part}data", [r.astype("f8") for r in found]) for part, found in wanted.items())
    )
    notes = {part: [[(np.flatnonzero(f) + 21).tolist() for f in r] for r in found] for part, found in wanted.items()}
    (tmp_path / "x.json").write_text(json.dumps(notes))
    fingerprints = set()
    for name in ("x.npz", "x.mat", "x.json"):
        found = read_rolls(tmp_path / name)
        for part, sequences in wanted.items():
            same(found[part], sequences)
        data = prepare_rolls(tmp_path / name, DataConfig())
        assert list(data.sections) == ["train", "valid", "test"]
        assert data.facts["split_is"] == "given"
        fingerprints.add(data.fingerprint)
    assert len(fingerprints) == 1
    assert prepare_rolls({**wanted, "valid": rolls(2, 5)}, DataConfig()).fingerprint not in fingerprints


def test_a_stack_of_equal_lengths(tmp_path: Path) -> None:
    stack = np.zeros((3, 5, 4), bool)
    np.savez(tmp_path / "x.npz", stack=stack)
    same(read_rolls(tmp_path / "x.npz")["all"], list(stack.astype(np.uint8)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    wanted = rolls(12)
    (tmp_path / "x.npz").write_bytes(npz_bytes(wanted))
    same(read_rolls(tmp_path / "x.npz")["all"], wanted)
    assert npz_bytes(wanted) == npz_bytes(wanted)


def test_a_split_keeps_equal_sequences_together() -> None:
    wanted = rolls(40)
    data = prepare_rolls(wanted + wanted[:20], DataConfig(split="60/20/20", seed=3))
    sections = data.sections
    found = [{roll.tobytes() for roll in sections[p].fields["target"]} for p in sections]
    assert not (found[0] & found[1] or found[0] & found[2] or found[1] & found[2])
    assert sum(section.n_examples for section in sections.values()) == 60
    assert data.facts["notes"] == []
    other = prepare_rolls(wanted + wanted[:20], DataConfig(split="60/20/20", seed=4))
    assert other.fingerprint != data.fingerprint


def test_given_parts_that_overlap_are_noted() -> None:
    wanted = rolls(4)
    data = prepare_rolls({"train": wanted, "valid": wanted[:2], "test": rolls(2, 9)}, DataConfig())
    assert data.facts["notes"] == ["2 sequences of valid are in train too"]


def bad(changed: Any, width: int = 88) -> list[Any]:
    sequences: list[Any] = rolls(4, width=width)
    sequences[2] = changed
    return sequences


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (bad(np.full((3, 88), 2)), "sequence 2, frame 0, key 0: found 2"),
        (bad(np.full((3, 88), np.nan)), "sequence 2, frame 0, key 0: found nan"),
        (bad(np.full((3, 88), 0.5)), "found 0.5"),
        (bad(np.zeros((0, 88))), "sequence 2: the sequence is empty"),
        (bad(np.zeros((3, 87))), "width 87, but the previous ones have 88"),
        (bad(np.zeros(88)), r"shape \[88\]"),
        (bad("abc"), "expected numbers"),
        (bad([[0, 1], [0]]), "different widths"),
        ([], "no sequence"),
        ({"valid": rolls(2)}, "no train split"),
        ({"train": rolls(2)}, "too small to split"),
        ({"train": rolls(2), "other": rolls(1)}, "'other' belongs to no split"),
        (rolls(1), "too small to split"),
    ],
)
def test_bad_data_gets_one_sentence(source: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        prepare_rolls(source, DataConfig())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", b"{", "not JSON"),
        ("x.json", b"[[[20]]]", "frame 0: found 20, expected a MIDI number from 21 to 108"),
        ("x.json", b"[[[60], [NaN]]]", "frame 1: found nan"),
        ("x.json", b"[[60]]", "sequence 0, frame 0: found int, expected a list"),
        ("x.json", b"[7]", "sequence 0: found int, expected a list of frames"),
        ("x.json", b"7", "found int, expected a list of sequences"),
        ("x.json", b"[[]]", "sequence 0: the sequence is empty"),
        ("x.json.gz", b"no gzip", "gzip data is damaged"),
        ("x.npz", b"PK no zip", "x.npz: "),
        ("x.mat", header() + matrix("a", np.eye(3)), "found a, but no cell array"),
        ("x.mat", header() + matrix("traindata", [np.eye(3) * 2]), "traindata, cell 0, frame 0, key 0: found 2.0"),
        ("x.txt", b"text", "expected piano rolls in .npz"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_rolls(tmp_path / name)
    assert name in str(caught.value)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", train=np.array([[1], [2, 3]], dtype=object))
    with pytest.raises(DataError, match="Python objects"):
        read_rolls(tmp_path / "x.npz")
    with pytest.raises(DataError, match="no such file"):
        read_rolls(tmp_path / "none.npz")
