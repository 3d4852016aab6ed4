"""Splits, codecs and batches are those that were frozen, on every processor: tests/golden/batches.json.

python -m tests.golden.test_batches        # writes the file anew; say in the changelog why it changed
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from tests.small import DATA, QUICK
from unrolled.core.batch import Batch
from unrolled.runs import build
from unrolled.training.api import configure

FROZEN = Path(__file__).with_name("batches.json")


def canonical(tensor: Tensor | None) -> list[Any]:
    """Type and shape of a tensor with a hash of its values; of numbers, whose last bits may depend on the processor, a
    sum that each of them enters with a weight of its own."""
    if tensor is None:
        return []
    values = np.ascontiguousarray(tensor.numpy())
    kind = [str(tensor.dtype), list(tensor.shape)]
    return [*kind, weighed(values.ravel()) if values.dtype.kind == "f" else hashed(values.tobytes())]


def hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def weighed(values: Any) -> float:
    numbers = np.asarray(values, np.float64)
    return float(numbers @ np.cos(np.arange(len(numbers))))


def canonical_batch(batch: Batch) -> dict[str, Any]:
    parts = {"x": batch.x, "y": batch.y, "mask": batch.y_mask, "source": batch.source, "source_mask": batch.source_mask}
    return {name: canonical(tensor) for name, tensor in parts.items()}


def frozen(label: str) -> dict[str, Any]:
    """What preparing gives: sizes of the splits, the codec's files, some batches of training."""
    name, data, settings = DATA[label]
    config = configure(name, None, data, QUICK | settings)
    task = build.make_task(config)
    task.prepare(data)
    sampler = task.sampler(config.batching, carried=settings.get("examples") == "stream", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        task.save_codec(Path(folder))
        codec = {path.name: _content(path) for path in sorted(Path(folder).rglob("*.json"))}
    return {
        "sizes": {split: task.size(split) for split in task.splits()},
        "codec": codec,
        "batches": [canonical_batch(sampler.batch(step)) for step in (0, 1, 2, 20)],
    }


def _content(path: Path) -> list[Any]:
    """A file of a codec: a hash of what it says, and its numbers."""
    numbers: list[float] = []

    def without(value: Any) -> Any:
        if isinstance(value, float):
            numbers.append(value)
            return 0
        if isinstance(value, list):
            return [without(each) for each in value]
        return {key: without(value[key]) for key in sorted(value)} if isinstance(value, dict) else value

    text = json.dumps(without(json.loads(path.read_text(encoding="utf-8"))))
    return [hashed(text.encode()), weighed(numbers)]


def assert_same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-5, abs=1e-5), where
    elif isinstance(a, list | dict):
        assert len(a) == len(b), where
        for key in a if isinstance(a, dict) else range(len(a)):
            assert_same(a[key], b[key], f"{where}, {key}")
    else:
        assert a == b, where


@pytest.mark.parametrize("label", DATA)
def test_data_is_split_encoded_and_batched_as_before(label: str) -> None:
    assert_same(json.loads(FROZEN.read_text())[label], frozen(label), label)


if __name__ == "__main__":
    FROZEN.write_text(json.dumps({label: frozen(label) for label in DATA}, indent=None, sort_keys=True) + "\n")
