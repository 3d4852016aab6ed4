"""Bag of words: counts of words into a multilayer perceptron.

    z_0 = [count(w_1), count(w_2), .., count(w_V)]
    MLP_1 = g(z_0 W_1 + b_1) W_2 + b_2
    MLP_2 = g(g(z_0 W_1 + b_1) W_2 + b_2) W_3 + b_3

Poliak (2024), lecture 26, approach 1. One vector per example, [B, V]; the order of the words is gone. The last affine
map is the task's head.
"""

from __future__ import annotations

from unrolled.layers.perceptron import Perceptron, TableConfig, perceptron

KIND = "table"
FEATURES = "counts"  # what the entries of the vector are: how often each word occurs
REFERENCE = "Poliak 2024, lecture 26: MLP_1, MLP_2"
ALIASES = ("bag-of-words", "mlp")
PRESET = "quick"
RECIPE = {"lr": 1e-3}


class Config(TableConfig):
    """The settings of the perceptron; which words are counted is the task's."""


TINY = Config(d_hidden=5, n_layers=2)


def make(config: Config, d_in: int, d_out: int) -> Perceptron:
    return perceptron(config, d_in)
