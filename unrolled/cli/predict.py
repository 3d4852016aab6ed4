"""`unrolled predict`: the one verb for every task's predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.cli.asked import Data, Device, Encoding, RunPath, Separator, Weights, print_results, say_notes, watched
from unrolled.cli.live import Live, answer_live
from unrolled.cli.options import Json, With, with_options
from unrolled.cli.rows import Out, QuoteFormulas, write
from unrolled.core.errors import UsageError
from unrolled.core.verb import Draws
from unrolled.runs.storage import atomic
from unrolled.verbs.predict import VERB


@with_options({"": VERB.request})
def command(
    run: RunPath,
    data: Data,
    with_: With = None,
    device: Device = None,
    weights: Weights = None,
    encoding: Encoding = None,
    separator: Separator = None,
    live: Live = False,
    out: Out = None,
    quote_formulas: QuoteFormulas = False,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Predict for each example, in order: one line each on standard output.

    Runs that write a target for a source (translate) print the text alone, in the order of the input, and
    an empty line for an empty line; --json prints all details. Other runs print one JSON line each; next-token runs
    the most probable tokens after each line. With -o out.csv the rows of a table are written as they are, with the
    prediction and its probability in additional columns. With -o out.png a run that completes patterns (recall) draws
    them.

    Examples:

        unrolled predict runs/lstm-python-docs lines.txt

        echo "The impor" | unrolled predict runs/lstm-python-docs -

        unrolled predict runs/dan-reviews reviews.csv -o predicted.csv

        unrolled predict runs/seq2seq-dates - --beam 5 --length-penalty 0.6 < lines.txt

        sensor | unrolled predict runs/gru-sensor - --live
    """
    from unrolled.data.files.file_form import files_as
    from unrolled.runs.run import load

    if quote_formulas and out is None:
        raise UsageError("--quote-formulas applies only to tables that are written to a file with -o")
    if live and out is not None:
        raise UsageError("--live prints predictions as input arrives; leave out -o")
    opened = load(run, own_file=with_, device=device, encoding=encoding, separator=separator, weights=weights)
    if live:
        say_notes(opened)
        with files_as(opened.form):
            answer_live(opened, data, values, json)
        return
    found = opened.each("predict", data, values)
    if opened.task.WRITES:
        found = watched(data, found)
    if out is not None and Path(out).suffix == ".png" and isinstance(opened.task, Draws):
        atomic.write_bytes(Path(out), opened.task.drawing(opened.model, [given for given, _ in found]))
        print(out)
        return
    if out is not None:
        with files_as(opened.form):
            write(out, data, found, opened.task, quote_formulas)
        say_notes(opened)
        return
    several = values.get("n", 1) != 1
    print_results(found, VERB.writers["text"] if opened.task.WRITES and not json and not several else None)
    say_notes(opened)
