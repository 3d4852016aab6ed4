"""What the tasks that write a target sequence share: a source in, a text out, token by token.

    C = - sum_t log p(y_t | y_1 .. y_{t-1}, source)

In training the decoder is fed the true tokens before each (or its own, with `teacher` below 1); in use it is fed what
it wrote. A task adds how its source is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config, task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.causal import Conditional
from unrolled.core.emission import Emission
from unrolled.core.errors import DataError
from unrolled.core.forward import outputs
from unrolled.core.front import option
from unrolled.core.metric import Metric
from unrolled.core.tokens import STOP
from unrolled.data.codecs.text import Codec
from unrolled.data.collate import NEXT, Form, collate, n_targets
from unrolled.data.config import DataConfig
from unrolled.data.examples import GIVEN, KINDS, REFERENCES, Examples
from unrolled.data.pairs_prepare import Longest, examples_of_pairs
from unrolled.data.prepared import Prepared, settings_of, used
from unrolled.data.reading import PairReading
from unrolled.data.sampler import Bucketed, bucketed_batches
from unrolled.data.target_words import TargetWords
from unrolled.decode.config import WRITTEN, Decoding
from unrolled.decode.text import Written
from unrolled.emissions.categorical import Categorical
from unrolled.objectives.written import signatures
from unrolled.pictures import alignment, kinds
from unrolled.tasks import _judged, _told
from unrolled.tasks._prepared import PreparedTask
from unrolled.tasks._writing import longest_source, looked_at, sides_of, text_of, write

EVALUATION_TOKENS = 8192  # positions of a batch
ROOM = 8  # tokens that may be written beyond the longest target of training
SHOWN = 12  # examples in a table


def shorten() -> str:
    """What to do about a text that is too long for the model."""
    left_out = f"{option('max_length')} and {option('skip_bad', True)}"
    return f"shorten it, skip it with {left_out}, or give the model more positions"


class Config(config.Config):
    """What all of them can be told."""

    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Label smoothing: share of the target given to the prior in training, eq. (8.3); metrics do not use it."""
    prior: Literal["uniform", "training"] = "uniform"
    """Prior of the label smoothing: uniform, or the token frequencies of the training targets."""
    decoded: int = Field(64, ge=1)
    """Number of validation examples to generate at times during training, to measure how long that takes."""
    score: str = "auto"
    """The metric that ranks models: chrf, bleu, exact_match or nats; auto: exact_match if targets are short strings
    (three words or fewer, or all made of few words), otherwise chrf. Weights are always selected by nats."""


