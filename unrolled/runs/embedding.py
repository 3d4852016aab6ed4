"""The vectors that a run makes of inputs, as arrays."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.verb import Result
from unrolled.data.examples import offsets_of


def arrays_of(results: Sequence[Result]) -> dict[str, NDArray[np.generic]]:
    """Results of `embed` as arrays: one vector each [n, D], or those of all positions after each other [N, D]."""
    if not results:
        raise DataError("there are no inputs to make vectors of")
    if "vector" in results[0]:
        return {"vectors": np.array([each["vector"] for each in results], np.float32)}
    vectors = np.concatenate([np.array(each["vectors"], np.float32) for each in results])
    tokens = np.array([name for each in results for name in each["tokens"]])
    return {"vectors": vectors, "offsets": offsets_of(len(each["vectors"]) for each in results), "tokens": tokens}


def npz_bytes(results: Sequence[Result]) -> bytes:
    """The same as the content of a .npz file."""
    held = io.BytesIO()
    np.savez(held, **arrays_of(results))  # type: ignore[arg-type]
    return held.getvalue()
