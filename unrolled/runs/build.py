"""The one place where a model and a task meet: input layer, body, head."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core import discover
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import Acceptor, Delayed, Each, Ending, Read, Serial, SerialEncoder
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.spec import Asks, ModelSpec, Ports, Sizes, SourcePorts, misfit, reading
from unrolled.core.task import Model, Task
from unrolled.layers.attention import packed
from unrolled.layers.attention.readouts import readout_named
from unrolled.layers.counting.autoregression import Autoregression, Filter
from unrolled.layers.counting.bag_of_words import Bag
from unrolled.layers.parts.char_words import SpeltWords
from unrolled.layers.parts.conditioning import Started
from unrolled.layers.parts.dropout import WordDropout
from unrolled.layers.parts.embedding import Affine, Lookup, QuickTable
from unrolled.layers.parts.encoder_decoder import EncoderDecoder, Halves, SourcedSerial
from unrolled.layers.parts.ensemble import Together
from unrolled.runs.config import Ends, RunConfig
from unrolled.runs.parts import part

BODIES: dict[str, tuple[Any, str]] = {
    "causal": (Causal, "a Causal"), "encoder": (Encoder, "an Encoder"),
    "conditional": ((Halves, Conditional), "Halves or a Conditional"),
}  # fmt: skip
READ_SCALE, FEW = 0.1, 1000
"""The size of token vectors that a reader begins with where there are more than a few tokens: a word that is seen only
some times then moves far enough to count. Letters are seen often, and begin with vectors of size 1."""


class OneHot(nn.Module):
    """Token k -> the unit vector e_k."""

    unit: Tensor

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.register_buffer("unit", torch.eye(n_tokens), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.unit)  # [B, T, V]


class TiedHead(nn.Module):
    """logits = h E^T + b, where E is the embedding table of the input."""

    def __init__(self, embedding: nn.Embedding, n_tokens: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.bias = nn.Parameter(torch.zeros(n_tokens))

    def forward(self, h: Tensor) -> Tensor:
        return packed.linear(h, self.embedding.weight[: len(self.bias)], self.bias)  # [B, T, V]


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
    decoder = _assemble(config, ports, spec)
    return Started(decoder, ports.n_tokens) if ports.n_classes else decoder


def _made(config: RunConfig, spec: ModelSpec, sizes: Sizes) -> Any:
    """What the file makes, which must be what its kind says."""
    made = spec.make(settings(config), sizes)
    expected, word = BODIES[spec.kind]
    if not isinstance(made, expected):
        file, found = discover.models.load(config.model).__file__, type(made).__name__
        raise UsageError(f"{file}: kind is '{spec.kind}', but make returns {found}; expected {word}")
    if not isinstance(made, Halves | Conditional) and not isinstance(getattr(made, "d_out", None), int):
        file = discover.models.load(config.model).__file__
        raise UsageError(f"{file}: what make returns has no d_out, the width of its output")
    return made


def _reader(config: RunConfig, ports: Ports, spec: ModelSpec) -> Encoder:
    """A model that has read the whole before it answers, for the sequence or at each of its positions."""
    ends = config.ends
    if spec.owns_head:  # it is fitted to the input as it is
        whole = _made(config, spec, Sizes(ports.d_in or ports.n_tokens, ports.d_out))
        return whole if isinstance(whole, Encoder) else _filter(config, ports, whole)
    entry, width = _reading_entry(ports, ends, spec)
    body = part("encoder.body", _made(config, spec, Sizes(width, ports.d_out)))
    d_body = int(body.d_out)
    if ports.answers == "whole" and ports.readout == "last" and isinstance(body, Acceptor):
        body = Ending(cast(Causal, body))
    front = [entry, *_dropout(ends), body, *_dropout(ends)]
    if ports.answers == "each" and not is_aligned(body, width):
        raise UsageError(
            f"the model '{config.model}' has fewer outputs than positions, but the task '{config.task}' needs one "
            "for each position"
        )
    if ports.answers == "each" or isinstance(entry, Bag):
        layers = [*front, _linear(d_body, ports.d_out)]
        late = ports.delay and isinstance(body, Causal)
        return Delayed(ports.delay, *layers) if late else SerialEncoder(*layers)
    readout = part("head.readout", readout_named(ports.readout, d_body))
    return Read(SerialEncoder(*front), readout, _linear(int(readout.d_out), ports.d_out))


def _filter(config: RunConfig, ports: Ports, body: Any) -> Encoder:
    """A linear function of the task's own numbers, fitted by least squares."""
    if not isinstance(body, Autoregression):
        raise UsageError(
            f"{discover.models.load(config.model).__file__}: a causal model has a closed form for series only as an "
            f"Autoregression; remove '{ports.targets}' from closed_form"
        )
    return Filter(ports.delay, part("encoder.body", body))


