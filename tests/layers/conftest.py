"""Every cell of the package, by name, for the tests that all of them must pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from unrolled.layers.recurrent.cells import (
    GRU,
    LSTM,
    BookGRU,
    Cell,
    Elman,
    Jordan,
    LinearUnit,
    Memoryless,
    OutputFeedback,
)  # fmt: skip

D = 3

CELLS: dict[str, Callable[[int], Cell]] = {  # name -> a cell whose state is n wide
    "memoryless": lambda n: Memoryless(D, n),
    "linear": lambda n: LinearUnit(D, n),
    "elman-tanh": lambda n: Elman(D, n),
    "elman-relu": lambda n: Elman(D, n, "relu"),
    "elman-sigmoid": lambda n: Elman(D, n, "sigmoid", bias=False),
    "elman-identity": lambda n: Elman(D, n, "identity"),
    "elman-own": lambda n: Elman(D, n, torch.sin),
    "jordan": lambda n: Jordan(D, n + 1, n),
    "feedback": lambda n: OutputFeedback(D, n // 2, n - n // 2),
    "feedback-identity": lambda n: OutputFeedback(D, n - D, D, transform="identity"),
    "lstm": lambda n: LSTM(D, n // 2),
    "lstm-projected": lambda n: LSTM(D, n - n // 3, n // 3),
    "lstm-unbiased": lambda n: LSTM(D, n // 2, bias=False),
    "gru": lambda n: GRU(D, n),
    "gru-unbiased": lambda n: GRU(D, n, bias=False),
    "book-gru": lambda n: BookGRU(D, n),
    "book-gru-unbiased": lambda n: BookGRU(D, n, bias=False),
}


@pytest.fixture(params=sorted(CELLS))
def make_cell(request: pytest.FixtureRequest) -> Callable[[int], Cell]:
    torch.manual_seed(7)
    return CELLS[request.param]


@pytest.fixture
def cell(make_cell: Callable[[int], Cell]) -> Cell:
    return make_cell(6).double()
