"""Files of visitors: under names that the server makes, bounded, swept; and how they are parsed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

import unrolled
from tests.serve.conftest import RUNS
from unrolled.core.errors import DataError
from unrolled.core.opening import ONLY_IN, open_regular
from unrolled.serve import orders, uploads
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused

BINARY = {"Content-Type": "application/octet-stream"}
ROWS = [("fine weather", "good"), ("poor weather", "bad"), ("fine soup", "good"), ("poor soup", "bad")] * 15
TABLE = "text,label\n" + "".join(f"{text} {i},{label}\n" for i, (text, label) in enumerate(ROWS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def training(folder: Path) -> Iterator[str]:
    from tests.serve.conftest import serving

    with serving([RUNS / "next-token"], train=folder, upload=20_000, uploads=45_000, seconds=60) as address:
        yield address


@pytest.fixture
def client(training: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=training, timeout=60) as found:
        yield found


def sent(client: httpx.Client, content: Any = TABLE, name: str = "reviews.csv", **more: Any) -> httpx.Response:
    return client.post("/uploads", params={"name": name}, content=content, headers={**BINARY, **more})


def files(folder: Path) -> list[Path]:
    return [each for each in (folder / "uploads").rglob("*") if each.is_file()]


def small(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status and len(answer.content) < 4000, answer.text[:500]
    return str(answer.json()["error"]["message"])


def test_a_server_trains_nothing_unless_it_is_told_to(address: str) -> None:
    with httpx.Client(base_url=address, timeout=30) as client:
        assert client.get("/training").json()["enabled"] is False
        refused = [
            sent(client), client.post("/data", json={"file": "x"}), client.post("/comparisons", json={"file": "x"})
        ]  # fmt: skip
        assert all("--train" in small(answer, 403) for answer in refused)
        assert client.post("/comparisons/any/stop").status_code == 404


def test_a_file_is_kept_for_its_server_alone(client: httpx.Client, folder: Path) -> None:
    answer = sent(client, name="../../My reviews?.CSV")
    told = answer.json()
    assert answer.status_code == 201 and told == {"file": told["file"], "name": "My-reviews.csv", "bytes": len(TABLE)}
    place = folder / "uploads" / told["file"] / "My-reviews.csv"
    assert place.read_text() == TABLE
    assert stat.S_IMODE(place.stat().st_mode) == 0o600 and stat.S_IMODE(place.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "kept"),
    [("/etc/cron.d/x.csv", "x.csv"), ("..\\..\\x.csv", "x.csv"), (".csv", "data.csv"), ("-rf.csv", "rf.csv"),
     ("a\0b.csv", "a-b.csv"), ("<img src=x onerror=alert(1)>.csv", "img-src-x-onerror-alert-1.csv"),
     ("é" * 300 + "x" * 300 + ".csv", "x" * 60 + ".csv"), ("con.tar.csv", "con-tar.csv")],
)  # fmt: skip
def test_names_are_made_of_plain_letters(client: httpx.Client, folder: Path, name: str, kept: str) -> None:
    assert sent(client, name=name).json()["name"] == kept
    assert all(each.parent.parent == folder / "uploads" for each in files(folder))


@pytest.mark.parametrize("name", ["", "x", "x.exe", "../../etc/passwd", "x.csv/../y", "x.csv.gz", "x.csv "])
def test_other_kinds_of_files_are_refused(client: httpx.Client, name: str) -> None:
    assert "expected a file whose name ends in .csv" in small(sent(client, name=name), 415)


def test_bodies_of_other_kinds_and_other_sites_are_refused(client: httpx.Client, folder: Path) -> None:
    before = files(folder)
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
        small(sent(client, **{"Content-Type": kind}), 415)
    small(sent(client, content=b""), 400)
    small(sent(client, Origin="http://elsewhere.example"), 403)
    assert files(folder) == before


def test_a_file_that_is_too_large_leaves_nothing(client: httpx.Client, folder: Path) -> None:
    before = files(folder)

    def pieces() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 1000

    assert "larger than 20,000 bytes" in small(sent(client, b"x" * 20_001), 413)
    assert "larger than 20,000 bytes" in small(sent(client, pieces()), 413)
    assert files(folder) == before and all(each.name[0] != "." for each in files(folder))


def test_a_file_that_breaks_off_leaves_nothing(training: str, folder: Path) -> None:
    before = {each.name for each in (folder / "uploads").iterdir()}

    def broken() -> Iterator[bytes]:
        yield b"x" * 1000
        raise RuntimeError

    with httpx.Client(base_url=training) as client, pytest.raises(RuntimeError):
        sent(client, broken())
    until(lambda: {each.name for each in (folder / "uploads").iterdir()} == before)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_full_disk_is_told(client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(folder)

    def full(descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(uploads, "_write_all", full)
    assert small(sent(client), 507) == "there is not enough room on the disk of the server (No space left on device)"
    assert files(folder) == before


def test_the_oldest_files_go_when_there_is_no_room(client: httpx.Client, folder: Path) -> None:
    first = sent(client, "a,b\n" + "1,2\n" * 4000).json()["file"]
    for _ in range(2):
        time.sleep(0.02)
        last = sent(client, "a,b\n" + "1,2\n" * 4000).json()["file"]
    assert not (folder / "uploads" / first).exists() and (folder / "uploads" / last).exists()
    assert sum(each.stat().st_size for each in files(folder)) <= 45_000
    assert "upload it again" in small(client.post("/data", json={"file": first}), 404)


def test_what_was_left_half_written_or_long_ago_is_swept(tmp_path: Path, served: Callable[..., Any]) -> None:
    half, old, fresh, other = (tmp_path / "uploads" / each for each in ("0" * 16, "1" * 16, "2" * 16, "other"))
    for place, name in ((half, ".x.csv"), (old, "x.csv"), (fresh, "x.csv"), (other, "x.csv")):
        place.mkdir(parents=True)
        (place / name).write_text("a,b\n1,2\n")
    os.utime(old / "x.csv", (0, 0))
    with served([RUNS / "next-token"], train=tmp_path):
        assert {each.name for each in (tmp_path / "uploads").iterdir()} == {"2" * 16, "other"}


def test_data_is_told_as_by_the_library(client: httpx.Client, tmp_path: Path) -> None:
    answer = client.post("/data", json={"file": sent(client).json()["file"]})
    (tmp_path / "reviews.csv").write_text(TABLE)
    known = json.dumps(unrolled.describe(tmp_path / "reviews.csv")).replace(f"{tmp_path}/", "")
    told = answer.json()
    assert answer.status_code == 200 and told["task"] == "classify" and told["source"] == "reviews.csv"
    assert {**told, "fingerprint": ""} == {**json.loads(known), "fingerprint": ""}


def test_what_is_wrong_with_data_is_one_sentence_without_places(client: httpx.Client, folder: Path) -> None:
    number = sent(client, "text,label\n").json()["file"]
    said = small(client.post("/data", json={"file": number}), 422)
    assert "reviews.csv" in said and str(folder) not in said and number not in said
    number = sent(client).json()["file"]
    for body, status in (
        ({"file": number, "task": "no-such-task"}, 400), ({"file": "../x"}, 404), ({"file": 5}, 400), ({}, 400),
        ({"file": number, "settings": {"target": "label"}}, 400), ({"file": number, "more": 1}, 400),
        ({"file": number, "task": "classify", "settings": {"target": "nowhere"}}, 400),
        ({"file": number, "task": "classify", "settings": {"lr": 1}}, 400),
        ({"file": number, "task": "classify", "settings": {"target_file": "/etc/passwd"}}, 400),
        ({"file": number, "task": "recognise", "settings": {"target_file": "/etc/passwd"}}, 400),
        ({"file": number, "task": "classify", "settings": {"target": "x" * 500}}, 400),
    ):  # fmt: skip
        small(client.post("/data", json=body), status)


def test_files_that_data_names_are_not_opened(client: httpx.Client, folder: Path, tmp_path: Path) -> None:
    for number in range(30):
        Image.new("RGB", (8, 8), (8 * number, 0, 0)).save(tmp_path / f"{number}.png")
    table = "image,caption\n" + "".join(f"{tmp_path / str(number)}.png,a square {number}\n" for number in range(30))
    (tmp_path / "captions.csv").write_text(table)
    assert unrolled.describe(tmp_path / "captions.csv", "caption")["examples"]  # where they lie beside it
    number = sent(client, table, "captions.csv").json()["file"]
    said = small(client.post("/data", json={"file": number, "task": "caption"}), 422)
    assert "points outside" in said or "not opened here" in said


def test_a_process_may_be_kept_to_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path / "own", tmp_path / "other"):
        place.mkdir()
        (place / "x.csv").write_text("a\n")
    (tmp_path / "own" / "link.csv").symlink_to(tmp_path / "other" / "x.csv")
    monkeypatch.setenv(ONLY_IN, str(tmp_path / "own"))
    open_regular(tmp_path / "own" / "x.csv").close()
    open_regular(tmp_path / "other" / "x.csv", within=tmp_path / "other").close()
    for path in ("other/x.csv", "own/../other/x.csv", "own/link.csv"):
        with pytest.raises(DataError, match="not opened here"):
            open_regular(tmp_path / path)


def test_files_that_arrive_at_once_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "STEP", 1000)
    kept = uploads.Uploads(tmp_path, Limits.parse({"upload": 2000, "uploads": 5000}))
    most = [0]

    class Slow:
        headers = {"content-type": "application/octet-stream"}

        async def stream(self) -> AsyncIterator[bytes]:
            for _ in range(10):
                yield b"x" * 200
                await asyncio.sleep(0.001)
                most[0] = max(most[0], sum(each.stat().st_size for each in files(tmp_path)))

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(kept.take(Slow(), "a.csv") for _ in range(8)), return_exceptions=True)

    ended = asyncio.run(all_at_once())
    refused = [each for each in ended if isinstance(each, Refused)]
    assert refused and {each.status for each in refused} == {413}
    assert len(refused) < 8 and most[0] < 5000 + 8 * 1000


def test_a_process_whose_order_cannot_be_given_is_ended(tmp_path: Path) -> None:
    async def failing() -> Any:
        with pytest.raises(TypeError):
            await orders.begin({"do": object()})
        return list(orders._under_way[asyncio.get_running_loop()])

    assert asyncio.run(failing()) == []
