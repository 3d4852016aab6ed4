"""Inputs of tasks with given targets, as they come: the numbers of one step, a word, a piece of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.files.cell_values import as_number
from unrolled.data.labelled_prepare import InputCodec, encode_input
from unrolled.data.reading import Kind
from unrolled.layers.parts.assembled import Reader


def flow_of(model: Any, inputs: InputCodec, kind: Kind, told: Callable[[Tensor, Tensor], dict[str, Any]]) -> Flow:
    """A model that predicts for each step, or for all up to it."""
    live = model.so_far() if isinstance(model, Reader) else None
    if live is None:
        raise UsageError(
            "this model reads a whole series before it predicts, so it cannot run live; train a causal model, "
            "such as gru or tcn, with readout last or mean if there is one prediction per series"
        )

    def read(row: Any, place: str) -> Tensor:
        if kind == "series":
            row = np.asarray(row, np.float64).reshape(1, -1)
        elif kind == "words":
            row = row.split() if isinstance(row, str) else list(row)
        return torch.from_numpy(encode_input(inputs, row, place))[None]  # [1, n, ..]

    def line(text: str, place: str) -> Any:
        if not text.strip():
            return None
        return numbers_in(text, place) if kind == "series" else text

    return Flow(live, read, told, line, _blank(inputs, kind), delay=model.delay)


def _blank(inputs: InputCodec, kind: Kind) -> Tensor:
    """A tick that says nothing: [1, 1, ..]."""
    if kind == "series":
        return torch.zeros(1, 1, inputs.size)
    spelt = isinstance(inputs, WordListCodec) and inputs.letters > 0
    return torch.zeros((1, 1, inputs.width) if spelt else (1, 1), dtype=torch.long)  # type: ignore[union-attr]


def numbers_in(line: str, place: str) -> list[float]:
    """The numbers of a line, separated by spaces or commas.

    >>> numbers_in("1, 2.5 -3", "line 1")
    [1.0, 2.5, -3.0]
    """
    if not (words := line.replace(",", " ").split()):
        raise DataError(f"{place}: found no numbers, expected numbers separated by spaces or commas")
    return [as_number(word, place) for word in words]
