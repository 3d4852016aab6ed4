"""TF-IDF: tf-idf weighted word counts into a multilayer perceptron.

    z_i = count(w_i) (log((1 + n) / (1 + n_i)) + 1)        n documents, n_i of them with the word w_i
    z_0 = z / |z|
    MLP_1 = g(z_0 W_1 + b_1) W_2 + b_2
    MLP_2 = g(g(z_0 W_1 + b_1) W_2 + b_2) W_3 + b_3

Poliak (2024), lecture 26, approach 1; weights by Spärck Jones (1972), in the smoothed form of scikit-learn. One vector
per example, [B, V]. The last affine map is the task's head.
"""

from __future__ import annotations

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.perceptron import OfOneVector, PerceptronConfig, perceptron


class Config(PerceptronConfig):
    """The settings of the perceptron; which words are counted is the task's."""


def make(config: Config, sizes: Sizes) -> OfOneVector:
    return OfOneVector(perceptron(config, sizes.d_in))


MODEL = ModelSpec(
    summary="tf-idf weighted word counts into a multilayer perceptron",
    kind="encoder",
    config=Config,
    tiny=Config(d_hidden=5),
    make=make,
    reference="Spärck Jones 1972; Poliak 2024, lecture 26",
    reads=("tf-idf",),
    outputs=("whole",),
    preset="standard",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
