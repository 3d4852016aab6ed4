"""`unrolled inspect`: look inside a saved run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.options import Json, join, print_json
from unrolled.core.errors import UsageError

if TYPE_CHECKING:
    from unrolled.pictures.answer import Answer
    from unrolled.pictures.screen import Screen
    from unrolled.runs.run import Run

MOST_ROWS = 16  # of a table in the terminal


def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    question: Annotated[str | None, typer.Argument(help="The question. [default: list all questions]")] = None,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="input",
            help="The input text (`-` for standard input), or a file if the run does not read text. [default: "
            "the first example of the run's predictions]",
        ),
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Any setting of the question as key=value.")] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Output directory. [default: RUN/inspect/QUESTION]")
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="Your own Python file that defines a question or the model of the run; may be repeated."
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    json: Json = False,
) -> None:
    """Look inside a run: what it attends to, remembers, forgets and expects.

    Each result is a summary with numbers, arrays and pictures, saved in RUN/inspect/QUESTION.

    Examples:

        unrolled inspect runs/lstm-python-docs

        unrolled inspect runs/lstm-python-docs gates "The import statement"

        unrolled inspect runs/lstm-python-docs embeddings --set token=e --set top=8

        unrolled inspect runs/lstm-python-docs my-question --with my_question.py
    """
    from unrolled.core import discover
    from unrolled.core.config import parse_assignments
    from unrolled.pictures.screen import Screen

    own_file = join(with_ or [], discover.questions)
    if question is not None:
        discover.questions.require(question)
    from unrolled.inspect.tools.save import save_answer
    from unrolled.runs.run import load

    opened = load(run, own_file=own_file, device=device)
    console = Screen(file=sys.stdout, highlight=False)
    if question is None:
        if out is not None or set_:
            raise UsageError("-o and --set need a question: name one")
        _list(console, opened, json)
        return
    answer = opened.inspect(question, None if value is None else opened.typed(value), parse_assignments(set_ or []))
    folder = opened.path / "inspect" / question if out is None else out
    files = [str(path) for path in save_answer(answer, folder)]
    if json:
        print_json({"reading": answer.reading, "numbers": answer.numbers, "files": files})
    else:
        _show(console, answer, files)


def _list(console: Screen, opened: Run, json: bool) -> None:
    """Every question, what it asks, and why it has no answer here where it has none."""
    from rich.table import Table
    from rich.text import Text

    from unrolled.core import discover
    from unrolled.core.config import settings_of

    facts: list[dict[str, Any]] = []
    for name in discover.questions.names():
        spec = discover.question(name)
        settings = settings_of(spec.config)
        facts.append({"question": name, "what": spec.summary, "not": opened.unanswered(name), "settings": settings})
    if json:
        print_json(facts)
        return
    table = Table(title=f"unrolled inspect {opened.path} QUESTION", title_style="", title_justify="left")
    for title in ("question", "what it asks", "settings"):
        table.add_column(title)
    for fact in facts:
        said = Text(fact["what"])
        if fact["not"]:
            said.append(f"\nnot available: {fact['not']}", style="dim")
        table.add_row(Text(fact["question"], style="dim" if fact["not"] else ""), said, ", ".join(fact["settings"]))
    console.print(table)


def _show(console: Screen, answer: Answer, files: list[str]) -> None:
    from unrolled.pictures.answer import plain_value
    from unrolled.pictures.draw import is_drawn, terminal
    from unrolled.pictures.kinds import Bars
    from unrolled.pictures.letters import title_words

    console.print(answer.reading)
    for picture in answer.pictures:
        if not is_drawn(picture) or isinstance(picture, Bars):
            console.print()
            console.print(terminal(picture))
    plain = [(key, said) for key, value in answer.numbers.items() if (said := plain_value(value)) is not None]
    if plain:
        console.print()
    for key, said in plain:
        console.print(f"  {title_words(key)}: {said}")
    for table in answer.tables():
        console.print()
        console.print(terminal(table.model_copy(update={"rows": table.rows[:MOST_ROWS]})))
        if len(table.rows) > MOST_ROWS:
            console.print(f"  and {len(table.rows) - MOST_ROWS} more in the files")
    console.print()
    titles = [*[""] * (len(files) - len(answer.pictures)), *(picture.title for picture in answer.pictures)]
    for file, title in zip(files, titles, strict=True):
        console.print(f"{file}   {title}".rstrip(), soft_wrap=True)
