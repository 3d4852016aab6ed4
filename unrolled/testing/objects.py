"""Which laws an object must obey: a model file by its kind, a layer by its class, a class by making one of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.memory.memory import Memory
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.testing import law as laws
from unrolled.testing.causal import check_causal
from unrolled.testing.conditional import check_conditional
from unrolled.testing.encoder import check_encoder
from unrolled.testing.law import Law
from unrolled.testing.memory import check_memory
from unrolled.testing.recurrence import check_cell
from unrolled.testing.saving import check_config
from unrolled.testing.subject import own_input

D_IN, D_OUT = 5, 6  # the widths at which a model file is tried
STEPS = Sizes(D_IN, D_OUT, D_IN, horizon=3, d_step=2, observed=True)  # and one of forecasts, with a covariate
WIDTH, OWN_WIDTH = 4, 5  # the widths given to a class that wants them

KINDS: dict[str, type[nn.Module]] = {"causal": Causal, "encoder": Encoder, "conditional": Conditional}


def check_model(model: str | ModuleType, *, seed: int = 0) -> list[str]:
    """Put a model file (its name, or the module) through the laws of its kind, built from its `tiny` settings."""
    if isinstance(model, str):
        name, spec = model, discover.model(model)
    else:
        name, spec = model.__name__, discover.declared(model)
    passed = check_config(spec.tiny)
    spec.config()  # every setting has a default, for `--model NAME` alone must work
    if spec.kind == "memory":
        return [*passed, *_check_memory(name, spec, seed)]
    if "horizon" in spec.closed_form:
        passed += _check_body(name, spec, STEPS, seed)
    if spec.closed_form != ("horizon",):
        passed += _check_body(name, spec, Sizes(D_IN, D_OUT, D_IN), seed)
    return list(dict.fromkeys(passed))


def _check_memory(name: str, spec: ModelSpec, seed: int) -> list[str]:
    def fresh() -> Memory:
        made: Memory = spec.make(spec.tiny, Sizes(D_IN, D_IN, targets="pattern"))
        return made

    with Law(laws.FORM) as law:
        law.holds(isinstance(fresh(), Memory), f"{name}: its kind is memory but make gives {type(fresh()).__name__}")
    return check_memory(fresh(), fresh=fresh, seed=seed)


def _check_body(name: str, spec: ModelSpec, sizes: Sizes, seed: int) -> list[str]:
    """What a model file makes in one of the sizes that it is tried in."""

    def fresh() -> nn.Module:
        return body_of(spec, spec.tiny, sizes)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = fresh()
    with Law(laws.FORM) as law:
        fits = isinstance(body, KINDS[spec.kind])
        law.holds(fits, f"{name}: its kind is {spec.kind} but make gives {type(body).__name__}")
    obeyed, y = _run_kind(body, spec, fresh, seed)
    with Law(laws.FORM) as law:
        width = getattr(body, "d_out", None)
        law.holds(width == y.shape[-1], f"{name}: d_out is {width}, but the output is {y.shape[-1]} wide")
        law.holds(
            not spec.owns_head or width == D_OUT, f"{name}: it owns its head, but gives {width} outputs, not {D_OUT}"
        )
    return obeyed


def _run_kind(body: nn.Module, spec: ModelSpec, fresh: Callable[[], nn.Module], seed: int) -> tuple[list[str], Tensor]:
    """The laws that a body obeys, and an output of it."""
    tokens = spec.reads[0] == "tokens"
    d_in, vocabulary = (None, D_IN) if tokens else (D_IN, None)
    x, mask = _example(tokens, D_IN, 2, 7), torch.ones(2, 7, dtype=torch.bool)
    with torch.no_grad():
        if isinstance(body, Causal):
            return check_causal(body, d_in=d_in, vocabulary=vocabulary, fresh=fresh, seed=seed), body(x)[0]
        if isinstance(body, Encoder):
            return check_encoder(body, d_in=d_in, vocabulary=vocabulary, fresh=fresh, seed=seed), body(x, mask)[0]
        assert isinstance(body, Conditional)
        source, target = _example(spec.reads_source[0] == "tokens", D_IN, 2, 7), _example(tokens, D_IN, 2, 8)
        passed = check_conditional(body, source, mask, target, fresh=fresh, seed=seed)
        return passed, body.decoder(target, body.condition(source, mask))[0]


def _example(tokens: bool, width: int, rows: int, steps: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    if tokens:
        return torch.randint(width, (rows, steps), generator=generator)  # [B, T]
    return torch.randn(rows, steps, width, generator=generator)  # [B, T, D]


def checks_for(layer: nn.Module) -> list[Callable[..., list[str]]]:
    """The checks that a layer must pass, by its class."""
    checks: tuple[tuple[type[nn.Module], Callable[..., list[str]]], ...] = (
        (Causal, check_causal), (Encoder, check_encoder), (Conditional, check_conditional), (Memory, check_memory),
    )  # fmt: skip
    for kind, check in checks:
        if isinstance(layer, kind):
            return [check]
    if callable(getattr(layer, "output", None)):
        return [check_cell]
    raise UsageError(
        f"{type(layer).__name__} is none of Causal, Encoder, Conditional, Memory and Cell, so there is no law for it; "
        "derive it from one of them (they are in unrolled.nn)"
    )


def check_object(obj: Any, d_in: int | None = None, vocabulary: int | None = None) -> list[str]:
    """Check a model file or its name, a layer, or a class or function that makes one; returns the laws that hold."""
    if isinstance(obj, str | ModuleType):
        return check_model(obj)
    if isinstance(obj, nn.Module):
        fresh, layer = None, obj
    else:
        fresh, width = _maker(obj, d_in, vocabulary)
        layer = fresh()
        if not isinstance(layer, nn.Module):
            raise UsageError(f"{_name(obj)}() makes {type(layer).__name__}, not a torch.nn.Module")
        if own_input(layer) == (None, None) and vocabulary is None:
            d_in = width if d_in is None else d_in
    (check,) = checks_for(layer)
    if isinstance(layer, Conditional):
        return check_conditional(layer, *_conditional_example(layer, d_in, vocabulary), fresh=fresh)
    if isinstance(layer, Memory):
        return check_memory(layer, fresh=fresh)
    if check is check_cell:
        return check_cell(layer, d_in=d_in, fresh=fresh)
    return check(layer, d_in=d_in, vocabulary=vocabulary, fresh=fresh)


def _name(obj: Any) -> str:
    return str(getattr(obj, "__qualname__", type(obj).__name__))


def _tiny_of(obj: Any) -> Any:
    """The settings that a class has for trials, or those of the model file that it stands in."""
    own = vars(obj).get("TINY") if isinstance(obj, type) else None
    home = inspect.getmodule(obj)
    spec = vars(home).get("MODEL") if home is not None else None
    return own if own is not None or not isinstance(spec, ModelSpec) else spec.tiny


def _maker(obj: Any, d_in: int | None, vocabulary: int | None) -> tuple[Callable[[], Any], int | None]:
    """How to make a layer of a class or function, and the input width that was put in."""
    if not callable(obj):
        raise UsageError(f"{obj!r} is not a layer, nor a class or function that makes one")
    needed = [
        parameter
        for parameter in inspect.signature(obj).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if not needed:
        return obj, None
    tiny = _tiny_of(obj)
    if len(needed) == 1 and tiny is not None and "config" in needed[0].name.lower():
        return lambda: obj(tiny), None
    sizes = all(p.annotation in (int, "int", p.empty) and p.kind is not p.KEYWORD_ONLY for p in needed)
    if sizes and len(needed) <= 2:  # its input width, and perhaps a width of its own, as cells have it
        width = vocabulary or d_in or WIDTH
        return lambda: obj(*[width, OWN_WIDTH][: len(needed)]), width
    wanted = ", ".join(parameter.name for parameter in needed)
    raise UsageError(
        f"{_name(obj)} cannot be made without {wanted}; name a function without arguments that makes one, "
        "or let the class take only its input width and a width of its own"
    )


def _conditional_example(model: Conditional, d_in: int | None, vocabulary: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """A source, its mask and a target, of the widths that the two halves tell."""
    encoder = getattr(model, "encoder", None)
    if d_in is None and vocabulary is None and isinstance(encoder, nn.Module):
        d_in, vocabulary = own_input(encoder)
    target_width, target_vocabulary = own_input(model.decoder)
    if (d_in or vocabulary) is None or (target_width or target_vocabulary) is None:
        raise UsageError(
            f"the widths of source and target of {type(model).__name__} are not known; in Python, "
            "check_conditional(model, source, mask, target) takes examples"
        )
    source = _example(vocabulary is not None, vocabulary or d_in or 1, 3, 7)
    target = _example(target_vocabulary is not None, target_vocabulary or target_width or 1, 3, 8)
    return source, torch.ones(3, 7, dtype=torch.bool), target
