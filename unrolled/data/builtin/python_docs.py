"""The reference of the Python language: the topics that `help()` shows, in alphabetical order."""

from __future__ import annotations

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec
from unrolled.core.errors import DataError


def read(_: Config) -> str:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "builtin:python-docs: this Python was installed without pydoc_data; install its full standard library, "
            "or use builtin:python-source"
        ) from None
    return "\n\n".join(topics[name].strip("\n") for name in sorted(topics)) + "\n"


BUILTIN = BuiltinSpec(
    summary="the Python language reference, as shown by help(): English prose and code",
    licence="PSF",
    size="0.5 MB",
    holds="text",
    use="next-token",
    read=read,
)
