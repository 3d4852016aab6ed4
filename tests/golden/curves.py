"""Whether two versions of the package learn the same, bit for bit.

    python -m tests.golden.curves record ours.json        # in each checkout, on the same machine
    python -m tests.golden.curves compare theirs.json ours.json

Every form of data of tests/small.py with some models of each kind, and the settings that change how a model is put
together, are trained for some steps. Kept are the figures of every evaluation, all that the run directory holds of
data, codecs and predictions, and the final weights, as hashes by shape and bytes: a weight may change its name.
Processors differ in their last digits, so these files are compared on one machine, and are not kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

import unrolled
from tests.small import DATA, LINES, QUICK
from unrolled.core.errors import UnrolledError

SETTINGS = {name: value for name, value in QUICK.items() if name != "length"} | {
    "steps": 12, "evaluate_every": 1, "batching.length": 5,
}  # fmt: skip
MODELS = {
    "next-token": ("ar", "elman", "jordan", "gru", "lstm", "linear-rnn", "tcn", "wavenet", "transformer", "ngram"),
    "next-frame": ("ar", "lstm", "tcn", "transformer", "key-chain"),
    "handwriting": ("gru", "tcn", "pen-mixture", "soft-window"),
    "classify": ("bow", "tfidf", "dan", "cnn", "bilstm", "gru", "transformer-encoder", "logistic", "naive-bayes",
                 "minirocket", "nearest", "prior"),
    "regress": ("bigru", "tcn", "minirocket", "nearest", "transformer-encoder"),
    "tag": ("birnn", "lstm", "transformer-encoder", "tag-counts"),
    "denoise": ("ar", "gru", "bilstm", "tcn", "identity"),
    "translate": ("seq2seq", "encdec", "encdec-transformer", "dictionary", "copy-source"),
    "caption": ("encdec", "seq2seq", "nearest-target"),
    "recognise": ("seq2seq", "encdec", "bilstm", "gru"),
    "forecast": ("gru", "tcn", "linear-map", "ets"),
    "word-vectors": ("word2vec", "ppmi", "prior"),
    "masked-token": ("bert", "transformer-encoder", "masked-ngram"),
    "recall": ("classical-hopfield", "dense-hopfield", "continuous-hopfield"),
}  # fmt: skip
UNFIT = {
    "classes of texts": ("cnn", "minirocket", "nearest"),
    "classes of series": ("bow", "tfidf", "cnn", "logistic", "naive-bayes"),
    "strokes": ("bilstm", "gru"),
    "strokes by frames": ("seq2seq", "encdec"),
    "series by rollout": ("linear-map", "ets"),
}
SMALL = {"d_state": 6, "d_model": 8, "d_ff": 9, "heads": 2, "channels": 6, "n_layers": 2, "d_hidden": 5, "dropout": 0.1}
ODD: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tied": ("texts", "lstm", {"tied": True, "d_state": 4}),
    "tied transformer": ("a stream", "transformer", {"tied": True, "d_embedding": 8}),
    "accumulate": ("texts", "gru", {"accumulate": 2}),
    "learned positions": ("texts", "transformer", {"position": "learned"}),
    "many tokens": ("many words", "gru", {"tokens": "word"}),
    "letters": ("classes of texts", "bilstm", {"letters": 6}),
    "shared": ("pairs", "encdec-transformer", {"shared": True, "vocabularies": "joint"}),
    "every step": ("pairs", "seq2seq", {"context": "every-step"}),
    "start": ("pairs", "seq2seq", {"context": "start"}),
    "an encoder and a decoder": ("pairs", "encdec", {"encoder": "tcn", "decoder": "transformer"}),
    "projected": ("a stream", "lstm", {"d_proj": 3, "initial": "learned"}),
    "readout": ("classes of series", "gru", {"readout": "mean"}),
    "label smoothing": ("pairs", "seq2seq", {"label_smoothing": 0.1}),
    "conditioned transformer": ("texts of a class", "transformer", {}),
}
MORE = {
    "many words": ("next-token", [f"{t} w{i} w{i + 1} w{i * 7 % 1500}" for i, t in enumerate(LINES * 20)], {}),
}


def cases() -> dict[str, tuple[str, Any, str, dict[str, Any]]]:
    """Task, data, model and settings by the name of the case."""
    found = {}
    for label, (task, data, settings) in DATA.items():
        for model in MODELS[task]:
            if model in UNFIT.get(label, ()):
                continue
            found[f"{label}, {model}"] = (task, data, model, SETTINGS | settings)
    for name, (label, model, more) in ODD.items():
        task, data, settings = (DATA | MORE)[label]
        found[f"{name}: {label}, {model}"] = (task, data, model, SETTINGS | settings | more)
    return found


def outcome(task: str, data: Any, model: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What training leaves behind, in values that do not depend on the time it took or on names of weights."""
    sizes = [name for name in SMALL if name in _settings_of(model) and name not in settings]
    try:
        unrolled.train(data, task, model, folder, settings | {f"model.{name}": SMALL[name] for name in sizes})
    except UnrolledError as error:
        return {"error": str(error)}
    weights = sorted(_hash(tensor) for tensor in load_file(folder / "model.safetensors").values())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()] if _has(folder) else []
    figures = [{key: line[key] for key in sorted(line) if key not in ("seconds", "seal")} for line in lines]
    facts = json.loads((folder / "data.json").read_text())["facts"]
    result = json.loads((folder / "result.json").read_text())
    held_out = {name: result[name] for name in ("valid", "test") if name in result}
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    kept = [name for name in files if name.startswith("codec/") or name == "predictions.jsonl"]
    content = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in kept}
    where = [name for name in files if not name.startswith(("tensorboard/", "checkpoints/"))]
    return {"weights": weights, "figures": figures, "facts": facts, "held_out": held_out} | {
        "content": content, "files": where,
    }  # fmt: skip


def _has(folder: Path) -> bool:
    return (folder / "metrics.jsonl").exists()


def _settings_of(model: str) -> set[str]:
    from unrolled.core import discover

    return set(discover.model(model).tiny.model_dump())


def _hash(tensor: torch.Tensor) -> str:
    whole = tensor.contiguous()
    return f"{tuple(whole.shape)} {hashlib.sha256(whole.view(-1).numpy().tobytes()).hexdigest()[:16]}"


def record(path: Path) -> None:
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, case) in enumerate(cases().items()):
            found[name] = outcome(*case, Path(folder) / str(number))
            print(f"{name}: {found[name].get('error', 'recorded')}", flush=True)
    path.write_text(json.dumps(found, indent=1, sort_keys=True))


def compare(theirs: Path, ours: Path) -> int:
    """The number of cases that differ; each is told with what differs in it."""
    a, b = json.loads(theirs.read_text()), json.loads(ours.read_text())
    wrong = 0
    for name in sorted(a.keys() | b.keys()):
        x, y = a.get(name, {}), b.get(name, {})
        differ = [key for key in sorted(x.keys() | y.keys()) if x.get(key) != y.get(key)]
        if differ:
            wrong += 1
            print(f"{name}: {', '.join(differ)}")
    print(f"{wrong} of {len(a.keys() | b.keys())} cases differ")
    return wrong


if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    if verb == "record":
        record(Path(paths[0]))
    else:
        sys.exit(min(compare(*map(Path, paths)), 1))
