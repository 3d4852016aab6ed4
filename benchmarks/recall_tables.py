"""The section of docs/results.md on memories, from what benchmarks.recall kept."""

from __future__ import annotations

import math
from statistics import NormalDist

from benchmarks.page import picture, read, table
from unrolled.pictures.kinds import Plot, Series


def memories() -> str:
    """Measured capacities beside theory."""
    found = {
        piece: read(f"recall-{piece}")
        for piece in ("classical", "once", "polynomial", "exponential", "continuous", "speed")
    }
    rows = []
    if whole := found["classical"]:
        rows.append(["classical, to the end", f"{whole['d']}", f"{whole['share']:.4f} d", "0.138 d"])
        n, wrong = min(whole["few"], key=lambda point: abs(point[0] - whole["error_free"]))
        measured, expected = wrong * whole["d"], whole["d"] * NormalDist().cdf(-math.sqrt(whole["d"] / n))
        few = f"classical, one update, d / (2 ln d) = {n} patterns"
        rows.append([few, f"{whole['d']}", f"{measured:.3f} wrong bits in a pattern", f"{expected:.3f}"])
    if once := found["once"]:
        rows.append(
            ["classical, one update", f"{once['d']}", f"{once['share']:.4f} d", f"{once['theory'] / once['d']:.4f} d"]
        )
    for degree, each in (found["polynomial"] or {"degrees": {}})["degrees"].items():
        widths = ", ".join(str(row["d"]) for row in each["rows"])
        rows.append([f"polynomial of degree {degree}", widths, f"d^{each['slope']:.2f}", f"d^{each['expected']}"])
    if not rows:
        return ""
    text = "\n## Memories\n\nStored random patterns at which 1 % of the bits are wrong, recalled from the patterns "
    text += "themselves; of polynomials the slope of the logarithms over several d. Theory: Amit et al. (1985), "
    text += "Krotov & Hopfield (2016).\n\n" + table(["memory", "d", "measured", "theory"], rows) + "\n"
    if exp := found["exponential"]:
        text += (
            f"\nExponential: {exp['patterns']:,} patterns of {exp['d']} bits with {exp['flipped']} bits flipped, one "
        )
        text += f"update: {exp['not_recalled']} of {exp['queries']:,} queries are not recalled exactly.\n"
    if real := found["continuous"]:
        told = [f"{name}: {each['recalled']:.2%} (beta {each['beta']:.2f})" for name, each in real["found"].items()]
        text += f"\nContinuous: {real['patterns']:,} normal patterns of {real['d']} numbers with noise of half their "
        text += f"deviation, one update, recalled within a tenth of their length: {'; '.join(told)}.\n"
    if fast := found["speed"]:
        text += (
            f"\nSpeed: one update of {fast['queries']:,} queries against {fast['patterns']:,} patterns of {fast['d']} "
        )
        text += f"numbers runs at {fast['share']:.0%} of the speed of a matrix product and takes "
        text += f"{fast['megabytes']:.0f} MB "
        text += f"more memory than is held (all scores at once: {fast['megabytes_of_all_scores']:,} MB).\n"
    return text + _curve(found)


def _curve(found: dict) -> str:
    lines = []
    for piece, name in (("classical", "to the end"), ("once", "one update")):
        if each := found[piece]:
            x, y = zip(*each["points"])
            lines.append(Series(name=name, x=[n / each["d"] for n in x], y=list(y)))
    if not lines:
        return ""
    return picture("capacity", Plot(
        title="Classical memory, d = 1000", series=lines, x_label="stored patterns / d", y_label="share of wrong bits",
        alt="Share of wrong bits against stored patterns: a jump near 0.14 d, a smooth rise after one update.",
    ))  # fmt: skip
