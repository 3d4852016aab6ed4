"""The caption task: from pictures to a saved run that captions other pictures, and where it looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import unrolled
from tests.commands import run_unrolled
from unrolled.comparison.api import make_plan
from unrolled.core.causal import begin
from unrolled.core.errors import DataError, UsageError
from unrolled.data.builtin.shapes import picture, shape_pictures
from unrolled.layers.parts.dropout import WordDropout
from unrolled.pictures.draw import html
from unrolled.pictures.kinds import Heatmap, Images
from unrolled.pictures.png import pixels_of
from unrolled.runs.run import Run, load
from unrolled.tasks import caption
from unrolled.training.api import configure

DATA = "builtin:shapes,examples=120"
QUICK = {
    "steps": 6, "batch_size": 16, "warmup": 1, "threads": 1, "lr": 0.003, "tokens": "word", "d_embedding": 8,
    "model.encoder": "cnn", "model.decoder": "gru", "encoder.d_first": 4, "decoder.d_state": 16,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caption")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return unrolled.train(DATA, task="caption", model="encdec", out=folder / "run", settings=QUICK)


def test_images_are_read_by_a_cnn_unless_another_encoder_is_named() -> None:
    data = "builtin:shapes,examples=40"
    advised = configure("caption", "encdec", data, {})
    assert advised.model_settings["encoder"] == "cnn"
    assert configure("translate", "encdec", "x.tsv", {}).model_settings["encoder"] == "bigru"
    assert configure("caption", "encdec", data, {"encoder": "lstm"}).model_settings["encoder"] == "lstm"
    assert "encdec" in {job.model for job in make_plan(data, "caption", {"steps": 1, "tokens": "word"}).jobs}


def test_figures_stand_beside_baselines(run: Run) -> None:
    test = run.result["test"]
    assert {"nats", "token_accuracy", "exact_match", "bleu", "chrf"} <= set(test)
    assert set(run.result["baselines"]) == {"most frequent text", "text of the nearest"}


def test_predictions_carry_their_images(run: Run) -> None:
    lines = [json.loads(line) for line in (run.path / "predictions.jsonl").read_text().splitlines()]
    assert lines[0]["source"] == "image 20 of the data"
    assert lines[0]["target"] == picture(19).caption
    assert lines[0]["image"].startswith("data:image/png;base64,")
    again = run.predict([lines[0]["image"], picture(19).image])
    assert {line["prediction"] for line in again} == {lines[0]["prediction"]}


def test_a_saved_run_captions_files_and_folders(run: Run, folder: Path) -> None:
    pictures = folder / "pictures"
    pictures.mkdir()
    for i in range(3):
        Image.fromarray(picture(i).image).save(pictures / f"{i}.png")
    saved = load(run.path)
    wanted = [line["prediction"] for line in saved.predict([picture(i).image for i in range(3)])]
    told = run_unrolled("predict", str(run.path), str(pictures), "--json")
    assert told.returncode == 0, told.stderr
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["prediction"] for line in found] == wanted
    assert found[1]["source"].endswith("1.png")
    Image.new("RGB", (20, 10)).save(pictures / "0.png")
    with pytest.raises(DataError, match="the image is 20 pixels wide, but this run reads 48"):
        saved.predict([str(pictures / "0.png")])
    with pytest.raises(DataError, match="no such file"):
        saved.predict([str(pictures / "none.png")])
    with pytest.raises(DataError, match="expected the name of an image file"):
        saved.predict([3])


def test_where_it_looks_is_shown_over_the_image(run: Run) -> None:
    run.task.prepare(DATA)
    made = run.task.pictures(run.model, "valid")
    looks = made["looks"]
    assert isinstance(looks, Images)
    assert len(looks.images) == len(looks.captions) > 0
    assert {pixels_of(image).shape for image in looks.images} == {(48, 48, 3)}
    assert "base64" in html(made["samples"])


@pytest.mark.parametrize(("model", "settings", "kind"), [
    ("seq2seq", {"model.d_state": 8, "model.context": "attention"}, Heatmap),
    ("seq2seq", {"model.d_state": 8, "model.context": "start"}, type(None)),
    ("encdec", {"model.encoder": "cnn", "model.decoder": "transformer", "encoder.d_first": 4, "decoder.d_model": 8,
                "decoder.n_layers": 1, "decoder.n_heads": 2}, Images),
])  # fmt: skip
def test_other_models_read_the_rows_of_an_image(
    tmp_path: Path, model: str, settings: dict[str, Any], kind: type
) -> None:
    plain = {key: value for key, value in QUICK.items() if "coder" not in key}
    run = unrolled.train(
        DATA, task="caption", model=model, out=tmp_path / "run", settings=plain | settings | {"steps": 2}
    )
    run.task.prepare(DATA)
    assert isinstance(run.task.pictures(run.model, "valid").get("looks"), kind)


def test_questions_are_asked_of_it(run: Run) -> None:
    seen = run.inspect("attention")
    assert seen.pictures[-1].x_label == "regions of the source"
    assert len(seen.pictures[-1].columns) == 36
    for question in ("parameters", "surprise", "causality", "gradients", "receptive-field", "saliency"):
        assert run.inspect(question).reading


def test_arrays_sizes_and_grey(tmp_path: Path) -> None:
    made = shape_pictures(60)
    data = {"images": made.images, "captions": made.captions, "parts": made.parts}
    settings = QUICK | {"steps": 2, "size": 24, "grey": True}
    run = unrolled.train(data, task="caption", model="encdec", out=tmp_path / "run", settings=settings)
    assert run.task.ports().source.d_in == 24
    (line,) = run.predict([np.zeros((30, 50, 3), np.uint8)])  # brought to the size
    assert isinstance(line["prediction"], str)


def test_words_before_can_be_hidden_in_training(tmp_path: Path) -> None:
    settings = QUICK | {"steps": 2, "target_dropout": 0.75}
    run = unrolled.train(DATA, task="caption", model="encdec", out=tmp_path / "run", settings=settings)
    assert any(isinstance(layer, WordDropout) and layer.p == 0.75 for layer in run.model.decoder.modules())
    batch, _ = run.task.example((picture(0).image, picture(0).caption))
    decoder, state = begin(run.model, batch.source, batch.source_mask)

    def said() -> Tensor:
        return decoder(batch.x, state)[0]

    assert torch.equal(said(), said())  # nothing is hidden in use
    run.model.train()
    torch.manual_seed(0)
    assert not torch.equal(said(), said())


def test_the_task_is_guessed(tmp_path: Path) -> None:
    from unrolled.data.look import look
    from unrolled.tasks.caption import Task

    assert Task.guess(look(DATA), {}) is not None
    assert Task.guess(look("builtin:dates"), {}) is None
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    assert Task.guess(look(tmp_path), {}) is None
    (tmp_path / "captions.csv").write_text("image,caption\na.png,black\n")
    assert Task.guess(look(tmp_path), {}) is not None
    assert Task.guess(look(tmp_path / "captions.csv"), {}) is not None
    assert Task.guess(look(tmp_path), {"target": "caption"}) is None


def test_columns_of_other_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"source_column.*target_column.*instead of.*column"):
        unrolled.train(DATA, task="caption", model="encdec", out=tmp_path / "run", settings=QUICK | {"column": "a"})


def test_large_images_are_drawn_small() -> None:
    rows = np.arange(1200 * 30, dtype=np.uint16).reshape(1200, 30)
    assert caption._small(rows).tolist() == rows[::3, ::3].tolist()
    small = np.zeros((512, 40, 3), np.uint8)
    assert caption._small(small).shape == small.shape
