"""Requests that schemathesis derives from the OpenAPI document are never a failure of the server (`make soak`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

EXAMPLES = 60  # of each address
FEW = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck],
               phases=[Phase.explicit, Phase.generate])  # fmt: skip


SLOW = ("/exports", "/exports/{target}")  # to make them takes seconds
TRAINING = ("/training", "/uploads", "/data", "/comparisons")


@pytest.mark.long
def test_no_request_of_the_document_is_a_failure(address: str) -> None:
    _try(address, lambda path: True)


@pytest.mark.long
def test_no_request_to_a_server_that_trains_is_a_failure(served: Callable[..., Any], tmp_path: Path) -> None:
    with served([], train=tmp_path, seconds=20) as address:
        _try(address, lambda path: path.startswith(TRAINING))


def _try(address: str, wanted: Callable[[str], bool]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a package that is no part of this one
        schemathesis = pytest.importorskip("schemathesis", reason="the package schemathesis is not installed")
        schema = schemathesis.openapi.from_dict(httpx.get(f"{address}/openapi.json").json())
        schema.config.base_url = address
        tried, found = 0, [result.ok() for result in schema.get_all_operations()]
        found = [operation for operation in found if wanted(operation.path)]
        for operation in found:

            @settings(FEW, max_examples=5 if operation.path.endswith(SLOW) else EXAMPLES)
            @given(case=operation.as_strategy())
            def no_failure(case: Any) -> None:
                nonlocal tried
                tried += 1
                answer = case.call(base_url=address, timeout=60)
                late = answer.status_code == 504 and operation.path.endswith(SLOW)
                assert answer.status_code < 500 or late, (case.method, case.path, case.body, answer.text)
                assert answer.status_code < 400 or len(answer.content) < 4000

            no_failure()
        assert tried > 10 * len(found)
