"""Rates over time, and when a time budget settles its number of steps."""

from __future__ import annotations

import random

import pytest

from unrolled.runs.config import Budget, Optimiser
from unrolled.training.schedule import DEFAULT_TIME, FEWEST, SAFETY, Plan, factor, settled_until


@pytest.mark.parametrize("schedule", ["trapezoid", "cosine"])
def test_rates_rise_then_fall_to_almost_nothing(schedule: str) -> None:
    settings = Optimiser(schedule=schedule, warmup=10)
    rates = [factor(settings, step, 200) for step in range(200)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[-1] < 0.02
    assert all(a <= b + 1e-12 for a, b in zip(rates[:9], rates[1:10], strict=True))
    assert all(a >= b - 1e-12 for a, b in zip(rates[10:-1], rates[11:], strict=True))


@pytest.mark.parametrize("schedule", ["trapezoid", "cosine"])
def test_the_first_part_is_the_same_for_every_later_horizon(schedule: str) -> None:
    """What makes `--steps N` repeat a time budget: before it is settled, the rate does not depend on N."""
    settings = Optimiser(schedule=schedule, warmup=10)
    for step in range(int(settled_until(settings, 100)) + 1):
        unsettled = factor(settings, step, None)
        assert [factor(settings, step, horizon) for horizon in (100, 150, 1000)] == [unsettled] * 3


def test_a_time_budget_settles_once_and_in_time() -> None:
    plan = Plan(Budget(time=100), Optimiser(warmup=10), steps_per_epoch=1000, tokens_per_step=1)
    settled_at = None
    for step in range(1, 10_000):
        elapsed = 0.1 * step
        plan.settle(step, elapsed, left=100 - elapsed)
        if plan.horizon is not None and settled_at is None:
            settled_at, horizon = step, plan.horizon
        if plan.done(step, left=100 - elapsed):
            break
    assert settled_at is not None
    assert plan.horizon == horizon == step
    assert 100 * SAFETY - 2 < elapsed <= 100


def test_a_machine_that_slows_down_still_stops_in_time() -> None:
    plan = Plan(Budget(time=100), Optimiser(warmup=10), steps_per_epoch=1000, tokens_per_step=1)
    elapsed, step = 0.0, 0
    while not plan.done(step, left=100 - elapsed):
        step += 1
        elapsed += 0.1 if step < 600 else 0.5
        plan.settle(step, elapsed, left=100 - elapsed)
    assert elapsed < 101
    assert plan.horizon is not None and step < plan.horizon


@pytest.mark.parametrize("schedule", ["trapezoid", "cosine"])
@pytest.mark.parametrize("seed", range(20))
def test_on_an_uneven_machine_the_rates_are_those_of_the_settled_horizon(schedule: str, seed: int) -> None:
    """Whatever the speed does, the rates that were used are the ones that `--steps N --schedule-steps H` would use."""
    pace = random.Random(seed)
    settings = Optimiser(schedule=schedule, warmup=pace.choice([0, 5, 30]))
    plan = Plan(Budget(time=100), settings, steps_per_epoch=1000, tokens_per_step=1)
    elapsed, step, used = 0.0, 0, []
    while not plan.done(step, left=100 - elapsed):
        used.append(factor(settings, step, plan.horizon))
        step += 1
        elapsed += pace.choice([0.05, 0.05, 0.1, 3.0])
        plan.settle(step, elapsed, left=100 - elapsed)
    plan.close(step)
    assert used == [factor(settings, s, plan.horizon) for s in range(step)]


@pytest.mark.parametrize("schedule", ["trapezoid", "cosine", "constant"])
def test_time_that_ran_out_before_a_horizon_was_settled_can_be_repeated(schedule: str) -> None:
    settings = Optimiser(schedule=schedule, warmup=10)
    plan = Plan(Budget(time=1), settings, steps_per_epoch=1000, tokens_per_step=1)
    rates = [factor(settings, step, plan.horizon) for step in range(9)]
    plan.close(9)
    assert plan.horizon is not None
    assert rates == [factor(settings, step, plan.horizon) for step in range(9)]


def test_epochs_and_tokens_are_counted_in_steps() -> None:
    def steps(budget: Budget, accumulate: int = 1) -> int | None:
        return Plan(budget, Optimiser(accumulate=accumulate), steps_per_epoch=40, tokens_per_step=64).steps

    assert steps(Budget(epochs=2.5)) == 100
    assert steps(Budget(epochs=2.5), accumulate=2) == 50
    assert steps(Budget(train_tokens=6400)) == 100
    assert steps(Budget(train_tokens=6401)) == 101


def test_rates_by_hand() -> None:
    """A trapezoid of eight steps falls over its second half; without a warm-up it begins at the top."""
    assert [factor(Optimiser(warmup=0), step, 8) for step in range(8)] == [1, 1, 1, 1, 1, 0.75, 0.5, 0.25]
    assert [factor(Optimiser(warmup=4), step, 100) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert [factor(Optimiser(warmup=4, schedule="constant"), step, 6) for step in (0, 5)] == [0.25, 1]
    cosine = [factor(Optimiser(warmup=0, schedule="cosine"), step, 60) for step in (0, 20, 40, 60, 80)]
    assert cosine == pytest.approx([1, 1, 0.5, 0, 0])
    assert [factor(Optimiser(warmup=0), step, 1) for step in (0, 1, 2)] == [1, 0, 0]


def test_a_plan_believes_the_speed_after_some_steps() -> None:
    plan = Plan(Budget(time=100), Optimiser(warmup=10), steps_per_epoch=1000, tokens_per_step=1)
    assert plan.expected(FEWEST - 1, 1.0, 99.0) is None
    assert plan.expected(FEWEST, 0.0, 99.0) is None
    assert plan.expected(FEWEST, 2.0, 98.0) == pytest.approx(FEWEST + SAFETY * 98 * FEWEST / 2)
    assert Plan(Budget(steps=7), Optimiser(), 1000, 1).expected(0, 0.0, 0.0) == 7


def test_a_plan_is_done_with_its_steps_or_its_time() -> None:
    by_steps = Plan(Budget(steps=7), Optimiser(), 1000, 1)
    assert [by_steps.done(step, -5.0) for step in (6, 7, 8)] == [False, True, True]
    by_time = Plan(Budget(time=10), Optimiser(), 1000, 1)
    assert [by_time.done(3, left) for left in (0.5, 0.0, -1.0)] == [False, True, True]
    assert (by_time.time, Plan(Budget(), Optimiser(), 1000, 1).time, by_steps.time) == (10, DEFAULT_TIME, None)


def test_a_horizon_that_is_named_at_the_end_is_the_shortest_that_fits() -> None:
    plan = Plan(Budget(time=1), Optimiser(warmup=0), 1000, 1)
    plan.close(9)
    assert plan.horizon == 19  # flat up to step 9.5
    plan.close(500)
    assert plan.horizon == 19
    assert [factor(Optimiser(warmup=0), step, 19) for step in range(9)] == [1.0] * 9
    assert plan.state() == {"steps": None, "horizon": 19}
