"""The task translate from data to predictions, with a small model that learns to turn words round."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch

import unrolled
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.plan import chosen_models
from unrolled.core.causal import begin
from unrolled.core.errors import DataError, UsageError
from unrolled.core.task import Given, Ledger
from unrolled.data.config import DataConfig
from unrolled.data.pairs_prepare import examples_of_pairs
from unrolled.decode.config import Decoding
from unrolled.decode.text import Written
from unrolled.objectives.corpus import value_of
from unrolled.runs.build import build
from unrolled.runs.config import RunConfig
from unrolled.runs.guess import guess_task
from unrolled.tasks import _judged, translate
from unrolled.training.mixing import mixed

WORDS = ["".join(letters) for n in (1, 2, 3) for letters in itertools.product("abcd", repeat=n)]
PAIRS = [(word, word[::-1].upper()) for word in WORDS]
SMALL = {"d_state": 24, "d_embedding": 12, "lr": 1e-2, "split": "80/10/10"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    settings = SMALL | {"steps": 160, "evaluate_every": 80, "batch_size": 16, "label_smoothing": 0.02}
    return unrolled.train(PAIRS, task="translate", model="seq2seq", out=folder / "turn", settings=settings)


@pytest.fixture
def task():
    task = translate.Task(translate.Config(), DataConfig(split="80/10/10"))
    task.prepare(PAIRS)
    return task


def model_of(task, **settings):
    config = RunConfig(task="translate", model="seq2seq", model_settings={"d_state": 8} | settings)
    return build(config, task.ports(), task.ACCEPTS)


def test_it_is_learned_and_measured(run):
    test, copied = run.result["test"], run.result["baselines"]["copy"]["test"]
    assert test["exact_match"] > 0.6
    assert copied["exact_match"] < 0.3
    assert test["nats"] < copied["nats"]
    assert test["perplexity"] == pytest.approx(2.718281828 ** test["nats"], rel=1e-4)
    assert 0 <= test["bleu"] <= 100 and test["chrf"] > 50
    assert run.result["how_measured"]["bleu"].startswith("nrefs:1|case:mixed")
    assert run.result["figures"] == ["chrf", "bleu", "exact_match", "nats", "perplexity", "token_accuracy"]


def test_predictions_are_kept_with_source_and_target(run):
    lines = list(run.directory.read_lines("predictions.jsonl"))
    assert lines[0].keys() >= {"source", "target", "prediction", "nats_per_token", "right"}
    assert all(line["target"] == line["source"][::-1].upper() for line in lines)
    assert all(line["right"] == (line["target"] == line["prediction"]) for line in lines)


def test_what_is_loaded_writes_the_same(run):
    again = unrolled.load(run.path)
    words = ["abc", "d", "cba", "ab"]
    assert again.predict(words) == run.predict(words)
    assert again.result["test"]["exact_match"] == pytest.approx(again.evaluate(PAIRS)["exact_match"], abs=0.35)


def test_order_and_empty_lines_stay(run):
    said = run.predict(["abc", "", "d", "  ", "ba"])
    assert [line["source"] for line in said] == ["abc", "", "d", "  ", "ba"]
    assert said[1]["prediction"] == said[3]["prediction"] == ""
    alone = [run.predict([word])[0]["prediction"] for word in ("abc", "d", "ba")]
    assert [said[i]["prediction"] for i in (0, 2, 4)] == alone


def test_beams_and_samples(run):
    beam = run.predict(["abc"], beam=4, n=3, length_penalty=0.6)[0]
    assert len(beam["candidates"]) == 3
    assert [c["score"] for c in beam["candidates"]] == sorted((c["score"] for c in beam["candidates"]), reverse=True)
    assert beam["logp"] >= run.predict(["abc"], temperature=2.0)[0]["logp"] - 1e-5
    with pytest.raises(UsageError, match="give only one of them"):
        run.predict(["abc"], beam=2, sample=True)
    with pytest.raises(UsageError, match=r"add beam="):
        run.predict(["abc"], length_penalty=1.0)


def test_a_line_is_sampled_the_same_in_any_company(run):
    hot = Decoding(temperature=3.0, seed=1)
    lines = [Given(word, number=number) for number, word in enumerate(["abc", "d", "ab", "dcb"], 1)]
    together = [line["prediction"] for line in run.task.predict(run.model, lines, hot)]
    alone = [next(run.task.predict(run.model, [line], hot))["prediction"] for line in lines]
    assert together == alone


def test_inspection_shows_source_by_target(run):
    answer = run.inspect("attention", run.typed("abc\tCBA"))
    (picture, *_) = answer.pictures
    assert picture.columns == ["a", "b", "c"]
    assert picture.rows == ["C", "B", "A", "<stop>"]
    own = run.inspect("attention", "abc")
    said = run.predict(["abc"])[0]["prediction"]
    assert said and own.pictures[0].rows == [*said, "<stop>"]
    assert own.pictures[0].values == run.inspect("attention", ("abc", said)).pictures[0].values
    assert "the model's own prediction" in own.reading and "own prediction" not in answer.reading
    assert run.inspect("attention", "abc", {"length": 1}).pictures[0].rows == [said[0]]
    drawn = json.loads((run.path / "figures" / "alignment.json").read_text())
    assert len(drawn["values"]) == len(drawn["rows"])
    assert drawn["rows"][-1] == "<stop>"
    samples = json.loads((run.path / "figures" / "samples.json").read_text())
    assert samples["columns"] == ["source", "target", "prediction"]
    assert run.inspect("surprise", ("abc", "CBA")).numbers


def test_figures_of_kinds_are_told_apart():
    task = translate.Task(translate.Config(), DataConfig())
    task.prepare("builtin:dates,examples=300")
    assert task.FIGURES[-2:] == ("exact_match_new_dates", "exact_match_new_combinations")
    model = model_of(task)
    figures = task.evaluate(model, "test")
    both = (figures["exact_match_new_dates"] + figures["exact_match_new_combinations"]) / 2
    assert figures["exact_match"] == pytest.approx(both)
    assert "exact_match_new_dates" not in task.evaluate(model, "valid")
    other = translate.Task(translate.Config(), DataConfig())
    other.recall(json.loads(json.dumps(task.describe())))
    assert other.FIGURES == task.FIGURES
    assert translate.Task.FIGURES[-1] == "token_accuracy"


def test_unknown_tokens_are_seen():
    task = translate.Task(translate.Config(), DataConfig(tokens="word", vocabulary=8))
    task.prepare([(f"x {i}", "a b" if i % 2 else "c d") for i in range(60)])
    known = {task.codec.name(token): token for token in range(task.codec.size)}
    assert task.text_of([1, 1]) == "<unk> <unk>"
    assert task.text_of([known["a"], 1, known["␣b"]]) == "a <unk> b"


def test_the_ledger_has_the_score_of_every_example(task):
    ledger, model = Ledger("nats"), model_of(task)
    figures = task.evaluate(model, "test", ledger=ledger)
    statistics = ledger.tensors()["nats"]
    assert len(statistics) == task.sections["test"].n_examples
    total, count = statistics.sum(0).tolist()
    assert total / count == pytest.approx(figures["nats"], rel=1e-5)
    assert count == task.size("test") == figures["tokens"]


def test_the_time_that_writing_takes_is_foreseen(task, monkeypatch):
    """By writing some texts, as long as that is a small part of the time of training."""
    clock = FakeClock(monkeypatch)
    wrote = []
    task.write = lambda model, section: wrote.append(clock.pass_by(2.0)) or [[]] * section.n_examples
    left = task.sections["valid"].n_examples + task.sections["test"].n_examples
    each = 2.0 / task.sections["valid"].n_examples
    assert task.more_seconds(None) == pytest.approx(left * each) and len(wrote) == 1
    clock.pass_by(50.0)
    assert task.more_seconds(None) == pytest.approx(left * each) and len(wrote) == 1  # 2 s are more than 2 % of 52 s
    clock.pass_by(50.0)
    task.more_seconds(None)
    assert len(wrote) == 2


class FakeClock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(_judged.time, "monotonic", lambda: self.now)

    def pass_by(self, seconds):
        self.now += seconds


def test_training_writes_no_texts_and_the_end_as_many_as_there_is_time_for(task, monkeypatch):
    clock, wrote = FakeClock(monkeypatch), []
    monkeypatch.setattr(_judged, "FIRST", 16)
    section = examples_of_pairs([np.array([4])] * 200, [np.array([4])] * 200)

    def write(some):
        wrote.append(some.n_examples)
        clock.pass_by(0.1 * some.n_examples)
        return [str(row) for row in some.rows]

    everything, texts = _judged.write_within(math.inf, section, write)
    assert everything.tolist() == list(range(200)) and wrote == [200]
    few, texts = _judged.write_within(6.0, section, write)
    assert len(few) == 60 and texts == [str(row) for row in few]  # 16, 32 and the 12 that 6 s leave room for
    more, _ = _judged.write_within(9.0, section, write)
    assert set(few.tolist()) < set(more.tolist()) and len(set(more.tolist())) == 90  # the same first
    enough, texts = _judged.write_within(1000.0, section, write)
    assert enough.tolist() == list(range(200)) and texts == [str(row) for row in enough]
    assert np.ptp(few) > 150  # from all over the data
    least, _ = _judged.write_within(0.0, section, write)
    assert len(least) == 16
    task.write = None  # in training nothing is written
    assert "chrf" not in task.evaluate(model_of(task), "valid", limit=10)


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_texts_are_judged_by_their_own_references_however_long_writing_may_take(task, monkeypatch, seconds):
    monkeypatch.setattr(_judged, "FIRST", 4)
    task.write = lambda model, some: [[Written(text, 0.0, 1, True, 0.0)] for text in task.references(some)]
    task.measure_tokens = lambda *_: {}
    figures = task.evaluate(None, "test", ledger=Ledger("exact_match", seconds=seconds))
    assert figures["exact_match"] == 1.0 and figures["chrf"] == pytest.approx(100.0)


def test_a_ledger_keeps_the_statistics_of_texts_that_were_written(task, monkeypatch):
    monkeypatch.setattr(_judged, "FIRST", 4)
    ledger, model = Ledger("exact_match", seconds=0.0), model_of(task)
    figures = task.evaluate(model, "test", ledger=ledger)
    kept = ledger.tensors()
    n = task.sections["test"].n_examples
    assert figures["written"] == ledger.n_units == 4 < n and ledger.left_out
    assert {name: tuple(each.shape) for name, each in kept.items()} == {
        "nats": (n, 2), "chrf": (n, 18), "bleu": (n, 10), "exact_match": (n, 2),
    }  # fmt: skip
    for metric in task.metrics():
        sums = kept[metric.name].nansum(0).numpy()
        assert value_of(metric.formula, sums) == pytest.approx(figures[metric.name], rel=1e-5)
    assert int(kept["chrf"].isnan().any(1).sum()) == n - 4


SENTENCES = [f"the {a} {b} {c} in the {d} of it" for a, b, c, d in itertools.product("pqr", "stu", "vwx", "yzkl")]
NUMBERS = [f"one hundred {a} thousand {b} hundred {c}" for a, b, c in itertools.product(WORDS[:9], repeat=3)]


@pytest.mark.parametrize(
    ("targets", "score"),
    [
        (["2024-05-17", "1999-12-31"] * 20, "exact_match"),
        (["HH AH0 L OW1 W ER1", "W ER1 L D HH AH0"] * 40, "exact_match"),
        (NUMBERS, "exact_match"),
        ([f"{text} {i} {i * i}" for i, text in enumerate(SENTENCES)], "chrf"),
        (["我喜欢喝茶和咖啡" + chr(0x4E00 + i) for i in range(300)], "chrf"),
    ],
)  # fmt: skip
def test_short_strings_are_ranked_by_exact_matches_and_texts_by_chrf(targets, score):
    pairs = [(str(i), target) for i, target in enumerate(targets)]
    task = translate.Task(translate.Config(), DataConfig(split="80/10/10"))
    task.prepare(pairs)
    assert (task.ranks_by.name, task.ranks_by.larger, task.criterion) == (score, True, "nats")
    again = translate.Task(translate.Config(), DataConfig())
    again.recall(json.loads(json.dumps(task.describe())))
    assert again.ranks_by == task.ranks_by
    part = translate.Task(translate.Config(), DataConfig(split="80/10/10", fraction=0.1))
    part.prepare(pairs)
    assert part.ranks_by == task.ranks_by  # learning curves over data are of one score
    asked = translate.Task(translate.Config(score="bleu"), DataConfig(split="80/10/10"))
    asked.prepare(pairs)
    assert asked.ranks_by.name == "bleu"


def test_a_score_that_there_is_not_is_refused_at_once():
    with pytest.raises(UsageError, match="invalid value score = 'accuracy': expected one of auto, chrf, bleu"):
        translate.Task(translate.Config(score="accuracy"), DataConfig())


def test_mixing_with_the_truth_alone_is_teacher_forcing(task):
    model = model_of(task).eval()
    batch = task.sampler(RunConfig().batching, False, 0).batch(0)
    forced, _ = model.decoder(batch.x, begin(model, batch.source, batch.source_mask)[1])
    same, _ = mixed(*begin_with(model, batch), teacher=1.0, seed=0)
    own, _ = mixed(*begin_with(model, batch), teacher=0.0, seed=0)
    assert torch.allclose(forced, same, atol=1e-5)
    assert not torch.allclose(forced, own, atol=1e-3)
    task.loss(own, batch)[0].backward()
    assert all(p.grad is not None for p in model.parameters())


def begin_with(model, batch):
    decoder, state = begin(model, batch.source, batch.source_mask)
    return decoder, batch.x, state


def test_a_source_longer_than_the_positions_is_told(task):
    model = model_of(task)
    model.max_source = 2
    with pytest.raises(DataError, match=r"row \d+ \(train split\): the source has 3 tokens, .* at most 2"):
        task.look_at_training(model)
    with pytest.raises(DataError, match="line 7: the source has 3 tokens, but this model reads at most 2"):
        list(task.predict(model, [Given("ab"), Given("abc", place="line 7")], Decoding()))
    model.max_source = None
    model.decoder.max_length = 3
    with pytest.raises(DataError, match="the target has 3 tokens, but this model writes at most 2"):
        task.look_at_training(model)
    assert task.settled(model, Decoding()).max_tokens == 3


def test_it_is_guessed_and_compared_with_models_that_fit(tmp_path, task):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS))
    assert guess_task(str(file), {}) == ("translate", "its examples are pairs of texts")
    names = chosen_models(CompareConfig(), task, "translate")
    assert "seq2seq" in names
    assert not {"lstm", "memoryless", "copy-source", "dictionary"} & set(names)
    with pytest.raises(UsageError, match=r"does not fit the task 'translate': it is a causal model"):
        build(RunConfig(task="translate", model="lstm"), task.ports(), task.ACCEPTS)


def test_columns_of_other_tasks_are_refused():
    task = translate.Task(translate.Config(), DataConfig(column="text"))
    with pytest.raises(UsageError, match=r"give .*source_column.*target_column"):
        task.prepare(PAIRS)


@pytest.mark.parametrize("name", ["dates,examples=400", "numbers,examples=3000", "reversal,examples=400"])
def test_built_in_strings_are_ranked_by_exact_matches(name):
    task = translate.Task(translate.Config(), DataConfig())
    task.prepare(f"builtin:{name}")
    assert task.ranks_by == _judged.EXACT
