"""A run directory: every file written whole, sealed by sha256, and checked before it is used.

    config.json  codec/  model.safetensors  predictions.jsonl  figures/  report.html  README.md     sealed
    metrics.jsonl                                                       growing, sealed as far as it was written
    tensorboard/  checkpoints/  inspect/                                                            growing
    MANIFEST.json                                                                                   the seals

Everything written through a RunDirectory is sealed at once; `seal()` adds what others put there. It knows nothing of
models and tasks, and imports torch only to read or write tensors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.opening import DATA, JSON, parse_json, require_own_folders
from unrolled.runs.storage import atomic, formats, manifest, metrics
from unrolled.runs.storage.locks import LOCK, exclusive, is_idle
from unrolled.runs.storage.manifest import Manifest, plain_name

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "config.json"
METRICS = "metrics.jsonl"
TABLE = "table.json"  # of a comparison, whose runs are folders beside it
GROWING = (METRICS, "tensorboard", "checkpoints", "inspect", manifest.NAME)
BEGINNING = {manifest.NAME, "codec", "data.json", "recipe.json", "baselines.json", "checkpoints"}  # before config.json


def first_free(place: Path, is_free: Callable[[Path], bool]) -> Path:
    """runs/lstm-docs, runs/lstm-docs-2, ...: the first that is free."""
    numbered = (place if number == 1 else place.with_name(f"{place.name}-{number}") for number in count(1))
    return next(path for path in numbered if is_free(path))


class RunDirectory:
    """The files of one run. `create` a new one or `open` one that is there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._swept = False

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    # Beginning ----------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | Path, overwrite: bool = False) -> RunDirectory:
        """A new, empty run directory. `overwrite` empties an old run first, but never a directory that is none."""
        run = cls(path)
        run.require_free(overwrite)
        atomic.make_directory(run.path)
        atomic.sweep(run.path.parent, run.path.name)
        run._swept = True
        # What marks the directory as a run goes last, so that a kill in between leaves one that can be emptied again.
        names = [entry.name for entry in run.path.iterdir() if entry.name != LOCK]
        for name in sorted(names, key=lambda name: (name in (CONFIG, manifest.NAME), name)):
            atomic.discard(run.path / name)
        if left := sorted(entry.name for entry in run.path.iterdir() if entry.name != LOCK):
            raise UsageError(f"{run.path / left[0]} cannot be removed: name another directory with {option('out')}")
        run._save(Manifest())
        return run

    def require_free(self, overwrite: bool = False) -> bool:
        """Refuse a place where no run may begin; True where one was stopped before there was anything to resume."""
        if not self.path.is_dir():
            if self.path.exists():
                raise UsageError(f"{self.path} is a file; name a directory for the run with {option('out')}")
            return False
        found = {entry.name for entry in self.path.iterdir()} - {LOCK}
        names = {name for name in found if not atomic.is_temp(name)}
        if not names or self._never_began(names):
            return bool(found)
        if not overwrite:
            other = f"name another directory with {option('out')}, or resume it with {option('resume')}"
            raise UsageError(f"{self.path} is not empty: {other}")
        if not names & {CONFIG, manifest.NAME}:
            raise UsageError(
                f"{self.path} is not empty and not a run directory, so it is not overwritten: name another "
                f"directory with {option('out')}"
            )
        return True

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """A run that is there, with a manifest that is whole; its files are checked when they are read."""
        run = cls(path)
        if not run.path.is_dir():
            found = "it is a file" if run.path.exists() else "it does not exist"
            raise DataError(f"{path} is not a run directory: {found}")
        require_own_folders(run.path)
        if run._never_began({entry.name for entry in run.path.iterdir() if not atomic.is_temp(entry.name)} - {LOCK}):
            raise DataError(
                f"{path}: there is nothing to resume, because training had not started; run the original command again"
            )
        for name in (CONFIG, manifest.NAME):
            if not (run.path / name).exists():
                raise DataError(f"{path} is not a complete run directory: {name} is missing; {manifest.ADVICE}")
        manifest.read_manifest(run.path)
        return run

    def _never_began(self, names: set[str]) -> bool:
        """Whether a kill came before the configuration was written: there is nothing to lose and nothing to resume."""
        place = self.path / "checkpoints"
        if "checkpoints" in names and (not place.is_dir() or any(place.iterdir())):
            return False
        if manifest.NAME not in names or not names <= BEGINNING:
            return names <= {"checkpoints"}
        with suppress(DataError):
            return CONFIG not in manifest.read_manifest(self.path).files
        return False

    def sweep(self) -> None:
        """Remove what killed writers left behind; the first write does this by itself."""
        self._swept = True
        for directory in [self.path, *(entry for entry in sorted(self.path.iterdir()) if entry.is_dir())]:
            if not directory.is_symlink():
                atomic.sweep(directory)

    def tidy(self) -> None:
        """Remove what a kill left behind just before the end."""
        if is_idle(self.path):
            self.sweep()

    # Writing ------------------------------------------------------------------------------------------------------

    def write_bytes(self, name: str, data: bytes) -> None:
        """Replace and seal a file."""
        self._replace(name, [data], len(data))

    def write_text(self, name: str, text: str) -> None:
        """Replace and seal a file by text in UTF-8."""
        self.write_bytes(name, text.encode("utf-8"))

    def write_json(self, name: str, obj: Any) -> None:
        """Replace and seal a file by JSON with sorted keys and no NaN."""
        self.write_text(name, formats.json_text(obj, str(self.path / name)))

    def write_config(self, values: Mapping[str, Any]) -> None:
        """Write config.json, with the number of the format."""
        self.write_json(CONFIG, formats.numbered(values))

    def write_lines(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Replace and seal a file of JSON objects, one per line."""
        where = str(self.path / name)
        self.write_text(name, "".join(formats.json_text(line, where, indent=None) for line in lines))

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Replace and seal a safetensors file; tied weights are stored once and tied again when read."""
        size, pieces = formats.tensor_file(tensors, str(self.path / name))
        self._replace(name, pieces, size)

    def _replace(self, name: str, pieces: Iterable[Any], size: int) -> None:
        """Manifest (pending), then file, then manifest: after a kill at any moment the file is one of the accepted."""
        if _grows(plain_name(name)):
            raise ValueError(f"{name} grows and is not sealed")
        target = self._place(name)
        if not self._swept:
            self.sweep()
        atomic.make_directory(target.parent)
        new = atomic.draft(target, pieces, size)
        try:
            with exclusive(self.path):
                seals = self._settled()
                seals.pending[name] = new.seal
                self._save(seals)
                new.commit()
                seals.files[name] = seals.pending.pop(name)
                self._save(seals)
        finally:
            atomic.discard(new.temp)

    def _settled(self) -> Manifest:
        """The manifest, with each replacement that a kill left pending decided by the file that is there."""
        if not (self.path / manifest.NAME).exists() and not (self.path / CONFIG).exists():
            return Manifest()  # a directory that is only becoming a run
        seals = manifest.read_manifest(self.path)
        for name in list(seals.pending):
            new = seals.pending.pop(name)
            with suppress(DataError):
                if manifest.measure(self._place(name)) == new:
                    (seals.prefixes if _grows(name) else seals.files)[name] = new
        return seals

    def _save(self, seals: Manifest) -> None:
        atomic.write_text(self.path / manifest.NAME, seals.to_text())

    # Reading ------------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the run should have this file: it is listed, be it damaged or lost since."""
        seals = manifest.read_manifest(self.path)
        return plain_name(name) in seals.files or (name in seals.pending and self._place(name).exists())

    def names(self, folder: str = "") -> list[str]:
        """The files that the run should have, or those in one folder such as codec."""
        seals = manifest.read_manifest(self.path)
        return [name for name in sorted(seals.files) if not folder or name.startswith(f"{plain_name(folder)}/")]

    def read_bytes(self, name: str, limit: int = JSON) -> bytes:
        """The content of a sealed file of at most `limit` bytes, after its size and sha256 were checked."""
        place = self._place(plain_name(name))
        while True:
            seals = manifest.read_manifest(self.path)
            try:
                if not seals.accepted(name):
                    state = "is not listed in" if place.exists() else "is missing and not listed in"
                    raise DataError(f"{place} {state} {manifest.NAME}, so it is not read; {manifest.ADVICE}")
                return manifest.read(place, seals.accepted(name), limit)
            except DataError:
                if manifest.read_manifest(self.path) == seals:
                    raise
                # A training that is still running has replaced the file between the two looks: look again.

    def read_text(self, name: str) -> str:
        """The text of a sealed file."""
        try:
            return self.read_bytes(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path / name}: not UTF-8 at byte {error.start}") from None

    def read_json(self, name: str) -> Any:
        """The value of a sealed JSON file."""
        return parse_json(self.read_bytes(name), str(self.path / name))

    def read_config(self) -> dict[str, Any]:
        """The values of config.json; a run of another format is refused."""
        values = self.read_json(CONFIG)
        if not isinstance(values, dict):
            raise DataError(f"{self.path / CONFIG}: not the configuration of a run; {manifest.ADVICE}")
        return formats.without_number(values, self.path / CONFIG, "train the run again")

    def read_lines(self, name: str) -> list[Any]:
        """The values of a sealed file of one JSON value per line."""
        lines = self.read_text(name).split("\n")  # splitlines would also cut at the line ends of Unicode, inside a text
        lines = lines[:-1] if lines[-1] == "" else lines
        return [parse_json(line.encode(), f"{self.path / name}, line {i}") for i, line in enumerate(lines, 1)]

    def read_tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors of a sealed safetensors file, exact in dtype and shape."""
        return formats.parse_tensors(self.read_bytes(name, DATA), str(self.path / name))

    def stored_tensors(self, name: str) -> dict[str, formats.Stored]:
        """What a sealed safetensors file holds, from its header alone; the file is checked when it is read."""
        with manifest.opened(self._place(plain_name(name))) as stream:
            return formats.stored_tensors(stream, os.fstat(stream.fileno()).st_size, str(self.path / name))

    # Seals --------------------------------------------------------------------------------------------------------

    def seal(self, names: Iterable[str] = ()) -> None:
        """List every file that is not listed yet, and check the others; `names` are taken as they are now."""
        changed = {plain_name(name) for name in names}
        with exclusive(self.path):
            seals = self._settled()
            for name in sorted(changed | seals.files.keys() | set(self._sealable())):
                known = None if name in changed else seals.files.get(name)
                place = self._place(name)
                seals.files[name] = manifest.check(place, [known]) if known else manifest.measure(place)
            self._save(seals)

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Check files (None: all that are listed) without reading them into memory."""
        seals = manifest.read_manifest(self.path)
        listed = sorted(name for name in seals.files | seals.pending if not _grows(name))
        if names is None:
            self.read_metrics()  # which is checked by what it begins with
        for name in listed if names is None else names:
            accepted, place = seals.accepted(plain_name(name)), self._place(name)
            if not accepted:
                raise DataError(f"{place} is not listed in {manifest.NAME}; {manifest.ADVICE}")
            if name in seals.files or place.exists():  # a new file may be announced and not yet be there
                manifest.check(place, accepted)

    def _sealable(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.path):
            here = Path(folder).relative_to(self.path)
            folders[:] = [name for name in folders if not name.startswith(".") and not _grows(str(here / name))]
            for name in files:
                if not name.startswith(".") and not _grows((here / name).as_posix()):
                    yield (here / name).as_posix()

    def _place(self, name: str) -> Path:
        """The path of a name, whose folders do not lead out of the directory."""
        place = self.path / plain_name(name)
        inside = os.path.join(os.path.realpath(self.path), *Path(name).parent.parts)
        if os.path.realpath(place.parent) != inside:
            raise DataError(f"{place.parent} points outside the run directory; replace the link by a folder")
        return place

    # Metrics ------------------------------------------------------------------------------------------------------

    def append_metrics(self, values: Mapping[str, Any]) -> None:
        """Add one line to metrics.jsonl; a kill can cost the line that is being written and no other."""
        with exclusive(self.path):
            seals = self._settled()
            self._metrics(seals)
            metrics.append(self.path / METRICS, values)
            seals.prefixes[METRICS] = manifest.measure(self.path / METRICS)
            self._save(seals)

    def read_metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl in order; a last line that a kill cut short is left out."""
        while True:
            seals = self._settled()
            try:
                return self._metrics(seals)
            except DataError:
                if self._settled() == seals:
                    raise
                # A training that is still running has written meanwhile: look again.

    def _metrics(self, seals: Manifest) -> list[dict[str, Any]]:
        """The lines, which begin with those that were sealed; a kill can leave more of them, and never other ones."""
        place = self.path / METRICS
        data = metrics.content(place)
        found = [values for _, values in metrics.lines(data, place)]
        known = [table[METRICS] for table in (seals.prefixes, seals.pending) if METRICS in table]
        if known and not manifest.begins(data, known):
            raise DataError(f"{place} is damaged: its beginning has changed; {manifest.ADVICE}")
        return found

    def last_step(self) -> int:
        """The last step that metrics.jsonl tells of; 0 where it tells of none."""
        return max((line["step"] for line in self.read_metrics() if isinstance(line.get("step"), int)), default=0)

    def metrics_bytes(self) -> int:
        """How long metrics.jsonl is; a checkpoint keeps that."""
        return metrics.size(self.path / METRICS)

    def cut_metrics(self, step: int, n_bytes: int | None = None) -> None:
        """Remove the lines after a checkpoint, by the length of the file then, or its step: they are written again."""
        with exclusive(self.path):
            seals = self._settled()
            self._metrics(seals)
            kept = metrics.until(self.path / METRICS, step, n_bytes)
            if kept is not None:
                new = atomic.draft(self.path / METRICS, [kept], len(kept))
                seals.pending[METRICS] = new.seal
                self._save(seals)
                new.commit()
                seals.prefixes[METRICS] = seals.pending.pop(METRICS)
                self._save(seals)


def _grows(name: str) -> bool:
    return Path(name).parts[0] in GROWING


def is_free(path: Path) -> bool:
    """Whether there is nothing, or a run that was stopped before it began."""
    try:
        RunDirectory(path).require_free()
    except UsageError:
        return False
    return is_idle(path)
