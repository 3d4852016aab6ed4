"""Weights are named by part, taken by name and shape, and kept fixed by name."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

from unrolled.core.causal import begin
from unrolled.core.errors import UsageError
from unrolled.core.spec import Ports, SourcePorts
from unrolled.core.task import Vocabulary
from unrolled.layers.parts.embedding import Table
from unrolled.runs import parts
from unrolled.runs.build import build
from unrolled.runs.config import Ends, RunConfig

NEXT = Ports(n_tokens=9, d_out=9)
WHOLE = Ports(n_tokens=9, d_out=3, answers="whole", readout="attention")
PAIRS = Ports(n_tokens=9, d_out=9, source=SourcePorts(9, shared=True))
ACCEPTS = ("causal", "encoder", "conditional")
BOTH = {"encoder.embedding", "encoder.body", "decoder.embedding", "decoder.body"}
HALF = ["embedding", "body"]
ORDER = [*HALF, *(f"{half}.{part}" for half in parts.HALVES for part in HALF), "readout", "head"]


def made(ports: Ports, seed: int = 0, model: str = "gru", **given: object) -> nn.Module:
    """A small model; what is given is of the ends, or else of the model itself."""
    ends = {name: value for name, value in given.items() if name in Ends.model_fields}
    own = {name: value for name, value in given.items() if name not in ends}
    settings = {"d_state": 5} | own if model in ("gru", "seq2seq") else own
    chosen = Ends(d_embedding=5).updated(ends)
    return build(RunConfig(model=model, model_settings=settings, ends=chosen, seed=seed), ports, ACCEPTS)


class Words:
    """A vocabulary that is told apart by its words."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_json(self) -> str:
        return self.text


def test_names_do_not_depend_on_what_stands_between_the_parts() -> None:
    plain, dropped = made(NEXT), made(NEXT, dropout=0.2)
    assert list(plain.state_dict()) == list(dropped.state_dict())
    started = made(NEXT._replace(n_classes=2))
    assert [parts.in_half(name, plain) for name in plain.state_dict()] == list(started.state_dict())


MODELS: dict[str, tuple[Ports, dict[str, Any], set[str]]] = {
    "next": (NEXT, {}, {"embedding", "body", "head"}),
    "tied": (NEXT, {"tied": True}, {"embedding", "body", "head"}),
    "one-hot": (NEXT, {"input": "one-hot"}, {"body", "head"}),
    "owns its head": (NEXT, {"model": "jordan"}, {"embedding", "body"}),
    "counts": (NEXT, {"model": "ngram"}, {"body"}),
    "vectors": (Ports(0, 4, d_in=6), {}, {"embedding", "body", "head"}),
    "a class": (NEXT._replace(n_classes=2), {}, {"decoder.embedding", "decoder.body", "head"}),
    "whole": (WHOLE, {}, {"embedding", "body", "readout", "head"}),
    "a bag": (WHOLE, {"model": "bow"}, {"embedding", "body", "head"}),
    "each": (WHOLE._replace(answers="each"), {}, {"embedding", "body", "head"}),
    "late": (WHOLE._replace(answers="each", delay=2), {}, {"embedding", "body", "head"}),
    "letters": (WHOLE._replace(letters=7), {}, {"embedding", "body", "readout", "head"}),
    "solved": (WHOLE._replace(targets="class"), {"model": "prior"}, {"body"}),
    "pairs": (PAIRS, {"model": "seq2seq"}, BOTH | {"head"}),
    "pairs of one table": (PAIRS, {"model": "encdec-transformer", "shared": True}, BOTH | {"head"}),
    "images": (PAIRS._replace(source=SourcePorts(0, d_in=5)), {"model": "seq2seq"}, BOTH | {"head"}),
}


@pytest.mark.parametrize(("ports", "given", "wanted"), MODELS.values(), ids=MODELS)
def test_the_name_of_a_weight_is_the_name_of_its_part(ports: Ports, given: dict[str, Any], wanted: set[str]) -> None:
    model = made(ports, **given)
    assert {parts.part_of(name) for name in model.state_dict()} == wanted
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert set(names) <= set(model.state_dict())
    order = [parts.part_of(name) for name in names]
    assert list(dict.fromkeys(order)) == sorted(set(order), key=ORDER.index)  # by which gradients are summed


def test_a_body_has_the_same_names_in_reading_and_writing() -> None:
    models = [made(NEXT), made(WHOLE), made(WHOLE._replace(answers="each")), made(NEXT._replace(n_classes=2))]
    bodies = [{name.removeprefix("decoder.") for name in model.state_dict() if "body." in name} for model in models]
    assert bodies[0] == bodies[1] == bodies[2] == bodies[3] != set()


