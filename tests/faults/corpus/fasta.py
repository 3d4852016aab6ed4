"""Sequences of letters with names: FASTA."""

from __future__ import annotations

from typing import Any

from tests.faults.corpus.case import bad, good

SEQUENCES = "".join(
    f">s{i} class={'ab'[i % 2]} no. {i}\nACGT{''.join('AT'[i >> k & 1] for k in range(6))}\nTT{'GATTACA' * 3}\n"
    for i in range(40)
)


def refused(name: str, data: str | bytes, *says: str) -> Any:
    return bad(name, "classify a.fasta", {"a.fasta": data}, "a.fasta", *says)


CASES = [
    good(
        "sequences with classes",
        "classify a.fasta",
        {"a.fasta": SEQUENCES},
        "column sequence",
        "column class",
        examples=40,
    ),
    good(
        "sequences without classes",
        "data a.fa",
        {"a.fa": SEQUENCES.replace("class=a", "").replace("class=b", "")},
        "sequence",
    ),
    refused("empty fasta", "\n", "no sequence"),
    refused("letters before the first name", "ACGT\n" + SEQUENCES, "line 1", "'>name'", "ACGT"),
    refused("a name without letters", SEQUENCES + ">last class=a\n", "line 121", "last", "no letters"),
    refused(
        "a sequence without the key of the others",
        SEQUENCES + ">last\nACGT\n",
        "line 121, column 'class'",
        "no such value",
    ),
]
