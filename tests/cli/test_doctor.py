"""`unrolled doctor`: what it reports is what serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import run_unrolled
from unrolled.kernels import native


def test_it_reports_what_serves_and_why() -> None:
    level, why, _ = native.loaded()
    shown = run_unrolled("doctor").stdout
    assert shown.startswith(f"native kernels  {level}: {why}\n")
    assert "1.0 times torch.nn" in shown
    rows = [line.split()[0] for line in shown.splitlines() if line.endswith("times torch.nn")]
    assert rows == ["torch.nn", "off", *([] if level == "off" else [level])]


def test_for_scripts() -> None:
    facts = json.loads(run_unrolled("doctor", "--no-speed", "--json").stdout)
    assert set(facts) == {"native", "threads", "cores", "versions"}
    assert facts["native"]["built"] == native.built()
    assert facts["versions"].keys() == {"unrolled", "torch", "python"}


def test_a_level_that_is_none(monkeypatch) -> None:
    monkeypatch.setenv("UNROLLED_NATIVE", "off")
    assert run_unrolled("doctor", "--no-speed").stdout.startswith("native kernels  off: UNROLLED_NATIVE=off\n")
    monkeypatch.setenv("UNROLLED_NATIVE", "fast")
    done = run_unrolled("doctor", "--no-speed", code=2)
    assert done.stderr == "unrolled: invalid value UNROLLED_NATIVE='fast': expected off, v2, v3, v4, neon\n"


@pytest.mark.skipif(not native.built(), reason="no native library was built")
def test_how_a_run_generates(monkeypatch) -> None:
    monkeypatch.delenv("UNROLLED_NATIVE", raising=False)
    runs = Path(__file__).parents[1] / "fixtures" / "runs"

    def told(name: str) -> str:
        lines = run_unrolled("doctor", str(runs / name), "--no-speed").stdout.splitlines()
        return next(line for line in lines if line.startswith("generates")).removeprefix("generates").strip()

    assert told("handwriting-text") == "by torch, tick by tick: WindowDecoder has no native form"
    assert told("translate") == "natively"
    assert told("classify") == "not at all: the model reads whole sequences"
    monkeypatch.setenv("UNROLLED_NATIVE", "off")
    assert told("next-token") == "by torch, tick by tick: no native kernels (UNROLLED_NATIVE=off)"
    monkeypatch.delenv("UNROLLED_NATIVE")
    assert told("next-token") == "natively"
