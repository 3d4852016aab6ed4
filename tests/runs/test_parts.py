"""Weights are named by part, taken by name and shape, and kept fixed by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import begin
from unrolled.core.errors import UsageError
from unrolled.core.spec import Ports
from unrolled.core.task import Vocabulary
from unrolled.runs import parts
from unrolled.runs.build import build
from unrolled.runs.config import Ends, RunConfig

NEXT = Ports(n_tokens=9, d_out=9)
WHOLE = Ports(n_tokens=9, d_out=3, answers="whole", readout="attention")
ACCEPTS = ("causal", "encoder")


def made(ports: Ports, seed: int = 0, model: str = "gru", d_state: int = 5, **ends: object) -> nn.Module:
    chosen = Ends(d_embedding=5).updated(ends)
    settings = {"d_state": d_state} if model == "gru" else {}
    return build(RunConfig(model=model, model_settings=settings, ends=chosen, seed=seed), ports, ACCEPTS)


def named(model: nn.Module) -> dict[str, torch.Tensor]:
    tensors = model.state_dict()
    return {name: tensors[own] for own, name in parts.names(model).items()}


class Words:
    """A vocabulary that is told apart by its words."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_json(self) -> str:
        return self.text


def test_names_do_not_depend_on_what_stands_between_the_parts() -> None:
    plain, dropped = made(NEXT), made(NEXT, dropout=0.2)
    assert plain.state_dict().keys() != dropped.state_dict().keys()
    assert named(plain).keys() == named(dropped).keys()
    started = made(NEXT._replace(n_classes=2))
    assert named(plain).keys() == named(started).keys()


def test_halves_have_the_same_names_in_reading_and_writing() -> None:
    writing, reading = named(made(NEXT)), named(made(WHOLE))
    assert {parts.part_of(name) for name in writing} == {"decoder.embedding", "decoder.body", "head"}
    assert {parts.part_of(name) for name in reading} == {"encoder.embedding", "encoder.body", "head"}
    bodies = [{n.split(".", 1)[1] for n in each if ".body." in n} for each in (writing, reading)]
    assert bodies[0] == bodies[1] != set()


def test_every_tensor_of_every_kind_of_model_is_in_a_part() -> None:
    models = [made(NEXT, tied=True), made(WHOLE), made(WHOLE, model="bow"), made(Ports(0, 4, d_in=6)),
              made(WHOLE._replace(answers="each")), made(WHOLE._replace(letters=7))]  # fmt: skip
    for model in models:
        assert {parts.part_of(name).split(".")[0] for name in named(model)} <= {"encoder", "decoder", "head"}


def test_a_tied_table_is_one_weight_of_the_input() -> None:
    names = parts.names(made(NEXT, tied=True))
    assert sorted(name for name in names.values() if "embedding" in name) == ["decoder.embedding.weight"] * 2
    frozen = parts.freeze(made(NEXT, tied=True), ["embedding"])
    assert frozen.fixed == ["decoder.embedding.weight"]
    assert frozen.n_all - frozen.n_trained == 9 * 5


def test_a_body_that_wrote_becomes_one_that_reads() -> None:
    writing, reading = made(NEXT, seed=1), made(WHOLE, seed=2)
    before = {name: tensor.clone() for name, tensor in named(reading).items()}
    same = {"encoder.embedding": Vocabulary(Words("a")), "decoder.embedding": Vocabulary(Words("a"))}
    taken = parts.take(reading, writing, same, same)
    after, source = named(reading), named(writing)
    for name in after:
        if part := name.partition("encoder.")[2]:
            assert torch.equal(after[name], source[f"decoder.{part}"]), name
            assert name in taken.took
    assert torch.equal(after["head.weight"], before["head.weight"])
    assert "another shape, 9x5 where 3x5" in taken.left["head.weight"]
    line = taken.words("runs/old")
    assert line.count("\n") == 0
    assert line.startswith(f"from runs/old: {len(taken.took)} of {len(after)} tensors taken: encoder.embedding (1), ")


def test_rows_that_stand_for_something_else_are_not_taken() -> None:
    one, other = made(NEXT, seed=1), made(NEXT, seed=2)
    means = {"decoder.embedding": Vocabulary(Words("a")), "head": Vocabulary(Words("a"))}
    meant = {"decoder.embedding": Vocabulary(Words("b")), "head": Vocabulary(Words("a"))}
    taken = parts.take(one, other, means, meant)
    assert taken.left == {"decoder.embedding.weight": "of another vocabulary"}
    classes = {"decoder.embedding": Vocabulary(Words("a"), ("x", "y"))}
    taken = parts.take(one, other, classes, {"decoder.embedding": Vocabulary(Words("a"), ("x", "z"))})
    assert list(taken.left) == ["decoder.embedding.weight"]


@pytest.mark.parametrize(("words", "trained"), [
    (["decoder"], {"head"}),
    (["embedding"], {"decoder.body", "head"}),
    (["body"], {"decoder.embedding", "head"}),
    (["head"], {"decoder.embedding", "decoder.body"}),
    (["everything-but-the-head"], {"head"}),
    (["decoder.embedding", "head.weight"], {"decoder.body", "head"}),
    ([], {"decoder.embedding", "decoder.body", "head"}),
])  # fmt: skip
def test_words_name_parts(words: list[str], trained: set[str]) -> None:
    model = made(NEXT)
    frozen = parts.freeze(model, words)
    by_own = parts.names(model)
    moving = {by_own[own] for own, parameter in model.named_parameters() if parameter.requires_grad}
    assert {parts.part_of(name) for name in moving} == trained
    assert frozen.n_trained == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert set(frozen.fixed) == set(by_own.values()) - moving


@pytest.mark.parametrize("word", ["encoder", "decodr", "decoder.bodyy", "decoder.body.nothing", "w"])
def test_an_unknown_word_lists_what_there_is(word: str) -> None:
    with pytest.raises(UsageError, match=f"no part '{word}'.*Known: .*decoder") as told:
        parts.freeze(made(NEXT), [word])
    assert "everything-but-the-head" in str(told.value)


def test_something_must_be_left_to_train() -> None:
    with pytest.raises(UsageError, match="nothing is left to train"):
        parts.freeze(made(NEXT), ["decoder", "head"])


def test_what_is_fixed_is_one_function() -> None:
    """Frozen parts have no dropout; what is trained keeps its own."""
    body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    head = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    model = nn.Sequential(parts.part("encoder.body", body), parts.part("head", head))
    frozen = parts.freeze(model, ["encoder"])
    model.train()
    frozen.rest()
    assert not any(module.training for module in body.modules())
    assert all(module.training for module in head.modules())


@pytest.mark.parametrize("model", ["gru", "lstm", "elman", "transformer", "tcn"])
def test_gradients_pass_through_what_is_fixed(model: str) -> None:
    """The table before a frozen body gets the gradient that it gets before a free one."""
    free, fixed = made(NEXT, model=model), made(NEXT, model=model)
    parts.freeze(fixed, ["body"])
    x = torch.arange(8).view(2, 4)
    for each in (free, fixed):
        decoder, state = begin(each)  # type: ignore[arg-type]
        decoder(x, state)[0].square().sum().backward()
    wanted, found = dict(free.named_parameters()), dict(fixed.named_parameters())
    by_own = parts.names(fixed)
    for own, parameter in found.items():
        if by_own[own].startswith("decoder.body"):
            assert parameter.grad is None, own
        else:
            torch.testing.assert_close(parameter.grad, wanted[own].grad)
