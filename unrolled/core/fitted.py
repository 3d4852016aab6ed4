"""How a model was fitted in closed form: to which share of the training data, and what that left to be chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def share_of(size: int, limit: int | None) -> float:
    """The share of so many tokens that about `limit` of them are.

    >>> share_of(200, 50), share_of(20, 50), share_of(200, None)
    (0.25, 1.0, 1.0)
    """
    return 1.0 if limit is None or size <= limit else limit / size


class Fitted(NamedTuple):
    """How a model was fitted in closed form."""

    share: float = 1.0  # of the training data that was used
    chosen: Mapping[str, Any] = {}  # settings that held-out data decided, by name
    chosen_on: str = ""  # which data, as a sentence goes on: on validation data
    unused: str = ""  # what of the data the model has no use for, in words


def fitted(section: Any, size: int, limit: int | None, fit: Callable[[Any], Any]) -> Fitted:
    """Fit to a section of so many tokens, or to the share of it that has about `limit`."""
    share = share_of(size, limit)
    return Fitted(share, fit(section.share(share)) or {}, "on training data")
