"""Answers to sequences: `python -m benchmarks.answers [PIECE ...] [--time 5m]`, each piece on its own.

Public data is found below UNROLLED_DATA (names18, mr-polarity, mnist, ucr, fsdd, masc-pos, tweets); digits, adding and
sinusoids need none. Every piece trains through the public interface, picks nothing by test data, and writes figures,
baselines and learning curves to benchmarks/results/answers-PIECE.json.
"""

from __future__ import annotations

import csv
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pieces import in_two, place, plain, run_pieces, trained

FOLDS = 10
UCR = ("GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions")
UCR_FOLDS = 5
TWEET_FOLDS = 5
MR_FOLDS = 4  # inside what is not for test
WAIT = 16  # steps that a live model may wait for what follows
LEFT_OUT = "2m"  # the time of each speaker left out
VIRAL = 1502  # retweets, the 75th percentile


# ---- built-in data


def digits(time: str = "1m") -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {"gru": {}, "bigru": {}, "tcn": {}}
    return plain("builtin:digits", "classify", models.items(), time, "8 x 8 digits, rows from top to bottom, 80/10/10")


def adding(time: str = "10m") -> dict[str, Any]:
    """MSE of at most 1e-3 is asked for; published: GRU 5.3e-5, TCN 5.8e-5 (Bai et al. 2018)."""
    models: dict[str, dict[str, Any]] = {
        "gru": {"d_state": 64, "memory": 600, "batch_size": 32, "lr": 2e-3, "input": "one-hot"},
        "tcn": {"widths": [24] * 8, "kernel": 7, "weight_norm": True, "batch_size": 32, "lr": 4e-3, "input": "one-hot"},
    }
    data = "builtin:adding,length=600,examples=20000"
    return plain(data, "regress", models.items(), time, "adding problem, T = 600; the mean has an MSE of about 0.17")


def sinusoids(time: str = "5m") -> dict[str, Any]:
    """A gain of 8 dB is asked for, and live within 2 dB of models that look ahead."""
    recurrent = {"d_state": 128, "batch_size": 16, "lr": 4e-3}
    convolved = {"widths": [48] * 6, "batch_size": 16}
    models = [("bigru", recurrent), *((model, {**own, "delay": delay}) for delay in (0, WAIT)
                                      for model, own in (("gru", recurrent), ("tcn", convolved)))]  # fmt: skip
    data = "builtin:sinusoids,length=500"
    return plain(data, "denoise", models, time, "1 to 4 sines in noise at 0 dB, 500 steps, 80/10/10")


# ---- texts


def names18(time: str = "5m") -> dict[str, Any]:
    """N-gram logistic regression: accuracy 83.0 %, mean recall 43.8 %."""
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        rows = {  # distinct pairs
            (line.strip(), file.stem): {"name": line.strip(), "language": file.stem}
            for file in sorted(place("names18").glob("[A-Z]*.txt"))
            if file.stem != "README"
            for line in file.read_text(encoding="utf-8").splitlines()
            if line.strip()
        }
        for weights in (0.0, 1.0):
            settings = {"column": "name", "target": "language", "split": "70/10/20", "class_weights": weights,
                        "tokens": "char", "ends.dropout": 0.3}  # fmt: skip
            runs.append(trained(list(rows.values()), "classify", "bilstm", time, settings, Path(folder))[1])
    return {"protocol": "names18, distinct pairs, 70/10/20 by class", "runs": runs}


MR_SETTINGS: dict[str, Any] = {
    "models": "dan,bigru", "folds": MR_FOLDS, "steps": 450, "tokens": "word", "vocabulary": 15_000, "readout": "max",
    "label_smoothing": 0.1, "ends.dropout": 0.5, "batch_size": 64, "bigru.d_state": 64, "memoryless.d_state": 32,
    "lr": 1.5e-3, "evaluate_every": 90, "dan.steps": 900,  # still the quickest
}  # fmt: skip


def mr() -> dict[str, Any]:
    """Ten folds for test; in the rest of each `compare --folds` picks a model, and those of its folds answer together.

    Published: naive Bayes 78.7 %, deep averaging without pre-trained vectors 77.3 %.
    """
    return of_folds([mr_fold(fold) for fold in range(FOLDS)])


