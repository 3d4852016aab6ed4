"""Encoder-decoder by name: any model that reads, with any model that can attend to its outputs.

    v^(1) .. v^(S') = encoder(source),        p(y^(t) | y^(1) .. y^(t-1), source) = decoder(y^(1) .. y^(t-1), v)

`--encoder` names a model of the kind encoder or causal (bigru, transformer-encoder, cnn, tcn, ..), `--decoder` one that
declares `attend` (gru, lstm, elman, transformer). Their own settings are given as
`--encoder.d-state 64`. A recurrent decoder can also be started by one vector of the source, as in `seq2seq`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from unrolled.core import config, discover
from unrolled.core.causal import Causal
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Role, Sizes, serves
from unrolled.layers.parts.decoders import fixed_context_decoder
from unrolled.layers.parts.encoder_decoder import Halves


def serving(name: str, role: Role) -> ModelSpec:
    """The model of that name; one that cannot serve so is refused with those that can."""
    if not serves(spec := discover.model(name), role):
        known = [each for each in discover.models.names() if serves(discover.model(each), role)]
        raise UsageError(f"the model '{name}' cannot be {role}; models that can: {', '.join(known)}")
    return spec


class Config(config.Config):
    encoder: str = "bigru"
    """The model that reads the source."""
    decoder: str = "gru"
    """The model that writes the target."""
    context: Literal["attention", "every-step", "start"] = "attention"
    """How the source reaches the decoder: by attention, or as one vector (see seq2seq)."""
    readout: Annotated[str, AfterValidator(config.NameIn(discover.readouts))] = "last"
    """How that one vector is computed: last position of the encoded source, first and last, mean, or a learned weighted
    mean."""
    encoder_settings: dict[str, Any] = {}
    """Settings of the encoder."""
    decoder_settings: dict[str, Any] = {}
    """Settings of the decoder."""

    @model_validator(mode="after")
    def halves_fit(self) -> Self:
        """Both halves are there and their settings are right; what was not given is filled in, for a run keeps it."""
        for half, spec in (("encoder", self.reader()), ("decoder", self.writer())):
            try:
                own = spec.config.parse(getattr(self, f"{half}_settings"))
            except UsageError as error:
                raise UsageError(f"{half} '{getattr(self, half)}': {error}") from None
            object.__setattr__(self, f"{half}_settings", own.model_dump())
        return self

    def reader(self) -> ModelSpec:
        return serving(self.encoder, "an encoder")

    def writer(self) -> ModelSpec:
        attends = self.context == "attention"
        return serving(self.decoder, "a decoder that attends" if attends else "a decoder that one vector starts")

    def resized(self, width: int) -> Self:
        """Both halves so wide, where they have a width."""
        changed = {}
        for half, spec in (("encoder", self.reader()), ("decoder", self.writer())):
            own = spec.config.parse(getattr(self, f"{half}_settings"))
            changed[f"{half}_settings"] = (spec.resize(own, width) if spec.resize else own).model_dump()
        return self.updated(changed)


def make(config: Config, sizes: Sizes) -> Halves:
    reader, writer = config.reader(), config.writer()
    reads, writes = reader.config.parse(config.encoder_settings), writer.config.parse(config.decoder_settings)
    encoder = reader.make(reads, Sizes(sizes.d_source, sizes.d_out))
    width = encoder.d_out
    decoder: Causal
    if writer.attend is not None and config.context == "attention":
        decoder = writer.attend(writes, sizes.d_in, width)
    else:
        assert writer.cell is not None
        cell = writer.cell(writes)
        decoder = fixed_context_decoder(writes, sizes.d_in, width, cell, config.context, config.readout)  # type: ignore[arg-type]
    return Halves(encoder, decoder)


def under(config: Config) -> ModelSpec:
    """The source is read as the encoder reads."""
    return replace(MODEL, reads_source=config.reader().reads)


MODEL = ModelSpec(
    summary="encoder-decoder: any model that reads, with any model that can attend to its outputs",
    kind="conditional",
    config=Config,
    tiny=Config(
        encoder="transformer-encoder",
        decoder="gru",
        encoder_settings={"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "n_positions": 24},
        decoder_settings={"d_state": 4},
    ),
    make=make,
    reference="Bahdanau et al. 2015; Vaswani et al. 2017",
    outputs=("next",),
    resize=Config.resized,
    under=under,
)
