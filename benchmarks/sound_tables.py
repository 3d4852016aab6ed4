"""The section of docs/results.md on sound, from what benchmarks.sound kept."""

from __future__ import annotations

from typing import Any

from benchmarks.answer_tables import COST, cost
from benchmarks.page import read, table


def report() -> str:
    """All tables that were measured."""
    text = digits() + tones() + memory()
    return f"\n## Sound\n\nNothing was selected on test data.\n{text}" if text else ""


def digits() -> str:
    """Bits per sample beside linear prediction and n-grams."""
    found = [each for each in (read("sound-wavenet"), read("sound-gru")) if each]
    if not found:
        return ""
    runs = [run for each in found for run in each["runs"]]
    rows = [[label, _bits(parts["test"]), "", "", ""] for label, parts in runs[0]["baselines"].items()]
    rows += [[run["model"], _bits(run["figures"]["test"]), *cost(run)] for run in runs]
    text = "\n### Spoken digits\n\nFSDD, 8 kHz, 256 levels by mu-law, the digit as the condition; the test split is "
    text += f"{runs[0]['settings']['held_out']:,} samples of takes 0-4. {runs[0]['time']} of training on one thread of "
    text += "a machine that did much other work meanwhile, so more is possible in that time.\n\n"
    return text + table(["model", "bits/sample", *COST], rows) + "\n"


def _bits(parts: dict[str, Any]) -> str:
    return f"{parts['bits_per_sample']:.3f}"


def tones() -> str:
    """Whether tones have the pitch that was asked for, and a student beside its teacher."""
    pitch, student = read("sound-pitch"), read("sound-student")
    rows = []
    if pitch:
        share = f"{100 * pitch['within_2_percent']:.0f} % of {pitch['samples']}"
        rows.append(["generated pitch within 2 % of the asked one", share])
    if student:
        speeds, apart = student["samples_a_second"], student["spectral_distance"]
        rows.append(["samples a second: teacher, student", f"{speeds['teacher']:,}, {speeds['student']:,}"])
        rows.append(["decibels from the data: teacher, student", f"{apart['teacher']:.2f}, {apart['student']:.2f}"])
    return f"\n### Tones\n\n{table(['measurement', 'result'], rows)}\n" if rows else ""


def memory() -> str:
    found = read("sound-memory")
    if not found:
        return ""
    most = f"{found['megabytes_at_most']:,} MB"
    return f"\n### Memory\n\nAn hour of 16 kHz sound trains in {most} of anonymous memory at its highest.\n"
