"""The classify task: bad input, figures, calibration, rare classes, saved runs, the user's rows with answers behind."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import polars
import pytest
import torch
from sklearn.metrics import f1_score

import unrolled
from tests.commands import run_unrolled
from unrolled.comparison.api import make_plan
from unrolled.core.errors import DataError, UsageError
from unrolled.objectives.calibration import expected_calibration_error, reliability
from unrolled.pictures.draw import html, is_drawn, svg
from unrolled.runs.build import make_task
from unrolled.runs.run import Run, load
from unrolled.training.api import configure

QUICK = {"steps": 5, "d_embedding": 8, "batch_size": 16, "warmup": 1, "threads": 1, "lr": 0.01}
SMALL = {"bilstm": {"d_state": 8}, "lstm": {"d_state": 8}, "dan": {"d_hidden": 8},
         "transformer-encoder": {"d_model": 8, "n_heads": 2, "n_layers": 1}}  # fmt: skip
WORDS = ["tick", "state", "layer", "chunk", "cell", "gate", "carry", "scan", "source", "mask"]


def rows(n: int, rare: int = 3) -> list[dict[str, Any]]:
    """Sentences that are `good` but for one in `rare`, which say so by a word; no two are alike."""
    found = []
    for i in range(n):
        bad = i % rare == 0
        words = [WORDS[i % 10], "bad" if bad else "fine", WORDS[i // 10 % 10], WORDS[i // 100]]
        found.append({"id": str(i), "text": " ".join(words), "label": "bad" if bad else "good"})
    return found


def write(path: Path, found: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    write(folder / "rows.csv", rows(120))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    settings = QUICK | {"tokens": "word", "steps": 60, "model.d_hidden": 8, "split": "60/20/20"}
    return unrolled.train(folder / "rows.csv", task="classify", model="dan", out=folder / "run", settings=settings)


# ---- bad input


@pytest.mark.parametrize(("change", "settings", "says"), [
    ({"label": "good"}, {}, "at least two are needed"),
    ({"text": "  "}, {}, "line 2"),
    ({"label": ""}, {}, "expected a class"),
])  # fmt: skip
def test_bad_data_is_explained(tmp_path: Path, change: dict[str, str], settings: dict[str, Any], says: str) -> None:
    some = rows(12)
    whole = "label" in change and change["label"]
    path = write(tmp_path / "bad.csv", [row | change if whole or i == 0 else row for i, row in enumerate(some)])
    with pytest.raises(DataError, match=says):
        unrolled.train(path, task="classify", model="dan", out=tmp_path / "run", settings=QUICK | settings)
    assert not (tmp_path / "run").exists()


def test_a_column_that_is_not_there_is_named_with_its_neighbours(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'label'"):
        unrolled.train(folder / "rows.csv", task="classify", model="dan", out=tmp_path / "run",
                       settings=QUICK | {"task.reading.target": "lable"})  # fmt: skip


# ---- models


@pytest.mark.parametrize("model", ["bow", "dan", "bilstm", "lstm", "transformer-encoder"])
def test_models_train_and_load_with_the_same_figures(model: str, folder: Path, tmp_path: Path) -> None:
    own = {f"model.{key}": value for key, value in SMALL.get(model, {}).items()}
    run = unrolled.train(folder / "rows.csv", task="classify", model=model, out=tmp_path / "run", settings=QUICK | own)
    figures = run.evaluate(split="valid")
    assert 0 <= figures["error"] <= 1
    again = load(tmp_path / "run", trained_on=folder / "rows.csv")
    assert again.evaluate(split="valid") == figures
    texts = [row["text"] for row in rows(9)]
    assert again.predict(texts) == run.predict(texts)


def test_figures_by_hand(run: Run) -> None:
    some = rows(30)
    figures = run.evaluate(some)
    said = [line["prediction"] for line in run.predict([row["text"] for row in some])]
    wrong = [a != row["label"] for a, row in zip(said, some, strict=True)]
    assert figures["error"] == pytest.approx(sum(wrong) / len(some))
    assert figures["accuracy"] == pytest.approx(1 - figures["error"])
    assert figures["tokens"] == 30


# ---- calibration and predictions


def test_the_temperature_is_saved_and_used(run: Run) -> None:
    told = json.loads((run.path / "data.json").read_text())
    assert told["temperature"] == run.task.temperature != 1.0
    again = load(run.path)
    assert again.task.temperature == run.task.temperature
    text = rows(2)[1]["text"]
    batch, _ = again.task.example(text)
    with torch.no_grad():
        logits = again.model(batch.x, batch.mask)[0][0, 0].double()
    p = (logits / again.task.temperature).softmax(0)
    assert again.predict([text])[0]["p"] == pytest.approx(float(p.max()), rel=1e-5)


def test_the_most_probable_classes_are_told_on_request(run: Run) -> None:
    texts = [row["text"] for row in rows(6)]
    for line, alone in zip(run.predict(texts, n=5), run.predict(texts), strict=True):
        first, *others = line["candidates"]
        assert (line["prediction"], line["p"]) == (first["class"], first["p"]) == (alone["prediction"], alone["p"])
        assert "candidates" not in alone
        assert all(first["p"] >= other["p"] for other in others)
        assert sum(each["p"] for each in line["candidates"]) == pytest.approx(1)
    assert len(run.predict(texts, n=2)[0]["candidates"]) == 2
    with pytest.raises(
        UsageError, match=r"beam=\.\.\. does not apply to the task 'classify'; predict takes n=\.\.\. there"
    ):
        run.predict(texts, beam=2)


def test_lines_of_predictions(run: Run) -> None:
    lines = [json.loads(line) for line in (run.path / "predictions.jsonl").read_text().splitlines()]
    assert lines
    for line in lines:
        assert set(line) >= {"input", "target", "prediction", "p", "right", "nats"}
        assert line["right"] is (line["prediction"] == line["target"])
        assert 0 < line["p"] <= 1
        assert line["nats"] >= 0
        said = run.predict([run.task.input_of(line)])[0]
        assert said["prediction"] == line["prediction"]
        assert said["p"] == pytest.approx(line["p"], rel=1e-4)


def test_nats_are_those_of_the_probabilities_that_are_told(run: Run) -> None:
    """One footing: predictions.jsonl, `predict` and the test figure are of the same calibrated probabilities."""
    assert run.task.temperature != 1.0
    lines = list(run.directory.read_lines("predictions.jsonl"))
    assert len(lines) == run.result["test"]["tokens"]
    for line in lines:
        assert line["nats"] == pytest.approx(-math.log(line["p_target"]), abs=1e-9)
        if line["right"]:
            assert line["p"] == pytest.approx(line["p_target"], rel=1e-9)
    assert run.result["test"]["nats"] == pytest.approx(sum(line["nats"] for line in lines) / len(lines), rel=1e-6)
    assert run.evaluate()["nats"] == pytest.approx(run.result["test"]["nats"], rel=1e-6)
    p = torch.tensor([[line["p"], 1 - line["p"]] for line in lines])
    bins = reliability(p, torch.tensor([0 if line["right"] else 1 for line in lines]))
    assert run.result["test"]["calibration_error"] == pytest.approx(expected_calibration_error(bins), abs=1e-6)


def test_a_baseline_is_as_sure_as_validation_data_lets_it_be(run: Run) -> None:
    """It is measured as if it were a run of its own, and leaves nothing behind."""
    own = unrolled.train(run.config.source, task="classify", model="naive-bayes", out=run.path.parent / "bayes",
                         settings={"tokens": "word", "split": "60/20/20", "threads": 1})  # fmt: skip
    assert own.task.temperature != 1.0
    assert run.result["baselines"]["naive Bayes"]["test"] == pytest.approx(own.result["test"])
    again = load(run.path, trained_on=run.trained_on)
    assert again.evaluate_baselines()["naive Bayes"] == pytest.approx(own.result["test"])
    assert again.task.temperature == run.task.temperature


def with_a_new_class() -> list[dict[str, Any]]:
    some = [row | {"part": ["train", "valid", "test"][i % 3]} for i, row in enumerate(rows(90, rare=4))]
    return [*some, {"id": "x", "text": "tick tick tick new", "label": "new", "part": "test"}]


def test_a_class_of_test_data_alone_has_no_output_and_is_wrong(tmp_path: Path) -> None:
    some = with_a_new_class()
    settings = QUICK | {"tokens": "word", "task.reading.part": "part", "task.label_smoothing": 0.1}
    run = unrolled.train(some, task="classify", model="dan", out=tmp_path / "run", settings=settings)
    assert run.task.answers.names == ["bad", "good"]
    assert run.task.ports().d_out == run.model.head.out_features == 2
    said = run.predict([row["text"] for row in some])
    assert {line["prediction"] for line in said} <= {"bad", "good"}
    wrong = [line["prediction"] != row["label"] for line, row in zip(said, some, strict=True)]
    figures = run.evaluate(some)
    assert figures["error"] == pytest.approx(sum(wrong) / len(some))
    assert figures["unseen_targets"] == 1
    test = [(row, each) for row, each in zip(some, said, strict=True) if row["part"] == "test"]
    told = run.result["test"]
    assert told["unseen_targets"] == 1
    true, guessed = [row["label"] for row, _ in test], [each["prediction"] for _, each in test]
    assert told["macro_f1"] == pytest.approx(f1_score(true, guessed, average="macro", zero_division=0))
    lines = list(run.directory.read_lines("predictions.jsonl"))
    [new] = [line for line in lines if line["target"] == "new"]
    assert (new["right"], new["nats"], new["p_target"]) == (False, None, None)
    known = [line["nats"] for line in lines if line["target"] != "new"]
    assert told["nats"] == pytest.approx(sum(known) / len(known), rel=1e-6)
    units = run.directory.read_tensors("units.safetensors")
    assert units["test.error"][:, 1].sum() == told["tokens"] == len(test)
    confusion = run.directory.read_json("figures/confusion.json")
    assert (confusion["rows"], confusion["columns"]) == (["bad", "good", "new"], ["bad", "good"])
    assert "<unseen>" not in "".join(path.read_text() for path in (tmp_path / "run").rglob("*.json*"))


def test_without_a_new_class_no_report_has_a_row_for_one(run: Run) -> None:
    assert run.directory.read_json("figures/confusion.json")["rows"] == ["bad", "good"]
    assert "unseen_targets" not in run.result["test"]


def test_sets_of_classes_have_the_nats_of_the_whole_set(tmp_path: Path) -> None:
    some = with_a_new_class()
    for i, row in enumerate(some):
        row["label"] = [row["label"], *(["odd"] if i % 2 else [])]
    settings = QUICK | {"tokens": "word", "task.reading.part": "part", "task.reading.class_separator": "|"}
    run = unrolled.train(some, task="classify", model="dan", out=tmp_path / "run", settings=settings)
    assert run.model.head.out_features == 3
    lines = list(run.directory.read_lines("predictions.jsonl"))
    for line in lines:
        p = [line["p"][name] if name in line["target"] else 1 - line["p"][name] for name in ("bad", "good", "odd")]
        assert line["nats"] == pytest.approx(-sum(map(math.log, p)), rel=1e-6)
        assert line["right"] is (line["prediction"] == line["target"])
    assert run.result["test"]["nats"] == pytest.approx(sum(line["nats"] for line in lines) / len(lines))
    assert run.result["test"]["unseen_targets"] == 1
    assert not next(line for line in lines if "new" in line["target"])["right"]
    (best,) = run.predict([some[0]["text"]], n=2)
    assert [(each["class"], each["p"]) for each in best["candidates"]] == sorted(
        best["p"].items(), key=lambda item: -item[1]
    )[:2]


# ---- labels come back as they were given


@pytest.mark.parametrize(("labels", "typed"), [
    ([0, 3], int), ([True, False], bool), ([0.0, 3.0], float), (["0", "3"], str), (["01", "1"], str), (["a", 3], str),
])  # fmt: skip
@pytest.mark.parametrize("form", ["list", "arrays", "polars", "jsonl"])
def test_labels_come_back_as_they_were_given(tmp_path: Path, labels: list[Any], typed: type, form: str) -> None:
    some = [{"text": row["text"], "label": labels[row["label"] == "bad"]} for row in rows(24)]
    data: Any = some
    if form == "polars" and len({type(label) for label in labels}) == 1:
        data = polars.DataFrame(some)
    if form == "arrays":
        data = ([row["text"] for row in some], [row["label"] for row in some])
    if form == "jsonl":
        data = tmp_path / "rows.jsonl"
        data.write_text("\n".join(map(json.dumps, some)), encoding="utf-8")
    task = make_task(configure("classify", "naive-bayes", "memory", {}))
    task.prepare(data)
    task.save_codec(tmp_path / "codec")
    again = make_task(configure("classify", "naive-bayes", "memory", {}))
    again.load_codec(tmp_path / "codec")
    for codec in (task.answers, again.answers):
        found = [codec.decode(number) for number in range(2)]
        assert set(found) == {str(label) if typed is str else label for label in labels}
        assert {type(each) for each in found} == {typed}


def test_integer_labels_are_predicted_as_integers(tmp_path: Path) -> None:
    some = [{"text": row["text"], "label": [0, 3][row["label"] == "bad"]} for row in rows(24)]
    run = unrolled.train(some, task="classify", model="naive-bayes", out=tmp_path / "run", settings={"threads": 1})
    for opened in (run, load(run.path)):
        assert {repr(line["prediction"]) for line in opened.predict([row["text"] for row in some])} == {"0", "3"}
    assert {type(line["target"]) for line in run.directory.read_lines("predictions.jsonl")} == {int}


@pytest.mark.parametrize(("labels", "shown"), [(["0", "-3"], [0, -3]), (["01", "3"], ["01", "3"])])
def test_labels_of_a_csv_file_are_integers_where_all_are(tmp_path: Path, labels: list[str], shown: list[Any]) -> None:
    """The cells of -o out.csv are as in the file; JSON lines have numbers."""
    some = [{"text": row["text"], "label": labels[row["label"] == "bad"]} for row in rows(24)]
    path = write(tmp_path / "rows.csv", some)
    run = unrolled.train(path, task="classify", model="naive-bayes", out=tmp_path / "run", settings={"threads": 1})
    printed = run_unrolled("predict", run.path, path).stdout.splitlines()
    assert {json.loads(line)["prediction"] for line in printed} == set(shown)
    run_unrolled("predict", run.path, path, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert {row["prediction"] for row in csv.DictReader(file)} == set(labels)
    assert run.evaluate([{"text": row["text"], "label": int(row["label"])} for row in some])["error"] < 1


def test_a_model_that_is_not_better_is_said_not_to_be(tmp_path: Path) -> None:
    """No step was taken that could help, so class frequencies are as good."""
    settings = QUICK | {"tokens": "word", "steps": 1, "lr": 1e-9}
    write(tmp_path / "rows.csv", rows(90))
    done = run_unrolled("train", tmp_path / "rows.csv", "--task", "classify", "--model", "dan", "-o", tmp_path / "run",
                        *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")))  # fmt: skip
    said = [line for line in done.stdout.splitlines() if "does not beat" in line]
    assert len(said) == 1
    assert "naive Bayes" in said[0]
    assert "logistic regression" in said[0]
    assert "does not beat" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert "does not beat" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_class_weights_help_a_rare_class(tmp_path: Path) -> None:
    """One in ten is rare, and in so few steps only weights make it worth saying."""
    recall = {}
    for weights in (0.0, 1.0):
        settings = QUICK | {
            "tokens": "word", "steps": 25, "model.d_hidden": 8, "split": "60/40", "lr": 0.005, "batch_size": 64,
            "task.class_weights": weights, "evaluate_every": 1000,
        }  # fmt: skip
        run = unrolled.train(rows(300, rare=10), task="classify", model="dan", out=tmp_path / str(weights),
                             settings=settings)  # fmt: skip
        some = [row for row in rows(300, rare=10) if row["label"] == "bad"]
        said = run.predict([row["text"] for row in some])
        recall[weights] = sum(line["prediction"] == "bad" for line in said) / len(some)
        figures = run.result["valid"]
        assert ("weighted_error" if weights else "error") == run.task.SCORE and run.task.SCORE in figures
        if weights:  # 60/40 by class: both parts have the shares that the weights come from
            assert figures["weighted_error"] == pytest.approx(1 - figures["mean_recall"], abs=0.02)
    assert recall[1.0] > recall[0.0]


def test_pictures_are_drawn(run: Run) -> None:
    run.task.prepare(run.config.source)
    pictures = run.task.pictures(run.model, "valid")
    assert {"confusion", "reliability", "classes"} <= set(pictures)
    for picture in pictures.values():
        assert "<" in (svg(picture) if is_drawn(picture) else html(picture))


# ---- the command line, and comparisons


def test_a_limit_of_held_out_data_is_told_in_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unrolled.comparison.budget.LEAST_HELD_OUT", 10)
    monkeypatch.setattr("unrolled.comparison.budget.HELD_OUT_RATE", 0)
    plan = make_plan(rows(120), "classify", {"models": "dan", "time": 60, "split": "60/20/20"})
    assert plan.notes == ["scores are computed on 10 examples of valid and test; held_out=... changes that"]
    task = make_task(configure("classify", "dan", "memory", plan.settings))
    task.prepare(rows(120))
    assert (task.size("valid"), task.size("test")) == (10, 10)
    assert task.size("train") > 60


def test_a_comparison_guesses_the_task(folder: Path) -> None:
    plan = make_plan(folder / "rows.csv", None, {"models": "dan,lstm", "steps": 5})
    assert plan.task == "classify"
    assert plan.guessed
    assert {"prior", "naive-bayes", "logistic"} <= {job.model for job in plan.jobs if job.kind == "baseline"}


def test_rows_keep_their_cells_and_order(run: Run, tmp_path: Path) -> None:
    found = [row | {"note": 'a "quoted", cell\nof two lines' if i % 50 == 0 else ""} for i, row in enumerate(rows(600))]
    path = write(tmp_path / "new.csv", [{"note": row["note"], "id": row["id"], "text": row["text"]} for row in found])
    run_unrolled("predict", run.path, path, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        answered = list(csv.DictReader(file))
    assert list(answered[0]) == ["note", "id", "text", "prediction", "p"]
    assert [row["id"] for row in answered] == [row["id"] for row in found]
    assert [row["note"] for row in answered] == [row["note"] for row in found]
    said = run.predict([row["text"] for row in found])
    assert [row["prediction"] for row in answered] == [line["prediction"] for line in said]
    assert [float(row["p"]) for row in answered] == pytest.approx([line["p"] for line in said], rel=1e-5)
    printed = run_unrolled("predict", run.path, "-", stdin="tick bad state\nstate fine tick\n").stdout.splitlines()
    assert [json.loads(line)["prediction"] for line in printed] == [
        line["prediction"] for line in run.predict(["tick bad state", "state fine tick"])
    ]


@pytest.mark.parametrize(("words", "code", "says"), [
    (["rows.csv", "-o", "out.xls"], 2, ".csv, .tsv or .jsonl"),
    (["rows.csv", "-o", "rows.csv"], 2, "this is the input file"),
    (["rows.csv", "-o", "nowhere/out.csv"], 2, "no folder"),
    (["lines.txt", "-o", "out.csv"], 2, "not a table"),
    (["taken.csv", "-o", "out.csv"], 2, "already a column 'prediction'"),
    (["other.csv"], 3, "did you mean 'texts'"),
    (["empty.csv", "-o", "out.csv"], 3, "line 3"),
    (["-"], 3, "line 301"),
])  # fmt: skip
def test_bad_rows_get_one_sentence(run: Run, folder: Path, words: list[str], code: int, says: str) -> None:
    (folder / "lines.txt").write_text("tick bad state\n")
    (folder / "taken.csv").write_text("text,prediction\ntick bad state,x\n")
    (folder / "other.csv").write_text("id,texts\n1,tick\n")
    (folder / "empty.csv").write_text("id,text\n1,tick\n2,\n")
    lines = "tick bad state\n" * 300 + "\n"
    done = run_unrolled("predict", run.path, *words, code=code, cwd=folder, stdin=lines if words == ["-"] else None)
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "out.csv").exists()
    assert not list(folder.glob("*.part"))
