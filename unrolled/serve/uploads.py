"""Files that visitors of the page upload: in one folder, under names that the server makes, bounded. Imports no torch.

FOLDER/uploads/0f3a..9c/reviews.csv       one folder for each file; its name is made of plain letters
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core import discover
from unrolled.core.outside import FULL
from unrolled.serve.body import DRAINED, Sent
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused

FOLDER = "uploads"
DAYS = 7.0  # after which a file that nothing uses is removed
LONGEST = 60  # letters of a name
STEP = 2**20  # bytes after which it is looked whether there is room for more
NAME = re.compile(r"[0-9a-f]{16}")
TEXTS = (".txt",)  # what is read without a reader of its own


class Upload(NamedTuple):
    """A file that was uploaded; `number` is what clients call it by."""

    number: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size


class Uploads:
    """The uploaded files of a server."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self._limits = folder / FOLDER, limits
        self.used: Collection[Path] = ()  # what must stay
        self._coming: dict[str, int] = {}  # bytes of the files that are arriving

    def all(self) -> list[Upload]:
        """Those that are there, the oldest first."""
        if not self.folder.is_dir():
            return []
        places = [each for each in self.folder.iterdir() if NAME.fullmatch(each.name) and not each.is_symlink()]
        places.sort(key=lambda each: each.stat().st_mtime)
        found = [(each.name, [file for file in each.iterdir() if not file.name.startswith(".")]) for each in places]
        return [Upload(number, files[0]) for number, files in found if len(files) == 1]

    def require(self, number: object) -> Upload:
        found = next((each for each in self.all() if each.number == number), None)
        if found is None:
            raise Refused(404, "there is no such file any more; upload it again", "file_not_found")
        return found

    async def take(self, request: Sent, name: str) -> Upload:
        """The file that a request holds."""
        kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/octet-stream":
            raise Refused(415, "expected a body of the type application/octet-stream", "content_type")
        number, plain = secrets.token_hex(8), plain_name(name)
        try:
            return await self._written(request, self.folder / number, number, plain)
        except BaseException as error:
            shutil.rmtree(self.folder / number, ignore_errors=True)
            if isinstance(error, TimeoutError):
                raise Refused(408, "the file did not arrive in time", "timeout") from None
            if isinstance(error, OSError):
                raise cannot_keep(error, self.folder) from None
            raise

    async def _written(self, request: Sent, place: Path, number: str, name: str) -> Upload:
        most = self._limits.upload
        large = Refused(413, f"the file is larger than {most:,} bytes, as much as this server takes", "too_large")
        said = request.headers.get("content-length", "")
        if said.isascii() and said.isdigit() and int(said[:20]) > max(most, DRAINED):
            raise large
        place.mkdir(mode=0o700, parents=True)
        draft = place / f".{name}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._coming[number] = 0
        try:
            size = 0
            async with asyncio.timeout(self._limits.seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size <= most:
                        self._keep(number, size)
                        await asyncio.to_thread(_write_all, descriptor, chunk)
                    elif size > DRAINED + most:
                        raise large
            if size > most:
                raise large
            if not size:
                raise Refused(400, "the file is empty", "empty")
            self.make_room()
            os.rename(draft, place / name)
        finally:
            del self._coming[number]
            os.close(descriptor)
        return Upload(number, place / name)

    def _keep(self, number: str, size: int) -> None:
        """So much of a file has arrived."""
        before, self._coming[number] = self._coming[number], size
        if size // STEP > before // STEP:
            self.make_room()

    def make_room(self) -> None:
        """Remove what is old, and as many more as there is no room for beside the files that are arriving."""
        kept = [each for each in self.all() if each.path not in self.used]
        total = sum(self._coming.values()) + sum(each.size for each in self.all())
        for each in kept:
            old = time.time() - each.path.stat().st_mtime > DAYS * 86_400
            if old or total > self._limits.uploads:
                total -= each.size
                shutil.rmtree(each.path.parent, ignore_errors=True)
        if total > self._limits.uploads:
            raise Refused(413, f"uploaded files may have {self._limits.uploads:,} bytes together", "too_large")

    def sweep(self) -> None:
        """Remove what a server that was killed left half written, and what is old."""
        whole = {each.number for each in self.all()}
        for place in self.folder.iterdir() if self.folder.is_dir() else ():
            if NAME.fullmatch(place.name) and place.name not in whole and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
        self.make_room()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def cannot_keep(error: OSError, folder: Path) -> Refused:
    """Why a file cannot be kept, without its place."""
    if error.errno in FULL or error.errno == errno.ENOMEM:
        return Refused(507, f"there is not enough room on the disk of the server ({error.strerror})", "disk_full")
    return Refused(507, f"the server cannot keep the file ({error.strerror or error})", "cannot_write")


def without_places(value: Any, folder: Path) -> Any:
    """A value of JSON in which uploaded files have their names alone."""
    if isinstance(value, str):
        return re.sub(rf"{re.escape(str(folder))}/[0-9a-f]{{16}}/", "", value)
    if isinstance(value, dict):
        return {key: without_places(each, folder) for key, each in value.items()}
    return [without_places(each, folder) for each in value] if isinstance(value, list) else value


def suffixes() -> list[str]:
    """The ends of names of files of which one alone is data; tables first."""
    known = [discover.readers.declaration(name) for name in discover.readers.names()]
    known = sorted((each for each in known if not each.many), key=lambda each: each.gives != "table")
    return list(dict.fromkeys([*(suffix for each in known for suffix in each.suffixes), *TEXTS]))


def plain_name(name: str) -> str:
    """The name that a file is kept by.

    >>> plain_name("../../Über reviews.CSV")
    'ber-reviews.csv'
    """
    lowered = name.lower()
    end = max((each for each in suffixes() if lowered.endswith(each)), key=len, default=None)
    if end is None:
        raise Refused(415, f"expected a file whose name ends in {', '.join(suffixes())}", "file_type")
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", re.split(r"[/\\]", name)[-1][: -len(end)]).strip("-")[:LONGEST].strip("-")
    return f"{stem or 'data'}{end}"
