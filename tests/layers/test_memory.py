"""Memories: storage, energy, updates and fixed points, against the page; the Hopfield layer against attention."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from unrolled.core.errors import UsageError
from unrolled.layers.memory.association import Association, Hopfield, Lookup
from unrolled.layers.memory.classical import Classical
from unrolled.layers.memory.continuous import GLOBAL, METASTABLE, SINGLE, Continuous, separation
from unrolled.layers.memory.dense import Dense
from unrolled.layers.memory.memory import CYCLE, FIXED, Memory, as_bits, as_signs
from unrolled.layers.readouts.hopfield import HopfieldPooling

D, N = 24, 5


def spins(n: int, d: int = D, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 2, (n, d), generator=torch.Generator().manual_seed(seed)).float() * 2 - 1


MEMORIES = {
    "hebb": lambda d: Classical(d),
    "threshold": lambda d: Classical(d, threshold=1.5, order="fixed"),
    "pseudo-inverse": lambda d: Classical(d, "pseudo-inverse"),
    "storkey": lambda d: Classical(d, "storkey"),
    "square": lambda d: Dense(d, 2),
    "cube": lambda d: Dense(d, 3, order="fixed"),
    "fourth": lambda d: Dense(d, 4),
    "exponential": lambda d: Dense(d, None),
    "continuous": lambda d: Continuous(d, 0.7),
}


@pytest.mark.parametrize("name", MEMORIES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), d=st.integers(2, 24))
def test_the_energy_never_rises(name: str, seed: int, n: int, d: int) -> None:
    """Several random states, updated three times: more than 10,000 transitions in all."""
    memory = MEMORIES[name](d)
    memory.store(spins(n, d, seed))
    xi = spins(8, d, seed + 1)
    for _ in range(3):
        after = memory.update(xi)
        before, now = memory.energy(xi), memory.energy(after)
        assert bool((now <= before + 1e-5 * before.abs().clamp(min=1)).all())
        xi = after


@pytest.mark.parametrize("name", MEMORIES)
def test_every_single_bit_lowers_the_energy(name: str) -> None:
    """One bit at a time, as the page says it: sgn of the difference between the two energies."""
    memory = MEMORIES[name](D)
    if isinstance(memory, Continuous):
        pytest.skip("its numbers are no bits")
    memory.store(spins(N))
    memory.order = "fixed"
    xi = spins(6, seed=3)
    expected = xi.clone()
    for l in range(D):  # noqa: E741
        up, down = expected.clone(), expected.clone()
        up[:, l], down[:, l] = 1, -1
        difference = (memory.energy(down) - memory.energy(up)).float()
        same = difference.abs() < 1e-4
        expected[:, l] = torch.where(same, expected[:, l], difference.sign())
    assert torch.equal(memory.update(xi), expected)


@pytest.mark.parametrize("degree", [2, 3, 4, None])
def test_both_forms_of_the_dense_update(degree: int | None) -> None:
    """(7.5) with its factor xi[l], and the form of the papers without: the same."""
    memory = Dense(D, degree, updates="synchronous")
    memory.store(spins(N))
    xi = spins(6, seed=4)
    for l in range(D):  # noqa: E741
        turned, up, down = xi.clone(), xi.clone(), xi.clone()
        turned[:, l] *= -1
        up[:, l], down[:, l] = 1, -1
        with_factor = (memory.energy(turned) - memory.energy(xi)).sign() * xi[:, l]
        without = (memory.energy(down) - memory.energy(up)).sign()
        assert torch.equal(with_factor, without)
        assert torch.equal(memory.update(xi)[:, l].double(), torch.where(without == 0, xi[:, l], without))


def test_hebb_is_a_sum_of_outer_products() -> None:
    memory, X = Classical(4), spins(3, 4)
    memory.store(X)
    expected = sum(torch.outer(x, x) for x in X) - 3 * torch.eye(4)
    assert torch.equal(memory.W, expected)


def test_storkey_is_the_rule_of_the_paper() -> None:
    memory, X = Classical(5, "storkey"), spins(3, 5)
    memory.store(X)
    W = torch.zeros(5, 5)
    for x in X:
        new = W.clone()
        for i in range(5):
            for j in range(5):
                h_ij = sum(W[i, k] * x[k] for k in range(5) if k not in (i, j))
                h_ji = sum(W[j, k] * x[k] for k in range(5) if k not in (i, j))
                new[i, j] += (x[i] * x[j] - x[i] * h_ji - h_ij * x[j]) / 5
        W = new.fill_diagonal_(0)
    torch.testing.assert_close(memory.W, W)


def test_the_pseudo_inverse_keeps_correlated_patterns() -> None:
    """Hebb's rule loses them."""
    base, kept = spins(1, 60), []
    for i in range(20):
        x = base[0].clone()
        x[3 * i : 3 * i + 3] *= -1
        kept.append(x)
    X = torch.stack(kept)
    for rule, whole in (("pseudo-inverse", True), ("hebb", False)):
        memory = Classical(60, rule)  # type: ignore[arg-type]
        memory.store(X)
        assert bool(torch.equal(memory.recall(X).state, X)) == whole


