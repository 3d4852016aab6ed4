"""Many clients at once: the same seed gives the same text, alone or beside others, and random requests no failure."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import unrolled

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.mark.parametrize("name", ["next-token", "next-token-tied"])
def test_clients_at_once_get_what_each_gets_alone(address: str, name: str) -> None:
    run = unrolled.load(RUNS / name)
    prompts = ["", "a", "the ", "calcecal"]
    asked = [{"prompt": prompts[i % 4], "seed": i % 25, "max_tokens": 30, "temperature": 1.2} for i in range(100)]
    own = {i: run.generate(**asked[i])[0]["text"] for i in range(100)}
    with httpx.Client(base_url=address, timeout=60) as client, ThreadPoolExecutor(16) as pool:

        def text(i: int) -> tuple[int, str]:
            made = client.post("/v1/completions", json={"model": name, **asked[i]})
            return i, made.json()["choices"][0]["text"] if made.status_code == 200 else made.text

        assert dict(pool.map(text, range(100))) == own


VALUES: list[Any] = [None, True, 0, -1, 1e30, 2**62, "", "a", "\u0000", "<b>", [], [[]], {}, [1, 2], ["a", 1], [None],
                     {"x": 1}, [{"text": "a"}], [[1.0, 2.0]], ["a"], [["a"]], [0.5] * 9, "9" * 400]  # fmt: skip


def test_random_requests_are_never_a_failure_of_the_server(client: httpx.Client) -> None:
    random.seed(1)
    told = client.get("/openapi.json").json()
    paths = [(path, next(iter(told["paths"][path]))) for path in told["paths"]]
    runs = client.get("/runs").json()["runs"]
    for _ in range(400):
        path, method = random.choice(paths)
        body: dict[str, Any] = {}
        if "requestBody" in told["paths"][path][method]:
            schema = told["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
            names = list(schema.get("properties", {}))
            body = {name: random.choice(VALUES) for name in random.sample(names, min(len(names), random.randint(0, 3)))}
            body |= {name: random.choice(VALUES) for name in schema.get("required", []) if random.random() < 0.9}
            if "model" in schema.get("required", []):
                body["model"] = random.choice(runs)
        place = path.replace("{run}", random.choice(runs)).replace("{session}", "none")
        answer = client.request(method.upper(), place, json=body if body else {})
        assert answer.status_code < 500, (method, place, json.dumps(body)[:500], answer.text)
        assert answer.status_code < 400 or len(answer.content) < 4000
