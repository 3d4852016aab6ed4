"""Writing for sources: batches of sources in, texts out, by the decoding that every model shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

import torch
from torch import Tensor, nn

from unrolled.core.batch import Batch
from unrolled.core.causal import Conditional
from unrolled.core.errors import UsageError
from unrolled.core.forward import evaluating, start
from unrolled.core.front import option
from unrolled.core.tokens import EMPTY, START, STOP, UNKNOWN
from unrolled.core.trace import trace
from unrolled.data.codec import Codec
from unrolled.data.pairs_batch import PairSection, pair_batches
from unrolled.decode.config import Sampling
from unrolled.decode.rollout import Candidate
from unrolled.decode.text import Begun, Search, Writer
from unrolled.layers.attention.packed import packed_weights
from unrolled.pictures.alignment import of_source

TOKENS = 8192  # positions of a batch, all beams together
UNKNOWN_SIGN = "<unk>"


class Written(NamedTuple):
    """A text that was written for one source."""

    text: str
    logp: float
    tokens: int
    finished: bool  # ended by <stop>, not by the limit
    score: float  # what it was ranked by


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
        return value["source"], str(value.get("target") or "")
    if isinstance(value, tuple) and len(value) == 2:
        return value[0], str(value[1])
    if isinstance(value, str):
        source, _, target = value.partition("\t")
        return source, target
    return value, ""


def longest_source(model: nn.Module) -> int | None:
    """The most positions of a source that a model can read; None: any number."""
    writes = {id(module) for module in model.decoder.modules()} if isinstance(model, Conditional) else set()
    limits = [getattr(module, "max_length", None) for module in model.modules() if id(module) not in writes]
    return min((limit for limit in limits if limit is not None), default=None)


class Asked(TypedDict, total=False):
    """What may be asked of writing."""

    beam: int | None
    length_penalty: float
    n_best: int
    sampling: Sampling | None
    max_tokens: int | None


def search_of(asked: Asked, max_tokens: int) -> Search:
    """How to look for texts; what excludes one another is refused. Several without sampling are those of a beam."""
    beam, length_penalty, n_best = asked.get("beam"), asked.get("length_penalty", 0.0), asked.get("n_best", 1)
    sampling = asked.get("sampling")
    if beam is not None and sampling is not None:
        raise UsageError("a beam looks for the likeliest text and a sample does not: give one of the two")
    if n_best > 1 and beam is None and sampling is None:
        beam = n_best
    if length_penalty and beam is None:
        raise UsageError(f"a length penalty ranks the texts of a beam: give {option('beam')} too")
    return Search(n_best, None, beam, length_penalty, max_tokens)


@packed_weights()
def write(
    codec: Codec, model: Conditional, section: PairSection, search: Search, sampling: Sampling, numbers: Tensor | None
) -> list[list[Written]]:
    """The n best texts for every source, in the order of the section; batched by length, each source encoded once.

    `numbers` [n] are those that draw the noise of each source, so that it is sampled the same in any company.
    """
    beams = max(search.beam or 1, search.n, search.best_of_n or 1)
    writer = Writer(codec, [STOP], [EMPTY, START])
    result: list[list[Written]] = [[] for _ in range(section.n_examples)]
    with evaluating(model) as device:
        for batch in pair_batches(section, max(1, TOKENS // beams)):
            assert batch.rows is not None
            rows = batch.rows if numbers is None else numbers[batch.rows]
            there = batch.to(device)
            decoder, state = start(model, there)
            prompt = torch.full((len(rows), 1), START, device=there.x.device)
            found = writer.candidates(Begun(prompt, decoder, state), search, sampling, rows)
            for row, candidates in zip(batch.rows.tolist(), found):
                result[row] = [_written(codec, candidate) for candidate in candidates]
    return result


def _written(codec: Codec, candidate: Candidate) -> Written:
    tokens = candidate.tokens[:-1] if candidate.finished else candidate.tokens
    text = text_of(codec, tokens)
    return Written(text, candidate.log_p, len(candidate.tokens), candidate.finished, candidate.score)


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
