"""Many clients at once: nothing is lost, texts are those of a client alone, no request is a failure of the server."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.serve import traffic

NAMES = list(traffic.WRITERS)


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, int], str]:
    return traffic.known_texts()


@pytest.mark.parametrize("trials", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_clients_at_once_get_what_each_gets_alone(address: str, known: dict, trials: int) -> None:
    with httpx.Client(base_url=address, timeout=60) as client, ThreadPoolExecutor(16) as pool:

        def differs(i: int) -> str | None:
            name, seed = NAMES[i % 2], i // 2 % traffic.SEEDS
            made = client.post("/v1/completions", json={"model": name, **traffic.asked(seed)})
            text = made.json()["choices"][0]["text"] if made.status_code == 200 else made.text
            return None if text == known[name, seed] else text

        assert [text for text in pool.map(differs, range(trials)) if text is not None] == []


def test_clients_that_do_everything(served: Callable[..., Any], known: dict) -> None:
    with served([traffic.RUNS]) as address:
        ended = traffic.send(address, known, requests=100, connections=8)
        assert [how for how in ended if "FAILED" in how] == []
        kinds = {how.split(":")[0] for how in ended}
        assert len(kinds) >= 9 and traffic.gauges(address)["unrolled_requests_in_progress"] <= 3


VALUES: list[Any] = [None, True, 0, -1, 1e30, 2**62, "", "a", "\u0000", "<b>", [], [[]], {}, [1, 2], ["a", 1], [None],
                     {"x": 1}, [{"text": "a"}], [[1.0, 2.0]], ["a"], [["a"]], [0.5] * 9, "9" * 400]  # fmt: skip


@pytest.mark.parametrize("requests", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_random_requests_are_never_a_failure_of_the_server(client: httpx.Client, requests: int) -> None:
    random.seed(1)
    told = client.get("/openapi.json").json()
    paths = [(path, method) for path in told["paths"] for method in told["paths"][path] if "/exports" not in path]
    runs = client.get("/runs").json()["runs"]
    for _ in range(requests):
        path, method = random.choice(paths)
        body: dict[str, Any] = {}
        if "requestBody" in told["paths"][path][method]:
            schema = told["paths"][path][method]["requestBody"]["content"].get("application/json", {}).get("schema", {})
            names = list(schema.get("properties", {}))
            body = {name: random.choice(VALUES) for name in random.sample(names, min(len(names), random.randint(0, 3)))}
            body |= {name: random.choice(VALUES) for name in schema.get("required", []) if random.random() < 0.9}
            if "model" in schema.get("required", []):
                body["model"] = random.choice(runs)
        place = path.replace("{run}", random.choice(runs))
        place = re.sub(r"\{\w+\}", "none", place)
        answer = client.request(method.upper(), place, json=body)
        assert answer.status_code < 500, (method, place, json.dumps(body)[:500], answer.text)
        assert answer.status_code < 400 or len(answer.content) < 4000


def test_a_text_that_cannot_be_continued_leaves_the_others_alone(client: httpx.Client, known: dict) -> None:
    """Every letter that it could be continued with has been written, and is as good as forbidden."""
    name = "next-token-tied"
    letters = json.loads((traffic.RUNS / name / "codec" / "tokenizer.json").read_text())["characters"]
    impossible = {"model": name, "prompt": letters, "repetition_penalty": 1e308, "max_tokens": 200}
    with ThreadPoolExecutor(8) as pool:

        def ask(i: int) -> httpx.Response:
            return client.post("/v1/completions", json=impossible if i % 2 else {"model": name, **traffic.asked(i)})

        answers = list(pool.map(ask, range(16)))
    found = [answer.json()["choices"][0]["text"] for answer in answers[::2]]
    assert found == [known[name, i] for i in range(0, 16, 2)]
    assert {answer.status_code for answer in answers[1::2]} == {422}
