"""The tables of forecasts on the results page."""

from __future__ import annotations

from typing import Any

from benchmarks.page import curves, picture, read, read_all, table
from unrolled.pictures.kinds import Plot


def report() -> str:
    found = [part for part in (_ett(), _small(), _large(), _speed()) if part]
    return "\n## Forecasting\n" + "".join(found) if found else ""


def _against(value: float, goal: float | None) -> str:
    if goal is None:
        return ""
    return f"{goal:g}" if value <= goal else f"{goal:g}, missed"


def _ett() -> str:
    """ETTh1 beside the published table."""
    found = read_all("forecast-ett-*")
    if not found:
        return ""
    found.sort(key=lambda each: (each["horizon"], each["figures"]["valid"]["mase"]))
    rows = []
    for result in found:
        figures, test = result["figures"], result["figures"]["test"]
        naive = result["baselines"]["seasonal naive"]["test"]["mse_scaled"]
        first = result is next(each for each in found if each["horizon"] == result["horizon"])
        rows.append([
            str(result["horizon"]), result["model"] + (" (selected)" if first else ""),
            f"{figures['valid']['mse_scaled']:.3f}", f"{test['mse_scaled']:.4f}",
            _against(test["mse_scaled"], result["goal"]), f"{naive:.3f}",
            ", ".join(f"{name} {value:.3f}" for name, value in result["published"].items()),
            f"{test['coverage_80']:.0%}", f"{figures['parameters']:,}", f"{result['processor_seconds']:.0f}",
        ])  # fmt: skip
    text = "\nETTh1: twelve months to train, four to validate, four to test, look-back 336, every window of all seven "
    text += "channels; mean squared errors of z-scores, lower is better. Selected: the best score (MASE) on validation "
    text += "data among the models of a horizon. Published: LTSF-Benchmark.md of the GitHub repository "
    text += "cure-lab/LTSF-Linear (Zeng et al. 2023). Seconds are those of one processor for training and evaluation "
    text += "together, baselines included.\n\n"
    titles = ["horizon", "model", "valid", "test", "goal", "seasonal naive", "published", "80 % interval", "parameters",
              "seconds"]  # fmt: skip
    text += table(titles, rows) + "\n"
    trained = {each["model"]: each for each in found if len(each["curve"]) > 2}
    if trained:
        text += picture("forecast-ett", Plot(
            title="ETTh1, horizon 96: validation MASE", series=curves(trained, "mase"), x_label="seconds",
            y_label="MASE", alt="Validation score of each trained model over training time.",
        ))  # fmt: skip
    return text


def _small() -> str:
    """The model that validation data selects, beside statsmodels."""
    found = read_all("forecast-small-*")
    if not found:
        return ""
    rows = []
    for result in found:
        plain = min(result["baselines"], key=result["baselines"].__getitem__)
        peer = min(result["statsmodels"], key=result["statsmodels"].__getitem__)
        ratio = result["mae"] / result["statsmodels"][peer]
        inside = result["coverage_80"]
        rows.append([
            result["set"], str(result["horizon"]), str(result["origins"]), result["model"], f"{result['mae']:.4g}",
            f"{plain} {result['baselines'][plain]:.4g}", f"{peer} {result['statsmodels'][peer]:.4g}",
            f"{ratio:.3f}" + ("" if ratio <= 1.05 else " missed"),
            f"{inside:.0%}" + ("" if 0.7 <= inside <= 0.9 else " missed"),
        ])  # fmt: skip
    text = "\nSmall series with default settings: the model that `unrolled compare` selects on validation data, on "
    text += "every origin of the test span; mean absolute errors. statsmodels: the best of exponential smoothing (nine "
    text += (
        "forms) and AutoReg (order by AIC) by its errors on the test span, fitted to the same training span. Goals: "
    )
    text += "at most 1.05 times its error, and 70 to 90 % of values in the 80 % interval.\n\n"
    titles = ["series", "horizon", "origins", "selected", "error", "naive", "statsmodels", "ratio", "80 % interval"]
    return text + table(titles, rows) + "\n"


def _large() -> str:
    found = read_all("forecast-large-*")
    if not found:
        return ""
    rows = [
        [each["what"], each["model"], f"{each['score']:.4f}", f"{each['seasonal naive']:.4f}", f"{each['seconds']:.0f}",
         f"{each['peak_megabytes']:.0f}", f"{each['base_megabytes']:.0f}"]
        for each in found
    ]  # fmt: skip
    text = (
        "\nMany series and many points. Memory is the largest anonymous memory of the process (RssAnon), of which the "
    )
    text += "last column is there after the imports; the score is MASE on test data.\n\n"
    titles = ["data", "model", "score", "seasonal naive", "processor seconds", "megabytes", "before"]
    return text + table(titles, rows) + "\n"


def _speed() -> str:
    found: Any = read("forecast-speed")
    if not found:
        return ""
    ratio = f"{found['ratio']:.2f}" + ("" if found["ratio"] >= found["goal"] else " missed")
    text = f"\nA training step of an LSTM of {found['units']} units on windows {found['windows']} of one channel of "
    text += f"ETTh1, one thread, beside RNNModel of darts {found['darts_version']}: darts' time over ours.\n\n"
    row = [f"{found['ours_ms']:.1f}", f"{found['darts_ms']:.1f}", ratio, f"{found['goal']:g}"]
    return text + table(["ours, ms", "darts, ms", "ratio", "goal"], [row]) + "\n"
