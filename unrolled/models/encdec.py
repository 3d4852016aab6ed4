"""Encoder and decoder by name: any model that reads, with any model that can attend to what was read.

    v^(1) .. v^(S') = encoder(source),        p(y^(t) | y^(1) .. y^(t-1), source) = decoder(y^(1) .. y^(t-1), v)

`--encoder` names a model file of KIND encoder or causal (bigru, transformer-encoder, cnn, tcn, ..), `--decoder` one
that offers `attending(config, d_in, d_source)` (gru, lstm, elman, transformer). Their own settings are given as
`--set encoder.d_state=64`. A recurrent decoder can also be started by one vector of the source, as in `seq2seq`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, Self

from pydantic import model_validator

from unrolled.core import config, discover
from unrolled.core.causal import Causal
from unrolled.core.compose import as_encoder
from unrolled.core.errors import UsageError
from unrolled.layers.decoders import fixed_context_decoder
from unrolled.layers.encdec import Halves

KIND = "conditional"
REFERENCE = "Bahdanau et al. 2015; Vaswani et al. 2017"


def can_read(file: ModuleType) -> bool:
    """Whether a model file makes an encoder of vectors that stand for positions."""
    solved = any(hasattr(file, word) for word in ("ANSWERS", "OWNS_HEAD"))
    return file.KIND in ("encoder", "causal") and not solved and getattr(file, "INPUT", "vectors") == "vectors"


def can_attend(file: ModuleType) -> bool:
    return hasattr(file, "attending")


def can_be_started(file: ModuleType) -> bool:
    """Whether it is made of cells, whose state one vector can make."""
    return hasattr(file, "cell_of")


def fitting(name: str, fits: Callable[[ModuleType], bool], what: str) -> ModuleType:
    """The model file of that name; one that does not fit is refused with those that do."""
    file = discover.models.load(name)
    if not fits(file):
        known = [each for each in discover.models.names() if fits(discover.models.load(each))]
        raise UsageError(f"the model '{name}' cannot be {what}; models that can: {', '.join(known)}")
    return file


class Config(config.Config):
    encoder: str = "bigru"
    """Which model reads the source."""
    decoder: str = "gru"
    """Which model writes the target."""
    context: Literal["attention", "every-step", "start"] = "attention"
    """How the source reaches the decoder: attended to, or by one vector (see seq2seq)."""
    readout: Literal["last", "first-last", "mean", "attention"] = "last"
    """That one vector: the source at its last position, at both ends, its mean, a learned weighted mean."""
    encoder_settings: dict[str, Any] = {}
    """The encoder's own settings."""
    decoder_settings: dict[str, Any] = {}
    """The decoder's own settings."""

    @model_validator(mode="after")
    def halves_fit(self) -> Self:
        """Both halves are there and their settings are right; what was not given is filled in, for a run keeps it."""
        for half, file in (("encoder", self.reader()), ("decoder", self.writer())):
            try:
                own = file.Config.parse(getattr(self, f"{half}_settings"))
            except UsageError as error:
                raise UsageError(f"{half} '{getattr(self, half)}': {error}") from None
            object.__setattr__(self, f"{half}_settings", own.model_dump())
        return self

    def reader(self) -> ModuleType:
        return fitting(self.encoder, can_read, "an encoder")

    def writer(self) -> ModuleType:
        if self.context == "attention":
            return fitting(self.decoder, can_attend, "a decoder that attends")
        return fitting(self.decoder, can_be_started, "a decoder that one vector starts")

    def resized(self, width: int) -> Self:
        """Both halves so wide, where they have a width."""
        changed = {}
        for half, file in (("encoder", self.reader()), ("decoder", self.writer())):
            own = file.Config.parse(getattr(self, f"{half}_settings"))
            changed[f"{half}_settings"] = (own.resized(width) if hasattr(own, "resized") else own).model_dump()
        return self.updated(changed)


TINY = Config(
    encoder="transformer-encoder", decoder="gru",
    encoder_settings={"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "n_positions": 24},
    decoder_settings={"d_state": 4},
)  # fmt: skip


def source_input(config: Config) -> str | None:
    """What the encoder reads, where it wants no layer between the source and itself."""
    found: str | None = getattr(config.reader(), "INPUT", None)
    return found


def make(config: Config, d_in: int, d_out: int, d_source: int) -> Halves:
    reader, writer = config.reader(), config.writer()
    encoder = as_encoder(reader.make(reader.Config.parse(config.encoder_settings), d_source, d_out))
    width = int(encoder.d_out)  # type: ignore[arg-type]
    own = writer.Config.parse(config.decoder_settings)
    decoder: Causal
    if config.context == "attention":
        decoder = writer.attending(own, d_in, width)
    else:
        decoder = fixed_context_decoder(own, d_in, width, writer.cell_of(own), config.context, config.readout)
    return Halves(encoder, decoder)
