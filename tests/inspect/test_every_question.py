"""Every question is asked of every model on every task: it is answered, or a sentence says why it cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import unrolled
from tests.thorough import every
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import misfit
from unrolled.data.config import DataConfig
from unrolled.inspect.tools.save import save_answer
from unrolled.pictures.draw import html, is_drawn, svg
from unrolled.pictures.kinds import read_picture
from unrolled.runs.run import Run
from unrolled.runs.storage.formats import json_text

WORDS = ["tick", "state", "layer", "chunk", "cell", "gate", "tack", "stale", "later", "chick", "call", "gait"]
LINES = [f"{WORDS[i % 12]} {WORDS[(i * 5 + i // 12) % 12]}" for i in range(60)]
ROLLS = [np.eye(6, dtype=np.uint8)[(np.arange(5 + i % 4) + i) % 6] for i in range(24)]
CLASSES = [{"text": line, "label": "short" if len(line) < 10 else "long"} for line in LINES]
NUMBERS = [{"text": line, "size": len(line) + 0.5} for line in LINES]
TAGS = [{"words": line.split(), "tags": [word[0] for word in line.split()]} for line in LINES]
SERIES = np.random.default_rng(0).normal(size=(2, 30, 7, 2)).astype(np.float32)  # noisy and clean, [n, T, D] each
PAIRS = [(line, line[::-1]) for line in LINES]
PICTURES = np.random.default_rng(1).integers(0, 256, (30, 6, 6, 3), dtype=np.uint8)
STROKES = [{"strokes": [SERIES[0, i % 30].tolist()], "text": WORDS[i % 12]} for i in range(36)]
DATA = {
    "next-token": LINES, "masked-token": LINES, "next-frame": ROLLS, "classify": CLASSES, "regress": NUMBERS,
    "tag": TAGS,
    "next-sample": "builtin:tones,examples=20,seconds=0.05,rate=1000",
    "next-pixel": PICTURES[:, :4, :4, 0] / 255,
    "sound-flow": "builtin:tones,examples=20,seconds=0.05,rate=1000",
    "denoise": (SERIES[0] + SERIES[1], SERIES[1]), "translate": PAIRS,
    "handwriting": STROKES,
    "caption": (PICTURES, [WORDS[i % 12] for i in range(30)]), "recognise": STROKES,
    "recall": (np.sign(SERIES[0][:10]),), "word-vectors": [" ".join(LINES[i : i + 20]) for i in range(40)],
    "forecast": np.sin(np.arange(70) / 2) + SERIES[0].ravel()[:70] / 9 + 3,
}  # fmt: skip
SETTINGS = {"steps": 2, "batch_size": 4, "evaluate_every": 2, "evaluate_tokens": 50, "warmup": 1, "threads": 1,
            "d_embedding": 6}  # fmt: skip


def fitting(name: str) -> list[str]:
    """The models that fit a task, as `compare` asks for them."""
    module = discover.tasks.load(name)
    task = module.Task(module.Config(), DataConfig())
    task.prepare(DATA[name])
    asks = task.ports().asks(task.ACCEPTS)
    return [name for name in discover.models.names() if misfit(discover.model(name), asks) is None]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Run]:
    """The smallest form of a model, trained for two steps; made once."""
    folder, made = tmp_path_factory.mktemp("tiny"), {}

    def run(task: str, model: str) -> Run:
        if (task, model) not in made:
            own = {f"model.{key}": value for key, value in discover.model(model).tiny.model_dump().items()}
            out = folder / f"{task}-{model}"
            made[task, model] = unrolled.train(
                DATA[task], task=task, model=model, out=out, settings=SETTINGS | own, baselines={}
            )
        return made[task, model]

    return run


def test_every_task_is_walked() -> None:
    assert set(DATA) == set(discover.tasks.names())


# models of some tasks are put together as those of `classify` or `translate` are, so some are enough
LIKE_OTHERS = {"masked-token", "regress", "tag", "denoise", "caption", "recognise"}
SOME = {"elman", "lstm", "tcn", "bilstm", "transformer-encoder", "seq2seq", "encdec", "masked-ngram"}
FORECASTING = {"linear-map", "ets", "naive", "ar", "gru", "tcn", "transformer", "seq2seq"}
WALKED = [
    (task, model)
    for task in DATA
    for model in fitting(task)
    if model in FORECASTING or task != "forecast"
    if task not in LIKE_OTHERS or model in SOME
]


drawn: set[tuple[str, str]] = set()


@pytest.mark.parametrize("question", discover.questions.names())
@pytest.mark.parametrize(("task", "model"), every(9, WALKED))
def test_a_question_is_answered_or_says_why_not(
    tiny: Callable[[str, str], Run], task: str, model: str, question: str
) -> None:
    run = tiny(task, model)
    reason = discover.question(question).applies(run)
    if reason is not None:
        assert len(reason.split()) > 4
        assert not reason.endswith(".")  # it is the end of a sentence that others begin
        with pytest.raises(UsageError, match="does not apply"):
            run.inspect(question)
        return
    answer = run.inspect(question)
    assert len(answer.reading.split()) > 5
    assert answer.numbers
    json_text(answer.numbers, "numbers")  # refuses NaN and whatever JSON does not know
    assert answer.pictures
    for picture in answer.pictures:
        assert picture.title
        assert picture.alt
        assert read_picture(picture.model_dump(mode="json")) == picture
    if (task, question) in drawn:  # one of each is enough
        return
    drawn.add((task, question))
    assert "<" in (svg(answer.pictures[0]) if is_drawn(answer.pictures[0]) else html(answer.pictures[0]))


ANSWERED = {  # what must not silently become "does not apply"
    ("attention", "transformer"), ("positions", "transformer"), ("gates", "lstm"), ("gates", "gru"),
    ("gates", "wavenet"), *(("states", m) for m in ("elman", "lstm", "jordan", "tcn", "wavenet", "ar", "linear-rnn")),
    *(("embeddings", m) for m in ("elman", "transformer", "tcn", "memoryless")), ("parameters", "ngram"),
}  # fmt: skip
SILENT = {
    ("attention", "lstm"), ("attention", "tcn"), ("positions", "gru"), ("gates", "elman"), ("gates", "transformer"),
    ("states", "transformer"), ("states", "ngram"), ("embeddings", "ngram"),
}  # fmt: skip


@pytest.mark.parametrize(("question", "model"), sorted(ANSWERED | SILENT))
def test_a_question_applies_where_it_should(tiny: Callable[[str, str], Run], question: str, model: str) -> None:
    reason = discover.question(question).applies(tiny("next-token", model))
    assert (reason is None) is ((question, model) in ANSWERED), reason


ANSWERED_WHOLE = {
    ("attention", "transformer-encoder"), ("attention", "transformer"), ("gates", "bilstm"), ("gates", "lstm"),
    ("states", "bilstm"), ("states", "birnn"), ("states", "lstm"), ("embeddings", "dan"), ("embeddings", "bilstm"),
    ("positions", "transformer-encoder"), ("gradients", "bigru"), ("gradients", "dan"), ("causality", "tcn"),
    ("causality", "bilstm"), ("receptive-field", "tcn"),
    *(("saliency", m) for m in ("bow", "dan", "tfidf", "bilstm", "lstm", "transformer-encoder")),
    *(("parameters", m) for m in ("bow", "dan", "bilstm")),
}  # fmt: skip
SILENT_WHOLE = {
    ("surprise", "lstm"), ("surprise", "dan"), ("causality", "dan"), ("causality", "bow"), ("gradients", "bow"),
    ("receptive-field", "bilstm"), ("receptive-field", "dan"), ("states", "dan"), ("states", "tcn"), ("gates", "dan"),
    ("embeddings", "bow"), ("attention", "bilstm"),
}  # fmt: skip


@pytest.mark.parametrize(("question", "model"), sorted(ANSWERED_WHOLE | SILENT_WHOLE))
def test_a_question_applies_where_it_should_to_models_that_answer_once(
    tiny: Callable[[str, str], Run], question: str, model: str
) -> None:
    reason = discover.question(question).applies(tiny("classify", model))
    assert (reason is None) is ((question, model) in ANSWERED_WHOLE), reason


def test_a_model_that_starts_from_a_class_is_looked_into(tmp_path: Path) -> None:
    rows = [f"{word},{'long' if len(word) > 4 else 'short'}" for word in dict.fromkeys(" ".join(LINES).split())]
    (tmp_path / "words.csv").write_text("word,size\n" + "\n".join(rows) + "\n")
    own = {"model.d_model": 8, "model.n_heads": 2, "model.n_layers": 1, "column": "word", "condition": "size",
           "split": "80/20"}  # fmt: skip
    run = unrolled.train(tmp_path / "words.csv", model="transformer", out=tmp_path / "run", settings=SETTINGS | own)
    for question in discover.questions.names():
        if discover.question(question).applies(run) is None:
            assert run.inspect(question, "tick").reading
    picture = run.inspect("attention", "tick").pictures[0]
    assert picture.rows == ["<start>", *"tick"]
    assert picture.columns[1:] == picture.rows  # behind the class that started it
    assert picture.columns[0] in ("(long)", "(short)")
    near = run.inspect("embeddings", settings={"token": "(class short)", "top": 100}).numbers["neighbours"]
    assert "(class long)" in [each["token"] for each in near["(class short)"]]


def test_an_answer_is_saved_and_leaves_the_run_whole(tiny: Callable[[str, str], Run], tmp_path: Path) -> None:
    run = tiny("next-token", "lstm")
    answer = run.inspect("gates")
    files = save_answer(answer, run.path / "inspect" / "gates")
    assert [path.name for path in files][:3] == ["numbers.json", "arrays.npz", "picture-1.svg"]
    whole = json.loads(files[0].read_text())
    assert whole["reading"] == answer.reading
    assert [read_picture(value) for value in whole["pictures"]] == answer.pictures
    with np.load(files[1]) as arrays:
        assert set(arrays) == set(answer.arrays)
    run.directory.seal()
    assert not [name for name in run.directory.names() if name.startswith("inspect")]
    run.directory.verify()
    words = run.inspect("embeddings")
    again = save_answer(words, run.path / "inspect" / "gates")  # in the place of the first: its pictures go
    assert {path.name for path in (run.path / "inspect" / "gates").iterdir()} == {path.name for path in again}
    assert "<table" in next(path for path in again if path.suffix == ".html").read_text()


def test_all_questions_look_at_a_run_by_one_reading(tiny: Callable[[str, str], Run]) -> None:
    """Whether each of them has an answer is asked of the same three positions, which the model reads once."""
    run, read = unrolled.load(tiny("next-token", "lstm").path), []
    hook = run.model.register_forward_hook(lambda *_: read.append(1))
    assert all(run.unanswered(name) is None for name in ("gates", "states"))
    assert run.unanswered("attention")
    hook.remove()
    assert len(read) == 1
