"""ONNX: every run that the target claims gives in onnxruntime what it gives in torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.exports.claimed import CARRIED, REFUSED
from unrolled.core.errors import UsageError
from unrolled.core.export import Refused
from unrolled.exports import onnx
from unrolled.exports.tools import parity
from unrolled.exports.tools.exporting import export
from unrolled.exports.tools.traced import Form

onnxruntime = pytest.importorskip("onnxruntime")

PAGE = Path(__file__).parents[2] / "docs" / "exporting.md"


def facts_of(file: Path) -> tuple[Any, dict[str, Any]]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session, json.loads(session.get_modelmeta().custom_metadata_map["unrolled"])


@pytest.mark.parametrize("name", CARRIED)
def test_the_outputs_are_those_of_the_run(name: str, exported: Any) -> None:
    """The export itself compares 3 batch sizes over 50 ticks and refuses what differs."""
    written = exported(name, "onnx")
    assert written.difference <= 1e-5
    assert all(file.is_file() for file in written.files)


def test_names_and_open_sizes(exported: Any, run_of: Any) -> None:
    (file,) = exported("next-token", "onnx").files
    session, facts = facts_of(file)
    assert [each.name for each in session.get_inputs()] == ["token", "state.0"]
    assert [each.name for each in session.get_outputs()] == ["logits", "state.0.next"]
    assert facts["initial"] == {"state.0": {"shape": [6], "dtype": "float32", "values": 0.0}}
    assert facts["emission"]["name"] == "categorical"
    assert facts["codec"]["tokenizer.json"] == json.loads(run_of("next-token").task.codec.to_json())
    rows = [each.shape[0] for each in session.get_inputs()]
    assert all(isinstance(size, str) for size in rows)


def test_a_model_with_a_source_is_two_functions(exported: Any) -> None:
    files = exported("translate-transformer", "onnx").files
    assert [file.name.split(".")[1] for file in files] == ["condition", "step"]
    (condition, facts), (step, _) = map(facts_of, files)
    assert [each.name for each in condition.get_inputs()] == ["source", "mask"]
    made, read = ({each.name for each in session} for session in (condition.get_outputs(), step.get_inputs()))
    assert made | {*facts["initial"]} | {"token"} == read
    fixed = made - {each.name.removesuffix(".next") for each in step.get_outputs()}
    assert fixed == {f"state.2.1.{leaf}" for leaf in ("keys", "values", "mask", "bias")}  # what no tick changes


def test_a_gathering_state_begins_empty(exported: Any, run_of: Any) -> None:
    """50 ticks one by one beyond the window of 16, against the run as it writes."""
    (file,) = exported("next-token-tied", "onnx").files
    session, facts = facts_of(file)
    assert facts["initial"]["state.0.keys"]["shape"] == [2, 16, 4]  # a window: as many as it sees
    state = {name: np.zeros([1, *each["shape"]], each["dtype"]) for name, each in facts["initial"].items()}
    decoder, tokens = run_of("next-token-tied").model, torch.arange(40)[None] % 19
    with torch.no_grad():
        expected = decoder(tokens)[0][0].numpy()
    for t, token in enumerate(tokens[0].numpy()):
        logits, *after = session.run(None, {"token": token[None], **state})
        state = dict(zip(state, after, strict=True))
        assert np.abs(logits[0] - expected[t]).max() < 1e-4


def test_the_example_of_the_page_needs_onnxruntime_alone(exported: Any, run_of: Any, tmp_path: Path) -> None:
    (file,) = exported("next-token", "onnx").files
    (tmp_path / "lm.onnx").write_bytes(file.read_bytes())
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "lm.onnx" in each)
    without = "import sys; sys.modules.update(torch=None, unrolled=None)\n"
    done = subprocess.run([sys.executable, "-c", without + code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (greedy,) = run_of("next-token").generate("", temperature=0, max_tokens=40)
    assert done.stdout.strip("\n") == greedy["text"]
    assert len(greedy["text"]) > 3


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_graph_is_refused(name: str, run_of: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be exported to onnx, because its layer .* decides by values"):
        export(run_of(name), "onnx", tmp_path / "a.onnx")
    assert [*tmp_path.iterdir()] == []
    assert onnx.EXPORT.why_not(run_of(name))


def test_an_export_that_differs_is_refused(
    run_of: Any, exported: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exported("next-token", "onnx")
    monkeypatch.setattr(parity, "LARGEST", 1e-12)
    with pytest.raises(UsageError, match="differ from those of the run by"):
        export(run_of("next-token"), "onnx", tmp_path / "a.onnx")
    assert [*tmp_path.iterdir()] == []


def test_a_missing_package_is_named_with_its_extra(
    run_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"onnxruntime is not installed.*pip install 'unrolled\[onnx\]'"):
        export(run_of("next-token"), "onnx", tmp_path / "a.onnx")


def test_a_state_keeps_what_no_tick_changes_apart() -> None:
    from unrolled.core.state import Fixed

    form = Form((torch.zeros(2, 1), Fixed({"a": torch.ones(2, 3)}), {"b": torch.zeros(2)}))
    assert form.names == ["state.0", "state.1.a", "state.2.b"]
    assert form.moves == [True, False, True]
    with pytest.raises(Refused, match="another structure"):
        form.leaves((torch.zeros(2, 1),))
