"""A comparison that runs out of room stops at once, records no run as failed, and can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import unrolled
from unrolled.comparison import engine
from unrolled.core.errors import CannotWrite

ROWS = {"text": [f"{'abcdef'[i % 6] * 3} {i % 5}" for i in range(40)], "kind": ["xy"[i % 2] for i in range(40)]}
SETTINGS = {"models": "bow,dan", "steps": 1, "threads": 1, "column": "text", "target": "kind", "d_embedding": 4}


@pytest.mark.long
def test_no_room_for_one_of_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun = engine.perform, []

    def perform(order: Any, data: Any, tell: Any) -> None:
        begun.append(order["folder"])
        if order["model"] != "bow" or not order["trained"]:
            real(order, data, tell)
        else:
            tell({"event": "failed", "why": "out/bow-0 cannot be written", "code": CannotWrite.exit_code})

    monkeypatch.setattr(engine, "perform", perform)
    with pytest.raises(CannotWrite, match=r"bow-0: .* cannot be written; then resume with: unrolled\.compare"):
        unrolled.compare(ROWS, "classify", out=tmp_path / "out", settings=SETTINGS)
    assert begun[-1] == "bow-0"
    monkeypatch.undo()
    done = unrolled.compare(ROWS, resume=tmp_path / "out")
    assert not [row["label"] for row in done.rows if row["failed"]]
    assert {"bow", "dan"} <= {row["label"] for row in done.rows}