def test_a_shared_table_is_one_weight_of_both_halves() -> None:
    model = made(PAIRS, model="encdec-transformer", shared=True)
    assert {"encoder.embedding.weight", "decoder.embedding.weight"} <= set(model.state_dict())
    assert "decoder.embedding.weight" not in parts.tensors(model)
    for half in parts.HALVES:
        frozen = parts.freeze(made(PAIRS, model="encdec-transformer", shared=True), [half])
        assert "encoder.embedding.weight" in frozen.fixed


def test_a_tied_table_is_one_weight_of_the_input() -> None:
    assert [name for name in made(NEXT, tied=True).state_dict() if "embedding" in name] == ["embedding.weight"]
    frozen = parts.freeze(made(NEXT, tied=True), ["embedding"])
    assert frozen.fixed == ["embedding.weight"]
    assert frozen.n_all - frozen.n_trained == 9 * 5
    assert parts.freeze(made(NEXT, tied=True), ["head"]).fixed == ["head.bias"]


def test_a_body_that_wrote_becomes_one_that_reads() -> None:
    writing, reading = made(NEXT, seed=1), made(WHOLE, seed=2)
    before = {name: tensor.clone() for name, tensor in reading.state_dict().items()}
    same = {"encoder.embedding": Vocabulary(Words("a")), "decoder.embedding": Vocabulary(Words("a"))}
    taken = parts.take(reading, writing, same, same)
    after, source = reading.state_dict(), writing.state_dict()
    for name in after:
        if name.startswith(("embedding.", "body.")):
            assert torch.equal(after[name], source[name]), name
            assert name in taken.took
    assert torch.equal(after["head.weight"], before["head.weight"])
    assert "shape 9x5 instead of 3x5" in taken.left["head.weight"]
    line = taken.words("runs/old")
    assert line.count("\n") == 0
    assert line.startswith(f"from runs/old: {len(taken.took)} of {len(after)} tensors loaded: embedding (1), ")


def test_rows_that_stand_for_something_else_are_not_taken() -> None:
    one, other = made(NEXT, seed=1), made(NEXT, seed=2)
    means = {"decoder.embedding": Vocabulary(Words("a")), "head": Vocabulary(Words("a"))}
    meant = {"decoder.embedding": Vocabulary(Words("b")), "head": Vocabulary(Words("a"))}
    taken = parts.take(one, other, means, meant)
    assert taken.left == {"embedding.weight": "different vocabulary"}
    classes = {"decoder.embedding": Vocabulary(Words("a"), ("x", "y"))}
    taken = parts.take(one, other, classes, {"decoder.embedding": Vocabulary(Words("a"), ("x", "z"))})
    assert list(taken.left) == ["embedding.weight"]


def test_halves_are_added_and_dropped() -> None:
    """One half serves either half of a model with a source; of two, each becomes what it was."""
    pair = made(PAIRS, model="seq2seq", d_state=5, bidirectional=False, context="start", seed=1)
    writing, reading = made(NEXT, seed=2), made(WHOLE, seed=3)
    same = {name: Vocabulary(Words("a")) for name in ("encoder.embedding", "decoder.embedding")}
    for model, half in ((writing, "decoder"), (reading, "encoder")):
        taken = parts.take(model, pair, same, same)
        own, theirs = model.state_dict(), pair.state_dict()
        for name in taken.took:
            if parts.part_of(name) == "body":
                assert torch.equal(own[name], theirs[f"{half}.{name}"]), name
    assert "body.layers.0.cell.weight_ih" in taken.took
    taken = parts.take(pair, made(NEXT, seed=4), same, same)
    assert {"encoder.embedding", "encoder.body"} <= {parts.part_of(name) for name in taken.took}
    started = made(NEXT._replace(n_classes=2), seed=5)
    taken = parts.take(started, writing, {}, {})
    assert {parts.part_of(name) for name in taken.took} == {"decoder.body", "head"}  # two tokens more


def tables(model: nn.Module) -> dict[str, Table]:
    return {name: layer for name, layer in parts.input_layers(model).items() if isinstance(layer, Table)}


MANY = 1200  # tokens for which a reader begins with small vectors
SCALED: dict[str, tuple[Ports, Ports]] = {
    "written, then for a source": (NEXT, PAIRS),
    "for a source, then written": (PAIRS, NEXT),
    "for a source twice": (PAIRS, PAIRS),
    "written, then read": (NEXT._replace(n_tokens=MANY), WHOLE._replace(n_tokens=MANY)),
    "read, then written": (WHOLE._replace(n_tokens=MANY), NEXT._replace(n_tokens=MANY)),
    "read, then for a source": (WHOLE, PAIRS),
}


