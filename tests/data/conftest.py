"""Prepared data of these tests goes to a directory of their own."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    before = os.environ.get("UNROLLED_CACHE")
    os.environ["UNROLLED_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["UNROLLED_CACHE"]
    else:
        os.environ["UNROLLED_CACHE"] = before
