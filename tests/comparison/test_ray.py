"""Comparisons on Ray: the table of one machine digit by digit, also where a node is lost, with no shared folder too."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import attempt, run_unrolled
from tests.tables import SMALL, scores, told, write_words
from unrolled.comparison import ray_engine
from unrolled.comparison.parcels import pack, unpack
from unrolled.comparison.runner import needed
from unrolled.comparison.saved import Comparison
from unrolled.core.errors import DataError, UsageError

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="the package ray is not installed; `make test-scale` installs it"
)
FAST = SMALL | {"evaluate_every": 20, "steps": 200}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_words(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("alone") / "words"
    run_unrolled("compare", text, "-o", out, "--jobs", "1", *told(FAST), forked=True)
    return Comparison(out)


CLUSTER = """
import json, os, sys, time
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster

import unrolled
from unrolled.comparison import ray_engine
from unrolled.comparison.view import Lines

text, out, told = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
STORE = 80 * 2**20
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE, **HEAD})
node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
address = cluster.address
os.environ["RAY_ADDRESS"] = address


class View(Lines):
    begun, killed = set(), False

    def event(self, event):
        super().event(event)
        if KILL and event["event"] == "evaluation" and not self.killed:
            self.begun.add(event["folder"])
            if {"elman-0", "gru-0"} <= self.begun:
                View.killed = True
                cluster.remove_node(node, allow_graceful=False)

BEFORE
try:
    found = unrolled.compare(text, out=out, settings=told, engine=ENGINE, view=View())
finally:
    ray.shutdown()
    cluster.shutdown()
"""


def on_cluster(text: Path, out: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """A comparison on a new cluster of two nodes with one core each, in a process of its own."""
    names = {"KILL": "False", "HEAD": "{}", "BEFORE": "", "ENGINE": '"ray"'} | given
    code = CLUSTER
    for name, value in names.items():
        code = code.replace(name, value)
    words = [sys.executable, "-c", code, str(text), str(out), json.dumps(FAST)]
    return subprocess.run(words, capture_output=True, text=True, timeout=280, cwd=out.parent)


@needs_ray
def test_a_node_that_is_lost_changes_nothing(text: Path, alone: Comparison, tmp_path: Path) -> None:
    done = on_cluster(text, tmp_path / "out", KILL="True")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "its node was lost" in done.stderr
    assert scores(Comparison(tmp_path / "out")) == scores(alone)
    for run in ("elman-0", "gru-0"):  # continued, not begun again
        lines = (tmp_path / "out" / run / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        assert steps == sorted(set(steps))
    assert not [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


@needs_ray
def test_without_a_shared_folder_runs_come_back(text: Path, alone: Comparison, tmp_path: Path) -> None:
    """And are continued elsewhere from what had come back when a node was lost."""
    unshared = "from functools import partial\nray_engine.RayEngine = partial(ray_engine.RayEngine, mark='.none')"
    done = on_cluster(text, tmp_path / "out", KILL="True", BEFORE=unshared)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "its node was lost" in done.stderr
    found = Comparison(tmp_path / "out")
    assert scores(found) == scores(alone)
    assert found.best.evaluate()["nats"] == pytest.approx(found.best.result["test"]["nats"], rel=1e-5)


@needs_ray
def test_a_cluster_by_its_client_port(text: Path, alone: Comparison, tmp_path: Path) -> None:
    port = "25101"
    done = on_cluster(
        text, tmp_path / "out", HEAD=f"{{'ray_client_server_port': {port}}}", ENGINE=f'"ray://127.0.0.1:{port}"'
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert scores(Comparison(tmp_path / "out")) == scores(alone)


@needs_ray
def test_a_node_with_another_version_is_refused(text: Path, tmp_path: Path) -> None:
    done = on_cluster(text, tmp_path / "out", BEFORE='unrolled.__version__ = "9.9"')
    assert "UsageError: the node " in done.stderr and "this is 9.9; install the same version there" in done.stderr
    assert not (tmp_path / "out").exists()


LISTENS = """
import os, sys
from pathlib import Path

import unrolled
from unrolled.comparison import ray_engine

with ray_engine.Cluster("ray") as cluster:
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    print("token", oct(token.stat().st_mode & 0o777), os.environ["RAY_USAGE_STATS_ENABLED"])
    session = Path(cluster.ray._private.worker._global_node.get_session_dir_path()).name
    ours = [p for p in Path("/proc").iterdir() if p.name.isdigit() and session in (p / "cmdline").read_text()]
    sockets = {os.readlink(d) for p in ours for d in (p / "fd").iterdir() if d.is_symlink()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                print("listens", words[1].split(":")[0])
print("gone", not token.exists())
"""


@needs_ray
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system does not list its sockets")
def test_a_local_start_is_for_this_user_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENS], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["token", "0o600", "0"] in lines and ["gone", "True"] in lines
    listens = {words[1] for words in lines if words[0] == "listens"}
    assert listens and listens <= {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@needs_ray
@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "ray://somewhere.invalid:10001"])
def test_an_address_that_nobody_answers(text: Path, tmp_path: Path, address: str) -> None:
    found = attempt("compare", text, "--engine", address, "-o", tmp_path / "out", *told(FAST))
    assert found.code == 2 and f"no Ray cluster at {address}: no connection" in found.err
    assert not (tmp_path / "out").exists()


def test_the_extra_is_named(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"the package ray is not installed.*pip install 'unrolled\[ray\]'"):
        ray_engine.Cluster("ray")


def test_nothing_imports_ray_unless_it_is_asked_for() -> None:
    code = "import sys, unrolled.comparison.api, unrolled.cli.compare; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    light = "import sys, unrolled.comparison.runner; sys.exit('torch' in sys.modules)"  # a process of each actor
    assert subprocess.run([sys.executable, "-c", light]).returncode == 0


def test_versions_of_nodes() -> None:
    ray_engine.require_version("node7", ray_engine.unrolled.__version__)
    with pytest.raises(UsageError, match="the node node7 of the Ray cluster has no unrolled"):
        ray_engine.require_version("node7", None)


def test_a_parcel_is_the_folder(tmp_path: Path) -> None:
    run = tmp_path / "here" / "gru-0"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "latest").write_text("{}")
    (run / "config.json").write_text("new")
    (run / ".lock").touch()
    (run / ".config.json.tmp-12-0a1b2c3d-0").touch()
    old = tmp_path / "there" / "gru-0"
    old.mkdir(parents=True)
    (old / "gone.json").touch()
    parcel = pack(tmp_path / "here", ["gru-0", "elman-0"])
    unpack(tmp_path / "there", parcel)
    assert {path.relative_to(old).as_posix() for path in old.rglob("*") if path.is_file()} == {
        "config.json", "checkpoints/latest"}  # fmt: skip
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["gru-0"]


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", ""])
def test_a_parcel_stays_where_it_is_put(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError, match="not a path within"):
        unpack(tmp_path / "there", {"gru-0": {path: b"x"}})
    with pytest.raises(DataError, match="not a path within"):
        unpack(tmp_path / "there", {path: {"a": b"x"}})


def test_what_an_order_reads() -> None:
    order = {"out": "c/dan", "members": ["c/dan-fold-0"], "candidates": {"runs": ["c/a"], "folds": [["c/b"], []]}}
    assert needed(order, "c") == ["dan", "dan-fold-0", "a", "b"]
