"""Groups: what belongs into one table. A comparison is one; runs that were named singly form one per task and data.

Single runs have no intervals, so a group of them has no winner; its table says who came first and what beats whom.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unrolled.core.errors import listed
from unrolled.core.metric import Metric, metrics_in
from unrolled.pictures.letters import title_words
from unrolled.report.ranking import disagreements
from unrolled.report.read import Comparison, RunFacts, mapping, number
from unrolled.report.words import score_words, time_words


@dataclass(frozen=True)
class Group:
    """One table, its rows, and the runs behind them by the name that rows use."""

    title: str
    table: dict[str, Any]  # the format of table.json
    runs: dict[str, RunFacts]
    places: list[Path]
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.table["rows"])

    @property
    def score(self) -> str:
        return str(self.table.get("score") or "nats")

    @property
    def metric(self) -> Metric:
        """The score with its direction."""
        return metrics_in(self.table, self.score)[0]

    @property
    def criterion(self) -> str:
        """The metric that is looked at in training."""
        return str(self.table.get("criterion") or self.score)

    @property
    def is_comparison(self) -> bool:
        return bool(self.table.get("command"))

    def runs_of(self, row: dict[str, Any]) -> list[RunFacts]:
        """The runs of a row that can be read, by seed."""
        return [self.runs[name] for name in row.get("runs") or [] if name in self.runs]

    @property
    def recipe(self) -> list[str]:
        """What was chosen for all runs, in words."""
        return lines_of(self.table.get("recipe"))

    def first_runs(self) -> list[tuple[str, RunFacts]]:
        """One run per model, of its best row: what pictures and examples are shown of."""
        found: dict[str, tuple[str, RunFacts]] = {}
        for row in self.rows:
            runs = [run for run in self.runs_of(row) if run.is_finished and row.get("kind") != "baseline"]
            if runs and (is_larger(row, self.rows) or row.get("model") not in found):
                found[str(row.get("model") or row["label"])] = (row["label"], runs[0])
        return list(found.values())


def lines_of(found: Any) -> list[str]:
    """A list of sentences, if it is one."""
    return list(map(str, found)) if isinstance(found, list) else []


def is_larger(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Whether no other row of the same model has seen more of the data."""
    mine = number(row.get("fraction")) or 1.0
    return all(
        (number(other.get("fraction")) or 1.0) <= mine for other in rows if other.get("model") == row.get("model")
    )


def groups_of(found: list[RunFacts | Comparison]) -> list[Group]:
    """Comparisons first, then the runs that are left, by task and data."""
    made = [_from_comparison(each) for each in found if isinstance(each, Comparison)]
    alike: dict[tuple[str, str], list[RunFacts]] = {}
    for run in found:
        if isinstance(run, RunFacts):
            data = run.facts.get("fingerprint") or run.config.get("source")
            alike.setdefault((run.task, str(data)), []).append(run)
    return made + [_from_runs(runs) for runs in alike.values()]


def _from_comparison(found: Comparison) -> Group:
    table = dict(found.table)
    title = f"{table.get('name') or found.path.name}: {table.get('task') or '?'} on {table.get('data') or '?'}"
    notes = [*map(str, table.get("notes") or []), *found.notes]
    if not table.get("finished", True):
        done = sum(number(row.get("score")) is not None and row.get("kind") != "baseline" for row in table["rows"])
        notes.insert(
            0, f"This comparison is not finished: {done} models have a score so far. Run the same command to resume it."
        )
    return Group(title, table, found.runs, [found.path], notes)


