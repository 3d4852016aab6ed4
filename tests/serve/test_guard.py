"""What a server refuses: H1 to H10, each with a small answer and none of them with a failure of the server."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import unrolled
from unrolled.core.errors import UsageError
from unrolled.core.task import Given
from unrolled.decode import rollout
from unrolled.decode.together import Together, Token
from unrolled.engine import stepper
from unrolled.kernels import native
from unrolled.serve import impatient, page, start
from unrolled.serve.counted import Counted
from unrolled.serve.found import find
from unrolled.serve.hosted import Hosted
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused
from unrolled.serve.worker import Worker

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
ONE = RUNS / "next-token"
ASKED = {"model": "next-token", "prompt": "a", "max_tokens": 3}
JSON = {"Content-Type": "application/json"}


def small(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status and len(answer.content) < 4000, answer.text[:500]
    return answer.json()["error"]


def until(ask: Callable[[], httpx.Response], status: int) -> httpx.Response:
    """The first answer with a status, within seconds."""
    deadline = time.monotonic() + 10
    while (answer := ask()).status_code != status:
        assert time.monotonic() < deadline, answer.text[:500]
        time.sleep(0.02)
    return answer


def test_beyond_this_machine_a_token_is_needed() -> None:
    with pytest.raises(UsageError, match="give a token"):
        start.make([str(ONE)], Limits(), host="0.0.0.0")
    with pytest.raises(UsageError, match="at least 16"):
        start.make([str(ONE)], Limits(), token="short")


def test_a_token_is_checked_everywhere_but_for_health(served: Callable[..., Any]) -> None:
    token = "t" * 20
    with served([ONE], token=token) as address, httpx.Client(base_url=address) as client:
        assert client.get("/health").status_code == 200
        for path in ("/v1/models", "/metrics", "/openapi.json", "/runs", "/nowhere"):
            assert small(client.get(path), 401)["code"] == "token"
            assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        right = {"Authorization": f"Bearer {token}"}
        assert client.get("/v1/models", headers=right).status_code == 200
        assert client.post("/v1/completions", json=ASKED, headers=right).status_code == 200


def test_other_hosts_and_pages_of_other_sites_are_refused(client: httpx.Client) -> None:
    assert small(client.get("/health", headers={"Host": "evil.example"}), 403)["code"] == "host"
    assert small(client.get("/v1/models", headers={"Origin": "http://evil.example"}), 403)["code"] == "origin"
    assert client.get("/health", headers={"Host": "localhost:1"}).status_code == 200
    own = str(client.base_url).rstrip("/")
    assert client.get("/health", headers={"Origin": own}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"model": NaN}', 400),
        (b'{"model": "next-token", "temperature": Infinity}', 400),
        (b'{"model": "next-token", "temperature": 1e999}', 400),
        (b'{"model": "next-token", "seed": 1' + b"0" * 5000 + b"}", 400),
        (b'{"model": "next-token", "prompt": "\\ud800"}', 400),
        (b'{"model": "next-token", "prompt": "\xff\xfe"}', 400),
        (b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"model": "../../etc/passwd", "prompt": "a"}', 404),
        (b'{"model": ' + b'"a"' * 1 + b"}", 404),
        (b'{"model": "' + b"x" * 100_000 + b'"}', 404),
        (b"{" + b" " * 2_000_000 + b"}", 413),
    ],
)
def test_odd_bodies_are_answered_briefly(client: httpx.Client, body: bytes, status: int) -> None:
    small(client.post("/v1/completions", content=body, headers=JSON), status)


def test_only_json_is_read(client: httpx.Client) -> None:
    text = json.dumps(ASKED)
    small(client.post("/v1/completions", content=text, headers={"Content-Type": "text/plain"}), 415)
    small(client.get("/nowhere"), 404)
    small(client.get("/v1/completions"), 405)


def test_no_file_is_opened_because_a_client_names_it(client: httpx.Client, tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    there = tmp_path / "image.png"
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(there)
    told = {}
    for name in (str(there), str(tmp_path / "not-there.png"), "/etc/passwd"):
        for run, value in (("caption", name), ("caption", {"image": name}), ("recognise", {"sound": name}),
                           ("recognise", name), ("classify", {"file": name})):  # fmt: skip
            answer = client.post(f"/runs/{run}/predict", json={"inputs": [value]})
            if run != "classify":
                assert 400 <= answer.status_code < 500, answer.text
            told.setdefault((run, str(type(value))), set()).add(answer.text.replace(name, "NAME"))
    assert all(len(answers) == 1 for answers in told.values()), told  # nor is it told whether there is one
    for source in (str(there), "builtin:sunspots", "-"):
        answer = client.post("/runs/forecast/forecast", json={"inputs": source})
        assert answer.status_code == 400
        assert str(RUNS) not in client.post("/runs/forecast/generate", json={}).text


def test_what_is_too_slow_or_too_much_is_refused(served: Callable[..., Any]) -> None:
    with served([ONE], seconds=4, concurrent=2) as address:
        where = urlsplit(address)
        held = []
        for _ in range(2):  # bodies that do not arrive
            one = socket.create_connection((where.hostname, where.port), timeout=10)
            one.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            held.append(one)
        refused = until(lambda: httpx.get(f"{address}/v1/models"), 429)
        assert small(refused, 429)["code"] == "busy" and refused.headers["Retry-After"]
        assert b" 408 " in held[0].recv(1000)
        for one in held:
            one.close()
        until(lambda: httpx.get(f"{address}/v1/models"), 200)


def test_a_head_that_does_not_arrive_is_not_waited_for(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(impatient, "SECONDS", 0.2)
    with served([ONE]) as address:
        where = urlsplit(address)
        for sent in (b"", b"GET /health HTTP/1.1\r\nHost: loc"):
            with socket.create_connection((where.hostname, where.port), timeout=10) as one:
                one.sendall(sent)
                assert one.recv(1000) == b""
        with httpx.Client(base_url=address) as client:  # others are not disturbed
            for _ in range(4):
                assert client.get("/health").status_code == 200
                time.sleep(0.15)


def test_what_nobody_explains_is_a_failure_of_the_server_that_is_logged(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: unrolled.Run, *args: Any) -> Any:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(unrolled.Run, "each", broken)
    with served([ONE]) as address:
        answer = httpx.post(f"{address}/runs/next-token/score", json={"inputs": ["a"]}, timeout=30)
        assert "internal error" in small(answer, 500)["message"] and "secret" not in answer.text
        assert "unrolled_unexpected_total 1" in httpx.get(f"{address}/metrics").text


def test_time_is_limited(served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: unrolled.Run, *args: Any) -> Iterator[Any]:
        for _ in range(100):
            time.sleep(0.05)
            yield Given("a"), {}

    monkeypatch.setattr(unrolled.Run, "each", slow)
    with served([ONE], seconds=1) as address:
        late = httpx.post(f"{address}/runs/next-token/score", json={"inputs": ["a"]}, timeout=30)
        assert small(late, 504)["code"] == "timeout"


def test_a_request_that_waited_too_long_is_not_begun() -> None:
    async def late() -> Any:
        hosted = Hosted(find([str(ONE)]), Limits(), Counted(), None)
        try:
            return await hosted.ask("next-token", lambda run: iter([1]), seconds=-1.0).all()
        finally:
            hosted.close()

    with pytest.raises(Refused, match="took longer"):
        asyncio.run(late())


def test_a_thread_that_failed_is_replaced(served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Worker) -> None:
        raise ZeroDivisionError

    with served([ONE]) as address:
        with monkeypatch.context() as patched:
            patched.setattr(Worker, "_advance", broken)
            refused = httpx.post(f"{address}/runs/next-token/score", json={"inputs": ["a"]}, timeout=30)
            assert small(refused, 503)
        again = httpx.post(f"{address}/runs/next-token/score", json={"inputs": ["a"]}, timeout=30)
        assert again.status_code == 200
        assert "unrolled_unexpected_total 1" in httpx.get(f"{address}/metrics").text


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_stops_the_work(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    ticks = [0]

    def endless(together: Together) -> list[tuple[Any, Token]]:
        ticks[0] += 1
        time.sleep(0.01)
        return [(row, Token(5, -1.0, [], False, False)) for group in together._groups for row in group.rows]

    monkeypatch.setattr(Together, "tick", endless)
    with served([ONE]) as address:
        httpx.get(f"{address}/runs/next-token", timeout=30)  # loads it
        with pytest.raises(httpx.ReadTimeout), httpx.Client(timeout=1.0) as client:  # noqa: SIM117
            with client.stream("POST", f"{address}/v1/completions", json={**ASKED, "stream": stream}) as answer:
                for _ in answer.iter_raw():
                    if ticks[0] > 20:
                        raise httpx.ReadTimeout("enough")
        assert ticks[0] > 3
        time.sleep(0.3)
        before = ticks[0]
        time.sleep(0.2)
        assert ticks[0] == before


@pytest.mark.parametrize(("loop", "level", "seconds"), [(rollout, "off", 0.005), (stepper, "", 0.3)])
def test_a_verb_stops_when_nobody_waits(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, loop: Any, level: str, seconds: float
) -> None:
    if not level and not native.built():
        pytest.skip("no native library was built")
    steps = [0]
    take = loop.require_wanted

    def counted() -> None:
        steps[0] += 1
        time.sleep(seconds)
        take()

    monkeypatch.setenv(native.VARIABLE, level)
    monkeypatch.setattr(loop, "require_wanted", counted)
    monkeypatch.setattr(rollout, "token_ids", lambda stop: [])  # texts do not end by themselves
    with served([ONE]) as address:
        httpx.get(f"{address}/runs/next-token", timeout=30)  # loads it
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{address}/runs/next-token/generate", json={"max_tokens": 2000}, timeout=1)
        time.sleep(0.5)
        before = steps[0]
        time.sleep(0.4)
        assert 0 < before == steps[0] < 1000


def test_the_page_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    for path in ("/", "/addresses", *(f"/page/{name}" for name in page.files())):
        answer = client.get(path)
        assert answer.status_code == 200 and "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        named = re.findall(r"https?://\S+", answer.text)
        assert [each for each in named if "http://www.w3.org/2000/svg" not in each] == []
        for reads_html in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "<style",
            "style=",
        ):
            assert reads_html not in answer.text, (path, reads_html)
    assert all('<script type="module" src=' in client.get(path).text for path in ("/", "/addresses"))
    for bad in ("../guard.py", "..%2fguard.py", "", "rooms", "rooms/../../guard.py", "/etc/passwd"):
        assert client.get(f"/page/{bad}").status_code == 404


def test_text_is_text(client: httpx.Client) -> None:
    bad = "<script>alert(1)</script>"
    for answer in (client.get(f"/v1/models/{bad}"), client.post("/v1/completions", json={"model": bad})):
        assert answer.status_code == 404 and answer.headers["Content-Type"].startswith("application/json")
