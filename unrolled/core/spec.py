"""What a model file declares, `MODEL = ModelSpec(...)`, and whether a model fits what a task asks. Imports no torch.

A declaration is checked once, when it is made. `misfit` is the only place that says which model fits which task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

from unrolled.core.config import Config
from unrolled.core.declared import invalid, require_sound
from unrolled.core.errors import listed, nearest

Kind = Literal["causal", "encoder", "conditional", "memory"]
Reads = Literal["embedded", "tokens", "numbers", "units", "counts", "tf-idf"]
Where = Literal["next", "each", "whole", "regions", "horizon", "context"]
Bags = Literal["none", "also", "only"]
Preset = Literal["quick", "standard", "thorough"]
Targets = Literal[
    "tokens", "bits", "class", "classes", "numbers", "tags", "series", "horizon", "pattern", "bit-pattern",
    "context", "pen", "samples", "flow", "pixels",
]  # fmt: skip

PRESETS: tuple[str, ...] = get_args(Preset)
PREDICTS = {
    "next": "what comes next", "each": "at each position", "whole": "once for a whole sequence",
    "regions": "for each region of the input", "horizon": "the next steps of a series",
    "context": "a word from the words around it",
}  # fmt: skip
FOLLOWING = ("tokens", "bits", "pen", "samples", "pixels")  # targets of what comes next
TARGETS = {
    "pattern": "patterns of numbers", "bit-pattern": "patterns of bits", "context": "words in their context",
    "pen": "moves of a pen", "samples": "sound", "flow": "sound that noise becomes", "pixels": "pixels of images",
}  # of which the names are no words  # fmt: skip
ASKED = {
    "next": "what comes next", "each": "a prediction at each position", "whole": "one prediction for a whole sequence",
    "horizon": "the next steps of a series", "context": "a word from the words around it",
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How wide a body is to be: of numbers the width of the input, of tokens how many different ones there are."""

    d_in: int
    d_out: int
    d_source: int = 0
    """Width of a source that is read first; 0: there is none."""
    targets: str = "tokens"
    """What outputs mean, one of Targets."""
    horizon: int = 1
    """How many steps ahead of each position are predicted; the output holds them one after the other."""
    d_step: int = 0
    """Of a forecast, how many numbers one step has: the first columns of the input, and d_out = horizon * d_step."""
    observed: bool = False
    """Whether d_step more columns of the input follow these, 1 where a number was observed, 0 where it is missing."""
    season: int = 1
    """Steps in a season of the series; 1: there is none."""
    width: int = 16
    """Of a model that has token vectors of its own, how wide they are."""
    d_beside: int = 0
    """How many of the last columns of d_in are a condition that runs beside the input."""


class Asks(NamedTuple):
    """What a task asks of a model, without sizes; None is not known yet, before the data was looked at."""

    accepts: tuple[str, ...]
    where: Where = "next"
    input: Literal["tokens", "numbers"] | None = None
    source: Literal["tokens", "numbers"] | None = None
    targets: str | None = None
    spelt: bool = False  # a token comes with others beside it: its letters, its segment
    bags: bool | None = None  # examples are bags of sequences


class SourcePorts(NamedTuple):
    """The source of a task that has one: tokens [B, S], or where `d_in` is given vectors [B, S, d_in]."""

    n_tokens: int
    d_in: int | None = None
    shared: bool = False
    """Source and target have one vocabulary, so that one table may embed both."""

    @property
    def offers(self) -> Literal["tokens", "numbers"]:
        return "tokens" if self.d_in is None else "numbers"


class ConditionPorts(NamedTuple):
    """What is known of a sequence beforehand: vectors [B, M, width], each of which holds for `hop` steps and the last
    for all after it; one vector holds for the whole."""

    width: int
    hop: int = 1


class ForecastPorts(NamedTuple):
    """A forecast: numbers of the next `horizon` steps, `d_step` of each, at every position or behind a window."""

    horizon: int
    at_once: int
    """steps that a trained model predicts at once; one with a closed form predicts all"""
    d_step: int
    observed: bool
    """whether the input says which numbers are missing"""
    relative: Literal["none", "last", "window"]
    """what a trained model's outputs are relative to: nothing, the last value, mean and deviation of the window"""
    rescale: Callable[[Any, Any, Any], Any]
    """rescale(y, shift, scale): outputs that mean shift + scale * value"""
    season: int = 1
    """steps in a season of the series"""

    def shape(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "rescale"}


