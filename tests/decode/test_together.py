"""Texts that are written together are those that are written alone, whenever they join and leave."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.core.state import joined, take
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import rollout
from unrolled.decode.text import Begun
from unrolled.decode.together import Ran, Row, Together

V, STOP = 13, 3
ASKED = [
    {"seed": 1, "temperature": 1.3, "max_tokens": 25},
    {"seed": 2, "temperature": 0.0, "max_tokens": 12},
    {"seed": 1, "temperature": 1.3, "max_tokens": 30},
    {"seed": 4, "top_k": 4, "max_tokens": 18},
    {"seed": 5, "repetition_penalty": 1.5, "max_tokens": 22},
    {"seed": 6, "repetition_penalty": 1.5, "max_tokens": 9},
    {"seed": 7, "top_p": 0.7, "max_tokens": 30},
]


class Model(torch.nn.Module):
    """An embedding, a body and a head."""

    def __init__(self, name: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        spec = discover.model(name)
        self.table = torch.nn.Embedding(V, 8)
        made: Any = spec.make(spec.tiny, Sizes(8, V, None))
        self.body = made
        width = made(torch.zeros(1, 1, 8))[0].shape[-1]
        self.head = torch.nn.Linear(width, V)
        torch.nn.init.normal_(self.head.weight, std=1.0)

    def step(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        y, state = self.body(self.table(x), state)
        return self.head(y), state


def alone(model: Model, prompt: torch.Tensor, decoding: Decoding, number: int) -> list[int]:
    assert decoding.max_tokens is not None
    ticks = rollout(
        model.step, None, prompt, None, make_chooser(decoding, [0]), [STOP], decoding.max_tokens,
        rows=torch.tensor([number]), seed=decoding.seed,
    )  # fmt: skip
    return [int(column.tokens[0]) for column in ticks]


@pytest.mark.parametrize("name", ["lstm", "gru", "elman", "tcn", "transformer", "wavenet"])
def test_a_row_is_the_same_alone_and_beside_others(name: str) -> None:
    model = Model(name).eval()
    with torch.no_grad():
        prompts = [torch.randint(4, V, (1, 2 + i % 3)) for i in range(len(ASKED))]
        settled = [Decoding.parse(each).settled(True, 30) for each in ASKED]
        own = [alone(model, prompt, each, i) for i, (prompt, each) in enumerate(zip(prompts, settled))]
        together, found = Together(), {}
        rows = [
            Row(Begun(prompt, model.step, None), each, [STOP], [0], i)
            for i, (prompt, each) in enumerate(zip(prompts, settled))
        ]
        waiting = list(rows)
        for tick in range(100):
            if waiting and tick % 3 == 0:  # they join one after the other
                together.join(waiting.pop(0))
            for row, token in together.tick():
                found.setdefault(rows.index(row), []).append(token.token)
            if not waiting and not len(together):
                break
    assert [found[i] for i in range(len(rows))] == own


def test_rows_that_leave_do_not_move_the_others() -> None:
    model = Model("gru").eval()
    with torch.no_grad():
        prompt, decoding = torch.tensor([[5, 6]]), Decoding(seed=3, max_tokens=20).settled(True, 20)
        own = alone(model, prompt, decoding, 1)
        together = Together()
        rows = [Row(Begun(prompt, model.step, None), decoding, [STOP], [0], i) for i in range(3)]
        for row in rows:
            together.join(row)
        found = []
        for tick in range(20):
            if tick == 2:
                together.leave([rows[0], rows[2]])
            found += [token.token for row, token in together.tick() if row is rows[1]]
    assert found == own


def test_joined_states_are_taken_apart_again() -> None:
    a, b = ({"h": torch.ones(1, 2)}, None), ({"h": torch.zeros(2, 2)}, None)
    both = joined([a, b])
    assert both[0]["h"].shape == (3, 2) and both[1] is None
    assert torch.equal(take(both, torch.tensor([1, 2]))[0]["h"], b[0]["h"])


class Running:
    """A step that makes many ticks of one row in a call; it remembers the rows of its own ticks, and its calls."""

    def __init__(self, model: Model) -> None:
        self.model, self.batches, self.calls = model, [], []

    def __call__(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        if x.shape[1] == 1:
            self.batches.append(len(x))
        return self.model.step(x, state)

    def run(self, y: Any, state: Any, history: Any, choose: Any, stops: Any, n_ticks: int, noise: Any) -> Ran | None:
        tokens: list[int] = []
        log_p: list[float] = []
        while len(tokens) < n_ticks:
            token = choose(y, history, noise(history.shape[1]))
            tokens.append(int(token))
            log_p.append(float(torch.log_softmax(y, -1)[0, tokens[-1]]))
            history = torch.cat([history, token[:, None]], 1)
            if tokens[-1] in stops:
                break
            logits, state = self.model.step(token[:, None], state)
            y = logits[:, -1]
        self.calls.append(len(tokens))
        return Ran(tokens, log_p, y, state)


@pytest.mark.parametrize(("rows", "top"), [(2, 0), (3, 0), (3, 1), (9, 0)])
def test_few_rows_are_written_one_after_another(rows: int, top: int) -> None:
    model, found = Model("gru").eval(), {}
    with torch.no_grad():
        prompt, decoding = torch.tensor([[5, 6]]), Decoding(seed=8, max_tokens=30).settled(True, 30)
        own = [alone(model, prompt, decoding, i) for i in range(rows)]
        step = Running(model)
        together = Together()
        for i in range(rows):
            row = Row(Begun(prompt, step, None), decoding, [STOP], [0], i, top)
            together.join(row)
            found[row] = []
        while len(together):
            for row, token in together.tick():
                found[row].append(token.token)
    assert list(found.values()) == own
    if top:
        assert step.batches and not step.calls  # alternatives are listed tick by tick
    elif rows <= 3:
        assert not step.batches and max(step.calls) > 4
    else:
        assert rows in step.batches or max(step.batches) > 3


class Failing(Model):
    """A model whose outputs are not finite after a token."""

    def step(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        y, state = super().step(x, state)
        return torch.where((x == V - 1)[..., None], torch.nan, y), state


@pytest.mark.parametrize("alike", [True, False])
def test_a_row_that_cannot_be_continued_leaves_and_the_others_stay(alike: bool) -> None:
    """Whether its choice fails, or all that is left of the vocabulary."""
    model = Failing("gru").eval()
    with torch.no_grad():
        decoding = Decoding(seed=3, max_tokens=20, temperature=0).settled(True, 20)
        prompts = [torch.tensor([[5, 6]]), torch.tensor([[5, V - 1]])]
        own = alone(model, prompts[0], decoding, 0)
        other = decoding if alike else decoding.model_copy(update={"repetition_penalty": 2.0})
        rows = [Row(Begun(prompts[k], model.step, None), [decoding, other][k], [STOP], [0], k) for k in range(2)]
        together, found, failed = Together(), [], []
        for row in rows:
            together.join(row)
        while len(together):
            for row, token in together.tick():
                if isinstance(token, Exception):
                    failed.append((row, str(token)))
                else:
                    found.append(token.token)
    assert found == own and len(failed) == 1 and failed[0][0] is rows[1] and "not finite" in failed[0][1]


def test_rows_whose_step_fails_leave_and_those_of_another_stay() -> None:
    model = Model("gru").eval()

    def broken(x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        if x.shape[1] == 1:
            raise MemoryError
        return model.step(x, state)

    with torch.no_grad():
        prompt, decoding = torch.tensor([[5, 6]]), Decoding(seed=3, max_tokens=20).settled(True, 20)
        own = alone(model, prompt, decoding, 1)
        together, told = Together(), []
        for k, step in enumerate((broken, model.step)):
            together.join(Row(Begun(prompt, step, None), decoding, [STOP], [0], k))
        while len(together):
            told += [token for _, token in together.tick()]
    assert [each.token for each in told if not isinstance(each, Exception)][-len(own) :] == own
    assert [type(each) for each in told if isinstance(each, Exception)] == [MemoryError]
