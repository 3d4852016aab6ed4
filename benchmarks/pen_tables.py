"""The section of docs/results.md on handwriting, from what benchmarks.pen kept."""

from __future__ import annotations

from typing import Any

from benchmarks.answer_tables import COST, cost, judged, share
from benchmarks.page import curves, picture, read, table
from unrolled.pictures.kinds import Plot

GOAL_READ, GOAL_MONOTONE = 0.8, 0.9


def report() -> str:
    """All tables that were measured."""
    text = omniglot() + writing()
    return f"\n## Handwriting\n\nNothing was selected on test data.\n{text}" if text else ""


def omniglot() -> str:
    """Nats per point beside the mixtures, and a sheet of drawings."""
    found = read("pen-omniglot")
    if not found:
        return ""
    runs = {run["model"]: run for run in found["runs"]}
    first = found["runs"][0]
    rows = [[label, *_nats(parts["test"]), "", "", ""] for label, parts in first["baselines"].items()]
    rows += [[model, *_nats(run["figures"]["test"]), *cost(run)] for model, run in runs.items()]
    titles = ["model", "nats/point", "of the move", "of the pen", *COST]
    asked = first["settings"]
    text = f"\n### {found['protocol']}\n\n{asked['steps']:,} steps of {asked['batch_size']} drawings for every model, "
    text += "with about as many parameters; nats per point on test drawings. Moves are in units of their root mean "
    text += "square, so the figures may be negative.\n\n"
    text += table(titles, rows) + "\n"
    text += picture("pen-curves", Plot(
        title="Omniglot strokes", series=curves(runs, "nats", first=0), x_label="seconds",
        y_label="nats/point, validation", alt="Validation loss of each model over training time.",
    ))  # fmt: skip
    text += f"\nDrawings of `{found['sheet']}`, the best on validation data, by `generate -n 24`:\n"
    return text + "\n![24 drawings of a model; colours go from the first point to the last](images/pen-omniglot.svg)\n"


def _nats(parts: dict[str, Any]) -> list[str]:
    return [f"{parts[name]:.3f}" for name in ("nats", "nats_move", "nats_pen")]


def writing() -> str:
    """What is read of words that were written."""
    found = read("pen-writing")
    if not found:
        return ""
    rows = [
        ["characters read", share(found["read"]), share(GOAL_READ), judged(found["read"], GOAL_READ)],
        ["characters read in the data itself", share(found["read_data"]), "", ""],
        ["alignments that are monotone", share(found["monotone"]), share(GOAL_MONOTONE),
         judged(found["monotone"], GOAL_MONOTONE)],
        ["drawings that end by themselves", share(found["finished"]), "", ""],
    ]  # fmt: skip
    steps, threads = found["figures"]["steps"], found["threads"]
    text = f"\n### Writing a text: {found['protocol']}\n\n`{found['model']}` after {found['time']} of training on "
    text += f"{threads} thread ({steps:,} steps). {found['words']} words that are not in the training "
    text += f"data are drawn once each with `--bias {found['bias']:g}`. A word is read by the nearest templates of the "
    text += "font's letters, without knowledge of the word. An alignment is monotone if the character with the largest "
    text += "weight never goes back on its way from the first to the last one.\n\n"
    text += table(["metric", "value", "goal", "goal met"], rows) + "\n"
    return text + "\n![12 words; colours go from the first point to the last](images/pen-words.svg)\n"
