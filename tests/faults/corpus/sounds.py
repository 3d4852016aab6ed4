"""Clips of sound: to classify, to denoise, to recognise; and strokes of a pen."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import soundfile

from tests.faults.corpus.arrays import npz
from tests.faults.corpus.case import Content, asks, bad, good, left_out

TONE = np.sin(np.arange(1600) / 8)  # a fifth of a second
RATE = 8000


def sound(samples: np.ndarray = TONE, rate: int = RATE, form: str = "WAV", subtype: str | None = "PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def wav(
    data: bytes, channels: int = 1, rate: int = RATE, bits: int = 16, told: int | None = None, kind: int = 1
) -> bytes:
    """A .wav file whose header tells anything."""
    step = channels * bits // 8
    fmt = struct.pack("<HHIIHH", kind, channels, rate, rate * step % 2**32, step, bits)
    size = len(data) if told is None else told
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", min(len(body), 2**32 - 1)) + body


PCM = (TONE * 20000).astype("<i2").tobytes()


def clips(odd: Content | None, name: str = "odd.wav") -> dict[str, Content]:
    """Clips of two classes, one of them odd."""
    files: dict[str, Content] = {f"clips/{'ab'[i % 2]}/{i}.wav": sound(TONE * (i + 1) / 30) for i in range(24)}
    return files if odd is None else {**files, f"clips/b/{name}": odd}


def classify(name: str, odd: Content, *says: str, file: str = "odd.wav") -> Any:
    return bad(name, "classify clips", clips(odd, file), file, *says)


def accepts(name: str, odd: Content, *says: str, file: str = "odd.wav") -> Any:
    return good(name, "classify clips", clips(odd, file), *says, examples=25)


def spoken(more: str = "", files: Mapping[str, Content] = {}, header: str = "file,text\n") -> dict[str, Content]:
    """A folder of clips with a table of what is said."""
    rows = "".join(f"{i}.wav,word {i}\n" for i in range(24))
    found: dict[str, Content] = {f"clips/{i}.wav": sound(TONE * (i + 1) / 30) for i in range(24)}
    return {**found, **files, "clips/transcripts.csv": header + rows + more}


def drawings(more: str) -> dict[str, Content]:
    rows = [json.dumps({"drawing": [[[0, 0], [i, 1], [2, i]]], "word": f"w{i % 3}"}) + "\n" for i in range(24)]
    return {"a.jsonl": "".join(rows) + more}


SOUNDS = [
    classify("empty wav", b"", "sound"),
    classify("text called wav", "hello", "sound"),
    classify("wav without samples", wav(b""), "no sound"),
    classify("wav of its header alone", wav(PCM)[:30], "sound"),
    classify("cut wav", sound()[:-800], "cut off"),
    classify("wav that tells of 2 GB", wav(PCM, told=2**31 - 10_000_000), "cut off"),
    classify("wav of no channels", wav(PCM, channels=0), "sound"),
    classify("wav of 0 samples a second", wav(PCM, rate=0), "sound"),
    classify("wav of 4 GHz", wav(PCM, rate=4_000_000_000), "sound"),
    classify("wav of 300 MHz", wav(PCM, rate=300_000_000), "300,000,000 samples a second"),
    classify("wav of another rate", sound(rate=16000), "16000", "8000"),
    classify("wav with NaN", sound(np.where(np.arange(1600) == 9, np.nan, TONE), subtype="FLOAT"), "sample 10", "nan"),
    classify("wav with infinity", sound(np.where(np.arange(1600) == 9, np.inf, TONE), subtype="FLOAT"), "sample 10"),
    classify("wav of an unknown coding", wav(PCM, kind=0x7777), "sound"),
    classify("mp3 called wav", b"ID3\x04\x00\x00\x00\x00\x00\x00" + bytes(300), "sound"),
    classify(
        "flac that tells of 69 billion samples",
        (lambda data: data[:21] + bytes([data[21] | 15]) + b"\xff" * 4 + data[26:])(sound(form="FLAC")),
        "68,719,476,735 samples",
        file="odd.flac",
    ),
    classify("cut flac", sound(form="FLAC")[:-300], "sound", file="odd.flac"),
    classify("cut ogg", sound(form="OGG", subtype="VORBIS")[:-300], "odd.ogg", file="odd.ogg"),
    accepts("one sample", sound(TONE[:1])),
    accepts("8-bit wav", sound(subtype="PCM_U8")),
    accepts("24-bit wav", sound(subtype="PCM_24")),
    accepts("32-bit wav", sound(subtype="PCM_32")),
    accepts("float wav", sound(subtype="FLOAT")),
    accepts("double wav", sound(subtype="DOUBLE")),
    accepts("A-law wav", sound(subtype="ALAW")),
    accepts("mu-law wav", sound(subtype="ULAW")),
    accepts("six channels", sound(np.stack([TONE] * 6, 1))),
    accepts("flac", sound(form="FLAC"), file="odd.flac"),
    accepts("ogg", sound(form="OGG", subtype="VORBIS"), file="odd.ogg"),
    accepts("capital ending of a clip", sound(), file="ODD.WAV"),
    accepts("silence", sound(TONE * 0)),
    accepts("wav written by a stream", wav(PCM, told=0xFFFFFFFF)),
    bad(
        "one folder, one class", "classify clips", {f"clips/a/{i}.wav": sound(TONE * i / 30) for i in range(24)}, "'a'"
    ),
    bad("clips without folders", "classify clips", {"clips/a.wav": sound(), "clips/b.wav": sound()}, "a.wav", "folder"),
    bad(
        "a clip that fits no pattern",
        "classify clips 'pattern=(?P<answer>\\d)_.*'",
        {f"clips/{i}_x.wav": sound(TONE * i / 9) for i in range(9)} | {"clips/x.wav": sound()},
        "x.wav",
        "pattern",
    ),
    bad("noisy without clean", "denoise clips", {"clips/noisy/a.wav": sound(), "clips/clean/b.wav": sound()}, "a.wav"),
    bad(
        "noisy longer than clean",
        "denoise clips",
        {f"clips/{k}/{i}.wav": sound(TONE * i / 9) for k in ("noisy", "clean") for i in range(9)}
        | {"clips/noisy/9.wav": sound(TONE[:99]), "clips/clean/9.wav": sound()},
        "9.wav",
        "99",
        "1600",
    ),
    bad("a table and no clips", "recognise clips", {"clips/t.csv": "file,text\n" + "a.wav,b\n" * 9}, "t.csv", "a.wav"),
    bad(
        "transcripts with a header alone",
        "recognise clips",
        {"clips/a.wav": sound(), "clips/t.csv": "file,text\n"},
        "t.csv",
        "no row",
    ),
    bad(
        "clips without texts",
        "recognise clips",
        {"clips/a.wav": sound(), "clips/t.csv": "file,text\na.wav,\n" * 1},
        "t.csv",
        "text",
    ),
    bad(
        "clip outside the folder", "recognise clips", spoken("../x.wav,no\n", {"x.wav": sound()}), "line 26", "../x.wav"
    ),
    bad("clip by an absolute path", "recognise clips", spoken("/dev/zero,no\n"), "line 26", "/dev/zero"),
    asks("transcripts without a column of texts", "recognise clips target_column=said", spoken(), "said"),
    *left_out("a clip that is not there", "recognise clips", spoken("gone.wav,no\n"), "gone.wav", examples=24),
    *left_out(
        "a clip that is cut",
        "recognise clips",
        spoken("cut.wav,no\n", {"clips/cut.wav": sound()[:-700]}),
        "cut off",
        examples=24,
    ),
    *left_out("a transcript that is blank", "recognise clips", spoken("23.wav, \n"), "empty", examples=24),
]

STROKES = [
    bad(
        "no drawing at all", "recognise a.jsonl", {"a.jsonl": '{"drawing": 3, "word": "a"}\n' * 9}, "a.jsonl", "line 1"
    ),
    bad(
        "drawings of NaN",
        "recognise a.jsonl",
        {"a.jsonl": '{"drawing": [[[0, NaN], [1, 2]]], "word": "a"}\n' * 9},
        "line 1",
        "finite",
    ),
    bad("numbers that are not pairs", "recognise a.csv", {"a.csv": "x1,y1,x2,word\n" + "1,2,3,a\n" * 9}, "a.csv", "3"),
    bad(
        "arrays of points that are none",
        "recognise a.npz",
        {"a.npz": npz(points=np.ones((90, 5)), offsets=np.arange(0, 91, 9), text=np.array(["a", "b"] * 5))},
        "a.npz",
        "example 0",
    ),
    asks("arrays without texts", "recognise a.npz", {"a.npz": npz(points=np.ones((90, 3)))}, "a.npz", "points"),
    good(
        "a drawing of one place", "recognise a.jsonl", drawings('{"drawing": [[[5, 5]]], "word": "dot"}\n'), examples=25
    ),
    *left_out(
        "a drawing of text",
        "recognise a.jsonl",
        drawings('{"drawing": "circle", "word": "a"}\n'),
        "line 25",
        examples=24,
    ),
    *left_out(
        "a ragged drawing",
        "recognise a.jsonl",
        drawings('{"drawing": [[[1, 2], [3]]], "word": "a"}\n'),
        "line 25",
        examples=24,
    ),
    *left_out(
        "a drawing that is empty",
        "recognise a.jsonl",
        drawings('{"drawing": [], "word": "a"}\n'),
        "line 25",
        examples=24,
    ),
    *left_out(
        "a drawing with infinity",
        "recognise a.jsonl",
        drawings('{"drawing": [[[1, Infinity]]], "word": "a"}\n'),
        "line 25",
        examples=24,
    ),
]

CASES = [*SOUNDS, *STROKES]
