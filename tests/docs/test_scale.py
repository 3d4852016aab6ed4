"""The arithmetic of docs/scale.md is right."""

from __future__ import annotations

import math
import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


def test_rounds_minutes_and_memory() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| ([\d.]+) \|$", TEXT, re.MULTILINE)
    assert {int(row[0]) for row in rows} == {10, 100, 1000}
    for row in rows:
        runs, processes, rounds, minutes = map(int, row[:4])
        assert rounds == math.ceil(runs / processes) and minutes == 10 * rounds, row
        assert float(row[4]) == round(0.6 * processes, 1), row
    assert "This is arithmetic, not measurement" in TEXT


def test_bytes_of_a_run_on_many_processes() -> None:
    rows = re.findall(
        r"^\| (\d+) ([MB]) \| ([\d.]+) GB \| ([\d.]+) GB \+ ([\d.]+) GB \| ([\d.]+) GB \| ([\d.]+) s \|$", TEXT, re.M
    )
    assert len(rows) == 4
    for size, unit, *figures in rows:
        gigabytes = int(size) * {"M": 1e-3, "B": 1.0}[unit] * 4  # of the weights alone
        training, divided, whole, gradients, seconds = map(float, figures)
        assert (training, divided, whole, gradients) == (4 * gigabytes, 4 * gigabytes / 8, gigabytes, gigabytes)
        assert seconds == round(2 * gigabytes, 1)
