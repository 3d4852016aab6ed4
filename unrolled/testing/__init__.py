"""The laws of the contract as public checks, for the layers of this package and for anybody's own.

>>> import torch
>>> from unrolled.testing import check_causal
>>> from unrolled.core.compose import Each
>>> check_causal(Each(torch.nn.Linear(3, 2)))
['form', 'state', 'saving', 'dtype', 'causality', 'rows', 'chunks', 'padding', 'receptive field', 'state size']

A check returns the laws that hold and raises `LawBroken` at the first that does not, with the place where it broke.
"""

from unrolled.kernels.check import check_kernel
from unrolled.testing.causal import check_causal
from unrolled.testing.conditional import check_conditional
from unrolled.testing.emission import check_emission
from unrolled.testing.encoder import check_encoder
from unrolled.testing.law import LawBroken
from unrolled.testing.memory import check_memory
from unrolled.testing.objects import check_model, check_object, checks_for
from unrolled.testing.recurrence import check_cell, check_scan
from unrolled.testing.saving import check_config

__all__ = [
    "LawBroken",
    "check_causal",
    "check_cell",
    "check_conditional",
    "check_config",
    "check_emission",
    "check_encoder",
    "check_kernel",
    "check_memory",
    "check_model",
    "check_object",
    "check_scan",
    "checks_for",
]
