"""word2vec: vectors of words that are used alike, learned by telling a word from drawn ones by the words around it.

    h = 1/|X| sum_{w in X} v_w,     C = - log sigma(u_y . h) - sum_{j=1..k} log sigma(-u_j . h),   j drawn from q

With skip-gram X is one word of the context at a time, with CBOW all of them; which one it is, the window, and how words
are drawn are settings of the task. Learning is stochastic descent, word after word, with a rate that falls.

Mikolov et al. (2013), "Distributed representations of words and phrases". Differences: drawn words are shared by the
inputs of one position (Ji et al. 2016), and the gradient of a mean is divided by its size, which the original omits.
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.context_words import Word2Vec


class Config(config.Config):
    workers: int = Field(1, ge=1, le=256)
    """Number of threads that learn at the same time, with the extra [fast]; with more than one, results differ a little
    from run to run."""


def make(config: Config, sizes: Sizes) -> Word2Vec:
    return Word2Vec(sizes.d_out, sizes.width, config.workers)


MODEL = ModelSpec(
    summary="word2vec: word vectors by skip-gram or CBOW with negative sampling",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Mikolov et al. 2013",
    aliases=("skip-gram", "skipgram", "cbow", "sgns"),
    reads=("tokens",),
    outputs=("context",),
    owns_head=True,
    preset="quick",
    recipe={"lr": 0.025, "warmup": 0, "batch_size": 256, "d_embedding": 100},
)
