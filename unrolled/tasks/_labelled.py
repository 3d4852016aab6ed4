"""What the tasks with given targets share: a model reads each example whole and predicts its target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import Batch
from unrolled.core.errors import UsageError
from unrolled.core.flow import Flow
from unrolled.core.forward import outputs
from unrolled.core.front import option
from unrolled.core.outline import Outline, TokenLook
from unrolled.core.sharing import filled
from unrolled.core.spec import Asks, Ports
from unrolled.data.codecs.labels import AnswerCodec, ClassCodec, NumberScaler, load_answers
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.word_list import FILE as WORDS
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.collate import BESIDE
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, Examples
from unrolled.data.files.beside import with_beside
from unrolled.data.files.in_memory import is_standard_input
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.labelled_prepare import InputCodec, encode_bag, encode_examples, encode_input, prepare_labelled
from unrolled.data.long_examples import example_batches, outline_of
from unrolled.data.look import Look
from unrolled.data.prepared import Prepared, kept, n_values, settings_of, used
from unrolled.data.reading import Answers, Kind, Reading
from unrolled.data.sampler import PooledBags, pooled_batches
from unrolled.data.sources.labelled_guess import guess_answers
from unrolled.data.sources.labelled_inputs import bare, first_labelled, inputs_of, labelled
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.rows_beside import labelled_rows
from unrolled.layers.counting.bag_of_words import Bag
from unrolled.layers.counting.spelling import OfSpelling
from unrolled.tasks._explained import explained
from unrolled.tasks._inputs import Inputs
from unrolled.tasks._known import EVALUATION_ROWS, known, token_look
from unrolled.tasks._labelled_config import Config
from unrolled.tasks._live import flow_of
from unrolled.tasks._prepared import PreparedTask
from unrolled.tasks._told import OfExamples

INPUTS, ANSWERS = "inputs.json", "answers.json"
POINTS = 1000  # that a picture shows at most
PLURAL = {"class": "classes", "classes": "sets of classes"}  # the others are plurals already
FEW, SHORT = 2000, 2000  # series, and steps of each, whose nearest neighbours are looked for
BAGS = 100  # that an evaluation in training reads at least, however many tokens they have


def _where(answers: str) -> Literal["each", "whole"]:
    return "each" if answers in ("tags", "series") else "whole"


class LabelledTask(PreparedTask):
    """The base: data, codecs, batches, the model's outputs. A task adds its loss, figures and words."""

    ACCEPTS: ClassVar[tuple[str, ...]] = ("encoder", "causal")
    KINDS: ClassVar[tuple[Answers, ...]]  # of answers, that the task is for
    UNIT = "examples"
    TYPED = True
    FOLD = "reading.fold"

    data: DataConfig
    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.inputs: InputCodec
        self.answers: AnswerCodec
        self.kind: Kind = "text"
        self.bags = False
        self.answers_are: Answers = self.KINDS[0]
        self.reading: Reading = self._asked_reading()
        self.temperature = 1.0  # what logits are divided by
        self._offered: Codec | WordListCodec | None = None
        self._loaded = False  # whether the codecs are those of a saved run

    def _asked_reading(self) -> Reading:
        self.config.require_use(self.config.reading.bag is not None or None)
        return self.config.reading.completed(self.data)

    # ---- data

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        if given.get("condition") is not None:  # it is for tasks that generate
            return None
        found = guess_answers(look, Reading.parse({key: given[key] for key in Reading.model_fields if key in given}))
        return task.Guess(0.8, f"its targets are {PLURAL.get(found, found)}") if found in cls.KINDS else None

    def prepare(self, source: Any) -> None:
        found = kept(source, self._asked(), lambda: self._prepared(source))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.inputs, self.answers = found.codecs["inputs"], found.codecs["answers"]
        self._recall_data(found.told)
        self.config.require_use(self.bags)

    def _asked(self) -> dict[str, Any]:
        """All that decides what is prepared from a source, as JSON values."""
        codecs = [self.inputs, self.answers] if self._loaded else [self._offered] if self._offered else []
        return {
            "task": type(self).__module__, "targets": self.KINDS, "reading": self.reading.model_dump(mode="json"),
            "fold": self.config.reading.fold.model_dump(), "data": settings_of(self._data_config()),
            "loaded": self._loaded, "codecs": [codec.to_json() for codec in codecs], **self._preparation(),
        }  # fmt: skip

    def _prepared(self, source: Any) -> Prepared:
        source, notes = with_beside(source)
        opened = self._opened(source, self._answers_of(source))
        opened.notes.update(dict.fromkeys(notes))
        return prepare_labelled(
            opened,
            self._data_config(),
            **self._preparation(),
            offered=self._offered,
            fold=self.config.reading.fold,
            fitted=(self.inputs, self.answers) if self._loaded else None,
        )

    def _opened(self, source: Any, answers: Answers) -> LabelledSource:
        """The examples of a source with their answers."""
        return open_labelled(source, self._reading_of(source), answers)

    def _reading_of(self, source: Any) -> Reading:
        """Where inputs and answers are; arrays in a tuple, which a saved run is handed, have places for names."""
        return bare(self.reading) if self._loaded and isinstance(source, tuple) else self.reading

    def _answers_of(self, source: Any) -> Answers:
        """Which of the kinds of answers that the task is for."""
        return self.KINDS[0]

    def _data_config(self) -> DataConfig:
        return self.data

    def _preparation(self) -> dict[str, Any]:
        return {"letters": self.config.letters}

    def save_codec(self, directory: Path) -> None:
        if isinstance(self.inputs, AnswerCodec):  # a scaler
            self.inputs.save(directory, INPUTS)
        else:
            self.inputs.save(directory)
        self.answers.save(directory, ANSWERS)

    def load_codec(self, directory: Path) -> None:
        self._loaded = True
        self.answers = load_answers(directory, ANSWERS)
        if (directory / INPUTS).exists():
            self.inputs = load_answers(directory, INPUTS)  # type: ignore[assignment]
        else:
            self.inputs = (WordListCodec if (directory / WORDS).exists() else Codec).load(directory)

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        named = {"encoder.embedding": self.inputs, "head": self.answers}
        return {part: task.Vocabulary(codec) for part, codec in named.items() if not isinstance(codec, NumberScaler)}

    def reuse(self, vocabularies: Mapping[str, task.Vocabulary]) -> None:
        found = vocabularies.get("encoder.embedding")
        self._offered = found.codec if found and isinstance(found.codec, Codec | WordListCodec) else None

    def describe(self) -> dict[str, Any]:
        told = {"kind": self.kind, "answers": self.answers_are, "reading": self.reading.model_dump(mode="json")}
        return {**told, "bags": True} if self.bags else told

    def recall(self, facts: Mapping[str, Any]) -> None:
        self._recall_data(facts)

    def _recall_data(self, facts: Mapping[str, Any]) -> None:
        told = OfExamples.among(facts)
        self.kind, self.answers_are, self.reading, self.bags = told.kind, told.answers, told.reading, told.bags

    def columns(self) -> dict[str, str]:
        return self.reading.uses()

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_labelled(self._opened(with_beside(source)[0], self.answers_are), n)

    # ---- the model

    def ports(self) -> Ports:
        n_tokens, d_in = (0, self.inputs.size) if self.kind == "series" else (self.inputs.size, None)
        letters = self.inputs.n_letters if isinstance(self.inputs, WordListCodec) and self.config.letters else 0
        where, readout, pooling = _where(self.answers_are), self._readout(), self.config.pooled_by if self.bags else ""
        targets = self.answers_are
        return Ports(n_tokens, self.answers.size, 0, d_in, where, readout, pooling, letters, targets=targets)

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, _where(self.answers_are), bags=True if self.reading.bag is not None else None)

    def _readout(self) -> str:
        return "last"

    def loss(self, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Of a model that answers for the whole, the one output; otherwise those at real positions."""
        whole = _where(self.answers_are) == "whole"
        return self.emission.loss(y[:, 0], batch.y) if whole else super().loss(y, batch)

    def outline(self) -> Outline:
        whole = _where(self.answers_are) == "whole"
        return Outline() if self.bags else outline_of(self.sections["train"].lengths(INPUT), joined=whole)

    def token_look(self) -> TokenLook | None:
        sections = self.sections
        able = not self.bags and self.kind == "text" and _where(self.answers_are) == "whole" and self._offered is None
        return token_look(sections) if able and "valid" in sections else None

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        section = self.sections["train"]
        if not self.bags:
            return example_batches(section, batching, BESIDE, carried, seed)
        return PooledBags(section, batching.batch_size, BESIDE, self.config.drawn, seed)

    def neighbours(self) -> list[task.Baseline]:
        """What is hard to beat where series are few and short: the nearest neighbour, and fixed filters."""
        section = self.sections["train"]
        if self.bags:
            return []
        fits = self.kind == "series" and section.n_examples <= FEW and int(section.lengths(INPUT).max()) <= SHORT
        named = {"nearest neighbour": "nearest", "MiniRocket": "minirocket"}
        return [task.Baseline(label, model, {}) for label, model in named.items()] if fits else []

    def look_at_training(self, model: Any) -> None:
        for layer in model.modules():
            if isinstance(layer, Bag):
                found = self.sections["train"].fields[INPUT]
                layer.count_documents(found.inside if self.bags else found)

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        """Settings that a model leaves open are chosen on validation data; with folds, whose scores that would
        flatter, on examples that are left out of the training data for that."""
        sections = self.sections
        share = task.share_of(len(sections["train"].values(INPUT)), limit)
        folded = self.config.reading.fold.of is not None or "valid" not in sections
        held_out = [] if folded else known(sections["valid"], self.answers.size)
        for layer in model.modules():
            if isinstance(layer, OfSpelling):
                layer.spell(self.inputs.spelling())  # type: ignore[union-attr]
        chosen = model.solve(known(sections["train"].share(share), self.answers.size), held_out)
        where = "on a share of the training data" if folded else "on validation data"
        return task.Fitted(share, chosen or {}, where)

    def answers_to(self, model: Any, section: Examples) -> Tensor:
        """[n, D'], one answer for each example, in the order of the section."""
        result = torch.zeros(section.n_examples, self.answers.size)
        for batch, y in outputs(model, pooled_batches(section, EVALUATION_ROWS, BESIDE)):
            assert batch.rows is not None
            result[batch.rows.cpu()] = y[:, 0].float().cpu()
        return filled(result)

    def answers_along(self, model: Any, section: Examples) -> Tensor:
        """[N, D'], one answer for each step of all examples after each other, as in the section."""
        offsets = section.fields[INPUT].offsets[0]
        result = torch.zeros(int(offsets[-1]), self.answers.size)
        for batch, y in outputs(model, pooled_batches(section, EVALUATION_ROWS, BESIDE)):
            assert batch.rows is not None
            for row, answer in zip(batch.rows.tolist(), y.float().cpu()):
                start, stop = offsets[row], offsets[row + 1]
                result[start:stop] = answer[: stop - start]
        return filled(result)

    # ---- examples, one by one

    def value_of(self, value: Any, place: str) -> Any:
        """An input as it is; a line of text where words or numbers are wanted, cut into them."""
        return self.read_as.taken(value, place)

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        section = encode_examples(labelled([self.value_of(value, "the input")]), self.inputs, None)
        batch = next(iter(pooled_batches(section, 1, BESIDE)))
        return batch, self.read_as.names(section, 0)

    def explained(self, y: Tensor, at: int) -> task.Explained:
        return explained(self.answers, self.emission, y, at)

    @property
    def read_as(self) -> Inputs:
        """How inputs are taken from users and shown to them."""
        return Inputs(self.inputs, self.kind, self.bags, self.reading.layout == "wide")

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return self.read_as.of_line(line["input"])

    def shown(self, section: Examples, i: int) -> Any:
        """An encoded input as JSON shows it, and as `example` takes it again."""
        return self.read_as.shown(section, i)

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        lines = (Labelled(line.rstrip("\n"), None, f"line {n}", None, "all") for n, line in enumerate(sys.stdin, 1))
        found = lines if is_standard_input(source) else self._inputs_in(source)
        number = 0
        for some in self.read_as.some_at_a_time(found):
            yield [self._given(each, i) for i, each in enumerate(some, number + 1)]
            number += len(some)

    def _inputs_in(self, source: Any) -> Iterable[Labelled]:
        """The inputs of other data, found as in training."""
        return inputs_of(source, self.reading, self.kind, self.bags)

    def _given(self, each: Labelled, number: int) -> task.Given:
        """An input that can be read, or an error that says where it stands."""
        value = self.value_of(each.input, each.place)
        names = {str(self.reading.bag if self.bags else self.reading.id): each.id} if each.id else {}
        if self.bags:
            encode_bag(self.inputs, value, each.place)
        else:
            encode_input(self.inputs, value, each.place)
        return task.Given(value, None, names, number, each.place)

    def rows_in(self, path: Path) -> task.Rows | None:
        return labelled_rows(path, self.reading, each=self.answers_are == "series")

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """The answer to each example, in order."""
        yield from self.say(model, self.encoded(given))

    def encoded(self, given: Sequence[task.Given]) -> Examples:
        """Examples to predict for, in order."""
        found = [Labelled(each.value, None, each.place, None, "all") for each in given]
        return encode_examples(found, self.inputs, None)

    def say(self, model: Any, section: Examples) -> Iterator[dict[str, Any]]:
        """The answers to a section's examples, as a user reads them."""
        raise NotImplementedError

    def flow(self, model: Any, condition: str | None = None) -> Flow:
        if condition is not None:
            raise UsageError(f"{option('condition')} does not apply to a task with given targets")
        return flow_of(model, self.inputs, self.kind, self.told)

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        """What outputs y [D'] say of a tick, or of all up to it."""
        raise NotImplementedError

    def first_of(self, split: str, limit: int) -> Examples:
        """The first examples of a part."""
        return self.read_as.first(self.sections[split], limit)

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        examples = list(self._opened(source, self.answers_are))
        answers = self.answers.with_classes_of(examples) if isinstance(self.answers, ClassCodec) else self.answers
        section = encode_examples(examples, self.inputs, answers)

        def measure(model: Any) -> dict[str, float]:
            self.answers = answers
            return self.measure(model, section, None)

        return measure

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        section = self.sections[split]
        share = 1.0 if limit is None else min(1.0, limit / len(section.values(INPUT)))
        if self.bags:
            share = max(share, min(1.0, BAGS / section.n_examples))
        return self.measure(model, section.share(share), ledger)

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        raise NotImplementedError
