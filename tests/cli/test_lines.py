"""`unrolled predict` of a run that writes: lines in, lines out, in order."""

from __future__ import annotations

import io
import json
import time

import pytest

from tests.commands import run_unrolled
from unrolled.cli.asked import Moving, Still, bar_for, size_of
from unrolled.data.files.file_form import FileForm, current_form, files_as
from unrolled.data.files.live_chunks import live_chunks


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    rows = [f"{a}{b}\t{b}{a}" for a in "abcdefghij" for b in "abcdefghij"]
    (folder / "train.xx").write_text("".join(row.split("\t")[0] + "\n" for row in rows))
    (folder / "train.yy").write_text("".join(row.split("\t")[1] + "\n" for row in rows))
    run_unrolled(
        "train", folder / "train.xx", "--target-file", folder / "train.yy", "--task", "translate", "--model", "seq2seq",
        "--steps", 4, "--set", "d_state=8", "-o", folder / "run",
    )  # fmt: skip
    return folder


def test_lines_come_out_in_order_and_empty_ones_stay(run):
    done = run_unrolled("predict", run / "run", "-", stdin="ab\n\ncd\n  \nef\n")
    lines = done.stdout.split("\n")
    assert len(lines) == 6 and lines[-1] == ""
    assert lines[1] == lines[3] == ""
    told = run_unrolled("predict", run / "run", "-", "--json", "--beam", 3, "-n", 2, stdin="ab\n\n").stdout
    first, second = map(json.loads, told.splitlines())
    assert first["source"] == "ab" and len(first["candidates"]) == 2
    assert second["prediction"] == ""


def test_other_files(run):
    (run / "some.tsv").write_text("ab\tba\ncd\tdc\n")
    (run / "test.xx").write_text("ab\ncd\n")
    (run / "test.yy").write_text("ba\ndc\n")
    own = ("--trained-on", run / "train.xx", "--target-file", run / "train.yy")
    figures = json.loads(run_unrolled("evaluate", run / "run", run / "test.xx", *own, "--json").stdout)
    assert figures["tokens"] == 6
    assert set(figures["baselines"]) == {"copy", "word by word"}
    out = run / "out.csv"
    (run / "some.csv").write_text("xx,note\nab,1\ncd,2\n")
    run_unrolled("predict", run / "run", run / "some.csv", "-o", out)
    assert out.read_text().splitlines()[0] == "xx,note,prediction,logp,finished"
    done = run_unrolled("predict", run / "run", "-", "--condition", "x", stdin="ab\n", code=2)
    assert "--condition does not apply to the task 'translate'" in done.stderr


def test_a_bar_where_somebody_watches(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    shown = Terminal()
    with bar_for(str(file), shown) as bar:
        assert isinstance(bar, Moving)
        bar.advance("one")
        bar.advance("two")
    assert bar.bar.tasks[0].percentage == 100
    assert "2 lines" in shown.getvalue()
    assert size_of(str(file)) == 8
    assert size_of(str(tmp_path / "lines.txt.gz")) is None
    with bar_for(str(file), io.StringIO()) as bar:
        assert isinstance(bar, Still)


def test_what_comes_slowly_is_answered_at_once():
    def slowly():
        yield from (1, 2)
        time.sleep(0.3)
        yield 3

    assert [1, 2] in list(live_chunks(slowly(), 10))
    assert list(live_chunks(iter(range(5)), 2)) == [[0, 1], [2, 3], [4]]

    def fails():
        yield 1
        raise ValueError("broken")

    found = live_chunks(fails(), 10)
    assert next(found) == [1]
    with pytest.raises(ValueError, match="broken"):
        next(found)


def test_answers_stand_beside_rows_with_and_without_names(run):
    pairs = "".join(f"{a}{b}\t{b}{a}\n" for a in "abcde" for b in "abcde")
    (run / "pairs.tsv").write_text(pairs)
    (run / "named.csv").write_text("source,target\n" + pairs.replace("\t", ","))
    run_unrolled("train", run / "pairs.tsv", "--task", "translate", "--model", "seq2seq", "--steps", 1, "--set",
                 "d_state=4", "-o", run / "numbered")  # fmt: skip
    for name in ("pairs.tsv", "named.csv"):
        run_unrolled("predict", run / "numbered", run / name, "-o", run / "out.csv")
        lines = (run / "out.csv").read_text().splitlines()
        if name == "named.csv":
            assert lines.pop(0) == "source,target,prediction,logp,finished"
        assert [line.split(",")[:2] for line in lines] == [row.split("\t") for row in pairs.splitlines()]


def test_lines_are_read_as_the_files_of_a_command_are() -> None:
    """The thread that waits for lines knows the encoding that was given, and tells what was found out."""
    told: dict[str, None] = {}
    with files_as(FileForm(encoding="cp1251", told=told)):
        found = next(live_chunks((current_form() for _ in range(1)), 1))
    assert found[0].encoding == "cp1251" and found[0].told is told
