"""What the questions of `unrolled/inspect/` share: the input that is looked at, and what layers note of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.batch import SOURCE, Batch
from unrolled.core.causal import Encoder
from unrolled.core.forward import evaluating, forward
from unrolled.core.front import option
from unrolled.core.spec import Sizes
from unrolled.core.state import clone
from unrolled.core.task import Vocabulary
from unrolled.core.trace import Seen, trace
from unrolled.inspect.tools.example import cut
from unrolled.inspect.tools.opened import OverSource, longest, start
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.layers.recurrent.recurrent import Bidirectional
from unrolled.runs.trust import opening

if TYPE_CHECKING:
    from unrolled.runs.run import Run


@dataclass(frozen=True)
class Look:
    """The first positions of an input, and what the layers of the model note while it reads them."""

    model: Any
    batch: Batch  # of one row
    names: list[str]  # of its T positions
    left_out: str = ""  # a sentence on what is not looked at; empty: nothing
    follows: str = "<stop>"  # the name of what comes after the last position

    @property
    def x(self) -> Tensor:
        """[1, T] tokens, or [1, T, D] vectors"""
        return self.batch.x

    @property
    def source(self) -> Tensor | None:
        """What the model was started with."""
        return self.batch.source

    @cached_property
    def seen(self) -> Seen:
        """What is noted, from one reading; not what its start (a class, a source) makes layers note."""
        with evaluating(self.model):
            decoder, state = start(self.model, self.source, self.batch.source_mask)
            with trace() as seen:
                turned = [
                    hook for m in decoder.modules() if isinstance(m, Bidirectional) for hook in _turn(m.back, seen)
                ]
                try:
                    decoder(self.x, state)
                finally:
                    for hook in turned:
                        hook.remove()
        return seen

    @cached_property
    def states(self) -> list[Any]:
        """The state after each position, every one from a reading of its own, so that buffers stand in one order."""
        with evaluating(self.model):
            decoder, state = start(self.model, self.source, self.batch.source_mask)
            return [decoder(self.x[:, :t], clone(state))[1] for t in range(1, self.x.shape[1] + 1)]


def look_at(run: Run, value: Any, length: int) -> Look:
    """An input as the task reads it, but for what comes after its first `length` positions.

    Of a source alone, the target is what the model writes for it. Of a series whose next steps are forecast, the last
    positions are kept.
    """
    whole = run.task.completed(run.model, value)
    batch, names = run.task.example(whole)
    n = min(length, longest(run.model) or length)
    if (ports := run.task.ports()).answers == "horizon" and ports.source is None:
        T = len(names)
        told = f" Only the last {n} of {T} positions are read ({option('length')})." if n < T else ""
        return Look(run.model, cut(batch.to(run.config.device), max(T - n, 0), T), names[-n:], told)
    left_out = (
        "" if len(names) <= n else f" Only the first {n} of {len(names)} positions are shown ({option('length')})."
    )
    own = "" if whole is value else " The target is the model's own prediction for this source."
    follows = names[n] if len(names) > n else "<stop>"
    return Look(run.model, cut(batch.to(run.config.device), 0, n), names[:n], own + left_out, follows)


def look_at_inputs(run: Run, value: Any, length: int) -> Look:
    """The same with the source as the input, where a forecast is written after a window: what is asked of it is the
    part of the past."""
    look = look_at(run, value, length)
    ports, source = run.task.ports(), look.source
    if ports.answers != "horizon" or ports.source is None or source is None:
        return look
    model = OverSource(run.model, look.x[:, :1].cpu())
    return Look(model, Batch(source, look.batch.source_mask), run.task.source_names(source[0]))


_GLANCES: WeakKeyDictionary[Run, Look] = WeakKeyDictionary()


def glance(run: Run) -> Look:
    """The first positions of the run's own first example, enough to see what a model is made of: one reading for all
    questions."""
    if run not in _GLANCES:
        with opening(run.path):
            _GLANCES[run] = look_at(run, run.first_input(), 3)
    return _GLANCES[run]


def vocabulary_of(run: Run) -> Vocabulary | None:
    """What gives the tokens that are read their names; None: the input is numbers."""
    known = run.task.vocabularies()
    return known.get("decoder.embedding") or known.get("encoder.embedding")


def reads_whole(run: Run) -> bool:
    """Whether the model has read all of the input before it answers."""
    return isinstance(run.model, Encoder)


def both_ways(run: Run) -> str:
    """A sentence for models that read in both directions; empty for others."""
    if not any(isinstance(module, Bidirectional) for module in run.model.modules()):
        return ""
    return " Layers are counted by direction: odd ones read forwards, even ones read backwards from the last position."


def _turn(back: nn.Module, seen: Seen) -> list[Any]:
    """Let what a layer notes while it reads the input backwards stand in the order of the input."""
    before: dict[str, int] = {}

    def remember(*_: Any) -> None:
        before.update({name: len(seen[name]) for name in ("state", "parts", "gates")})

    def turn(*_: Any) -> None:
        for name, n in before.items():
            seen[name][n:] = [_backwards(value) for value in seen[name][n:]]

    return [back.register_forward_pre_hook(remember), back.register_forward_hook(turn)]


def _backwards(value: Any) -> Any:
    """Tensors [1, T, ..] the other way round."""
    return {name: part.flip(1) for name, part in value.items()} if isinstance(value, dict) else value.flip(1)


def models_where(holds: Callable[[nn.Module, Seen], bool]) -> list[str]:
    """The names of the models for whose smallest body this holds, given the body and what its layers note."""
    return [name for name in discover.models.names() if holds(*_tiny(name))]


@cache
def _tiny(name: str) -> tuple[nn.Module, Seen]:
    spec = discover.model(name)
    with torch.random.fork_rng(devices=[]):
        body: Any = body_of(spec, spec.tiny, Sizes(4, 4, 4))
    tokens, numbers = torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2, 4)
    x, source = (tokens if reads[0] == "tokens" else numbers for reads in (spec.reads, spec.reads_source))
    with evaluating(body), trace() as seen:
        forward(body, Batch(x, sources={SOURCE: source}))
    return body, seen


class Plane(NamedTuple):
    """Points on the two directions along which they differ most."""

    points: Tensor  # [n, 2]
    shares: list[float]  # of the variance, that the two directions explain
    dimension: float  # (sum of variances)^2 / sum of their squares: how many directions matter


def principal_plane(points: Tensor) -> Plane:
    """Principal components of points [n, N]; signs are chosen so that the largest coordinate of each is positive.

    >>> plane = principal_plane(torch.tensor([[1.0, 2.0, 0.0], [3.0, 6.0, 0.0], [5.0, 10.0, 0.0]]))
    >>> [round(share, 6) for share in plane.shares], round(plane.dimension, 6)
    ([1.0, 0.0], 1.0)
    """
    centred = points.double() - points.double().mean(0)  # [n, N]
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)  # [n, r], [r]
    flat = u * s  # [n, r]
    flat = flat * torch.where(flat.gather(0, flat.abs().argmax(0, keepdim=True)) < 0, -1.0, 1.0)
    flat = torch.nn.functional.pad(flat, (0, max(0, 2 - flat.shape[1])))[:, :2]  # [n, 2]
    variances = s.square()
    total = float(variances.sum())
    shares = [float(v) / total if total else 0.0 for v in variances[:2]]
    dimension = total**2 / float(variances.square().sum()) if total else 0.0
    return Plane(flat.float(), [*shares, 0.0][:2], dimension)


def rounded(values: Tensor, digits: int = 5) -> Any:
    """Nested lists of few digits, for pictures."""
    return values.detach().double().cpu().round(decimals=digits).tolist()
