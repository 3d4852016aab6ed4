"""Small data for every task, in memory: a line a form of data, (task, data, settings)."""

from __future__ import annotations

from typing import Any

import numpy as np

QUICK = {"steps": 4, "evaluate_every": 2, "evaluate_tokens": 40, "batch_size": 3, "length": 5, "warmup": 1,
         "lr": 0.01, "d_embedding": 4, "ends.dropout": 0.2, "threads": 1, "split": "60/20/20"}  # fmt: skip
WORDS = ["tick", "state", "layer", "chunk", "cell", "gate", "tack", "stale", "later", "call"]
LINES = [f"{WORDS[i % 10]} {WORDS[(i * 3 + i // 10) % 10]}" for i in range(60)]
SERIES = np.random.default_rng(0).normal(size=(40, 7, 2)).astype(np.float32)  # [n, T, D]
HOURS = (np.sin(np.arange(60) * 0.8) + np.random.default_rng(2).normal(size=60) * 0.1).round(4).tolist()  # [T]
ROLLS = [np.eye(6, dtype=np.uint8)[(np.arange(5 + i % 4) + i) % 6] for i in range(24)]
PICTURES = np.random.default_rng(1).integers(0, 256, (30, 6, 6, 3), dtype=np.uint8)
STROKES = [{"strokes": [SERIES[i, : 4 + i % 4].tolist()], "text": WORDS[i % 10][:2]} for i in range(40)]
PEN = [
    {"strokes": [SERIES[i, : 2 + i % 3].round(3).tolist(), SERIES[i, 3:6].round(3).tolist()], "text": WORDS[i % 10][:2]}
    for i in range(40)
]

TONES = [np.sin(np.arange(30 + i) * (0.4 + i % 2) + i) / 2 for i in range(30)]  # [T]

DATA: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "a stream": ("next-token", [" ".join(LINES)], {"examples": "stream"}),
    "a stream with longer gradients": ("next-token", [" ".join(LINES)], {"examples": "stream", "back": 8}),
    "texts": ("next-token", LINES, {}),
    "texts of a class": ("next-token", [{"text": t, "kind": t[0]} for t in LINES], {"condition": "kind"}),
    "documents": ("masked-token", LINES, {"row_length": 12}),
    "rolls": ("next-frame", ROLLS, {}),
    "sounds of a class": (
        "next-sample",
        [{"sound": each, "kind": "ab"[i % 2]} for i, each in enumerate(TONES)],
        {"condition": "kind", "rate": 1000},
    ),
    "sounds as numbers": (
        "next-sample",
        TONES,
        {
            "rate": 1000,
            "output": "logistic-mixture",
            "bits": 16,
            "components": 2,
            "features": "log-mel",
            "frame": 0.004,
            "bands": 3,
            "piece": 0.02,
        },
    ),
    "grey images": ("next-pixel", PICTURES[:, :, :, 0] / 255, {"levels": 4}),
    "sounds as flows": (
        "sound-flow",
        [{"sound": each, "kind": "ab"[i % 2]} for i, each in enumerate(TONES)],
        {"condition": "kind", "rate": 1000, "flows": 2},
    ),
    "classes of texts": ("classify", [{"text": t, "label": str(len(t) > 9)} for t in LINES], {"tokens": "word"}),
    "classes of series": ("classify", (SERIES, ["up" if each.mean() > 0 else "down" for each in SERIES]), {}),
    "numbers": ("regress", (SERIES, SERIES.sum((1, 2))), {}),
    "tags": ("tag", [{"words": t.split(), "tags": [word[0] for word in t.split()]} for t in LINES], {}),
    "noise": ("denoise", (SERIES + SERIES[::-1], SERIES), {}),
    "series along time": ("forecast", HOURS, {"horizon": 3, "lookback": 8, "by": "direct"}),
    "series by rollout": ("forecast", HOURS, {"horizon": 3, "lookback": 8, "by": "rollout", "samples": 5}),
    "words in contexts": ("word-vectors", LINES, {"window": 2, "negatives": 2, "min_count": 1, "subsample": 0.1}),
    "words in contexts, together": (
        "word-vectors",
        [" ".join(LINES)],
        {"examples": "stream", "method": "cbow", "min_count": 1},
    ),
    "patterns": ("recall", (np.sign(SERIES[:12, :5]),), {}),
    "pairs": ("translate", [(t, t[::-1]) for t in LINES], {"target_dropout": 0.2, "teacher": 0.8}),
    "pictures": ("caption", (PICTURES, [WORDS[i % 10] for i in range(30)]), {}),
    "strokes": ("recognise", STROKES, {}),
    "strokes by frames": ("recognise", STROKES, {"objective": "ctc"}),
    "drawings": ("handwriting", PEN, {"n_mixtures": 2}),
    "drawings of texts": ("handwriting", PEN, {"n_mixtures": 2, "task.text": True}),
}
