"""Whatever is asked of a model, its dropout is off meanwhile, and afterwards the model is in the mode it was in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import unrolled
from tests.small import DATA, QUICK, ROLLS
from unrolled.cli.live import lines_of
from unrolled.runs.run import Run

HALF = {"steps": 1, "evaluate_every": 1, "ends.dropout": 0.5, "d_state": 8}
RUNS = {
    "texts": ("texts of a class", "gru"),
    "stream": ("a stream", "gru"),
    "rolls": ("rolls", "gru"),
    "classes": ("classes of texts", "gru"),
    "tags": ("tags", "gru"),
    "noise": ("noise", "gru"),
    "pairs": ("pairs", "seq2seq"),
    "pictures": ("pictures", "seq2seq"),
    "frames": ("strokes by frames", "gru"),
}
ASKED: dict[str, tuple[str, Callable[[Run], Any]]] = {
    "generate": ("texts", lambda run: run.generate("st", n=2, max_tokens=5, condition="s")),
    "beam": ("texts", lambda run: run.generate("st", beam=2, max_tokens=5, condition="s")),
    "stream": ("stream", lambda run: list(run.stream("st", max_tokens=9))),
    "predict": ("texts", lambda run: run.predict(["tick", "state"], ["t", "s"])),
    "score": ("texts", lambda run: run.score(["tick", "state"], ["t", "s"])),
    "evaluate": ("stream", lambda run: run.evaluate(["tick state layer chunk"])),
    "pictures of texts": ("texts", lambda run: run.task.pictures(run.model, "valid")),
    "generate frames": ("rolls", lambda run: [each["roll"].tolist() for each in run.generate(n=2, max_tokens=4)]),
    "predict frames": ("rolls", lambda run: run.predict(ROLLS[:2])),
    "score frames": ("rolls", lambda run: run.score(ROLLS[:2])),
    "predict classes": ("classes", lambda run: run.predict(["tick state", "gate"])),
    "predict tags": ("tags", lambda run: run.predict([["tick", "state"]])),
    "live": ("noise", lambda run: list(lines_of(run.session(), ["1 2", "3 4", "", "1 2"]))),
    "translate": ("pairs", lambda run: run.predict(["tick", "state"], beam=2)),
    "pictures of pairs": ("pairs", lambda run: run.task.pictures(run.model, "valid")),
    "pictures of images": ("pictures", lambda run: run.task.pictures(run.model, "valid")),
    "pictures of frames": ("frames", lambda run: run.task.pictures(run.model, "valid")),
    "surprise": ("stream", lambda run: run.inspect("surprise", "tick state").numbers),
    "gates": ("stream", lambda run: run.inspect("gates", "tick state").numbers),
    "states": ("stream", lambda run: run.inspect("states", "tick state").numbers),
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Runs with much dropout, of which no module is in training."""
    folder, made = tmp_path_factory.mktemp("modes"), {}

    def run(name: str) -> Run:
        if name not in made:
            data, model = RUNS[name]
            task, source, settings = DATA[data]
            both = QUICK | settings | HALF
            made[name] = unrolled.train(source, task=task, model=model, out=folder / name, settings=both)
            made[name].task.prepare(source)
        return made[name]

    return run


@pytest.mark.parametrize("question", ASKED)
def test_the_mode_is_put_back_and_makes_no_difference(question: str, runs: Callable[[str], Run]) -> None:
    name, ask = ASKED[question]
    run = runs(name)
    assert not any(module.training for module in run.model.modules())
    wanted = ask(run)
    try:
        run.model.train()
        torch.manual_seed(1)
        assert ask(run) == wanted
        assert all(module.training for module in run.model.modules())
        assert torch.is_grad_enabled()
    finally:
        run.model.eval()


def test_a_text_that_nobody_reads_to_its_end_leaves_no_trace(runs: Callable[[str], Run]) -> None:
    run = runs("stream")
    whole = "".join(run.stream("st", max_tokens=9))
    try:
        run.model.train()
        first, second = run.stream("st", max_tokens=9), run.stream("st", max_tokens=9)
        pieces = [next(first), next(second)]
        assert run.model.training
        assert torch.is_grad_enabled()
        assert "".join([pieces[0], *first]) == "".join([pieces[1], *second]) == whole
        assert torch.is_grad_enabled()
    finally:
        run.model.eval()
