"""Checkpoints of transformers: loaded, they give its numbers; saved, they are what was loaded.

The fixtures and their outputs were made by transformers (tests/fixtures/make_checkpoints.py), from random weights.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import unrolled
from tests.commands import run_unrolled
from tests.fixtures.make_checkpoints import HOME
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.hub import load_checkpoint, save_checkpoint
from unrolled.runs.run import Run
from unrolled.runs.storage.formats import parse_tensors, tensor_file

NAMES = ("bert", "gpt2", "llama")
QUICK = {"steps": 2, "batch_size": 8, "evaluate_every": 2, "warmup": 1, "threads": 1, "split": "60/20/20"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("hub")
    return {name: load_checkpoint(HOME / name, folder / name) for name in NAMES}


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HOME / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_transformers(name: str, runs: dict[str, Run]) -> None:
    run, expected = runs[name], told(name)
    codec = run.task.codec
    ids = torch.from_numpy(codec._ours[expected["ids"]])[None]
    x = torch.stack([ids, torch.zeros_like(ids)], -1) if name == "bert" else ids
    with torch.no_grad():
        y = run.model(x, torch.ones_like(ids).bool())[0] if name == "bert" else run.model(x)[0]
    known = codec.order >= 0
    theirs = torch.tensor(expected["logits"])[:, codec.order[known]]
    assert torch.allclose(y[0, :, : codec.size][:, known], theirs, atol=1e-5)
    if name == "bert":
        assert torch.allclose(y[0, 0, codec.size :], torch.tensor(expected["next"]), atol=1e-5)


def test_the_tokenizer_comes_along(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        codec, expected = run.task.codec, told(name)
        ids = codec.encode(expected["text"])
        theirs = [i for i in expected["ids"] if i > 4] if name == "bert" else expected["ids"]
        ours = [int(codec.order[i]) for i in ids]
        assert (ours[0], ours[2:]) == (theirs[0], theirs[1:]) if name == "bert" else ours == theirs
        assert codec.decode(ids).strip() == expected["text"]
        assert codec.to_json() == type(codec).from_json(codec.to_json()).to_json()
    assert runs["bert"].task.example("the king")[1] == ["<class>", "␣the", "␣king", "<separator>"]


def test_a_loaded_run_does_what_runs_do(runs: dict[str, Run], tmp_path: Path) -> None:
    filled = runs["bert"].predict(["the [MASK] of the north"])[0]
    assert filled["prediction"].endswith("of the north")
    for name in ("gpt2", "llama"):
        text = runs[name].generate("the king", max_tokens=3, temperature=0)[0]
        step = [runs[name].predict(["the king" + text["text"][:0]])[0]["likely"][0]["p"]]
        assert text["tokens"] == 3
        assert 0 < step[0] <= 1
    rows = [{"text": f"the {'king' if i % 2 else 'cat'} of {i}", "label": "ab"[i % 2]} for i in range(40)]
    for name in NAMES:
        run = unrolled.train(
            rows, "classify", out=tmp_path / name, from_run=runs[name].path, freeze="body", settings=QUICK
        )
        assert run.task.inputs.to_json() == runs[name].task.codec.to_json()
        same = [k for k in run.model.state_dict() if k.startswith("body.")]
        assert all(torch.equal(run.model.state_dict()[k], runs[name].model.state_dict()[k]) for k in same)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_is_what_was_loaded(name: str, runs: dict[str, Run], tmp_path: Path) -> None:
    place = save_checkpoint(runs[name], tmp_path / "out")
    file = "model.safetensors"
    before = parse_tensors((HOME / name / file).read_bytes(), name)
    after = parse_tensors((place / file).read_bytes(), name)
    assert set(after) == set(before)
    for key, value in after.items():
        rows = before[key][: len(value)]  # rows behind the tokenizer's tokens are not kept
        assert torch.equal(value, rows), key
    assert json.loads((place / "tokenizer.json").read_text()) == json.loads(
        (HOME / name / "tokenizer.json").read_text()
    )
    again = load_checkpoint(place, tmp_path / "again")
    for key, tensor in again.model.state_dict().items():
        assert torch.equal(tensor, runs[name].model.state_dict()[key]), key
    with pytest.raises(UsageError, match="is not empty"):
        save_checkpoint(runs[name], tmp_path / "out")


def test_a_run_of_ours_is_saved_where_transformers_has_its_architecture(tmp_path: Path) -> None:
    texts = [f"the king of {i} saw. The cat ran {i % 3}." for i in range(30)]
    small = {
        "d_model": 8,
        "n_layers": 1,
        "n_heads": 2,
        "d_ff": 12,
        "d_embedding": 8,
        "tokens": "bpe",
        "vocabulary": 300,
    }
    run = unrolled.train(texts, "masked-token", "bert", tmp_path / "bert", settings=QUICK | small | {"row_length": 32})
    run_unrolled("convert", str(run.path), "-o", str(tmp_path / "out"), cwd=tmp_path)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["BertForPreTraining"]
    again = load_checkpoint(tmp_path / "out", tmp_path / "again")
    assert torch.equal(again.model.body.blocks[0].norm_1.weight, run.model.body.blocks[0].norm_1.weight)
    text = "the [MASK] of 3 saw."
    assert again.predict([text])[0]["p"] == pytest.approx(run.predict([text])[0]["p"], abs=1e-5)
    other = unrolled.train(texts, "next-token", "gru", tmp_path / "gru", settings=QUICK | {"d_state": 4})
    with pytest.raises(UsageError, match=r"cannot be saved for transformers .* those that can: bert runs of the task"):
        save_checkpoint(other, tmp_path / "no")


@pytest.mark.parametrize(("change", "says"), [
    ({"model_type": "t5"}, r"the architecture 't5' cannot be loaded; those that can: bert, gpt2 and llama"),
    ({"hidden_act": "relu"}, "hidden_act = 'relu' is not supported, expected 'gelu'"),
    ({"hidden_size": None}, "'hidden_size' is missing"),
    ({"vocab_size": 5}, "the tokenizer has .* tokens, but the model has vectors for 5"),
    ({"intermediate_size": 13}, "gives the shape"),
    ({"num_hidden_layers": 3}, "encoder.layer.2.* is missing"),
])  # fmt: skip
def test_a_checkpoint_that_is_none_of_ours_is_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    shutil.copytree(HOME / "bert", tmp_path / "bert")
    values = json.loads((tmp_path / "bert" / "config.json").read_text()) | change
    (tmp_path / "bert" / "config.json").write_text(json.dumps({k: v for k, v in values.items() if v is not None}))
    with pytest.raises(DataError, match=says):
        load_checkpoint(tmp_path / "bert", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def changed_checkpoint(name: str, folder: Path, file: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a checkpoint in which one of its JSON files is another."""
    place = shutil.copytree(HOME / name, folder / name)
    values = json.loads((place / file).read_text())
    change(values)
    (place / file).write_text(json.dumps(values))
    return place


