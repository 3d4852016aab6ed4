"""All tests share one cache of prepared data, apart from the user's."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.shortened import shorten
from unrolled.core import discover

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are noisy
settings.load_profile("steady")
shorten()

LONG = ("tests/docs", "tests/comparison", "tests/learn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin first, so that no worker ends with one while the others have nothing left."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(autouse=True)
def _own_files_leave() -> Iterator[None]:
    """A user's file that joins in a test leaves with it: what comes after must not be made of it."""
    before = {room: {*room._files} for room in discover.JOINED}
    yield
    for room, names in before.items():
        for name in {*room._files} - names:
            room.forget(name)


@pytest.fixture(scope="session", autouse=True)
def _hears_interrupts() -> None:
    """Ctrl-C reaches the tests of it even where a shell started them in the background, which ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNROLLED_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield
