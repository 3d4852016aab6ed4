"""The one place where a model and a task meet: input layer, body, head."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core import discover
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import Acceptor, Delayed, Each, Ending, Read, Serial, SerialEncoder
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.model_file import Declared, declared
from unrolled.core.task import Model, Ports, SourcePorts, Task
from unrolled.layers import packed
from unrolled.layers.autoregression import Autoregression, Filter
from unrolled.layers.bag import Bag, Nothing, Solved
from unrolled.layers.conditioning import Started
from unrolled.layers.dropout import WordDropout
from unrolled.layers.encdec import EncoderDecoder, Halves, SourcedSerial
from unrolled.layers.ends import Affine, Lookup, QuickTable
from unrolled.layers.pooling import readout_named
from unrolled.layers.together import Together
from unrolled.layers.words import SpeltWords
from unrolled.runs import closed_form
from unrolled.runs.config import Ends, RunConfig
from unrolled.runs.parts import part

BODIES: dict[str, tuple[Any, str]] = {
    "causal": (Causal, "a Causal"), "encoder": (Encoder, "an Encoder"), "table": (nn.Module, "a module"),
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


def model_file(name: str) -> ModuleType:
    return discover.models.load(name)


def import_models(config: RunConfig) -> None:
    """Import the model and those that its settings name: within torch.device("meta") their constants would be empty."""
    names = discover.models.names()
    for name in (config.model, *config.model_settings.values()):
        if isinstance(name, str) and name in names:
            model_file(name)


def settings(config: RunConfig) -> Config:
    """The model's own settings, checked by its file."""
    found: Config = model_file(config.model).Config.parse(config.model_settings)
    return found


def make_task(config: RunConfig) -> Task:
    module = discover.tasks.load(config.task)
    task: Task = module.Task(module.Config.parse(config.task_settings), config.data)
    return task


def fits(name: str, task: Task) -> bool:
    """Whether a model can be put between this task's input and output."""
    file, ports = declared(model_file(name)), task.ports()
    offered = "tokens" if ports.d_in is None else "vectors"
    if file.kind == "table" and not fits_table(file, ports):
        return False
    if (file.answers or ports.answers) != ports.answers:
        return False
    if ports.answers != "next" and file.owns_head:
        return False
    if file.kind not in task.ACCEPTS or (file.input or offered) != offered:
        return False
    return ports.answers != "each" or file.answers == "each" or _tiny_is_aligned(model_file(name))


@cache
def _tiny_is_aligned(module: ModuleType) -> bool:
    """Whether the body of a model file, as it is for tests, has an output for each position."""
    if declared(module).kind != "encoder":
        return True
    with torch.random.fork_rng(devices=[]):
        return is_aligned(_made(module, module.TINY, 4, 4), 4)


def is_aligned(body: Any, d_in: int) -> bool:
    """Whether a body has an output for each position that it reads; an encoder of images has one for each region."""
    if not isinstance(body, Encoder):
        return True
    body.eval()  # without noise, for the weights that are made after it are a function of the seed
    with torch.no_grad():
        tried = {n: body(torch.zeros(1, n, d_in), torch.ones(1, n, dtype=torch.bool))[0] for n in (2, 5)}
    body.train()
    return all(y.shape[1] == n for n, y in tried.items())


def fits_table(file: Declared, ports: Ports) -> bool:
    """Bags are counted of tokens, and say nothing of single positions."""
    tokens = ports.d_in is None and not ports.letters
    return ports.answers == "whole" and (tokens or file.features == "nothing")


def build(config: RunConfig, ports: Ports, accepts: tuple[str, ...]) -> Model:
    """A model whose input and output fit the task; its initial weights are a function of the seed."""
    if config.members > 1:
        alone = config.model_copy(update={"members": 1})
        return Together([build(alone, ports, accepts) for _ in range(config.members)])  # type: ignore[misc]
    kind = declared(model_file(config.model)).kind
    if kind not in accepts:
        fitting = [name for name in discover.models.names() if declared(model_file(name)).kind in accepts]
        raise UsageError(
            f"the model '{config.model}' ({kind}) does not fit the task '{config.task}', "
            f"which takes {' or '.join(accepts)} models: {', '.join(fitting)}"
        )
    with torch.random.fork_rng(devices=[]), discover.models.own_mistakes():
        torch.manual_seed(config.seed)
        model = _put_together(config, ports, kind)
    return model.to(config.device)


