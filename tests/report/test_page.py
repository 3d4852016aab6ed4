"""The page: strict HTML, all of it, nothing of the data as markup, no address; one sentence for what is broken."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import html5lib
import pytest

from unrolled.core.errors import DataError, UsageError
from unrolled.report.page import write_report
from unrolled.report.read import RunFacts
from unrolled.report.settings import changed, readings
from unrolled.runs.storage.directory import RunDirectory


def parsed(page: Path) -> Any:
    """The document; a page that breaks a rule of HTML is an error."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page.read_text(encoding="utf-8"))


SVG = "{http://www.w3.org/2000/svg}"


def words(element: Any) -> str:
    """What is to be read of an element."""
    element = element.find("body") if element.find("body") is not None else element
    return re.sub(r"\s+", " ", "".join(element.itertext()))


def check_page(page: Path) -> Any:
    """What holds for every page."""
    text, document = page.read_text(encoding="utf-8"), parsed(page)
    assert not list(document.iter("script"))
    for each in document.iter():
        for name, value in each.attrib.items():
            assert not str(name).endswith(("src", "href", "action")) or value.startswith(("#", "data:")), value
            assert not str(name).startswith("on")
    assert not re.search(r"url\((?!#|\"?data:)|@import", text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    identifiers = re.findall(r'\sid="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(identifiers)
    levels = [
        int(each.tag[1]) for each in document.iter() if isinstance(each.tag, str) and re.fullmatch("h[1-6]", each.tag)
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))
    for drawing in document.iter(f"{SVG}svg"):
        assert words(drawing.find(f"{SVG}title"))
        assert words(drawing.find(f"{SVG}desc"))
    for table in document.iter("table"):
        widths = {sum(int(cell.get("colspan", 1)) for cell in row) for row in table.iter("tr")}
        assert len(widths) == 1
    return document


def scores(document: Any) -> dict[str, str]:
    """Each row of the score table in words, by the first word of its name."""
    table = next(each for each in document.iter("table") if "scores" in each.get("class", ""))
    return {words(row.find("th")).split()[0]: words(row) for row in table.find("tbody")}


def test_a_comparison_with_everything(six: Callable[[], Path]) -> None:
    folder = six()
    page = write_report([folder])
    assert page == folder / "report.html"
    document = check_page(page)
    rows = scores(document)
    assert list(rows)[:2] == ["tcn", "gru"]
    assert list(rows)[-1] == "jordan"
    assert "winner" in rows["tcn"]
    assert sum("winner" in row for row in rows.values()) == 1
    assert "does not beat 6-gram" in rows["memoryless"]
    assert "loses" not in rows["gru"]
    assert "baseline" in rows["6-gram"]
    assert "the loss became NaN at step <12>" in rows["jordan"]
    assert "0.9700 to 1.0300" in rows["tcn"]
    said = words(document)
    for expected in ("tcn wins by 0.2 nats.", "Quality against training time", "Quality against parameters",
                     "Learning curves over steps", "Learning curves over time", "Where the models disagree",
                     "unrolled compare poems.txt --budget 5m", "a <b>bold</b> text", "<em>one</em>", "<b>note</b>",
                     "model.d_state", "budget.steps", "5 min", "it is text"):  # fmt: skip
        assert expected in said, expected
    front = next(
        words(each) for each in document.iter(f"{SVG}desc") if "Pareto" in words(each) and "parameters" in words(each)
    )
    assert front.endswith("not dominated in both quality and cost: tcn.")
    assert page.stat().st_size < 2_000_000


def test_the_page_of_six_runs_is_quick_and_needs_no_torch(six: Callable[[], Path]) -> None:
    code = (
        "import sys, time; from unrolled.report.page import write_report;"
        "start = time.process_time(); write_report([sys.argv[1]]);"
        "print(time.process_time() - start, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(six())], capture_output=True, text=True, check=True)
    seconds, has_torch = done.stdout.split()
    assert has_torch == "False"
    assert float(seconds) < 10


def test_one_run(make: Any) -> None:
    run = make.run(nats=1.7)
    started = time.process_time()
    page = write_report([run])
    assert time.process_time() - started < 5
    document = check_page(page)
    assert "lstm reaches 1.7000 nats on the test data; it does not beat 6-gram, after 6.1 s of training." in words(
        document
    )
    assert f"unrolled train poems.txt --recipe {run / 'recipe.toml'} -o NEW" in words(document)
    assert "winner" not in words(document)
    assert "Where the models disagree" not in words(document)
    RunDirectory.open(run).verify()  # the page is sealed with the rest
    assert RunDirectory.open(run).has("report.html")
    write_report([run])
    RunDirectory.open(run).seal()


def test_several_runs_share_a_table_when_they_share_data(make: Any, tmp_path: Path) -> None:
    places = [make.run("a", "lstm", 1.5), make.run("b", "lstm", 1.4), make.run("c", "gru", 1.3, source="other.txt")]
    document = check_page(write_report(places, tmp_path / "deep" / "page.html"))
    tables = [each for each in document.iter("table") if "scores" in each.get("class", "")]
    assert [words(row.find("th")).split()[0] for row in tables[0].find("tbody")] == ["b", "a", "6-gram", "unigram"]
    assert len(tables) == 2
    assert "single runs have no intervals" in words(document)
    assert "beats every baseline" in words(document)


def test_names_and_texts_from_outside_stay_text(make: Any, tmp_path: Path) -> None:
    bad = "<script>alert('x')</script>"
    folder = "<img src=x onerror=alert(1)>"
    run = make.run(folder, bad, source=f'{bad}"&\x00\u2028\ud800'.replace("\x00", "\x01"))
    text = check_page(write_report([run], tmp_path / "page.html"))
    assert not list(text.iter("img"))
    assert bad in words(text)
    assert folder in words(text)


def test_examples_where_models_disagree(make: Any, tmp_path: Path) -> None:
    # gru is worse by one everywhere, which tells nothing; on the fourth they differ
    places = [
        make.run("a", "lstm", 1.5, losses=[1.0, 1.0, 1.0, 3.0, 1.0]),
        make.run("b", "gru", 1.6, losses=[2.0, 2.0, 2.0, 2.0, 2.0]),
    ]
    document = check_page(write_report(places, tmp_path / "page.html"))
    examples = next(each for each in document.iter("ol") if each.get("class") == "examples")
    first = words(examples[0])
    assert "over & out" in first
    assert first.index("gru") < first.index("lstm")
    assert "3.000" in first


def test_other_examples_are_not_compared(make: Any, tmp_path: Path) -> None:
    places = [make.run("a", "lstm", 1.5), make.run("b", "gru", 1.6)]
    run = RunDirectory.open(places[1])
    run.write_lines("predictions.jsonl", [{"text": "something else", "nats_per_token": 1.0}])
    assert "Where the models disagree" not in words(check_page(write_report(places, tmp_path / "page.html")))


def test_predictions_without_a_loss(make: Any, tmp_path: Path) -> None:
    places = []
    for name, answers in (("a", "xyz"), ("b", "xqz")):
        places.append(make.run(name, name, 1.5))
        lines = [{"text": f"input {i}", "prediction": answer, "target": "y"} for i, answer in enumerate(answers)]
        RunDirectory.open(places[-1]).write_lines("predictions.jsonl", lines)
    document = check_page(write_report(places, tmp_path / "page.html"))
    examples = next(each for each in document.iter("ol") if each.get("class") == "examples")
    assert len(examples) == 1
    assert "input 1" in words(examples)
    assert "target: y" in words(examples)


def test_line_ends_of_unicode_inside_a_text(make: Any) -> None:
    run = RunDirectory.open(make.run())
    run.write_lines("predictions.jsonl", [{"text": "a\u2028b\x85c", "nats_per_token": 1.0}, {"text": "d"}])
    assert [line["text"] for line in run.read_lines("predictions.jsonl")] == ["a\u2028b\x85c", "d"]
    run.write_lines("predictions.jsonl", [])
    assert run.read_lines("predictions.jsonl") == []


def test_curves_over_the_size_of_the_data(make: Any) -> None:
    rows = [make.row(f"{model} {share:.0%}", score + 0.1 / share, model=model, fraction=share)
            for model, score in (("lstm", 1.0), ("gru", 1.1)) for share in (1.0, 0.1)]  # fmt: skip
    document = check_page(write_report([make.comparison("sizes", rows)]))
    said = next(words(each) for each in document.iter(f"{SVG}desc") if "share of the training data" in words(each))
    assert "lstm" in said
    assert "gru" in said


def test_a_comparison_under_way_says_what_waits(make: Any) -> None:
    rows = [make.row("lstm", 1.2), make.row("gru", None, failed="not run yet")]
    folder = make.comparison("under-way", rows, finished=False, notes=["one thread for each"])
    document = check_page(write_report([folder]))
    assert "failed" not in words(document)
    assert "winner" not in words(document)
    assert "no score yet" in scores(document)["gru"]
    assert "one thread for each" in words(document)


def test_broken_and_unfinished_runs_of_a_comparison_do_not_hide_the_others(make: Any) -> None:
    folder = make.comparison("cut", [make.row("lstm", 1.2, runs=["lstm-0"]), make.row("gru", None, runs=["gru-0"]),
                                     make.row("tcn", 1.3, runs=["tcn-0"])], finished=False)  # fmt: skip
    inner = type(make)(folder)
    inner.run("lstm-0", "lstm", 1.2)
    inner.run("gru-0", "gru", 1.2, finished=False)
    inner.run("elman-0", "elman", 1.2, finished=False)
    broken = inner.run("broken-0", "broken", 1.2)
    (broken / "config.json").write_text("{}")
    half = inner.run("half-0", "half", 1.2, pictures={"odd.json": {"kind": "unheard of"}})
    (half / "predictions.jsonl").write_text("{")
    document = check_page(write_report([folder]))
    said, rows = words(document), scores(document)
    assert "not finished: 2 models have a score so far" in said
    assert "unfinished" in rows["gru"]
    assert "unfinished, 60 steps so far" in rows["elman-0"]
    assert re.search(r"broken-0 is left out: .*config.json is damaged", said)
    assert "tcn are no longer available: tcn-0" in said
    assert re.search(r"half-0: .*predictions.jsonl is damaged", said)
    assert "1.2000" in rows["lstm"]


def test_pictures_that_nobody_knows_and_too_many_pictures(make: Any) -> None:
    large = {"kind": "texts", "title": "t", "captions": [], "texts": ["x" * 900_000]}
    run = make.run(pictures={"a.json": large, "b.json": large, "c.json": {"kind": "unheard of"}, "d.txt": "no picture"})
    page = write_report([run])
    said = words(check_page(page))
    assert "1 more picture is in figures/" in said
    assert "c.json is not a picture that this version can show" in said
    assert page.stat().st_size < 2_000_000


@pytest.mark.parametrize(("rows", "says"), [
    ("no list", "not the table of a comparison"),
    ([{"kind": "model"}], "has no label"),
])  # fmt: skip
def test_a_broken_table_is_one_sentence(make: Any, rows: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        write_report([make.comparison("broken", rows)])


def test_what_cannot_be_reported_is_one_sentence(make: Any, tmp_path: Path) -> None:
    unfinished = make.run("unfinished", finished=False)
    damaged = make.run("damaged")
    (damaged / "result.json").write_text("{}")
    (tmp_path / "folder").mkdir()
    later = make.comparison("later", [], format=99)
    for path, says in ((unfinished, "is not finished.*unrolled.train.*resume="), (damaged, "result.json is damaged"),
                       (tmp_path / "folder", "neither a run directory nor a comparison"), (later, "later release"),
                       (tmp_path / "nowhere", "does not exist")):  # fmt: skip
        with pytest.raises(DataError, match=says) as caught:
            write_report([path])
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="at least one"):
        write_report([])
    with pytest.raises(UsageError, match="is a directory"):
        write_report([make.run("fine")], tmp_path)


def test_an_empty_comparison_is_a_page(make: Any) -> None:
    check_page(write_report([make.comparison("empty", [], finished=False, facts={}, versions={})]))


@pytest.mark.parametrize("kind", readings())
def test_settings_of_reading_are_shown_where_they_are_not_at_their_default(kind: Any) -> None:
    own = kind().model_dump(mode="json")
    first = next(key for key, value in own.items() if not isinstance(value, dict))
    facts = RunFacts(Path("run"), config={"task_settings": {"reading": own, "loss": "l2"}})
    assert changed(facts) == {"task.loss": "l2"}
    own[first] = "other"
    assert changed(facts) == {"task.loss": "l2", f"task.reading.{first}": "other"}


def test_the_selected_model_is_marked_and_says_on_how_much(make: Any) -> None:
    rows = [make.row("gru", 1.2, valid=1.0), make.row("tcn", 1.1, valid=1.3)]
    rows += [make.row("slow", None, valid=None, not_trained="not trained: needs about 4 min, a --budget of 20 min")]
    folder = make.comparison("cmp", rows, selected="gru", seeds=[0], units=40, unit="examples")
    text = write_report([folder]).read_text(encoding="utf-8")
    found = scores(check_page(folder / "report.html"))
    assert list(found)[:2] == ["gru", "tcn"] and "selected" in found["gru"] and "selected" not in found["tcn"]
    assert "not trained: needs about 4 min, a --budget of 20 min" in found["slow"]
    assert (
        "(40 examples, 1 seed)" in text and "intervals are over examples alone, because only one seed was used" in text
    )


def test_a_table_that_is_wider_than_a_phone_says_how_many_columns_it_has(six: Callable[[], Path]) -> None:
    text = write_report([six()]).read_text(encoding="utf-8")
    head = re.search(r'<table class="scores numbers">\s*<thead>(.*?)</thead>', text, re.S)
    assert head is not None
    assert f"{head[1].count('<th ')} columns: scroll sideways to see all of them." in text
    assert "@media screen and (max-width: 75rem) { .sideways { display: block; } }" in text
    assert ('<p class="note sideways wide">' in text) == (head[1].count("<th ") > 11)  # such a one is cut on any screen
    titles = re.findall(r"<th [^>]*>([^<]*)</th>", head[1])
    assert titles.index("perplexity") < titles.index("parameters")  # metrics stand before costs
