"""Which parts stand around the body of a model, by what a task asks of it.

    Decoder          what comes next: (embedding), body, (head)
    Started          the same, started by a class: decoder, (head)
    Flows            noise becomes samples: flows.0, flows.1, ..
    ToldFlows        the same, with a condition beside each flow: decoder, inner, outer
    Told             the same, with a condition beside the input at every step: decoder, inner, outer, (head)
    EncoderDecoder   with a source: encoder, decoder, head
    Reader           the whole is read first: (embedding), body, (readout), (head)
    BagReader        bags of sequences: (embedding), body, (readout), pooling, head
    FromLast etc.    a forecast: a decoder, or a reader of windows, whose outputs are relative to a level
    Recaller         a memory, whose states are updated until they stand still
    (the model)      a word from those around it: what a model file makes is the whole

Initial weights are a function of the seed because parts are made in one order: the table of the decoder, that of the
encoder, the bodies, readout, head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.core.spec import ForecastPorts, ModelSpec, Ports, Reads, Sizes, SourcePorts, reading
from unrolled.core.task import Model
from unrolled.layers.attention.readout import readout_named
from unrolled.layers.counting.bag_of_words import Bag
from unrolled.layers.memory.recaller import Recaller
from unrolled.layers.parts.assembled import Decoder, Reader
from unrolled.layers.parts.bags import BagReader
from unrolled.layers.parts.char_words import SpeltWords
from unrolled.layers.parts.conditioning import Held, Started, Told
from unrolled.layers.parts.dropout import WordDropout
from unrolled.layers.parts.embedding import Borrowed, OneHot, Segmented, Table, TiedHead
from unrolled.layers.parts.encoder_decoder import EncoderDecoder, Halves
from unrolled.layers.parts.filter import Filter
from unrolled.layers.parts.flows import FlowHead, Flows, ToldFlows
from unrolled.layers.parts.levels import Columns, FromInput, FromLast, InUnits, OfWindow, UnitsDecoder
from unrolled.layers.parts.pre_training import PreTraining
from unrolled.layers.parts.strided import Strided
from unrolled.runs.config import Ends

READ_SCALE, FEW = 0.1, 1000
"""The initial size of token vectors of a reader where there are more than a few tokens: a word that is seen only
some times then moves far enough to count. Letters are seen often, and begin with vectors of size 1."""

NARROWED = -3.0  # log s of all flows together at first: noise that is not too loud

D_BESIDE = 32  # width of a condition that runs beside the input

STRIDED = 32  # width of the vectors that a strided convolution reads: there are many of them

Make = Callable[[Sizes], Any]
Input = tuple[nn.Module | None, int]
"""The input layer and its width; None: the body reads what the task gives."""


def assemble(spec: ModelSpec, make: Make, ports: Ports, ends: Ends) -> Model:
    """What `make` makes between the parts that fit the task."""
    if ports.forecast is not None and spec.kind != "conditional":
        return _forecaster(spec, make, ports, ports.forecast, ends)
    if spec.kind == "memory":
        return Recaller(make(Sizes(cast(int, ports.d_in), ports.d_out, targets=ports.targets)))
    if ports.answers == "context":
        return cast(Encoder, make(Sizes(ports.n_tokens, ports.d_out, targets=ports.targets, width=ends.d_embedding)))
    if ports.answers not in ("next", "horizon"):
        return _reader(spec, make, ports, ends)
    if spec.kind == "conditional":
        return _pair(spec, make, ports, ends)
    return _decoder(spec, make, ports, ends)


def _decoder(spec: ModelSpec, make: Make, ports: Ports, ends: Ends) -> Causal | Conditional:
    if ports.flows:
        return _flows(make, ports, ends)
    way = reading(spec.reads, ports.offers)
    embedding, width = _input(way, ports.d_in, ports.n_tokens + ports.n_classes, ends)
    beside = D_BESIDE if ports.condition is not None and embedding is not None else 0
    body = make(Sizes(width + beside, ports.d_out, targets=ports.targets, d_beside=beside))
    head = None if spec.owns_head or embedding is None else _head(embedding, body, ports, ends)
    before, behind = _dropout(embedding, ends), _dropout(head, ends)
    if ports.condition is not None and beside:
        lent = None if head is None else Borrowed(head)
        held = Serial(Held(beside, ports.condition.hop), body)
        return Told(Decoder(embedding, held, lent, before=before, behind=behind), ports.condition.width, beside, head)
    if not ports.n_classes:
        return Decoder(embedding, body, head, before=before, behind=behind)
    lent = None if head is None else Borrowed(head)
    return Started(Decoder(embedding, body, lent, before=before, behind=behind), ports.n_tokens, head)


def _flows(make: Make, ports: Ports, ends: Ends) -> Causal | Conditional:
    """Noise in, samples out: some flows, each with a body of its own, and the same condition beside all of them."""
    told, d_in = ports.condition, cast(int, ports.d_in)
    beside = 0 if told is None else D_BESIDE
    flows = []
    for _ in range(ports.flows):
        embedding = nn.Linear(d_in, ends.d_embedding)
        body = make(Sizes(ends.d_embedding + beside, ports.d_out, targets=ports.targets, d_beside=beside))
        whole = body if told is None else Serial(Held(beside, told.hop), body)
        flows.append(Decoder(embedding, whole, FlowHead(body.d_out, NARROWED / ports.flows)))
    return Flows(flows) if told is None else ToldFlows(Flows(flows), told.width, beside)


def _pair(spec: ModelSpec, make: Make, ports: Ports, ends: Ends) -> Conditional:
    """An encoder that reads the source and a decoder that writes the target, each behind a layer that makes vectors."""
    source, scale = cast(SourcePorts, ports.source), ends.d_embedding**0.5
    if spec.owns_head:  # a whole model, fitted to sources and targets as they are
        return cast(Conditional, make(Sizes(ports.n_tokens, ports.d_out, source.d_in or source.n_tokens)))
    embedding, width = _input("embedded", ports.d_in, ports.n_tokens, ends, scale)
    way = reading(spec.reads_source, source.offers)
    shared = ends.shared and way == "embedded"
    if shared and not (source.shared and isinstance(embedding, Table)):
        raise UsageError("shared needs one vocabulary for source and target, and input = embedding")
    read, d_source = (embedding, width) if shared else _input(way, source.d_in, source.n_tokens, ends, scale)
    halves: Halves = make(Sizes(width, ports.d_out, d_source))
    head = _head(embedding, halves.decoder, ports, ends)
    words = [WordDropout(ends.target_dropout)] if ends.target_dropout else []
    before, behind = [*words, *_dropout(embedding, ends)], _dropout(head, ends)
    decoder = Decoder(embedding, halves.decoder, Borrowed(head), before=before, behind=behind)
    if ports.forecast is not None and ports.forecast.relative != "none":
        decoder = _relative(decoder, ports.forecast)
    return EncoderDecoder(Reader(read, halves.encoder, before=_dropout(read, ends)), decoder, head)


def _reader(spec: ModelSpec, make: Make, ports: Ports, ends: Ends) -> Encoder:
    """A model that has read the whole before it answers, for the sequence or at each of its positions."""
    if spec.owns_head:  # it is fitted to the input as it is
        whole = make(Sizes(ports.d_in or ports.n_tokens, ports.d_out))
        return Reader(None, whole) if isinstance(whole, Encoder) else Filter(ports.delay, whole)
    each = ports.answers == "each"
    narrow = ends.updated({"d_embedding": min(ends.d_embedding, STRIDED)})
    embedding, width = _read_input(spec, ports, ends if each or ends.input_stride == 1 else narrow)
    if ends.input_stride > 1 and not each and isinstance(embedding, Table | nn.Linear):
        embedding, width = Strided(embedding, width, ends.d_embedding, ends.input_stride), ends.d_embedding
    body = make(Sizes(width, ports.d_out))
    readout = None if each or isinstance(embedding, Bag) else readout_named(ports.readout, body.d_out)
    width = body.d_out if readout is None else readout.d_out
    pooling = readout_named(ports.pooling, width) if ports.pooling else None
    head = _reader_head(embedding, width if pooling is None else pooling.d_out, ports, ends)
    before, behind = _dropout(head, ends), _dropout(head, ends)
    if pooling is not None:
        if pooling.ordered:
            raise UsageError(
                f"invalid value pooling = {ports.pooling}: the instances of a bag have no order; expected a readout "
                "that needs none, such as mean, max, attention or hopfield"
            )
        return BagReader(embedding, body, readout, pooling, head, before=before, behind=behind)
    delay = ports.delay if each and isinstance(body, Causal) else 0
    return Reader(embedding, body, readout, head, before=before, behind=behind, delay=delay)


def _reader_head(embedding: nn.Module | None, width: int, ports: Ports, ends: Ends) -> nn.Module:
    """Of a task with segments, what predicts tokens and which segment follows which."""
    if not ports.segments:
        return nn.Linear(width, ports.d_out)
    table = embedding if ends.tied and isinstance(embedding, Table) else None
    return PreTraining(width, ports.n_tokens, table, ports.d_out - ports.n_tokens)


def _forecaster(spec: ModelSpec, make: Make, ports: Ports, asked: ForecastPorts, ends: Ends) -> Model:
    """A model of the next steps of a series; one with a closed form gives the numbers themselves."""
    solved, d_in = ports.targets in spec.closed_form, cast(int, ports.d_in)
    columns = Columns(asked.d_step, asked.horizon if solved else asked.at_once, asked.observed)
    told: dict[str, Any] = {
        "targets": ports.targets,
        "horizon": columns.horizon,
        "d_step": asked.d_step,
        "observed": asked.observed,
        "season": asked.season,
    }
    if solved:
        body = make(Sizes(d_in, asked.horizon * asked.d_step, **told))
        in_units = reading(spec.reads, ports.offers) == "units"
        return InUnits(UnitsDecoder(body, columns)) if in_units else Decoder(None, body)
    embedding, width = _input(reading(spec.reads, ports.offers), d_in, 0, ends)
    body = make(Sizes(width, ports.d_out, **told))
    if isinstance(body, Encoder) or asked.relative == "window":
        readout = readout_named(ports.readout, body.d_out)
        head = nn.Linear(readout.d_out, ports.d_out)
        before, behind = _dropout(head, ends), _dropout(head, ends)
        window = OfWindow(embedding, body, readout, head, before=before, behind=behind)
        return window.normalised(columns, asked.rescale)
    own = None if spec.owns_head else nn.Linear(body.d_out, ports.d_out)
    before, behind = _dropout(embedding, ends), _dropout(own, ends)
    if asked.relative == "none":
        return Decoder(embedding, body, own, before=before, behind=behind)
    return FromLast(embedding, body, own, before=before, behind=behind).anchored(columns, asked.rescale)


def _relative(decoder: Decoder, asked: ForecastPorts) -> Decoder:
    """What it predicts is relative to the value that it has just read."""
    parts = {"before": [*decoder.before], "behind": [*decoder.behind]}
    found = FromInput(decoder.embedding, cast(Causal, decoder.body), decoder.head, **parts)
    return found.anchored(Columns(asked.d_step, asked.at_once, asked.observed), asked.rescale)


def _read_input(spec: ModelSpec, ports: Ports, ends: Ends) -> Input:
    """The input of a reader: rare words begin small, and may be spelt."""
    way = reading(spec.reads, ports.offers, bool(ports.letters))
    if way in ("counts", "tf-idf"):
        return Bag(ports.n_tokens, way), ports.n_tokens
    if way == "embedded" and ports.letters:
        spelt = SpeltWords(ports.n_tokens, ports.letters, ends.d_embedding, dropout=ends.dropout / 2)
        spelt.words.weight.detach().mul_(READ_SCALE)
        return spelt, spelt.d_out
    if way == "embedded" and ports.segments:
        if ends.input != "embedding":
            raise UsageError("invalid value input = one-hot: expected embedding, because tokens come with a segment")
        return Segmented(ports.n_tokens, ends.d_embedding, ports.segments), ends.d_embedding
    embedding, width = _input(way, ports.d_in, ports.n_tokens, ends)
    if isinstance(embedding, Table) and ports.n_tokens > FEW:
        embedding.weight.detach().mul_(READ_SCALE)
    return embedding, width


def _input(way: Reads | None, d_in: int | None, n_tokens: int, ends: Ends, scale: float = 1.0) -> Input:
    if way != "embedded":
        return None, d_in or n_tokens
    if ends.input == "embedding":
        width = ends.d_embedding
        return (Table(n_tokens, width, scale) if d_in is None else nn.Linear(d_in, width)), width
    return (OneHot(n_tokens), n_tokens) if d_in is None else (nn.Identity(), d_in)


def _dropout(part: nn.Module | None, ends: Ends) -> list[nn.Module]:
    """Between the body and a part that is there."""
    return [nn.Dropout(ends.dropout)] if ends.dropout and part is not None else []


def _head(embedding: nn.Module | None, body: Any, ports: Ports, ends: Ends) -> nn.Module:
    if not ends.tied:
        return nn.Linear(body.d_out, ports.d_out)
    if not isinstance(embedding, Table) or embedding.embedding_dim != body.d_out:
        raise UsageError(f"tied needs input = embedding and d_embedding = {body.d_out}, the body's output width")
    return TiedHead(embedding, ports.d_out)