def _put_together(config: RunConfig, ports: Ports, kind: str) -> Model:
    module = model_file(config.model)
    if ports.answers != "next":
        return _reader(config, ports, module)
    if kind == "conditional":
        return _pair(config, ports, module)
    decoder = _assemble(config, ports, module)
    return Started(decoder, ports.n_tokens) if ports.n_classes else decoder


def _made(module: ModuleType, own: Config, *sizes: int) -> Any:
    """What the file makes, which must be what its KIND says."""
    made = module.make(own, *sizes)
    expected, word = BODIES[declared(module).kind]
    if not isinstance(made, expected):
        raise UsageError(
            f"{module.__file__}: KIND is '{module.KIND}', but make returns {type(made).__name__}; expected {word}"
        )
    if not isinstance(made, Halves | Conditional) and not isinstance(getattr(made, "d_out", None), int):
        raise UsageError(f"{module.__file__}: what make returns has no d_out, the width of its output")
    return made


def _reader(config: RunConfig, ports: Ports, module: ModuleType) -> Encoder:
    """A model that has read the whole before it answers, for the sequence or at each of its positions."""
    own, ends, file = settings(config), config.ends, declared(module)
    solved = closed_form.applies(config, ports)
    if file.kind == "table":
        if not fits_table(file, ports):
            raise UsageError(f"the model '{config.model}' counts tokens, but the task '{config.task}' has other input")
        bag = Nothing() if file.features == "nothing" else Bag(ports.n_tokens, str(file.features))
        part("encoder.embedding", bag)
        body: Any = part("encoder.body", _made(module, own, bag.d_out, ports.d_out))
        if solved:
            return Solved(bag, body)
        return SerialEncoder(bag, *_dropout(ends), body, *_dropout(ends), _linear(body.d_out, ports.d_out))
    if (file.answers or ports.answers) != ports.answers:
        once = {"whole": "once for a whole sequence", "each": "at each position"}
        raise UsageError(
            f"the model '{config.model}' answers {once[str(file.answers)]}, the task '{config.task}' asks otherwise"
        )
    if file.answers and file.input:  # it takes the input as it is
        if (file.input == "tokens") != (ports.d_in is None):
            raise UsageError(f"the model '{config.model}' reads {file.input}; the task '{config.task}' has none")
        whole: Encoder = _made(module, own, ports.d_in or ports.n_tokens, ports.d_out)
        return whole
    if solved and file.kind == "causal" and ports.d_in is not None:
        return _filter(module, own, ports)
    if file.input == "tokens" or file.owns_head:
        raise UsageError(f"the model '{config.model}' says what comes next and answers nothing else")
    entry, width = _reading_entry(ports, ends, file)
    body = part("encoder.body", _made(module, own, width, ports.d_out))
    d_body = int(body.d_out)
    if ports.answers == "whole" and ports.readout == "last" and isinstance(body, Acceptor):
        body = Ending(cast(Causal, body))
    front = [entry, *_dropout(ends), body, *_dropout(ends)]
    if ports.answers == "each":
        if not is_aligned(body, width):
            raise UsageError(
                f"the model '{config.model}' has fewer outputs than positions, but the task '{config.task}' needs one "
                "for each position"
            )
        layers = [*front, _linear(d_body, ports.d_out)]
        late = ports.delay and isinstance(body, Causal)
        return Delayed(ports.delay, *layers) if late else SerialEncoder(*layers)
    readout = part("head.readout", readout_named(ports.readout, d_body))
    return Read(SerialEncoder(*front), readout, _linear(int(readout.d_out), ports.d_out))


def _filter(module: ModuleType, own: Config, ports: Ports) -> Encoder:
    """A linear function of the task's own numbers, fitted by least squares."""
    body = part("encoder.body", _made(module, own, cast(int, ports.d_in), ports.d_out))
    if not isinstance(body, Autoregression):
        raise UsageError(
            f"{module.__file__}: a causal model has a closed form for series only as an Autoregression; "
            f"remove '{ports.targets}' from CLOSED_FORM"
        )
    return Filter(ports.delay, body)


