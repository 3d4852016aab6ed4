"""Before its first step a run imports nothing that takes long and that it does not need (docs/decisions/0023)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small import DATA, QUICK
from tests.thorough import every
from unrolled.core import discover
from unrolled.core.spec import misfit
from unrolled.runs.build import build, make_task, on_paper
from unrolled.training.api import configure

LONG = ("torch._dynamo", "sympy", "matplotlib", "pandas", "sklearn", "sacrebleu")
CODE = f"""
import sys
import unrolled
from tests.small import DATA, QUICK
from tests.training.test_start import builds
from unrolled.training.optimiser import OPTIMISERS

seen = []
for kind in OPTIMISERS.values():
    def step(self, original=kind.step):
        seen.extend(name for name in {LONG} if name in sys.modules)
        original(self)
    kind.step = step
for form, optimiser in (("a stream", "adamw"), ("texts", "sgd")):
    task, data, settings = DATA[form]
    out = f"{{sys.argv[1]}}/{{optimiser}}"
    unrolled.train(data, task=task, model="gru", out=out, settings={{**QUICK, **settings, "optimiser": optimiser}})
task, data, settings = DATA["series along time"]
before = {{*sys.modules}}
run = unrolled.train(data, task=task, model="gru", out=f"{{sys.argv[1]}}/series", settings={{**QUICK, **settings}})
run.do("forecast", None)
seen += [f"{{name}} by a forecast" for name in {LONG[:2]} if name in {{*sys.modules}} - before]
for form in DATA:
    for config, ports, accepts in builds(form):
        before = {{*sys.modules}}
        unrolled.runs.build.on_paper(config, ports, accepts)
        seen += [f"{{name}} by {{config.model}}" for name in {LONG[:2]} if name in {{*sys.modules}} - before]
print(sorted(set(seen)))
"""


def builds(form):  # type: ignore[no-untyped-def]
    """Each model that fits a form of data, with what it is built for."""
    name, data, given = DATA[form]
    settings = {f"batching.{key}" if key == "length" else key: value for key, value in QUICK.items()}
    settings |= {f"data.{key}" if key == "examples" else key: value for key, value in given.items()}
    prepared = {}
    asks = make_task(configure(name, "lstm", data, settings)).asks()
    for model in discover.models.names():
        spec = discover.model(model)
        if misfit(spec, asks) is None:
            config = configure(name, model, data, settings | {"d_embedding": 8})
            if (key := json.dumps(config.task_settings)) not in prepared:
                prepared[key] = make_task(config)
                prepared[key].prepare(data)
            task = prepared[key]
            if misfit(spec, task.ports().asks(task.ACCEPTS)) is None:
                tiny = config.model_copy(update={"model_settings": spec.tiny.model_dump()})
                yield tiny, task.ports(), task.ACCEPTS


@pytest.mark.long
def test_neither_a_step_nor_a_model_on_paper_imports_the_compiler_of_torch(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("form", every(2, DATA))
def test_sizes_on_paper_are_those_in_memory(form: str) -> None:
    for config, ports, accepts in builds(form):
        paper, real = on_paper(config, ports, accepts), build(config, ports, accepts)
        assert {name: value.shape for name, value in paper.state_dict().items()} == {
            name: value.shape for name, value in real.state_dict().items()
        }, config.model
        assert {value.device.type for value in paper.state_dict().values()} <= {"meta"}
