"""Training goes on from a saved run: its weights, its tokens, its sizes; parts of them stay as they are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from tests.training.conftest import SMALL
from unrolled.core.errors import DataError, Interrupted, UsageError
from unrolled.runs.run import Run
from unrolled.runs.storage import manifest
from unrolled.runs.storage.directory import RunDirectory
from unrolled.training.loop import Loop
from unrolled.training.progress import Quiet

WIDTHS = {"d_state", "d_embedding"}
QUICK = {key: value for key, value in SMALL.items() if key not in WIDTHS} | {"steps": 12}
ROWS = [{"text": f"{'ab'[i % 2] * (3 + i % 4)} state {i}", "label": ("few", "many")[i % 2]} for i in range(80)]


@pytest.fixture(scope="module")
def old(text: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What training goes on from; its letters are more than those of the data that follows."""
    file = tmp_path_factory.mktemp("old") / "text.txt"
    file.write_text(text + "xyz" * 30 + text)
    return unrolled.train(file, model="gru", out=file.parent / "run", settings=SMALL | {"steps": 12})


@pytest.fixture
def file(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "more.txt"
    path.write_text(text[::-1])
    return path


def tensors(run: Run) -> dict[str, torch.Tensor]:
    return dict(run.model.state_dict())


def train(data: Any, out: Path, **given: Any) -> tuple[Run, list[str]]:
    shown = Quiet()
    settings = QUICK | given.pop("settings", {})
    return unrolled.train(data, out=out, settings=settings, progress=shown, **given), shown.said


def test_what_is_not_said_is_as_it_was(old: Run, file: Path, tmp_path: Path) -> None:
    """Task, model, sizes and tokens; the first figure is that of the weights taken, on the new data."""
    run, said = train(file, tmp_path / "run", from_run=old.path)
    assert run.config.model == "gru"
    assert run.config.model_settings == old.config.model_settings
    assert run.config.ends.d_embedding == old.config.ends.d_embedding
    assert run.task.codec.to_json() == old.task.codec.to_json()
    assert run.config.start.from_run == str(old.path)
    assert run.config.from_vocabularies == ["decoder.embedding"]
    assert said[0] == f"from {old.path}: 7 of 7 tensors loaded: embedding (1), body (4), head (2)"
    first = next(line for line in run.directory.read_metrics() if line["step"] == 0)
    run.model.load_state_dict(old.model.state_dict())
    run.task.prepare(file)
    assert first["nats"] == pytest.approx(run.task.evaluate(run.model, "valid", limit=300)["nats"])


def test_a_pre_trained_body_classifies(old: Run, tmp_path: Path) -> None:
    settings = {"task.readout": "mean", "split": "60/20/20"}
    run, said = train(ROWS, tmp_path / "run", from_run=old.path, task="classify", freeze="encoder", settings=settings)
    before, after = tensors(old), tensors(run)
    for name in (name for name in after if not name.startswith("head.")):
        assert torch.equal(after[name], before[name]), name
    assert "tensors loaded: embedding (1), body (4); newly initialised: head" in "\n".join(said)
    head = sum(tensor.numel() for name, tensor in after.items() if name.startswith("head."))
    assert f"{head:,} of {run.result['parameters']:,} parameters are trained" in "\n".join(said)
    assert run.result["trained_parameters"] == head
    assert run.task.inputs.to_json() == old.task.codec.to_json()
    assert f"({head:,} of them trained, encoder frozen)" in (run.path / "README.md").read_text()
    assert set(unrolled.load(run.path).predict(["aaaa state 1"])[0].values()) & {"few", "many"}


def test_a_classifier_becomes_a_writer(old: Run, file: Path, tmp_path: Path) -> None:
    """The other way round, and through a second run."""
    settings = {"task.readout": "mean", "split": "60/20/20"}
    middle, _ = train(ROWS, tmp_path / "middle", from_run=old.path, task="classify", settings=settings)
    run, said = train(file, tmp_path / "run", from_run=middle.path, task="next-token", freeze=["embedding", "body"])
    assert "tensors loaded: embedding (1), body (4)" in "\n".join(said)
    before, after = tensors(middle), tensors(run)
    for name in (name for name in after if not name.startswith("head.")):
        assert torch.equal(after[name], before[name]), name
    assert run.task.codec.to_json() == old.task.codec.to_json()


def test_an_encoder_stays_while_its_decoder_is_trained(tmp_path: Path) -> None:
    """Both vocabularies of a translation are taken, also where the new pairs have fewer letters."""
    pairs = [{"source": f"ab{i % 7}c{i}", "target": f"c{i}b{i % 7}"} for i in range(60)]
    settings = {"steps": 4, "split": "60/20/20"}
    widths = {"d_state": 8, "d_embedding": 8}
    first, _ = train(pairs, tmp_path / "first", task="translate", model="seq2seq", settings=settings | widths)
    run, said = train(pairs[:40], tmp_path / "run", from_run=first.path, freeze="encoder", settings=settings)
    assert "newly initialised" not in said[0]
    assert run.config.from_vocabularies == ["encoder.embedding", "decoder.embedding"]
    before, after = tensors(first), tensors(run)
    same = {name for name in after if torch.equal(before[name], after[name])}
    assert {name for name in after if name.startswith("encoder.")} <= same
    assert "decoder.embedding.weight" not in same


def test_a_decoder_stays_while_another_encoder_learns_to_show_it_images(tmp_path: Path) -> None:
    """Captions are written in the tokens of the saved run, though the new ones have fewer words."""
    settings = {"steps": 2, "tokens": "word", "d_embedding": 4, "encoder": "cnn", "encoder.d_first": 2, "batch_size": 8}
    first, _ = train(
        "builtin:shapes,examples=60", tmp_path / "first", task="caption", model="encdec", settings=settings
    )
    images = np.random.default_rng(0).integers(0, 255, (12, 48, 48, 3), dtype=np.uint8)
    data = (images, ["a red circle" if i % 2 else "a green one" for i in range(12)])
    fewer = {"steps": 2, "batch_size": 8}
    run, said = train(data, tmp_path / "run", from_run=first.path, freeze="decoder", settings=fewer)
    assert "newly initialised" not in "\n".join(said)
    assert run.config.from_vocabularies == ["decoder.embedding"]
    assert run.task.codec.to_json() == first.task.codec.to_json()
    before, after = tensors(first), tensors(run)
    assert all(torch.equal(before[name], after[name]) for name in after if name.startswith("decoder."))
    assert not all(torch.equal(before[name], after[name]) for name in after if name.startswith("encoder."))


def test_token_vectors_keep_their_size_where_a_table_is_scaled(old: Run, file: Path, tmp_path: Path) -> None:
    """A writer starts both halves of a translation, and these a writer again: each token by its name."""
    pairs = [{"source": f"ab{i % 7}c{i}", "target": f"c{i}b{i % 7}"} for i in range(60)]
    settings = {"steps": 4, "split": "60/20/20", "vocabularies": "joint", "encoder": "gru", "decoder": "gru"}
    settings |= {f"{half}.d_state": old.config.model_settings["d_state"] for half in ("encoder", "decoder")}
    given = {"task": "translate", "model": "encdec", "settings": settings}
    pair, said = train(pairs, tmp_path / "pair", from_run=old.path, freeze="embedding", **given)
    assert "tensors loaded: encoder.embedding (1), encoder.body (4)" in "\n".join(said)
    again, _ = train(file, tmp_path / "again", from_run=pair.path, task="next-token", freeze="embedding", model="gru")

    def vectors(table: Any, codec: Any) -> dict[str, torch.Tensor]:
        rows = table(torch.arange(codec.size)[None])[0].detach()
        return {codec.name(i): rows[i] for i in range(codec.size)}

    known = vectors(old.model.embedding, old.task.codec)
    assert torch.stack([*known.values()]).std().item() > 0.5
    for table, codec in (
        (pair.model.encoder.embedding, pair.task.source_codec),
        (pair.model.decoder.embedding, pair.task.codec),
        (again.model.embedding, again.task.codec),
    ):
        found = vectors(table, codec)
        assert found.keys() == known.keys()
        for name, row in found.items():
            torch.testing.assert_close(row, known[name], msg=name)


def test_what_is_begun_anew_is_not_frozen(old: Run, file: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"embedding\.weight cannot be frozen: it was not loaded from the saved run .*body"
    ):
        train(file, tmp_path / "run", from_run=old.path, freeze="decoder", settings={"tokens": "byte"})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_the_optimiser_holds_only_what_is_trained(
    old: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str
) -> None:
    loops: list[Loop] = []
    original = Loop.train
    monkeypatch.setattr(Loop, "train", lambda self: (loops.append(self), original(self))[1])
    settings = {"optimiser": optimiser, "ends.dropout": 0.3, "weight_decay": 0.5, "lr": 0.05}
    run, _ = train(file, tmp_path / "run", from_run=old.path, freeze="everything-but-the-head", settings=settings)
    held, memory = loops[0].optimiser.weights, loops[0].optimiser.memory
    assert sum(p.numel() for p in held) == sum(held[i].numel() for i in memory) == loops[0].frozen.n_trained
    before, after = tensors(old), tensors(run)
    for name in after:
        assert torch.equal(before[name], after[name]) == (not name.startswith("head.")), name


def test_freezing_needs_no_saved_run(fit: Callable[..., Run]) -> None:
    """A table that stays as it was drawn."""
    run = fit("run", {"steps": 12, "freeze": "embedding"})
    other = fit("other", {"steps": 13, "freeze": "embedding"})
    assert run.config.start.freeze == ["embedding"]
    one, two = tensors(run), tensors(other)
    assert [name for name in one if torch.equal(one[name], two[name])] == ["embedding.weight"]


def test_resumed_it_ends_with_the_same_bits(old: Run, file: Path, tmp_path: Path) -> None:
    """Also without the run that it began with, once it has weights of its own."""
    origin = tmp_path / "origin"
    shutil.copytree(old.path, origin)
    given = {"from_run": origin, "freeze": "embedding", "settings": {"ends.dropout": 0.2, "steps": 16}}
    whole, _ = train(file, tmp_path / "whole", **given)

    def show(self: Loop, loss: float) -> None:
        self.stop.asked = self.at.step == 12

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Loop, "_show", show)
        train(file, tmp_path / "broken", **given)
    shutil.rmtree(origin)
    broken = unrolled.train(file, resume=tmp_path / "broken")
    for name in ("model.safetensors", "predictions.jsonl"):
        assert (whole.path / name).read_bytes() == (broken.path / name).read_bytes()


