"""Signals that arrive outside of the loop."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from unrolled.core.errors import DataError
from unrolled.training.signals import stop_at_once


def test_a_stop_is_a_stop_also_where_a_library_makes_an_error_of_it() -> None:
    with pytest.raises(KeyboardInterrupt), stop_at_once():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            raise ValueError("Invalid affine transformation matrix") from None


@pytest.mark.parametrize("error", [ValueError, DataError])
def test_errors_without_a_signal_are_what_they_are(error: type[Exception]) -> None:
    with pytest.raises(error), stop_at_once():
        raise error("by itself")


class Ends:
    """Something that a signal reaches while it is destroyed."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_in_a_destructor_is_not_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    went_on = False
    with pytest.raises(KeyboardInterrupt), stop_at_once():
        Ends()
        time.sleep(5)
        went_on = True
    assert not went_on
    assert capsys.readouterr().err == ""


def test_a_signal_in_a_destructor_at_the_end_is_not_dropped() -> None:
    with pytest.raises(KeyboardInterrupt), stop_at_once():
        Ends()


def test_other_errors_of_destructors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    class Fails:
        def __del__(self) -> None:
            raise ValueError("in vain")

    with stop_at_once():
        Fails()
    assert len(told) == 1
    assert sys.unraisablehook == told.append
