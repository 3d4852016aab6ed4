"""Signals that arrive outside of the loop."""

from __future__ import annotations

import os
import signal

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
