"""Sound: `python -m benchmarks.sound [PIECE ...] [--time 30m]`, each piece by itself, one thread.

    wavenet, gru    bits per sample of spoken digits (fsdd, 8 kHz, mu-law) under the digit, beside linear prediction of
                    order 32 and n-grams; 60,000 samples of takes 0-4 are the test split, of 5-6 validation
    pitch           share of generated tones whose pitch is within 2 % of the asked one
    student         a teacher of tones, its student by distillation: spectral distance to the data, samples a second
    memory          anonymous memory at its highest in training on an hour of 16 kHz sound

Spoken digits need UNROLLED_DATA (fsdd/fsdd_idx0-19.npz). Results go to benchmarks/results/sound-PIECE.json.
"""

from __future__ import annotations

import tempfile
import threading
import time as clock
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.pieces import Pieces, place, plain, run_pieces, trained

NOTES = ("A", "A#", "B", "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#")
SMALL = {"model.d_model": 32, "model.d_skip": 64, "d_embedding": 32, "threads": 1}
TONES = "builtin:tones,kind=tone,examples=240,seconds=0.12,rate=2000"
OF_TONES = {
    "model.d_model": 16,
    "model.d_skip": 32,
    "model.n_dilations": 7,
    "d_embedding": 16,
    "lr": 0.01,
    "chunk": 256,
}
LOUD = 16_000 * 3600
HELD = 60_000  # samples of validation and of test takes


def digits() -> dict[str, list[dict[str, Any]]]:
    """Takes 0-4 of each speaker and digit are the test split, as in the data's own description."""
    held = np.load(place("fsdd/fsdd_idx0-19.npz"))
    clips = np.split(held["audio"], held["offsets"][1:-1])
    parts: dict[str, list[dict[str, Any]]] = {"train": [], "valid": [], "test": []}
    for sound, digit, take in zip(clips, held["digit"].tolist(), held["index"].tolist(), strict=True):
        part = "test" if take < 5 else "valid" if take < 7 else "train"
        parts[part].append({"sound": sound, "digit": str(digit)})
    return parts


def bits(model: str, time: str, **own: Any) -> dict[str, Any]:
    settings = {
        "rate": 8000,
        "condition": "digit",
        "threads": 1,
        "chunk": 512,
        "batch_size": 8,
        "held_out": HELD,
        **own,
    }
    return plain(digits(), "next-sample", [(model, settings)], time, "bits per sample of the test takes, mu-law")


def wavenet(time: str = "30m") -> dict[str, Any]:
    return bits("wavenet", time, **SMALL)


def gru(time: str = "30m") -> dict[str, Any]:
    return bits("gru", time, d_state=128)


def pitch(time: str = "2m") -> dict[str, Any]:
    """Ten samples of each of the twelve notes, at temperature 0.6."""
    from unrolled.data.files.pitch import pitch_of

    with tempfile.TemporaryDirectory() as folder:
        own = {**OF_TONES, "condition": "note", "threads": 1, "batch_size": 8}
        run, kept = trained(TONES, "next-sample", "wavenet", time, own, Path(folder), {})
        off = []
        for step, note in enumerate(NOTES):
            made = run.generate(condition=note, n=10, seconds=0.1, temperature=0.6)
            off += [abs(pitch_of(each["samples"], 2000) / (110 * 2 ** (step / 12)) - 1) for each in made]
    return {**kept, "within_2_percent": float(np.mean(np.array(off) < 0.02)), "samples": len(off)}


def student(time: str = "5m") -> dict[str, Any]:
    """Teacher and student have the same time. Both are timed at what they generate; distances are to test pieces."""
    from unrolled.objectives.sound import spectral_distance
    from unrolled.training.distilling import distill

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        own = {**OF_TONES, "condition": "note", "threads": 1, "output": "logistic-mixture", "batch_size": 8}
        teacher, kept = trained(TONES, "next-sample", "wavenet", time, own, Path(folder), {})
        out, asked = Path(folder) / "student", {"time": time, "threads": 1, "batch_size": 8, "lr": 0.002}
        made = distill(teacher.path, None, "wavenet", out, settings=asked)
        speeds, distances = {}, {}
        for name, run, seconds in (("teacher", teacher, 0.5), ("student", made, 20.0)):
            began = clock.perf_counter()
            run.generate(condition="A", seconds=seconds)
            speeds[name] = round(seconds * 2000 / (clock.perf_counter() - began))
            section, found = teacher.task.sections["test"], []
            for number in range(section.n_examples):
                true = torch.from_numpy(teacher.task.codec.decode(section.fields["target"][number]))[None]
                vectors = section.fields["source"][number]
                note = teacher.task.conditions.columns[0].classes[int(vectors[0].argmax())]
                heard = run.generate(condition=note, seconds=0.12, seed=number)[0]["samples"]
                found.append(float(spectral_distance(torch.from_numpy(heard).to(true)[None], true, 64)))
            distances[name] = float(np.mean(found))
        result = {name: each for name, each in made.result.items() if name != "baselines"}
    return {"teacher": kept, "student": result, "samples_a_second": speeds, "spectral_distance": distances}


def memory(time: str = "20") -> dict[str, Any]:
    """An hour of noise in one file of 16 bits, some steps of training; RssAnon is what is not mapped from files."""
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        path, random = Path(folder) / "hour.wav", np.random.default_rng(0)
        with soundfile.SoundFile(path, "w", 16_000, 1, subtype="PCM_16") as file:
            for _ in range(60):
                file.write(random.uniform(-0.1, 0.1, LOUD // 60))
        peaks, done = [anonymous()], threading.Event()
        watching = threading.Thread(target=lambda: watch(peaks, done), daemon=True)
        watching.start()
        own = {**SMALL, "batch_size": 8, "chunk": 512, "held_out": 20_000, "steps": int(time), "evaluate_every": 10}
        _, kept = trained(str(path), "next-sample", "wavenet", time, own, Path(folder), {})
        done.set()
        watching.join()
    return {"megabytes_at_most": round(max(peaks) / 1e6), "megabytes_before": round(peaks[0] / 1e6), **kept}


def watch(peaks: list[float], done: threading.Event) -> None:
    while not done.wait(0.02):
        peaks.append(anonymous())


def anonymous() -> float:
    """RssAnon of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


PIECES: Pieces = {"wavenet": wavenet, "gru": gru, "pitch": pitch, "student": student, "memory": memory}

if __name__ == "__main__":
    run_pieces(PIECES, "sound", __doc__)
