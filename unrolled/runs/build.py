"""The one place where a model and a task meet: what the file of a model makes is checked and put between its parts."""

from __future__ import annotations

import threading
from typing import Any, cast

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from unrolled.core import discover
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.config import Config
from unrolled.core.emission import Finite, average
from unrolled.core.errors import UsageError
from unrolled.core.spec import Asks, ModelSpec, Ports, Sizes, misfit, reading
from unrolled.core.task import Model, Task
from unrolled.layers.counting.autoregression import Autoregression
from unrolled.layers.memory.memory import Memory
from unrolled.layers.parts.encoder_decoder import Halves
from unrolled.layers.parts.ensemble import ByEmission, Mix, Together, together
from unrolled.layers.parts.gate import Gate
from unrolled.runs.assembled import assemble
from unrolled.runs.config import RunConfig

PAPER = "meta"
DRAWING = threading.RLock()
"""Initial weights are drawn by the generator of the process, which threads that train side by side share."""
BODIES: dict[str, tuple[Any, str]] = {
    "causal": (Causal, "a Causal"), "encoder": (Encoder, "an Encoder"),
    "conditional": ((Halves, Conditional), "Halves or a Conditional"), "memory": (Memory, "a Memory"),
}  # fmt: skip


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


def is_aligned(body: Any, d_in: int | None) -> bool:
    """Whether a body has an output for each position that it reads; an encoder of images has one for each region.

    It reads vectors or, where d_in is None, tokens.
    """
    if not isinstance(body, Encoder):
        return True
    body.eval()  # without noise, for the weights that are made after it are a function of the seed
    with torch.no_grad():
        inputs = [torch.zeros(1, n, dtype=torch.long) if d_in is None else torch.zeros(1, n, d_in) for n in (2, 5)]
        tried = {x.shape[1]: body(x, torch.ones(x.shape[:2], dtype=torch.bool))[0] for x in inputs}
    body.train()
    return all(y.shape[1] == n for n, y in tried.items())


def make_model(config: RunConfig, task: Task) -> Model:
    """The model of a run. Members are mixed by what the task takes outputs to mean, part of which it may learn later (a
    temperature)."""

    mix: Mix = mixture(task) if config.combine != "outputs" else average
    if config.combine == "gate":
        mix = gate(task, len(config.ensemble))
    return build(config, task.ports(), task.ACCEPTS, mix)


def mixture(task: Task) -> ByEmission:
    """What the task takes outputs to mean."""
    return ByEmission(lambda: task.emission)


def gate(task: Task, n: int) -> Gate:
    """A mixture of n members whose weights depend on how sure each of them is."""
    if n < 2 or not isinstance(task.emission, Finite):
        raise UsageError('combine = "gate" is for ensembles whose outputs are probabilities of finitely many choices')
    return Gate(n, mixture(task))


def build(config: RunConfig, ports: Ports, accepts: tuple[str, ...], mix: Mix = average) -> Model:
    """A model whose input and output fit the task; its initial weights are a function of the seed."""
    if config.ensemble:
        each = [config.model_copy(update=member.as_run()) for member in config.ensemble]
        within = mix.mix if isinstance(mix, Gate) else mix  # members that are several models have constant weights
        parts = [build(one, ports, accepts, within if one.combine == "mixture" else average) for one in each]
        return cast(Model, together(parts, mix, [member.weight for member in config.ensemble]))
    if config.members > 1:
        alone = config.model_copy(update={"members": 1})
        members: Any = [build(alone, ports, accepts) for _ in range(config.members)]
        return Together(members, mix)
    require_model(config, ports.asks(accepts))
    with DRAWING, torch.random.fork_rng(devices=[]), discover.models.own_mistakes():
        torch.manual_seed(config.seed)
        spec = spec_of(config)
        model = assemble(spec, lambda sizes: _made(config, spec, ports, sizes), ports, config.ends)
    return model.to(config.device)


class _Unfilled(TorchFunctionMode):
    """Tensors without memory are neither filled nor scaled: for that torch would import its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in FILLED:
            return torch.empty(*args, **{name: value for name, value in kwargs.items() if name != "generator"})
        if func in FILLS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


FILLED = (torch.rand, torch.randn)
FILLS = {torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.mul_, torch.Tensor.div_}
FILLS |= {fill for name, fill in vars(nn.init).items() if name.endswith("_") and not name.startswith("_")}


def on_paper(config: RunConfig, ports: Ports, accepts: tuple[str, ...]) -> Model:
    """The same model without memory, on torch's meta device: its sizes alone. Not every model can be built so."""
    require_model(config, ports.asks(accepts))  # imports all models where it refuses this one
    names = discover.models.names()
    for name in (config.model, *config.model_settings.values()):  # imported below, their constants would be empty
        if isinstance(name, str) and name in names:
            discover.models.load(name)
    with torch.device(PAPER), _Unfilled():
        return build(config.model_copy(update={"device": PAPER}), ports, accepts)


def _made(config: RunConfig, spec: ModelSpec, ports: Ports, sizes: Sizes) -> Any:
    """What the file makes, which must be what its kind says and fit what is asked."""
    made = spec.make(settings(config), sizes)
    expected, word = BODIES[spec.kind]
    file = discover.models.load(config.model).__file__
    if not isinstance(made, expected):
        raise UsageError(f"{file}: kind is '{spec.kind}', but make returns {type(made).__name__}; expected {word}")
    body = made.decoder if isinstance(made, Halves) else made
    if isinstance(body, Memory):
        return made
    if not isinstance(body, Conditional) and not (isinstance(body.d_out, int) and body.d_out):
        raise UsageError(f"{file}: the object that make returns has no attribute d_out, the width of its output")
    if ports.answers in ("next", "horizon"):
        return made
    if spec.owns_head and not isinstance(made, Encoder | Autoregression):
        raise UsageError(
            f"{file}: a causal model has a closed form for series only as an Autoregression; remove '{ports.targets}' "
            "from closed_form"
        )
    d_in = None if reading(spec.reads, ports.offers) == "tokens" else sizes.d_in
    tried = ports.answers == "each" and not spec.owns_head and config.device != PAPER  # there is nothing to try it on
    if tried and not is_aligned(made, d_in):
        raise UsageError(
            f"the model '{config.model}' has fewer outputs than positions, but the task '{config.task}' needs "
            "one per position"
        )
    return made


def count_parameters(model: nn.Module) -> int:
    """Trained weights; of a model that is solved and has none, the numbers that it stores."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    return weights or sum(buffer.numel() for buffer in model.buffers() if buffer.is_floating_point())
