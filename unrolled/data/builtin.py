"""Real data that every Python installation already has: no download, no licence question, good for a first try."""

from __future__ import annotations

import os
import sysconfig
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError, Misused, UsageError, nearest

SIZES = ("examples", "length")  # settings of generated data
Loaded = str | list[Path] | list[dict[str, str]]


@dataclass(frozen=True)
class Builtin:
    """A set of built-in data: what it is, under which licence, about how large, and how to get it."""

    description: str
    licence: str
    size: str
    examples: str
    columns: tuple[str, ...]
    load: Callable[[], Loaded]


def _python_docs() -> str:
    """The topics that `help()` shows, in alphabetical order."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "builtin:python-docs: this Python was installed without pydoc_data; install its full standard library, "
            "or use builtin:python-source"
        ) from None
    return "\n\n".join(topics[name].strip("\n") for name in sorted(topics)) + "\n"


def _python_source() -> list[Path]:
    """The modules of the standard library, without tests and without what was installed into it."""
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
    files: list[Path] = []
    for folder, folders, found in os.walk(root):
        folders[:] = [name for name in folders if name not in left_out]
        files += [Path(folder) / name for name in found if name.endswith(".py")]
    readable = [path for path in sorted(files) if _is_text(path)]
    if not readable:
        raise DataError("builtin:python-source: this Python was installed without the source of its library")
    return readable


def _is_text(path: Path) -> bool:
    """Not empty and UTF-8 throughout: a few old modules are in other encodings."""
    try:
        data = path.read_bytes()
        return bool(data.decode("utf-8")) and b"\0" not in data
    except (UnicodeDecodeError, OSError):
        return False


def _unicode_names() -> list[dict[str, str]]:
    """Names of letters without their first word, which is the class: {'script': 'GREEK', 'text': 'SMALL ...'}."""
    hangul_syllables = range(0xAC00, 0xD7A4)  # eleven thousand names by one rule would drown the others
    rows = []
    for point in range(0x20000):
        script, _, rest = unicodedata.name(chr(point), "").partition(" ")
        is_letter = unicodedata.category(chr(point)).startswith("L") and point not in hangul_syllables
        if rest and is_letter and not any(c.isdigit() for c in rest):
            rows.append({"script": script, "text": rest})
    counts = Counter(row["script"] for row in rows)
    return [row for row in rows if counts[row["script"]] >= 100]


def _paired() -> Loaded:
    """Pairs of texts are read by data/pairs.py; here is no text."""
    raise UsageError("this built-in data is pairs of texts; use it with translate")


def _pictured() -> Loaded:
    """Pictures with captions are read by data/captions.py; here is no text."""
    raise UsageError("this built-in data is pictures with captions; use it with caption")


def _labelled() -> Loaded:
    """Examples with answers are read by data/labelled.py; here is no text."""
    raise UsageError("this built-in data has series with answers, no text; use it with classify, regress or denoise")


_SETS = {
    "python-docs": Builtin(
        "the reference of the Python language, as shown by help(): English prose and code",
        "PSF", "0.5 MB", "stream", (), _python_docs,
    ),
    "python-source": Builtin(
        "the source of Python's standard library without its tests: code and comments",
        "PSF", "about 12 MB", "stream", (), _python_source,
    ),
    "unicode-names": Builtin(
        "names of the letters of Unicode with the script they belong to, which may be the condition",
        "Unicode (through Python's unicodedata)", "about 10,000 rows", "rows", ("script", "text"), _unicode_names,
    ),
    "digits": Builtin(
        "handwritten digits of 8 x 8 pixels as 8 steps of 8 numbers, for classify",
        "BSD (through scikit-learn)", "1,797 series", "labelled", (), _labelled,
    ),
    "adding": Builtin(
        "the adding problem: the sum of the two marked numbers, for regress; builtin:adding,length=600,examples=20000",
        "generated", "10,000 series", "labelled", (), _labelled,
    ),
    "maximum": Builtin(
        "the largest of 50 random numbers, for regress",
        "generated", "5,000 series", "labelled", (), _labelled,
    ),
    "sinusoids": Builtin(
        "sums of sinusoids in noise at 0 dB with the clean series, for denoise",
        "generated", "2,000 series", "labelled", (), _labelled,
    ),
    "dates": Builtin(
        "dates in 24 languages and 12 styles with their ISO form, for translate; new dates and combinations held out",
        "Unicode (through Babel)", "33,000 pairs", "pairs", (), _paired,
    ),
    "numbers": Builtin(
        "numbers in words, English to French, for translate; builtin:numbers,from=french is the other way",
        "generated", "20,000 pairs", "pairs", (), _paired,
    ),
    "reversal": Builtin(
        "letters and the same backwards, for translate; builtin:reversal,length=40",
        "generated", "20,000 pairs", "pairs", (), _paired,
    ),
    "shapes": Builtin(
        "pictures of two coloured shapes with captions, for caption; pairs of shapes held out",
        "generated", "12,000 pictures", "pictures", (), _pictured,
    ),
}  # fmt: skip


def names() -> list[str]:
    return sorted(_SETS)


def about(name: str) -> dict[str, Any]:
    """Description, licence, size, examples and columns of one set; loads nothing."""
    data = _find(name)
    return {
        "name": f"builtin:{name}",
        "description": data.description,
        "licence": data.licence,
        "size": data.size,
        "examples": data.examples,
        "columns": list(data.columns),
    }


def is_usual(source: str) -> bool:
    """Whether `builtin:NAME,setting=value` is no more work to make than `builtin:NAME`, whose sizes we chose."""
    from unrolled.data import captions, labelled_builtin, pair_builtin

    made = {name: each.settings for name, each in (labelled_builtin.PROBLEMS | pair_builtin.PROBLEMS).items()}
    name, *words = source.removeprefix("builtin:").split(",")
    usual = {"shapes": captions.SHAPES, **made}.get(name, {})
    asked = {**usual}
    for word in words:
        key, _, value = word.partition("=")
        with suppress(ValueError):  # what is no number is refused when it is opened
            asked |= {key: int(value)} if key in SIZES else {}
    return all(have <= most for have, most in zip(_work(asked), _work(usual), strict=True))


def _work(settings: Mapping[str, Any]) -> tuple[int, int]:
    """Examples, and steps of all of them."""
    examples, length = (int(settings.get(name, 1)) for name in SIZES)
    return examples, examples * length


def load(name: str) -> Loaded:
    """One text, a list of text files, or rows with named values."""
    return _find(name).load()


def _find(name: str) -> Builtin:
    if name not in _SETS:
        raise Misused(f"there is no built-in data '{name}'; {nearest(name, _SETS)}")
    return _SETS[name]
