"""last: the acceptor, what the layer outputs at the last real position, y_n."""

from __future__ import annotations

from torch import Tensor

from unrolled.layers.attention.readout import Readout, at, last_position


class Last(Readout):
    """y_n, n the last real position."""

    ordered = True

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return at(y, last_position(mask))


READOUT = Last
