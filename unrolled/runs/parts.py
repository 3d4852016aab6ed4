"""Weights by name, which is the name of the part they are in, whatever model and task it was put together from.

    embedding           what makes vectors of the input        readout   what makes one vector of many
    body                what a model file makes                head      what makes answers of vectors

A model with a source has two halves, `encoder.embedding` and `encoder.body` for what it reads, `decoder.embedding` and
`decoder.body` for what it writes. A model without one is itself a half: one that reads whole sequences an encoder, one
of what comes next a decoder. So weights are taken from a saved run by adding or dropping the name of the half, and kept
fixed by the name with it or without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError, nearest
from unrolled.core.front import option
from unrolled.core.task import Vocabulary
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.layers.parts.embedding import Segmented, Table, TiedHead

HEAD = "head"
ALL_BUT_HEAD = "everything-but-the-head"
HALVES = ("encoder", "decoder")
TABLES = ("encoder.embedding", "decoder.embedding")
ENDS = ("readout", HEAD)  # a readout with weights belongs to the head


def part_of(name: str) -> str:
    """The part that a tensor of this name is in.

    >>> part_of("encoder.body.layers.0.weight"), part_of("head.bias")
    ('encoder.body', 'head')
    """
    words = name.split(".")
    return ".".join(words[:2]) if words[0] in HALVES else words[0]


def in_half(name: str, model: nn.Module) -> str:
    """The name with its half, which a model without a source is itself.

    >>> in_half("body.weight", nn.Linear(2, 3)), in_half("head.bias", nn.Linear(2, 3))
    ('decoder.body.weight', 'head.bias')
    """
    half = "encoder" if isinstance(model, Encoder) else "decoder"
    return f"{half}.{name}" if part_of(name) in ("embedding", "body") else name


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every tensor that is saved, once: a table that both halves share under its first name."""
    found: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (name, tensor))
    return dict(found.values())


# ---- taking


class Taken(NamedTuple):
    """Which tensors came from a saved run, by name, and why others did not."""

    took: list[str]
    left: dict[str, str]
    some: dict[str, tuple[int, int]] = {}
    """of tables of which the rows of shared tokens were taken: how many, of how many"""

    def words(self, where: object) -> str:
        """One line."""
        whole = _by_part(self.took)
        parts = ", ".join(f"{name} ({n})" for name, n in whole.items())
        reasons: dict[str, list[str]] = {}
        for name, why in self.left.items():
            reasons.setdefault(f"{part_of(name)}: {why}", []).append(name)
        rest = "; ".join(f"{reason} ({len(tensors)})" for reason, tensors in reasons.items())
        line = f"from {where}: {len(self.took)} of {len(self.took) + len(self.left)} tensors loaded: {parts}"
        for name, (n, of) in self.some.items():
            line += f"; {part_of(name)}: the {n:,} of {of:,} tokens that both vocabularies have"
        return f"{line}; newly initialised: {rest}" if rest else line

    def beside(self, other: Taken) -> Taken:
        """With what was taken from a second run."""
        took = [*self.took, *other.took]
        left = {name: why for name, why in {**other.left, **self.left}.items() if name not in took}
        return Taken(took, left, {**self.some, **other.some})


