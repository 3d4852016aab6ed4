"""The next-token task: its figures by brute force, its texts from saved runs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import unrolled
from unrolled.core.causal import begin
from unrolled.core.errors import UsageError
from unrolled.core.tokens import START, STOP
from unrolled.runs.run import Run

QUICK = {"steps": 15, "d_state": 10, "d_embedding": 6, "batch_size": 4, "length": 8, "warmup": 2, "threads": 1}


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("stream")
    (folder / "text.txt").write_text("so it goes, and so it went on.\n" * 60)
    return unrolled.train(folder / "text.txt", out=folder / "run", settings=QUICK | {"split": "80/10/10"})


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    rows = [
        {"name": "ab"[k] * (i % 7 + 1) + str(i % 9) + str(i % 11), "kind": "AB"[k]} for i in range(150) for k in (0, 1)
    ]
    settings = QUICK | {"column": "name", "condition": "kind", "steps": 250, "lr": 0.02, "split": "80/20"}
    return unrolled.train(rows, out=tmp_path_factory.mktemp("classes") / "run", settings=settings, model="gru")


def nats_by_hand(run: Run, tokens: list[int], state: object = None) -> float:
    with torch.no_grad():
        decoder = begin_decoder(run)
        y, _ = decoder(torch.tensor([tokens[:-1]]), state)
        return float(torch.nn.functional.cross_entropy(y[0], torch.tensor(tokens[1:]), reduction="sum"))


def begin_decoder(run: Run) -> torch.nn.Module:
    return getattr(run.model, "decoder", run.model)


def test_a_stream_is_measured_token_by_token(stream: Run) -> None:
    """The figure over parallel rows equals one pass over the whole part, up to the context that rows warm up on."""
    stream.task.prepare(stream.config.source)
    section = stream.task.prepared.sections["test"]
    tokens = [int(token) for token in section.values("target")]
    whole = nats_by_hand(stream, tokens)
    figures = stream.evaluate()
    assert figures["tokens"] == len(tokens) - 1
    assert figures["nats"] == pytest.approx(whole / (len(tokens) - 1), rel=1e-3)
    assert figures["bits_per_character"] == pytest.approx(figures["nats"] / math.log(2), rel=1e-6)
    assert figures["perplexity"] == pytest.approx(math.exp(figures["nats"]))


def test_examples_pay_for_their_stop(classes: Run) -> None:
    """Bits per character are all bits over all characters, those of <stop> included."""
    rows = [{"name": "aa1", "kind": "A"}, {"name": "bbb20", "kind": "B"}]
    figures = classes.evaluate(rows)
    scored = classes.score([row["name"] for row in rows], [row["kind"] for row in rows])
    nats = -sum(row["logp"] for row in scored)
    assert figures["tokens"] == 3 + 1 + 5 + 1
    assert figures["nats"] == pytest.approx(nats / 10, rel=1e-5)
    assert figures["bits_per_character"] == pytest.approx(nats / math.log(2) / 8, rel=1e-5)
    assert figures["bits_per_byte"] == pytest.approx(nats / math.log(2) / 8, rel=1e-5)


def test_scores_are_log_probabilities(stream: Run, classes: Run) -> None:
    line_end = int(stream.task.codec.encode("\n")[0])
    ids = [int(token) for token in stream.task.codec.encode("so it")]
    scored = stream.score(["so it", "on"])
    assert scored[0]["logp"] == pytest.approx(-nats_by_hand(stream, [line_end, *ids]), rel=1e-5)
    assert scored[0]["tokens"] == 5
    ids = [int(token) for token in classes.task.codec.encode("aa1")]
    _, state = begin(classes.model, torch.tensor([1]))
    scored = classes.score(["aa1"], ["B"])
    assert scored[0]["logp"] == pytest.approx(-nats_by_hand(classes, [START, *ids, STOP], state), rel=1e-5)
    assert scored[0]["tokens"] == 4


def test_a_class_decides_what_is_written(classes: Run) -> None:
    for kind in "AB":
        texts = [item["text"] for item in classes.generate("", condition=kind, n=8, max_tokens=12)]
        right = sum(text.startswith(kind.lower()) for text in texts)
        assert right >= 7, texts
    assert (
        classes.score(["aaa1", "aaa1"], ["A", "B"])[0]["logp"] > classes.score(["aaa1", "aaa1"], ["A", "B"])[1]["logp"]
    )


def test_generated_log_probability_is_the_scored_one(classes: Run) -> None:
    made = next(item for item in classes.generate("", condition="A", n=6, max_tokens=30) if item["finished"])
    assert classes.score([made["text"]], ["A"])[0]["logp"] == pytest.approx(made["logp"], rel=1e-4)


def test_what_is_streamed_is_what_is_generated(stream: Run) -> None:
    assert "".join(stream.stream("so ", max_tokens=25)) == stream.generate("so ", max_tokens=25)[0]["text"]


def test_special_tokens_are_never_written(stream: Run, classes: Run) -> None:
    for run, condition in ((stream, None), (classes, "A")):
        for item in run.generate("", n=5, max_tokens=40, condition=condition):
            assert "<" not in item["text"]


def test_a_run_can_be_evaluated_on_other_data(stream: Run, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("so it went, and so it goes on.\n" * 3 + "ß")
    figures = stream.evaluate(tmp_path / "other.txt")
    assert 0 < figures["unknown_share"] < 0.02


def test_what_does_not_fit_is_said(stream: Run, classes: Run) -> None:
    with pytest.raises(UsageError, match="without condition="):
        stream.generate("", condition="A")
    with pytest.raises(UsageError, match="A, B"):
        classes.generate("")
    with pytest.raises(UsageError, match="a single token"):
        stream.generate("", stop="so")
    with pytest.raises(UsageError, match="no split 'dev'"):
        stream.evaluate(split="dev")
