"""A comparison with a saved run has its model four times: from scratch, vectors only, frozen and fine-tuned."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import unrolled
from unrolled.comparison.api import make_plan
from unrolled.comparison.plan import repeat_command
from unrolled.core.errors import UsageError
from unrolled.runs.run import Run

ROWS = [{"text": f"{'ab'[i % 2] * 3} tick {i % 7}", "label": ("few", "many")[i % 2]} for i in range(60)]
QUICK = {"threads": 1, "split": "60/20/20", "warmup": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Run:
    texts, out = [row["text"] for row in ROWS], tmp_path_factory.mktemp("old") / "run"
    return unrolled.train(
        texts, "next-token", "gru", out, settings=QUICK | {"steps": 4, "d_state": 6, "d_embedding": 5}
    )


def test_a_saved_run_adds_four_rows(old: Run, tmp_path: Path) -> None:
    given = QUICK | {"from_run": str(old.path), "steps": 3, "models": "memoryless", "folds": None}
    found = unrolled.compare(ROWS, "classify", tmp_path / "compared", settings=given)
    labels = [row["label"] for row in found.table["rows"]]
    assert {"gru from scratch", "gru vectors only", "gru frozen", "gru fine-tuned", "memoryless"} <= set(labels)
    assert labels.count("gru") == 0
    runs = {
        way: unrolled.load(tmp_path / "compared" / f"gru-{way}-0")
        for way in ("from-scratch", "vectors-only", "frozen", "fine-tuned")
    }
    before = old.model.state_dict()
    for way, run in runs.items():
        assert run.config.model_settings["d_state"] == 6
        own = {name: tensor for name, tensor in run.model.state_dict().items() if name.startswith("body.")}
        same = all(torch.equal(tensor, before[name]) for name, tensor in own.items())
        assert same is (way == "frozen")
        assert (run.config.start.from_run is None) is (way == "from-scratch")
    assert f"--from {old.path}" in repeat_command(make_plan(ROWS, "classify", given))


def test_every_fraction_and_seed_has_them(old: Run) -> None:
    plan = make_plan(ROWS, "classify", QUICK | {"from_run": str(old.path), "steps": 3, "seeds": 2, "fractions": "0.5,1",
                                                "models": "memoryless", "folds": None})  # fmt: skip
    ours = [job for job in plan.jobs if job.model == "gru"]
    assert len(ours) == 2 * 2 * 4
    assert len({job.folder for job in ours}) == len(ours)
    assert "gru fine-tuned 0.5" in {job.label for job in ours}


def test_a_run_of_another_kind_is_refused(old: Run) -> None:
    pairs = [(row["text"], row["text"][::-1]) for row in ROWS]
    with pytest.raises(
        UsageError, match=r"its model 'gru' does not fit the task 'translate'.*models that fit: .*seq2seq"
    ):
        make_plan(pairs, "translate", QUICK | {"from_run": str(old.path), "steps": 3, "models": "seq2seq"})
