"""Writing for sources: batches of sources in, texts out, by the decoding that every model shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import Batch
from unrolled.core.causal import Conditional, decoder_of
from unrolled.core.errors import UsageError, nearest
from unrolled.core.forward import evaluating, start
from unrolled.core.tokens import EMPTY, START, STOP, UNKNOWN
from unrolled.core.trace import trace
from unrolled.data.codecs.text import Codec
from unrolled.data.examples import Examples
from unrolled.data.files.live_chunks import live_chunks
from unrolled.data.sampler import bucketed_batches
from unrolled.decode.config import Decoding
from unrolled.decode.text import Begun, Writer, Written
from unrolled.engine.stepper import stepped
from unrolled.pictures.alignment import of_source

AT_ONCE = 256  # examples that are predicted together: a window in which they are sorted by length
TOKENS = 8192  # positions of a batch, all beams together
UNKNOWN_SIGN = "<unk>"


def text_of(codec: Codec, tokens: Iterable[int]) -> str:
    """Tokens as text, unknown ones visible."""
    pieces: list[list[int]] = [[]]
    for token in tokens:
        if token == UNKNOWN:
            pieces.append([])
        else:
            pieces[-1].append(int(token))
    sign = f" {UNKNOWN_SIGN}" if codec.kind == "word" else UNKNOWN_SIGN  # a word takes its space along
    text = sign.join(codec.decode(piece) for piece in pieces)
    return text.removeprefix(" ") if text.startswith(f" {UNKNOWN_SIGN}") else text


def sides_of(value: Any) -> tuple[Any, str]:
    """Source and target of an example as a user gives it; in a text, a tab stands between them.

    >>> sides_of("un\\tone"), sides_of("un"), sides_of({"source": "un", "target": "one"})
    (('un', 'one'), ('un', ''), ('un', 'one'))
    """
    if isinstance(value, Mapping):
        if "source" not in value:
            raise UsageError(f"the input has no 'source'; {nearest('source', map(str, value))}")
        return value["source"], str(value.get("target") or "")
    if isinstance(value, tuple) and len(value) == 2:
        return value[0], str(value[1])
    if isinstance(value, str):
        source, _, target = value.partition("\t")
        return source, target
    return value, ""


def given_in(values: Iterable[Any], word: str = "line", live: bool = False) -> Iterator[list[task.Given]]:
    """Sources, some at a time, numbered from 1; live, what comes slowly is handed on at once."""
    found = (task.Given(value, number=n, place=f"{word} {n}") for n, value in enumerate(values, 1))
    return live_chunks(found, AT_ONCE, live)


def longest_source(model: task.Model) -> int | None:
    """The most positions of a source that a model can read; None: any number."""
    return model.max_source if isinstance(model, Conditional) else model.max_length


def write(
    codec: Codec, model: Conditional, section: Examples, decoding: Decoding, numbers: Tensor | None
) -> list[list[Written]]:
    """The n best texts for every source, in the order of the section; batched by length, each source encoded once.

    `numbers` [n] are those that draw the noise of each source, so that it is sampled the same in any company.
    """
    beams = max(decoding.beam or 1, decoding.n, decoding.best_of or 1)
    writer = Writer(codec, [STOP], [EMPTY, START], partial(text_of, codec))
    result: list[list[Written]] = [[] for _ in range(section.n_examples)]
    with evaluating(model) as device:
        step = stepped(decoder_of(model))
        for batch in bucketed_batches(section, max(1, TOKENS // beams)):
            assert batch.rows is not None
            rows = batch.rows if numbers is None else numbers[batch.rows]
            there = batch.to(device)
            _, state = start(model, there)
            prompt = torch.full((len(rows), 1), START, device=there.x.device)
            for row, texts in zip(batch.rows.tolist(), writer.write(Begun(prompt, step, state), decoding, rows)):
                result[row] = texts
    return result


def looked_at(model: Conditional, batch: Batch) -> Tensor | None:
    """How much each position of a source is looked at while each token is written, [T, S]; None: no layer looks.

    The mean over the heads of the last layer that attends to the source.
    """
    with evaluating(model) as device:
        batch = batch.to(device)
        decoder, state = start(model, batch)
        with trace() as seen:
            decoder(batch.x, state)
    assert batch.source is not None
    found: list[Tensor] = of_source([each[0] for each in seen["attention"]], batch.source.shape[1])
    return found[-1].mean(0) if found else None
