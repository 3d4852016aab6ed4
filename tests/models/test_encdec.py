"""Any model that reads with any that attends: names, settings, refusals."""

from __future__ import annotations

import pytest
import torch

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Ports, Sizes, SourcePorts, serves
from unrolled.layers.parts.encoder_decoder import EncoderDecoder, body_of
from unrolled.models import encdec
from unrolled.runs.build import build, settings
from unrolled.runs.config import Ends, RunConfig, full_keys
from unrolled.testing import check_conditional

SPECS = {name: discover.model(name) for name in discover.models.names()}
READERS = [name for name, spec in SPECS.items() if serves(spec, "an encoder")]
WRITERS = [name for name, spec in SPECS.items() if serves(spec, "a decoder that attends")]


def tiny(name):
    return SPECS[name].tiny.model_dump()


def test_the_names_that_there_must_be():
    assert {"bilstm", "bigru", "transformer-encoder", "tcn", "lstm", "cnn"} <= set(READERS)
    assert set(WRITERS) == {"elman", "gru", "lstm", "transformer"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("reader", READERS)
def test_any_encoder_with_any_decoder(reader, writer):
    config = encdec.Config(encoder=reader, decoder=writer, encoder_settings=tiny(reader), decoder_settings=tiny(writer))
    model = body_of(encdec.MODEL, config, Sizes(4, 4, 4)).eval()
    source, x = torch.randn(2, 6, 4), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    y, _ = model.decoder(x, model.condition(source, mask))
    assert y.shape == (2, 5, model.d_out)
    other, _ = model.decoder(x, model.condition(torch.where(mask[..., None], source, torch.nan), mask))
    assert torch.equal(y, other)
    alone, _ = model.decoder(x[1:], model.condition(source[1:, :4], mask[1:, :4]))
    assert torch.allclose(alone[0], y[1], atol=1e-5)


@pytest.mark.parametrize("readout", ["mean", "last"])
def test_one_vector_of_an_image_starts_a_recurrence(readout):
    config = encdec.Config(
        encoder="cnn", decoder="lstm", context="start", readout=readout, encoder_settings=tiny("cnn")
    )
    model = body_of(encdec.MODEL, config, Sizes(4, 4, 4))
    y, _ = model.decoder(torch.randn(2, 5, 4), model.condition(torch.randn(2, 6, 4), None))
    assert y.shape == (2, 5, 256)


def test_who_cannot_is_told_who_can():
    with pytest.raises(
        UsageError, match="'tcn' cannot be a decoder that attends; models that can: elman, gru, lstm, tr"
    ):
        encdec.Config(decoder="tcn")
    with pytest.raises(
        UsageError, match=r"'transformer' cannot be a decoder that one vector starts; .* elman, gru, lstm"
    ):
        encdec.Config(decoder="transformer", context="start")
    with pytest.raises(UsageError, match="'ngram' cannot be an encoder; models that can: "):
        encdec.Config(encoder="ngram")
    with pytest.raises(UsageError, match="there is no model 'bigruu'"):
        encdec.Config(encoder="bigruu")
    with pytest.raises(UsageError, match="encoder 'bigru': there is no setting 'd_stat'; did you mean 'd_state'"):
        encdec.Config(encoder_settings={"d_stat": 3})


def test_settings_of_a_half_are_given_by_its_name():
    found = full_keys({"encoder": "bilstm", "encoder.d_state": 8, "model.decoder.n_layers": 2}, encdec.Config, Ends)
    assert found == {
        "model_settings.encoder": "bilstm",
        "model_settings.encoder_settings.d_state": 8,
        "model_settings.decoder_settings.n_layers": 2,
    }
    with pytest.raises(UsageError, match=r"there is no setting 'encoder\.d_state'"):
        full_keys({"encoder.d_state": 8}, SPECS["lstm"].config, Ends)


def test_a_run_keeps_what_was_not_given():
    config = encdec.Config(encoder_settings={"d_state": 8})
    assert config.encoder_settings["n_layers"] == 1
    assert encdec.Config.from_json(config.to_json()) == config
    assert config.resized(16).encoder_settings["d_state"] == config.resized(16).decoder_settings["d_state"] == 16


def run_config(ends, **given):
    return RunConfig(model="encdec", model_settings=encdec.MODEL.tiny.updated(given).model_dump(), ends=ends)


def test_built_between_tokens():
    ports = Ports(9, 9, source=SourcePorts(7))
    model = build(run_config(Ends(d_embedding=6, dropout=0.1)), ports, ("conditional",))
    assert isinstance(model, EncoderDecoder)
    y, _ = model.decoder(torch.randint(9, (2, 5)), model.condition(torch.randint(7, (2, 4)), None))
    assert y.shape == (2, 5, 9)
    source, mask = torch.randint(7, (3, 6)), torch.ones(3, 6, dtype=torch.bool)
    assert {"padding", "condition", "rows"} <= set(check_conditional(model, source, mask, torch.randint(9, (3, 7))))
    with pytest.raises(UsageError, match="one vocabulary"):
        build(run_config(Ends(shared=True)), ports, ("conditional",))


def test_one_table_for_all_three():
    ports = Ports(9, 9, source=SourcePorts(9, shared=True))
    model = build(run_config(Ends(d_embedding=4, shared=True, tied=True)), ports, ("conditional",))
    tables = [p for p in model.parameters() if p.shape == (9, 4)]
    assert len(tables) == 1
    y, _ = model.decoder(torch.randint(9, (2, 5)), model.condition(torch.randint(9, (2, 4)), None))
    assert y.std() < 5  # logits of a new model are small, though the table's entries are of size 1


def test_an_image_encoder_reads_pixels_as_they_are():
    given = {"encoder": "cnn", "encoder_settings": tiny("cnn")}
    ports = Ports(9, 9, source=SourcePorts(0, d_in=8))
    model = build(run_config(Ends(d_embedding=6), **given), ports, ("conditional",))
    assert model.encoder.embedding is None
    assert settings(run_config(Ends(), **given)).encoder == "cnn"
    with pytest.raises(UsageError, match="it reads numbers, but the source of the task is tokens"):
        build(run_config(Ends(), **given), Ports(9, 9, source=SourcePorts(7)), ("conditional",))
