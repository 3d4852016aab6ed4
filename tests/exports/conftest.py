"""Exports for all tests of a process: a run is traced once, and torch reads its table of ONNX functions once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.make import RUNS
from unrolled.core.export import Written
from unrolled.exports import onnx, page
from unrolled.exports import torch as plain
from unrolled.exports.tools.exporting import export
from unrolled.exports.tools.traced import Carried, carried
from unrolled.runs.run import Run, load

kept: dict[Any, Carried] = {}
opened = cache(lambda name: load(RUNS / name))


@pytest.fixture(scope="session", autouse=True)
def _once() -> Iterator[None]:
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    def traced_once(model: Any, examples: Any) -> Carried:
        if id(model) not in kept:
            kept[id(model)] = carried(model, examples)
        return kept[id(model)]

    with pytest.MonkeyPatch.context() as patch:
        for target in (onnx, plain, page):
            patch.setattr(target, "carried", traced_once)
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def run_of() -> Any:
    """A saved run by its name among the fixtures."""
    return opened


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """exported(name, target) -> what was written, made once."""
    folder = tmp_path_factory.mktemp("exports")

    @cache
    def make(name: str, target: str, **settings: Any) -> Written:
        suffix = {"onnx": ".onnx", "page": ".html", "torch": ".py"}[target]
        run: Run = opened(name)
        return export(run, target, folder / Path(name + suffix), settings)

    return make
