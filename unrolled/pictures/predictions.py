"""Pictures of what a model predicted beside what was true, from plain lists: tasks show them, reports draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unrolled.pictures.kinds import Heatmap, Plot, Series, Table, Tokens

WRITTEN = 12  # names with which a matrix still has its numbers written into it


def confusion(counts: list[list[float]], true: list[str], predicted: list[str], word: str, split: str) -> Heatmap:
    """How often each true class (row) was predicted as which (column)."""
    return Heatmap(
        title="Confusion matrix",
        alt=f"Number of examples of the {split} data by true {word} (rows) and predicted {word} (columns).",
        values=counts, rows=true, columns=predicted, x_label="predicted", y_label="true",
        write_values=len(true) <= WRITTEN,
    )  # fmt: skip


def per_class(found: Sequence[Mapping[str, object]], word: str, split: str) -> Table:
    """Precision, recall and F1 of each class."""
    return Table(
        title=f"Per {word}", alt=f"Precision, recall and F1 of each {word} in the {split} data.",
        columns=list(found[0]), rows=[list(each.values()) for each in found],
    )  # fmt: skip


def reliability(confidence: list[float], accuracy: list[float]) -> Plot:
    """The observed accuracy against the predicted probability, bin by bin."""
    return Plot(
        title="Reliability", alt="Observed accuracy against predicted probability.",
        x_label="predicted probability", y_label="observed accuracy",
        series=[Series(name="model", x=confidence, y=accuracy), _ideal([0.0, 1.0])],
    )  # fmt: skip


def against_true(predicted: Mapping[str, list[float]], true: Mapping[str, list[float]], split: str) -> dict[str, Plot]:
    """Predicted numbers and residuals, a cloud of points for each of the names."""
    every = [value for values in true.values() for value in values]
    residuals = {name: [p - t for p, t in zip(values, true[name])] for name, values in predicted.items()}
    return {
        "predicted": Plot(
            title="Predicted against true", alt=f"Predicted against true values of each example of the {split} data.",
            x_label="true", y_label="predicted",
            series=[*(_points(name, true[name], y) for name, y in predicted.items()), _ideal([min(every), max(every)])],
        ),
        "residuals": Plot(
            title="Residuals", alt=f"Residuals (predicted - true) against predicted values of the {split} data.",
            x_label="predicted", y_label="residual (predicted - true)",
            series=[_points(name, predicted[name], errors) for name, errors in residuals.items()],
        ),
    }  # fmt: skip


def series(rows: Mapping[str, list[list[float]]], dashed: str, split: str) -> Plot:
    """The first number of each step of some series, by name; one of them dashed."""
    lines = [
        Series(name=name, x=[float(t) for t in range(len(steps))], y=[step[0] for step in steps],
               style="dashed" if name == dashed else "line")
        for name, steps in rows.items()
    ]  # fmt: skip
    return Plot(
        title="Example series", alt=f"The first series of the {split} data: {', '.join(rows)}.", x_label="step",
        y_label="value", series=lines,
    )  # fmt: skip


def surprise(tokens: list[str], nats: list[float], split: str) -> Tokens:
    """A text coloured by the loss of each of its tokens."""
    return Tokens(
        title=f"Surprise of each token, first example of the {split} data",
        alt="Each token is coloured by its loss in nats; dark tokens were unexpected.", tokens=tokens, values=nats,
        hints=[f"{value:.2f} nats" for value in nats], low=0.0, unit="nats",
    )  # fmt: skip


def _points(name: str, x: list[float], y: list[float]) -> Series:
    return Series(name=name, x=x, y=y, style="points")


def _ideal(ends: list[float]) -> Series:
    return Series(name="ideal", x=ends, y=[*ends], style="dashed")
