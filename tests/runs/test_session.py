"""Sessions: rows one by one give what the whole series gives; a saved session goes on with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from tests.commands import run_unrolled
from tests.small import DATA, LINES, QUICK, ROLLS, SERIES
from unrolled.core.errors import DataError, UsageError
from unrolled.core.spec import Sizes
from unrolled.engine import stepper
from unrolled.engine.program import Stream
from unrolled.kernels import native
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.readouts.first_last import FirstLast
from unrolled.layers.readouts.last import Last
from unrolled.layers.readouts.mean import Mean, RunningMean
from unrolled.models.gru import MODEL as GRU
from unrolled.runs.run import Run
from unrolled.testing import check_causal

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "stream": ("a stream", "gru", {}),
    "texts": ("texts", "transformer", {"window": 0}),
    "of a class": ("texts of a class", "tcn", {}),
    "frames": ("rolls", "tcn", {}),
    "tags": ("tags", "lstm", {}),
    "noise": ("noise", "tcn", {}),
    "late": ("noise", "gru", {"delay": 3}),
    "classes": ("classes of series", "gru", {}),
    "last": ("classes of series", "gru", {"readout": "last"}),
    "words": ("classes of texts", "gru", {}),
    "numbers": ("numbers", "elman", {}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    folder, made = tmp_path_factory.mktemp("sessions"), {}

    def run(name: str) -> Run:
        if name not in made:
            data, model, own = CASES[name]
            task, source, settings = DATA[data]
            both = QUICK | settings | own | {"steps": 2}
            made[name] = unrolled.train(source, task=task, model=model, out=folder / name, settings=both)
        return made[name]

    return run


def rows_of(name: str) -> list[Any]:
    if name in ("stream", "texts", "of a class"):
        return list("state tick")
    if name in ("tags", "words"):
        return ["tick", "state", "nowhere", "gate"]
    return list(ROLLS[1]) if name == "frames" else list(SERIES[3])


def pushed(run: Run, rows: list[Any], **how: Any) -> list[dict[str, Any]]:
    session = run.session(**how)
    return [each for row in rows for each in session.push(row)] + session.end()


@pytest.mark.skipif(not native.built(), reason="no native library was built")
@pytest.mark.parametrize("name", ["stream", "texts", "of a class", "frames", "noise", "last"])
def test_ticks_are_native_and_tell_what_torch_tells(
    name: str, runs: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rows, streams = runs(name), rows_of(name), []
    started = {"condition": "s"} if name == "of a class" else {}
    monkeypatch.setattr(stepper, "Stream", lambda *given: streams.append(Stream(*given)) or streams[-1])
    told = []
    for level in ("off", [level for level in native.built() if level in native.allowed()[0]][-1]):
        with native.using(level):
            assert not streams
            told.append(pushed(run, rows, **started))
    assert len(streams) >= len(rows) - 1, "the first tick makes the state"
    assert [flat(each) for each in told[1]] == [pytest.approx(flat(each), rel=1e-4, abs=1e-5) for each in told[0]]


def flat(result: dict[str, Any]) -> list[float]:
    """All numbers of a result."""
    parts = [value for value in result.values() if not isinstance(value, str)]
    return [
        float(each) for part in parts for each in np.atleast_1d(list(part.values()) if isinstance(part, dict) else part)
    ]


@pytest.mark.parametrize("name", ["stream", "texts", "of a class", "frames"])
def test_what_comes_is_as_probable_as_in_the_whole(name: str, runs: Callable[[str], Run]) -> None:
    run, rows = runs(name), rows_of(name)
    started = {"condition": "s"} if name == "of a class" else {}
    found = pushed(run, rows, **started)
    whole = run.score([np.array(rows) if name == "frames" else "".join(rows)], **started)[0]
    assert len(found) == whole["tokens"]
    assert sum(each["logp"] for each in found) == pytest.approx(whole["logp"], rel=1e-5)
    if name != "frames":
        stop = [] if name == "stream" else ["<stop>"]
        names = [run.task.codec.name(int(token)) for token in run.task.codec.encode("".join(rows))]
        assert [each["token"] for each in found] == [*names, *stop]
        assert pushed(run, ["".join(rows)], **started) == found  # a piece may be several tokens


@pytest.mark.parametrize("name", ["tags", "noise", "late"])
def test_each_row_is_predicted_for_as_in_the_whole(name: str, runs: Callable[[str], Run]) -> None:
    run, rows = runs(name), rows_of(name)
    found = pushed(run, rows)
    whole = run.predict([rows if name == "tags" else np.array(rows)])[0]
    if name == "tags":
        assert [each["prediction"] for each in found] == whole["prediction"]
        assert [each["p"] for each in found] == pytest.approx(whole["p"], abs=2e-6)
    else:
        assert np.allclose([each["prediction"] for each in found], whole["prediction"], atol=2e-5)
    assert pushed(run, rows[:2]) != [] and len(pushed(run, rows[:2])) == 2


@pytest.mark.parametrize("name", ["classes", "last", "words", "numbers"])
def test_a_prediction_for_the_whole_is_one_for_all_so_far(name: str, runs: Callable[[str], Run]) -> None:
    run, rows = runs(name), rows_of(name)
    found = pushed(run, rows)
    for n, each in enumerate(found, start=1):
        whole = run.predict([" ".join(rows[:n]) if name == "words" else np.array(rows[:n])])[0]
        if name == "numbers":
            assert each["prediction"] == pytest.approx(whole["prediction"], rel=1e-4)
        else:
            assert each["prediction"] == whole["prediction"]
            assert each["p"] == pytest.approx(whole["p"], rel=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_session_goes_on_with_the_same_bits(name: str, runs: Callable[[str], Run]) -> None:
    run, rows = runs(name), rows_of(name)
    how = {"condition": "s"} if name == "of a class" else {}
    whole, session, other = pushed(run, rows, **how), run.session(**how), run.session(**how)
    for cut in range(len(rows) + 1):
        before = [each for row in rows[:cut] for each in session.push(row)]
        saved = session.save()
        other.push(rows[-1])  # of another stream, which is forgotten
        other.restore(saved)
        after = [each for row in rows[cut:] for each in other.push(row)] + other.end()
        assert before + after == whole
        rest = [each for row in rows[cut:] for each in session.push(row)] + session.end()
        assert before + rest == whole  # to save leaves no trace


def test_what_is_written_from_here_goes_on_from_the_stream(runs: Callable[[str], Run]) -> None:
    run = runs("stream")
    session = run.session()
    assert session.flow.first is not None
    begun = run.task.codec.decode([int(session.flow.first)]) + "state "
    first = session.push("state ")
    for how in ({"temperature": 0}, {"beam": 3, "n": 2}):
        wanted = run.generate(begun, max_tokens=6, **how)
        found = session.ahead("generate", max_tokens=6, **how)
        assert [each["text"] for each in found] == [each["text"] for each in wanted]
        assert [each["logp"] for each in found] == pytest.approx([each["logp"] for each in wanted], rel=1e-4)
        assert session.ahead("generate", max_tokens=6, **how) == found
    text = session.ahead(max_tokens=5, temperature=0)[0]
    assert [*first, *session.push("tick")] == pushed(run, ["state ", "tick"])
    scored = run.score(["state " + text["text"]])[0]["logp"] - run.score(["state "])[0]["logp"]
    assert text["logp"] == pytest.approx(scored, rel=1e-4)
    rolls = runs("frames").session()
    rolls.push(ROLLS[0][0])
    made = rolls.ahead("generate", max_tokens=3, n=2)
    assert [each["roll"].shape for each in made] == [(3, 6), (3, 6)]
    with pytest.raises(UsageError, match="'score' cannot continue a stream"):
        session.ahead("score")
    with pytest.raises(UsageError, match="cannot do 'generate', because models of the task 'tag'"):
        runs("tags").session().ahead("generate")


def test_what_cannot_run_live_says_why(runs: Callable[[str], Run], tmp_path: Any) -> None:
    for data, model in (("noise", "bigru"), ("pairs", "seq2seq")):
        task, source, settings = DATA[data]
        both = QUICK | settings | {"steps": 1}
        unrolled.train(source, task=task, model=model, out=tmp_path / model, settings=both)
    with pytest.raises(UsageError, match=r"reads a whole series .* train a causal model"):
        unrolled.load(tmp_path / "bigru").session()
    with pytest.raises(UsageError, match="read a whole input"):
        unrolled.load(tmp_path / "seq2seq").session()
    with pytest.raises(UsageError, match=r"condition=.* does not apply"):
        runs("noise").session("x")
    with pytest.raises(UsageError, match="one of"):
        runs("of a class").session()
    with pytest.raises(DataError, match="the row: found 3 numbers, expected 2"):
        runs("noise").session().push([1.0, 2.0, 3.0])


def test_what_was_saved_elsewhere_is_refused(runs: Callable[[str], Run]) -> None:
    session = runs("noise").session()
    with pytest.raises(DataError, match="weights of another run"):
        session.restore(runs("late").session().save())
    for odd in (b"", b"x" * 100, session.save()[:-3]):
        with pytest.raises(DataError, match="not a saved session"):
            session.restore(odd)


def test_positions_end(tmp_path: Any) -> None:
    task, source, settings = DATA["texts"]
    own = QUICK | settings | {"steps": 1, "position": "learned", "n_positions": 16, "window": 0}
    run = unrolled.train(source, task=task, model="transformer", out=tmp_path / "run", settings=own)
    session = run.session()
    assert session.most == 15 and session.grows
    session.push("state tick stat")
    with pytest.raises(UsageError, match="line 9: this model has positions for at most 15 ticks"):
        session.push("c", "line 9")
    session.end()
    assert len(session.push("state")) == 5


def test_the_command_line(runs: Callable[[str], Run]) -> None:
    shown = run_unrolled("predict", runs("tags").path, "-", "--live", stdin="tick state\n\ngate\n").stdout.splitlines()
    assert len(shown) == 4 and shown[2] == "" and '"prediction"' in shown[0]
    frames = "\n".join(" ".join(map(str, frame)) for frame in ROLLS[0].tolist())
    shown = run_unrolled("predict", runs("frames").path, "-", "--live", stdin=frames + "\n").stdout.splitlines()
    assert len(shown) == len(ROLLS[0])
    words = ["predict", runs("of a class").path, "-", "--live", "--condition", "s"]
    assert run_unrolled(*words, stdin="ab\n").stdout.splitlines()[-1].startswith('{"token": "<stop>"')
    assert "--beam cannot be used with --live" in run_unrolled(*words, "--beam", 2, stdin="a\n", code=2).stderr
    assert "leave out -o" in run_unrolled(*words, "-o", "x.csv", stdin="a\n", code=2).stderr
    grown = run_unrolled("predict", runs("texts").path, "-", "--live", stdin=LINES[0] + "\n")
    assert "takes longer than the one before" in grown.stderr


def test_the_running_mean_keeps_the_laws() -> None:
    check_causal(RunningMean(), torch.randn(2, 6, 3))


def test_a_readout_so_far_is_that_of_each_prefix() -> None:
    x, head = torch.randn(2, 5, 3), nn.Linear(4, 2)
    for readout in (Last(4), Mean(4)):
        body = GRU.make(GRU.config(d_state=4), Sizes(3, 4))
        reader = Reader(nn.Linear(3, 3), body, readout, head, behind=[nn.Tanh()]).eval()
        live = reader.so_far()
        assert live is not None
        y = live(x)[0]
        for t in range(1, 6):
            torch.testing.assert_close(y[:, t - 1 : t], reader(x[:, :t], torch.ones(2, t, dtype=torch.bool))[0])
    assert Reader(None, GRU.make(GRU.config(d_state=4), Sizes(3, 4)), FirstLast(4)).so_far() is None
