"""How what is written is chosen, as settings: one request for all writing. Imports no torch."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from unrolled.core.config import Record
from unrolled.core.errors import UsageError, listed
from unrolled.core.front import option


class Decoding(Record):
    """By samples, the best of more samples, by beam, or the likeliest token at each step."""

    n: int = Field(1, ge=1, json_schema_extra={"flag": "-n"})
    """Number of texts or classes, most probable first."""
    max_tokens: int | None = Field(None, ge=1)
    """Maximum number of tokens to generate. [default: 300; with a source, a few more than the longest training
    target]"""
    stop: str | None = None
    """Stop at this token (a character or a word)."""
    sample: bool | None = None
    """Sample, or take the most probable token at each step. [default: sample after a prompt, not with a source]"""
    temperature: float = Field(1.0, ge=0)
    """Sampling temperature: below 1 sharpens the distribution, above 1 flattens it, 0 is greedy."""
    top_k: int | None = Field(None, ge=1)
    """Sample only from the k most probable tokens."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus sampling: sample only from the smallest set of tokens that together have this probability."""
    repetition_penalty: float = Field(1.0, ge=1)
    """Above 1, tokens that have already occurred, also in the prompt, become less probable."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Random seed: the same seed, prompt and model give the same text."""
    best_of: int | None = Field(None, ge=1)
    """Sample this many texts and keep the n most probable."""
    beam: int | None = Field(None, ge=1)
    """Beam search of this width instead of sampling."""
    length_penalty: float = 0.0
    """Exponent of the length penalty in beam search."""

    def settled(self, samples: bool, max_tokens: int) -> Self:
        """With everything decided that was left open, and what excludes one another refused.

        `samples` and `max_tokens` are what is usual. Several texts without sampling are those of a beam.

        >>> Decoding(n=3).settled(samples=False, max_tokens=9).beam, Decoding().settled(True, 9).temperature
        (3, 1.0)
        """
        drawn = [name for name in SAMPLED if name in self.model_fields_set and dict(self)[name] is not None]
        if self.sample is False and drawn:
            raise UsageError(f"nothing is sampled, so {listed(map(option, drawn))} has no effect: leave it out")
        sample = bool(drawn) or (samples and self.beam is None if self.sample is None else self.sample)
        if self.beam is not None and sample:
            raise UsageError("beam search and sampling exclude each other: give only one of them")
        beam = self.n if self.beam is None and self.n > 1 and not sample else self.beam
        if self.length_penalty and beam is None:
            raise UsageError(f"a length penalty needs beam search: add {option('beam')}")
        decided = {"beam": beam, "sample": sample, "max_tokens": self.max_tokens or max_tokens}
        return self.model_copy(update=decided | ({} if sample else {"temperature": 0.0}))


SAMPLED = ("temperature", "top_k", "top_p", "repetition_penalty", "seed", "best_of")
"""Settings of sampling: each of them asks for samples."""
WRITTEN = ("n", "max_tokens", "sample", *SAMPLED, "beam", "length_penalty")
"""What all texts obey."""
