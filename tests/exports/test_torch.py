"""torch: the written module gives what the run gives, in a process where unrolled cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.exports.claimed import CARRIED

ALONE = """
import sys, numpy as np
sys.modules["unrolled"] = None
sys.path.insert(0, sys.argv[1])
import torch
from {module} import FACTS, Model
given = np.load(sys.argv[2])
model = Model.load()
with torch.no_grad():
    if FACTS["kind"] == "causal":
        first, state = model(torch.from_numpy(given["x"][:, :3]))
        rest, _ = model(torch.from_numpy(given["x"][:, 3:]), state)
        y = torch.cat([first, rest], 1)
    else:
        y = model(torch.from_numpy(given["x"]), torch.from_numpy(given["mask"]))
np.save(sys.argv[3], y.numpy())
"""


@pytest.mark.parametrize("name", CARRIED)
def test_the_outputs_are_those_of_the_run(name: str, exported: Any) -> None:
    """The export itself compares 3 batch sizes over 50 ticks and refuses what differs."""
    weights, file = exported(name, "torch").files
    assert exported(name, "torch").difference <= 1e-5
    assert "unrolled" not in [
        line.split()[1].split(".")[0] for line in file.read_text().splitlines() if line.startswith(("import", "from"))
    ]
    assert weights.suffix == ".safetensors"


@pytest.mark.parametrize("name", ["next-token", "classify"])
def test_it_needs_torch_alone(name: str, exported: Any, run_of: Any, tmp_path: Path) -> None:
    _, file = exported(name, "torch").files
    x = torch.randint(4, 9, (2, 11), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(11) < torch.tensor([[11], [6]])
    np.savez(tmp_path / "given.npz", x=x.numpy(), mask=mask.numpy())
    program = ALONE.replace("{module}", "copied")
    (tmp_path / "copied.py").write_bytes(file.read_bytes())
    (tmp_path / file.with_suffix(".safetensors").name).write_bytes(file.with_suffix(".safetensors").read_bytes())
    words = [tmp_path, tmp_path / "given.npz", tmp_path / "y.npy"]
    done = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model = run_of(name).model
    with torch.no_grad():
        expected = model(x)[0] if name == "next-token" else model(x, mask)[0][:, 0]
    assert np.abs(np.load(tmp_path / "y.npy") - expected.numpy()).max() < 1e-5


def test_weights_keep_their_names(exported: Any, run_of: Any) -> None:
    weights, _ = exported("translate-transformer", "torch").files
    own = run_of("translate-transformer").model.state_dict()
    saved = load_file(weights)
    assert {name for name in saved if not name.startswith("constants.")} <= {*own}
    assert all(torch.equal(value, own[name]) for name, value in saved.items() if name in own)
    assert len(saved) >= len(own)