class WrittenTask(PreparedTask):
    """The base: batches, loss, figures, writing. A task adds the source: its codec, its ports, how it is read."""

    SCORE: ClassVar[str] = "chrf"
    CRITERION: ClassVar[str] = "nats"
    FIGURES: ClassVar[tuple[str, ...]] = ("chrf", "bleu", "exact_match", "nats", "perplexity", "token_accuracy")
    JUDGED_BY: ClassVar[tuple[Metric, ...]] = (_judged.CHRF, _judged.BLEU, _judged.EXACT)
    ACCEPTS: ClassVar[tuple[str, ...]] = ("conditional",)
    DEFAULT_MODEL: ClassVar[str] = "seq2seq"
    OBEYS: ClassVar[Mapping[str, tuple[str, ...]]] = {"predict": WRITTEN}
    WRITES = True
    FORM: ClassVar[Form] = NEXT

    data: DataConfig
    config: Config
    reading: PairReading

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec: Codec  # of targets
        self.has_codecs = False  # those of a saved run, or fitted before
        self.longest: dict[str, Longest] = {}
        self.longest_target = 0  # of training, in tokens
        self.kinds: list[str] = []  # of held-out examples, that figures tell apart
        self.usual_score = _judged.CHRF
        self.pace = _judged.Pace()
        self.metrics()  # an invalid score is told at once
        self._prior: Tensor | None = None

    # ---- data

    def asked(self, reading: PairReading, codecs: Sequence[Any]) -> dict[str, Any]:
        """All that decides what is prepared from a source, as JSON values."""
        saved = [None if codec is None else codec.to_json() for codec in codecs]
        told = {"task": type(self).__module__, "codecs": saved}
        return {**told, "reading": reading.model_dump(mode="json"), "data": settings_of(self.data)}

    def take(self, pairs: Prepared) -> None:
        """What `prepare` of a task ends with."""
        sections = used(pairs.sections, self.data, n_targets)
        self.prepared = replace(pairs, sections=sections)
        self.longest = {part: Longest(*each) for part, each in pairs.told["longest"].items()}
        self.longest_target = self.longest["train"].target
        self.codec, self.has_codecs = pairs.codecs["target"], True
        self.judge_by(TargetWords(**pairs.facts["target_words"]))
        named = [kind for section in sections.values() for kind in section.columns.get(KINDS, []) if kind]
        self.tell_apart(list(dict.fromkeys(named)))
        if self.config.label_smoothing and self.config.prior == "training":
            counts = np.bincount(sections["train"].values(TARGET), minlength=self.codec.size).astype(np.float32)
            counts[STOP] += sections["train"].n_examples
            self._prior = torch.from_numpy(counts / counts.sum())

    def judge_by(self, words: TargetWords) -> None:
        """Choose the score that is usual for such targets."""
        self.usual_score = _judged.usual_score(words)

    def tell_apart(self, found: list[str]) -> None:
        """Figures of each kind of held-out example beside those of all."""
        self.kinds = found
        more = tuple(_exact_of(kind) for kind in found)
        self.FIGURES = (*type(self).FIGURES, *more)  # type: ignore[misc]

    def save_codec(self, directory: Path) -> None:
        self.codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        self.codec, self.has_codecs = Codec.load(directory), True

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        return {"decoder.embedding": task.Vocabulary(self.codec), "head": task.Vocabulary(self.codec)}

    def columns(self) -> dict[str, str]:
        return self.reading.uses()

    def describe(self) -> dict[str, Any]:
        return {"longest_target": self.longest_target, "kinds": self.kinds, "usual_score": self.usual_score.name}

    def recall(self, facts: Mapping[str, Any]) -> None:
        told = _told.OfPairs.among(facts)
        self.usual_score = next((m for m in self.JUDGED_BY if m.name == told.usual_score), self.usual_score)
        self.longest_target = told.longest_target
        self.tell_apart(told.kinds)

    def size(self, split: str) -> int:
        return n_targets(self.sections[split])

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        tokens = batching.batch_tokens
        return Bucketed(self.sections["train"], tokens, batching.batch_size, self.FORM, seed)

    @property
    def emission(self) -> Emission:
        return Categorical(self.codec.size, smoothing=self.config.label_smoothing, prior=self._prior)

    def look_at_training(self, model: Any) -> None:
        """Nothing is learned here, but what is longer than the model's positions is reported before any work is
        done."""
        for part, found in self.longest.items():
            self.check_lengths(model, found, f" ({part} split)")

    def check_lengths(self, model: Conditional, found: Longest, where: str = "") -> None:
        """The longest source and target against the positions that a model has."""
        most, room = longest_source(model), model.decoder.max_length
        if most is not None and found.source > most:
            raise DataError(
                f"{found.source_place}{where}: the source has {found.source} tokens, but this model reads at most "
                f"{most}; {shorten()}"
            )
        if room is not None and found.target + 1 > room:
            raise DataError(
                f"{found.target_place}{where}: the target has {found.target} tokens, but this model writes at most "
                f"{room - 1}; {shorten()}"
            )

    # ---- figures

    def metrics(self) -> list[Metric]:
        return _judged.chosen(self.config.score, self.JUDGED_BY, self.usual_score)

    def evaluate(
        self, model: Conditional, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        """In training, which sets a limit, no text is written: nats choose the weights."""
        section = self.sections[split]
        if limit is None:
            return self.measure(model, section, ledger)
        return self.measure_tokens(model, section.share(min(1.0, limit / n_targets(section))), ledger)

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None = None) -> dict[str, float]:
        """Figures of each token given those before it, and of the texts that are written."""
        return {**self.measure_tokens(model, section, ledger), **self.measure_texts(model, section, ledger)}

    def measure_tokens(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        return _judged.token_figures(outputs(model, bucketed_batches(section, EVALUATION_TOKENS, self.FORM)), ledger)

    def measure_texts(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        """Of all texts, or of those that there is time to write: how many is the figure `written`."""
        seconds = math.inf if ledger is None else ledger.seconds
        rows, texts = _judged.write_within(
            seconds, section, lambda some: [best[0].text for best in self.write(model, some)]
        )
        some = section if len(rows) == section.n_examples else section.take(rows)
        references = self.references(some)
        found = _judged.judge(self.metrics(), texts, references)
        if ledger is not None:
            _judged.enter(ledger, found, rows)
        figures = _judged.values(found)
        for kind in self.kinds:
            own = [i for i, each in enumerate(some.columns.get(KINDS, [])) if each == kind]
            if own:
                figures[_exact_of(kind)] = sum(texts[i] == references[i] for i in own) / len(own)
        return {**figures, "written": len(rows)}

    def references(self, section: Examples) -> list[str]:
        if REFERENCES in section.columns:
            return list(section.columns[REFERENCES])
        return [self.text_of(target.tolist()) for target in section.fields[TARGET]]

    def more_seconds(self, model: Any) -> float:
        some = self.sections["valid"].spread(self.config.decoded)
        self.pace.probe(lambda: len(self.write(model, some)))
        left = sum(self.sections[split].n_examples for split in self.held_out())
        return self.pace.each * left

    def how_measured(self) -> dict[str, str]:
        return signatures()

    # ---- writing

    def text_of(self, tokens: Iterable[int]) -> str:
        return text_of(self.codec, tokens)

    def write(
        self,
        model: Conditional,
        section: Examples,
        decoding: Decoding | None = None,
        numbers: Tensor | None = None,
    ) -> list[list[Written]]:
        """The n best texts for every source, in the order of the section (see `_writing.write`)."""
        return write(self.codec, model, section, decoding or self.settled(model, Decoding()), numbers)

    def settled(self, model: Any, asked: Decoding) -> Decoding:
        """How texts are looked for: the likeliest token at each step unless something else is asked for."""
        found, room = asked.settled(samples=False, max_tokens=self.most_tokens(model)), model.decoder.max_length
        assert found.max_tokens is not None
        return found if room is None else found.updated({"max_tokens": min(found.max_tokens, room)})

    def most_tokens(self, model: Conditional) -> int:
        """The most that is written, <stop> included."""
        room, wanted = model.decoder.max_length, self.longest_target + ROOM
        return wanted if room is None else min(wanted, room)

    # ---- examples, one by one

    def encode_source(self, value: Any, place: str) -> np.ndarray:
        """A source as a user gives it, as ids [S] or numbers [S, D]."""
        raise NotImplementedError

    def is_nothing(self, value: Any) -> bool:
        """Whether a source is an empty line, for which an empty line is written."""
        return False

    def shown_source(self, value: Any) -> Any:
        """A source as JSON has it, and as `example` takes it again."""
        return value

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any) -> Iterator[dict[str, Any]]:
        """What is written for some sources, which are batched by length, in their order; nothing for empty lines."""
        decoding = self.settled(model, decoding)
        real = [each for each in given if not self.is_nothing(each.value)]
        sources = [self.encode_source(each.value, each.place) for each in real]
        most = longest_source(model)
        for each, source in zip(real, sources):
            if most is not None and len(source) > most:
                raise DataError(
                    f"{each.place}: the source has {len(source)} tokens, but this model reads at most {most}; "
                    "shorten or split it"
                )
        section = examples_of_pairs(sources, [np.empty(0, np.int32)] * len(sources))
        numbers = torch.tensor([each.number for each in real], dtype=torch.long)
        found = iter(self.write(model, section, decoding, numbers))
        for each in given:
            if self.is_nothing(each.value):
                yield {"source": each.value, "prediction": "", "logp": 0.0, "finished": True}
                continue
            best, *_ = candidates = next(found)
            line = {"source": self.shown_source(each.value), "prediction": best.text, "logp": best.logp}
            line["finished"] = best.finished
            if decoding.n > 1:
                line["candidates"] = [{"text": one.text, "logp": one.logp, "score": one.score} for one in candidates]
            yield line

    def predictions(self, model: Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        """Examples of a part with what was written, and the nats of what should have been."""
        section = self.sections[split].first(limit)
        nats, counts = self.nats_of(model, section)
        references, written = self.references(section), self.write(model, section)
        for i in range(section.n_examples):
            text = written[i][0].text
            yield {
                "source": self.shown_source(self.source_at(section, i)), "target": references[i], "prediction": text,
                "right": text == references[i], "tokens": int(counts[i]),
                "nats_per_token": float(nats[i] / counts[i].clamp(min=1)),
                **({"kind": section.columns[KINDS][i]} if KINDS in section.columns else {}),
            }  # fmt: skip

    def nats_of(self, model: Any, section: Examples) -> tuple[Tensor, Tensor]:
        """Nats of every target [n], and how many tokens it has [n]."""
        nats, counts = torch.zeros(section.n_examples), torch.zeros(section.n_examples)
        for batch, y in outputs(model, bucketed_batches(section, EVALUATION_TOKENS, self.FORM)):
            assert batch.rows is not None
            rows = batch.rows.cpu()
            nats[rows] = self.emission.losses(y, batch.y).sum(1).cpu()
            counts[rows] = batch.real.sum(1).float().cpu()
        return nats, counts

    def source_at(self, section: Examples, i: int) -> Any:
        """The source of an example as it was given."""
        return section.at(GIVEN, i)

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """A source and its target, a mapping or a pair, as one row; the positions are those of the target."""
        batch = self.row_of(value)
        return batch, [self.codec.name(int(token)) for token in batch.x[0]]

    def row_of(self, value: Any) -> Batch:
        source, target = sides_of(value)
        ids = self.codec.encode(target).astype(np.int32)
        section = examples_of_pairs([self.encode_source(source, "the source")], [ids])
        return collate(section, np.arange(1), self.FORM)

    def completed(self, model: Any, value: Any) -> Any:
        source, target = sides_of(value)
        given = bool(target) or (isinstance(value, Mapping) and "target" in value) or not isinstance(model, Conditional)
        if given:
            return value
        written = next(self.predict(model, [task.Given(source, number=1, place="the source")], Decoding()))
        return {"source": source, "target": written["prediction"]}

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return {"source": line["source"], "target": line["target"]}

    def offered(self, value: Any) -> task.Offered:
        return task.offered(value["source"])

    # ---- pictures

    def pictures(self, model: Conditional, split: str) -> dict[str, Any]:
        """Examples beside what was written, and where the model looked while it wrote one of them."""
        lines = list(self.predictions(model, split, SHOWN))
        rows = [[str(line["source"]), line["target"], line["prediction"]] for line in lines]
        table = kinds.Table(
            title="Predictions", alt=f"Sources of the {split} data with targets and predictions.",
            columns=["source", "target", "prediction"], rows=rows,
        )  # fmt: skip
        found = self.alignment_of(model, lines[0])
        return {"samples": table} | ({} if found is None else {"alignment": found})

    def alignment_of(self, model: Conditional, line: Mapping[str, Any]) -> kinds.Heatmap | None:
        """Where the model looks in the source while it writes each token (Fig. 7.11); None: it does not look."""
        batch, _ = self.example({"source": line["source"], "target": line["prediction"] or line["target"]})
        alpha = looked_at(model, batch)
        if alpha is None or batch.source is None:
            return None
        names = [self.codec.name(int(token)) for token in (*batch.x[0, 1:].tolist(), STOP)]
        return alignment.picture(alpha, names, self.source_names(batch.source[0]))


def _exact_of(kind: str) -> str:
    return f"exact_match_{kind.replace(' ', '_')}"