class Ports(NamedTuple):
    """What a task asks of a model: how wide its input and output are, and how many classes may start it.

    The input is tokens, `n_tokens` different ones, or where `d_in` is given vectors of that width.
    """

    n_tokens: int
    d_out: int
    n_classes: int = 0
    d_in: int | None = None
    answers: Literal["next", "whole", "each", "horizon", "context"] = "next"
    """Where predictions are wanted: what comes next, one for a whole sequence, one at each of its positions, the next
    steps of a series, or a word from those around it."""
    readout: str = "last"
    """How a whole sequence is read off the positions of a body."""
    pooling: str = ""
    """Of bags, how they are read off what is read of their instances: the name of a readout; empty: there are none."""
    letters: int = 0
    """Different letters, where a token comes with those it is spelt with: x [B, T, 1 + L]."""
    segments: int = 0
    """Different segments, where a token comes with the one that it is in: x [B, T, 2]; the last two of d_out then say,
    of the first position, whether one follows the other, if d_out has more outputs than there are tokens."""
    source: SourcePorts | None = None
    """The source that is read before the target is written; None: there is none."""
    delay: int = 0
    """Steps by which a causal model may predict late, where it predicts at each position."""
    targets: str = "tokens"
    """What outputs mean, one of spec.Targets: a model may be fitted in closed form to some of them."""
    forecast: ForecastPorts | None = None
    """Of the next steps of a series: how many, and how they are scaled."""
    condition: ConditionPorts | None = None
    """What runs beside the input at every step; None: nothing."""
    flows: int = 0
    """How many flows of such a body turn noise into samples; 0: the model predicts."""

    @property
    def offers(self) -> Literal["tokens", "numbers"]:
        return "tokens" if self.d_in is None else "numbers"

    def shape(self) -> dict[str, Any]:
        """All but what outputs mean: equal where one model fits wherever the other does."""
        told = self._asdict()
        return {**told, "forecast": None} if self.forecast is None else {**told, "forecast": self.forecast.shape()}

    def asks(self, accepts: tuple[str, ...]) -> Asks:
        """What is asked, without sizes."""
        source, spelt = None if self.source is None else self.source.offers, bool(self.letters or self.segments)
        return Asks(accepts, self.answers, self.offers, source, self.targets, spelt, bool(self.pooling))


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model file in values."""

    summary: str
    """What it is, in a few words, for lists."""
    kind: Kind
    """What `make` returns: a Causal, an Encoder, for a source and a target Halves or a Conditional, or a Memory."""
    config: type[Config]
    """Its settings, each with a default."""
    tiny: Config
    """The settings with which the laws are checked."""
    make: Callable[[Any, Sizes], Any]
    """make(config, sizes) -> the body, whose `d_out` is the width of its output."""
    reference: str = ""
    """The publication that describes it."""
    aliases: tuple[str, ...] = ()
    """Other names that users may type."""
    reads: tuple[Reads, ...] = ("embedded",)
    """What its input is, the first that the task has: vectors that an input layer makes of anything; tokens or numbers
    as the task has them; numbers in the units of the data; how often each token occurs, or that weighted by rarity."""
    reads_source: tuple[Reads, ...] = ("embedded",)
    """The same of the source, where the kind is conditional."""
    outputs: tuple[Where, ...] = ("next", "each", "whole")
    """Where it can predict: what comes next, at each position, once for a whole sequence; an encoder with fewer outputs
    than positions: for each region."""
    owns_head: bool = False
    """Its output is as wide as the targets."""
    bags: Bags = "none"
    """Of a model that owns its head: whether it reads bags, x [B, I, T], too, or these only."""
    closed_form: tuple[Targets, ...] = ()
    """Kinds of targets for which its `solve` gives the weights in closed form, without gradient descent."""
    preset: Preset = "thorough"
    """The smallest preset of `compare` that has it."""
    always: bool = False
    """Whether every comparison has it, also one of named models: what others are measured against."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Advice for training, such as {"lr": 1e-3}; settings of the user take precedence."""
    resize: Callable[[Any, int], Config] | None = None
    """resize(config, width): the same settings at another width, for comparisons at equal size."""
    under: Callable[[Any], ModelSpec] | None = None
    """under(config): the declaration where it depends on the settings."""
    attend: Callable[[Any, int, int], Any] | None = None
    """attend(config, d_in, d_source): a body that attends to a source, for `encdec --decoder`."""
    cell: Callable[[Any], Callable[[int, int], Any]] | None = None
    """cell(config)(d_in, d_state): its cell, for a decoder that one vector starts."""

    def __post_init__(self) -> None:
        require_sound(self, "config", ARGUMENTS, _faults(self))

    def settled(self, config: Config) -> ModelSpec:
        """The declaration under these settings."""
        return self if self.under is None else self.under(config)


CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": get_args(Kind), "preset": PRESETS, "reads": get_args(Reads), "reads_source": get_args(Reads),
    "outputs": get_args(Where), "closed_form": get_args(Targets), "bags": get_args(Bags),
}  # fmt: skip
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "make": ("config", "sizes"), "resize": ("config", "width"), "under": ("config",),
    "attend": ("config", "d_in", "d_source"), "cell": ("config",),
}  # fmt: skip


