"""From labelled examples to sections: read, check, split, fit the codecs on the training split, encode.

Texts and words are read once for the split, once for the codecs and once to encode, so that only ids are held; series
are read once and held. The sections are in memory.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, UsageError, some
from unrolled.core.front import option
from unrolled.core.tokens import CLASS
from unrolled.data.codecs.labels import (
    AnswerCodec,
    ClassCodec,
    NumberScaler,
    SeriesScaler,
    SetCodec,
    fit_answers,
    fit_scaler,
)
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, ROWS, Examples, Ragged, lengths_of, offsets_of, ragged
from unrolled.data.files.passes import Steady
from unrolled.data.given_splits import PARTS
from unrolled.data.labelled import Bag, Labelled, LabelledSource, instances_of
from unrolled.data.prepared import Prepared
from unrolled.data.reading import Fold, Kind
from unrolled.data.sides import WHOLE, Scan, scan_examples, sides
from unrolled.data.storage.growing import Growing

InputCodec = Codec | WordListCodec | NumberScaler


def prepare_labelled(
    source: LabelledSource,
    config: DataConfig,
    letters: int = 0,
    least: int = 1,
    distinct: bool = False,
    offered: Codec | WordListCodec | None = None,
    fold: Fold = WHOLE,
    fitted: tuple[InputCodec, AnswerCodec] | None = None,
) -> Prepared:
    """Read a source, keep its own parts or split it, and encode it.

    Of `config` the split, the seed and, for texts, tokens, vocabulary and lengths count. `letters` and
    `least` are for words (see word_list); `distinct` drops examples whose input and answer were there before.
    A class or tag that is only in validation or test is wrong whatever is predicted, which a note tells.
    With a `fold` validation is one part of cross-validation; codecs are then those of all that is not for test, so that
    the models of all folds can answer together. The codec of a saved run that is `offered` is used where it reads
    inputs of this kind, cut in the same way. Those of a saved run (`fitted`) are used as they are.
    """
    if config.too_long == "split" and config.max_length is not None:
        raise UsageError("invalid value too_long = split for examples with one target each: expected truncate or error")
    examples: Iterable[Labelled] = list(source) if source.kind == "series" else Steady(source, source.name)
    scan = scan_examples(examples, config.seed, source.answers)
    keep = np.ones(len(scan.keys), bool)
    if distinct:
        keep[:] = False
        keep[np.unique(scan.pairs, return_index=True)[1]] = True
    side, names, facts = sides(scan, keep, config, source.name, fold)
    seen = {0} if fold.of is None else {0, names.index("valid")}

    def training() -> Iterator[Labelled]:
        return (example for example, number in zip(examples, side) if number in seen)

    inputs: InputCodec
    answers: AnswerCodec
    if fitted is not None:
        inputs, answers = fitted
    elif offered is not None and _reads(offered, source.kind, config, letters):
        inputs = offered if source.kind != "words" or isinstance(offered, WordListCodec) else words_of(offered)
    else:
        inputs = fit_inputs(source.kind, training(), config, letters, least, source.name)
    if fitted is None:
        answers = fit_answers(source.answers, training(), source.name, source.typed)
    if isinstance(answers, ClassCodec):
        answers = answers.with_unseen(scan.classes_found)
    sections, truncated = _encode(examples, side, names, inputs, answers, config)
    facts = {
        "source": source.name,
        "kind": source.kind,
        **({"bags": True} if source.bags else {}),
        "targets": source.answers,
        **facts,
        "outputs": answers.size,
        "classes": _class_counts(answers, sections) if isinstance(answers, ClassCodec) else None,
        **_lengths(sections, source.bags),
        "truncated": truncated,
        "split": {part: _counted(section, source.bags) for part, section in sections.items()},
        "notes": [*source.notes, *facts["notes"], *_more_notes(facts, truncated, config), *_unseen(answers, sections)],
    }
    told = {"kind": source.kind, "answers": source.answers, "reading": source.reading.model_dump(mode="json"),
            **({"bags": True} if source.bags else {})}  # fmt: skip
    codecs = {"inputs": inputs, "answers": answers}
    return Prepared(sections, codecs, facts, _fingerprint(scan, side, names), told)


# ---- codecs and sections


def spaced(text: str, tokens: str) -> str:
    """A text to be read: where a token takes the space before it along, the first word gets one too, so that it is the
    same token as in the middle of a text. `unspaced` takes it away again.

    >>> spaced("good film", "word"), spaced("good film", "char")
    (' good film', 'good film')
    """
    return f" {text}" if tokens in ("word", "bpe") else text


def unspaced(text: str, tokens: str) -> str:
    """
    >>> unspaced(spaced(" x", "word"), "word"), unspaced(spaced(" x", "char"), "char")
    (' x', ' x')
    """
    return text.removeprefix(" ") if tokens in ("word", "bpe") else text


def fit_inputs(
    kind: Kind, examples: Iterable[Labelled], config: DataConfig, letters: int, least: int, name: str
) -> InputCodec:
    """The codec of the inputs, from the examples of the training split; of bags, from their instances."""
    inputs = (value for example in examples for value in instances_of(example.input))
    if kind == "text":
        return Codec.fit((spaced(text, config.tokens) for text in inputs), config)
    if kind == "words":
        return WordListCodec.fit(inputs, config.vocabulary, least, letters)
    return fit_scaler(SeriesScaler, inputs, name)


def _reads(codec: Codec | WordListCodec, kind: Kind, config: DataConfig, letters: int) -> bool:
    if isinstance(codec, WordListCodec):
        return kind == "words" and codec.letters == letters
    if kind == "words":
        return codec.kind == "word" and not letters
    return kind == "text" and codec.cuts_as(config.tokens)


def words_of(codec: Codec) -> WordListCodec:
    """The words of a codec that cuts texts into words, for words that were cut already."""
    spelt = (word.decode("utf-8", "replace").strip() for word in codec.spelling())
    return WordListCodec(list(dict.fromkeys(word for word in spelt if word)))


def encode_input(inputs: InputCodec, value: Any, place: str) -> NDArray[Any]:
    """[T] or [T, 1 + L] ids, or [T, D] scaled numbers."""
    if isinstance(inputs, NumberScaler):
        return inputs.encode(value, place)
    try:
        ids = (
            inputs.framed(inputs.encode(spaced(value, inputs.kind)))
            if isinstance(inputs, Codec)
            else inputs.encode(value)
        )
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    return ids.astype(np.int32)


def encode_bag(inputs: InputCodec, bag: Bag, place: str) -> Ragged:
    """The instances of a bag, each as `encode_input` gives it."""
    if isinstance(inputs, NumberScaler):
        found = inputs.encode(np.concatenate(bag), place)
        return Ragged(found, (offsets_of(map(len, bag)),))
    if isinstance(inputs, Codec):
        try:
            ids, lengths = inputs.encode_all([spaced(text, inputs.kind) for text in bag])
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        if inputs.special(CLASS) is not None:
            return ragged([inputs.framed(each).astype(np.int32) for each in np.split(ids, np.cumsum(lengths)[:-1])])
        return Ragged(ids.astype(np.int32), (offsets_of(lengths),))
    return ragged([encode_input(inputs, words, f"{place}, instance {i}") for i, words in enumerate(bag, start=1)])


def _encoded(inputs: InputCodec, value: Any, place: str) -> NDArray[Any] | Ragged:
    return encode_bag(inputs, value, place) if isinstance(value, Bag) else encode_input(inputs, value, place)


def _longest(x: NDArray[Any] | Ragged) -> int:
    return int(x.lengths.max()) if isinstance(x, Ragged) else len(x)


def _first(x: NDArray[Any] | Ragged, n: int) -> NDArray[Any] | Ragged:
    """The first n steps, of a bag those of each instance."""
    return ragged([each[:n] for each in x]) if isinstance(x, Ragged) else x[:n]


def encode_examples(
    examples: Sequence[Labelled], inputs: InputCodec, answers: AnswerCodec | None, rows: Sequence[int] | None = None
) -> Examples:
    """Examples in their order; without a codec of answers they have none, to predict them."""
    found = _Part()
    for row, example in zip(range(len(examples)) if rows is None else rows, examples):
        target = None if answers is None else answers.encode(example.answer, example.place)
        found.add(_encoded(inputs, example.input, example.place), target, row, _aligned(answers))
    return found.examples(_aligned(answers))


def _aligned(answers: AnswerCodec | None) -> bool:
    """Whether there is a target at each step."""
    return answers is not None and answers.kind in ("tags", "series")


class _Part:
    """The examples of a split, as they are encoded."""

    def __init__(self) -> None:
        self.inputs, self.targets, self.rows = Growing(), Growing(), array("q")

    def add(self, x: NDArray[Any] | Ragged, y: Any, row: int, aligned: bool) -> None:
        self.inputs.add_bag(x) if isinstance(x, Ragged) else self.inputs.add(x)
        self.rows.append(row)
        if y is not None:
            self.targets.add(y if aligned else np.asarray(y)[None])

    def examples(self, aligned: bool) -> Examples:
        fields: dict[str, Ragged] = {INPUT: self.inputs.ragged()}
        columns: dict[str, NDArray[Any]] = {ROWS: np.array(self.rows, np.int64)}
        if len(self.targets) and aligned:
            fields[TARGET] = self.targets.ragged()
        elif len(self.targets):
            columns[TARGET] = self.targets.ragged().values
        return Examples(fields, columns)


def _encode(
    examples: Iterable[Labelled], side: NDArray[np.int64], names: list[str], inputs: InputCodec,
    answers: AnswerCodec, config: DataConfig,
) -> tuple[dict[str, Examples], int]:  # fmt: skip
    held = [_Part() for _ in names]
    truncated, aligned = 0, _aligned(answers)
    for row, (example, number) in enumerate(zip(_drained(examples), side)):
        if number < 0:
            continue
        x, y = _encoded(inputs, example.input, example.place), answers.encode(example.answer, example.place)
        limit = config.max_length
        if limit is not None and (longest := _longest(x)) > limit:
            if config.too_long == "error":
                raise DataError(
                    f"{example.place}: this example has {longest} steps, more than max_length = {limit}; choose "
                    f"{option('too_long', 'truncate')} or a larger {option('max_length')}"
                )
            x, y, truncated = _first(x, limit), y[:limit] if aligned else y, truncated + 1
        seen = isinstance(answers, SetCodec) and names[number] == "train"  # it has no class that training never showed
        held[number].add(x, y[: answers.size] if seen else y, row, aligned)
    found = {part: held[names.index(part)] for part in PARTS if part in names}
    if "valid" in found and not found["valid"].rows:  # a model of many, which were validated one by one
        del found["valid"]
    return {part: each.examples(aligned) for part, each in found.items()}, truncated


def _drained(examples: Iterable[Labelled]) -> Iterator[Labelled]:
    """Examples, each forgotten by a list when it was handed out, so that series are not held twice."""
    if not isinstance(examples, list):
        yield from examples
        return
    examples.reverse()
    while examples:
        yield examples.pop()


def _lengths(sections: Mapping[str, Examples], bags: bool) -> dict[str, dict[str, float]]:
    """Of the sequences, and how many of them bags have."""
    fields = [section.fields[INPUT] for section in sections.values()]
    if not bags:
        return {"lengths": lengths_of([field.lengths for field in fields])}
    steps = [field.inside.lengths for field in fields]
    return {"lengths": lengths_of(steps), "instances": lengths_of([field.lengths for field in fields])}


def _counted(section: Examples, bags: bool) -> dict[str, int]:
    n = {"instances": len(section.fields[INPUT].inside)} if bags else {}
    return {"examples": section.n_examples, **n, "steps": len(section.values(INPUT))}


def _class_counts(codec: ClassCodec, sections: Mapping[str, Examples]) -> dict[str, dict[str, int]]:
    result = {}
    for part, section in sections.items():
        y, names = section.values(TARGET), codec.names if part == "train" else codec.all_names
        counts = y.sum(axis=0) if y.ndim == 2 else np.bincount(y, minlength=len(names))
        result[part] = {name: int(n) for name, n in zip(names, counts)}
    return result


def _more_notes(facts: Mapping[str, Any], truncated: int, config: DataConfig) -> Iterator[str]:
    if facts["dropped"]:
        yield f"{facts['dropped']} examples that repeat another one (same input and target) were dropped"
    if truncated:
        yield f"{truncated} examples were truncated to {config.max_length} steps"


def _unseen(codec: AnswerCodec, sections: Mapping[str, Examples]) -> Iterator[str]:
    if not isinstance(codec, ClassCodec) or not codec.unseen:
        return
    for part, section in sections.items():
        y = section.values(TARGET)
        if n := int((y[:, codec.size :] if y.ndim == 2 else y >= codec.size).sum()):
            named = some(codec.unseen)
            yield (
                f"{n} targets of {part} are a {codec.word} that does not occur in the training data ({named}): they "
                "count as wrong"
            )


def _fingerprint(scan: Scan, side: NDArray[np.int64], names: list[str]) -> str:
    """Of all inputs and answers, in order, and of their parts: of the data, whatever codecs read it."""
    digest = hashlib.sha256(json.dumps(names).encode())
    for each in (scan.keys, scan.pairs, side):
        digest.update(np.ascontiguousarray(each).view(np.uint8).data)
    return digest.hexdigest()[:32]
