"""AdamW and SGD over the weights of a model, and their memory as named tensors for checkpoints.

The classes of torch.optim import torch's compiler as soon as one is made, which takes longer than all else before the
first step of a small run (docs/decisions/0023). These do the same arithmetic to the last bit, as tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError, listed
from unrolled.core.front import option
from unrolled.core.task import Learner
from unrolled.runs.config import Optimiser as Settings
from unrolled.runs.config import Start
from unrolled.runs.parts import depths

EPSILON = 1e-8
MOMENTUM = 0.9


class Ladder(NamedTuple):
    """How the layers of a model are trained: `rate` is that of a layer relative to the one behind it, and every so many
    steps (`every`) one more layer is trained, the head from the start.

    >>> Ladder(0.5).share(2, step=0), Ladder(every=10).share(2, step=19), Ladder(every=10).share(2, step=20)
    (0.25, 0.0, 1.0)
    """

    rate: float = 1.0
    every: int | None = None

    def share(self, depth: int, step: int) -> float:
        """Of the learning rate, for a weight so far from the head (`parts.depths`)."""
        return 0.0 if self.every is not None and step < depth * self.every else self.rate**depth


FLAT = Ladder()


def _all(tensor: Tensor) -> Tensor:
    return tensor


class Optimiser:
    """What SGD and AdamW share; decay acts on matrices only, because a decayed bias has no meaning."""

    keeps: ClassVar[tuple[str, ...]]
    """the names of what is remembered of a weight"""
    copies: ClassVar[int]
    """how many numbers a weight costs: itself, its gradient, what is remembered of it"""

    def __init__(
        self, model: nn.Module, settings: Settings, start: Start | None = None, own: Callable[[Tensor], Tensor] = _all
    ) -> None:
        deep = depths(model)
        trained = [(p, deep[name]) for name, p in model.named_parameters() if p.requires_grad]
        trained.sort(key=lambda each: each[0].dim() < 2)  # matrices first, each kind in its order
        self.weights = [p for p, _ in trained]
        self.deep = [depth for _, depth in trained]
        self.ladder = FLAT if start is None else Ladder(start.layer_rate, start.unfreeze_every)
        self.shares = [1.0] * len(trained)
        """of the rate that each weight moves with; 0: it is not trained yet"""
        self.settings, self.rate = settings, settings.lr
        self.own = own
        """of a weight or its gradient, what is moved here: all, or the part of this process"""
        self.memory: dict[int, dict[str, Tensor]] = {}
        """what is remembered of a weight, by its number; nothing before its first gradient"""

    def forget_gradients(self) -> None:
        for weight in self.weights:
            weight.grad = None

    def begin(self, step: int) -> None:
        """Before the gradients of a step: which weights are trained in it, and how fast."""
        self.forget_gradients()
        if self.ladder != FLAT:
            self.shares = [self.ladder.share(depth, step) for depth in self.deep]
            for weight, share in zip(self.weights, self.shares):
                weight.requires_grad_(share > 0)

    def step(self) -> None:
        """Move all weights that have a gradient."""
        raise NotImplementedError

    def weights_of(self, memory: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weight that each exported tensor belongs to, but for those that have no shape of their own."""
        return {name: self.weights[int(name.split(".", 1)[0])] for name, value in memory.items() if value.dim()}

    def decay(self, weight: Tensor) -> float:
        return self.settings.weight_decay if weight.dim() >= 2 else 0.0

    def export(self) -> dict[str, Tensor]:
        """The memory as `number.name` -> tensor."""
        return {f"{i}.{name}": value for i, entry in self.memory.items() for name, value in entry.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The memory of an optimiser of the same kind for the same weights."""
        self.memory = {}
        for number in {int(key.split(".", 1)[0]) for key in tensors}:
            weight = self.own(self.weights[number])
            own = {name: tensors[f"{number}.{name}"] for name in self.keeps}
            for name, value in own.items():
                single = name == "step"
                if value.shape != (() if single else weight.shape):
                    raise ValueError(f"the optimiser's {name} of weight {number} has the shape {tuple(value.shape)}")
                own[name] = value.to(weight.device, torch.float32 if single else weight.dtype, copy=True)
            self.memory[number] = own


class AdamW(Optimiser):
    """m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
    w = w - rate decay w - rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)     (Loshchilov & Hutter 2019, alg. 2)

    in torch's own kernel, once for all weights that share a type and a decay.
    """

    keeps = ("step", "exp_avg", "exp_avg_sq")  # t, m, v
    copies = 4

    @torch.no_grad()
    def step(self) -> None:
        moved: dict[tuple[torch.device, torch.dtype, float, float], list[list[Tensor]]] = {}
        for i, weight in enumerate(self.weights):
            if weight.grad is not None:
                own = self.own(weight)
                t, m, v = self._remembered(i, own)
                group = (weight.device, weight.dtype, self.decay(weight), self.shares[i])
                moved.setdefault(group, []).append([own, self.own(weight.grad), t, m, v])
        b1, b2 = self.settings.betas
        for (_, _, decay, share), columns in moved.items():
            weights, gradients, ts, ms, vs = ([*column] for column in zip(*columns))
            torch._foreach_add_(ts, 1)
            torch._fused_adamw_(
                weights, gradients, ms, vs, [], ts, lr=self.rate * share, beta1=b1, beta2=b2, weight_decay=decay,
                eps=EPSILON, amsgrad=False, maximize=False,
            )  # fmt: skip

    def _remembered(self, i: int, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if i not in self.memory:
            t = torch.zeros((), dtype=torch.float32, device=weight.device)
            m, v = (torch.zeros_like(weight, memory_format=torch.preserve_format) for _ in range(2))
            self.memory[i] = dict(zip(self.keeps, (t, m, v)))
        return self.memory[i]["step"], self.memory[i]["exp_avg"], self.memory[i]["exp_avg_sq"]


class SGD(Optimiser):
    """u = 0.9 u + g + decay w,   w = w - rate (g + decay w + 0.9 u)        (Sutskever et al. 2013, Nesterov's momentum)

    as torch.optim.SGD has it: the first u is g, and the rate stands outside of u.
    """

    keeps = ("momentum_buffer",)  # u
    copies = 3

    @torch.no_grad()
    def step(self) -> None:
        for i, weight in enumerate(self.weights):
            if weight.grad is None:
                continue
            decay, share = self.decay(weight), self.shares[i]
            own, g = self.own(weight), self.own(weight.grad)
            g = g.add(own, alpha=decay) if decay else g
            if i in self.memory:
                u = self.memory[i]["momentum_buffer"].mul_(MOMENTUM).add_(g)
            else:
                u = self.memory.setdefault(i, {"momentum_buffer": g.clone()})["momentum_buffer"]
            own.add_(g.add(u, alpha=MOMENTUM), alpha=-self.rate * share)


OPTIMISERS: dict[str, type[Optimiser]] = {"adamw": AdamW, "sgd": SGD}


OWN = ("optimiser", "weight_decay", "betas", "clip", "accumulate", "precision")
"""settings that are of no use to a model that moves its own weights"""


def require_used(model: nn.Module, name: str, settings: Settings, given: Collection[str]) -> None:
    """Refuse settings of an optimiser that a model has no use for: of those given by their full keys, what is not the
    default."""
    usual = dict(Settings())
    unused = [
        option(key) for key, value in settings if key in OWN and f"optimiser.{key}" in given and value != usual[key]
    ]
    if unused and isinstance(model, Learner):
        raise UsageError(f"the model '{name}' moves its own weights: leave out {listed(unused)}")
