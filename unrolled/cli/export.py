"""`unrolled export`: a saved run for other programs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.asked import RunPath
from unrolled.cli.options import Json, With, print_json
from unrolled.core.errors import UsageError


def command(
    run: RunPath,
    to: Annotated[str | None, typer.Option("--to", help="The target. [default: list all targets]")] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Output file. [default: in the folder exports of the run]")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Any setting of the target as key=value.")] = None,
    with_: With = None,
    json: Json = False,
) -> None:
    """Export a run for use without unrolled: as ONNX, as a web page that works offline, or as a plain PyTorch module.

    What was made is compared with the run before it is written: the same inputs at several batch sizes, through 50
    steps where there is a state. Without --to, the targets are listed, and why a run cannot be exported to one.

    Examples:

        unrolled export runs/lstm-python-docs

        unrolled export runs/lstm-python-docs --to onnx

        unrolled export runs/lstm-python-docs --to page -o lm.html --set precision=float16
    """
    from unrolled.core import discover
    from unrolled.core.config import parse_assignments

    if to is not None:
        discover.exports.require(to)
    elif out is not None or set_:
        raise UsageError("-o and --set need a target: name one with --to")
    from unrolled.exports.tools.exporting import export, reasons
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device="cpu")
    if to is None:
        _list(reasons(opened), json)
        return
    written = export(opened, to, out, parse_assignments(set_ or []))
    facts: dict[str, Any] = {
        "files": [str(file) for file in written.files], "bytes": [file.stat().st_size for file in written.files],
        "difference": written.difference, "checked": written.checked,
    }  # fmt: skip
    if json:
        print_json(facts)
        return
    for file, size in zip(facts["files"], facts["bytes"]):
        print(f"{file}   {_size(size)}")
    largest = "" if written.difference is None else f": largest difference {written.difference:.1e}"
    print(f"{written.checked}{largest}")


def _list(found: dict[str, str | None], json: bool) -> None:
    from unrolled.core import discover

    facts = [{"target": name, "what": discover.export(name).summary, "not": why} for name, why in found.items()]
    if json:
        print_json(facts)
        return
    for fact in facts:
        print(
            f"{fact['target']:<8} {fact['what']}" + (f"\n{'':<8} not available: {fact['not']}" if fact["not"] else "")
        )


def _size(n: int) -> str:
    """
    >>> _size(37268), _size(3_100_000)
    ('37 kB', '3.1 MB')
    """
    return f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{max(n // 1000, 1)} kB"
