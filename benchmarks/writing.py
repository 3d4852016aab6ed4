"""Sequence in, sequence out: `python -m benchmarks.writing [PIECE ...] [--time 30m]`, each piece on its own.

Public data is found below UNROLLED_DATA (multi30k, emoji-captions, fsdd, pendigits); dates, lengths and shapes need
none. Every piece trains through the public interface, picks nothing by test data, and writes figures and learning
curves to benchmarks/results/writing-PIECE.json.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pieces import Pieces, in_two, place, plain, run_pieces, trained

BINS = (1, 6, 11, 16, 21, 26, 31, 41)  # lengths of sources, each bin up to the next
LONGEST = 40


def once(data: Any, task: str, model: str, time: str, settings: Mapping[str, Any], protocol: str) -> dict[str, Any]:
    """One run, with some of what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        run, kept = trained(data, task, model, time, settings, Path(folder))
        samples = run.directory.read_lines("predictions.jsonl")[:8]
        return {"protocol": protocol, **kept, "samples": samples}


# ---- translation


def multi30k(model: str, own: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    """German to English, small letters, test_2016_flickr, greedy."""

    def piece(time: str = "30m") -> dict[str, Any]:
        settings = {"source_column": "de", "target_column": "en", "test_set": "test_2016_flickr", "lower": True,
                    "tokens": "bpe", "vocabulary": 4000, "shared": True, "evaluate_every": 500,
                    "evaluate_tokens": 8_000, **own}  # fmt: skip
        words = "Multi30k, German to English, lower case, joint BPE of 4,000; test_2016_flickr, greedy"
        return once(place("multi30k"), "translate", model, time, settings, words)

    return piece


RECURRENT: dict[str, Any] = {"d_state": 256, "d_embedding": 256, "ends.dropout": 0.2, "batch_tokens": 1200, "lr": 1e-3}
BLOCKS: dict[str, Any] = {"d_embedding": 256, "d_ff": 512, "model.dropout": 0.1, "ends.dropout": 0.1,
                          "batch_tokens": 1500, "lr": 1e-3, "label_smoothing": 0.1}  # fmt: skip


def dates(time: str = "3m") -> dict[str, Any]:
    """Exact match of 99.5 % is asked for, on new dates and on new pairs of language and style."""
    return once("builtin:dates", "translate", "seq2seq", time, {"d_state": 192, "lr": 3e-3}, "dates to ISO")


def lengths(time: str = "5m") -> dict[str, Any]:
    """Words of 1 to 40 letters backwards: what is right by length, with the source as one vector and attended to."""
    import unrolled
    from unrolled.training.progress import Lines

    made, runs = f"builtin:reversal,length={LONGEST},examples=40000", {}
    with tempfile.TemporaryDirectory() as folder:
        for context in ("start", "every-step", "attention"):
            settings = {"context": context, "d_state": 192, "lr": 3e-3, "time": time}
            run = unrolled.train(
                made, task="translate", model="seq2seq", out=Path(folder) / context, settings=settings, progress=Lines()
            )
            lines = run.directory.read_lines("predictions.jsonl")
            runs[context] = {
                "figures": run.result["test"], "parameters": run.result["parameters"], "by_length": by_length(lines),
                "threads": run.config.threads, "steps": run.result["steps"],
            }  # fmt: skip
    return {"protocol": f"words of 1 to {LONGEST} letters, reversed", "time": time, "runs": runs}


def by_length(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The share of letters that are right and of words that are, by the length of the source."""
    bins = []
    for low, high in pairwise(BINS):
        some = [line for line in lines if low <= len(line["source"]) < high]
        if some:
            letters = [
                np.mean(
                    [a == b for a, b in zip(line["target"].ljust(99), line["prediction"].ljust(99))][
                        : len(line["target"])
                    ]
                )
                for line in some
            ]
            words = [line["target"] == line["prediction"] for line in some]
            bins.append({"from": low, "to": high - 1, "n": len(some), "letters": float(np.mean(letters)),
                         "words": float(np.mean(words))})  # fmt: skip
    return bins


# ---- images, sound, strokes

CAPTIONS: dict[str, Any] = {"tokens": "word", "encoder": "cnn", "decoder": "gru", "decoder.d_state": 128,
                            "target_dropout": 0.2, "lr": 3e-3}  # fmt: skip


def shapes(held_out: str, words: str) -> Callable[..., dict[str, Any]]:
    """Captions that are all right: 95 % are asked for, of pairs of shapes never seen together."""

    def piece(time: str = "5m") -> dict[str, Any]:
        data = f"builtin:shapes,held_out={held_out}"
        return once(data, "caption", "encdec", time, CAPTIONS, f"coloured shapes, held-out pairs of {words}")

    return piece


def emoji(time: str = "10m") -> dict[str, Any]:
    """Training captions are to be memorised."""
    settings = {**CAPTIONS, "target_dropout": 0.0, "vocabulary": 4000, "evaluate_every": 100_000}  # the last weights
    with tempfile.TemporaryDirectory() as folder:
        run, kept = trained(place("emoji-captions"), "caption", "encdec", time, settings, Path(folder))
        run.task.prepare(place("emoji-captions"))
        memorised = run.task.evaluate(run.model, "train")["exact_match"]
        samples = run.directory.read_lines("predictions.jsonl")[:8]
    return {"protocol": "emoji and their English names", **kept, "memorised": memorised, "samples": samples}


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
HEARD: dict[str, dict[str, Any]] = {  # attention writes letter by letter, CTC answers at every frame
    "seq2seq": {"context": "attention", "d_state": 96},
    "bigru": {"objective": "ctc", "d_state": 96},
}


def recognised(data: dict[str, Any], time: str, protocol: str) -> dict[str, Any]:
    """The letters of digit words by attention and by CTC."""
    models = {name: {"tokens": "char", "ends.dropout": 0.2, **own} for name, own in HEARD.items()}
    return plain(data, "recognise", models.items(), time, protocol)


def spoken(time: str = "3m") -> dict[str, Any]:
    """Takes 0 to 4 are test data, as published."""
    with np.load(place("fsdd/fsdd_idx0-19.npz")) as file:
        clips = np.split(file["audio"].astype(np.float32) / 2**15, file["offsets"][1:-1])
        words = [DIGITS[digit] for digit in file["digit"]]
        data = in_two({"audio": clips, "text": words}, file["index"] < 5) | {"rate": int(file["rate"])}
    return recognised(data, time, "spoken digits as words, letter by letter")


def pen(time: str = "3m") -> dict[str, Any]:
    """The last 3,498 rows are those of other writers, as published."""
    rows = np.loadtxt(place("pendigits/pendigits.csv"), delimiter=",")
    points = list(rows[:, :16].reshape(-1, 8, 2).astype(np.float32))
    words = [DIGITS[int(digit)] for digit in rows[:, 16]]
    data = in_two({"points": points, "text": words}, np.arange(len(rows)) >= 7494)
    return recognised(data, time, "digits of a pen as words, letter by letter")


PIECES: Pieces = {
    "multi30k-start": multi30k("seq2seq", {**RECURRENT, "context": "start"}),
    "multi30k-every-step": multi30k("seq2seq", {**RECURRENT, "context": "every-step"}),
    "multi30k-attention": multi30k("seq2seq", {**RECURRENT, "context": "attention", "score": "general"}),
    "multi30k-transformer": multi30k("encdec-transformer", BLOCKS),
    "dates": dates, "lengths": lengths, "shapes": shapes("together", "shapes"),
    "shapes-bound": shapes("bound", "a colour and a shape"), "emoji": emoji,
    "spoken": spoken, "pen": pen,
}  # fmt: skip


if __name__ == "__main__":
    run_pieces(PIECES, "writing", __doc__)
