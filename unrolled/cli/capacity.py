"""`unrolled capacity`: how many patterns a memory keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.options import Json, print_json
from unrolled.core.errors import UsageError

if TYPE_CHECKING:
    from unrolled.layers.memory.memory import Memory

# of what theory says; other rules than Hebb's keep more, and theory of the exponential allows no errors
SHARES = (0.25, 0.5, 0.75, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)


def command(
    model: Annotated[
        str, typer.Option(help="A memory: classical-hopfield, dense-hopfield or continuous-hopfield.")
    ] = "classical-hopfield",
    d: Annotated[
        int, typer.Option("-d", "--d", min=8, max=20_000, help="Number of bits, or numbers, of a pattern.")
    ] = 1000,
    level: Annotated[
        float, typer.Option(min=1e-6, max=0.4, help="Share of wrong bits, or patterns of numbers, that is allowed.")
    ] = 0.01,
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
    classical-hopfield; the other rules keep more. Patterns of continuous-hopfield are normal numbers; what is counted
    is the share that is not recalled within a tenth of its length.

    Examples:

        unrolled capacity

        unrolled capacity --once --set updates=synchronous

        unrolled capacity --model dense-hopfield -d 64 --once --set interaction=polynomial --set degree=3

        unrolled capacity --model continuous-hopfield -d 24
    """
    from unrolled.layers.memory import capacity
    from unrolled.layers.memory.memory import SpinMemory

    if out is not None and Path(out).suffix != ".svg":
        raise UsageError(f"-o {out}: unknown output format; the file name must end in .svg")
    make = _maker(model, d, settings or [])
    first = make()
    what, kind, expected = "not recalled", "numbers", capacity.theory_of_numbers(d, level)
    if isinstance(first, SpinMemory):
        what, kind, expected = "wrong bits", "bits", capacity.theory(d, first.degree, once, level)
    if expected > 200_000:
        raise UsageError(f"about {expected:.2g} patterns of {d} {kind} would be needed; choose a smaller -d")
    numbers = sorted({max(1, round(share * expected)) for share in SHARES})
    points: list[tuple[int, float]] = []
    for n, error in capacity.curve(make, d, numbers, draws, once, seed):
        points.append((n, error))
        if not json:
            print(f"{n:>8,} patterns  {n / d:8.4f} d   {what} {error:.5f}", flush=True)
        if error > 4 * level and len(points) > 2:
            break
    found = capacity.crossing(points, level)
    facts: dict[str, Any] = {
        "model": model, "d": d, "level": level, "draws": draws, "once": once,
        "threshold": None if found is None else found / d, "theory": expected / d,
        "curve": [{"patterns": n, what.replace(" ", "_"): error} for n, error in points],
    }  # fmt: skip
    if out is not None:
        _draw(out, facts, [error for _, error in points], what)
    if json:
        print_json(facts)
        return
    if found is None:
        print(f"{what}: does not pass {level:g} between {points[0][0]:,} and {points[-1][0]:,} patterns")
    else:
        at = f"{found:,.1f} patterns = {found / d:.4f} d (theory: about {expected / d:.4f} d)"
        print(f"{level:.2%} {what} at {at}")


def _maker(model: str, d: int, settings: list[str]) -> Callable[[], Memory]:
    """What makes an empty memory of d bits or numbers."""
    from unrolled.core import discover
    from unrolled.core.config import parse_assignments
    from unrolled.core.spec import Sizes
    from unrolled.layers.memory.continuous import Continuous
    from unrolled.layers.memory.memory import SpinMemory

    spec = discover.model(model)
    own = spec.config.parse(parse_assignments(settings))

    def make() -> Memory:
        found = spec.make(own, Sizes(d, d, targets="pattern"))
        if not isinstance(found, SpinMemory | Continuous):
            fit = "classical-hopfield, dense-hopfield or continuous-hopfield"
            raise UsageError(f"the model '{model}' is not a memory with a capacity; use {fit}")
        return found

    return make


def _draw(out: str, facts: dict[str, Any], y: list[float], what: str) -> None:
    from unrolled.pictures.draw import svg
    from unrolled.pictures.kinds import Plot, Series
    from unrolled.runs.storage import atomic

    x = [each["patterns"] / facts["d"] for each in facts["curve"]]
    theory = Series(name="theory", x=[facts["theory"]] * 2, y=[0.0, max(y)], style="dashed")
    plot = Plot(
        title=f"Capacity of {facts['model']}, d = {facts['d']}", series=[Series(name="measured", x=x, y=y), theory],
        x_label="stored patterns / d", y_label=f"share: {what}",
        alt="Share that is wrong after recall against the number of stored patterns.",
    )  # fmt: skip
    atomic.write_text(Path(out), svg(plot))
