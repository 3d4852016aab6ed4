"""Settings of sound: how it is read, in what levels it is predicted, what is known beside it. Imports no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from unrolled.core import config
from unrolled.data.files.name_pattern import check_groups
from unrolled.data.sound_conditions import Features
from unrolled.data.sounds_prepare import SoundForm
from unrolled.data.sources.clips import Hearing


class SoundConfig(config.Config):
    bits: Literal[8, 16] = 8
    """Bits of a sample: 8 by mu-law, or 16 as they are (with a logistic mixture)."""
    rate: int | None = Field(None, ge=100, le=200_000)
    """Samples a second, to which all sound is resampled. [default: that of the files, which must then be equal]"""
    trim_silence: bool = False
    """Remove silence (40 dB below the loudest part) at both ends of every recording."""
    pattern: Annotated[str | None, AfterValidator(check_groups)] = None
    """A regular expression for file names, whose groups are conditions by name: (?P<digit>[0-9])_(?P<speaker>[a-z]+)"""
    features: Features = "none"
    """A local condition, computed from the sound: log-mel energies, or pitch and loudness, frame by frame."""
    frame: float = Field(0.01, gt=0, le=1)
    """Seconds from one frame of the features to the next."""
    bands: int = Field(20, ge=2, le=200)
    """Bands of the log-mel energies."""
    piece: float = Field(1.0, gt=0, le=60)
    """Seconds of an example: longer recordings are cut into such pieces, the state not carried over."""

    def form(self) -> SoundForm:
        hearing = Hearing(self.rate, self.trim_silence, self.pattern)
        return SoundForm(hearing, self.bits, self.piece, self.features, self.frame, self.bands)
