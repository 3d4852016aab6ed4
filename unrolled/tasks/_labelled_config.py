"""What tasks with given targets can be told."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from unrolled.core import config, discover
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.data.reading import Reading

Readout = Annotated[str, AfterValidator(config.NameIn(discover.readouts))]
POOLING, DRAWN = "hopfield", 200


class Config(config.Config):
    """What all of them can be told."""

    reading: Reading = Reading()
    letters: int = Field(0, ge=0, le=64)
    """Number of letters of each word that are read in addition to it, for inputs of words; 0: none."""

    def require_use(self, bags: bool | None) -> None:
        """Refuse bags, and settings of them, where they do not apply; None: it is not known whether there are."""
        if bags:
            raise UsageError(
                f"{option('bag')} and data of bags are for tasks with one target for a whole example: classify, regress"
            )

    @property
    def pooled_by(self) -> str:
        """The readout over the instances of bags."""
        return POOLING

    @property
    def drawn(self) -> int:
        """Instances of a bag that a training step reads at most."""
        return DRAWN


class WholeConfig(Config):
    """Of tasks with one target for a whole example, which may be a bag."""

    pooling: Readout | None = None
    """How the vectors of the instances of a bag are reduced to one: mean, max, attention, query or hopfield; none:
    hopfield."""
    instances: int | None = Field(None, ge=1)
    """Number of instances of a bag that a training step reads at most, drawn anew each time; evaluation reads all;
    none: 200."""

    def require_use(self, bags: bool | None) -> None:
        for name, value in {"pooling": self.pooling, "instances": self.instances}.items():
            if bags is False and value is not None:
                raise UsageError(
                    f"{option(name)} is for bags, but these examples are single; name the column of bags with "
                    f"{option('bag')}, or leave it out"
                )

    @property
    def pooled_by(self) -> str:
        return self.pooling or POOLING

    @property
    def drawn(self) -> int:
        return self.instances or DRAWN