def _reading_entry(ports: Ports, ends: Ends, file: Declared) -> tuple[nn.Module, int]:
    if file.input == "vectors":  # it reads what the task gives, without a layer in between
        if ports.d_in is None:
            raise UsageError("this model reads vectors, but the task has tokens")
        return nn.Identity(), ports.d_in
    if not ports.letters:
        entry, width = _entry(ports.d_in, ports.n_tokens, ends)
        if isinstance(entry, nn.Embedding) and ports.n_tokens > FEW:
            entry.weight.detach().mul_(READ_SCALE)
        return part("encoder.embedding", entry), width
    spelt = SpeltWords(ports.n_tokens, ports.letters, ends.d_embedding, dropout=ends.dropout / 2)
    spelt.words.weight.detach().mul_(READ_SCALE)
    return part("encoder.embedding", spelt), spelt.d_out


def _assemble(config: RunConfig, ports: Ports, module: ModuleType) -> Causal:
    n_in = ports.n_tokens + ports.n_classes
    own, ends, offered = settings(config), config.ends, "tokens" if ports.d_in is None else "vectors"
    file = declared(module)
    wanted = file.input
    if wanted is not None:  # a model that reads what the task gives, without a layer in between
        if wanted != offered:
            raise UsageError(f"the model '{config.model}' reads {wanted}, but the task '{config.task}' has {offered}")
        body: Causal = _made(module, own, ports.d_in or n_in, ports.d_out)
        return part("decoder.body", body)
    entry, width = _entry(ports.d_in, n_in, ends)
    part("decoder.embedding", entry)
    body = part("decoder.body", _made(module, own, width, ports.d_out))
    first = Lookup(entry) if isinstance(entry, nn.Embedding) else Each(entry)
    layers: list[nn.Module] = [first, *_dropout(ends), body]
    if not file.owns_head:
        head = _head(entry, body, ports, ends)
        layers += [*_dropout(ends), Affine(head) if isinstance(head, nn.Linear) else Each(head)]
    return Serial(*layers)


def _pair(config: RunConfig, ports: Ports, module: ModuleType) -> Conditional:
    """An encoder that reads the source and a decoder that writes the target, each behind a layer that makes vectors."""
    if ports.source is None:
        raise UsageError(f"the model '{config.model}' reads a source, but the task '{config.task}' has none")
    own, ends, file = settings(config), config.ends, declared(module)
    if file.owns_head:  # a whole model, solved from sources and targets as they are
        offered = "tokens" if ports.source.d_in is None else "vectors"
        if (file.input or offered) != offered:
            raise UsageError(
                f"the model '{config.model}' reads {file.input}, but the source of '{config.task}' is {offered}"
            )
        d_source = ports.source.n_tokens if ports.source.d_in is None else ports.source.d_in
        whole: Conditional = _made(module, own, ports.n_tokens, ports.d_out, d_source)
        return whole
    entry, width = _entry(ports.d_in, ports.n_tokens, ends, QuickTable)
    front, d_source = _source_entry(config, ports.source, module, entry)
    halves: Halves = _made(module, own, width, ports.d_out, d_source)
    part("decoder.embedding", entry)
    body = part("decoder.body", halves.decoder)
    head = _head(entry, body, ports, ends)
    first = Lookup(entry) if isinstance(entry, nn.Embedding) else Each(entry)
    last = Affine(head) if isinstance(head, nn.Linear) else Each(head)
    front_of_body = [*([Each(WordDropout(ends.target_dropout))] if ends.target_dropout else []), *_dropout(ends)]
    decoder = SourcedSerial(first, *front_of_body, body, *_dropout(ends), last, d_out=ports.d_out)
    return EncoderDecoder(SerialEncoder(*front), part("encoder.body", halves.encoder), decoder)


def _source_entry(
    config: RunConfig, source: SourcePorts, module: ModuleType, target: nn.Module
) -> tuple[list[nn.Module], int]:
    """What makes vectors of the source, and how wide these are; the table of the target where that is shared."""
    ends = config.ends
    wanted = module.source_input(settings(config)) if hasattr(module, "source_input") else None
    if wanted == "vectors":  # an encoder that reads what the task gives, without a layer in between
        if source.d_in is None:
            raise UsageError(f"this encoder reads vectors, but the source of the task '{config.task}' is tokens")
        return [], source.d_in
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
