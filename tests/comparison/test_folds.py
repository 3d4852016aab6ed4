"""Cross-validation: who is in which fold, who is picked, and the models of all folds as one run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

import unrolled
from unrolled.comparison.api import make_plan
from unrolled.core.batch import TARGET
from unrolled.core.errors import UsageError
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT
from unrolled.data.labelled_prepare import prepare_labelled
from unrolled.data.reading import Fold, Reading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.runs.build import make_model
from unrolled.training.together import join, left_out

K = 2
STEPS, EVERY = 12, 4
SETTINGS = {
    "ensemble": False,
    "models": "dan", "steps": STEPS, "evaluate_every": EVERY, "folds": K, "tokens": "word", "vocabulary": 60,
    "d_embedding": 8, "split": "60/20/20", "lr": 0.02, "warmup": 1, "threads": 1, "batch_size": 16, "jobs": 1,
}  # fmt: skip


def rows(n: int = 90) -> list[dict[str, str]]:
    """A third is `bad`, which one of ten words says; documents of five rows each."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    made = []
    for i in range(n):
        label = "bad" if i % 3 == 0 else "good"
        text = f"{words[i % 10]} {words[i // 10]} {'poor' if label == 'bad' else 'fine'} {i}"
        made.append({"text": text, "label": label, "document": str(i // 5)})
    return made


def sections(fold: Fold, group: str | None = None):
    reading = Reading(column="text", target="label", group=group)
    config = DataConfig(tokens="word", vocabulary=60, split="60/20/20")
    return prepare_labelled(open_labelled(rows(), reading, "class"), config, fold=fold)


@pytest.mark.parametrize("group", [None, "document"])
def test_each_example_is_left_out_once_and_test_never_moves(group):
    usual = sections(Fold(), group)
    found = [sections(Fold(of=K, number=k), group) for k in range(K)]
    test = set(usual.sections["test"].rows)
    left_out: list[int] = []
    for each in found:
        assert set(each.sections["test"].rows) == test
        train, valid = set(each.sections["train"].rows), set(each.sections["valid"].rows)
        assert not train & valid and train | valid | test == set(range(90))
        left_out += valid
        if group:
            assert not {row // 5 for row in train} & {row // 5 for row in valid}
        else:
            shares = np.bincount(each.sections["valid"].values(TARGET), minlength=2) / len(valid)
            assert shares[0] == pytest.approx(1 / 3, abs=0.08)
    assert sorted(left_out) == sorted(set(range(90)) - test)
    everything = [*found, sections(Fold(of=K), group)]
    assert len({each.codecs["inputs"].to_json() for each in everything}) == 1


def test_without_a_number_training_has_all():
    whole = sections(Fold(of=K))
    assert list(whole.sections) == ["train", "test"]
    assert whole.sections["train"].n_examples + whole.sections["test"].n_examples == 90


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    path = tmp_path_factory.mktemp("folds")
    (path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows())), encoding="utf-8")
    return unrolled.compare(path / "rows.jsonl", "classify", out=path / "out", settings=SETTINGS)


def test_rows_are_ranked_by_the_mean_over_folds(done):
    assert done.table["finished"] and done.table["folds"] == K
    by_label = {row["label"]: row for row in done.rows}
    assert {"dan", "class frequencies", "naive Bayes", "logistic regression"} <= set(by_label)
    for row in done.rows:
        [folder] = row["runs"]
        folds = [done.run(f"{folder}-fold-{k}") for k in range(K)]
        if row["kind"] == "baseline":
            assert row["valid"] == pytest.approx(np.mean([run.result["valid"]["error"] for run in folds]))
        else:
            lines = [(run.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines() for run in folds]
            curves = [[fact["error"] for fact in map(json.loads, some) if "error" in fact] for some in lines]
            assert len(curves[0]) == 1 + STEPS // EVERY
            assert row["valid"] == left_out(curves) == done.run(folder).result["left_out"]
        assert row["score"] == pytest.approx(done.run(folder).result["test"]["error"])
    assert [row["valid"] for row in done.rows] == sorted(row["valid"] for row in done.rows)
    assert done.table["verdict"].startswith(f"Selected by {K}-fold cross-validation on the training data: ")
    assert f"Its ensemble of {K} models has" in done.table["verdict"]
    first = next(row for row in done.rows if row["kind"] == "model")
    assert done.table["selected"] == first["label"] and done.best.path.name == first["runs"][0]
    assert done.table["winner"] in (None, "dan", "memoryless")
    assert f"{K} folds" in (done.path / "report.html").read_text(encoding="utf-8")


def test_no_fold_chooses_the_moment_at_which_it_is_scored():
    first, second, third = [5.0, 1.0, 9.0], [4.0, 3.0, 2.0], [4.0, 3.0, 0.0]
    # the others' means: of the first [4, 3, 1], of the second [4.5, 2, 4.5], of the third [4.5, 2, 5.5]
    assert left_out([first, second, third]) == (9 + 3 + 3) / 3
    assert left_out([[4.0], [2.0]]) == 3  # solved: there is nothing to choose
    assert left_out([[5.0, 3.0], [4.0, 2.0, 2.0]]) == 2.5  # one that ended earlier counts with its end
    assert left_out([[7.0, 8.0], [1.0, 1.0]]) == (8 + 1) / 2  # of equal moments the later, as in training


def test_the_models_of_all_folds_answer_together(done):
    run = done.run("dan")
    members = [done.run(f"dan-fold-{k}") for k in range(K)]
    assert run.config.members == K and len(run.model.members) == K
    assert run.config.combine == "mixture"
    text = "one two poor 3"
    batch, _ = run.task.example(text)
    with torch.no_grad():
        each = torch.stack([member.model(batch.x, batch.mask)[0] for member in members])
        y = run.model(batch.x, batch.mask)[0]
    told = json.loads(run.task.emission.to_json())
    assert told == run.result["emission"] == {"name": "categorical", "d_out": 2, "temperature": run.task.temperature}
    wanted = (each / told["temperature"]).softmax(-1).mean(0)  # probabilities as they are told, not logits
    torch.testing.assert_close((y / told["temperature"]).softmax(-1), wanted)
    assert run.predict([text])[0]["p"] == pytest.approx(float(wanted.max()), rel=1e-5)
    before = make_model(run.config.model_copy(update={"combine": "outputs"}), run.task)  # as older runs are
    before.load_state_dict(run.model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(before.eval()(batch.x, batch.mask)[0], each.mean(0))
    assert len({float(y.sum()) for y in each}) == K
    temperatures = [member.task.temperature for member in members]
    assert run.task.temperature == pytest.approx(np.exp(np.mean(np.log(temperatures))))
    again = unrolled.load(run.path, trained_on=done.trained_on)
    assert again.predict([text]) == run.predict([text])
    assert again.evaluate() == pytest.approx(run.result["test"], rel=1e-6)
    with pytest.raises(UsageError, match="there is no split 'valid'"):
        again.evaluate(split="valid")
    assert set(run.result["baselines"]) == {"class frequencies", "naive Bayes", "logistic regression"}
    assert set(again.evaluate_baselines()) == set(run.result["baselines"])
    assert f"--folds {K}" in (run.path / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_score_that_settings_change_is_the_one_that_is_named(tmp_path):
    settings = {**SETTINGS, "class_weights": 1.0}
    found = unrolled.compare({"train": rows()[:60], "test": rows()[60:]}, "classify", tmp_path / "out", settings)
    assert found.table["score"] == "weighted_error" and "weighted error on test" in found.table["verdict"]
    assert [row["failed"] for row in found.rows] == [None] * len(found.rows)  # logistic regression has one too
    for row in found.rows:
        assert row["score"] == pytest.approx(found.run(row["runs"][0]).result["test"]["weighted_error"])


def test_an_interrupted_comparison_goes_on(done, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(done.path, copy)
    shutil.rmtree(copy / "dan")
    shutil.rmtree(copy / "dan-fold-1")
    again = unrolled.compare(done.trained_on, resume=copy)
    assert [(row["label"], row["valid"], row["score"]) for row in again.rows] == [
        (row["label"], row["valid"], row["score"]) for row in done.rows
    ]


@pytest.mark.parametrize(("source", "task", "change", "says"), [
    ("builtin:unicode-names", "next-token", {}, "folds need a task with given targets"),
    (rows(), "classify", {"seeds": 2}, "combined with seeds or fractions"),
    (rows(), "classify", {"folds": 0}, "folds"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(source, task, change, says):
    with pytest.raises(UsageError, match=says):
        make_plan(source, task, {"models": "lstm", "steps": 2, "folds": K} | change)


def test_folds_need_a_test_part(tmp_path):
    settings = {"split": "80/20", "task.reading.fold.of": K, "task.reading.fold.number": 0, "steps": 1}
    with pytest.raises(UsageError, match="folds need a test split"):
        unrolled.train(rows(), task="classify", model="dan", out=tmp_path / "run", settings=settings)
    with pytest.raises(UsageError, match=r"compare.DATA, .*folds"):
        unrolled.train(rows(), task="classify", model="dan", out=tmp_path / "run", settings={"members": 3})
    with pytest.raises(UsageError, match=r"compare.DATA, .*folds"):
        unrolled.train(rows(), task="classify", model="dan", out=tmp_path / "run", settings={"combine": "mixture"})


def in_two(model, tmp_path, more):
    """A model once without each of two folds, and both joined."""
    source = "builtin:maximum,length=8,examples=60"
    members = []
    for k in range(2):
        settings = {"split": "60/20/20", "task.reading.fold.of": 2, "task.reading.fold.number": k, **more}
        members.append(unrolled.train(source, "regress", model, out=tmp_path / str(k), settings=settings, baselines={}))
    return members, join([member.path for member in members], source, tmp_path / "both")


def test_numbers_are_answered_by_their_mean(tmp_path):
    members, run = in_two("elman", tmp_path, {"steps": 3, "d_state": 4})
    for height in (0.2, 0.6):
        series = np.linspace(0, height, 8)[:, None].tolist()
        said = [member.predict([series])[0]["prediction"] for member in members]
        assert run.predict([series])[0]["prediction"] == pytest.approx(np.mean(said), rel=1e-4)
    assert run.result["valid"]["mse"] == pytest.approx(np.mean([each.result["valid"]["mse"] for each in members]))
    assert run.result["valid"]["tokens"] == 48
    with pytest.raises(UsageError, match="an ensemble of 2 models; start from one of them"):
        unrolled.train("builtin:maximum,length=8,examples=60", out=tmp_path / "on", from_run=run.path)


def test_how_sure_to_be_is_learned_from_all_folds(tmp_path):
    """The geometric mean of the temperatures that the folds found."""
    members = []
    for k in range(2):
        settings = {"split": "60/20/20", "task.reading.fold.of": 2, "task.reading.fold.number": k, "steps": 4}
        run = unrolled.train(rows(), "classify", "dan", out=tmp_path / str(k), settings=settings, baselines={})
        members.append(run)
    both = join([member.path for member in members], rows(), tmp_path / "both")
    found = [member.task.temperature for member in members]
    assert found[0] != 1
    assert both.task.temperature == pytest.approx((found[0] * found[1]) ** 0.5)
    assert unrolled.load(tmp_path / "both").task.temperature == both.task.temperature


def test_a_model_that_is_solved_is_solved_again_on_all_folds(tmp_path):
    members, run = in_two("nearest", tmp_path, {})
    assert run.config.members == 1
    run.task.prepare("builtin:maximum,length=8,examples=60")
    known = run.task.sections["train"]
    assert known.n_examples == 48
    for i in (0, 20, 47):  # each of them is its own nearest neighbour, in whatever fold it was
        series = run.task.inputs.decode(known.at(INPUT, i))
        right = float(np.ravel(run.task.answers.decode(known.at(TARGET, i)))[0])
        assert run.predict([series])[0]["prediction"] == pytest.approx(right, rel=1e-4)
    assert run.result["valid"]["mse"] == pytest.approx(np.mean([each.result["valid"]["mse"] for each in members]))
