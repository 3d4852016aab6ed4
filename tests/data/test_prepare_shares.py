"""Less of the data: a fraction of the training part, a limit to what is held out."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.batch import TARGET
from unrolled.data.config import DataConfig
from unrolled.data.prepare import prepare

TEXT = "".join(f"line {i} of a text with an é in it\n" for i in range(400))
ROWS = [f"row {i}" for i in range(200)]


def test_a_fraction_of_a_stream_is_its_beginning():
    whole, half = (
        prepare([TEXT], DataConfig(examples="stream")),
        prepare([TEXT], DataConfig(examples="stream", fraction=0.5)),
    )
    train = half.sections["train"]
    all_of_it = whole.sections["train"].values(TARGET)
    assert len(train.values(TARGET)) == round(0.5 * len(all_of_it))
    np.testing.assert_array_equal(train.values(TARGET), all_of_it[: len(train.values(TARGET))])
    assert half.fingerprint == whole.fingerprint
    assert half.codecs["text"].size == whole.codecs["text"].size
    assert half.sections["test"].lengths(TARGET).tolist() == whole.sections["test"].lengths(TARGET).tolist()


def test_a_fraction_of_rows_is_spread_over_all():
    whole, tenth = (
        prepare(ROWS, DataConfig()).sections["train"],
        prepare(ROWS, DataConfig(fraction=0.1)).sections["train"],
    )
    assert tenth.n_examples == round(0.1 * whole.n_examples)
    kept = {tuple(each) for each in tenth.fields[TARGET]}
    places = [i for i in range(whole.n_examples) if tuple(whole.at(TARGET, i)) in kept]
    assert len(places) == tenth.n_examples
    assert max(places) > 0.8 * whole.n_examples


@pytest.mark.parametrize("tokens", ["char", "byte", "bpe", "word"])
def test_what_is_held_out_is_limited_and_counted_again(tokens):
    config = DataConfig(examples="stream", tokens=tokens, vocabulary=300, held_out=50)
    data = prepare([TEXT], config)
    test = data.sections["test"]
    assert len(test.values(TARGET)) == 50
    text = data.codecs["text"].decode(test.values(TARGET))
    assert (test.counts["characters"], test.counts["bytes"]) == (len(text), len(text.encode()))
    if tokens == "char":
        assert test.counts["characters"] == 50
    assert len(data.sections["train"].values(TARGET)) > 1000