@pytest.mark.parametrize("updates", ["asynchronous", "synchronous"])
def test_couplings_that_are_rounding_move_nothing(updates: str) -> None:
    """From d independent patterns on, the projection is the identity, whose diagonal is left out."""
    memory, X = Classical(30, "pseudo-inverse", updates=updates), spins(60, 30)  # type: ignore[arg-type]
    memory.store(X)
    assert not bool(memory.W.any())
    assert torch.equal(memory.update(X), X)


def test_a_synchronous_two_cycle_is_named() -> None:
    memory = Classical(2, updates="synchronous")
    memory.store(torch.tensor([[1.0, 1.0]]))
    found = memory.recall(torch.tensor([[1.0, -1.0], [1.0, 1.0]]))
    assert found.how == [CYCLE, FIXED]
    assert found.steps.tolist() == [1, 0]


def test_a_tie_keeps_the_bit() -> None:
    memory = Classical(3, updates="synchronous")
    memory.store(torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]))  # the third bit feels nothing
    xi = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    assert torch.equal(memory.update(xi), xi)


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
@settings(max_examples=60, deadline=None)
@given(d=st.integers(3, 10), n=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_ties_of_dense_memories_are_those_of_whole_numbers(degree: int, d: int, n: int, seed: int) -> None:
    """Overlaps are whole numbers, so that the energy of every state has no rounding, and ties are frequent."""
    X, first = spins(n, d, seed).int().tolist(), spins(1, d, seed + 1).int()[0].tolist()
    state, together = list(first), []
    for l in range(d):  # noqa: E741
        for xi, turned in ((first, together), (state, None)):
            m = [sum(x * s for x, s in zip(row, xi)) - row[l] * xi[l] for row in X]  # without bit l
            up, down = (sum((each + s * row[l]) ** degree for each, row in zip(m, X)) for s in (1, -1))
            bit = 1 if up > down else -1 if up < down else xi[l]
            if turned is None:
                xi[l] = bit
            else:
                turned.append(bit)
    for updates, expected in (("asynchronous", state), ("synchronous", together)):
        memory = Dense(d, degree, updates=updates, order="fixed")  # type: ignore[arg-type]
        memory.store(torch.tensor(X).float())
        assert memory.update(torch.tensor([first]).float())[0].tolist() == expected


def test_a_tie_of_the_pseudo_inverse_keeps_the_bit() -> None:
    """The field of bit 5 is 0 but for rounding."""
    memory = Classical(8, "pseudo-inverse", updates="synchronous")
    memory.store(torch.tensor([
        [-1.0, 1, -1, 1, -1, 1, -1, 1], [1, -1, 1, 1, -1, -1, 1, -1], [1, 1, -1, -1, 1, -1, 1, -1],
        [1, 1, 1, 1, 1, 1, 1, -1],
    ]))  # fmt: skip
    W, last = memory.W.double(), 1.0
    for xi in (torch.tensor([[-1.0, -1, 1, -1, -1, s, -1, 1]]) for s in (1, -1)):
        assert float((xi.double() @ W)[0, 5].abs()) < 1e-6
        assert memory.update(xi)[0, 5] == last
        last = -last


def test_the_end_of_a_cycle_does_not_depend_on_other_rows() -> None:
    memory = Classical(16, updates="synchronous")
    memory.store(spins(4, 16))
    xi = spins(40, 16, seed=1)
    whole = memory.recall(xi)
    assert whole.how.count(CYCLE) > 1 and len(set(whole.steps.tolist())) > 2
    for i, row in enumerate(xi):
        alone = memory.recall(row[None])
        assert torch.equal(alone.state[0], whole.state[i])
        assert alone.how[0] == whole.how[i] and alone.steps[0] == whole.steps[i]


def test_a_threshold_is_the_field_to_overcome() -> None:
    memory = Classical(2, updates="synchronous", threshold=2.0)
    memory.store(torch.tensor([[1.0, 1.0]]))
    assert memory.update(torch.tensor([[1.0, 1.0]])).tolist() == [[-1.0, -1.0]]


def test_damaged_patterns_are_recalled_and_rows_are_independent() -> None:
    X = spins(40, 64)
    damaged = X.clone()
    damaged[:, :6] *= -1
    memory = Dense(64, None)
    memory.store(X)
    found = memory.recall(damaged, path=True)
    assert torch.equal(found.state, X) and set(found.how) == {FIXED}
    assert found.path is not None and torch.equal(found.path[0], damaged) and torch.equal(found.path[-1], X)
    assert torch.equal(memory.recall(damaged[3:4]).state[0], found.state[3])
    assert memory.nearest(damaged).tolist() == list(range(40))


def test_the_continuous_energy_and_update_are_those_of_the_page() -> None:
    X, beta = torch.randn(7, 5, generator=torch.Generator().manual_seed(1)), 0.8
    memory = Continuous(5, beta)
    memory.store(X)
    xi = torch.randn(3, 5, generator=torch.Generator().manual_seed(2))
    for row, energy, after in zip(xi, memory.energy(xi), memory.update(xi)):
        lse = math.log(sum(math.exp(beta * float(x @ row)) for x in X)) / beta
        M = max(float(x.norm()) for x in X)
        expected = -lse + 0.5 * float(row @ row) + math.log(7) / beta + 0.5 * M**2
        assert float(energy) == pytest.approx(expected, rel=1e-5)
        p = torch.softmax(beta * X @ row, 0)
        torch.testing.assert_close(after, p @ X)


def test_three_kinds_of_fixed_points() -> None:
    X = torch.cat([10 * torch.eye(4, 8), 10 * torch.eye(8)[4] + 0.01 * torch.randn(2, 8)])
    for beta, index, expected in ((1.0, 0, SINGLE), (1.0, 4, METASTABLE), (1e-4, 0, GLOBAL)):
        memory = Continuous(8, beta)
        memory.store(X)
        found = memory.recall(X[index : index + 1])
        assert found.how == [FIXED]
        assert memory.kinds(found.state) == [expected]


def test_the_separation_of_patterns() -> None:
    X = torch.randn(9, 4, generator=torch.Generator().manual_seed(1))
    for n, delta in enumerate(separation(X).tolist()):
        assert delta == pytest.approx(
            float(X[n] @ X[n]) - max(float(X[n] @ X[m]) for m in range(9) if m != n), abs=1e-5
        )


def test_the_proposed_beta_recalls_noisy_patterns() -> None:
    random = torch.Generator().manual_seed(0)
    X = torch.randn(1000, 64, generator=random)
    memory = Continuous(64)
    memory.store(X)
    noisy = X + 0.5 * torch.randn(1000, 64, generator=random)
    error = (memory.update(noisy) - X).norm(dim=1) / X.norm(dim=1)
    assert float((error <= 0.1).double().mean()) >= 0.99


def test_values_are_read_where_a_pattern_is_recalled() -> None:
    X = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
    memory = Continuous(16, 50.0)
    memory.store(X, F.one_hot(torch.arange(6)).float())
    assert memory.read(X).argmax(1).tolist() == list(range(6))
    spin = Dense(16, 3)
    spin.store(X.sign(), torch.arange(6.0)[:, None])
    assert spin.read(X.sign()).flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Continuous(4, 0.0), "beta = 0: expected a number > 0"),
        (lambda: Dense(4, 1), "degree = 1"),
        (
            lambda: Classical(4).store(torch.zeros(2, 3)),
            "a pattern has 4 numbers here, found an array",
        ),
        (lambda: Classical(4).store(torch.zeros(0, 4)), "there is no pattern"),
        (lambda: Classical(4).store(torch.tensor([[0.0, 1, 1, 0]])), "as_signs turns 0 and 1"),
        (lambda: Classical(4).store(torch.full((1, 4), 0.5)), "-1 and \\+1 here, found 0.5"),
        (lambda: Continuous(4).store(torch.tensor([[1.0, math.nan, 1, 1]])), "not finite"),
        (lambda: Classical(4).recall(spins(1, 4)), "the memory is empty"),
        (lambda: Classical(4).store(spins(2, 4), torch.zeros(3, 1)), "2 patterns, but 3 values"),
        (lambda: as_signs(torch.tensor([0.5])), "bits are 0 and 1"),
    ],
)
def test_wrong_patterns(wrong: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        wrong()  # type: ignore[operator]


def test_bits_and_signs() -> None:
    assert torch.equal(as_bits(as_signs(torch.tensor([0.0, 1.0]))), torch.tensor([0.0, 1.0]))


# ---- the Hopfield layer


def test_one_update_is_scaled_dot_product_attention() -> None:
    torch.manual_seed(0)
    layer, R, Y = Hopfield(6, 7, 8, 5), torch.randn(2, 3, 6), torch.randn(2, 4, 7)
    Q, K = R @ layer.W_q.weight.T, Y @ layer.W_k.weight.T
    V = K @ layer.W_v.weight.T
    expected = F.scaled_dot_product_attention(Q, K, F.pad(V, (0, 3)))[..., :5]
    torch.testing.assert_close(layer(R, Y), expected)


def test_several_updates_and_a_mask() -> None:
    torch.manual_seed(0)
    layer, R, Y = Hopfield(6, 6, 6, 6, updates=3, beta=2.0), torch.randn(2, 3, 6), torch.randn(2, 4, 6)
    mask = torch.tensor([[True, True, True, False], [False] * 4])
    Q, K = R[0] @ layer.W_q.weight.T, (Y[0] @ layer.W_k.weight.T)[:3]
    for _ in range(2):
        Q = torch.softmax(2 * Q @ K.T, 1) @ K
    found = layer(R, Y, mask)
    torch.testing.assert_close(found[0], torch.softmax(2 * Q @ K.T, 1) @ K @ layer.W_v.weight.T)
    assert not bool(found[1].any())


def test_beta_is_learned_where_asked() -> None:
    torch.manual_seed(0)
    layer = Hopfield(4, 4, 4, 4, updates=2, beta="learned")
    layer(torch.randn(1, 2, 4), torch.randn(1, 5, 4)).square().sum().backward()
    assert layer.log_beta.grad is not None and float(layer.log_beta.grad) != 0
    with pytest.raises(UsageError, match="'learned'"):
        Hopfield(4, 4, 4, 4, beta="learnt")


def test_the_three_uses() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    assert Association(4, 6)(x, y).shape == (2, 3, 4)
    lookup = Lookup(4, 9, 7)
    assert lookup(x).shape == (2, 3, 7)
    torch.testing.assert_close(lookup(x)[1, 2], lookup(x[1:, 2:])[0, 0])
    pooled = HopfieldPooling(4)(x, torch.tensor([[True, True, False], [True] * 3]))
    assert pooled.shape == (2, 4)


def test_memories_are_modules_with_their_patterns_saved() -> None:
    for make in MEMORIES.values():
        first, second = make(D), make(D)
        first.store(spins(N))
        second.load_state_dict(first.state_dict())
        xi = spins(3, seed=9)
        assert isinstance(second, Memory)
        torch.testing.assert_close(first.update(xi), second.update(xi))
