"""The section of docs/results.md on pre-training, from what benchmarks.pretraining kept."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from benchmarks.page import read, table

SHARES = {"0.01": "1 %", "0.1": "10 %", "1": "100 %"}
RUN = re.compile(r"(?P<start>.+)-(?P<share>0\.01|0\.1|1)-\d+")


def pre_training() -> str:
    """Masked tokens of Wikipedia, and accuracy by the share of the labels."""
    text = "".join([_masked(), *(_labels(name) for name in ("mr", "names18"))])
    head = "\n## Pre-training\n\nNothing was selected on test data ([pre-training](pre_training.md)).\n"
    return head + text if text else ""


def _masked() -> str:
    found = read("pretraining-enwiki")
    if not found:
        return ""
    kept = found["runs"][0]
    rows = [[name, *_figures(each["test"])] for name, each in kept["baselines"].items()]
    rows.append([f"bert, {kept['time']} on {kept['threads']} thread(s)", *_figures(kept["figures"]["test"])])
    points = [point for point in kept["curve"][1:] if "masked_accuracy" in point]
    curve = ", ".join(f"{point['seconds'] / 60:.0f}: {point['masked_accuracy']:.3f}" for point in points)
    size = f"{kept['figures']['parameters']:,} parameters, {kept['figures']['steps']:,} steps"
    return (
        f"\n### Masked tokens\n\n{found['protocol']}; {size}.\n\n"
        + table(["model", "masked accuracy", "nats"], rows)
        + f"\n\nMasked accuracy on validation data by minutes of training: {curve}\n"
    )


def _figures(test: Mapping[str, Any]) -> list[str]:
    return [f"{test['masked_accuracy']:.3f}", f"{test['nats']:.3f}"]


def _labels(name: str) -> str:
    """Accuracy of each start by the share of the labels: the mean of the seeds, and each."""
    found = read(f"pretraining-{name}")
    if not found:
        return ""
    seeds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    whole = []
    for run, test in found["runs"].items():
        if match := RUN.fullmatch(run):
            seeds[match["start"].replace("-", " ")][match["share"]].append(test["accuracy"])
    for row in found["rows"]:
        if row["label"] in ("logistic regression", "naive Bayes", "class frequencies"):
            whole.append([row["label"], "", "", f"{row['test']['accuracy']:.1%}"])
    rows = [[start, *(_of_seeds(by[share]) for share in SHARES)] for start, by in sorted(seeds.items())]
    pre, steps = found["pre_training"], found["settings"]["steps"]
    chosen = ""
    if rates := found.get("rates"):
        told = ", ".join(f"{rate:g}" for rate in sorted({*rates.values()}))
        chosen = (
            f"; the learning rate of each start and share is the one with the best accuracy on validation data ({told})"
        )
    reached = pre["figures"]["test"]["masked_accuracy"]
    beside = pre["baselines"]["unigram"]["test"]["masked_accuracy"]
    return (
        f"\n### Labels of {name}\n\n{found['protocol']}. Pre-trained for {pre['figures']['steps']:,} steps to a masked "
        f"accuracy of {reached:.3f} (unigram {beside:.3f}). Test accuracy by share of the labels after {steps} steps "
        f"each{chosen}: the mean of three seeds, and each. Models in closed form have all labels.\n\n"
        + table(["start", *SHARES.values()], [*rows, *whole])
        + "\n"
    )


def _of_seeds(values: list[float]) -> str:
    return f"{statistics.mean(values):.1%} ({', '.join(f'{100 * value:.1f}' for value in values)})" if values else ""
