"""Masked tokens: what is learned and measured, gaps that are filled, and sentences about data that does not do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError
from unrolled.core.tokens import MASK
from unrolled.data.masking import NEXT
from unrolled.runs.run import Run

NAMES = ("king", "queen", "cat", "dog")
VERBS = ("saw", "had", "met", "ate", "hid")
TEXTS = [
    f"the {NAMES[i % 4]} {VERBS[i // 4 % 5]} it . then the {NAMES[i // 20]} {VERBS[i % 5]} me ." for i in range(60)
]
SMALL = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "d_embedding": 16, "row_length": 24, "tokens": "word",
         "split": "60/20/20", "threads": 1, "warmup": 5, "batch_size": 16, "lr": 0.01, "model.dropout": 0}  # fmt: skip

LEARNED = {"steps": 160, "evaluate_every": 80, "masked": 0.2, "lr": 5e-3, "norm": "pre", "next_sentence": 0.3}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("bert") / "run"
    return unrolled.train(TEXTS, "masked-token", out=out, settings=SMALL | LEARNED)


def test_both_sides_are_learned_from(run: Run) -> None:
    """What stands before and behind a gap decides what fills it, better than counts of the token before."""
    gaps = {"the [MASK] saw it . then the king saw me .": NAMES, "the cat saw [MASK] . then the king saw me .": ("it",)}
    for text, words in gaps.items():
        found = run.predict([text])[0]
        assert found["token"].removeprefix("␣") in words
        assert found["prediction"] == text.replace("[MASK]", found["token"].removeprefix("␣"))
        assert sum(each["p"] for each in found["gaps"][0]) <= 1
    figures, told = run.result["test"], run.result["baselines"]
    assert set(told) == {"unigram", "left bigram", "two-sided n-gram"}
    assert figures["masked_accuracy"] > told["unigram"]["test"]["masked_accuracy"]
    assert figures["nats"] < told["left bigram"]["test"]["nats"]
    assert figures["masked_perplexity"] == pytest.approx(np.exp(figures["nats"]))


def test_figures_are_those_of_the_hidden_positions(run: Run) -> None:
    """Against a count over the same batches by hand."""
    from unrolled.data.masking import measured_batches

    run.task.prepare(TEXTS)
    section, V, nats, right, n, told = run.task.sections["test"], run.task.codec.size, 0.0, 0, 0, []
    for batch in measured_batches(section, np.arange(section.n_examples), 4, run.task.masking):
        with torch.no_grad():
            y = run.model(batch.x, batch.mask)[0]
        for row in range(len(y)):
            told.append(int(y[row, 0, V:].argmax() == batch.targets[NEXT][row]))
            for place, target in zip(batch.at[row].tolist(), batch.y[row].tolist()):
                if target:
                    logp = y[row, place, :V].log_softmax(-1)
                    nats, right, n = nats - float(logp[target]), right + int(logp.argmax() == target), n + 1
    found = run.task.evaluate(run.model, "test")
    assert found["nats"] == pytest.approx(nats / n, rel=1e-5)
    assert found["masked_accuracy"] == pytest.approx(right / n)
    assert found["next_sentence_accuracy"] == pytest.approx(np.mean(told))


def test_the_loss_is_the_sum_of_both_at_hidden_positions_only(run: Run) -> None:
    run.task.prepare(TEXTS)
    batch = run.task.sampler(run.config.batching, False, 0).batch(0)
    y = torch.randn(*batch.at.shape, run.task.ports().d_out, requires_grad=True)
    total, count = run.task.loss(y, batch)
    V, real = run.task.codec.size, batch.real
    tokens = torch.nn.functional.cross_entropy(y[..., :V][real], batch.y[real])
    follows = torch.nn.functional.cross_entropy(y[:, 0, V:], batch.targets[NEXT])
    assert (total / count).item() == pytest.approx((tokens + 0.3 * follows).item(), rel=1e-5)
    (total / count).backward()
    assert y.grad is not None
    assert not y.grad[..., :V][~real].any()


def test_a_second_segment_has_a_probability(run: Run) -> None:
    found = run.predict(["the king saw it . [SEP] then the king saw me ."])[0]
    assert 0 <= found["p_next"] <= 1
    assert "token" not in found


def test_the_command_fills_a_gap(run: Run, tmp_path: Path) -> None:
    done = run_unrolled("predict", str(run.path), "the cat saw [MASK] . then the king saw me .", cwd=tmp_path)
    assert json.loads(done.stdout)["prediction"] == "the cat saw it . then the king saw me ."
    (tmp_path / "lines.txt").write_text("no gap here\n")
    done = run_unrolled("predict", str(run.path), "lines.txt", cwd=tmp_path, code=3)
    assert "there is no gap to fill; write [MASK] where a token is to be predicted" in done.stderr


def test_data_that_does_not_do(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("One document. With sentences.\n")
    quick = SMALL | {"steps": 1}
    with pytest.raises(DataError, match=r"found one document, expected several: separate documents with blank lines"):
        unrolled.train(tmp_path / "one.txt", "masked-token", out=tmp_path / "a", settings=quick)
    (tmp_path / "few.txt").write_text("\n\n".join(f"Document {i}. It is." for i in range(4)))
    with pytest.raises(DataError, match=r"split has one document, so there is no other .* next_sentence=0"):
        unrolled.train(tmp_path / "few.txt", "masked-token", out=tmp_path / "b", settings=quick)
    with pytest.raises(DataError, match="the data is numbers, expected text"):
        unrolled.train([[1, 2], [3, 4]], "masked-token", out=tmp_path / "c", settings=quick)
    quick |= {"next_sentence": 0}
    run = unrolled.train(tmp_path / "few.txt", "masked-token", out=tmp_path / "d", settings=quick)
    assert "next_sentence_accuracy" not in run.result["test"]
    assert run.task.codec.special(MASK) == 4
