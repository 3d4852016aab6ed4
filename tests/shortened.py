"""What the end of a run does is made short for tests: a text of a few tokens, few ticks that are timed.

Nearly every test that trains anything comes through here, and a third of its time went there.
"""

from __future__ import annotations

from unrolled.runs import cost
from unrolled.tasks import next_token


def shorten() -> None:
    cost.TICKS, cost.ROUNDS = 4, 1
    next_token.SAMPLE_TOKENS = 12
