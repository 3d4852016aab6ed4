"""page: the JavaScript of a page gives what the run gives, in node, and in a browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.thorough import only
from unrolled.core.errors import UsageError
from unrolled.exports import page
from unrolled.exports.tools import scripts
from unrolled.exports.tools.exporting import export
from unrolled.exports.tools.known import KNOWN
from unrolled.objectives.forecasts import Residuals
from unrolled.runs.build import make_model
from unrolled.runs.run import Run

QUICK = ("next-token", "classify", "regress", "forecast")
SHOWN = (*QUICK, "next-token-tied")
pytestmark = pytest.mark.skipif(scripts.engine_here() is None, reason="neither a browser nor node is here")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")


@pytest.fixture(autouse=True)
def _in_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which starts in less time than a browser."""
    if shutil.which("node"):
        monkeypatch.setattr(page, "engine_here", lambda: "node")


def text_of(name: str, exported: Any) -> str:
    (file,) = exported(name, "page").files
    return str(file.read_text(encoding="utf-8"))


def asked(text: str, question: str) -> Any:
    return scripts.ran("node" if shutil.which("node") else str(scripts.engine_here()), text, question)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in SHOWN])
def test_the_outputs_are_those_of_the_run(name: str, exported: Any) -> None:
    """The export itself compares 3 batch sizes over 50 ticks and refuses what differs."""
    assert exported(name, "page").difference <= 1e-5


