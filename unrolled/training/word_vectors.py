"""Word vectors that a run begins with: rows of its embedding by name, from a file or from a saved run.

A word that has no vector is looked for in lower case. Rows without one keep their random initial values, made as large
as the vectors are, so that none of them stands out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from unrolled.core.errors import DataError, UsageError, some
from unrolled.core.front import option
from unrolled.core.task import Task
from unrolled.data.word_vectors import WordVectors
from unrolled.layers.parts.embedding import Table
from unrolled.runs import parts
from unrolled.runs.config import RunConfig
from unrolled.runs.storage import manifest
from unrolled.runs.vectors import embeddings, is_run, names_of, vectors, width_of

WORDS = 20_000  # of the vocabulary, unless told otherwise
MISSING = 5  # words without a vector that are named


class Found(NamedTuple):
    """What was taken: in words, the tensors that were filled, and the fingerprint of where they came from."""

    words: str
    tensors: list[str]
    sha256: str


def advice(settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Where settings or a recipe name vectors: their width, and words as tokens."""
    within = recipe.get("start", {})
    places = [settings.get("start.vectors"), settings.get("vectors"), recipe.get("start.vectors")]
    places += [within.get("vectors") if isinstance(within, Mapping) else None]
    place = next((path for path in places if path is not None), None)
    if place is None:
        return {}
    return {"ends.d_embedding": width_of(str(place)), "data.tokens": "word", "data.vocabulary": WORDS}


def take(run: Path, config: RunConfig, task: Task, model: nn.Module) -> Found | None:
    """Fill the rows of each embedding of a model that has a vector of its name; None where no vectors are asked for."""
    if (place := config.start.vectors) is None:
        return None
    sha256 = manifest.measure(Path(place) / "model.safetensors" if is_run(place) else Path(place)).sha256
    if config.vectors_sha256 not in (None, sha256):
        raise DataError(f"{place}: has changed since {run} started from it; start a new run")
    tables = [*embeddings(model, task.vocabularies())]
    if not tables:
        raise UsageError(f"this model has no embedding of words: leave out {option('vectors')}")
    wanted = {form for each in tables for name in names_of(each.means) for form in (name, name.lower())}
    known, told = vectors(place, wanted), []
    for each in tables:
        of = "" if len(tables) == 1 else f" of {each.part}"
        told.append(_fill(place, known, each.table, names_of(each.means), of))
    tensors = [name for name, tensor in parts.tensors(model).items() if any(tensor is e.table.weight for e in tables)]
    return Found("; ".join(told), tensors, sha256)


def _fill(place: str, known: WordVectors, table: nn.Embedding, names: list[str], of: str) -> str:
    """Copy what there is; in words."""
    if known.width != table.embedding_dim:
        raise UsageError(
            f"{place}: its vectors have {known.width} numbers, but the embedding has {table.embedding_dim}; leave out "
            f"{option('d_embedding')}"
        )
    asked = [row for row, name in enumerate(names) if name]
    exact = [row for row in asked if names[row] in known]
    lower = [row for row in asked if names[row] not in known and names[row].lower() in known]
    if not exact and not lower:
        raise DataError(
            f"{place}: none of its words is in the vocabulary{of}, which has {some(names[row] for row in asked)}"
        )
    rows = [*exact, *lower]
    found = np.stack([known[names[row] if names[row] in known else names[row].lower()] for row in rows])
    scale = table.scale if isinstance(table, Table) else 1.0
    with torch.no_grad():
        values = torch.from_numpy(found).to(table.weight) / scale
        table.weight.mul_(values.std() / table.weight.std().clamp_min(1e-12))
        table.weight[rows] = values
    missing = [names[row] for row in asked if row not in {*rows}]
    cased = f", {len(lower):,} of them in lower case" if lower else ""
    rest = f"; without: {some(missing[:MISSING])}{' ..' if len(missing) > MISSING else ''}" if missing else ""
    share = f"{len(rows) / len(asked):.1%}"
    return f"vectors from {place}: {len(rows):,} of {len(asked):,} words{of} ({share}){cased}{rest}"
