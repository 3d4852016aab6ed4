"""`unrolled predict`: the one verb for every task's predictions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.examples import Condition, Data, Device, Run, answers_of
from unrolled.cli.live import Live, answer_live
from unrolled.cli.options import Json, With, with_options
from unrolled.cli.rows import Out, QuoteFormulas, with_ids, write
from unrolled.cli.streams import json_words, write_exact
from unrolled.core.errors import UsageError
from unrolled.decode.config import Sampling


@with_options({"sampling": Sampling})
def command(
    run: Run,
    data: Data,
    condition: Condition = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam search of this width, for runs that write.")] = None,
    length_penalty: Annotated[float, typer.Option(help="Exponent of beam search's length penalty.")] = 0.0,
    n_best: Annotated[int, typer.Option(min=1, help="How many texts for each source; more than one as JSON.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of taking the likeliest token.")] = False,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="The most tokens to write for a source.")] = None,
    with_: With = None,
    device: Device = None,
    live: Live = False,
    out: Out = None,
    quote_formulas: QuoteFormulas = False,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Predict for each example, in order: one line each on standard output.

    Runs that write for a source (translate) give the text alone, batched by length but in the order of the input, and
    an empty line for an empty line; --json gives all that is known. Other runs give one JSON line each; next-token runs
    the most probable tokens after each line. With -o out.csv the rows of a table are written as they are, with the
    prediction and its probability in columns behind them.

    Examples:

        unrolled predict runs/lstm-python-docs lines.txt

        echo "The impor" | unrolled predict runs/lstm-python-docs -

        unrolled predict runs/dan-reviews reviews.csv -o answered.csv

        unrolled predict runs/seq2seq-dates - --beam 5 --length-penalty 0.6 < lines.txt

        sensor | unrolled predict runs/gru-sensor - --live
    """
    from unrolled.cli import lines
    from unrolled.runs.run import load

    if quote_formulas and out is None:
        raise UsageError("--quote-formulas is for tables that are written to a file with -o")
    if live:
        answer_live(run, data, with_, device)
        return
    given: dict[str, Any] = {"beam": beam, "length_penalty": length_penalty, "n_best": n_best, "max_tokens": max_tokens}
    if sample or values:
        given["sampling"] = Sampling.parse({key.removeprefix("sampling."): value for key, value in values.items()})
    options = {
        name: value for name, value in given.items() if value not in (None, 0.0) and (name, value) != ("n_best", 1)
    }
    opened = load(run, own_file=with_, device=device)
    writes = hasattr(opened.task, "say") and hasattr(opened.task, "search")
    for name in () if writes else options:
        flag = "sample" if name == "sampling" else name.replace("_", "-")
        raise UsageError(f"--{flag} is not for the task '{opened.config.task}', which writes nothing for a source")
    if writes and condition is not None:
        raise UsageError(f"--condition is not for the task '{opened.config.task}'")
    said = lines.answers(opened, data, options) if writes else answers_of(opened, data, "predict", condition)
    if out is not None:
        lines_out = ({key: each for key, each in line.items() if key != "source"} for line in said)
        write(out, data, lines_out, opened.task, quote_formulas)
        return
    for line in with_ids(data, said, opened.task):
        plain = writes and not json and n_best == 1
        write_exact((" ".join(line["prediction"].splitlines()) if plain else json_words(line)) + "\n")
