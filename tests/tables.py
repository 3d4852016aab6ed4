"""Small comparisons whose tables are set beside each other: who did the runs must not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.comparison.saved import Comparison

WORDS = ["one two three four five six seven eight nine ten"[i % 7 : i % 7 + 24] for i in range(400)]
SMALL = {"batch_size": 8, "d_embedding": 8, "models": "elman,gru", "threads": 1, "elman.d_state": 8, "gru.d_state": 8}
NAMES = ("score", "valid", "interval", "spread", "figures", "parameters", "steps", "failed", "weights")


def write_words(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text("\n".join(WORDS * 4), encoding="utf-8")
    return path


def told(settings: dict[str, Any]) -> list[str]:
    """Settings as words of a command."""
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def scores(found: Comparison) -> dict[str, Any]:
    """What is the same, digit by digit, whoever did the runs."""
    return {row["label"]: {name: row[name] for name in NAMES} for row in found.rows}
