"""The ids of the special tokens, the same in every codec of tokens."""

from __future__ import annotations

EMPTY, UNKNOWN, START, STOP = 0, 1, 2, 3  # padding, what training never showed, and the ends of an example