def _by_part(tensors: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in tensors:
        counts[part_of(name)] = counts.get(part_of(name), 0) + 1
    return counts


def counterpart(name: str, known: Iterable[str]) -> str:
    """What a part is called in another model: a body that reads was one that wrote, if that is all there was.

    >>> counterpart("encoder.body.weight", ["decoder.body.weight", "head.bias"])
    'decoder.body.weight'
    """
    half, _, rest = name.partition(".")
    other = {"encoder": "decoder", "decoder": "encoder"}.get(half)
    halves = {each.partition(".")[0] for each in known}
    return f"{other}.{rest}" if other in halves and half not in halves else name


def take(
    model: nn.Module,
    saved: nn.Module,
    means: Mapping[str, Vocabulary],
    meant: Mapping[str, Vocabulary],
    halves: Sequence[str] = HALVES,
    filled: Collection[str] = (),
    words: Sequence[str] = (),
) -> Taken:
    """Copy into the model every tensor of a saved one that has the same name by part, the same shape and meaning, but
    for those that are filled already.

    `means` and `meant` are what the rows of tables and heads stand for here and there. Tables that scale their entries
    differently are converted, so that what reaches the body is what it was; where inputs have one segment and had
    several, that of the first is part of the table. Of a table of other tokens the rows of those are taken that both
    vocabularies have. `halves` are those that are looked at, with all else that they do not name; `words` name the
    parts that are asked for (see `chosen`), all if there are none.
    """
    there = {in_half(name, saved): tensor for name, tensor in saved.state_dict().items()}
    inputs, before = input_layers(model), input_layers(saved)
    took, left, some = [], {}, {}
    asked = {*chosen([in_half(name, model) for name in tensors(model)], words)}
    for name, here in tensors(model).items():
        if name in filled:
            continue
        wanted = in_half(name, model)
        if words and wanted not in asked:
            left[name] = "not asked for"
            continue
        if wanted.split(".")[0] not in (*halves, *ENDS):
            continue
        other = counterpart(wanted, there)
        own, theirs = inputs.get(part_of(wanted)), before.get(part_of(other))
        tables = isinstance(own, Table) and isinstance(theirs, Table)
        means_here, meant_there = means.get(part_of(wanted)), meant.get(part_of(other))
        rows = shared_rows(means_here, meant_there) if tables and here.dim() == 2 else None
        same_width = there.get(other, here).shape[1:] == here.shape[1:]
        why = None if rows and same_width else _misfit(here, there.get(other), means_here, meant_there)
        if why is None and type(own) is not type(theirs) and not tables:
            why = "a different kind of input layer"
        if why is not None:
            left[name] = why
            continue
        value = there[other]
        if isinstance(own, Table) and isinstance(theirs, Table) and other.endswith("embedding.weight"):
            factor = theirs.scale / own.scale
            _require_one_use(factor, model, saved)
            value = theirs.flat() if isinstance(theirs, Segmented) and not isinstance(own, Segmented) else value
            value = value if factor == 1 else value * factor
        with torch.no_grad():
            if rows:
                here[[new for new, _ in rows]] = value[[old for _, old in rows]]
                some[name] = len(rows), len(here)
            else:
                here.copy_(value)
        took.append(name)
    return Taken(took, left, some)


def shared_rows(means: Vocabulary | None, meant: Vocabulary | None) -> list[tuple[int, int]] | None:
    """The rows of two vocabularies that stand for the same, (new, old); None where all do, or fewer than half of the
    new ones."""
    if means is None or meant is None or means.meaning() == meant.meaning():
        return None
    if not all(isinstance(each.codec, Codec | WordListCodec) for each in (means, meant)):
        return None
    known = {each: i for i, each in reversed([*enumerate(meant.spelt())])}
    found = [(i, known[each]) for i, each in enumerate(means.spelt()) if each in known]
    return found if 2 * len(found) >= means.size else None


def input_layers(model: nn.Module) -> dict[str, nn.Module]:
    """What makes vectors of the input of each half."""
    found = {in_half(name, model): module for name, module in model.named_modules(remove_duplicate=False)}
    return {name: module for name, module in found.items() if name in TABLES}


def _misfit(here: Tensor, there: Tensor | None, means: Vocabulary | None, meant: Vocabulary | None) -> str | None:
    """Why a tensor is not taken; None: it is."""
    if there is None:
        return "not in the saved run"
    if there.shape != here.shape:
        return f"shape {_shape(there)} instead of {_shape(here)}"
    if means is not None and meant is not None and means.meaning() != meant.meaning():
        return "different vocabulary"
    return None


def _require_one_use(factor: float, model: nn.Module, saved: nn.Module) -> None:
    """Vectors can be converted to another scale; not where the same numbers are the weights of the head too."""
    tied = [any(isinstance(module, TiedHead) for module in each.modules()) for each in (model, saved)]
    if factor != 1 and all(tied):
        raise UsageError(
            "the embeddings of the saved run and of this model are both tied to the head, but this one is "
            f"scaled {1 / factor:.3g} times as much, so they cannot be converted; leave out {option('tied')}"
        )


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "1"


# ---- keeping fixed


class Frozen(NamedTuple):
    """What of a model is trained, and the modules that are not."""

    n_trained: int
    n_all: int
    fixed: list[str]
    still: list[nn.Module]

    def rest(self) -> None:
        """What is fixed is one function, the same as in use: no dropout in it, and no running average moves."""
        for module in self.still:
            module.eval()

    def words(self) -> str:
        parts = ", ".join(f"{name} ({n})" for name, n in _by_part(self.fixed).items())
        return f"{self.n_trained:,} of {self.n_all:,} parameters are trained; frozen: {parts}"


def freeze(model: nn.Module, words: Sequence[str]) -> Frozen:
    """Take the named parts out of training; see `chosen` for the words."""
    every = {in_half(name, model): parameter for name, parameter in model.named_parameters(remove_duplicate=False)}
    fixed = {id(every[name].requires_grad_(False)) for name in chosen(list(every), words)}
    found = [name for name, parameter in model.named_parameters() if id(parameter) in fixed]
    parameters = list(model.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    if words and not trained:
        raise UsageError(f"nothing is left to train: freeze = {', '.join(words)} covers the whole model")
    still = list(_still(model)) if words else []
    return Frozen(trained, sum(parameter.numel() for parameter in parameters), found, still)


def chosen(tensors: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """The tensors that words name: a half, a part, its last word alone, or any dotted beginning of a name.

    >>> list(chosen(["encoder.body.weight", "decoder.embedding.weight", "head.bias"], ["encoder", "embedding"]))
    ['encoder.body.weight', 'decoder.embedding.weight']
    """
    for word in words:
        if word == ALL_BUT_HEAD:
            found = [name for name in tensors if part_of(name) not in ENDS]
        else:
            found = [name for name in tensors if _named(name, word)]
        if not found:
            raise UsageError(f"this model has no part '{word}'; {nearest(word, _known(tensors, word))}")
        yield from found


def depths(model: nn.Module) -> dict[str, int]:
    """How far each parameter is from the predictions: 0 of the head, 1 of the last layer of a body, more of those
    before it, most of the input layer.

    >>> body = nn.Sequential(nn.Embedding(1, 1), nn.Embedding(1, 1))
    >>> depths(nn.ModuleDict({"embedding": nn.Embedding(1, 1), "body": body, "head": nn.Embedding(1, 1)}))
    {'embedding.weight': 3, 'body.0.weight': 2, 'body.1.weight': 1, 'head.weight': 0}
    """
    names = [name for name, _ in model.named_parameters()]
    found: dict[str, int] = {}
    for half in ("", *HALVES):
        own = [name for name in names if (name.split(".")[0] if name.split(".")[0] in HALVES else "") == half]
        bodies = [name for name in own if part_of(name).split(".")[-1] == "body"]
        layers = sorted({_layer(name) for name in bodies}, reverse=True)
        for name in own:
            part = part_of(name).split(".")[-1]
            deep = 1 + layers.index(_layer(name)) if part == "body" else 1 + len(layers)
            found[name] = 0 if part in ENDS else deep
    return {name: found[name] for name in names}


def _layer(name: str) -> int:
    """The number of the layer that a parameter is in; -1: of none, such as what stands before all of them."""
    return next((int(word) for word in name.split(".") if word.isdigit()), -1)


def _named(name: str, word: str) -> bool:
    """Whether a word is the beginning of a name, with its half or without, or stands for the part it is in."""
    return any(f"{each}.".startswith(f"{word}.") for each in _forms(name)) or (word == HEAD and part_of(name) in ENDS)


def _forms(name: str) -> tuple[str, str]:
    """A name with its half and without."""
    half, _, rest = name.partition(".")
    return name, rest if half in HALVES else name


def _known(tensors: Iterable[str], word: str) -> set[str]:
    """Words that would have been understood; below a part only as deep as the word goes."""
    known = {ALL_BUT_HEAD}
    for name in (form for each in tensors for form in _forms(each)):
        whole = part_of(name)
        known |= {whole, whole.split(".")[0]}
        if word.startswith(f"{whole}."):
            known.add(".".join(name.split(".")[: word.count(".") + 1]))
    return known


def _still(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost modules that have parameters and train none of them."""
    parameters = list(module.parameters())
    if parameters and not any(parameter.requires_grad for parameter in parameters):
        yield module
        return
    for child in module.children():
        yield from _still(child)
