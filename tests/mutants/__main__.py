"""`python -m tests.mutants ROOM`: how many small faults in a room the tests notice."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "unrolled"
sys.path.insert(0, str(ROOT))

from tests.mutants.operators import Mutant, mutants_of  # noqa: E402
from tests.mutants.trial import Reach, is_noticed, live_functions, put_in, reach_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
BESIDE = {
    "layers": ("golden", "contract", "models", "runs/test_cost.py"), "decode": ("objectives/test_ctc.py",),
    "training": ("comparison/test_folds.py",),
}  # fmt: skip  # tests that try a room beside its own
CACHE = ROOT / ".mutants"
MOST_SECONDS = 120.0  # of tests for one mutant, the room's own first, then the quickest


class Trials:
    """A plugin that takes the place of the test run."""

    def __init__(self, room: str, count: int, seed: int) -> None:
        self.room, self.count, self.seed = room, count, seed
        known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
        self.equivalent: dict[str, str] = known.get(room, {})
        self.result: dict[str, Any] = {}

    def drawn(self) -> list[Mutant]:
        """All mutants of the room as they are drawn: in the order of a hash, so that most stay when code moves."""
        room = PACKAGE / self.room
        found = [m for file in sorted(room.rglob("*.py")) for m, _ in mutants_of(file, str(file.relative_to(room)))]

        def place(mutant: Mutant) -> str:
            return hashlib.sha256(f"{self.seed} {mutant.key}".encode()).hexdigest()

        return sorted(found, key=place)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        reach = reach_as_it_is(session.items, PACKAGE / self.room)
        say(f"{len(reach)} of {len(items)} tests pass as the code is, in {sum(s for s, _ in reach.values()):.0f} s")
        alive = live_functions(PACKAGE / self.room)
        drawn = self.drawn()
        outcomes: list[dict[str, Any]] = []
        for mutant in drawn:
            if sum(outcome["outcome"] != "equivalent" for outcome in outcomes) == self.count:
                break
            if mutant.key in self.equivalent:
                outcomes.append({"mutant": mutant.key, "outcome": "equivalent", "why": self.equivalent[mutant.key]})
                continue
            tests, seconds = self.tests_of(mutant, reach)
            outcome, by = is_noticed(
                lambda m=mutant: put_in(*self.changed(m), alive), [items[test] for test in tests], seconds
            )
            if outcome is None:
                continue
            say(f"{outcome:9} {mutant.operator:20} {mutant.file}:{mutant.line} {mutant.key}  [{len(tests)}] {by or ''}")
            outcomes.append({
                "mutant": mutant.key, "operator": mutant.operator, "outcome": outcome, "tests": len(tests), "by": by,
            })  # fmt: skip
        self.result = summary(self.room, self.seed, len(drawn), outcomes)
        return True

    def changed(self, mutant: Mutant) -> tuple[Any, Path, str]:
        path = PACKAGE / self.room / mutant.file
        for other, tree in mutants_of(path, mutant.file):
            if other == mutant:
                return tree, path, mutant.function
        raise LookupError(mutant.key)

    def tests_of(self, mutant: Mutant, reach: Reach) -> tuple[list[str], float]:
        """The tests that run the function, the room's own first, the quick ones first; and what they take."""
        place = f"{mutant.file} {mutant.function}"
        found = [test for test, (_, seen) in reach.items() if place in seen]
        found.sort(key=lambda test: (not test.startswith(f"tests/{self.room}/"), reach[test][0]))
        chosen: list[str] = []
        total = 0.0
        for test in found:
            if total + reach[test][0] <= MOST_SECONDS:
                chosen.append(test)
                total += reach[test][0]
        return chosen, total


def digest(tests: Sequence[str]) -> str:
    """Of all that decides which test runs what."""
    found = hashlib.sha256(json.dumps(tests).encode())
    for file in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        if file.parent != Path(__file__).parent:
            found.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return found.hexdigest()


def reach_as_it_is(items: Sequence[pytest.Item], room: Path) -> Reach:
    """Which test runs which functions; kept until the code or a test changes."""
    cache, now = CACHE / f"{room.name}.json", digest([item.nodeid for item in items])
    if cache.exists():
        kept = json.loads(cache.read_text(encoding="utf-8"))
        if kept["digest"] == now:
            return {test: (seconds, set(seen)) for test, (seconds, seen) in kept["reach"].items()}
    found = reach_of(items, room, lambda n: say(f"{n + 1} of {len(items)} tests") if n % 100 == 99 else None)
    cache.parent.mkdir(exist_ok=True)
    reach = {test: (seconds, sorted(seen)) for test, (seconds, seen) in found.items()}
    cache.write_text(json.dumps({"digest": now, "reach": reach}), encoding="utf-8")
    return found


def summary(room: str, seed: int, drawn_from: int, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    counts = {name: sum(o["outcome"] == name for o in outcomes) for name in ("killed", "survived", "equivalent")}
    tried = counts["killed"] + counts["survived"]
    return {
        "room": room, "seed": seed, "possible": drawn_from, "tried": tried, **counts,
        "survivors_share": counts["survived"] / max(tried, 1),
        "survivors": [o["mutant"] for o in outcomes if o["outcome"] == "survived"],
        "equivalents": {o["mutant"]: o["why"] for o in outcomes if o["outcome"] == "equivalent"},
    }  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.__stdout__, flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(prog="mutants", description=__doc__)
    asked.add_argument("room", choices=sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name[0] != "_"))
    asked.add_argument("--count", type=int, default=60, help="how many mutants are tried")
    asked.add_argument("--seed", type=int, default=0, help="another seed draws others")
    asked.add_argument("--quick", action="store_true", help="run the room's own tests only")
    asked.add_argument("--out", type=Path, help="where the result is kept")
    given = asked.parse_args()
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(ROOT)
    beside = () if given.quick else BESIDE.get(given.room, ())
    folders = [f"tests/{name}" for name in (given.room, *beside) if (ROOT / "tests" / name).exists()]
    trials = Trials(given.room, given.count, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        words = [
            *folders,
            f"unrolled/{given.room}",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-s",
            "--basetemp",
            folder,
        ]
        pytest.main(words, plugins=[trials])
    if not trials.result:
        sys.exit("the tests could not be collected")
    out = given.out or RESULTS / f"mutants-{given.room}.json"
    out.write_text(json.dumps(trials.result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    share = trials.result["survivors_share"]
    say(f"{given.room}: {trials.result['survived']} of {trials.result['tried']} survived ({share:.1%}); kept in {out}")


if __name__ == "__main__":
    main()
