"""n-grams against counting with dictionaries; the laws; what is saved and loaded."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, UsageError
from unrolled.core.spec import Sizes
from unrolled.data.examples import ENDS, Examples, Ragged
from unrolled.layers.counting import ngram as layer_file
from unrolled.models import ngram
from unrolled.models.ngram import Config, Positions, Solved, Tally, make
from unrolled.testing import check_causal

EMPTY, UNKNOWN, START, STOP, V = 0, 1, 2, 3, 9


def data_of(tokens: Any, offsets: Any, is_stream: bool, classes: Any = None, ends: Any = None) -> Examples:
    columns = {SOURCE: classes, ENDS: ends}
    given = {name: np.asarray(column) for name, column in columns.items() if column is not None}
    return Examples({TARGET: Ragged(tokens, (np.asarray(offsets),))}, given, is_stream)


def stream(n: int = 400, seed: int = 0) -> Examples:
    """A random text with some order in it."""
    random = np.random.default_rng(seed)
    tokens = [4]
    for _ in range(n - 1):
        tokens.append(4 + (tokens[-1] - 3) % 5 if random.random() < 0.6 else int(random.integers(4, V)))
    return data_of(np.array(tokens, dtype=np.uint16), np.array([0, n]), True)


def examples(seed: int = 1, **more: Any) -> Examples:
    lengths = [3, 0, 1, 12, 5, 7, 0, 4, 9, 2]
    text = stream(sum(lengths), seed).values(TARGET)
    return data_of(text, np.cumsum([0, *lengths]), False, **more)


def solved(data: Examples, ahead: int = 1, d_in: int = V, **settings: Any) -> Solved:
    model = make(Config(**settings), Sizes(d_in, V))
    model.solve(data, ahead=ahead)
    return model


def sequences(data: Examples) -> list[list[int]]:
    """The examples as lists, with what stands around them."""
    result = []
    for i, tokens in enumerate(data.fields[TARGET]):
        body = tokens.tolist()
        if not data.is_stream:
            body = [START, *body, *([STOP] if data.ends[i] else [])]
        if SOURCE in data.columns:
            body = [V + int(data.columns[SOURCE][i]), *body]
        result.append(body)
    return result


Table = dict[tuple[int, ...], Counter[int]]


def tables_by_hand(data: Examples, order: int, ahead: int) -> tuple[list[Table], list[Table]]:
    """n(c, w) and a(c, w) by context length, straight from the definitions."""
    n: list[Table] = [defaultdict(Counter) for _ in range(order)]
    before: dict[tuple[tuple[int, ...], int], set[int]] = defaultdict(set)
    began: Counter[tuple[tuple[int, ...], int]] = Counter()
    for s in sequences(data):
        first = 1 if SOURCE in data.columns else 0
        for t in range(first, len(s) - ahead):
            w = s[t + ahead]
            for k in range(min(order, t + 2)):
                c = tuple(s[t - k + 1 : t + 1])
                n[k][c][w] += 1
                if t - k >= 0:
                    before[c, w].add(s[t - k])
                else:
                    began[c, w] += 1
    a: list[Table] = [defaultdict(Counter) for _ in range(order)]
    for k in range(order):
        for c, followers in n[k].items():
            for w, count in followers.items():
                a[k][c][w] = count if k == order - 1 else len(before[c, w]) + began[c, w]
    return n, a


def by_hand(data: Examples, smoothing: str, order: int, context: list[int], ahead: int = 1) -> list[float]:
    """p(. | context), recursively."""
    n, a = tables_by_hand(data, order, ahead)

    def discount(k: int, count: int) -> float:
        sizes = Counter(x for followers in a[k].values() for x in followers.values())
        if not all(sizes[i] for i in (1, 2, 3, 4)):
            return 0.5
        i = min(count, 3)
        d = i - (i + 1) * sizes[1] / (sizes[1] + 2 * sizes[2]) * sizes[i + 1] / sizes[i]
        return min(max(d, 0.05), i - 0.05)

    def p(c: tuple[int, ...], w: int) -> float:
        shorter = p(c[1:], w) if c else (0.0 if w in (EMPTY, START) else 1 / (V - 2))
        followers = (n if smoothing == "witten-bell" else a)[len(c)].get(c)
        if not followers:
            return shorter
        total = sum(followers.values())
        if smoothing == "witten-bell":
            return (followers[w] + len(followers) * shorter) / (total + len(followers))
        taken = {x: discount(len(c), count) for x, count in followers.items()}
        own = followers[w] - taken[w] if w in followers else 0.0
        return (own + sum(taken.values()) * shorter) / total

    return [p(tuple(context[len(context) - order + 1 :]) if order > 1 else (), w) for w in range(V)]


DATA = {
    "stream": stream(),
    "examples": examples(),
    "cut": examples(ends=np.array([True, True, False, False, True, True, True, False, True, True])),
    "classes": examples(classes=np.array([0, 1] * 5)),
}


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("smoothing", ["kneser-ney", "witten-bell"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", DATA)
def test_probabilities_are_those_of_the_definition(name: str, order: int, smoothing: str, ahead: int) -> None:
    data = DATA[name]
    model = solved(data, ahead, d_in=V + (2 if name == "classes" else 0), order=order, smoothing=smoothing)
    x = sequences(data)[3][:9] if name != "stream" else data.values(TARGET)[:9].tolist()
    x += [UNKNOWN, 5, EMPTY, 6, STOP, 4, 4, 4]  # and contexts that were never seen
    y, _ = model(torch.tensor([x]))
    for t in range(len(x)):
        context = ([EMPTY] * order + x)[: t + 1 + order]
        torch.testing.assert_close(y[0, t].exp(), torch.tensor(by_hand(data, smoothing, order, context, ahead)))


@pytest.mark.parametrize("order", [1, 3, 6])
@pytest.mark.parametrize("smoothing", ["kneser-ney", "witten-bell"])
def test_rows_sum_to_one_and_empty_and_start_are_never_predicted(order: int, smoothing: str) -> None:
    x = torch.randint(0, V, (20, 30), generator=torch.Generator().manual_seed(0))
    for model in (make(Config(order=order), Sizes(V, V)), solved(examples(), order=order, smoothing=smoothing)):
        y, _ = model(x)
        p = y.exp()
        torch.testing.assert_close(p.sum(-1), torch.ones(20, 30))
        assert torch.isfinite(y).all()
        assert (p[..., [EMPTY, START]] == 0).all()
        assert (p[..., [UNKNOWN, *range(3, V)]] > 0).all()


def test_before_solving_it_is_uniform() -> None:
    y, _ = make(ngram.MODEL.tiny, Sizes(V, V))(torch.tensor([[4, 5]]))
    torch.testing.assert_close(y[0, 0, 4:], torch.full((5,), -math.log(V - 2)))


def laws(model: Solved, config: Config) -> list[str]:
    return check_causal(model, vocabulary=model.d_in, fresh=lambda: make(config, Sizes(model.d_in, model.d_out)))


@pytest.mark.parametrize("order", [1, 4])
def test_the_laws_hold_with_counts(order: int) -> None:
    assert "chunks" in laws(solved(stream(), order=order), Config(order=order))


def test_the_laws_hold_without() -> None:
    assert "chunks" in laws(make(ngram.MODEL.tiny, Sizes(V, V)), ngram.MODEL.tiny)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_any_cut_gives_the_same_and_the_state_is_the_last_tokens(order: int) -> None:
    model = solved(stream(), order=order)
    x = torch.randint(4, V, (3, 12), generator=torch.Generator().manual_seed(1))
    whole, last = model(x)
    assert torch.equal(last, x[:, 12 - (order - 1) :])
    for cut in range(1, 12):
        first, state = model(x[:, :cut])
        second, end = model(x[:, cut:], state)
        assert torch.equal(torch.cat([first, second], dim=1), whole)
        assert torch.equal(end, last)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_receptive_field_is_what_is_claimed(order: int) -> None:
    model = solved(stream(3000), order=order)
    assert model.receptive_field == max(order - 1, 1)
    x = torch.from_numpy(stream(3000).values(TARGET)[100:130].astype(np.int64))[None]
    y, _ = model(x)
    reach = 0
    for back in range(8):
        for token in range(4, V):
            changed = x.clone()
            changed[0, 20 - back] = token
            if not torch.equal(model(changed)[0][0, 20], y[0, 20]):
                reach = back + 1
    assert reach == order - 1


def test_save_and_load(tmp_path: Path) -> None:
    x = torch.randint(0, V, (2, 50))
    for config in (Config(order=1), Config(order=4)):
        model = solved(stream(), order=config.order)
        save_file(model.state_dict(), tmp_path / "model.safetensors")
        again = make(config, Sizes(V, V))
        again.load_state_dict(load_file(tmp_path / "model.safetensors"))
        assert torch.equal(again(x)[0], model(x)[0])
        unsolved = make(config, Sizes(V, V))
        save_file(unsolved.state_dict(), tmp_path / "model.safetensors")
        again.load_state_dict(load_file(tmp_path / "model.safetensors"))
        assert torch.equal(again(x)[0], unsolved(x)[0])


def test_loading_inside_another_module() -> None:
    outer, fresh = (torch.nn.ModuleDict({"body": make(ngram.MODEL.tiny, Sizes(V, V))}) for _ in range(2))
    outer["body"].solve(stream())  # type: ignore[operator]
    fresh.load_state_dict(outer.state_dict())
    assert torch.equal(fresh["body"].keys, outer["body"].keys)


@pytest.mark.parametrize(
    ("table", "damage", "message"),
    [
        ("keys", lambda t: t.flip(0), "contexts are not sorted"),
        ("keys", lambda t: torch.cat([t[:-1], t[-1:] + V * 10**6]), "contexts are not sorted"),
        ("keys", lambda t: t[:-1], "sizes do not match"),
        ("offsets", lambda t: t - 1, "next tokens of contexts"),
        ("offsets", lambda t: torch.cat([t[:1], t[:-2] * 0 + 10**9, t[-1:]]), "next tokens of contexts"),
        ("tokens", lambda t: t + V, "outside the vocabulary"),
        ("shares", lambda t: t * math.nan, "outside 0 to 1"),
        ("backoff", lambda t: t * 5, "outside 0 to 1"),
    ],
)
def test_damaged_tables_are_refused(table: str, damage: Any, message: str) -> None:
    saved = solved(stream()).state_dict()
    saved[table] = damage(saved[table])
    with pytest.raises(RuntimeError, match=message):
        make(Config(), Sizes(V, V)).load_state_dict(saved)


def test_missing_tables_are_named() -> None:
    saved = solved(stream()).state_dict()
    del saved["shares"]
    with pytest.raises(RuntimeError, match="shares"):
        make(Config(), Sizes(V, V)).load_state_dict(saved)


@pytest.mark.parametrize("name", DATA)
def test_counting_in_small_pieces_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    d_in = V + (2 if name == "classes" else 0)
    whole = solved(DATA[name], ahead=2, order=4, d_in=d_in).state_dict()
    for piece in (1, 7):
        monkeypatch.setattr(ngram, "PIECE", piece)
        for key, table in solved(DATA[name], ahead=2, order=4, d_in=d_in).state_dict().items():
            assert torch.equal(table, whole[key])


def test_predicting_in_small_pieces_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = solved(stream(), order=3), torch.randint(0, V, (4, 25))
    y, _ = model(x)
    for piece in (1, 30):
        monkeypatch.setattr(layer_file, "PIECE", piece)
        assert torch.equal(model(x)[0], y)


def test_tally_counts() -> None:
    random, tally = np.random.default_rng(0), Tally()
    pieces = [random.integers(0, 50, size) for size in (1, 100, 3, 0, 400, 17)]
    for piece in pieces:
        tally.add(piece)
    codes, counts = np.unique(np.concatenate(pieces), return_counts=True)
    assert np.array_equal(tally.result()[0], codes)
    assert np.array_equal(tally.result()[1], counts)


def test_pasts_do_not_cross_examples() -> None:
    data = data_of(np.array([5, 6, 7]), np.array([0, 2, 3]), False)
    (piece,) = Positions(data, order=3, ahead=1, d_out=V, with_classes=False)
    past, target = piece
    assert target.tolist() == [5, 6, STOP, 7, STOP]
    assert past.tolist() == [[START, 5, 6, START, 7], [-1, START, 5, -1, START]]


def test_a_class_changes_what_comes_first() -> None:
    tokens, classes = np.array([4, 5] * 30), np.array([0, 1] * 30)
    data = data_of(tokens, np.arange(61), False, classes=classes)
    model = solved(data, order=3, d_in=V + 2)
    for k in (0, 1):
        _, state = model(torch.tensor([[V + k]]))
        y, _ = model(torch.tensor([[START]]), state)
        assert y[0, 0].argmax().item() == 4 + k
        assert y[0, 0].exp().max() > 0.9


def test_longer_contexts_predict_better() -> None:
    train, test = stream(4000), torch.from_numpy(stream(1000, seed=5).values(TARGET).astype(np.int64))[None]

    def nats(model: Solved) -> float:
        y: Tensor = model(test[:, :-1])[0]
        return torch.nn.functional.cross_entropy(y[0], test[0, 1:]).item()

    assert nats(solved(train, order=2)) < 0.9 * nats(solved(train, order=1)) < math.log(V)
    assert nats(solved(train, order=5)) < 1.1 * nats(solved(train, order=2))  # nothing to gain, little to lose


def test_large_vocabularies_and_long_contexts_do_not_overflow() -> None:
    size = 60_000  # to the sixth power it would not fit 64 bits
    tokens = np.random.default_rng(0).integers(size - 50, size, 2000)
    model = make(Config(order=6), Sizes(size, size))
    model.solve(data_of(tokens, np.array([0, 2000]), True))
    y, _ = model(torch.from_numpy(tokens[None, 500:510]))
    assert y[0, -1].argmax().item() == tokens[510]
    torch.testing.assert_close(y.exp().sum(-1), torch.ones(1, 10))


def test_data_shorter_than_the_order() -> None:
    y, _ = solved(data_of(np.array([4, 5]), np.array([0, 2]), True), order=6)(torch.tensor([[4, 5, 4]]))
    assert y[0, 0].argmax().item() == 5
    torch.testing.assert_close(y.exp().sum(-1), torch.ones(1, 3))


def test_float64_follows_the_module() -> None:
    y, _ = solved(stream()).double()(torch.tensor([[4, 5]]))
    assert y.dtype == torch.float64


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(DataError, match="nothing to count"):
        solved(data_of(np.array([4]), np.array([0, 1]), True))
    with pytest.raises(DataError, match="token 40"):
        solved(data_of(np.array([4, 40, 4]), np.array([0, 3]), True))
    with pytest.raises(IndexError, match="outside the vocabulary of 9"):
        solved(stream())(torch.tensor([[V]]))
    with pytest.raises(UsageError, match="order"):
        Config.parse({"order": 7})
