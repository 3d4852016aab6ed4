"""Notes are collected by whoever is tracing, and by nobody else."""

from __future__ import annotations

import threading

import pytest

from unrolled.core.trace import note, trace, tracing


def test_notes_arrive_in_order():
    with trace() as seen:
        note("a", 1)
        note("b", 2)
        note("a", 3)
    assert seen == {"a": [1, 3], "b": [2]}
    assert seen["never"] == []


def test_nothing_happens_outside():
    note("a", 1)
    with trace() as seen:
        pass
    note("a", 2)
    assert seen == {}


def test_tracing_tells():
    assert not tracing()
    with trace():
        assert tracing()
    assert not tracing()


def test_the_inner_trace_takes_the_notes():
    with trace() as outer:
        note("a", 1)
        with trace() as inner:
            note("a", 2)
        note("a", 3)
    assert outer == {"a": [1, 3]}
    assert inner == {"a": [2]}


def test_an_error_ends_the_trace():
    with pytest.raises(RuntimeError), trace():
        raise RuntimeError("inside")
    assert not tracing()


def test_threads_do_not_see_each_other():
    with trace() as seen:
        thread = threading.Thread(target=note, args=("a", 1))
        thread.start()
        thread.join()
    assert seen == {}
