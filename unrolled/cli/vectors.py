"""`unrolled vectors`: the word vectors of a run as a file that other programs read, or a file in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.core.errors import UsageError

Place = Annotated[str, typer.Argument(help="A run directory, a comparison, or a file of word vectors.", metavar="RUN")]
Out = Annotated[str, typer.Option("-o", "--out", help="The file to write; .bin is the binary format of word2vec.")]
Form = Annotated[
    str | None,
    typer.Option("--format", help="word2vec (text, with a first line of sizes), glove (without), or binary (.bin)."),
]


def command(run: Place, out: Out, form: Form = None) -> None:
    """Write the word vectors of a run to a file, in the formats of word2vec and GloVe.

    Of a run that is not one of word vectors, these are the rows of its embedding. A file of vectors is converted.

    Examples:

        unrolled vectors runs/word2vec-python-docs -o vectors.txt

        unrolled vectors vectors.txt -o vectors.bin
    """
    from unrolled.runs.vectors import vectors

    path = Path(out)
    if path.is_dir():
        raise UsageError(f"-o {out}: this is a folder; name a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder '{path.parent}'; create it first")
    found = vectors(run)
    found.save(path, form)
    print(f"{out}: {len(found):,} words, {found.width} numbers each")
