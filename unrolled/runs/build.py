"""The one place where a model and a task meet: input layer, body, head."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from unrolled.core import discover
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.spec import Asks, ModelSpec, Ports, Sizes, SourcePorts, misfit, reading
from unrolled.core.task import Model, Task
from unrolled.layers.attention.readouts import readout_named
from unrolled.layers.counting.autoregression import Autoregression
from unrolled.layers.counting.bag_of_words import Bag
from unrolled.layers.parts.assembled import Decoder, Reader
from unrolled.layers.parts.char_words import SpeltWords
from unrolled.layers.parts.conditioning import Started
from unrolled.layers.parts.dropout import WordDropout
from unrolled.layers.parts.embedding import Affine, Borrowed, OneHot, Table, TiedHead
from unrolled.layers.parts.encoder_decoder import EncoderDecoder, Halves
from unrolled.layers.parts.ensemble import Together
from unrolled.layers.parts.filter import Filter
from unrolled.runs.config import Ends, RunConfig

BODIES: dict[str, tuple[Any, str]] = {
    "causal": (Causal, "a Causal"), "encoder": (Encoder, "an Encoder"),
    "conditional": ((Halves, Conditional), "Halves or a Conditional"),
}  # fmt: skip
READ_SCALE, FEW = 0.1, 1000
"""The size of token vectors that a reader begins with where there are more than a few tokens: a word that is seen only
some times then moves far enough to count. Letters are seen often, and begin with vectors of size 1."""


def import_models(config: RunConfig) -> None:
    """Import the model and those that its settings name: within torch.device("meta") their constants would be empty."""
    names = discover.models.names()
    for name in (config.model, *config.model_settings.values()):
        if isinstance(name, str) and name in names:
            discover.models.load(name)


def settings(config: RunConfig) -> Config:
    """The model's own settings, checked by its file."""
    return discover.model(config.model).config.parse(config.model_settings)


def spec_of(config: RunConfig) -> ModelSpec:
    """What the model of a run declares, under its settings."""
    return discover.model(config.model).settled(settings(config))


def make_task(config: RunConfig) -> Task:
    module = discover.tasks.load(config.task)
    task: Task = module.Task(module.Config.parse(config.task_settings), config.data)
    return task


def require_model(config: RunConfig, asks: Asks) -> None:
    """Refuse a model that does not fit the task, with those that do."""
    why = misfit(spec_of(config), asks)
    if why is not None:
        fitting = [name for name in discover.models.names() if misfit(discover.model(name), asks) is None]
        raise UsageError(
            f"the model '{config.model}' does not fit the task '{config.task}': {why}; "
            f"models that fit: {', '.join(fitting)}"
        )


def is_aligned(body: Any, d_in: int) -> bool:
    """Whether a body has an output for each position that it reads; an encoder of images has one for each region."""
    if not isinstance(body, Encoder):
        return True
    body.eval()  # without noise, for the weights that are made after it are a function of the seed
    with torch.no_grad():
        tried = {n: body(torch.zeros(1, n, d_in), torch.ones(1, n, dtype=torch.bool))[0] for n in (2, 5)}
    body.train()
    return all(y.shape[1] == n for n, y in tried.items())


def build(config: RunConfig, ports: Ports, accepts: tuple[str, ...]) -> Model:
    """A model whose input and output fit the task; its initial weights are a function of the seed."""
    if config.members > 1:
        alone = config.model_copy(update={"members": 1})
        return Together([build(alone, ports, accepts) for _ in range(config.members)])  # type: ignore[misc]
    require_model(config, ports.asks(accepts))
    with torch.random.fork_rng(devices=[]), discover.models.own_mistakes():
        torch.manual_seed(config.seed)
        model = _put_together(config, ports)
    return model.to(config.device)


def _put_together(config: RunConfig, ports: Ports) -> Model:
    spec = spec_of(config)
    if ports.answers != "next":
        return _reader(config, ports, spec)
    if spec.kind == "conditional":
        return _pair(config, ports, spec)
    return _decoder(config, ports, spec)


def _made(config: RunConfig, spec: ModelSpec, sizes: Sizes) -> Any:
    """What the file makes, which must be what its kind says."""
    made = spec.make(settings(config), sizes)
    expected, word = BODIES[spec.kind]
    if not isinstance(made, expected):
        file, found = discover.models.load(config.model).__file__, type(made).__name__
        raise UsageError(f"{file}: kind is '{spec.kind}', but make returns {found}; expected {word}")
    if not isinstance(made, Halves | Conditional) and not (isinstance(made.d_out, int) and made.d_out):
        file = discover.models.load(config.model).__file__
        raise UsageError(f"{file}: what make returns has no d_out, the width of its output")
    return made


def _decoder(config: RunConfig, ports: Ports, spec: ModelSpec) -> Causal | Conditional:
    """A model of what comes next, which a class may start."""
    ends, n_in = config.ends, ports.n_tokens + ports.n_classes
    entry: nn.Module | None
    if reading(spec.reads, ports.offers) == "embedded":
        entry, width = _entry(ports.d_in, n_in, ends)
    else:  # it reads what the task gives, without a layer in between
        entry, width = None, ports.d_in or n_in
    body = _made(config, spec, Sizes(width, ports.d_out))
    head = None if spec.owns_head or entry is None else _head(entry, body, ports, ends)
    before = [] if entry is None else _dropout(ends)
    behind = [] if head is None else _dropout(ends)
    if not ports.n_classes:
        return Decoder(entry, body, head, before=before, behind=behind)
    lent = None if head is None else Borrowed(head)
    return Started(Decoder(entry, body, lent, before=before, behind=behind), ports.n_tokens, head)


