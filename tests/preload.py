"""What the server of processes (tests/commands.py) has loaded and done once, so that no command does it again."""

from __future__ import annotations

import importlib

import torch._dynamo
import torch.utils.tensorboard  # noqa: F401
from sklearn import linear_model  # noqa: F401

from tests.shortened import shorten
from unrolled.cli.main import commands, verbs
from unrolled.core import discover
from unrolled.pictures.draw import svg
from unrolled.pictures.kinds import Plot, Series
from unrolled.report.page import template

for command in commands():
    importlib.import_module(f"unrolled.cli.{command.replace('-', '_')}")
for room in (discover.models, discover.tasks, discover.emissions, discover.questions):
    for name in room.names():
        room.load(name)
verbs()
for room in discover.JOINED:
    for name in room.names():
        room.told(name)
template()
shorten()
svg(Plot(title="first", series=[Series(name="a", x=[0.0, 1.0], y=[1.0, 2.0])]))
