"""Logistic regression on tf-idf weighted n-grams of words and of characters together; fitted in closed form.

    z_g as in `logistic`, for words alone and in pairs, and for runs of 2 to 5 bytes of the text
    z / |z|, where texts have four words or more each of both sets divided by its own norm, so that both count alike
    log p(c | x) = z W_c + b_c - log sum_k exp(z W_k + b_k)

Whatever the tokens are, characters, subwords or words, the text is spelt from them first, so that topics (words) and
endings, names and misspellings (characters) are seen at once: what Joulin et al. (2017) and many before them found
hard to beat on small and middle-sized data. Words that the tokens do not know are not seen.
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.spelling import LONGEST, OfSpelling
from unrolled.models import logistic


class Config(logistic.Config):
    longest: int | None = Field(LONGEST, ge=1, le=7)
    """Length of the longest run of bytes."""


class LinearText(logistic.Logistic, OfSpelling):
    """Tokens x [B, T] with mask [B, T] -> logits [B, 1, C]."""

    TABLES = (*logistic.Logistic.TABLES, "spelling")


def make(config: Config, sizes: Sizes) -> LinearText:
    return LinearText(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="logistic regression on tf-idf weighted n-grams of words and characters; fitted in closed form",
    kind="encoder",
    config=Config,
    tiny=Config(longest=2, n_features=50),
    make=make,
    reference="Cox 1958; Spärck Jones 1972; Joulin et al. 2017",
    aliases=("words-and-characters",),
    reads=("tokens",),
    outputs=("whole",),
    owns_head=True,
    closed_form=("class", "classes"),
)