@pytest.mark.parametrize(("there", "here"), SCALED.values(), ids=SCALED)
def test_vectors_that_reach_the_body_are_what_they_were(there: Ports, here: Ports) -> None:
    saved, model = (made(p, seed, "seq2seq" if p.source else "gru") for seed, p in enumerate((there, here)))
    before = {name: table(torch.arange(9)) for name, table in tables(saved).items()}
    taken = parts.take(model, saved, {}, {})
    assert tables(model)
    for name, table in tables(model).items():
        torch.testing.assert_close(table(torch.arange(9)), before[parts.counterpart(name, before)])
    assert {name for name in parts.tensors(model) if "embedding" in name} <= set(taken.took)


def test_a_table_that_is_also_the_head_keeps_its_scale_or_is_refused() -> None:
    with pytest.raises(UsageError, match=r"both tied .* scaled 2.24 times as much, .* leave out .*tied"):
        parts.take(made(PAIRS, model="seq2seq", tied=True), made(NEXT, tied=True), {}, {})
    model, saved = made(PAIRS, 1, "seq2seq", tied=True), made(PAIRS, 2, "seq2seq", tied=True)
    assert "decoder.embedding.weight" in parts.take(model, saved, {}, {}).took
    for tied in (True, False):  # where only one of them is tied, the vectors are kept and the head is another
        model, saved = made(PAIRS, 1, "seq2seq", tied=tied), made(NEXT, 2, tied=not tied)
        parts.take(model, saved, {}, {})
        torch.testing.assert_close(model.decoder.embedding(torch.arange(9)), saved.embedding(torch.arange(9)))  # type: ignore[union-attr,operator]


def test_a_matrix_is_no_table() -> None:
    """Five channels to five entries, and five tokens of five entries: the same shape, another meaning."""
    taken = parts.take(made(Ports(5, 5)), made(Ports(0, 5, d_in=5)), {}, {})
    assert taken.left["embedding.weight"] == "a different kind of input layer"
    assert "body.layers.0.cell.weight_ih" in taken.took


@pytest.mark.parametrize(("words", "trained"), [
    (["decoder"], {"head"}),
    (["embedding"], {"body", "head"}),
    (["body"], {"embedding", "head"}),
    (["decoder.body"], {"embedding", "head"}),
    (["body.layers.0.cell.weight_ih"], {"embedding", "body", "head"}),
    (["head"], {"embedding", "body"}),
    (["everything-but-the-head"], {"head"}),
    (["embedding", "head.weight"], {"body", "head"}),
    ([], {"embedding", "body", "head"}),
])  # fmt: skip
def test_words_name_parts(words: list[str], trained: set[str]) -> None:
    model = made(NEXT)
    frozen = parts.freeze(model, words)
    moving = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {parts.part_of(name) for name in moving} == trained
    assert frozen.n_trained == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert set(frozen.fixed) == set(model.state_dict()) - moving


def test_a_readout_belongs_to_the_head() -> None:
    frozen = parts.freeze(made(WHOLE), ["head"])
    assert {parts.part_of(name) for name in frozen.fixed} == {"readout", "head"}
    for word in ("encoder", "everything-but-the-head"):
        frozen = parts.freeze(made(WHOLE), [word])
        assert {parts.part_of(name) for name in frozen.fixed} == {"embedding", "body"}
    assert {parts.part_of(name) for name in parts.freeze(made(WHOLE), ["readout"]).fixed} == {"readout"}


@pytest.mark.parametrize("word", ["encoder", "decodr", "bodyy", "decoder.bodyy", "body.nothing", "w"])
def test_an_unknown_word_lists_what_there_is(word: str) -> None:
    with pytest.raises(UsageError, match=f"no part '{word}'.*[Kk]nown: .*decoder") as told:
        parts.freeze(made(NEXT), [word])
    assert "everything-but-the-head" in str(told.value)


def test_something_must_be_left_to_train() -> None:
    with pytest.raises(UsageError, match="nothing is left to train"):
        parts.freeze(made(NEXT), ["decoder", "head"])


def test_what_is_fixed_is_one_function() -> None:
    """Frozen parts have no dropout; what is trained keeps its own."""
    body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    head = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    model = nn.Sequential(OrderedDict(body=body, head=head))
    frozen = parts.freeze(model, ["body"])
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
    for name, parameter in found.items():
        if name.startswith("body."):
            assert parameter.grad is None, name
        else:
            torch.testing.assert_close(parameter.grad, wanted[name].grad)