def test_stopped_before_its_first_checkpoint_it_begins_again_with_the_same_weights(
    old: Run, file: Path, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(old.path, origin)
    whole, _ = train(file, tmp_path / "whole", from_run=origin)
    shutil.copytree(whole.path, tmp_path / "broken")
    shutil.rmtree(tmp_path / "broken" / "checkpoints")
    (tmp_path / "broken" / "metrics.jsonl").unlink()
    seals = manifest.read_manifest(tmp_path / "broken")
    seals.prefixes.clear()
    (tmp_path / "broken" / manifest.NAME).write_text(seals.to_text())
    (tmp_path / "broken" / "result.json").unlink()
    shutil.copytree(tmp_path / "broken", tmp_path / "late")
    with pytest.raises(DataError, match=r"from_run is .*, which is opened only if you name it explicitly"):
        unrolled.train(file, resume=tmp_path / "broken")
    broken = unrolled.train(file, resume=tmp_path / "broken", from_run=origin)
    assert (whole.path / "model.safetensors").read_bytes() == (broken.path / "model.safetensors").read_bytes()
    RunDirectory.open(origin).write_tensors("model.safetensors", whole.model.state_dict())
    with pytest.raises(DataError, match="have changed"):
        unrolled.train(file, resume=tmp_path / "late", from_run=origin)


def test_tokens_said_by_hand_are_not_those_of_the_saved_run(old: Run, file: Path, tmp_path: Path) -> None:
    run, said = train(file, tmp_path / "run", from_run=old.path, settings={"tokens": "byte"})
    assert run.task.codec.kind == "byte"
    assert run.config.from_vocabularies == []
    assert "loaded: body (4); newly initialised: embedding: shape 20x6 instead of" in said[0]


def test_data_of_another_kind_has_its_own_vocabulary(old: Run, tmp_path: Path) -> None:
    numbers = torch.arange(900) ** 2 % 17
    run, said = train(numbers, tmp_path / "run", from_run=old.path)
    assert run.task.codec.kind == "number"
    assert "body (4)" in said[0]


def test_nothing_that_fits_is_an_error(old: Run, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of its weights fit"):
        train(file, tmp_path / "run", from_run=old.path, settings={"d_state": 5, "d_embedding": 7, "tokens": "byte"})
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="no part 'encoder'"):
        train(file, tmp_path / "run", from_run=old.path, freeze="encoder")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="'ngram' is fitted in closed form"):
        train(file, tmp_path / "run", from_run=old.path, model="ngram")
    with pytest.raises(DataError, match="not a run directory"):
        train(file, tmp_path / "run", from_run=tmp_path / "nowhere")