def _from_runs(runs: list[RunFacts]) -> Group:
    first = runs[0]
    names = _names(runs)
    rows = [_run_row(run, name) for name, run in names.items()] + _baseline_rows(runs)
    metrics = metrics_in(first.result, first.score_name)
    rows.sort(key=lambda row: (row["score"] is None, metrics[0].loss(row["score"] or 0.0)))
    scores = {row["label"]: row["score"] for row in rows if row["kind"] == "baseline" and row["score"] is not None}
    for row in rows:
        if row["kind"] != "baseline" and row["score"] is not None:
            row["beaten_by"] = [label for label, score in scores.items() if _reaches(metrics[0], score, row)]
    source = str(first.config.get("source") or "?")
    table = {
        "name": first.name, "task": first.task, "data": source, "score": first.score_name, "split": first.split,
        "metrics": [metric.to_json() for metric in metrics], "criterion": first.result.get("criterion"),
        "figures": _figure_names(runs), "rows": rows, "winner": None, "facts": first.facts, "finished": True,
        "versions": mapping(first.config.get("versions")), "threads": first.config.get("threads"),
    }  # fmt: skip
    told = disagreements({row["label"]: row["figures"] for row in rows}, metrics)
    table["verdict"] = " ".join([_verdict(table, len(runs)), *told])
    who = first.model if len(runs) == 1 else f"{len(runs)} runs"
    title = f"{who}: {first.task} on {source}"
    return Group(title, table, names, [run.path for run in runs])


def _names(runs: list[RunFacts]) -> dict[str, RunFacts]:
    """Each run by its model, or by its folder where two have the same model, or by its path."""
    for name in (lambda run: run.model, lambda run: run.name, lambda run: str(run.path)):
        named = {name(run): run for run in runs}
        if len(named) == len(runs):
            return named
    return {str(run.path): run for run in runs}


def _run_row(run: RunFacts, label: str) -> dict[str, Any]:
    return {
        "label": label, "kind": "model", "model": label, "fraction": 1.0, "runs": [label], "score": run.score,
        "figures": run.figures, "parameters": run.result.get("parameters"),
        "training_seconds": run.result.get("training_seconds"), "seconds": run.result.get("seconds"),
        "tokens_per_second": run.result.get("tokens_per_second"), "steps": run.result.get("steps"), "beaten_by": [],
        "failed": None, **mapping(run.result.get("cost")),
    }  # fmt: skip


def _baseline_rows(runs: list[RunFacts]) -> list[dict[str, Any]]:
    """Each baseline once: runs on the same data have the same."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for label, parts in mapping(run.result.get("baselines")).items():
            figures = mapping(mapping(parts).get(run.split))
            found.setdefault(label, {
                "label": label, "kind": "baseline", "model": label, "fraction": 1.0, "runs": [], "failed": None,
                "score": number(figures.get(run.score_name)), "figures": figures, "beaten_by": [],
            })  # fmt: skip
    return list(found.values())


def _figure_names(runs: list[RunFacts]) -> list[str]:
    """The figures that all rows may have, the score first; counts are no figures."""
    told = runs[0].result.get("figures")
    if isinstance(told, list) and all(isinstance(name, str) for name in told):
        return told
    usual = ("nats", "nats_after_first", "bits_per_character", "bits_per_byte", "perplexity", "accuracy")
    there = [name for name in runs[0].figures if name not in ("tokens", "unknown_share")]
    return sorted(there, key=lambda name: usual.index(name) if name in usual else len(usual))


def _reaches(metric: Metric, score: float, row: dict[str, Any]) -> bool:
    """Whether a baseline is at least as good as a model; one that was solved may be that very baseline."""
    theirs, own = metric.loss(score), metric.loss(row["score"])
    return theirs <= own if row.get("steps") else theirs < own


def _verdict(table: dict[str, Any], n_runs: int) -> str:
    models = [row for row in table["rows"] if row["kind"] == "model" and row["score"] is not None]
    if not models:
        return "No run has a score."
    best = models[0]
    unit = title_words(table["score"])
    said = f"{best['label']} reaches {score_words(best['score'])} {unit} on the {table['split']} data"
    if best["beaten_by"]:
        said += f"; it does not beat {listed(best['beaten_by'])}"
    elif any(row["kind"] == "baseline" for row in table["rows"]):
        said += " and beats every baseline"
    if n_runs > 1:
        said = (
            f"Of these {n_runs} runs, {said}. Whether the differences are significant is not known: single runs "
            "have no intervals"
        )
    elif best.get("training_seconds"):
        said += f", after {time_words(best['training_seconds'])} of training"
    return said + "."
