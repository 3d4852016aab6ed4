"""Checkpoints: the last two complete training states, and the one to roll back to, each readable after any kill.

    checkpoints/step-00001234/   state.safetensors  facts.json  MANIFEST.json
    checkpoints/latest           which one to continue from, and the sha256 of its manifest

A checkpoint is written under a temp name, fsynced and renamed; `latest` moves to it last; only then does an old one go.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.errors import CannotWrite, DataError, Diverged
from unrolled.core.opening import DATA, JSON, parse_json, read_bytes, read_json
from unrolled.runs.storage import atomic, formats, manifest
from unrolled.runs.storage.manifest import Manifest
from unrolled.runs.storage.state_json import flatten, unflatten

__all__ = ["Checkpoint", "Checkpoints", "flatten", "unflatten"]

KEPT = 2
ROOM, OF_A_NUMBER = 2**30, 256  # bytes of a training state: for carried states and the like, and for each number
LATEST = "latest"
STATE = "state.safetensors"
FACTS = "facts.json"
_NAME = re.compile(r"step-(\d{8,18})(?:-(\d{1,9}))?")  # step and, if that step was saved before, a count


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training state: `notes` says in sentences what was damaged and passed over to get it."""

    step: int
    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    notes: list[str] = field(default_factory=list)


class Checkpoints:
    """The checkpoints in a directory, which is made when the first is saved.

    `model` is that which they are of: a training state that is far larger than one of it could be is not read.
    """

    def __init__(self, directory: str | Path, model: nn.Module | None = None) -> None:
        self.path = Path(directory)
        numbers = None if model is None else sum(each.numel() for each in model.state_dict().values())
        self.most = DATA if numbers is None else ROOM + OF_A_NUMBER * numbers
        self._swept = False

    def save(self, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], keep: int | None = None) -> None:
        """Add a checkpoint. NaN or infinity is refused, and what could not be written whole is not written at all.

        The run is now at `step`: checkpoints of later steps, from before a roll-back, are removed with the old ones, of
        which that of the step `keep` stays.
        """
        _refuse_non_finite(step, tensors)
        text = formats.json_text({"step": step, "facts": dict(facts)}, f"{self.path / _name(step, 0)}/{FACTS}").encode()
        atomic.make_directory(self.path)
        if not self._swept:
            atomic.sweep(self.path)
            self._swept = True
        used = [count for at, count in self._saved() if at == step]
        saved = (step, max(used) + 1 if used else 0)
        target = self.path / _name(*saved)
        size, pieces = formats.tensor_file(tensors, str(target))
        temp = atomic.temp_path(target)
        try:
            temp.mkdir()
            seals = Manifest()
            seals.files[STATE] = atomic.store(temp / STATE, pieces, size, target)
            seals.files[FACTS] = atomic.store(temp / FACTS, [text], len(text), target)
            listing = seals.to_text().encode()
            mark = atomic.store(temp / manifest.NAME, [listing], len(listing), target)
            atomic.sync_directory(temp)
            os.rename(temp, target)
            atomic.sync_directory(self.path)
            atomic.write_json(self.path / LATEST, {"checkpoint": target.name, "manifest": mark.sha256})
        except (OSError, CannotWrite) as error:
            if self._pointer([])[0] != saved:  # on a full disk one that nobody announced would only be in the way
                self._remove(saved)
            raise error if isinstance(error, CannotWrite) else atomic.cannot_write(target, size, error) from error
        finally:
            atomic.discard(temp)
        self._prune(saved, keep)

    def any(self) -> bool:
        """Whether one was ever saved."""
        return self.path.is_dir() and bool(self._saved())

    def latest(self) -> Checkpoint | None:
        """The checkpoint to continue from, checked; None if none was ever saved.

        A damaged one is passed over for the one before it, with a note; if none is good, that is an error.
        """
        if not self.path.is_dir():
            return None
        notes: list[str] = []
        chosen, mark = self._pointer(notes)
        order = sorted(self._saved(), reverse=True)
        if chosen in order:
            # Those above it are from an abandoned course, or were not announced when the kill came: they come last.
            order = [chosen, *(s for s in order if s < chosen), *(s for s in order if s > chosen)]
        elif chosen is not None:
            notes.append(f"{self.path / _name(*chosen)} is missing; {_LOST}")
        for saved in order:
            try:
                found = self._load(saved, mark if saved == chosen else None)
            except DataError as error:
                notes.append(f"{str(error).removesuffix('; ' + manifest.ADVICE)}; {_LOST}")
                continue
            if notes:
                notes.append(f"resuming from {self.path / _name(*saved)} (step {found.step})")
            return Checkpoint(found.step, found.tensors, found.facts, notes)
        if notes:
            raise DataError(f"no checkpoint in {self.path} is complete: {'; '.join(notes)}; {manifest.ADVICE}")
        return None

    def of_step(self, step: int) -> Checkpoint | None:
        """The last checkpoint of a step; where there is none that is whole, the one to continue from."""
        for saved in sorted((each for each in self._saved() if each[0] == step), reverse=True):
            with suppress(DataError):
                return self._load(saved, None)
        return self.latest()

    def _saved(self) -> list[tuple[int, int]]:
        found = [_parse(entry.name) for entry in self.path.iterdir() if entry.is_dir()]
        return [saved for saved in found if saved is not None]

    def _pointer(self, notes: list[str]) -> tuple[tuple[int, int] | None, str | None]:
        """The checkpoint and the sha256 of its manifest that `latest` gives."""
        path = self.path / LATEST
        if not path.exists():
            if len(self._saved()) > 1:  # with one, the kill came before the first was announced
                notes.append(f"{path} is missing")
            return None, None
        with suppress(DataError):
            value = read_json(path, within=self.path)
            name, mark = (value.get("checkpoint"), value.get("manifest")) if isinstance(value, dict) else (None, None)
            saved = _parse(name) if isinstance(name, str) else None
            if saved is not None and isinstance(mark, str):
                return saved, mark
        notes.append(f"{path} is damaged")
        return None, None

    def _load(self, saved: tuple[int, int], mark: str | None) -> Checkpoint:
        place = self.path / _name(*saved)
        seals = manifest.read_manifest(place)
        if (
            mark is not None
            and hashlib.sha256(read_bytes(place / manifest.NAME, JSON, within=place)).hexdigest() != mark
        ):
            raise DataError(f"{place / manifest.NAME} is not the one that {LATEST} names")
        content = {}
        for part in (STATE, FACTS):
            if part not in seals.files:
                raise DataError(f"{place / part} is not listed in its manifest")
            content[part] = manifest.read(place / part, [seals.files[part]], self.most if part == STATE else JSON)
        facts = parse_json(content[FACTS], str(place / FACTS))
        if not isinstance(facts, dict) or not isinstance(facts.get("facts"), dict):
            raise DataError(f"{place / FACTS} is not valid")
        if facts.get("step") != saved[0]:
            raise DataError(f"{place} holds step {facts.get('step')}, which does not match its name")
        return Checkpoint(saved[0], formats.parse_tensors(content[STATE], str(place / STATE)), facts["facts"])

    def _prune(self, newest: tuple[int, int], keep: int | None) -> None:
        """Keep the newest and the one before it, and that of the step `keep`."""
        order = sorted(self._saved())
        at = order.index(newest)
        old = [saved for saved in order[: max(0, at + 1 - KEPT)] if saved[0] != keep]
        for saved in old + order[at + 1 :]:
            self._remove(saved)

    def _remove(self, saved: tuple[int, int]) -> None:
        atomic.remove_directory(self.path / _name(*saved))  # half a checkpoint must not look like one


_LOST = "the steps since the previous checkpoint are lost"


def _name(step: int, count: int) -> str:
    return f"step-{step:08d}" + (f"-{count}" if count else "")


def _parse(name: str) -> tuple[int, int] | None:
    """The step and the count of a checkpoint's name; None if it is no such name."""
    match = _NAME.fullmatch(name)
    saved = (int(match[1]), int(match[2] or 0)) if match else None
    return saved if saved is not None and _name(*saved) == name else None


def _refuse_non_finite(step: int, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if (tensor.is_floating_point() or tensor.is_complex()) and not bool(torch.isfinite(tensor).all()):
            raise Diverged(
                f"step {step}: '{name}' holds NaN or infinity, so no checkpoint was written; the previous one "
                "is intact: resume from it with a smaller learning rate"
            )
