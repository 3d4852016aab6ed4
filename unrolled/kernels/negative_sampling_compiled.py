"""The loop of negative sampling, compiled by numba (the extra [fast]), which is imported when it is asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

TOLD = 8  # the loss is measured at one of so many positions
SIGNATURE = "Tuple((f8, i8))(f4[:, ::1], f4[:, ::1], i4[:, :, ::1], i4[:, ::1], f8, f8)"


def _loop(vectors: Any, outputs: Any, x: Any, y: Any, rate: Any, out_rate: Any) -> Any:
    """As `negative_sampling.reference`, in the order of memory: every product of a position, then every move."""
    n_inputs, n_words, n_drawn, d = x.shape[1], x.shape[2], y.shape[1], vectors.shape[1]
    h = np.empty((n_inputs, d), np.float32)
    moved = np.empty((n_inputs, d), np.float32)
    pushed = np.empty((n_drawn, d), np.float32)
    sizes = np.empty(n_inputs, np.int64)
    one: Any = np.float32(1)
    loss: Any = 0.0
    count = 0
    vector_rate, output_rate = np.float32(rate), np.float32(out_rate)
    for n in range(x.shape[0]):
        told = n % TOLD == 0
        for i in range(n_inputs):
            size = 0
            for s in range(n_words):
                size += x[n, i, s] != 0
            sizes[i] = size
            if size == 0:
                continue
            share = one / np.float32(size)
            first = True
            for s in range(n_words):
                word = x[n, i, s]
                if word == 0:
                    continue
                for k in range(d):
                    h[i, k] = vectors[word, k] if first else h[i, k] + vectors[word, k]
                first = False
            for k in range(d):
                h[i, k] *= share
                moved[i, k] = 0
        for j in range(n_drawn):
            drawn = y[n, j]
            if drawn == 0:
                continue
            for k in range(d):
                pushed[j, k] = 0
            for i in range(n_inputs):
                if sizes[i] == 0:
                    continue
                dot = np.float32(0)
                for k in range(d):
                    dot += h[i, k] * outputs[drawn, k]
                g = (one if j == 0 else np.float32(0)) - one / (one + np.float32(math.exp(-dot)))
                if told:
                    signed = -dot if j == 0 else dot
                    loss += max(signed, np.float32(0)) + math.log1p(math.exp(-abs(signed)))
                    count += j == 0
                up, down = g * vector_rate, g * output_rate
                for k in range(d):
                    moved[i, k] += up * outputs[drawn, k]
                    pushed[j, k] += down * h[i, k]
        for j in range(n_drawn):
            drawn = y[n, j]
            if drawn != 0:
                for k in range(d):
                    outputs[drawn, k] += pushed[j, k]
        for i in range(n_inputs):
            if sizes[i] == 0:
                continue
            share = one / np.float32(sizes[i])
            for s in range(n_words):
                word = x[n, i, s]
                if word != 0:
                    for k in range(d):
                        vectors[word, k] += share * moved[i, k]
    return loss, count


def compiled() -> Any:
    """The loop as machine code, kept on disk where that is possible; it lets other threads run."""
    import numba

    return numba.njit(SIGNATURE, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True)(_loop)
