"""A run gives another a head start: pre-trained on masked tokens or on what comes next, then fine-tuned."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.run import Run
from unrolled.training.progress import Quiet

PLACES = ("north", "south", "east", "west")
DOCUMENTS = [f"The king of the {PLACES[i % 4]} saw a cat. The cat of the {PLACES[i % 4]} ran off." for i in range(48)]
QUICK = {"steps": 6, "batch_size": 8, "evaluate_every": 3, "evaluate_tokens": 200, "warmup": 1, "threads": 1,
         "split": "60/20/20", "lr": 0.01}  # fmt: skip
SMALL = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "d_embedding": 8}
ROWS = [{"text": f"the cat of the {PLACES[i % 4]} saw {i}", "label": PLACES[i % 4]} for i in range(60)]
TAGS = [{"words": each["text"].split(), "tags": [word[0] for word in each["text"].split()]} for each in ROWS]
PAIRS = [{"source": row["text"], "target": row["text"][::-1]} for row in ROWS]


def train(data: Any, out: Path, **given: Any) -> tuple[Run, str]:
    shown = Quiet()
    settings = QUICK | given.pop("settings", {})
    return unrolled.train(data, out=out, settings=settings, progress=shown, **given), "\n".join(shown.said)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("bert") / "run"
    own = SMALL | {"row_length": 32, "tokens": "word", "model.dropout": 0.0}
    return train(DOCUMENTS, out, task="masked-token", settings=own)[0]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("writer") / "run"
    own = SMALL | {"tokens": "char", "window": 0, "position": "learned", "n_positions": 80}
    return train([pair["target"] for pair in PAIRS], out, task="next-token", model="transformer", settings=own)[0]


def same(before: Run, after: Run) -> set[str]:
    old, new = before.model.state_dict(), after.model.state_dict()
    return {name for name in new if name in old and torch.equal(old[name], new[name])}


def test_a_frozen_body_stays_bit_for_bit_and_the_optimiser_holds_the_rest(bert: Run, tmp_path: Path) -> None:
    run, said = train(ROWS, tmp_path / "run", task="classify", from_run=bert.path, freeze="encoder")
    assert run.task.inputs.to_json() == bert.task.codec.to_json()
    body = {name for name in run.model.state_dict() if name.startswith("body.")}
    assert body <= same(bert, run)
    assert torch.equal(run.model.embedding.weight, bert.model.embedding.flat())  # with the vector of the first segment
    latest = max((run.path / "checkpoints").iterdir())
    kept = [key for key in _tensors(latest) if key.startswith("optimiser.")]
    trained = {key.split(".")[1] for key in kept}
    assert len(trained) == len([name for name in run.model.state_dict() if name.startswith("head.")])
    assert "frozen: embedding (1), body" in said
    names = run.task.example("the cat")[1]
    assert (names[0], names[-1]) == ("<class>", "<separator>")


def _tensors(checkpoint: Path) -> list[str]:
    from safetensors import safe_open

    files = [checkpoint] if checkpoint.is_file() else list(checkpoint.glob("*.safetensors"))
    return [key for file in files if file.suffix == ".safetensors" for key in safe_open(file, "pt").keys()]  # noqa: SIM118


def test_what_a_body_reads_is_what_it_was_pre_trained_with(bert: Run, tmp_path: Path) -> None:
    """The vectors behind the body of a fine-tuned model that has not moved are those of the pre-trained one."""
    run, _ = train(ROWS, tmp_path / "run", task="classify", from_run=bert.path, freeze="encoder")
    text = "the cat of the north saw"
    before, after = bert.task.example(text)[0], run.task.example(text)[0]
    assert before.x[..., 0].tolist() == after.x.tolist()
    bodies = [each.model._around(each.model.embedding, None, None).eval() for each in (bert, run)]
    with torch.no_grad():
        a, b = bodies[0](before.x, before.mask)[0], bodies[1](after.x, after.mask)[0]
    assert torch.allclose(a, b, atol=1e-6)


def test_layers_near_the_input_move_less(bert: Run, tmp_path: Path) -> None:
    settings = {"layer_rate": 0.1, "steps": 1, "evaluate_every": 1, "weight_decay": 0.0, "ends.dropout": 0.0}
    run, _ = train(ROWS, tmp_path / "run", task="classify", from_run=bert.path, settings=settings)
    old, new = bert.model.state_dict(), run.model.state_dict()
    moved = {k: float((new[k] - old[k]).abs().max()) for k in new if k in old and k.endswith("feed_forward.W_2.bias")}
    first, second = moved["body.blocks.0.feed_forward.W_2.bias"], moved["body.blocks.1.feed_forward.W_2.bias"]
    assert second == pytest.approx(0.1 * 0.01, rel=1e-3)  # Adam's first step is the rate
    assert first == pytest.approx(0.01 * 0.01, rel=1e-3)


def test_layers_are_unfrozen_one_by_one_and_resumed_so(bert: Run, tmp_path: Path) -> None:
    settings = {"unfreeze_every": 2, "steps": 4, "evaluate_every": 1, "ends.dropout": 0.0}
    run, _ = train(ROWS, tmp_path / "run", task="classify", from_run=bert.path, settings=settings)
    tensors = _tensors_of(run)
    stay = same(bert, _with(run, tensors))
    assert {name for name in tensors if name.startswith("body.blocks.0.")} <= stay  # from step 4 on
    assert not {name for name in tensors if name.startswith("body.blocks.1.feed_forward")} & stay  # since step 2


def _tensors_of(run: Run) -> dict[str, torch.Tensor]:
    """The weights after the last step, not the best ones."""
    from unrolled.runs.storage.checkpoint import Checkpoints

    found = Checkpoints(run.path / "checkpoints").latest()
    assert found is not None
    return {name.removeprefix("model."): each for name, each in found.tensors.items() if name.startswith("model.")}


def _with(run: Run, tensors: dict[str, torch.Tensor]) -> Run:
    run.model.load_state_dict(tensors)
    return run


def test_words_of_a_text_are_words_of_a_tagged_sentence(bert: Run, tmp_path: Path) -> None:
    """Vectors are taken by word; a table that has rows of other words cannot be frozen."""
    settings = {"letters": 0}
    run, said = train(TAGS, tmp_path / "run", task="tag", from_run=bert.path, settings=settings)
    assert "tokens that both vocabularies have" in said
    assert run.task.inputs.name(4) in run.task.inputs.words
    first, _ = train(TAGS, tmp_path / "one", task="tag", from_run=bert.path, settings=settings | {"lr": 1e-12})
    old, new = bert.task.codec, first.task.inputs
    row = new.encode(["cat"])[0]
    assert torch.allclose(first.model.embedding.weight[row], bert.model.embedding.flat()[old.encode(" cat")[0]])
    with pytest.raises(UsageError, match=r"embedding.weight cannot be frozen: \d+ of its \d+ rows"):
        train(TAGS, tmp_path / "two", task="tag", from_run=bert.path, freeze="embedding", settings=settings)


def test_numbers_are_predicted_and_a_writer_serves_alike(bert: Run, writer: Run, tmp_path: Path) -> None:
    rows = [{"text": each["text"], "size": float(i % 7)} for i, each in enumerate(ROWS)]
    _, said = train(rows, tmp_path / "numbers", task="regress", from_run=bert.path, freeze="everything-but-the-head")
    assert "embedding (1), body" in said
    run, said = train(ROWS, tmp_path / "classes", task="classify", from_run=writer.path, freeze="body")
    assert "tensors loaded: embedding (1), body" in said
    assert {name for name in run.model.state_dict() if name.startswith("body.")} <= same(writer, run)


def test_an_encoder_of_one_run_and_a_decoder_of_another(bert: Run, writer: Run, tmp_path: Path) -> None:
    given = {"task": "translate", "model": "encdec", "from_run": bert.path, "freeze": "encoder.body"}
    settings = {"decoder_from": str(writer.path)}
    run, said = train(PAIRS, tmp_path / "run", settings=settings | {"steps": 1, "evaluate_every": 1}, **given)
    assert run.config.model_settings["encoder"] == "bert"
    assert run.config.model_settings["decoder"] == "transformer"
    assert run.config.model_settings["decoder_settings"]["d_model"] == 8
    old, new = bert.model.state_dict(), run.model.state_dict()
    assert all(torch.equal(old[name.removeprefix("encoder.")], new[name]) for name in new if "encoder.body" in name)
    assert "decoder.body" in said
    assert str(writer.path) in said
    assert run.config.decoder_from_sha256
    with pytest.raises(UsageError, match=r"needs .*from_run"):
        train(PAIRS, tmp_path / "two", task="translate", settings={"decoder_from": str(writer.path)})


def test_a_copy_elsewhere_is_enough(bert: Run, tmp_path: Path) -> None:
    shutil.copytree(bert.path, tmp_path / "far" / "away")
    run, _ = train(ROWS, tmp_path / "run", task="classify", from_run=tmp_path / "far" / "away", settings={"steps": 1})
    assert run.predict(["the cat of the north saw 1"])[0]["prediction"] in PLACES


def test_what_does_not_fit_is_told(bert: Run, tmp_path: Path) -> None:
    rows = [{"text": chr(0x4E00 + i % 40) * 3, "label": "ab"[i % 2]} for i in range(60)]
    with pytest.raises(
        DataError, match=r"its vocabulary lacks \d+% of the tokens of this data; its tokens are such as"
    ):
        train(rows, tmp_path / "one", task="classify", from_run=bert.path)
    with pytest.raises(UsageError, match=r"no part 'pooler'; .*embedding"):
        train(ROWS, tmp_path / "two", task="classify", from_run=bert.path, freeze="pooler")
    with pytest.raises(UsageError, match=r"'bert' does not fit the task 'next-token'.*models that fit: .*transformer"):
        train(DOCUMENTS, tmp_path / "three", task="next-token", from_run=bert.path)
    series = np.random.default_rng(0).normal(size=(40, 5, 2)).astype(np.float32)
    other, _ = train(
        (series, series.sum((1, 2))), tmp_path / "four", task="regress", model="gru", settings={"d_state": 4}
    )
    with pytest.raises(UsageError, match=r"none of its weights fit this model .* use the same"):
        train(ROWS, tmp_path / "five", task="classify", from_run=other.path, model="dan")
