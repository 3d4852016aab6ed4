"""The section of docs/results.md on bags, from what benchmarks.bags kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.page import read, table

NAMES = {"motifs": "1 % of 1,000", "rare": "0.1 % of 10,000"}


def bags() -> str:
    """Implanted motifs, musk1 and memory."""
    rows = [row for piece, name in NAMES.items() if (found := read(f"bags-{piece}")) for row in _rows(found, name)]
    text = ""
    if rows:
        text += (
            "Sequences with a motif in positive bags, 400 bags split 60/20/20, AUC and accuracy on test data; of "
            "several seeds the mean and each. The last column: of the sequences with the largest weights in new "
            "bags, as many as have the motif, the share that has it.\n\n"
        )
        text += table(["sequences with the motif", "pooling", "AUC", "accuracy", "found by weight"], rows) + "\n"
    if musk := read("bags-musk1"):
        own = [[label, f"{100 * value:.1f} %"] for label, value in musk["mean"].items()]
        own.append(["iterated-discrim APR (Dietterich et al. 1997)", "92.4 %"])
        text += (
            "\nmusk1, 92 molecules as bags of 2 to 40 vectors: accuracy, the mean of five 10-fold cross-validations "
            "with fixed settings; nothing is selected on the folds.\n\n"
        )
        text += table(["model", "accuracy"], own) + "\n"
    if large := read("bags-large"):
        text += f"\n{large['protocol']}: {large['peak_megabytes']:,} MB at most, "
        text += f"{large['processor_seconds']:,} processor seconds.\n"
    return f"\n## Bags\n\n{text}" if text else ""


def _rows(found: dict[str, Any], name: str) -> list[list[str]]:
    pooled: dict[str, list[dict[str, Any]]] = {}
    for run in found["runs"]:
        pooled.setdefault(run["settings"]["pooling"], []).append(run)
    rows = []
    for pooling, runs in pooled.items():
        told = [[run["figures"]["test"][metric] for run in runs] for metric in ("auc", "accuracy")]
        shown = [f"{np.mean(each):.3f} ({', '.join(f'{one:.3f}' for one in each)})" for each in told]
        rows.append([name, pooling, *shown, f"{np.mean([share for run in runs for share in run['top']]):.0%}"])
    for label, figures in found["runs"][0]["baselines"].items():
        rows.append([name, label, f"{figures['test']['auc']:.3f}", f"{figures['test']['accuracy']:.3f}", ""])
    return rows
