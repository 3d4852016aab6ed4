"""Run directories and comparisons in, one self-contained HTML page out: no address outside, no script, no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unrolled
from unrolled.core.errors import DataError, UnrolledError, UsageError, listed
from unrolled.core.front import option
from unrolled.core.opening import shortened
from unrolled.pictures.kinds import Picture, Texts
from unrolled.pictures.letters import clean, title_words
from unrolled.report import rungs
from unrolled.report.disagree import Disagreement, disagreement
from unrolled.report.group import Group, groups_of
from unrolled.report.plots import pictures_of
from unrolled.report.read import is_run, mapping, read_any
from unrolled.report.scores import Column, Line, columns_of, lines_of
from unrolled.report.settings import commands, setting_rows
from unrolled.report.words import fact_words, size_words, units_words
from unrolled.runs.saved_pictures import saved_pictures
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.manifest import ADVICE

if TYPE_CHECKING:
    from jinja2 import Template

NAME = "report.html"
FOLDER = resources.files("unrolled.report")
MOST_BYTES = 1_500_000  # of pictures that runs bring along; the rest stays in their folders


@dataclass(frozen=True)
class Shown:
    """The pictures of one model, as HTML."""

    label: str
    figures: list[str]
    left_out: int


@dataclass(frozen=True)
class Section:
    """A group, ready for the template."""

    group: Group
    key: str
    columns: list[Column]
    lines: list[Line]
    plots: list[str]
    samples: list[Shown]
    pictures: list[Shown]
    disagreement: Disagreement | None
    facts: list[tuple[str, str]]
    parts: list[tuple[str, dict[str, Any]]]
    setting_labels: list[str]
    settings: list[tuple[str, list[str]]]
    configs: list[tuple[str, str]]
    commands: list[tuple[str, str]]
    conditions: list[tuple[str, str]]


def write_report(paths: Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Write the page of some run directories and comparisons, and return where it is.

    Without `out` it goes into the directory if one was named, else to report.html here.
    """
    places = [Path(path) for path in paths]
    if not places:
        raise UsageError("name at least one run directory or comparison; `unrolled runs` lists them")
    target = Path(out) if out is not None else places[0] / NAME if len(places) == 1 else Path(NAME)
    if target.is_dir():
        raise UsageError(f"{target} is a directory: name a file with {option('out', target / NAME)}")
    text = _of_anybody(places)
    atomic.make_directory(target.parent)
    if is_run(target.parent):
        RunDirectory.open(target.parent).write_text(target.name, text)  # also seals it
    else:
        atomic.write_text(target, text)
    return target


def _of_anybody(places: Sequence[Path]) -> str:
    """The page of directories that may hold anything: what cannot be shown is wrong with them."""
    try:
        return make_page(groups_of([read_any(place) for place in places]))
    except UnrolledError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {shortened(str(error))}"
        raise DataError(f"{listed(map(str, places))}: the files do not match each other ({why}); {ADVICE}") from error


@cache
def template() -> Template:
    """The page without its sections, compiled once."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def fit(value: Any) -> Any:
        return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=fit
    )
    environment.filters |= {"title_words": title_words, "fact_words": fact_words, "units_words": units_words}
    return environment.from_string(FOLDER.joinpath("page.html.jinja").read_text(encoding="utf-8"))


def make_page(groups: list[Group]) -> str:
    """The page as text."""
    from markupsafe import Markup

    from unrolled.pictures.draw import STYLE

    budget = Budget(MOST_BYTES)
    sections = [_section(group, f"g{number}", budget) for number, group in enumerate(groups)]
    return template().render(
        sections=sections,
        title=groups[0].title if len(groups) == 1 else f"{len(groups)} groups of runs",
        style=Markup(STYLE + FOLDER.joinpath("page.css").read_text(encoding="utf-8")),
        version=unrolled.__version__,
        html=Markup,
    )


@dataclass
class Budget:
    """How much of the page pictures may still take."""

    left: int

    def take(self, text: str) -> bool:
        if len(text) > self.left:
            return False
        self.left -= len(text)
        return True


def _section(group: Group, key: str, budget: Budget) -> Section:
    columns = columns_of(group)
    plots = [_html(picture, f"{key}/plot/{number}") for number, picture in enumerate(pictures_of(group))]
    samples: list[Shown] = []
    pictures: list[Shown] = []
    for number, (label, run) in enumerate(group.first_runs()):
        found = saved_pictures(run.path, group.notes)
        for shown, wanted in ((samples, True), (pictures, False)):
            some = [picture for picture in found if isinstance(picture, Texts) == wanted]
            if some:
                shown.append(_shown(label, some, f"{key}/{number}/{wanted}", budget))
    facts = mapping(group.table.get("facts"))
    labels, settings = setting_rows(group)
    return Section(
        group=group, key=key, columns=columns, lines=lines_of(group, columns), plots=plots, samples=samples,
        pictures=pictures, disagreement=disagreement(group), facts=_facts(facts), parts=_parts(facts),
        setting_labels=labels, settings=settings, commands=commands(group), conditions=_conditions(group.table),
        configs=[(label, json.dumps(run.config, indent=2, ensure_ascii=False)) for label, run in group.first_runs()],
    )  # fmt: skip


def _html(picture: Picture, place: str) -> str:
    from unrolled.pictures.draw import html

    return html(picture, salt=place)


def _shown(label: str, pictures: list[Picture], place: str, budget: Budget) -> Shown:
    made = []
    for number, picture in enumerate(pictures):
        drawn = _html(picture, f"{place}/{number}")
        if budget.take(drawn):
            made.append(drawn)
    return Shown(label, made, len(pictures) - len(made))


def _facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known of the data, one line each; the parts have their own table."""
    known = {name: value for name, value in facts.items() if value not in (None, [], {}) and name != "split"}
    if isinstance(known.get("bytes"), int):
        known["bytes"] = f"{known['bytes']:,} ({size_words(known['bytes'])})"
    return [(title_words(name), fact_words(value)) for name, value in known.items()]


def _parts(facts: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Training, validation and test split, each with the same counts."""
    parts = {name: part for name, part in mapping(facts.get("split")).items() if isinstance(part, dict)}
    order = {"train": 0, "valid": 1, "test": 2}
    return sorted(parts.items(), key=lambda part: order.get(part[0], 3))


def _conditions(table: dict[str, Any]) -> list[tuple[str, str]]:
    """Under which conditions the rows were made."""
    from unrolled.report.words import time_words

    same = "number of steps" if table.get("steps") else "training time"
    matched = {"time": f"the same {same} for each", "params": "about the same number of parameters for each"}
    matched["race"] = "the same training time up to each rung of a race, where the worse half is stopped"
    seeds = table.get("seeds") or []
    found = [
        ("task", f"{table.get('task')}{', guessed: ' + str(table['guessed']) if table.get('guessed') else ''}"),
        ("matched", matched.get(str(table.get("match")), "")),
        ("budget", time_words(table.get("budget_seconds"))),
        ("time per run", time_words(table.get("share_seconds"))),
        ("race", rungs.words(table)),
        ("steps", fact_words(table["steps"]) if table.get("steps") else ""),
        ("seeds", ", ".join(map(str, seeds))),
        ("threads", fact_words(table["threads"]) if table.get("threads") else ""),
        ("parallel runs", fact_words(table["jobs"]) if table.get("jobs") else ""),
        ("versions", fact_words(mapping(table.get("versions")))),
    ]
    return [(name, said) for name, said in found if said]
