"""The special tokens: first in every codec of tokens, with the same ids, because models and losses know them."""

from __future__ import annotations

EMPTY = 0  # padding
UNKNOWN = 1  # what training never showed
START = 2  # before an example
STOP = 3  # behind an example
SPECIALS = ("<empty>", "<unknown>", "<start>", "<stop>")  # their names, by id
MASK, CLASS, SEPARATOR = "<mask>", "<class>", "<separator>"  # names of more, which a task may ask its codec for
GAPS = (MASK, "[MASK]")  # how people write the place of a token that is to be predicted
BREAKS = (SEPARATOR, "[SEP]")  # and where a second segment begins
BYTE_VALUES = 256  # what a byte can be: so many tokens follow the special ones where every text can be written
NO_ANSWER = -1  # the class or tag where none is known, or there is no word
