"""Parts of a whole model by name, whatever model and task it was put together from.

    encoder.embedding   what makes vectors of the input that is read        decoder.embedding   of the tokens so far
    encoder.body        the body that reads                                 decoder.body        the body that writes
    head                what makes answers of vectors

A model of what comes next has a decoder and a head, one that answers has an encoder and a head, one that writes a
target has all. So a weight has the same name in two models whose bodies are the same, wherever they stand and whatever
stands between them: by these names weights are taken from a saved run and kept fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError, nearest
from unrolled.core.task import Vocabulary

HEAD = "head"
ALL_BUT_HEAD = "everything-but-the-head"

M = TypeVar("M", bound=nn.Module)


def part(name: str, module: M) -> M:
    """The module, marked as a part of the whole."""
    module._unrolled_part = name  # type: ignore[assignment]  # a plain word beside the module's tensors
    return module


def names(model: nn.Module) -> dict[str, str]:
    """The name by part of every tensor in the model's state dict; a tensor in no part keeps its own name.

    >>> names(part("head", nn.Linear(2, 3)))
    {'weight': 'head.weight', 'bias': 'head.bias'}
    """
    marked = {
        f"{path}." if path else "": str(module._unrolled_part)
        for path, module in model.named_modules(remove_duplicate=False)
        if hasattr(module, "_unrolled_part")
    }
    result = {}
    for own in model.state_dict():
        paths = [path for path in marked if own.startswith(path)]
        path = max(paths, key=len, default=None)  # the innermost: a tied head holds the table of the input
        result[own] = own if path is None else f"{marked[path]}.{own[len(path) :]}"
    return result


def part_of(name: str) -> str:
    """The part that a tensor of this name is in.

    >>> part_of("encoder.body.layers.0.weight"), part_of("head.bias")
    ('encoder.body', 'head')
    """
    words = name.split(".")
    return ".".join(words[:2]) if words[0] in ("encoder", "decoder") else words[0]


# ---- taking


class Taken(NamedTuple):
    """Which tensors came from a saved run, by name, and why others did not."""

    took: list[str]
    left: dict[str, str]

    def words(self, where: object) -> str:
        """One line."""
        whole = _by_part(self.took)
        parts = ", ".join(f"{name} ({n})" for name, n in whole.items())
        reasons: dict[str, list[str]] = {}
        for name, why in self.left.items():
            reasons.setdefault(f"{part_of(name)}: {why}", []).append(name)
        rest = "; ".join(f"{reason} ({len(tensors)})" for reason, tensors in reasons.items())
        line = f"from {where}: {len(self.took)} of {len(self.took) + len(self.left)} tensors taken: {parts}"
        return f"{line}; begun anew: {rest}" if rest else line


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
) -> Taken:
    """Copy into the model every tensor of a saved one that has the same name by part, the same shape and meaning.

    `means` and `meant` are what the rows of tables and heads stand for here and there.
    """
    theirs, own_tensors = saved.state_dict(), model.state_dict()
    there = {name: theirs[own] for own, name in names(saved).items()}
    took, left = [], {}
    with torch.no_grad():
        for own, name in names(model).items():
            other, here = counterpart(name, there), own_tensors[own]
            vocabulary, before = means.get(part_of(name)), meant.get(part_of(other))
            if other not in there:
                left[name] = "there was none"
            elif there[other].shape != here.shape:
                left[name] = f"of another shape, {_shape(there[other])} where {_shape(here)} is wanted"
            elif vocabulary is not None and before is not None and vocabulary.meaning() != before.meaning():
                left[name] = "of another vocabulary"
            else:
                here.copy_(there[other])
                took.append(name)
    return Taken(list(dict.fromkeys(took)), left)


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
        return f"{self.n_trained:,} of {self.n_all:,} parameters are trained; fixed: {parts}"


def freeze(model: nn.Module, words: Sequence[str]) -> Frozen:
    """Take the named parts out of training; see `chosen` for the words."""
    by_own = names(model)
    fixed = set(chosen(list(by_own.values()), words))
    found = []
    for own, parameter in model.named_parameters(remove_duplicate=False):
        if by_own[own] in fixed:
            parameter.requires_grad_(False)
            found.append(by_own[own])
    parameters = list(model.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    if words and not trained:
        raise UsageError(f"nothing is left to train: freeze = {', '.join(words)} names all of the model")
    still = list(_still(model)) if words else []
    return Frozen(trained, sum(parameter.numel() for parameter in parameters), list(dict.fromkeys(found)), still)


def chosen(tensors: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """The tensors that words name: a half, a part, its last word alone, or any dotted beginning of a name.

    >>> list(chosen(["encoder.body.weight", "decoder.embedding.weight", "head.bias"], ["encoder", "embedding"]))
    ['encoder.body.weight', 'decoder.embedding.weight']
    """
    for word in words:
        if word == ALL_BUT_HEAD:
            found = [name for name in tensors if part_of(name) != HEAD]
        else:
            found = [n for n in tensors if f"{n}.".startswith(f"{word}.") or part_of(n).split(".")[-1] == word]
        if not found:
            raise UsageError(
                f"there is no part '{word}' of this model to freeze; {nearest(word, _known(tensors, word))}"
            )
        yield from found


def _known(tensors: Iterable[str], word: str) -> set[str]:
    """Words that would have been understood; below a part only as deep as the word goes."""
    known = {ALL_BUT_HEAD}
    for name in tensors:
        whole, pieces = part_of(name), name.split(".")
        known |= {whole, whole.split(".")[0], whole.split(".")[-1]}
        if word.startswith(f"{whole}."):
            known.add(".".join(pieces[: word.count(".") + 1]))
    return known


def _still(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost modules that have parameters and train none of them."""
    parameters = list(module.parameters())
    if parameters and not any(parameter.requires_grad for parameter in parameters):
        yield module
        return
    for child in module.children():
        yield from _still(child)
