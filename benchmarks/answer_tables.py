"""The section of docs/results.md that shows what `python -m benchmarks.answers` left in benchmarks/results/."""

from __future__ import annotations

from typing import Any

from benchmarks.page import curves, picture, read, table
from unrolled.pictures.kinds import Plot

MNIST = {  # piece: (what, goal, published by Bai, Kolter & Koltun 2018, table 1)
    "mnist-tcn": ("sequential", 0.975, 0.990),
    "mnist-gru": ("sequential", 0.93, 0.962),
    "mnist-lstm": ("sequential", None, 0.872),
    "mnist-permuted-tcn": ("permuted", 0.94, 0.972),
}
UCR = {"GunPoint": 0.99, "ItalyPowerDemand": 0.96, "ArrowHead": 0.83, "BasicMotions": 0.97}
ADDING = {"gru": 5.3e-5, "tcn": 5.8e-5}  # Bai, Kolter & Koltun (2018), table 1


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def judged(value: float, goal: float | None, smaller: bool = False) -> str:
    """Whether a goal was met, in a word."""
    if goal is None:
        return ""
    return "met" if (value <= goal if smaller else value >= goal) else "missed"


def cost(run: dict[str, Any]) -> list[str]:
    figures, threads = run["figures"], run["threads"]
    seconds = f"{figures['seconds']:.0f} s on {threads} thread{'s' * (threads > 1)}"
    return [f"{figures['parameters']:,}", f"{figures['steps']:,}", seconds]


COST = ["parameters", "steps", "time"]


def digits_of_mnist() -> str:
    """784 pixels one after the other, with the curves."""
    found = {piece: read(f"answers-{piece}") for piece in MNIST}
    runs = {piece: result["runs"][0] for piece, result in found.items() if result}
    if not runs:
        return ""
    rows = []
    for piece, run in runs.items():
        what, goal, published = MNIST[piece]
        accuracy = run["figures"]["test"]["accuracy"]
        rows.append([run["model"], what, f"{accuracy:.2%}", share(goal), judged(accuracy, goal), share(published),
                     *cost(run)])  # fmt: skip
    titles = ["model", "order of the pixels", "test accuracy", "goal", "goal met", "published", *COST]
    lines = curves({piece.removeprefix("mnist-"): run for piece, run in runs.items()}, "error")
    text = "\n### Sequential MNIST\n\n784 steps of one pixel. Published: Bai, Kolter & Koltun (2018), after long "
    text += "training on a GPU.\n\n" + table(titles, rows) + "\n"
    return text + picture("mnist", Plot(
        title="Sequential MNIST", series=lines, x_label="seconds", y_label="error on 1,500 validation images",
        log_y=True, alt="Validation error of each model over training time.",
    ))  # fmt: skip


def sentences() -> str:
    """MR by ten folds."""
    found = read("answers-mr")
    if not found:
        return ""
    goals = {"dan": 0.773, "bigru": 0.765, "picked": 0.787}
    rows = [
        ["selected on validation data" if name == "picked" else name, share(value), share(goals.get(name)),
         judged(value, goals.get(name))]
        for name, value in found["accuracy"].items()
    ]  # fmt: skip
    text = f"\n### {found['protocol']}\n\nMean accuracy, no pre-trained vectors; in each fold the model with "
    text += (
        "the smallest validation error is selected. Published: naive Bayes 78.7 %, deep averaging 77.3 % (Iyyer et al. "
    )
    text += "2015).\n\n"
    return text + table(["model", "accuracy", "goal", "goal met"], rows) + "\n"


def names() -> str:
    """Languages of names, with and without class weights."""
    found = read("answers-names18")
    if not found:
        return ""
    rows = []
    for run in found["runs"]:
        test, weighted = run["figures"]["test"], bool(run["settings"]["class_weights"])
        met = judged(test["mean_recall"], 0.58) if weighted else judged(test["accuracy"], 0.84)
        asked = "mean recall 58 %" if weighted else "accuracy 84 %"
        rows.append([run["model"] + (" with class weights" if weighted else ""), share(test["accuracy"]),
                     share(test["mean_recall"]), asked, met, *cost(run)])  # fmt: skip
    for name, parts in found["runs"][0]["baselines"].items():
        rows.append([name, share(parts["test"]["accuracy"]), share(parts["test"]["mean_recall"])] + [""] * 5)
    text = f"\n### {found['protocol']}\n\n"
    return text + table(["model", "accuracy", "mean recall", "goal", "goal met", *COST], rows) + "\n"


