"""The training loop: what a step is, that runs repeat, and that trouble is met."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from tests.thorough import every
from unrolled.core.errors import Diverged, OutOfMemory, UsageError
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.models.dan import DeepAveraging
from unrolled.runs.run import Run
from unrolled.tasks import next_token
from unrolled.training.mixing import mixed
from unrolled.training.optimiser import AdamW

Fit = Callable[..., Run]


def weights(run: Run) -> dict[str, torch.Tensor]:
    return run.directory.read_tensors("model.safetensors")


def same(a: Run, b: Run) -> bool:
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def curve(run: Run) -> list[dict[str, Any]]:
    timed = ("seconds",)
    return [{k: v for k, v in line.items() if k not in timed} for line in run.directory.read_metrics()]


def test_the_same_seed_gives_the_same_run_and_another_does_not(fit: Fit) -> None:
    a, b, c = fit("a", {"steps": 25}), fit("b", {"steps": 25}), fit("c", {"steps": 25, "seed": 1})
    assert same(a, b)
    assert curve(a) == curve(b)
    assert not same(a, c)


def test_it_learns_more_than_letter_frequencies(fit: Fit) -> None:
    run = fit("run", {"steps": 400, "lr": 0.01})
    assert run.result["valid"]["nats"] < run.result["baselines"]["unigram"]["valid"]["nats"] - 0.3
    assert run.result["best_step"] > 0


def test_a_time_budget_stops_in_time_and_repeats_in_steps(fit: Fit) -> None:
    timed = fit("timed", {"time": 2.5, "plain": True})
    again = fit("again", {"steps": timed.result["steps"], "horizon": timed.result["horizon"]})
    assert timed.result["steps"] > 20
    assert same(timed, again)


def test_scheduled_mixing_with_a_perfect_teacher_is_the_plain_model(fit: Fit) -> None:
    run = fit("run", {"steps": 2})
    x = torch.randint(4, run.task.codec.size, (3, 7))
    plain, state = run.model(x)
    y, last = mixed(run.model, x, None, 1.0, seed=0)
    torch.testing.assert_close(y, plain)
    torch.testing.assert_close(last, state)
    own, _ = mixed(run.model, x, None, 0.0, seed=0)
    assert not torch.allclose(own[:, 1:], plain[:, 1:])
    own.sum().backward()
    assert all(p.grad is not None for p in run.model.parameters())


def test_mixing_trains(fit: Fit) -> None:
    run = fit("run", {"steps": 6, "teacher": 0.5})
    assert math.isfinite(run.result["valid"]["nats"])


def test_the_share_of_truth_falls_from_one(fit: Fit) -> None:
    """As long as all inputs are the truth, nothing differs from plain training; afterwards something does."""
    plain, late, early = (
        fit(name, {"steps": 3, "teacher": 0.2, "teacher_steps": n} if n else {"steps": 3})
        for name, n in (("plain", 0), ("late", 10**9), ("early", 2))
    )
    for one, two in zip(plain.model.parameters(), late.model.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    assert not same(plain, early)


@pytest.mark.parametrize("settings", every(2, [
    {"back": 20}, {"windows": "cut"}, {"windows": "random"}, {"accumulate": 3}, {"optimiser": "sgd", "lr": 0.1},
    {"schedule": "plateau"}, {"schedule": "cosine"}, {"label_smoothing": 0.1}, {"tied": True, "d_embedding": 12},
    {"label_smoothing": 0.1, "prior": "training"}, {"input": "one-hot"}, {"precision": "bfloat16"},
    {"precision": "auto"}, {"dropout": 0.2, "model.dropout": 0.1, "n_layers": 2}, {"ahead": 3}, {"tokens": "word"},
    {"tokens": "byte"}, {"tokens": "bpe", "vocabulary": 270}, {"initial": "learned"}, {"examples": "lines"},
]), ids=lambda s: "-".join(f"{k}={v}" for k, v in s.items()))  # fmt: skip
def test_every_way_to_train_runs_and_repeats(fit: Fit, settings: dict[str, Any]) -> None:
    settings = {f"ends.{k}" if k == "dropout" else k: v for k, v in settings.items()}
    run = fit("run", {"steps": 12} | settings)
    assert run.result["steps"] == 12
    assert math.isfinite(run.result["valid"]["nats"])
    if settings.get("precision") != "auto":
        assert same(run, fit("again", {"steps": 12} | settings))


@pytest.fixture
def norms(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The gradient norm at every step of the optimiser, as it is when the weights move."""
    seen: list[float] = []
    original = AdamW.step

    def step(self: AdamW) -> None:
        found = [p.grad.double().norm() for p in self.weights if p.grad is not None]
        seen.append(float(torch.stack(found).norm()))
        original(self)

    monkeypatch.setattr(AdamW, "step", step)
    return seen


