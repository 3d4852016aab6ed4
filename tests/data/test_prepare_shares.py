"""Less of the data: a fraction of the training part, a limit to what is held out."""

from __future__ import annotations

import numpy as np
import pytest

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
    assert train.n_tokens == round(0.5 * whole.sections["train"].n_tokens)
    np.testing.assert_array_equal(train.tokens, whole.sections["train"].tokens[: train.n_tokens])
    assert half.fingerprint == whole.fingerprint
    assert half.codec.size == whole.codec.size
    assert half.sections["test"].n_tokens == whole.sections["test"].n_tokens


def test_a_fraction_of_rows_is_spread_over_all():
    whole, tenth = (
        prepare(ROWS, DataConfig()).sections["train"],
        prepare(ROWS, DataConfig(fraction=0.1)).sections["train"],
    )
    assert tenth.n_examples == round(0.1 * whole.n_examples)
    kept = {tuple(tenth.example(i)) for i in range(tenth.n_examples)}
    places = [i for i in range(whole.n_examples) if tuple(whole.example(i)) in kept]
    assert len(places) == tenth.n_examples
    assert max(places) > 0.8 * whole.n_examples


@pytest.mark.parametrize("tokens", ["char", "byte", "bpe", "word"])
def test_what_is_held_out_is_limited_and_counted_again(tokens):
    config = DataConfig(examples="stream", tokens=tokens, vocabulary=300, held_out=50)
    data = prepare([TEXT], config)
    test = data.sections["test"]
    assert test.n_tokens == 50
    text = data.codec.decode(test.tokens)
    assert (test.n_chars, test.n_bytes) == (len(text), len(text.encode()))
    if tokens == "char":
        assert test.n_chars == 50
    assert data.sections["train"].n_tokens > 1000
