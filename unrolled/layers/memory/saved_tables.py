"""Layers that keep what they were solved from: tables as large as the data made them."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn

from unrolled.core.causal import Encoder


class Tables(nn.Module):
    """What they share: buffers named in TABLES are loaded with whatever sizes they were saved with.

    A subclass says by `fault` what would make such tables lead astray; they are then refused.
    """

    TABLES: ClassVar[tuple[str, ...]]

    def fault(self, tables: dict[str, torch.Tensor]) -> str:
        """What is wrong with tables that come from a file; empty if nothing."""
        raise NotImplementedError

    def keep(self, tables: dict[str, torch.Tensor]) -> None:
        """Take tables of any size, on the device and in the dtype of those that were there."""
        for name, table in tables.items():
            setattr(self, name, table.to(getattr(self, name)))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        found = {name: state_dict[prefix + name] for name in self.TABLES if prefix + name in state_dict}
        if len(found) == len(self.TABLES):
            wrong = self.fault(found)
            if wrong:
                others[-1].append(f"the saved tables are damaged: {wrong}")
                return
            self.keep({name: torch.empty_like(table) for name, table in found.items()})
        super()._load_from_state_dict(state_dict, prefix, *others)


class Stored(Tables, Encoder):
    """An encoder of this kind."""