def _faults(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with fields that other declarations do not have."""
    if not isinstance(spec.reference, str):
        yield "reference", invalid(spec, "reference", "a string")
    if not isinstance(spec.tiny, spec.config):
        yield "tiny", invalid(spec, "tiny", f"settings of the class {spec.config.__name__}, such as Config()")
    for name, choices in CHOICES.items():
        value = getattr(spec, name)
        one = name in ("kind", "preset", "bags")
        some = [value] if one or not isinstance(value, tuple) else list(value)
        wrong = [each for each in some if each not in choices]
        if wrong or isinstance(value, str) != one or (not some and name != "closed_form"):
            hint = f" ({nearest(wrong[0], choices)})" if wrong and isinstance(wrong[0], str) else ""
            how = "one of" if one else "a tuple of some of"
            yield name, invalid(spec, name, f"{how} {', '.join(choices)}{hint}")
    for name in ("owns_head", "always"):
        if not isinstance(getattr(spec, name), bool):
            yield name, invalid(spec, name, "True or False")
    if not isinstance(spec.recipe, Mapping):
        yield "recipe", invalid(spec, "recipe", 'settings by name, such as {"lr": 1e-3}')


def explained(error: TypeError, declaration: type[Any] = ModelSpec) -> str:
    """What a call of a declaration with other fields than it has says, in words.

    >>> explained(TypeError("ModelSpec.__init__() got an unexpected keyword argument 'knd'")).split("?")[0]
    "a ModelSpec has no field 'knd'; did you mean 'kind'"
    """
    known, what = [each.name for each in fields(declaration)], f"a {declaration.__name__}"
    if found := re.search(r"unexpected keyword argument '(\w+)'", str(error)):
        return f"{what} has no field '{found[1]}'; {nearest(found[1], known)}"
    if "missing" in str(error):
        needed = re.findall(r"'(\w+)'", str(error))
        return f"{what} must have {listed(needed)}"
    if "positional argument" in str(error):
        return f"the fields of {what} are keyword arguments, such as {known[0]}=..."
    return str(error)


def reading(reads: tuple[Reads, ...], offered: str | None, spelt: bool = False) -> Reads | None:
    """The first way to read what is offered; None: there is none. What is not known may be read in any way."""
    for way in reads:
        if way == "embedded" or offered is None or way == offered:
            return way
        if way in ("counts", "tf-idf") and offered == "tokens" and not spelt:
            return way
        if way == "units" and offered == "numbers":
            return way
    return None


def misfit(spec: ModelSpec, asks: Asks) -> str | None:
    """Why a model does not fit what is asked; None: it fits, as far as that is known."""
    if spec.kind not in asks.accepts:
        return f"it is {_a(spec.kind)} model, but the task needs {' or '.join(asks.accepts)} models"
    if asks.where not in spec.outputs and not (asks.where == "horizon" and _continues(spec)):
        can = " or ".join(words for each, words in PREDICTS.items() if each in spec.outputs)
        return f"it predicts {can}, but the task needs {ASKED[asks.where]}"
    if reading(spec.reads, asks.input, asks.spelt) is None:
        return f"it reads {_words(spec.reads)}, but the input of the task is {asks.input}"
    if spec.kind == "conditional" and reading(spec.reads_source, asks.source) is None:
        return f"it reads {_words(spec.reads_source)}, but the source of the task is {asks.source}"
    if asks.bags and spec.owns_head and spec.bags == "none":
        return "it reads single sequences, but the examples are bags of them"
    if asks.bags is False and spec.bags == "only":
        return "it reads bags of sequences, but the examples are single sequences"
    fitted = _fitted_to(spec, asks.where)
    if asks.targets is not None and fitted is not None and asks.targets not in fitted:
        known, found = [TARGETS.get(each, each) for each in fitted], asks.targets
        return f"it has a closed form for {listed(known)}, but the targets are {TARGETS.get(found, found)}"
    if asks.targets == "flow" and spec.owns_head:
        return "it gives predictions itself, but a flow needs a body behind which other layers stand"
    return None


def _fitted_to(spec: ModelSpec, where: Where) -> tuple[str, ...] | None:
    """The targets that a model can be fitted to where it cannot be trained; None: it can."""
    if not spec.owns_head or where in ("horizon", "context"):
        return None
    if where != "next":
        return spec.closed_form
    return tuple(each for each in spec.closed_form if each in FOLLOWING) or None


def _continues(spec: ModelSpec) -> bool:
    """Whether a model can forecast: one with a closed form for it, a causal one that predicts what comes next, or an
    encoder that reads a window."""
    if spec.owns_head and spec.closed_form:
        return "horizon" in spec.closed_form
    return ("whole" if spec.kind == "encoder" else "next") in spec.outputs


Role = Literal["an encoder", "a decoder that attends", "a decoder that one vector starts"]


def serves(spec: ModelSpec, role: Role) -> bool:
    """Whether a model can be half of another."""
    if role == "a decoder that attends":
        return spec.attend is not None
    if role == "a decoder that one vector starts":
        return spec.cell is not None
    able = "each" in spec.outputs or "regions" in spec.outputs
    reads = "embedded" in spec.reads or "numbers" in spec.reads
    return spec.kind != "conditional" and not spec.owns_head and able and reads


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _words(reads: tuple[Reads, ...]) -> str:
    names = {"counts": "counts of tokens", "tf-idf": "counts of tokens"}
    return listed([names.get(each, each) for each in reads])
