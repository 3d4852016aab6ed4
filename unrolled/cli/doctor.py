"""`unrolled doctor`: what this installation runs on, and how fast."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, print_json


def command(
    speed: Annotated[bool, typer.Option(help="Measure the speed, which takes up to ten seconds.")] = True,
    json: Json = False,
) -> None:
    """Show which native kernels are loaded and why, threads and versions, and check the speed.

    Examples:

        unrolled doctor

        unrolled doctor --no-speed --json
    """
    facts = facts_of() | ({"speed": measured()} if speed else {})
    if json:
        print_json(facts)
        return
    native = facts["native"]
    print(f"native kernels  {native['level']} ({native['why']})")
    print(f"  built         {', '.join(native['built']) or 'none'}; this processor can run {', '.join(native['can']) or 'none'}")
    print(f"threads         {facts['threads']} of {facts['cores']} cores")
    print(f"versions        {', '.join(f'{name} {version}' for name, version in facts['versions'].items())}")
    if speed:
        print("speed           training step of a GRU (16 rows, 200 steps, 16 inputs, 32 units), one thread")
    for row in facts.get("speed", []):
        print(f"  {row['by']:<14}{row['milliseconds']:>8.2f} ms{row['ratio']:>8.1f}x torch.nn")


def facts_of() -> dict[str, Any]:
    import os

    import torch

    from unrolled.kernels import native
    from unrolled.training.api import versions

    level, why, _ = native.loaded()
    found = {"level": level, "why": why, "built": native.built(), "can": native.allowed()[0]}
    told = {name: version for name, version in versions().items() if name != "native"}
    return {"native": found, "threads": torch.get_num_threads(), "cores": os.cpu_count(), "versions": told}


def measured() -> list[dict[str, Any]]:
    """A training step by torch.nn, by torch alone and by the native kernels: in turns, the best of several."""
    import time

    import torch

    from unrolled import nn
    from unrolled.kernels import native

    x, level, threads = torch.randn(16, 200, 16), native.loaded().level, torch.get_num_threads()
    theirs, ours = torch.nn.GRU(16, 32, batch_first=True), nn.Recurrent(nn.GRU(16, 32))
    ways = {"torch.nn": (theirs, "off"), "native off": (ours, "off"), **({} if level == "off" else {level: (ours, level)})}
    best = dict.fromkeys(ways, float("inf"))
    end = time.perf_counter() + 8
    torch.set_num_threads(1)
    try:
        for turn in range(40):
            for name, (module, served) in ways.items():
                start = time.perf_counter()
                with native.using(served):
                    module(x)[0].sum().backward()
                best[name] = min(best[name], time.perf_counter() - start) if turn else best[name]
            if time.perf_counter() > end:
                break
    finally:
        torch.set_num_threads(threads)
    slowest = best["torch.nn"]
    return [{"by": name, "milliseconds": 1e3 * s, "ratio": slowest / s} for name, s in best.items()]