@pytest.mark.parametrize("accumulate", [1, 3])
def test_gradients_are_clipped_to_the_norm_that_was_asked_for(fit: Fit, norms: list[float], accumulate: int) -> None:
    fit("free", {"steps": 3, "clip": 1e9, "accumulate": accumulate})
    free = norms.copy()
    limit = free[0] / 4
    norms.clear()
    fit("clipped", {"steps": 3, "clip": limit, "accumulate": accumulate})
    assert free[0] > 0
    assert norms == pytest.approx([limit] * 3, rel=1e-4)


def test_gradients_below_the_limit_are_left_as_they_are(fit: Fit, norms: list[float]) -> None:
    fit("off", {"steps": 3, "clip": None})
    free = norms.copy()
    norms.clear()
    fit("wide", {"steps": 3, "clip": 2 * max(free)})
    assert norms == free


def test_patience_stops_early(fit: Fit) -> None:
    run = fit("run", {"steps": 2000, "patience": 2, "lr": 10, "optimiser": "sgd", "schedule": "constant"})
    assert run.result["steps"] < 2000


def test_truncated_gradients_reach_back_exactly_k2(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    """With back = 2 * length every chunk's gradient covers its own positions and the chunk before."""
    seen = []
    original = Recurrent.forward

    def spy(self: Recurrent, x: torch.Tensor, state: Any = None) -> Any:
        if torch.is_grad_enabled():
            seen.append((x.shape[1], state is not None and state.requires_grad))
        return original(self, x, state)

    monkeypatch.setattr(Recurrent, "forward", spy)
    fit("run", {"steps": 3, "back": 20})
    assert seen[:6] == [(10, False), (10, True)] * 3


def test_not_finite_batches_are_skipped_and_named(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    original = next_token.Task.loss
    calls = iter(range(10_000))

    def poisoned(self: Any, y: torch.Tensor, batch: Any) -> Any:
        total, count = original(self, y, batch)
        return (total * math.nan if next(calls) == 7 else total), count

    monkeypatch.setattr(next_token.Task, "loss", poisoned)
    run = fit("run", {"steps": 20})
    lines = run.directory.read_metrics()
    events = [line["event"] for line in lines if "event" in line]
    assert events == ["batch 7: loss nan, gradient norm nan: not finite, batch skipped"]
    assert all(math.isfinite(line["train_loss"]) for line in lines if line["step"] and "train_loss" in line)
    assert [line["step"] for line in lines if "train_loss" in line] == [10, 20]
    assert math.isfinite(run.result["valid"]["nats"])


def test_divergence_rolls_back_and_then_ends(fit: Fit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = next_token.Task.loss
    calls = iter(range(10_000))

    def poisoned(self: Any, y: torch.Tensor, batch: Any) -> Any:
        total, count = original(self, y, batch)
        return (total * math.nan if next(calls) > 14 else total), count

    monkeypatch.setattr(next_token.Task, "loss", poisoned)
    with pytest.raises(Diverged, match="diverged"):
        fit("run", {"steps": 200})
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum("back to step 10" in line.get("event", "") for line in lines) == 3


def test_divergence_before_the_second_checkpoint_goes_back_to_the_first_and_then_ends(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is that of the initial weights: they are tried again with smaller rates."""
    original = next_token.Task.loss

    def poisoned(self: Any, y: torch.Tensor, batch: Any) -> Any:
        total, count = original(self, y, batch)
        return total * math.nan, count

    monkeypatch.setattr(next_token.Task, "loss", poisoned)
    with pytest.raises(Diverged, match=r"in 4 batches in a row \(the last is batch 3\)"):
        fit("run", {"steps": 200, "evaluate_every": 1000})


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[int]], None]:
    """Evaluations of these numbers, counted from 0, come out as NaN."""

    def poison(which: set[int]) -> None:
        original = next_token.Task.evaluate
        calls = iter(range(10_000))

        def evaluate(self: Any, model: Any, *args: Any, **given: Any) -> Any:
            figures = original(self, model, *args, **given)
            counts = not any(hasattr(each, "solve") for each in model.modules())  # baselines are solved
            return figures | ({"nats": math.nan} if counts and next(calls) in which else {})

        monkeypatch.setattr(next_token.Task, "evaluate", evaluate)

    return poison


def test_weights_whose_score_is_not_finite_are_neither_kept_nor_gone_back_to(fit: Fit, poison: Any) -> None:
    poison({2, 3})
    run = fit("run", {"steps": 30, "lr": 0.01})
    lines = run.directory.read_metrics()
    events = [line["event"] for line in lines if "event" in line]
    assert events == [
        f"step {step}: nats is nan on validation data, so these weights were not saved" for step in (20, 30)
    ]
    assert [line["step"] for line in lines if "nats" in line] == [0, 10]
    assert run.result["best_step"] == 10
    saved = sorted(path.name for path in (run.path / "checkpoints").glob("step-*"))
    assert saved == ["step-00000000", "step-00000010"]


def test_a_score_that_is_never_finite_ends_in_a_sentence(fit: Fit, poison: Any) -> None:
    poison(set(range(100)))
    with pytest.raises(Diverged, match="nats was never finite on validation data; lower the learning rate"):
        fit("run", {"steps": 10})


def test_out_of_memory_names_a_batch_size_that_fits(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    original, limit = Recurrent.forward, {"rows": 1}

    def small_machine(self: Recurrent, x: torch.Tensor, state: Any = None) -> Any:
        if torch.is_grad_enabled() and x.shape[0] > limit["rows"]:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return original(self, x, state)

    monkeypatch.setattr(Recurrent, "forward", small_machine)
    for rows, fits in ((4, 1), (16, 4), (11, 5)):
        limit["rows"] = fits
        with pytest.raises(OutOfMemory, match=f"batches of {rows} rows; batch_size={fits} fits"):
            fit(f"run-{rows}", {"steps": 3, "batch_size": rows})
    limit["rows"] = 0
    with pytest.raises(OutOfMemory, match="even one row does not fit"):
        fit("none", {"steps": 3})


def test_out_of_memory_of_a_model_that_reads_whole_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried out is the model's own output: one that cannot be trained does not fit either."""
    original = DeepAveraging.forward

    def small_machine(self: DeepAveraging, x: torch.Tensor, mask: torch.Tensor) -> Any:
        if torch.is_grad_enabled() and x.shape[0] > 3:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        assert mask.shape == x.shape[:2]
        return original(self, x, mask)

    monkeypatch.setattr(DeepAveraging, "forward", small_machine)
    rows = [{"text": f"{'good' if i % 2 else 'bad'} {i}", "label": str(i % 2)} for i in range(60)]
    with pytest.raises(OutOfMemory, match=r"batches of 12 rows; batch_size=3 fits"):
        unrolled.train(rows, "classify", "dan", out=tmp_path / "run", settings={"steps": 3, "batch_size": 12})


def test_out_of_memory_is_told_from_other_errors(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Recurrent, x: torch.Tensor, state: Any = None) -> Any:
        raise RuntimeError("something else")

    monkeypatch.setattr(Recurrent, "forward", broken)
    with pytest.raises(RuntimeError, match="something else"):
        fit("run", {"steps": 3})


def test_settings_that_make_no_sense_are_refused_before_anything_is_written(fit: Fit, tmp_path: Path) -> None:
    for settings, words in (
        ({"steps": 3, "epochs": 1}, "one budget"),
        ({"back": 3}, "at least length"),
        ({"d_stat": 3}, "d_state"),
        ({"lr": -1}, "> 0"),
        ({"tied": True, "steps": 1, "d_embedding": 5}, "d_embedding = 12"),
    ):
        with pytest.raises(UsageError, match=words):
            fit("run", settings)
        assert not (tmp_path / "run").exists()


def test_solved_models_are_not_descended(text: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(text)
    settings = {"order": 3, "split": "80/20"}
    run = unrolled.train(tmp_path / "text.txt", model="ngram", out=tmp_path / "run", settings=settings)
    assert run.result["steps"] == 0
    assert run.result["valid"]["nats"] == pytest.approx(run.result["baselines"]["trigram"]["valid"]["nats"])


def test_an_autoregression_is_fitted_in_closed_form_to_series_and_trained_elsewhere(tmp_path: Path) -> None:
    settings = {"threads": 1, "order": 4}
    run = unrolled.train("builtin:sinusoids,length=30,examples=60", "denoise", "ar", out=tmp_path / "ar",
                         settings=settings)  # fmt: skip
    assert run.result["steps"] == 0
    assert run.result["valid"]["mse"] < 0.5 * run.result["baselines"]["left as it is"]["valid"]["mse"]
    again = unrolled.train("builtin:sinusoids,length=30,examples=60", "denoise", "ar", out=tmp_path / "16",
                           settings={"threads": 1})  # fmt: skip
    assert again.result["valid"]["mse"] == again.result["baselines"]["linear filter"]["valid"]["mse"]
    tokens = unrolled.train(
        [f"row {i} of {i * i}" for i in range(60)], model="ar", out=tmp_path / "tokens",
        settings={"steps": 3, "order": 4, "threads": 1, "split": "80/20"},
    )  # fmt: skip
    assert tokens.result["steps"] == 3
