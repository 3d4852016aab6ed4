"""What a page does with a run, by what goes in and comes out: write a text, label an input, forecast a series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unrolled.core.export import Refused
from unrolled.emissions.bits import Bits
from unrolled.emissions.categorical import Categorical
from unrolled.emissions.point import Point
from unrolled.emissions.quantiles import LEVELS, Quantiles

TEXTS = ("byte", "char", "word", "bpe")


class Mode(NamedTuple):
    """A way to use the model."""

    name: str
    about: str
    input: str  # what the field is for
    run: str  # what the button says
    facts: dict[str, Any]  # that the page needs for it


def mode_of(run: Any, kind: str, codec: Mapping[str, Any]) -> Mode:
    """How a page uses a run of this kind of model, with these codecs; `Refused` where it has no way."""
    emission = run.task.emission
    if "series.json" in codec:
        return _forecast(run, emission, codec["series.json"])
    if kind == "causal" and isinstance(emission, Categorical) and "tokenizer.json" in codec:
        _require_text(codec["tokenizer.json"])
        facts = {"never": [*emission.never]}
        return Mode("write", "A language model: it continues the text.", "Text to continue", "Write", facts)
    if kind == "encoder" and "answers.json" in codec:
        return _label(emission, codec)
    raise Refused("a page has no way to use a model of this task: it writes texts, labels inputs and forecasts")


def _require_text(tokenizer: Mapping[str, Any]) -> None:
    tokens = tokenizer["tokens"] if tokenizer.get("format") == "unrolled" else "bpe"
    if tokens not in TEXTS:
        raise Refused(f"its tokens ({tokens}) cannot be typed")
    if tokens == "bpe" and (tokenizer.get("pre_tokenizer") or {}).get("type") != "ByteLevel":
        raise Refused("its tokenizer is not a byte-level one")


def _label(emission: Any, codec: Mapping[str, Any]) -> Mode:
    kind = codec["answers.json"]["answers"]
    if kind == "series" or not isinstance(emission, Categorical | Bits | Point):
        raise Refused(f"a page cannot show predictions of this kind ({kind})")
    if "tokenizer.json" in codec:
        _require_text(codec["tokenizer.json"])
        spaced = codec["tokenizer.json"].get("tokens", "bpe") in ("word", "bpe")
        extra = codec["tokenizer.json"].get("specials", ())[4:]
        if extra:
            raise Refused("its texts are framed by tokens of pre-training")
        return Mode("label", "It reads a text.", "Text", "Predict", {"spaced": spaced})
    if "words.json" in codec:
        if codec["words.json"]["letters"]:
            raise Refused("it reads the letters of words, which a page does not")
        return Mode("label", "It reads words, separated by spaces.", "Words", "Predict", {})
    if "inputs.json" in codec:
        n = len(codec["inputs.json"]["mean"])
        about = f"It reads a series: {n} number{'s' if n > 1 else ''} on each line."
        return Mode("label", about, "Series", "Predict", {})
    raise Refused("a page has no way to read its inputs")


def _forecast(run: Any, emission: Any, codec: Mapping[str, Any]) -> Mode:
    beside = [*codec["past"], *codec["known"], *codec["static"], *codec["calendar"]]
    if beside or codec["gaps"] is not None or codec["observed"] or len(codec["targets"]) > 1:
        raise Refused("it reads more than the values of one series without gaps")
    if not isinstance(emission, Quantiles) or emission.levels != LEVELS or run.task.trained.horizon != codec["horizon"]:
        raise Refused("a page forecasts with models that predict the quantiles of all steps at once")
    about = f"It forecasts the next {codec['horizon']} values of a series from the last {codec['lookback']}."
    return Mode("forecast", about, "Values, one on a line, the newest last", "Forecast", {"levels": [*LEVELS]})