def test_by_command(old: Run, file: Path, tmp_path: Path) -> None:
    words = ["--steps", 4, "--threads", 1, "--split", "80/20", "-o", tmp_path / "run"]
    done = run_unrolled("train", file, "--from", old.path, "--freeze", "embedding,body", *words)
    assert "7 of 7 tensors loaded" in done.stderr
    assert "of them trained" in done.stdout
    again = unrolled.train(
        file, recipe=tmp_path / "run" / "recipe.toml", out=tmp_path / "again", settings={"threads": 1}
    )
    assert again.config.start == unrolled.load(tmp_path / "run").config.start
    assert (again.path / "model.safetensors").read_bytes() == (tmp_path / "run" / "model.safetensors").read_bytes()


def test_parts_that_are_asked_for_are_taken_alone(old: Run, file: Path, tmp_path: Path) -> None:
    run, said = train(file, tmp_path / "run", from_run=old.path, settings={"take": "embedding", "steps": 1, "lr": 1e-9})
    same = {name for name, tensor in tensors(run).items() if torch.allclose(tensor, tensors(old)[name], atol=1e-6)}
    assert same == {"embedding.weight"}
    assert any("1 of " in line and "not asked for" in line for line in said)
    with pytest.raises(UsageError, match=r"no part 'body\.layer'; "):
        train(file, tmp_path / "other", from_run=old.path, settings={"take": "body.layer"})
    with pytest.raises(UsageError, match=r"take=... needs from_run=..."):
        train(file, tmp_path / "third", settings={"take": "embedding"})
