"""A directory from anybody is served as safely as it is loaded: refused with a sentence, without harm to others."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults import hostile

RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "next-token"


def config(**more: Any) -> Callable[[Path], None]:
    """Other values in a config, sealed again."""

    def change(place: Path) -> None:
        before = json.loads((place / "config.json").read_text())
        inner = {key: before[key] | value if isinstance(value, dict) else value for key, value in more.items()}
        (place / "config.json").write_text(json.dumps(before | inner))
        hostile.reseal(place)

    return change


def weights(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        (place / "model.safetensors").unlink()
        make(place / "model.safetensors")

    return change


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**36)


def flipped(place: Path) -> None:
    data = bytearray((place / "model.safetensors").read_bytes())
    data[-5] ^= 1
    (place / "model.safetensors").write_bytes(data)


def code(place: Path) -> None:
    mine = place.parent.parent / "evil.py"
    mine.write_text(f"open({str(place.parent.parent / 'executed')!r}, 'w')")
    config(own_file=str(mine), own_file_sha256="0" * 64, model="evil")(place)


DIRECTORIES: dict[str, Callable[[Path], object]] = {
    "wide": config(model_settings={"d_state": 10**9}), "tall": config(model_settings={"n_layers": 50_000}),
    "pipe": weights(os.mkfifo), "sparse": weights(sparse), "device": weights(lambda path: path.symlink_to("/dev/zero")),
    "elsewhere": weights(lambda path: path.symlink_to("/etc/passwd")), "flipped": flipped, "code": code,
    "import": config(model="os"), "deep": lambda place: (place / "config.json").write_bytes(b"[" * 1_000_000),
    "escape": config(model="\x1b]0;owned\x07"),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strangers") / "runs"
    for name, change in DIRECTORIES.items():
        shutil.copytree(RUN, folder / name)
        change(folder / name)
    shutil.copytree(RUN, folder / "good")
    return folder


def test_directories_of_strangers_are_refused(served: Callable[..., Any], place: Path) -> None:
    body = {"prompt": "a", "max_tokens": 2}
    with served([place]) as address, httpx.Client(base_url=address, timeout=30) as client:
        assert set(client.get("/runs").json()["runs"]) == {*DIRECTORIES, "good"}
        for name in DIRECTORIES:
            began = time.monotonic()
            for answer in (client.get(f"/runs/{name}"), client.post("/v1/completions", json={**body, "model": name})):
                assert answer.status_code in (400, 413, 422), (name, answer.text)
                assert len(answer.content) < 4000 and str(place) not in answer.text, (name, answer.text)
                assert "\x1b" not in answer.json()["error"]["message"]
            assert time.monotonic() - began < 20
        assert client.post("/v1/completions", json={**body, "model": "good"}).status_code == 200
        counted = client.get("/metrics").text
    assert "unrolled_unexpected_total" not in "".join(line for line in counted.splitlines() if line[0] != "#")
    assert not (place.parent / "executed").exists()
