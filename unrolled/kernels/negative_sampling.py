"""One pass of negative sampling over positions of a text: each moves the vectors of its words at once.

    h_i = 1/|X_i| sum_{w in X_i} v_w                        inputs: one word each (skip-gram) or all together (CBOW)
    C   = - sum_i [ log sigma(u_y . h_i) + sum_j log sigma(-u_j . h_i) ]           y the word itself, j drawn ones
    g_ij = [j = y] - sigma(u_j . h_i)
    u_j += rate sum_i g_ij h_i,   v_w += rate sum_j g_ij u_j / |X_i|

Mikolov et al. (2013), eq. (4). The words that are drawn are shared by the inputs of a position (Ji et al. 2016), and
all its products are made before any vector moves, so a step is the exact gradient of C. `descend` takes the compiled
loop (numba, the extra [fast]) where it is installed, and otherwise the reference; for one worker they differ by
rounding alone. Several workers move the same vectors without waiting for each other (Niu et al. 2011), so that results
differ in their last digits from run to run.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unrolled.kernels.negative_sampling_compiled import TOLD, compiled

Numbers = NDArray[np.float32]
Words = NDArray[np.int32]
Told = tuple[float, int]
Loop = Callable[[Numbers, Numbers, Words, Words, float, float], Told]


def reference(vectors: Numbers, outputs: Numbers, x: Words, y: Words, rate: float, out_rate: float) -> Told:
    """Move vectors [V, D] and outputs [V, D] along x [N, I, S] and y [N, 1 + k], the word itself first; 0 is no word.

    Gives the sum of the losses of some positions, before they moved anything, and their number of inputs.
    """
    loss, count = 0.0, 0
    for n, (words, drawn) in enumerate(zip(x, y)):
        words, drawn = words[(words != 0).any(1)], drawn[drawn != 0]  # [I, S], [J]
        real = words != 0
        size = real.sum(1, keepdims=True, dtype=np.float32)  # [I, 1]
        h = (vectors[words] * real[..., None]).sum(1) / size  # [I, D]
        u = outputs[drawn]  # [J, D]
        s = h @ u.T  # [I, J]
        g = -1 / (1 + np.exp(-s))
        g[:, 0] += 1
        np.add.at(outputs, drawn, np.float32(out_rate) * (g.T @ h))
        step = np.float32(rate) * (g @ u) / size  # [I, D]
        np.add.at(vectors, words[real], step[np.nonzero(real)[0]])
        if n % TOLD == 0:
            loss += float(np.logaddexp(0, -s[:, 0]).sum() + np.logaddexp(0, s[:, 1:]).sum())
            count += len(h)
    return loss, count


def is_compiled() -> bool:
    """Whether the compiled loop can be had: numba is installed."""
    return importlib.util.find_spec("numba") is not None


@cache
def loop() -> Loop:
    """The fastest form there is."""
    if not is_compiled():
        return reference
    found: Loop = compiled()
    return found


def descend(
    vectors: Numbers, outputs: Numbers, x: Words, y: Words, rates: tuple[float, float], workers: int = 1
) -> Told:
    """As `reference`, in its fastest form, by several workers at once."""
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if workers == 1 or not is_compiled():
        return loop()(vectors, outputs, x, y, *rates)
    cuts = [len(x) * i // workers for i in range(workers + 1)]
    shares = [(vectors, outputs, x[a:b], y[a:b], *rates) for a, b in itertools.pairwise(cuts)]
    with ThreadPoolExecutor(workers) as pool:
        found = [*pool.map(lambda share: loop()(*share), shares)]
    return sum(loss for loss, _ in found), sum(count for _, count in found)
