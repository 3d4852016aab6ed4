"""What a newcomer gets: `unrolled compare DATA --budget 3m` on many data sets, one at a time, with no settings.

    python -m benchmarks.suite                    all pieces that have no result yet
    python -m benchmarks.suite names18-3m         one piece
    python -m benchmarks.suite --list

A piece is a data set with a budget: 3 minutes for every set, 1 and 10 minutes for every third one. Data is found below
UNROLLED_DATA. Results go to benchmarks/results/suite-PIECE.json; `make docs` makes docs/suite.md of them. An option is
given only where the program asks for it, such as which column to predict. Nothing is tuned on what is seen here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.pieces import RESULTS, place

SETS: dict[str, str] = {  # below UNROLLED_DATA, and what the program asks for
    "air-passengers": "small-series/AirPassengers.csv",
    "arrow-head": "ucr/ArrowHead_TRAIN.ts --test ucr/ArrowHead_TEST.ts",
    "basic-motions": "ucr/BasicMotions_TRAIN.ts --test ucr/BasicMotions_TEST.ts",
    "cmudict": "cmudict",
    "emoji": "emoji-captions",
    "enwiki": "enwiki-slice",
    "ett": "ett",
    "fsdd": "fsdd/fsdd_idx0-19.npz --target digit",
    "gun-point": "ucr/GunPoint_TRAIN.ts --test ucr/GunPoint_TEST.ts",
    "heart-rate": "small-series/heart_rate.csv",
    "italy-power": "ucr/ItalyPowerDemand_TRAIN.ts --test ucr/ItalyPowerDemand_TEST.ts",
    "jsb": "polymusic/JSB_Chorales.mat",
    "masc": "masc-pos/masc_tagged.zip --untagged join",
    "milk": "small-series/monthly-milk.csv",
    "mira": "mira-tcr --column cdr3_b_aa --target epitope_group",
    "mnist": "mnist",
    "mr": "mr-polarity",
    "multi30k": "multi30k",
    "musk1": "musk1",
    "names18": "names18",
    "nottingham": "polymusic/Nottingham.mat",
    "omniglot": "omniglot-strokes",
    "pendigits": "pendigits",
    "pickup-gesture": "ucr/PickupGestureWiimoteZ_TRAIN.ts --test ucr/PickupGestureWiimoteZ_TEST.ts",
    "shakespeare": "tinyshakespeare",
    "sunspots": "small-series/monthly-sunspots.csv",
    "tatoeba": "tatoeba-eng-fra",
    "taylor": "small-series/taylor.csv",
    "temperatures": "small-series/temps.csv",
    "tweets": "tweets --encoding latin-1 --target retweets",
    "weather": "us-weather/KNYC.csv",
}
BUILT_IN = ("adding", "dates", "digits", "maximum", "numbers", "python-docs", "python-source", "random-patterns",
            "reversal", "seasons", "shapes", "sinusoids", "unicode-names")  # fmt: skip
SOURCES = {**SETS, **{f"builtin-{name}": f"builtin:{name}" for name in BUILT_IN}}
BUDGETS = ("1m", "3m", "10m")
THIRD = tuple(SOURCES)[::3]  # the sets that have all budgets
KEPT = ("label", "kind", "model", "score", "valid", "interval", "steps", "training_seconds", "parameters", "beaten_by",
        "failed", "not_trained")  # fmt: skip
ENDS = 4  # times the budget, and a minute, after which a comparison is taken to hang


def pieces() -> list[str]:
    """All pieces in the order in which they are run: every set first."""
    short = [f"{name}-3m" for name in SOURCES]
    return short + [f"{name}-{budget}" for budget in ("1m", "10m") for name in THIRD]


def source_of(name: str, folder: Path) -> list[str]:
    """The words of the command that name the data; a zip is unpacked into a folder, as people do."""
    data, *options = SOURCES[name].split()
    if data.startswith("builtin:"):
        return [data, *options]
    path = place(data)
    options = [str(place(word)) if "/" in word else word for word in options]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder / path.stem)
        path = folder / path.stem
    return [str(path), *options]


def seconds_of(budget: str) -> int:
    return 60 * int(budget.removesuffix("m"))


def run(piece: str) -> dict[str, Any]:
    """The comparison of a piece as the command line does it, and what is kept of it."""
    name, _, budget = piece.rpartition("-")
    code = "import sys; from unrolled.cli.main import main; sys.argv[0] = 'unrolled'; sys.exit(main())"
    with tempfile.TemporaryDirectory() as folder:
        words = source_of(name, Path(folder))
        command = [sys.executable, "-c", code, "compare", *words, "--budget", budget, "-o", f"{folder}/out", "--json"]
        begun, before = time.monotonic(), os.times()
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60 + ENDS * seconds_of(budget)
        )
        used, after = time.monotonic() - begun, os.times()
    shown = f"unrolled compare {SOURCES[name]} --budget {budget}"
    told = {
        "set": name, "budget": budget, "command": shown, "seconds": round(used, 1), "exit": done.returncode,
        "processor_seconds": round(sum(after[2:4]) - sum(before[2:4]), 1), "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {**told, "error": last.replace(str(Path(words[0]).parent) + "/", "")}
    table = json.loads(done.stdout)
    facts = ("task", "guessed", "score", "metrics", "split", "units", "folds", "share_seconds", "threads", "jobs",
             "selected", "winner", "notes", "versions")  # fmt: skip
    rows = [{key: row[key] for key in KEPT} for row in table["rows"]]
    kept = {fact: table[fact] for fact in facts} | {"rows": rows}
    kept["notes"] = [note for note in kept["notes"] if str(words[0]) not in note]
    return told | kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", help="a set and a budget, such as names18-3m; all that are missing")
    parser.add_argument("--list", action="store_true", help="list all pieces")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(pieces()))
        return
    names = [piece for piece in asked.pieces if piece not in {f"{s}-{b}" for s in SOURCES for b in BUDGETS}]
    if names:
        sys.exit(f"there is no piece {', '.join(names)}; `python -m benchmarks.suite --list` lists them")
    RESULTS.mkdir(exist_ok=True)
    for piece in asked.pieces or [each for each in pieces() if not (RESULTS / f"suite-{each}.json").exists()]:
        print(f"== {piece}", flush=True)
        result = run(piece)
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (RESULTS / f"suite-{piece}.json").write_text(text, encoding="utf-8")
        print(result.get("error") or f"{result['selected']}, {result['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
