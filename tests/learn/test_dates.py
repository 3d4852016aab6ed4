"""Dates to ISO with attention: after a short training the alignment shows the year where it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unrolled


@pytest.mark.long
def test_the_alignment_of_a_year_falls_on_the_year(tmp_path: Path) -> None:
    settings = {"steps": 140, "d_state": 64, "d_embedding": 32, "batch_size": 48, "lr": 1e-2, "evaluate_every": 140,
                "held_out": 3000}  # fmt: skip
    run = unrolled.train(
        "builtin:dates,examples=8000", "translate", "seq2seq", tmp_path / "run", settings=settings, baselines={}
    )
    found = []
    for line in run.directory.read_lines("predictions.jsonl"):
        start = line["source"].find(line["target"][:4])
        heat = run.task.alignment_of(run.model, {"source": line["source"], "target": line["target"], "prediction": ""})
        assert start >= 0 and heat is not None and "".join(heat.rows[:4]) == line["target"][:4]
        looked = np.array(heat.values)[:4].argmax(axis=1)  # where, for each digit of the year
        found.append(np.mean((looked >= start) & (looked < start + 4)))
    assert len(found) >= 100
    assert np.mean(found) > 0.8
