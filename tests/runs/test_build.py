"""A model and a task meet: input layer, body, head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.thorough import every
from unrolled.core import discover
from unrolled.core.causal import Conditional
from unrolled.core.errors import UsageError
from unrolled.core.spec import FOLLOWING, Ports, reading
from unrolled.runs.build import build, count_parameters
from unrolled.runs.config import Ends, RunConfig
from unrolled.testing import check_causal, check_conditional

PORTS = Ports(n_tokens=9, d_out=9)
ACCEPTS = ("causal",)


def config(model: str = "elman", **ends: object) -> RunConfig:
    settings = {} if model == "ngram" else {"d_state": 20}
    return RunConfig(model=model, model_settings=settings, ends=Ends(d_embedding=6).updated(ends))


def test_the_toy_network_of_the_book_has_748_parameters() -> None:
    """p = q = 8 one-hot, m = 20: 20*20 + 20*8 + 20 + 8*20 + 8."""
    model = build(config(input="one-hot"), Ports(8, 8), ACCEPTS)
    assert count_parameters(model) == 748


def causal_models(reads: str) -> list[str]:
    specs = {name: discover.model(name) for name in discover.models.names()}
    fitting = {name: spec for name, spec in specs.items() if spec.kind == "causal" and "next" in spec.outputs}
    return [name for name, spec in fitting.items() if reading(spec.reads, reads)]


def following(model: str) -> str:
    """Targets that a model predicts: those of its closed form, or any."""
    return next((each for each in discover.model(model).closed_form if each in FOLLOWING), "bits")


@pytest.mark.parametrize("model", causal_models(reads="numbers"))
@pytest.mark.parametrize("entry", ["embedding", "one-hot"])
def test_every_causal_model_becomes_a_model_of_vectors(model: str, entry: str) -> None:
    tiny = config(model, input=entry).model_copy(update={"model_settings": discover.model(model).tiny.model_dump()})
    targets = following(model)
    width = 1 if targets == "samples" else 9  # of sound there is one number at a time
    built = build(tiny, Ports(0, 9, d_in=width, targets=targets), ACCEPTS)
    y, _ = built(torch.randint(0, 2, (2, 5, width)).float())
    assert y.shape == (2, 5, 9)


def test_a_model_that_reads_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'ngram' does not fit .* it reads tokens, but the input"):
        build(RunConfig(model="ngram"), Ports(0, 9, d_in=9), ACCEPTS)
    with pytest.raises(UsageError, match="it reads numbers, but the input of the task is tokens"):
        build(RunConfig(model="key-chain"), Ports(9, 9), ACCEPTS)
    with pytest.raises(UsageError, match="it has a closed form for bits, but the targets are moves of a pen"):
        build(RunConfig(model="key-chain"), Ports(0, 15, d_in=5, targets="pen"), ACCEPTS)
    with pytest.raises(UsageError, match="it has a closed form for moves of a pen, but the targets are bits"):
        build(RunConfig(model="pen-mixture"), Ports(0, 9, d_in=9, targets="bits"), ACCEPTS)
    build(RunConfig(model="ar"), Ports(0, 15, d_in=5, targets="pen"), ACCEPTS)  # trained like any other there


@pytest.mark.parametrize("model", every(5, causal_models(reads="tokens")))
def test_every_causal_model_becomes_a_token_model_that_obeys_the_laws(model: str) -> None:
    tiny = discover.model(model).tiny
    built = build(RunConfig(model=model, model_settings=tiny.model_dump(), ends=Ends(d_embedding=6)), PORTS, ACCEPTS)
    tokens = torch.randint(0, 9, (3, 7))
    y, _ = built(tokens)
    assert y.shape == (3, 7, 9)
    check_causal(built, tokens)


def test_a_class_starts_it() -> None:
    model = build(config("gru"), Ports(9, 9, n_classes=3), ACCEPTS)
    assert isinstance(model, Conditional)
    check_conditional(model, torch.tensor([0, 1, 2]), None, torch.randint(0, 9, (3, 7)))


def test_initial_weights_are_a_function_of_the_seed_alone() -> None:
    torch.manual_seed(5)
    first = build(config(), PORTS, ACCEPTS).state_dict()
    torch.manual_seed(6)
    second = build(config(), PORTS, ACCEPTS).state_dict()
    other = build(config().model_copy(update={"seed": 1}), PORTS, ACCEPTS).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_a_tied_head_shares_the_table() -> None:
    tied = build(config(tied=True, d_embedding=20), PORTS, ACCEPTS)
    free = build(config(d_embedding=20), PORTS, ACCEPTS)
    assert count_parameters(free) - count_parameters(tied) == 9 * 20
    y, _ = tied(torch.randint(0, 9, (2, 5)))
    y.sum().backward()
    with pytest.raises(UsageError, match="d_embedding = 20"):
        build(config(tied=True), PORTS, ACCEPTS)


@pytest.fixture
def bag_of_words(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "odd_kind.py").write_text(
        "from unrolled.core.config import Config\nfrom unrolled.core.spec import FOLLOWING, ModelSpec\n"
        "def make(config, sizes): ...\n"
        "MODEL = ModelSpec(summary='', kind='encoder', config=Config, tiny=Config(), make=make)\n"
    )
    yield discover.models.add_file(tmp_path / "odd_kind.py")
    discover.models.forget("odd-kind")


def test_a_misfit_names_the_models_that_fit(bag_of_words: str) -> None:
    with pytest.raises(UsageError, match=r"does not fit.*elman.*lstm"):
        build(RunConfig(model=bag_of_words), PORTS, ACCEPTS)
