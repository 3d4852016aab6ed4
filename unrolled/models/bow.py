"""Bag of words: word counts into a multilayer perceptron.

    z_0 = [count(w_1), count(w_2), .., count(w_V)]
    MLP_1 = g(z_0 W_1 + b_1) W_2 + b_2
    MLP_2 = g(g(z_0 W_1 + b_1) W_2 + b_2) W_3 + b_3

Poliak (2024), lecture 26, approach 1. One vector per example, [B, V]; the order of the words is gone. The last affine
map is the task's head.
"""

from __future__ import annotations

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.perceptron import OfOneVector, PerceptronConfig, perceptron


class Config(PerceptronConfig):
    """The settings of the perceptron; which words are counted is the task's."""


def make(config: Config, sizes: Sizes) -> OfOneVector:
    return OfOneVector(perceptron(config, sizes.d_in))


MODEL = ModelSpec(
    summary="bag of words: word counts into a multilayer perceptron",
    kind="encoder",
    config=Config,
    tiny=Config(d_hidden=5, n_layers=2),
    make=make,
    reference="Poliak 2024, lecture 26: MLP_1, MLP_2",
    aliases=("bag-of-words", "mlp"),
    reads=("counts",),
    outputs=("whole",),
    preset="standard",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