def _pair(config: RunConfig, ports: Ports, spec: ModelSpec) -> Conditional:
    """An encoder that reads the source and a decoder that writes the target, each behind a layer that makes vectors."""
    ends, source = config.ends, cast(SourcePorts, ports.source)
    if spec.owns_head:  # a whole model, solved from sources and targets as they are
        d_source = source.n_tokens if source.d_in is None else source.d_in
        return cast(Conditional, _made(config, spec, Sizes(ports.n_tokens, ports.d_out, d_source)))
    entry, width = _entry(ports.d_in, ports.n_tokens, ends, scale=ends.d_embedding**0.5)
    read, d_source = _source_entry(ends, source, spec, entry)
    halves: Halves = _made(config, spec, Sizes(width, ports.d_out, d_source))
    head = _head(entry, halves.decoder, ports, ends)
    words = [WordDropout(ends.target_dropout)] if ends.target_dropout else []
    before, behind = [*words, *_dropout(ends)], _dropout(ends)
    decoder = Decoder(entry, halves.decoder, Borrowed(head), before=before, behind=behind)
    encoder = Reader(read, halves.encoder, before=[] if read is None else _dropout(ends))
    return EncoderDecoder(encoder, decoder, head)


def _source_entry(ends: Ends, source: SourcePorts, spec: ModelSpec, target: nn.Module) -> tuple[nn.Module | None, int]:
    """What makes vectors of the source, and how wide these are; the table of the target where that is shared."""
    if reading(spec.reads_source, source.offers) == "numbers":  # it reads what the task gives, without a layer
        return None, cast(int, source.d_in)
    if not ends.shared:
        return _entry(source.d_in, source.n_tokens, ends, scale=ends.d_embedding**0.5)
    if not source.shared or not isinstance(target, Table):
        raise UsageError("shared needs one vocabulary for source and target, and input = embedding")
    return target, target.embedding_dim


def _reader(config: RunConfig, ports: Ports, spec: ModelSpec) -> Encoder:
    """A model that has read the whole before it answers, for the sequence or at each of its positions."""
    ends = config.ends
    if spec.owns_head:  # it is fitted to the input as it is
        whole = _made(config, spec, Sizes(ports.d_in or ports.n_tokens, ports.d_out))
        return Reader(None, whole) if isinstance(whole, Encoder) else _filter(config, ports, whole)
    entry, width = _reading_entry(ports, ends, spec)
    body = _made(config, spec, Sizes(width, ports.d_out))
    each = ports.answers == "each"
    if each and not is_aligned(body, width):
        raise UsageError(
            f"the model '{config.model}' has fewer outputs than positions, but the task '{config.task}' needs one "
            "for each position"
        )
    readout = None if each or isinstance(entry, Bag) else readout_named(ports.readout, body.d_out)
    head = nn.Linear(body.d_out if readout is None else readout.d_out, ports.d_out)
    delay = ports.delay if each and isinstance(body, Causal) else 0
    return Reader(entry, body, readout, head, before=_dropout(ends), behind=_dropout(ends), delay=delay)


def _filter(config: RunConfig, ports: Ports, body: Any) -> Encoder:
    """A linear function of the task's own numbers, fitted by least squares."""
    if not isinstance(body, Autoregression):
        raise UsageError(
            f"{discover.models.load(config.model).__file__}: a causal model has a closed form for series only as an "
            f"Autoregression; remove '{ports.targets}' from closed_form"
        )
    return Filter(ports.delay, body)


def _reading_entry(ports: Ports, ends: Ends, spec: ModelSpec) -> tuple[nn.Module | None, int]:
    """What makes vectors of the input of a reader, and how wide these are."""
    way = reading(spec.reads, ports.offers, bool(ports.letters))
    if way == "numbers":  # it reads what the task gives, without a layer in between
        return None, cast(int, ports.d_in)
    if way in ("counts", "tf-idf"):
        return Bag(ports.n_tokens, way), ports.n_tokens
    if ports.letters:
        spelt = SpeltWords(ports.n_tokens, ports.letters, ends.d_embedding, dropout=ends.dropout / 2)
        spelt.words.weight.detach().mul_(READ_SCALE)
        return spelt, spelt.d_out
    entry, width = _entry(ports.d_in, ports.n_tokens, ends)
    if isinstance(entry, Table) and ports.n_tokens > FEW:
        entry.weight.detach().mul_(READ_SCALE)
    return entry, width


def _entry(d_in: int | None, n_tokens: int, ends: Ends, scale: float = 1.0) -> tuple[nn.Module, int]:
    """What makes vectors of the input, and how wide these are."""
    if ends.input == "embedding":
        width = ends.d_embedding
        return (Table(n_tokens, width, scale) if d_in is None else nn.Linear(d_in, width)), width
    return (OneHot(n_tokens), n_tokens) if d_in is None else (nn.Identity(), d_in)


def _dropout(ends: Ends) -> list[nn.Module]:
    return [nn.Dropout(ends.dropout)] if ends.dropout else []


def _head(entry: nn.Module, body: Any, ports: Ports, ends: Ends) -> nn.Module:
    if not ends.tied:
        return Affine(body.d_out, ports.d_out)
    if not isinstance(entry, Table) or entry.embedding_dim != body.d_out:
        raise UsageError(f"tied needs input = embedding and d_embedding = {body.d_out}, the body's output width")
    return TiedHead(entry, ports.d_out)


def count_parameters(model: nn.Module) -> int:
    """Trained weights; of a model that is solved and has none, the numbers that it stores."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    return weights or sum(buffer.numel() for buffer in model.buffers() if buffer.is_floating_point())