def tweets() -> str:
    """Area under the curve by folds and by time."""
    found = read("answers-tweets")
    if not found:
        return ""
    rows = [
        [name, *(f"{found['auc'][way][name]:.3f}" for way in found["auc"])]
        for name in next(iter(found["auc"].values()))
    ]
    text = f"\n### {found['protocol']}\n\nArea under the ROC curve.\n\n"
    return text + table(["model", *found["auc"]], rows) + "\n"


def series() -> str:
    """The UCR sets by one recipe."""
    found = read("answers-ucr")
    if not found:
        return ""
    rows = [
        [name, one["picked"], f"{one['accuracy']:.3f}", f"{UCR[name]:.2f}", judged(one["accuracy"], UCR[name]),
         ", ".join(f"{model} {error:.3f}" for model, error in one["validation_errors"].items())]
        for name, one in found["sets"].items()
    ]  # fmt: skip
    text = (
        f"\n### {found['protocol']}\n\nOne recipe for all sets, nothing tuned; the model is selected by its error in "
    )
    text += "cross-validation on the training data.\n\n"
    return (
        text
        + table(["set", "selected", "test accuracy", "goal", "goal met", "errors in cross-validation"], rows)
        + "\n"
    )


def speech() -> str:
    """Spoken digits."""
    found = read("answers-fsdd")
    if not found:
        return ""
    rows = [
        [run["split"], run["model"], share(run["figures"]["test"]["accuracy"]),
         "97 %" if run["split"] == "official" else "", *cost(run)]
        for run in found["runs"]
    ]  # fmt: skip
    text = f"\n### {found['protocol']}\n\n"
    return text + table(["test data", "model", "accuracy", "goal", *COST], rows) + "\n"


def tags() -> str:
    """Parts of speech."""
    found = read("answers-masc")
    if not found:
        return ""
    rows = []
    for run in found["runs"]:
        accuracy = run["figures"]["test"]["accuracy"]
        rows.append([run["model"], f"{accuracy:.2%}", "95 %", judged(accuracy, 0.95), *cost(run)])
    for name, parts in found["runs"][0]["baselines"].items():
        rows.append([name, f"{parts['test']['accuracy']:.2%}"] + [""] * 5)
    return f"\n### {found['protocol']}\n\n" + table(["model", "token accuracy", "goal", "goal met", *COST], rows) + "\n"


def numbers() -> str:
    """The adding problem."""
    found = read("answers-adding")
    if not found:
        return ""
    rows = []
    for run in found["runs"]:
        mse = run["figures"]["test"]["mse"]
        rows.append([run["model"], f"{mse:.1e}", "1e-3", judged(mse, 1e-3, smaller=True),
                     f"{ADDING[run['model']]:.1e}", *cost(run)])  # fmt: skip
    text = f"\n### {found['protocol']}\n\nPublished: Bai, Kolter & Koltun (2018).\n\n"
    return text + table(["model", "MSE", "goal", "goal met", "published", *COST], rows) + "\n"


def clean() -> str:
    """Sums of sinusoids in noise."""
    found = read("answers-sinusoids")
    if not found:
        return ""
    best = max(run["figures"]["test"]["snr_gain"] for run in found["runs"])
    rows = [
        [run["model"] + (f", {delay} steps later" if (delay := run["settings"].get("delay")) else ""),
         f"{run['figures']['test']['snr_gain']:.2f} dB",
         f"{best - run['figures']['test']['snr_gain']:.2f} dB", *cost(run)]
        for run in found["runs"]
    ]  # fmt: skip
    words = (
        "Gain in signal-to-noise ratio. The goals are 8 dB, and at most 2 dB less for a causal model (`gru`, `tcn`), "
        "which can run live, than for one that reads the whole series. The past alone is half of the context of a "
        "step; a model that predicts some steps later (`delay`) has more context, and can run live too."
    )
    text = f"\n### {found['protocol']}\n\n{words}\n\n"
    return text + table(["model", "gain", "difference to the best", *COST], rows) + "\n"


def report() -> str:
    """All tables that were measured."""
    parts = (sentences, names, tweets, digits_of_mnist, series, speech, tags, clean, numbers)
    text = "".join(part() for part in parts)
    return (
        "\n## Classification, regression, tagging and denoising\n\nNothing was selected on test data.\n" + text
        if text
        else ""
    )
