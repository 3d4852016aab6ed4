"""The saved runs of the tests that onnx and torch export, and those that they refuse: a new one must be exported."""

from __future__ import annotations

from tests.fixtures.make import RUNS
from tests.thorough import only

QUICK = ("next-token", "classify", "translate-transformer")  # the others: `make faults`
REFUSED = ("classify-logistic", "recall")
CARRIED = only(QUICK, sorted({place.name for place in RUNS.iterdir() if place.is_dir()} - {*REFUSED}))
