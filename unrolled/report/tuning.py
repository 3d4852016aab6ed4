"""What came of a search for settings: which of them mattered, scores against the values of those, and all trials."""

from __future__ import annotations

from typing import Any

from unrolled.pictures.kinds import Bars, Picture, Plot, Series, Table
from unrolled.pictures.letters import title_words
from unrolled.report.group import Group
from unrolled.report.read import mapping, number
from unrolled.report.words import score_words, setting_words, short_names

MOST = 2  # settings whose values are drawn
WIDE = 10.0  # times the smallest value is the largest where an axis is logarithmic


def search_pictures(group: Group) -> list[Picture]:
    """Of a search; none of other comparisons."""
    found = mapping(group.table.get("tuning"))
    trials = [mapping(each) for each in found.get("trials") or []]
    if not trials:
        return []
    shares = {str(name): share for name, each in mapping(found.get("importance")).items()
              if (share := number(each)) is not None}  # fmt: skip
    words = short_names(mapping(trials[0].get("settings")))
    order = sorted(shares, key=lambda name: -shares[name])
    pictures: list[Picture] = []
    if order:
        by = str(found.get("importance_by") or "")
        alt = f"Share of the variance of the scores that each setting explains ({by}): " + ", ".join(
            f"{words.get(name, name)} {shares[name]:.0%}" for name in order
        )
        names = [words.get(name, name) for name in order]
        title = f"What mattered: share of the variance explained ({by})"
        pictures.append(Bars(title=title, alt=alt, names=names, values=[shares[name] for name in order]))
    known = order or list(mapping(trials[0].get("settings")))
    plots = [plot for name in known if (plot := _plot(group, name, words.get(name, name), trials)) is not None]
    return [*pictures, *plots[:MOST], _table(group, trials)]


def _plot(group: Group, name: str, word: str, trials: list[dict[str, Any]]) -> Plot | None:
    """Scores against the values of a setting; None: they are no numbers."""
    done: list[tuple[float, float]] = []
    early: list[tuple[float, float]] = []
    for trial in trials:
        value = mapping(trial.get("settings")).get(name)
        if isinstance(value, bool) or (x := number(value)) is None:
            continue
        if (y := number(trial.get("value"))) is not None:
            done.append((x, y))
        elif rungs := [y for each in trial.get("scores") or [] if (y := number(each)) is not None]:
            early.append((x, rungs[-1]))
    xs = [x for x, _ in (*done, *early)]
    if len(set(xs)) < 2:
        return None
    unit = f"{title_words(group.criterion)} on validation data"
    series = [
        Series(name=title, x=[x for x, _ in some], y=[y for _, y in some], style="points")
        for title, some in (("to the end", done), ("when it was stopped", early)) if some
    ]  # fmt: skip
    log = min(xs) > 0 and max(xs) >= WIDE * min(xs)
    alt = f"{unit} of {len(xs)} trials against {word}, from {min(xs):.3g} to {max(xs):.3g}."
    return Plot(title=f"Trials by {word}", alt=alt, series=series, x_label=word, y_label=unit, log_x=log)


def _table(group: Group, trials: list[dict[str, Any]]) -> Table:
    """All trials, the best first."""
    names = list(mapping(trials[0].get("settings")))
    rungs = max((len(each.get("scores") or []) for each in trials), default=0)

    def key(trial: dict[str, Any]) -> tuple[float, float]:
        last = [score for each in trial.get("scores") or [] if (score := number(each)) is not None]
        value = number(trial.get("value"))
        return (float("inf") if value is None else value), last[-1] if last else float("inf")

    rows: list[list[Any]] = []
    for trial in sorted(trials, key=key):
        settings = mapping(trial.get("settings"))
        scores = [score_words(number(each)) for each in (trial.get("scores") or [])]
        cells = [setting_words(settings.get(name)) for name in names]
        state = str(trial.get("why") or trial.get("state") or "")
        value = score_words(number(trial.get("value")))
        rows.append([str(trial.get("run") or ""), value, *scores, *[""] * (rungs - len(scores)), *cells, state])
    columns = [
        "trial",
        group.criterion,
        *(f"at rung {n + 1}" for n in range(rungs)),
        *short_names(names).values(),
        "state",
    ]
    return Table(title="All trials, on validation data", columns=columns, rows=rows)