FEW = {"d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 1}
SMALL: dict[str, dict[str, Any]] = {
    "lstm": {"d_state": 5, "n_layers": 2, "initial": "learned"},
    "elman": {"d_state": 5},
    "tcn": {"widths": [4, 4], "kernel": 3},
    "transformer": FEW | {"window": 0, "position": "learned", "n_positions": 60},
    "wavenet": {},
}  # fmt: skip


def other(run: Run, model: str, settings: dict[str, Any]) -> Run:
    """A run of the same task with another model, which was not trained."""
    config = run.config.model_copy(update={"model": model, "model_settings": settings})
    made = make_model(config, run.task).eval()
    return Run(run.directory, config, run.task, made)


@pytest.mark.parametrize(
    "model", [n if n in ("elman", "tcn") else pytest.param(n, marks=pytest.mark.long) for n in SMALL]
)
def test_other_models_that_write(model: str, run_of: Any, tmp_path: Path) -> None:
    assert export(other(run_of("next-token"), model, SMALL[model]), "page", tmp_path / "a.html").difference <= 1e-5


@pytest.mark.parametrize("model", only(("tfidf",), ["bigru", "birnn", "bow", "dan", "tfidf", "transformer-encoder"]))
def test_other_models_that_label(model: str, run_of: Any, tmp_path: Path) -> None:
    settings = FEW if model == "transformer-encoder" else {}
    assert export(other(run_of("classify"), model, settings), "page", tmp_path / "a.html").difference <= 1e-5


@pytest.mark.parametrize("model", ["naive", "linear-map"])
def test_other_models_that_forecast(model: str, run_of: Any, tmp_path: Path) -> None:
    assert export(other(run_of("forecast"), model, {}), "page", tmp_path / "a.html").difference <= 1e-5


def test_it_writes_what_the_run_writes(exported: Any, run_of: Any) -> None:
    question = "[...written(openModel(), 'la', {temperature: 0, most: 40})].flatMap(bytes => [...bytes])"
    found = bytes(asked(text_of("next-token", exported), question)).decode()
    (greedy,) = run_of("next-token").generate("la", temperature=0, max_tokens=40)
    assert found == greedy["text"]
    assert len(found) > 3


def test_it_labels_as_the_run_does(exported: Any, run_of: Any) -> None:
    texts = ["tick state", "later  call, nowhere", "x"]
    found = asked(text_of("classify", exported), f"{json.dumps(texts)}.map(text => labelled(openModel(), text)[0])")
    for mine, theirs in zip(found, run_of("classify").predict(texts), strict=True):
        assert mine["name"] == theirs["prediction"]
        assert mine["p"] == pytest.approx(theirs["p"], abs=1e-5)


def test_it_reads_series_as_the_run_does(exported: Any, run_of: Any) -> None:
    rows = np.random.default_rng(3).normal(size=(7, 2)).round(3)
    lines = "\\n".join(f"{a}, {b}" for a, b in rows)
    (found,) = asked(text_of("regress", exported), f"labelled(openModel(), '{lines}')")
    (theirs,) = run_of("regress").predict([rows])
    assert found["value"] == pytest.approx(np.ravel(theirs["prediction"])[0], abs=1e-4)


def test_it_forecasts_as_the_run_does(exported: Any, run_of: Any) -> None:
    values = np.sin(np.arange(20) * 0.8).round(4).tolist()
    found = asked(text_of("forecast", exported), f"forecast(openModel(), '{' '.join(map(str, values))}')")
    (theirs,) = run_of("forecast").do("forecast", [values])
    assert found["median"] == pytest.approx(np.ravel(theirs["forecast"]).tolist(), abs=2e-4)
    assert found["low"] == pytest.approx(np.ravel(theirs["low_80"]).tolist(), abs=2e-4)
    assert found["high"] == pytest.approx(np.ravel(theirs["high_80"]).tolist(), abs=2e-4)


@pytest.mark.parametrize("least", [None, 0.3])
def test_a_closed_form_forecasts_with_the_intervals_of_the_run(
    run_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: float | None
) -> None:
    run = other(run_of("forecast"), "naive", {})
    H = run.task.codec.horizon
    found = Residuals(tuple(0.5 + 0.1 * h for h in range(H)), (-2.0, -1.3, -0.7, 0.0, 0.7, 1.3, 2.0), least)
    monkeypatch.setattr(run.task, "residuals", found)
    (file,) = export(run, "page", tmp_path / "a.html").files
    values = (3 + np.sin(np.arange(20) * 0.8)).round(4).tolist()
    shown = asked(file.read_text(encoding="utf-8"), f"forecast(openModel(), '{' '.join(map(str, values))}')")
    (theirs,) = run.do("forecast", [values])
    for name, own in (("median", "forecast"), ("low", "low_80"), ("high", "high_80")):
        assert shown[name] == pytest.approx(np.ravel(theirs[own]).tolist(), abs=2e-4)


def test_half_precision_is_compared_with_rounded_weights(run_of: Any, exported: Any, tmp_path: Path) -> None:
    written = export(run_of("next-token"), "page", tmp_path / "half.html", {"precision": "float16"})
    assert written.difference <= 1e-5
    assert written.files[0].stat().st_size < len(text_of("next-token", exported))


def test_a_page_asks_for_nothing_and_shows_texts_as_texts(exported: Any) -> None:
    text = text_of("next-token", exported)
    assert "default-src 'none'" in text
    assert {*re.findall(r"https?://[^\s\"'<]+", text)} == {"http://www.w3.org/2000/svg"}  # a name, no address
    assert not re.search(r"\b(src|href)=|innerHTML|insertAdjacentHTML|document\.write|\beval\b|fetch\(|XMLHttp", text)


def test_words_of_the_data_cannot_leave_their_place(
    run_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "</script><script>alert(1)</script>"
    monkeypatch.setattr(page, "_example", lambda run, mode: odd)
    before = page.facts_of
    monkeypatch.setattr(page, "facts_of", lambda run, found: {**before(run, found), "model": odd})
    (file,) = export(run_of("next-token"), "page", tmp_path / "odd.html").files
    text = file.read_text(encoding="utf-8")
    assert odd not in text
    assert asked(text, "openModel().facts.model") == odd


@pytest.mark.skipif(not any(map(shutil.which, scripts.BROWSERS)), reason="no browser is here")
def test_in_a_real_browser(exported: Any, run_of: Any) -> None:
    browser = next(name for name in scripts.BROWSERS if shutil.which(name))
    text = text_of("next-token", exported)
    question = "[...written(openModel(), '', {temperature: 0, most: 20})].flatMap(bytes => [...bytes])"
    (greedy,) = run_of("next-token").generate("", temperature=0, max_tokens=20)
    assert bytes(scripts.ran(browser, text, question)).decode() == greedy["text"]


@needs_node
def test_the_known_operations_are_those_of_the_engine() -> None:
    text = "\n".join(page._own(name) for name in page.SCRIPTS)
    (head, foot) = ('<script id="model">{}</script><script id="weights"></script>', "")
    found = scripts.ran("node", f'{head}<script id="code">{text}</script>{foot}', "Object.keys(OPS)")
    assert {*found} | {"call", "scan"} == KNOWN


@pytest.mark.parametrize(("name", "why"), [("translate-transformer", "no way to use"), ("recall", "decides by values")])
def test_what_a_page_cannot_do_is_refused(name: str, why: str, run_of: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        export(run_of(name), "page", tmp_path / "a.html")
    assert [*tmp_path.iterdir()] == []


def test_without_an_engine_it_says_so(run_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "engine_here", lambda: None)
    written = export(run_of("next-token"), "page", tmp_path / "a.html")
    assert written.difference is None
    assert written.checked.startswith("not compared with the run")
