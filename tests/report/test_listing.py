"""The list of runs, and that deleting takes runs and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unrolled.core.errors import UnrolledError, UsageError
from unrolled.report.listing import delete, list_all
from unrolled.runs.storage.locks import in_use


def test_runs_and_comparisons_with_their_figures(make: Any, tmp_path: Path) -> None:
    make.run("runs/deep/a", "lstm", 1.25)
    make.run("runs/b", "gru", finished=False)
    broken = make.run("runs/c")
    (broken / "MANIFEST.json").write_text("{")
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "runs" / "deep" / "a")
    folder = make.comparison("cmp", [make.row("6-gram", 1.0, kind="baseline"), make.row("tcn", 1.1, runs=["tcn-0"])])
    type(make)(folder).run("tcn-0", "tcn")
    found = {Path(entry.path).name: entry for entry in list_all([tmp_path])}
    assert set(found) == {"a", "b", "c", "cmp"}
    a = found["a"]
    assert (a.kind, a.state, a.task, a.model, a.score_name, a.score, a.parameters) == (
        "run", "finished", "next-token", "lstm", "nats", 1.25, 1234,
    )  # fmt: skip
    assert a.bytes == sum(file.stat().st_size for file in Path(a.path).rglob("*") if file.is_file())
    assert 0 <= a.age_seconds < 100
    assert (found["b"].state, found["b"].score) == ("unfinished", None)
    assert found["c"].state == "damaged"
    assert (found["cmp"].kind, found["cmp"].model, found["cmp"].score, found["cmp"].runs) == (
        "comparison",
        "tcn",
        1.1,
        1,
    )
    assert list_all([tmp_path / "nowhere"]) == []


def test_deleting_takes_the_whole_run_and_leaves_what_links_lead_to(make: Any, tmp_path: Path) -> None:
    run, kept = make.run("a"), make.run("kept")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (run / "figures").mkdir(exist_ok=True)
    (run / "figures" / "link").symlink_to(outside)
    (run / "link").symlink_to(outside)
    folder = make.comparison("cmp", [make.row("tcn", 1.1)])
    type(make)(folder).run("tcn-0", "tcn")
    delete([run, folder])
    assert not run.exists()
    assert not folder.exists()
    assert (outside / "file").read_text() == "mine"
    assert kept.exists()


def test_what_is_no_run_is_refused_before_anything_is_deleted(make: Any, tmp_path: Path) -> None:
    run = make.run("a")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "config.json").write_text("{}")
    home = make.comparison("home", [make.row("tcn", 1.1)])
    (home / "photographs").mkdir()
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "table.json").write_text('{"legs": 4}')
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "file").write_text("x")
    unsealed = make.run("unsealed")
    (unsealed / "MANIFEST.json").write_text("{}")
    for name in ("mine", "home", "odd", "link", "file", "nowhere", "unsealed"):
        with pytest.raises(UnrolledError) as caught:
            delete([run, tmp_path / name])
        assert name in str(caught.value)
        assert run.exists()
    assert (home / "photographs").exists()
    with pytest.raises(UsageError, match="link"):
        delete([tmp_path / "link"])


def test_what_is_in_use_is_not_deleted(make: Any) -> None:
    run, folder = make.run("a"), make.comparison("cmp", [make.row("tcn", 1.1)])
    member = type(make)(folder).run("tcn-0", "tcn")
    for named, busy in ((run, run), (folder, folder), (folder, member)):
        with in_use(busy), pytest.raises(UsageError, match=f"not deleted: {busy} is in use by another process"):
            delete([named])
        assert (member / "config.json").exists() and (run / "config.json").exists()
    (run / ".lock").touch()  # of a process that was killed
    delete([run, folder])
    assert not run.exists() and not folder.exists()
