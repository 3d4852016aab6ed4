"""The handwriting task: metrics by brute force, drawings and files of saved runs, texts, prompts, the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from tests.small import PEN
from unrolled.core.errors import DataError, UsageError
from unrolled.core.task import Given
from unrolled.core.trace import trace
from unrolled.data.sources.drawings import read_drawings
from unrolled.data.sources.pen_moves import placed
from unrolled.layers.parts.ensemble import together
from unrolled.runs.build import make_model, make_task
from unrolled.runs.run import Run
from unrolled.tasks.handwriting import Asked
from unrolled.training.api import configure

QUICK = {"steps": 12, "batch_size": 8, "warmup": 1, "lr": 0.02, "d_embedding": 4, "threads": 1, "split": "60/20/20",
         "n_mixtures": 2}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("pen") / "run"
    return unrolled.train(PEN, task="handwriting", model="gru", out=out, settings=QUICK | {"d_state": 8})


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("text") / "run"
    settings = QUICK | {"d_state": 6, "n_windows": 2}
    return unrolled.train(PEN, task="handwriting", model="soft-window", out=out, settings=settings)


def test_nats_are_the_mean_over_all_points(run: Run) -> None:
    task, total, n = run.task, 0.0, 0
    task.prepare(PEN)
    for moves in task.sections["test"].fields["target"]:
        x = torch.from_numpy(np.concatenate([np.zeros((1, 5), np.float32), moves[:-1]]))[None]
        with torch.no_grad():
            y = run.model(x)[0][0]
        total -= float(task.emission.log_prob(y, torch.from_numpy(moves)).sum())
        n += len(moves)
    found = run.result["test"]
    assert found["nats"] == pytest.approx(total / n, rel=1e-5) and found["tokens"] == n
    assert found["nats"] == pytest.approx(found["nats_move"] + found["nats_pen"])


def test_scores_add_up_to_the_metric(run: Run) -> None:
    lines = run.score([PEN[3], PEN[4]["strokes"]])
    assert all(line["logp"] == pytest.approx(-line["nats_per_point"] * line["tokens"]) for line in lines)
    assert run.evaluate([PEN[3]])["nats"] == pytest.approx(lines[0]["nats_per_point"], rel=1e-5)


def test_a_prediction_is_the_next_move(run: Run) -> None:
    (found,) = run.predict([PEN[0]])
    assert sum(found["p"].values()) == pytest.approx(1) and set(found["p"]) == {"down", "lift", "end"}
    assert len(found["next"]) == 2


def test_drawings_depend_on_the_seed_alone(run: Run) -> None:
    first, again, other = (run.generate(n=3, seed=seed) for seed in (1, 1, 2))
    assert first == again and first != other
    assert [each["logp"] for each in first] == sorted((each["logp"] for each in first), reverse=True)
    assert all(sum(map(len, each["strokes"])) <= 1 + run.task.longest for each in first)
    one = run.generate(n=1, seed=1)[0]  # sample 0, drawn alone
    assert any(each["logp"] == pytest.approx(one["logp"], rel=1e-4) for each in first)


def test_a_bias_makes_drawings_more_likely(run: Run) -> None:
    plain, biased = (
        np.mean([each["logp"] / sum(map(len, each["strokes"])) for each in run.generate(n=20, bias=bias)])
        for bias in (0.0, 5.0)
    )
    assert biased > plain + 0.5


def test_a_prompt_is_continued(run: Run, tmp_path: Path) -> None:
    (found,) = run.generate({"strokes": PEN[0]["strokes"]}, max_tokens=2)
    given, drawn = np.array(PEN[0]["strokes"][0]), np.array(found["strokes"][0])
    assert np.allclose(drawn, given - given[0], atol=1e-5)
    assert found["given"] == sum(map(len, PEN[0]["strokes"])) - 1
    (tmp_path / "a.json").write_text(json.dumps([PEN[0]["strokes"]]))
    assert run.generate(str(tmp_path / "a.json"), max_tokens=2)[0] == found


@pytest.mark.parametrize("suffix", [".svg", ".png", ".json", ".npz", ""])
def test_files_of_drawings(run: Run, suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"sheet{suffix}"
    words = run_unrolled("generate", run.path, "-n", 3, "--bias", 1, "--seed", 4, "-o", out).stdout.split()
    assert words == [str(out if suffix else out.with_suffix(".svg"))]
    content = Path(words[0]).read_bytes()
    if suffix == ".png":
        assert content.startswith(b"\x89PNG")
    elif suffix in (".svg", ""):
        root = ElementTree.fromstring(content)
        colours = {word for each in root.iter() for word in each.get("style", "").split(";") if "stroke:" in word}
        assert len(colours) > 3  # which tell when a line was drawn
        assert root.findtext("{http://www.w3.org/2000/svg}title") == "3 drawings"
    else:  # can be read again
        made = run.generate(n=3, bias=1, seed=4)
        for each, again in zip(made, read_drawings(out), strict=True):
            for stroke, back in zip(each["strokes"], placed(again.moves), strict=False):
                assert np.allclose(np.array(stroke) - each["strokes"][0][0], back, atol=1e-3)


def test_a_text_is_written(writer: Run) -> None:
    one, two = writer.generate(text="la", seed=3), writer.generate(text="st", seed=3)
    assert one[0]["text"] == "la" and one[0]["strokes"] != two[0]["strokes"]
    primed = writer.generate(PEN[0], text="la", seed=3)
    assert primed[0]["strokes"] != one[0]["strokes"] and primed[0]["given"] == 0


def test_the_alignment_can_be_inspected_and_is_monotone(writer: Run) -> None:
    answer = writer.inspect("attention", PEN[3])
    assert answer.pictures
    batch, _ = writer.task.example(PEN[3])
    with trace() as seen, torch.no_grad():
        decoder, state = writer.model.decoder, writer.model.condition(batch.source, batch.source_mask)
        _, after = decoder(batch.x, state)
    (phi,) = seen["attention"]
    assert phi.shape == (1, 1, batch.x.shape[1], 2)
    _, windowed, _ = after
    assert (windowed.kappa > 0).all()


def refused(made: Run, *words: Any, **asked: Any) -> str:
    with pytest.raises((UsageError, DataError)) as told:
        made.generate(*words, **asked)
    return str(told.value)


def test_bad_requests_are_told(run: Run, writer: Run, tmp_path: Path) -> None:
    assert "was trained without texts" in refused(run, text="hi")
    assert "say which with text=" in refused(writer)
    assert "not trained on: 'ß'" in refused(writer, text="stß")
    assert "the prompt: the drawing has no text" in refused(writer, PEN[0]["strokes"], text="st")
    assert "bias" in refused(run, bias=-1)
    assert "temperature=... does not apply" in refused(run, temperature=2.0)
    with pytest.raises(DataError, match="no text, but the run was trained with texts"):
        writer.score([PEN[0]["strokes"]])
    with pytest.raises(UsageError, match=r"ends with \.svg, \.png"):
        run.task.files_of(run.generate(), "a.pdf")
    with pytest.raises(UsageError, match="tokens does not apply to handwriting"):
        unrolled.train(PEN, task="handwriting", out=tmp_path / "a", settings={"tokens": "word"})
    with pytest.raises(UsageError, match="needs causal or conditional models"):
        unrolled.train(PEN, task="handwriting", model="bilstm", out=tmp_path / "b")


@pytest.mark.parametrize("order", [0, 1])
def test_the_baselines_are_models(order: int, run: Run, tmp_path: Path) -> None:
    made = unrolled.train(PEN, task="handwriting", model="pen-mixture", out=tmp_path / "run",
                          settings={"order": order, "split": "60/20/20", "threads": 1, "n_mixtures": 2})  # fmt: skip
    names = {0: "memoryless mixture", 1: "first-order mixture"}
    assert run.result["baselines"][names[order]]["test"]["nats"] == pytest.approx(made.result["test"]["nats"], rel=1e-5)
    assert made.generate(n=2)


def test_tasks_are_guessed(tmp_path: Path) -> None:
    rows = np.array([[0, 0, 0], [5, -3, 0], [2, 2, 1]], np.int16)
    np.savez(tmp_path / "a.npz", **{f"{part}_0": rows for part in ("train", "valid", "test")})
    told = json.loads(run_unrolled("data", tmp_path / "a.npz", "--json").stdout)
    assert told["task"] == "handwriting"


def test_models_with_and_without_a_source_fit_where_texts_are(run: Run, writer: Run) -> None:
    """Each kind has its own default for texts; the same baselines stand beside both."""

    def accepts(data: Any, **settings: Any) -> tuple[str, ...]:
        task = make_task(configure("handwriting", None, data, settings))
        before = task.asks().accepts
        task.prepare(data)
        assert set(task.asks().accepts) <= set(before)
        return task.asks().accepts

    alone = [each["strokes"] for each in PEN]
    assert accepts(PEN) == ("causal", "conditional")
    assert accepts(alone) == accepts(PEN, **{"task.text": False}) == ("causal",)
    assert accepts(PEN, **{"task.text": True}) == ("conditional",)
    assert run.task.config.text is None and writer.task.config.text is True
    ours, others = run.result["baselines"], writer.result["baselines"]
    assert ours == others and set(ours) == {"memoryless mixture", "first-order mixture"}
    with pytest.raises(UsageError, match="but the task needs causal models"):
        unrolled.train(alone, task="handwriting", model="seq2seq", settings={"task.text": False})


@pytest.mark.parametrize("model", ["gru", "soft-window"])
def test_members_are_mixed(model: str, run: Run, writer: Run) -> None:
    """Twice the same weights are as one; with others they draw together."""
    made = {"gru": run, "soft-window": writer}[model]
    task, mix = made.task, made.task.emission.mix
    task.prepare(PEN)
    twice = together([made.model, made.model], mix)
    assert task.evaluate(twice, "test")["nats"] == pytest.approx(made.result["test"]["nats"], abs=1e-4)
    other = make_model(made.config.model_copy(update={"seed": 5}), task)
    both = together([made.model, other], mix)
    assert np.isfinite(task.evaluate(both, "test")["nats"])
    asked = Asked(n=2, seed=1, text="la" if model == "soft-window" else None)
    drawn = task.generate(both, Given(""), asked)
    assert drawn == task.generate(both, Given(""), asked) and len(drawn) == 2
