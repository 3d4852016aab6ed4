"""Word vectors, wherever they are: in a file, in a saved run of word vectors, or in the embedding of any saved run."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torch import nn

from unrolled.core.errors import UsageError
from unrolled.core.task import Vocabulary
from unrolled.data.files import vector_files
from unrolled.data.word_vectors import WordVectors
from unrolled.layers.parts.embedding import Table
from unrolled.runs import parts
from unrolled.runs.run import Run, load, saved_config


def is_run(place: str | Path) -> bool:
    return Path(place).is_dir()


def vectors(source: str | Path | Run, wanted: Container[str] | None = None) -> WordVectors:
    """The word vectors of a file (word2vec or GloVe format) or of a run: `unrolled.vectors("runs/mine")`.

    Of a run these are the rows of its embedding; of several the first. `wanted` are the words to read, if not all.
    """
    if isinstance(source, Run):
        return in_run(source)
    if is_run(source):
        return in_run(load(source))
    return WordVectors(*vector_files.read(source, wanted))


def in_run(run: Run) -> WordVectors:
    """The rows of the first embedding of a run, by the names of its tokens."""
    for _, table, means in embeddings(run.model, run.task.vocabularies()):
        scale = table.scale if isinstance(table, Table) else 1.0
        return WordVectors.of(names_of(means), (table.weight.detach() * scale).cpu().numpy())
    raise UsageError(f"{run.path}: this run has no embedding of words (runs on tokens have one)")


class Embedding(NamedTuple):
    """A table of a model, the part it is in, and what its rows stand for."""

    part: str
    table: nn.Embedding
    means: Vocabulary


def embeddings(model: nn.Module, vocabularies: Mapping[str, Vocabulary]) -> Iterator[Embedding]:
    """The tables of a model whose rows have names, each once."""
    seen: set[int] = set()
    for part, layer in parts.input_layers(model).items():
        for module in layer.modules() if part in vocabularies else ():
            fits = isinstance(module, nn.Embedding) and module.num_embeddings == vocabularies[part].size
            if isinstance(module, nn.Embedding) and fits and id(module) not in seen:
                seen.add(id(module))
                yield Embedding(part, module, vocabularies[part])


def names_of(vocabulary: Vocabulary) -> list[str]:
    """What each row of a table stands for, as it is written, without spaces; special tokens and classes have none."""
    words = [each.decode("utf-8", "replace").strip() for each in vocabulary.codec.spelling()]
    return [*words, *("" for _ in vocabulary.names)]


def width_of(place: str | Path) -> int:
    """How many numbers a vector there has."""
    return saved_config(place).ends.d_embedding if is_run(place) else vector_files.width(place)
