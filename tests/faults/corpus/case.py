"""What a case of the corpus is: files, a command line, the exit code, and the words that the answer must hold."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Content = bytes | str | Callable[[Path], Any]
"""of a file: its bytes, its text in UTF-8, or a function that makes whatever is to be at a path"""
Files = Mapping[str, Content]

MODELS = {
    "next-token": "elman",
    "next-frame": "elman",
    "classify": "elman",
    "regress": "elman",
    "tag": "elman",
    "denoise": "elman",
    "translate": "encdec",
    "caption": "encdec",
    "recognise": "encdec",
    "forecast": "elman",
    "handwriting": "elman",
    "word-vectors": "word2vec",
}


@dataclass(frozen=True)
class Case:
    """One trial. `words` are those of a command, or a task, its data and settings `key=value`, which `train` is to
    learn. `says` must all be in the answer, whatever their case: on standard error where it is refused, in the notes or
    on standard output where it is accepted. `facts` are of what was read, by name."""

    name: str
    words: str
    files: Files
    code: int
    says: tuple[str, ...]
    facts: Mapping[str, Any]
    long: bool = False
    """Whether only the long form tries it."""

    @property
    def asked(self) -> list[str]:
        return shlex.split(self.words)

    @property
    def learns(self) -> bool:
        """Whether this is a task to be learned, not a command."""
        return self.asked[0] in MODELS and not self.asked[1].endswith("-run")

    @property
    def is_read(self) -> bool:
        """Whether it shows already where data is read."""
        return not self.long and (self.learns or (self.asked[0] == "data" and "--" not in self.asked))

    @property
    def is_tried(self) -> bool:
        """Whether it needs a process of its own, also in the short form."""
        return not self.long and not self.is_read

    def command(self) -> list[str]:
        """The words of the command line."""
        task, *rest = self.asked
        if not self.learns:
            return self.asked
        source, *settings = rest
        words = ["train", source, "--task", task, "--model", MODELS[task], "--steps", "1", "-o", "run"]
        return [*words, *(word for each in settings for word in ("--set", each))]

    def make(self, folder: Path) -> None:
        """Put the files into a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if callable(content):
                content(path)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)


def bad(name: str, words: str, files: Files, *says: str, long: bool = False) -> Case:
    """Data that must be refused with a sentence."""
    return Case(name, words, files, 3, says, {}, long)


def asks(name: str, words: str, files: Files, *says: str) -> Case:
    """A command that names something that is not there, or leaves open what cannot be chosen for the user."""
    return Case(name, words, files, 2, says, {})


def good(name: str, words: str, files: Files, *says: str, **facts: Any) -> Case:
    """Odd data that is read rightly."""
    return Case(name, words, files, 0, says, facts)


def left_out(name: str, words: str, files: Files, *says: str, examples: int) -> list[Case]:
    """A bad pair, which is refused, or left out where that is asked for."""
    asked = f"{words} skip_bad=true"
    return [bad(name, words, files, *says), good(f"{name}, left out", asked, files, *says, examples=examples)]
