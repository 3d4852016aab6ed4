"""`unrolled capacity`: how many patterns a memory keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.options import Json, print_json
from unrolled.core.errors import UsageError

if TYPE_CHECKING:
    from unrolled.layers.memory.memory import SpinMemory

SHARES = (0.25, 0.5, 0.75, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.25, 1.5)  # of what theory says


def command(
    model: Annotated[
        str, typer.Option(help="A memory of bits: classical-hopfield or dense-hopfield.")
    ] = "classical-hopfield",
    d: Annotated[int, typer.Option("-d", "--d", min=8, max=20_000, help="Number of bits of a pattern.")] = 1000,
    level: Annotated[float, typer.Option(min=1e-6, max=0.4, help="Share of wrong bits that is allowed.")] = 0.01,
    draws: Annotated[int, typer.Option(min=1, max=1000, help="Number of random draws that are averaged.")] = 5,
    once: Annotated[bool, typer.Option("--once", help="One update instead of recall to the end.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the model, such as --set rule=storkey.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    out: Annotated[str | None, typer.Option("-o", "--out", help="Draw the curve into this .svg file.")] = None,
    json: Json = False,
) -> None:
    """Measure how many random patterns a memory keeps, and compare it with theory.

    More and more random patterns are stored; each is recalled from itself, and the share of wrong bits is counted. The
    threshold is the number of patterns at which it passes the level. Theory is that of Hebb's rule for
    classical-hopfield; the other rules keep more.

    Examples:

        unrolled capacity

        unrolled capacity --once --set updates=synchronous

        unrolled capacity --model dense-hopfield -d 64 --once --set interaction=polynomial --set degree=3
    """
    from unrolled.layers.memory import capacity

    if out is not None and Path(out).suffix != ".svg":
        raise UsageError(f"-o {out}: unknown output format; the file name must end in .svg")
    make = _maker(model, d, settings or [])
    expected = capacity.theory(d, make().degree, once, level)
    if expected > 200_000:
        raise UsageError(f"about {expected:.2g} patterns of {d} bits would be needed; choose a smaller -d")
    numbers = sorted({max(1, round(share * expected)) for share in SHARES})
    points: list[tuple[int, float]] = []
    for n, error in capacity.curve(make, d, numbers, draws, once, seed):
        points.append((n, error))
        if not json:
            print(f"{n:>8,} patterns  {n / d:8.4f} d   wrong bits {error:.5f}", flush=True)
        if error > 4 * level and len(points) > 2:
            break
    found = capacity.crossing(points, level)
    facts: dict[str, Any] = {
        "model": model, "d": d, "level": level, "draws": draws, "once": once,
        "threshold": None if found is None else found / d, "theory": expected / d,
        "curve": [{"patterns": n, "wrong_bits": error} for n, error in points],
    }  # fmt: skip
    if out is not None:
        _draw(out, facts)
    if json:
        print_json(facts)
        return
    if found is None:
        print(f"the share of wrong bits does not pass {level:g} between {points[0][0]} and {points[-1][0]} patterns")
    else:
        at = f"{found:,.1f} patterns = {found / d:.4f} d (theory: about {expected / d:.4f} d)"
        print(f"{level:.2%} wrong bits at {at}")


def _maker(model: str, d: int, settings: list[str]) -> Callable[[], SpinMemory]:
    """What makes an empty memory of d bits."""
    from unrolled.core import discover
    from unrolled.core.config import parse_assignments
    from unrolled.core.spec import Sizes
    from unrolled.layers.memory.memory import SpinMemory

    spec = discover.model(model)
    own = spec.config.parse(parse_assignments(settings))

    def make() -> SpinMemory:
        found = spec.make(own, Sizes(d, d, targets="pattern"))
        if not isinstance(found, SpinMemory):
            raise UsageError(f"the model '{model}' is not a memory of bits; use classical-hopfield or dense-hopfield")
        return found

    return make


def _draw(out: str, facts: dict[str, Any]) -> None:
    from unrolled.pictures.draw import svg
    from unrolled.pictures.kinds import Plot, Series
    from unrolled.runs.storage import atomic

    x = [each["patterns"] / facts["d"] for each in facts["curve"]]
    y = [each["wrong_bits"] for each in facts["curve"]]
    theory = Series(name="theory", x=[facts["theory"]] * 2, y=[0.0, max(y)], style="dashed")
    plot = Plot(
        title=f"Capacity of {facts['model']}, d = {facts['d']}", series=[Series(name="measured", x=x, y=y), theory],
        x_label="stored patterns / d", y_label="share of wrong bits",
        alt="Share of wrong bits after recall against the number of stored patterns.",
    )  # fmt: skip
    atomic.write_text(Path(out), svg(plot))