def mr_fold(fold: int) -> dict[str, Any]:
    import unrolled

    rows = [
        {"text": line, "label": kind}
        for kind in ("pos", "neg")
        for line in place(f"mr-polarity/rt-polarity.{kind}").read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    fold_of = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    data = {
        "train": [row for row, f in zip(rows, fold_of) if f != fold],
        "test": [row for row, f in zip(rows, fold_of) if f == fold],
    }
    with tempfile.TemporaryDirectory() as folder:
        found = unrolled.compare(data, "classify", Path(folder) / "comparison", MR_SETTINGS)
        ranked = [row for row in found.rows if row["score"] is not None]
    result = {
        "picked": ranked[0]["label"],
        "accuracy": {row["label"]: row["figures"]["accuracy"] for row in ranked},
        "valid": {row["label"]: row["valid"] for row in ranked},
    }
    print(fold, result, flush=True)
    return result


def of_folds(folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean figures, and those of the model that validation picks in each fold."""
    figures = {name: float(np.mean([fold["accuracy"][name] for fold in folds])) for name in folds[0]["accuracy"]}
    figures["picked"] = float(np.mean([fold["accuracy"][fold["picked"]] for fold in folds]))
    return {"protocol": f"MR sentences, {FOLDS} folds", "settings": MR_SETTINGS, "accuracy": figures, "folds": folds}


TEXTS: dict[str, dict[str, Any]] = {
    "dan": {"steps": 1200},
    "bigru": {"steps": 600, "d_state": 64, "readout": "max", "label_smoothing": 0.1, "ends.dropout": 0.6},
}


def in_parts(
    rows: list[dict[str, Any]], test: np.ndarray, valid: np.ndarray, models: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Texts split as said: the figures of models and baselines on test data, and which validation picks."""
    data = {
        part: [row for row, chosen in zip(rows, mask) if chosen]
        for part, mask in {"train": ~(test | valid), "valid": valid, "test": test}.items()
    }
    settings = {"tokens": "word", "vocabulary": 15_000, "ends.dropout": 0.5, "batch_size": 64, "lr": 1e-3,
                "evaluate_every": 75}  # fmt: skip
    figures, runs, solved = {}, [], None
    with tempfile.TemporaryDirectory() as folder:
        for model, own in models.items():
            run, kept = trained(data, "classify", model, "", {**settings, **own}, Path(folder), solved)
            solved = kept["baselines"]
            figures[model] = run.result
            runs.append({key: kept[key] for key in ("model", "settings", "threads", "curve", "figures")})
    figures |= solved or {}
    return {
        "accuracy": {name: each["test"]["accuracy"] for name, each in figures.items()},
        "auc": {name: each["test"]["auc"] for name, each in figures.items()},
        "picked": min(figures, key=lambda name: figures[name]["valid"]["error"]),
        "runs": runs,
    }


def tweets() -> dict[str, Any]:
    """Five folds; and the oldest four fifths to train, the rest to test. Logistic regression: AUC 0.834, 0.682."""
    with place("tweets/BarackObama.csv").open(encoding="utf-8", errors="replace", newline="") as file:
        rows = [
            {"text": row["text"], "label": "viral" if int(row["retweets"]) >= VIRAL else "not"}
            for row in csv.DictReader(file)
            if row["text"].strip()
        ][::-1]
    n = np.arange(len(rows))
    fold_of = np.random.default_rng(0).permutation(len(rows)) % TWEET_FOLDS
    tenth = np.random.default_rng(1).random(len(rows)) < 0.1
    folds = [
        in_parts(rows, fold_of == fold, (fold_of != fold) & tenth, TEXTS) | {"fold": fold}
        for fold in range(TWEET_FOLDS)
    ]
    by_time = in_parts(rows, n >= len(rows) * 4 // 5, (n >= len(rows) * 7 // 10) & (n < len(rows) * 4 // 5), TEXTS)
    auc = {
        f"{TWEET_FOLDS} folds": {name: float(np.mean([f["auc"][name] for f in folds])) for name in folds[0]["auc"]},
        "chronological": by_time["auc"],
    }
    return {"protocol": "Tweets, viral or not", "auc": auc, "folds": folds, "chronological": by_time}


def masc(time: str = "30m") -> dict[str, Any]:
    """By document: of the sorted names every tenth is test data, every tenth after it validation."""
    from unrolled.data.reading import Reading
    from unrolled.data.sources.open_labelled import open_labelled

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(place("masc-pos/masc_tagged.zip")) as file:
            file.extractall(folder)
        (Path(folder) / "masc_tagged" / "categories.txt").unlink(missing_ok=True)
        found = list(open_labelled(Path(folder) / "masc_tagged", Reading(group="file", untagged="join"), "tags"))
        number = {name: i for i, name in enumerate(sorted({str(example.group) for example in found}))}
        parts: dict[str, list[dict[str, Any]]] = {"train": [], "valid": [], "test": []}
        for example in found:
            part = {0: "test", 1: "valid"}.get(number[str(example.group)] % 10, "train")
            parts[part].append({"words": example.input, "tags": example.answer})
        settings = {"ends.dropout": 0.4, "batch_size": 32, "column": "words", "target": "tags", "evaluate_every": 500,
                    "evaluate_tokens": 20_000}  # fmt: skip
        kept = trained(parts, "tag", "bilstm", time, settings, Path(folder))[1]
    return {"protocol": f"MASC tags, {len(number)} documents, every tenth for test", "runs": [kept]}


# ---- images, sound, series


def mnist(model: str, permutation: int | None = None) -> Callable[[str], dict[str, Any]]:
    """784 steps of one pixel; published after long training: TCN 99.0, GRU 96.2, LSTM 87.2; permuted TCN 97.2."""
    sizes: dict[str, dict[str, Any]] = {
        "tcn": {"widths": [25] * 8, "kernel": 7, "lr": 2e-3},
        "gru": {"d_state": 150, "memory": 784, "lr": 3e-3},
        "lstm": {"d_state": 130, "memory": 784, "lr": 3e-3},
    }

    def piece(time: str = "40m") -> dict[str, Any]:
        settings: dict[str, Any] = {"order": "pixels", "readout": "last", "input": "one-hot", **sizes[model]}
        settings |= {"evaluate_every": 500, "evaluate_tokens": 1500 * 784}
        if permutation is not None:
            settings["permutation"] = permutation
        words = "sequential MNIST, 784 steps" + ("" if permutation is None else ", one random order of the pixels")
        return plain(place("mnist"), "classify", [(model, settings)], time, words)

    return piece


def fsdd(time: str = "5m") -> dict[str, Any]:
    """Takes 0 to 4 are test data, as published; and each speaker once as test data. Logistic regression: 93.7, 67.8."""
    with np.load(place("fsdd/fsdd_idx0-19.npz")) as file:
        arrays = {key: file[key] for key in file.files}
    clips = np.split(arrays["audio"].astype(np.float32) / 2**15, arrays["offsets"][1:-1])
    columns = {"x": clips, "y": arrays["digit"].astype(str)}
    settings = {"ends.dropout": 0.3, "split": "80/15/5"}
    splits = {"official": arrays["index"] < 5}
    splits |= {f"without {name}": arrays["speaker"] == name for name in np.unique(arrays["speaker"])}
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for name, is_test in splits.items():
            budget = time if name == "official" else LEFT_OUT
            data = in_two(columns, is_test) | {"rate": int(arrays["rate"])}
            kept = trained(data, "classify", "bigru", budget, settings, Path(folder))[1]
            runs.append(kept | {"split": name})
    return {"protocol": "spoken digits, own log-mel spectra, official split and each speaker left out", "runs": runs}


def ucr(steps: int = 400) -> dict[str, Any]:
    """One recipe for all sets: `unrolled compare SET --folds 5` selects by cross-validation on the training data."""
    import unrolled

    settings = {"models": "tcn,bigru", "folds": UCR_FOLDS, "steps": steps, "batch_size": 8, "lr": 2e-3,
                "ends.dropout": 0.2, "evaluate_every": 25, "jobs": 1}  # fmt: skip
    sets = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in UCR:
            found = unrolled.compare(place("ucr") / name, "classify", Path(folder) / name, settings)
            rows = [row for row in found.rows if row["score"] is not None]
            sets[name] = {
                "picked": rows[0]["label"],
                "accuracy": rows[0]["figures"]["accuracy"],
                "validation_errors": {row["label"]: row["valid"] for row in rows},
                "own_best_errors": {row["label"]: found.run(row["runs"][0]).result["valid"]["error"] for row in rows},
                "accuracies": {row["label"]: row["figures"]["accuracy"] for row in rows},
                "verdict": found.table["verdict"],
            }
    return {"protocol": f"UCR sets, {UCR_FOLDS} folds of the training data", "settings": settings, "sets": sets}


PIECES: dict[str, Callable[..., dict[str, Any]]] = {
    "digits": digits, "adding": adding, "sinusoids": sinusoids, "names18": names18, "mr": mr, "tweets": tweets,
    "masc": masc, "mnist-tcn": mnist("tcn"), "mnist-gru": mnist("gru"), "mnist-lstm": mnist("lstm"),
    "mnist-permuted-tcn": mnist("tcn", 0), "fsdd": fsdd, "ucr": ucr,
}  # fmt: skip


if __name__ == "__main__":
    run_pieces(PIECES, "answers", __doc__)
