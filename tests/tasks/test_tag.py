"""The tag task on a made-up language: figures by hand, words that were never seen, spans, saved runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.models.tag_counts import Config as CountsConfig
from unrolled.models.tag_counts import TagCounts
from unrolled.objectives.spans import spans
from unrolled.runs.guess import guess_task
from unrolled.runs.run import Run

QUICK = {"steps": 80, "d_state": 16, "d_embedding": 8, "batch_size": 16, "lr": 0.02, "warmup": 2, "threads": 1,
         "split": "60/20/20"}  # fmt: skip


def sentence(random: np.random.Generator) -> list[tuple[str, str]]:
    """Names are in pairs and end with -o; `ra` is a verb before a name and a noun elsewhere."""
    words: list[tuple[str, str]] = []
    for _ in range(random.integers(2, 5)):
        stem = "".join(random.choice(list("bdgklmn"), 3))
        if random.random() < 0.5:
            words += [("ra", "O"), (stem + "o", "B-PER"), (stem[::-1] + "o", "I-PER")]
        else:
            words += [(f"{stem}a", "O"), ("ra", "B-THING")]
    return words


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("words") / "words.conll"
    text = ["\n".join(f"{word} x {tag}" for word, tag in sentence(random)) for _ in range(150)]
    path.write_text("\n\n".join(text) + "\n")
    return path


@pytest.fixture(scope="module")
def run(file: Path) -> Run:
    return unrolled.train(file, task="tag", model="bigru", out=file.parent / "run", settings=QUICK)


@pytest.fixture(scope="module")
def counted(file: Path) -> Run:
    return unrolled.train(
        file, task="tag", model="tag-counts", out=file.parent / "counted", settings={"split": "60/20/20"}
    )


def test_figures_by_hand(counted: Run) -> None:
    """Of a model that makes mistakes, on known words and on others."""
    run = counted
    lines = list(run.directory.read_lines("predictions.jsonl"))
    figures = run.evaluate(split="test")
    words, truth, said = ([each for line in lines for each in line[key]] for key in ("input", "target", "prediction"))
    wrong = [a != b for a, b in zip(truth, said, strict=True)]
    assert figures["tokens"] == len(truth)
    assert 0.1 < figures["error"] < 0.9
    assert figures["error"] == pytest.approx(np.mean(wrong))
    assert figures["accuracy"] == pytest.approx(1 - np.mean(wrong))
    unseen = [w for w, word in zip(wrong, words, strict=True) if word == "<unknown>"]
    assert len(unseen) > 10 and np.mean(unseen) != np.mean(wrong)
    assert figures["unseen_accuracy"] == pytest.approx(1 - np.mean(unseen))
    real = {(i, span) for i, line in enumerate(lines) for span in spans(line["target"])}
    found = {(i, span) for i, line in enumerate(lines) for span in spans(line["prediction"])}
    assert figures["span_f1"] == pytest.approx(2 * len(real & found) / (len(real) + len(found)))
    assert run.result["test"] == pytest.approx(figures, rel=1e-6)
    units = run.directory.read_tensors("units.safetensors")
    assert units["test.error"][:, 1].tolist() == [len(line["input"]) for line in lines]
    sums = [sum(a != b for a, b in zip(line["target"], line["prediction"])) for line in lines]
    assert units["test.error"][:, 0].tolist() == sums


def test_it_learns_from_letters_and_neighbours(run: Run, counted: Run) -> None:
    baseline = run.result["baselines"]["most frequent tag of each word"]["test"]
    assert baseline == pytest.approx(counted.result["test"])
    assert baseline["error"] > 0.1
    assert run.result["test"]["error"] < 0.5 * baseline["error"]
    assert run.result["test"]["unseen_accuracy"] > 0.8


def test_the_baseline_counts() -> None:
    """Word 4: tags 0, 0, 1; words 5 and 6 once each with tag 1; word 7 never."""
    model = TagCounts(CountsConfig(), 8, 2)
    x, y = torch.tensor([[4, 4, 4], [5, 6, 0]]), torch.tensor([[0, 0, 1], [1, 1, -1]])
    mask = y >= 0
    model.solve([(x, mask, y)])
    said = model(torch.tensor([[4, 5, 7]]), torch.ones(1, 3, dtype=torch.bool))[0].exp()
    q = np.array([1, 3]) / 4
    wanted = [(np.array([2, 1]) + q / 2) / 3.5, (np.array([0, 1]) + q / 2) / 1.5, q]
    np.testing.assert_allclose(said[0].numpy(), wanted, rtol=1e-5)
    spelt = torch.stack([x, x, x], dim=-1)
    assert torch.equal(model(spelt, mask)[0], model(x, mask)[0])


def test_a_saved_run_is_the_same_run(run: Run, file: Path) -> None:
    again = unrolled.load(run.path, trained_on=file)
    assert again.evaluate(split="test") == pytest.approx(run.result["test"], rel=1e-6)
    assert again.evaluate(file)["tokens"] == len([line for line in file.read_text().splitlines() if line])
    said = again.predict(["ra bdgo gdbo", ["ra"]])
    assert said[0]["words"] == ["ra", "bdgo", "gdbo"]
    assert said[0]["prediction"] == ["O", "B-PER", "I-PER"]
    assert len(said[1]["p"]) == 1 and 0 < said[1]["p"][0] <= 1
    assert said[0] == run.predict([["ra", "bdgo", "gdbo"]])[0]
    with pytest.raises(DataError, match="example 2: the text has no words"):
        again.predict(["ra", " "])


def test_words_that_were_never_seen_have_no_vector_of_their_own(run: Run) -> None:
    table = run.model.embedding.words.weight
    assert not table[1].any() and table[2:].any(dim=1).all()


def test_pictures(run: Run) -> None:
    confusion = np.array(run.directory.read_json("figures/confusion.json")["values"])
    assert confusion.sum() == run.result["test"]["tokens"]
    assert 1 - confusion.trace() / confusion.sum() == pytest.approx(run.result["test"]["error"])
    assert run.directory.read_json("figures/classes.json")["title"] == "Per tag"


def test_a_tag_that_training_never_shows_counts_as_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.conll").write_text("ra x O\nbdgo x B-NEW\n")
    figures = run.evaluate(tmp_path / "other.conll")
    assert (figures["error"], figures["unseen_targets"]) == (0.5, 1)
    assert figures["span_f1"] == 0  # B-NEW is a span that was missed


def test_tags_have_an_output_where_training_shows_them_and_nats_are_of_the_p_beside_them(run: Run) -> None:
    names = ["B-PER", "B-THING", "I-PER", "O"]
    assert run.task.answers.names == run.directory.read_json("figures/confusion.json")["columns"] == names
    assert run.model.head.out_features == 4
    right = [line for line in run.directory.read_lines("predictions.jsonl") if line["prediction"] == line["target"]]
    assert right
    for line in right:
        assert line["nats"] == pytest.approx(-np.log(line["p"]).mean(), abs=1e-5)


def test_a_plain_text_is_cut_into_words(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("ra bdgo gdbo\nra\n", encoding="utf-8")
    [some] = run.task.read(str(tmp_path / "plain.txt"))
    assert [example.value for example in some] == [["ra", "bdgo", "gdbo"], ["ra"]]


def test_on_the_command_line(run: Run) -> None:
    done = run_unrolled("predict", run.path, "-", stdin="ra bdgo gdbo\n")
    assert '"prediction": ["O", "B-PER", "I-PER"]' in done.stdout
    with pytest.raises(UsageError, match="reads a whole series"):
        run.session()


@pytest.mark.parametrize(("model", "words"), [
    ("dan", "it predicts once for a whole sequence"),
    ("identity", "it reads numbers, but the input of the task is tokens"),
    ("bow", "it predicts once for a whole sequence"),
    ("ngram", "it predicts what comes next"),
])  # fmt: skip
def test_a_model_that_answers_otherwise_is_refused(file: Path, tmp_path: Path, model: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        unrolled.train(file, task="tag", model=model, out=tmp_path / "run")


def test_tags_are_guessed(file: Path) -> None:
    assert guess_task(file, {})[0] == "tag"
