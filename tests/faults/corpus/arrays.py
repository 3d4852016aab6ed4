"""Arrays in .npz, .npy and .mat files, and piano rolls."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from typing import Any

import numpy as np

from tests.faults.corpus.case import Content, asks, bad, good

X = np.random.default_rng(0).normal(size=(40, 8))
Y = np.arange(40) % 2
ROLL = (np.random.default_rng(0).random((30, 88)) < 0.1).astype(np.uint8)
TUNE = [[60, 64], [62], [], [-1]] * 5


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def of_pickle(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def packed(**files: bytes) -> bytes:
    """A zip of files that are told as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(shape: tuple[int, ...], data: bytes = b"", dtype: str = "<f8", fortran: bool = False) -> bytes:
    """A file whose header tells any shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue() + data


def mat(**cells: list[np.ndarray]) -> bytes:
    """A MATLAB file of version 5 with cell arrays."""

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    def matrix(kind: int, shape: tuple[int, ...], name: str, content: bytes) -> bytes:
        head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape))
        return element(14, head + element(1, name.encode()) + content)

    found = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    for name, arrays in cells.items():
        inner = [matrix(6, a.shape, "", element(9, np.asarray(a, "<f8").tobytes("F"))) for a in arrays]
        found += matrix(1, (1, len(arrays)), name, b"".join(inner))
    return found


def labelled(name: str, content: Content, *says: str, words: str = "classify a.npz") -> Any:
    return bad(name, words, {"a.npz": content}, "a.npz", *says)


def reads(name: str, content: Content, *says: str, words: str = "classify a.npz", **facts: Any) -> Any:
    return good(name, words, {"a.npz": content}, *says, **facts)


def rolls(name: str, content: Content, *says: str, file: str = "a.npz") -> Any:
    return bad(name, f"next-frame {file}", {file: content}, file, *says)


BOMB = packed(**{"x.npy": npy((1 << 27, 8), bytes(1 << 26))})  # 64 MB in 64 kB, which tell of 8 GB
GAP = np.where(np.arange(320).reshape(40, 8) == 11, np.nan, X)

LABELLED = [
    labelled("empty npz", b"", ".npz"),
    labelled("text called npz", "hello", ".npz"),
    asks("npz without arrays", "classify a.npz", {"a.npz": packed()}, "a.npz", "nothing"),
    labelled("cut npz", npz(x=X, y=Y)[:-40], "damaged"),
    labelled(
        "flipped npz", (lambda data: data[:300] + bytes([data[300] ^ 255]) + data[301:])(npz(x=X, y=Y)), "damaged"
    ),
    labelled(
        "array cut in an npz", packed(**{"x.npy": npy((40, 8), bytes(100)), "y.npy": npy((40,), bytes(320))}), "'x'"
    ),
    labelled("array that tells of 8 TB", packed(**{"x.npy": npy((1 << 40,)), "y.npy": npy((40,), bytes(320))}), "'x'"),
    labelled("array of 8 GB in 64 kB", BOMB, "'x'"),
    labelled(
        "array of more than all addresses", packed(**{"x.npy": npy((1 << 62, 1 << 62)), "y.npy": npy((1,))}), "'x'"
    ),
    labelled("negative shape", packed(**{"x.npy": npy((-4, 8)), "y.npy": npy((40,), bytes(320))}), "'x'"),
    labelled("header that is no header", packed(**{"x.npy": b"\x93NUMPY\x01\x00\xff\x7f{'descr': "}), "'x'"),
    labelled("member that is no array", packed(**{"x.npy": b"hello", "y.npy": npy((40,), bytes(320))}), "'x'"),
    labelled(
        "pickled array",
        packed(**{"x.npy": of_pickle(np.array([[1], [2, 3]], object)), "y.npy": npy((2,), bytes(16))}),
        "Python objects",
    ),
    labelled("pickle called npz", pickle.dumps({"x": [1, 2]}), "npz"),
    labelled("complex numbers", npz(x=X + 1j, y=Y), "'x'", "complex"),
    labelled("datetimes", npz(x=X.astype("datetime64[s]"), y=Y), "'x'", "datetime64"),
    labelled("time spans", npz(x=X.astype("timedelta64[s]"), y=Y), "'x'", "timedelta64"),
    labelled("records", npz(x=np.zeros((40, 8), [("a", "f4"), ("b", "f4")]), y=Y), "'x'"),
    labelled("bytes strings", npz(x=np.array([b"ab", b"cd"] * 20), y=Y), "'x'"),
    labelled("0-d inputs", npz(x=np.float64(3), y=Y), "'x'", "shape []"),
    labelled("one axis", npz(x=X[0], y=Y[:8]), "'x'", "shape [8]"),
    labelled("0-d targets", npz(x=X, y=np.int64(1)), "'y'"),
    labelled("fewer targets than inputs", npz(x=X, y=Y[:-1]), "40", "39"),
    labelled("no examples", npz(x=X[:0], y=Y[:0]), "no example"),
    labelled("series without a step", npz(x=X[:, :0], y=Y), "shape [0, 1]"),
    labelled("NaN in an array", npz(x=GAP, y=Y), "'x'", "example 1", "step 4", "nan"),
    labelled("infinity in an array", npz(x=np.where(np.isnan(GAP), np.inf, GAP), y=Y), "example 1", "step 4", "inf"),
    labelled("NaN for a label in an array", npz(x=X, y=np.where(Y, 1.0, np.nan)), "'y'", "example 0", "class"),
    labelled("fractions for labels", npz(x=X, y=Y + 0.5), "'y'", "example 0", "0.5", "class"),
    labelled("a label of several axes", npz(x=X, y=np.stack([Y, Y], 1)), "'y'", "class"),
    labelled("complex targets", npz(x=X, y=Y * 1j), "'y'", "complex", words="regress a.npz"),
    labelled("falling offsets", npz(x=X.ravel(), offsets=np.array([0, 200, 100, 320]), y=Y[:3]), "offsets"),
    labelled("offsets beyond the array", npz(x=X.ravel(), offsets=np.array([0, 200, 999]), y=Y[:2]), "offsets"),
    labelled("no offsets", npz(x=X.ravel(), offsets=np.array([], int), y=Y[:2]), "offsets"),
    labelled("offsets of fractions", npz(x=X.ravel(), offsets=np.array([0, 160.5, 320]), y=Y[:2]), "offsets"),
    labelled("rate of zero", npz(x=X, y=Y, rate=0), "rate"),
    labelled("rate of text", npz(x=X, y=Y, rate="fast"), "rate"),
    asks("one split without its targets", "classify a.npz", {"a.npz": npz(x_train=X, y_train=Y, x_test=X)}, "test"),
    bad("a .npy file", "classify a.npy", {"a.npy": npy((40, 8), bytes(2560))}, "a.npy", ".npz"),
    bad("a pickle", "classify a.pkl", {"a.pkl": pickle.dumps([1, 2, 3])}, "a.pkl", "pickle"),
    asks(
        "array that is not there", "classify a.npz column=signal", {"a.npz": npz(x=X, y=Y)}, "a.npz", "signal", "x, y"
    ),
    reads("half precision", npz(x=X.astype("f2"), y=Y), examples=40),
    reads("big endian", npz(x=X.astype(">f8"), y=Y.astype(">i4")), examples=40),
    reads("column-major order", npz(x=np.asfortranarray(X), y=Y), examples=40),
    reads("unsigned numbers", npz(x=(X * 10 + 99).astype("u2"), y=Y.astype("u1")), examples=40),
    reads("truth values", npz(x=X > 0, y=Y > 0), examples=40, outputs=2),
    reads("negative labels", npz(x=X, y=Y * 2 - 1), outputs=2),
    reads("labels as texts", npz(x=X, y=np.where(Y, "yes", "no")), outputs=2),
    reads("extended precision", npz(x=X.astype(np.longdouble), y=Y), examples=40),
    reads(
        "absolute and climbing names in a zip",
        packed(
            **{
                "x.npy": npy((40, 8), X.tobytes()),
                "y.npy": npy((40,), Y.astype("<f8").tobytes()),
                "/etc/a.npy": npy((1,), bytes(8)),
                "../b.npy": npy((1,), bytes(8)),
            }
        ),
        outputs=2,
    ),
]

ROLLS = [
    rolls("empty rolls", b"", ".npz"),
    rolls("cut rolls", npz(a=ROLL)[:-40], "damaged"),
    rolls("pickled rolls", packed(**{"a.npy": of_pickle(np.array([ROLL, ROLL[:3]], object))}), "Python objects"),
    rolls("rolls that tell of 8 TB", packed(**{"a.npy": npy((1 << 40, 88))}), "'a'"),
    rolls("rolls of other numbers", npz(a=ROLL * 64), "'a'", "frame", "key", "64"),
    rolls("rolls with NaN", npz(a=np.where(ROLL, np.nan, 0)), "'a'", "frame", "nan"),
    rolls("rolls of another width", npz(a=ROLL, b=ROLL[:, :80]), "'b'", "80", "88"),
    rolls("rolls of complex numbers", npz(a=ROLL * 1j), "'a'", "complex"),
    rolls("a roll of one axis", npz(a=ROLL[0]), "'a'", "[88]"),
    rolls("rolls without a frame", npz(a=ROLL[:0]), "'a'", "empty"),
    rolls("one roll", npz(a=ROLL), "one example"),
    rolls("names of half a split", npz(train_0=ROLL, other=ROLL), "'other'", "train"),
    rolls("pickle of rolls", pickle.dumps({"train": [TUNE]}), ".npz", file="a.pickle"),
    rolls("MIDI file", b"MThd\x00\x00\x00\x06\x00\x00\x00\x01\x01\xe0MTrk", ".npz", file="a.mid"),
    rolls("tunes that are no JSON", '{"train": [', "JSON", file="a.json"),
    rolls("tunes that are a text", '"hello"', "list", file="a.json"),
    rolls("tunes with a key off the piano", json.dumps([TUNE, [[7]]]), "sequence 1", "frame 0", "7", file="a.json"),
    rolls("tunes with half a key", json.dumps([[[60.5]]]), "sequence 0", "frame 0", "60.5", file="a.json"),
    rolls("tunes with a long text for a key", json.dumps([[["x" * 1_000_000]]]), "frame 0", file="a.json"),
    rolls("tunes nested too deeply", "[" * 100_000, "deep", file="a.json"),
    rolls("tune without a frame", json.dumps([TUNE, []]), "sequence 1", "empty", file="a.json"),
    rolls("tunes in Latin-1", '{"caf\xe9": []}'.encode("latin-1"), "a.json", file="a.json"),
    rolls("tunes in a damaged gzip", gzip.compress(json.dumps([TUNE] * 9).encode())[:-9], "gzip", file="a.json.gz"),
    rolls("MATLAB of version 7.3", b"\x89HDF\r\n\x1a\n" + bytes(200), "7.3", "-v7", file="a.mat"),
    rolls("text called MATLAB", "hello" * 50, "MATLAB", file="a.mat"),
    rolls("empty MATLAB file", b"", "MATLAB", file="a.mat"),
    rolls("cut MATLAB file", mat(traindata=[ROLL, ROLL])[:-100], "cut off", file="a.mat"),
    rolls("MATLAB without rolls", b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM", "nothing", file="a.mat"),
    rolls("MATLAB of other numbers", mat(traindata=[ROLL * 3.0]), "traindata, cell 0", "3.0", file="a.mat"),
    good(
        "rolls of truth values",
        "next-frame a.npz",
        {"a.npz": npz(**{f"a{i}": np.roll(ROLL, i) > 0 for i in range(30)})},
        sequences=30,
    ),
    good(
        "rolls in MATLAB",
        "next-frame a.mat",
        {"a.mat": mat(traindata=[ROLL] * 3, validdata=[ROLL], testdata=[ROLL])},
        "in train too",
        sequences=5,
    ),
]

CASES = [*LABELLED, *ROLLS]