def _reading_entry(ports: Ports, ends: Ends, spec: ModelSpec) -> tuple[nn.Module, int]:
    """What makes vectors of the input of a reader, and how wide these are."""
    way = reading(spec.reads, ports.offers, bool(ports.letters))
    if way == "numbers":  # it reads what the task gives, without a layer in between
        return nn.Identity(), cast(int, ports.d_in)
    if way in ("counts", "tf-idf"):
        bag = part("encoder.embedding", Bag(ports.n_tokens, way))
        return bag, bag.d_out
    if not ports.letters:
        entry, width = _entry(ports.d_in, ports.n_tokens, ends)
        if isinstance(entry, nn.Embedding) and ports.n_tokens > FEW:
            entry.weight.detach().mul_(READ_SCALE)
        return part("encoder.embedding", entry), width
    spelt = SpeltWords(ports.n_tokens, ports.letters, ends.d_embedding, dropout=ends.dropout / 2)
    spelt.words.weight.detach().mul_(READ_SCALE)
    return part("encoder.embedding", spelt), spelt.d_out


def _assemble(config: RunConfig, ports: Ports, spec: ModelSpec) -> Causal:
    n_in, ends = ports.n_tokens + ports.n_classes, config.ends
    if reading(spec.reads, ports.offers) != "embedded":  # it reads what the task gives, without a layer in between
        return part("decoder.body", cast(Causal, _made(config, spec, Sizes(ports.d_in or n_in, ports.d_out))))
    entry, width = _entry(ports.d_in, n_in, ends)
    part("decoder.embedding", entry)
    body = part("decoder.body", cast(Causal, _made(config, spec, Sizes(width, ports.d_out))))
    first = Lookup(entry) if isinstance(entry, nn.Embedding) else Each(entry)
    layers: list[nn.Module] = [first, *_dropout(ends), body]
    if not spec.owns_head:
        head = _head(entry, body, ports, ends)
        layers += [*_dropout(ends), Affine(head) if isinstance(head, nn.Linear) else Each(head)]
    return Serial(*layers)


def _pair(config: RunConfig, ports: Ports, spec: ModelSpec) -> Conditional:
    """An encoder that reads the source and a decoder that writes the target, each behind a layer that makes vectors."""
    ends, source = config.ends, cast(SourcePorts, ports.source)
    if spec.owns_head:  # a whole model, solved from sources and targets as they are
        d_source = source.n_tokens if source.d_in is None else source.d_in
        return cast(Conditional, _made(config, spec, Sizes(ports.n_tokens, ports.d_out, d_source)))
    entry, width = _entry(ports.d_in, ports.n_tokens, ends, QuickTable)
    front, d_source = _source_entry(ends, source, spec, entry)
    halves: Halves = _made(config, spec, Sizes(width, ports.d_out, d_source))
    part("decoder.embedding", entry)
    body = part("decoder.body", halves.decoder)
    head = _head(entry, body, ports, ends)
    first = Lookup(entry) if isinstance(entry, nn.Embedding) else Each(entry)
    last = Affine(head) if isinstance(head, nn.Linear) else Each(head)
    front_of_body = [*([Each(WordDropout(ends.target_dropout))] if ends.target_dropout else []), *_dropout(ends)]
    decoder = SourcedSerial(first, *front_of_body, body, *_dropout(ends), last, d_out=ports.d_out)
    return EncoderDecoder(SerialEncoder(*front), part("encoder.body", halves.encoder), decoder)


def _source_entry(ends: Ends, source: SourcePorts, spec: ModelSpec, target: nn.Module) -> tuple[list[nn.Module], int]:
    """What makes vectors of the source, and how wide these are; the table of the target where that is shared."""
    if reading(spec.reads_source, source.offers) == "numbers":  # it reads what the task gives, without a layer
        return [], cast(int, source.d_in)
    if ends.shared:
        if not source.shared or not isinstance(target, nn.Embedding):
            raise UsageError("shared needs one vocabulary for source and target, and input = embedding")
        return [target, *_dropout(ends)], target.embedding_dim
    entry, width = _entry(source.d_in, source.n_tokens, ends, QuickTable)
    return [part("encoder.embedding", entry), *_dropout(ends)], width


def _entry(
    d_in: int | None, n_tokens: int, ends: Ends, table: type[nn.Embedding] = nn.Embedding
) -> tuple[nn.Module, int]:
    """What makes vectors of the input, and how wide these are."""
    if ends.input == "embedding":
        width = ends.d_embedding
        return (table(n_tokens, width) if d_in is None else nn.Linear(d_in, width)), width
    return (OneHot(n_tokens), n_tokens) if d_in is None else (nn.Identity(), d_in)


def _dropout(ends: Ends) -> list[nn.Module]:
    return [Each(nn.Dropout(ends.dropout))] if ends.dropout else []


def _head(entry: nn.Module, body: Causal, ports: Ports, ends: Ends) -> nn.Module:
    width = int(body.d_out)  # type: ignore[arg-type]
    if not ends.tied:
        return _linear(width, ports.d_out)
    if not isinstance(entry, nn.Embedding) or entry.embedding_dim != width:
        raise UsageError(f"tied needs input = embedding and d_embedding = {width}, the body's output width")
    return part("head", TiedHead(entry, ports.d_out))


def _linear(width: int, d_out: int) -> nn.Linear:
    return part("head", nn.Linear(width, d_out))


def count_parameters(model: nn.Module) -> int:
    """Trained weights; of a model that is solved and has none, the numbers that it stores."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    return weights or sum(buffer.numel() for buffer in model.buffers() if buffer.is_floating_point())
