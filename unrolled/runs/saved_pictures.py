"""The pictures that a run directory holds: what its task drew of it at the end of training. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from unrolled.core.errors import UnrolledError
from unrolled.pictures.kinds import Picture, read_picture
from unrolled.runs.storage.directory import RunDirectory


def saved_pictures(path: Path, notes: list[str]) -> list[Picture]:
    """What a run brings along in figures/; a file that cannot be read as a picture becomes a note."""
    found: list[Picture] = []
    directory = RunDirectory(path)
    try:
        names = [name for name in directory.names("figures") if name.endswith(".json")]
    except UnrolledError as error:
        notes.append(str(error))
        return []
    for name in names:
        try:
            value = directory.read_json(name)
            found += [read_picture(each) for each in (value if isinstance(value, list) else [value])]
        except UnrolledError as error:
            notes.append(f"{error}.")
        except ValueError:
            notes.append(f"{path / name} is not a picture that this version can show.")
    return found