@pytest.mark.parametrize(("file", "change", "says"), [
    ("config.json", lambda v: v.pop("vocab_size"), "config.json: vocab_size must be an integer"),
    ("config.json", lambda v: v.update(vocab_size=[1]), "config.json: vocab_size must be an integer"),
    ("config.json", lambda v: v.update(model_type=["bert"]), "config.json: the architecture .* cannot be loaded"),
    ("config.json", lambda v: v.update(hidden_size="x"), "config.json: invalid value ends.d_embedding = 'x'"),
    ("config.json", lambda v: v.update(hidden_size=10**9), "the two files do not belong together"),
    ("config.json", lambda v: v.update(hidden_size=10**30), "do not match each other"),
    ("config.json", lambda v: v.update(num_hidden_layers=10**9), "the two files do not belong together"),
    ("config.json", lambda v: v.update(max_position_embeddings=10**12), "the two files do not belong together"),
    ("tokenizer.json", lambda v: v["model"]["vocab"].update(zz=4 * 10**9), "tokenizer.json: .* far larger"),
    ("tokenizer.json", lambda v: v.update(added_tokens=True), "not a tokenizer of the tokenizers library"),
    ("tokenizer.json", lambda v: v["model"].update(type=[]), "not a tokenizer of the tokenizers library"),
])  # fmt: skip
def test_settings_of_a_checkpoint_may_be_anything(
    file: str, change: Callable[[dict[str, Any]], object], says: str, tmp_path: Path
) -> None:
    place = changed_checkpoint("bert", tmp_path, file, change)
    with pytest.raises(DataError, match=f"^{place}.*{says}"):
        load_checkpoint(place, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("change", "says"), [
    (lambda t: t * torch.nan, "word_embeddings.weight holds NaN or infinity"),
    (lambda t: t.to(torch.complex64), "word_embeddings.weight is missing"),
    (lambda t: t[:40], r"word_embeddings.weight has 40 rows for 50 tokens"),
    (lambda t: t[0, 0], "do not match each other"),
])  # fmt: skip
def test_weights_of_a_checkpoint_may_be_anything(change: Callable[[Tensor], Tensor], says: str, tmp_path: Path) -> None:
    place = shutil.copytree(HOME / "bert", tmp_path / "bert")
    tensors = parse_tensors((place / "model.safetensors").read_bytes(), "")
    name = "bert.embeddings.word_embeddings.weight"
    tensors[name] = change(tensors[name]).contiguous()
    (place / "model.safetensors").write_bytes(b"".join(map(bytes, tensor_file(tensors, "")[1])))
    with pytest.raises(DataError, match=says):
        load_checkpoint(place, tmp_path / "run")


