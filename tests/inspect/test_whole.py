"""Questions to models that read the whole input before they answer: both directions, what moved the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled
from tests.inspect.conftest import SETTINGS
from unrolled.core.compose import as_encoder
from unrolled.core.errors import UsageError
from unrolled.inspect.tools.looking import look_at
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.readouts.mean import Mean
from unrolled.runs.run import Run

TEXTS = ["a gate", "a cell", "the state", "the layer", "one tick", "one scan"]
ROWS = [{"text": f"{text} {i}", "label": text[0]} for i in range(8) for text in TEXTS]
SETS = [{"text": f"{text} {i}", "label": "|".join(sorted({text[0], text[-1]}))} for i in range(8) for text in TEXTS]

Make = Callable[..., Run]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    folder = tmp_path_factory.mktemp("whole")
    made: dict[str, Run] = {}

    def run(model: str, settings: dict[str, Any] | None = None, data: Any = ROWS) -> Run:
        key = f"{model} {settings} {len(made) if data is not ROWS else ''}"
        if key not in made:
            made[key] = unrolled.train(
                data, task="classify", model=model, out=folder / str(len(made)), settings=SETTINGS | (settings or {})
            )
        return made[key]

    return run


def test_what_is_read_backwards_stands_in_the_order_of_the_input(make: Make) -> None:
    run = make("bilstm", {"model.d_state": 3, "model.n_layers": 1})
    look = look_at(run, "the state", 40)
    ahead, back = look.seen["parts"]
    with torch.no_grad():
        x = run.model.embedding(look.x)  # [1, T, D]
        y = run.model.body(x, torch.ones(1, x.shape[1], dtype=torch.bool))[0]  # [1, T, 2 N]
    assert torch.allclose(ahead["state"], y[..., :3], atol=1e-6)
    assert torch.allclose(back["state"], y[..., 3:], atol=1e-6)
    assert "backwards" in run.inspect("gates").reading
    assert "backwards" in run.inspect("states").reading


@pytest.mark.parametrize("model", ["bilstm", "transformer-encoder", "dan"])
def test_saliency_adds_up_to_the_log_probability_of_what_is_said(make: Make, model: str) -> None:
    run = make(model)
    answer = run.inspect("saliency", "the state")
    batch, _ = run.task.example("the state")
    with torch.no_grad():
        logits = run.model(batch.x, batch.mask)[0][0, 0].double()  # [C]
    log_p = (logits / run.task.temperature).log_softmax(0)
    assert answer.numbers["log_p"] == pytest.approx(float(log_p.max()), abs=1e-5)
    assert math.exp(answer.numbers["log_p"]) == pytest.approx(run.predict(["the state"])[0]["p"], rel=1e-4)
    assert answer.numbers["target"] == run.predict(["the state"])[0]["prediction"]
    total = float(answer.arrays["integrated_gradients"].sum())
    assert total == pytest.approx(answer.numbers["log_p"] - answer.numbers["log_p_baseline"], rel=0.02, abs=1e-4)
    with pytest.raises(UsageError, match="one prediction"):
        run.inspect("saliency", "the state", {"at": 3})


class Hears(nn.Module):
    """Only the vector of one token is let through."""

    def __init__(self, embedding: nn.Embedding, token: int) -> None:
        super().__init__()
        self.register_buffer("vector", embedding.weight[token].detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        same = (x - self.vector.to(x)).abs().amax(-1, keepdim=True) < 1e-6  # [B, T, 1]
        return torch.where(same, x, 0.0)


def test_only_the_token_that_is_heard_moves_the_answer(make: Make) -> None:
    run = make("dan")
    torch.manual_seed(0)
    embedding = nn.Embedding(run.task.ports().n_tokens, 4)
    token = int(run.task.inputs.encode("s")[0])
    model = Reader(embedding, as_encoder(Hears(embedding, token)), Mean(4), nn.Linear(4, run.task.ports().d_out))
    planted = Run(run.directory, run.config, run.task, model.eval())
    moved = planted.inspect("saliency", "the state").arrays["occlusion"]
    assert [t for t, value in enumerate(moved.tolist()) if value != 0] == [4]  # the s
    reached = planted.inspect("gradients", "the state").arrays["input"]
    assert [t for t, value in enumerate(reached.tolist()) if value != 0] == [4]


def test_a_set_of_classes_is_explained(make: Make) -> None:
    run = make("dan", {"task.reading.class_separator": "|"}, data=SETS)
    answer = run.inspect("saliency", "the state")
    batch, _ = run.task.example("the state")
    with torch.no_grad():
        logits = run.model(batch.x, batch.mask)[0][0, 0].double()  # [C]
    p = (logits / run.task.temperature).sigmoid()
    assert answer.numbers["log_p"] == pytest.approx(float(torch.maximum(p, 1 - p).log().sum()), abs=1e-5)


def test_causality_tells_both_ways_from_one_way(make: Make) -> None:
    assert make("lstm", {"model.d_state": 4}).inspect("causality").numbers["causal"] is True
    both = make("bilstm", {"model.d_state": 3, "model.n_layers": 1}).inspect("causality")
    assert both.numbers["causal"] is False
    assert "both directions" in both.reading


@pytest.mark.parametrize("readout", ["attention", "query"])
def test_where_a_readout_looks(make: Make, readout: str) -> None:
    run = make("lstm", {"model.d_state": 4, "task.readout": readout})
    answer = run.inspect("attention", "a gate")
    picture = answer.pictures[0]
    assert picture.rows == ["answer"]
    assert len(picture.columns) == len("a gate")
    assert answer.numbers["largest_deviation_from_one"] < 1e-5


def test_letters_beside_words_are_looked_through(make: Make) -> None:
    rows = [{"words": row["text"].split(), "label": row["label"]} for row in ROWS]
    run = make("bilstm", {"task.letters": 4}, data=rows)
    answer = run.inspect("saliency", ["the", "state", "1"])
    assert answer.arrays["integrated_gradients"].shape == (3,)
    assert "the" in run.inspect("embeddings", ["the", "state"]).numbers["neighbours"]


def test_series_are_explained_as_they_came_in(make: Make) -> None:
    rows = [{"x": [float(i % 5), float(i % 3), 1.0 + i % 2], "label": "ab"[i % 2]} for i in range(40)]
    run = make("tcn", {}, data=rows)
    answer = run.inspect("saliency", [1.0, 2.0, 0.5])
    assert answer.arrays["integrated_gradients"].shape == (3,)
    assert run.inspect("receptive-field").numbers["verdict"] in ("agrees", "cut", "smaller")
