"""Comparisons of models that write texts: ranked by what their users judge by, on the texts that all of them wrote."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF

import unrolled
from unrolled.cli.table import print_comparison
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.table import make_table
from unrolled.core.metric import Metric
from unrolled.report.page import write_report
from unrolled.runs.storage.directory import RunDirectory
from unrolled.tasks import _judged

CHRF2, BLEU4, NATS = _judged.CHRF, _judged.BLEU, _judged.NATS
REFERENCES = [
    f"the {a} {b} sat on the {c} of our old {d}" for a, b, c, d in itertools.product("ab", "cd", "efg", "hijk")
]
GOOD = [text.replace("our", "one") for text in REFERENCES]
BAD = [" ".join(text.split()[::-3]) for text in REFERENCES]


def write_run(path: Path, texts: list[str | None], nats: float, model: str) -> None:
    """A finished run that wrote some texts, None where it had no time."""
    run = RunDirectory.create(path)
    run.write_config({"task": "translate", "model": model, "source": "memory", "versions": {}})
    run.write_json("data.json", {"facts": {}})
    rows = np.array([i for i, text in enumerate(texts) if text is not None])
    metrics = [CHRF2, BLEU4, NATS]
    found = _judged.judge(metrics, [texts[i] for i in rows], [REFERENCES[i] for i in rows])
    units = {"nats": torch.tensor([[5 * nats, 5.0]] * len(texts))}
    for metric, statistics in found.items():
        units[metric.name] = torch.full((len(texts), statistics.shape[1]), float("nan"), dtype=torch.float64)
        units[metric.name][rows] = torch.from_numpy(statistics)
    run.write_tensors(
        "units.safetensors", {f"{s}.{name}": each for s in ("valid", "test") for name, each in units.items()}
    )
    figures = {**_judged.values(found), "nats": nats, "written": len(rows), "tokens": 5 * len(texts)}
    run.write_json("result.json", {
        "parameters": 10, "valid": figures, "test": figures, "steps": 5, "training_seconds": 1.0, "score": "chrf",
        "tokens_per_second": 10, "metrics": [metric.to_json() for metric in metrics], "criterion": "nats",
        "figures": ["chrf", "bleu", "nats"], "cost": {}, "units": len(rows), "unit": "examples", "baselines": {},
    })  # fmt: skip
    run.append_metrics({"step": 5, "split": "valid", "nats": nats, "seconds": 1.0})
    run.seal()


def table_of(folder: Path, **texts) -> dict:
    """{label: (kind, texts, nats)} as the table of a comparison."""
    jobs = [Job(folder=f"{name}-0", label=name, kind=kind, model=name) for name, (kind, _, _) in texts.items()]
    for name, (_, written, nats) in texts.items():
        write_run(folder / f"{name}-0", written, nats, name)
    asked = CompareConfig(models="a", steps=5)
    plan = Plan(
        data="memory", task="translate", guessed=None, asked=asked, settings={}, jobs=jobs, at_once=1, threads=1
    )
    return make_table(folder, plan, "unrolled compare", {}, True)


def test_better_nats_and_a_tenth_of_the_bleu_do_not_rank_first(tmp_path):
    found = table_of(tmp_path, seq2seq=("model", BAD, 2.31), dictionary=("baseline", GOOD, 4.02))
    by_label = {row["label"]: row for row in found["rows"]}
    assert by_label["seq2seq"]["figures"]["bleu"] < by_label["dictionary"]["figures"]["bleu"] / 10
    assert [row["label"] for row in found["rows"]] == ["dictionary", "seq2seq"]
    assert found["winner"] is None and by_label["seq2seq"]["beaten_by"] == ["dictionary"]
    row = by_label["dictionary"]
    assert row["score"] == row["valid"] == pytest.approx(CHRF().corpus_score(GOOD, [REFERENCES]).score)
    assert row["figures"]["bleu"] == pytest.approx(BLEU().corpus_score(GOOD, [REFERENCES]).score)
    assert row["interval"][0] <= row["score"] <= row["interval"][1]
    said = "seq2seq has the lowest nats (2.3100 against 4.0200), but dictionary has the higher chrF ("
    assert said in found["verdict"] and "No model beats the baseline dictionary" in found["verdict"]


def test_the_best_model_is_the_one_with_the_higher_chrf(tmp_path):
    found = table_of(tmp_path, low=("model", BAD, 2.31), high=("model", GOOD, 4.02))
    assert found["selected"] == found["winner"] == "high"
    said = io.StringIO()
    print_comparison(tmp_path, found, said)
    assert "low has the lowest nats" in said.getvalue() and "BLEU" in said.getvalue()


def test_where_metrics_agree_nothing_is_said(tmp_path):
    found = table_of(tmp_path, low=("model", BAD, 4.02), high=("model", GOOD, 2.31))
    assert "but" not in found["verdict"]


def test_rows_are_compared_on_the_texts_that_all_of_them_wrote(tmp_path):
    """One had time for half of the texts, and those of the other half were easy for the other."""
    half = [text if i < 24 else None for i, text in enumerate(GOOD)]
    mixed = [GOOD[i] if i < 24 else REFERENCES[i] for i in range(len(GOOD))]
    found = table_of(tmp_path, slow=("model", half, 2.0), fast=("model", mixed, 3.0))
    wanted = CHRF().corpus_score(GOOD[:24], [REFERENCES[:24]]).score
    assert [row["score"] for row in found["rows"]] == pytest.approx([wanted, wanted])
    assert [row["valid"] for row in found["rows"]] == pytest.approx([wanted, wanted])
    assert found["winner"] is None and found["units"] == 24
    assert any(
        "chrF is computed on 24 of 48 test examples, the same ones for all models" in note for note in found["notes"]
    )


def test_a_comparison_of_real_runs_is_ranked_by_the_score_of_the_task(tmp_path):
    pairs = [
        (" ".join(words), " ".join(word.upper() for word in words)) for words in itertools.product("abcd", repeat=4)
    ]
    settings = {"models": "seq2seq", "steps": 3, "seq2seq.d_state": 8, "tokens": "word", "split": "80/10/10",
                "score": "chrf", "evaluate_every": 3}  # fmt: skip
    found = unrolled.compare(pairs, task="translate", out=tmp_path / "out", settings=settings)
    assert found.table["score"] == "chrf" and found.table["criterion"] == "nats"
    valid = [row["valid"] for row in found.rows]
    assert valid == sorted(valid, reverse=True) and found.rows[0]["label"] == "word by word"
    assert found.rows[0]["score"] > 2 * found.rows[-1]["score"]
    run = found.run("seq2seq-0")
    assert run.result["test"]["chrf"] == pytest.approx(
        next(row["score"] for row in found.rows if row["label"] == "seq2seq"), abs=1e-9
    )
    assert [set(line) & {"chrf", "nats"} for line in run.directory.read_metrics()] == [{"nats"}] * 2
    page = write_report([found.path]).read_text(encoding="utf-8")
    assert "larger is better" in page and "validation nats" in page
    assert Metric(**run.result["metrics"][0]) == CHRF2
