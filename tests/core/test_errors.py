"""Errors: one class per exit code, and help with misspelt names."""

from __future__ import annotations

import pytest

from unrolled.core import errors
from unrolled.core.errors import UnrolledError, nearest

CODES = {
    "UnrolledError": 1,
    "UsageError": 2,
    "DataError": 3,
    "Diverged": 4,
    "CannotWrite": 5,
    "OutOfMemory": 6,
    "Interrupted": 75,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_exit_codes(name, code):
    kind = getattr(errors, name)
    assert kind.exit_code == code
    assert issubclass(kind, UnrolledError)
    assert str(kind("one sentence")) == "one sentence"


def test_every_error_class_has_a_code_of_its_own():
    named = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, UnrolledError)]
    found = {k.__name__: k.exit_code for k in named if "exit_code" in vars(k)}  # a kind of another error has its code
    assert found == CODES
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("lstmm", ["gru", "lstm"], "did you mean 'lstm'? Known: gru, lstm"),
        ("linear_rnn", ["linear-rnn", "elman"], "did you mean 'linear-rnn'? Known: elman, linear-rnn"),
        ("zzz", ["gru", "lstm"], "known: gru, lstm"),
        ("zzz", [], "there are none"),
        ("gru", iter(["b", "a"]), "known: a, b"),
    ],
)
def test_nearest(name, known, expected):
    assert nearest(name, known) == expected
