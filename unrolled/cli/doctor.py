"""`unrolled doctor`: what this installation runs on, and how fast."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, print_json

SIZE = (16, 200, 16, 32)  # rows, steps, inputs, units
SECONDS = 8


def command(
    run: Annotated[
        str | None, typer.Argument(help="A run directory: show also how it generates, natively or by torch and why.")
    ] = None,
    speed: Annotated[bool, typer.Option(help="Measure the speed, which takes up to ten seconds.")] = True,
    json: Json = False,
) -> None:
    """Show which native kernels are loaded and why, threads and versions, and check the speed.

    Examples:

        unrolled doctor

        unrolled doctor --no-speed --json

        unrolled doctor runs/lstm-python-docs --no-speed
    """
    facts = facts_of() | ({} if run is None else {"generates": generates(run)})
    facts |= {"speed": measured()} if speed else {}
    if json:
        print_json(facts)
        return
    native = facts["native"]
    print(f"native kernels  {native['level']}: {native['why']}")
    print(f"built           {', '.join(native['built']) or 'none'}")
    print(f"processor runs  {', '.join(native['can']) or 'none'}")
    print(f"threads         {facts['threads']}, on {facts['cores']} cores")
    print(f"versions        {', '.join(f'{name} {version}' for name, version in facts['versions'].items())}")
    if run is not None:
        print(f"generates       {facts['generates']}")
    if speed:
        B, T, D, N = SIZE
        print(f"speed           a training step of a GRU: {B} rows, {T} steps, {D} inputs, {N} units; one thread")
    for row in facts.get("speed", []):
        print(f"  {row['by']:<14}{row['milliseconds']:>7.2f} ms{row['ratio']:>7.1f} times torch.nn")


def facts_of() -> dict[str, Any]:
    import os

    import torch

    from unrolled.kernels import native
    from unrolled.training.api import versions

    level, why, _ = native.loaded()
    found = {"level": level, "why": why, "built": native.built(), "can": native.allowed()[0]}
    told = {name: version for name, version in versions().items() if name != "native"}
    return {"native": found, "threads": torch.get_num_threads(), "cores": os.cpu_count(), "versions": told}


def generates(path: str) -> str:
    """What makes the ticks when a run generates."""
    from unrolled.core.causal import Causal, Conditional, decoder_of
    from unrolled.engine.stepper import lowered
    from unrolled.runs.run import load

    model = load(path).model
    decoder = decoder_of(model) if isinstance(model, Causal | Conditional) else None
    if decoder is None:
        return "not at all: the model reads whole sequences"
    found = lowered(decoder)
    return f"by torch, tick by tick: {found}" if isinstance(found, str) else "natively"


def measured() -> list[dict[str, Any]]:
    """A training step by torch.nn, by our torch code and by the native kernels: in turns, the best of several."""
    import time

    import torch

    from unrolled.kernels import native
    from unrolled.layers.recurrent.cells import GRU
    from unrolled.layers.recurrent.recurrent import Recurrent

    B, T, D, N = SIZE
    x, level, threads = torch.randn(B, T, D), native.loaded().level, torch.get_num_threads()
    ours = Recurrent(GRU(D, N))
    ways = {"torch.nn": (torch.nn.GRU(D, N, batch_first=True), "off"), "off": (ours, "off"), level: (ours, level)}
    best = dict.fromkeys(ways, float("inf"))
    torch.set_num_threads(1)
    try:
        end = time.perf_counter() + SECONDS
        for turn in range(30):
            for name, (module, served) in ways.items():
                start = time.perf_counter()
                with native.using(served):
                    module(x)[0].sum().backward()
                if turn:  # the first prepares
                    best[name] = min(best[name], time.perf_counter() - start)
            if turn and time.perf_counter() > end:
                break
    finally:
        torch.set_num_threads(threads)
    return [{"by": name, "milliseconds": 1e3 * s, "ratio": best["torch.nn"] / s} for name, s in best.items()]