def test_weights_that_the_model_has_no_use_for_are_not_read(tmp_path: Path) -> None:
    """A file of 40 GB, of which the disk holds nothing."""
    place = shutil.copytree(HOME / "bert", tmp_path / "bert")
    file = place / "model.safetensors"
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, end, more = json.loads(data[8 : 8 + length]), len(data) - 8 - length, 40 * 2**30
    header["more"] = {"dtype": "F32", "shape": [more // 4], "data_offsets": [end, end + more]}
    head = json.dumps(header).encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + length :])
    os.truncate(file, file.stat().st_size + more)
    with pytest.raises(DataError, match=r"holds 42,949,.* far more than the model of config.json needs"):
        load_checkpoint(place, tmp_path / "run")


def test_a_tokenizer_cuts_whole_texts_and_always_alike(tmp_path: Path) -> None:
    """Those that are saved with how they were used in training: texts cut and padded, pairs left unjoined by chance."""

    def change(values: dict[str, Any]) -> None:
        values["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
        values["padding"] = {"strategy": {"Fixed": 99}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                             "pad_type_id": 0, "pad_token": "<unk>"}  # fmt: skip
        values["model"]["dropout"] = 0.9

    (tmp_path / "own").mkdir()
    run = load_checkpoint(changed_checkpoint("gpt2", tmp_path, "tokenizer.json", change), tmp_path / "run")
    own = load_checkpoint(HOME / "gpt2", tmp_path / "own" / "run")
    text = "the king of the queen " * 3
    for _ in range(3):
        assert run.task.codec.encode(text).tolist() == own.task.codec.encode(text).tolist()  # type: ignore[attr-defined]


def test_a_text_that_a_tokenizer_cannot_cut_is_told(tmp_path: Path) -> None:
    place = changed_checkpoint("bert", tmp_path, "tokenizer.json", lambda v: v["model"].update(unk_token="none"))
    run = load_checkpoint(place, tmp_path / "run")
    with pytest.raises(DataError, match="the tokenizer of the checkpoint cannot cut"):
        run.predict(["the \u65e5 [MASK]"])


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_told(file: str, tmp_path: Path) -> None:
    shutil.copytree(HOME / "bert", tmp_path / "bert")
    (tmp_path / "bert" / file).unlink()
    with pytest.raises(DataError, match=f"{file} is missing"):
        load_checkpoint(tmp_path / "bert", tmp_path / "run")


def divided(place: Path) -> dict[str, str]:
    """Its weights in two files, as transformers saves large ones; the file of each tensor."""
    tensors = parse_tensors((place / "model.safetensors").read_bytes(), "here")
    (place / "model.safetensors").unlink()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    of = {tensor: names[i % 2] for i, tensor in enumerate(sorted(tensors))}
    for name in names:
        _, pieces = tensor_file({each: tensors[each].clone() for each in of if of[each] == name}, "here")
        (place / name).write_bytes(b"".join(bytes(piece) for piece in pieces))
    (place / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": of}))
    return of


def test_weights_in_several_files_are_those_in_one(runs: dict[str, Run], tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copytree(HOME / name, tmp_path / name)
        divided(tmp_path / name)
        state = load_checkpoint(tmp_path / name, tmp_path / f"run-{name}").model.state_dict()
        assert all(torch.equal(state[key], each) for key, each in runs[name].model.state_dict().items())


@pytest.mark.parametrize(("change", "says"), [
    (lambda place, of: place.joinpath("model-00002-of-00002.safetensors").unlink(), "-00002.* is missing, one of"),
    (lambda place, of: of.update(dict.fromkeys(of, "../model.safetensors")), "not the name of a .safetensors file of"),
    (lambda place, of: of.update(dict.fromkeys(of, "model.bin")), "'model.bin' is not the name of a .safetensors file"),
    (lambda place, of: of.clear(), "expected the file of each tensor under 'weight_map'"),
    (lambda place, of: of.update(dict.fromkeys(of, "model-00001-of-00002.safetensors")), "is missing, so the weights"),
    (lambda place, of: [
        shutil.copy(HOME / "bert" / "model.safetensors", place / "third.safetensors"), of.update(x="third.safetensors")
    ], "which another file beside it"),
])  # fmt: skip
def test_an_index_that_misleads_is_refused(change: Any, says: str, tmp_path: Path) -> None:
    shutil.copytree(HOME / "bert", tmp_path / "bert")
    of = divided(tmp_path / "bert")
    change(tmp_path / "bert", of)
    (tmp_path / "bert" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": of}))
    with pytest.raises(DataError, match=says):
        load_checkpoint(tmp_path / "bert", tmp_path / "run")
    assert not (tmp_path / "run").exists()
