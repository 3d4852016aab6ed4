"""What follows: the base of tasks that predict, at every position of a sequence, what comes next (or `ahead` steps on).

    C = - sum_t log p(x_{t+tau} | x_1 .. x_t)            eq. (7.5), tau = ahead

What p means is the emission's: one token, or a frame of bits. Figures are nats, every position counted alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.causal import Causal, Conditional
from unrolled.core.errors import UsageError
from unrolled.core.forward import outputs
from unrolled.core.outline import Outline
from unrolled.core.sharing import totals
from unrolled.data.collate import Form
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.long_examples import outline_of
from unrolled.data.sampler import pooled_batches
from unrolled.tasks._prepared import PreparedTask

EVALUATION_ROWS = 32
PIECE = 256  # tokens of a stream that are one unit

Sums = Counter[str]


class NextTask(PreparedTask):
    """The base: evaluation, scores, closed forms. A task adds its data, its emission, figures and writing."""

    SCORE = "nats"
    ACCEPTS: ClassVar[tuple[str, ...]] = ("causal",)

    data: DataConfig

    @property
    def form(self) -> Form:
        return Form(TARGET, self.data.ahead)

    def outline(self) -> Outline:
        train = self.sections["train"]
        return Outline() if train.is_stream else outline_of(train.lengths(TARGET))

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        train, ahead = self.sections["train"], self.data.ahead
        return task.fitted(train, len(train.values(TARGET)), limit, lambda some: model.solve(some, ahead=ahead))

    def require_next(self) -> None:
        if self.data.ahead != 1:
            raise UsageError(
                f"this run predicts {self.data.ahead} steps ahead, but live predictions need a run that predicts the "
                "next step"
            )

    # ---- figures

    def evaluate(
        self, model: Causal | Conditional, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        return self.measure(model, self.sections[split], limit, ledger)

    def measure(
        self, model: Causal | Conditional, section: Examples, limit: int | None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        """The figures of a section, or of about `limit` positions of it: of examples some that are evenly spread."""
        sums = Sums()  # of this process's rows
        for batch, y in self._with_outputs(model, section, limit):
            nats = self.emission.losses(y, batch.y, batch.y_mask).double()  # [B, T]
            sums.update({"nats": float(nats.sum()), "tokens": batch.n_targets, **self.counted(batch, y, nats)})
            if ledger is not None:
                unit = "" if batch.places is None else f"chunks of {PIECE} tokens"
                ledger.add(units_of(batch), nats, batch.real, unit)
        if ledger is not None:
            ledger.gather()
        return self.figures(totals(sums), section, whole=limit is None)

    def heard(
        self, model: Causal | Conditional, split: str, limit: int | None = None
    ) -> Iterator[tuple[Batch, Tensor]]:
        return self._with_outputs(model, self.sections[split], limit)

    def _with_outputs(
        self, model: Causal | Conditional, section: Examples, limit: int | None
    ) -> Iterator[tuple[Batch, Tensor]]:
        """The batches of a section, or of about `limit` positions of it, with their outputs."""
        if limit is not None and not section.is_stream:
            section = section.share(limit / max(len(section.values(TARGET)), 1))
        yield from outputs(model, _first(self.batches(model, section), limit))

    def batches(self, model: Causal | Conditional, section: Examples) -> Iterator[Batch]:
        """The batches by which a section is evaluated."""
        return pooled_batches(section, EVALUATION_ROWS, self.form)

    def counted(self, batch: Batch, y: Tensor, nats: Tensor) -> dict[str, float]:
        """Sums over a batch that `figures` needs beside its nats and tokens; y [B, T, D'], nats [B, T]."""
        raise NotImplementedError

    def figures(self, sums: Sums, section: Examples, whole: bool) -> dict[str, float]:
        """The figures from the sums over all batches, of a whole section or of a part."""
        raise NotImplementedError

    def row_nats(
        self, model: Causal | Conditional, batches: Iterable[Batch], n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The nats of each of n examples [n], and how many positions it has [n]."""
        nats, counts = np.zeros(n), np.zeros(n, np.int64)
        for batch, y in outputs(model, batches):
            assert batch.rows is not None
            rows = batch.rows.cpu().numpy()
            nats[rows] = self.emission.losses(y, batch.y, batch.y_mask).double().sum(1).cpu().numpy()
            counts[rows] = batch.real.sum(1).cpu().numpy()
        return nats, counts


def _first(batches: Iterable[Batch], limit: int | None) -> Iterator[Batch]:
    """Batches until there are so many targets."""
    n = 0
    for batch in batches:
        yield batch
        n += batch.n_targets
        if limit is not None and n >= limit:
            return


def units_of(batch: Batch) -> Tensor:
    """The number [B, T] of the example, or of the piece of a stream, that each position belongs to."""
    places = torch.arange(batch.x.shape[1], device=batch.x.device)  # [T]
    if batch.places is None:
        assert batch.rows is not None
        return batch.rows[:, None].expand(-1, len(places))
    return (batch.places[:, None] + places) // PIECE
