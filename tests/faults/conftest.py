"""What the trials share."""

from __future__ import annotations

from types import ModuleType

import pytest

import tests.faults.server


@pytest.fixture(scope="session")
def server() -> ModuleType:
    """`server.run(...)`: a disturbed trial of the command line."""
    return tests.faults.server
