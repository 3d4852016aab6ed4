"""How the files of a command are read: encoding, separator and decimal sign, where they are given and not found out.

They hold for every file that is opened within a block, whichever reader opens it. Those of a saved run are a habit: a
later file may have another form, so each file is looked at first.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

T = TypeVar("T")
SIGNS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|", "space": " "}


class FileForm(NamedTuple):
    """What is given; None is found out for each file."""

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    is_habit: bool = False
    """whether it is that of other data, of which a file may differ"""
    told: dict[str, None] | None = None
    """what was found out of files, for a caller who does not see the notes of each"""


FOUND_OUT = FileForm()
_form: ContextVar[FileForm] = ContextVar("form")


def current_form() -> FileForm:
    return _form.get(FOUND_OUT)


@contextmanager
def files_as(form: FileForm) -> Iterator[None]:
    """A block in which files are opened so."""
    token = _form.set(form)
    try:
        yield
    finally:
        _form.reset(token)


def each_within(block: Callable[[], AbstractContextManager[None]], items: Callable[[], Iterable[T]]) -> Iterator[T]:
    """The items of a call, which is made within a block, and so is each of them; nothing of it holds outside."""
    with block():
        left = iter(items())
    while True:
        with block():
            try:
                item = next(left)
            except StopIteration:
                return
        yield item


def checked_encoding(name: str) -> str:
    """The name of an encoding of text, as Python writes it.

    >>> checked_encoding("Windows-1251"), checked_encoding("UTF8")
    ('cp1251', 'utf-8')
    """
    try:
        found = codecs.lookup(name)
        b"a".decode(name, "replace")
    except (LookupError, ValueError):  # unknown, no text, or no name at all
        known = "utf-8, utf-16, cp1252 (Western), cp1250 (Central European), cp1251 (Cyrillic), shift_jis or gb18030"
        raise ValueError(f"'{name}' is not a text encoding: expected a name such as {known}") from None
    return found.name


def checked_separator(sign: str) -> str:
    r"""One character between cells; those that a shell makes hard to type have names.

    >>> checked_separator("tab"), checked_separator(";")
    ('\t', ';')
    """
    sign = SIGNS.get(sign.lower(), sign)
    if len(sign) != 1 or sign in '"\r\n' or sign.isalnum():
        raise ValueError(f"'{sign}' cannot separate columns: expected one character such as ',', ';' or '|', or tab")
    return sign
