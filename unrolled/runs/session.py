"""A session: a stream with its state. Rows come one by one, and each is answered when it can be.

Pushing rows one by one gives what the whole series gives (the law of chunks), at the same cost for every row where the
state of the model does not grow. A session can be saved and restored anywhere in between.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import torch
from safetensors.torch import load as tensors_in
from safetensors.torch import save as bytes_of
from torch import Tensor

from unrolled.core.errors import DataError, UsageError
from unrolled.core.finite import require_finite
from unrolled.core.forward import device_of, evaluating
from unrolled.core.state import clone, leaves
from unrolled.core.stopping import require_wanted
from unrolled.core.verb import Result, Served
from unrolled.decode.text import Begun
from unrolled.engine.stepper import stepped
from unrolled.results import Tick
from unrolled.runs.asking import asked_of
from unrolled.runs.storage.state_json import flatten, unflatten

FACTS = "facts"  # the tensor that holds JSON


class Session:
    """`session = run.session()`, then `session.push(row)` for each row, and `session.end()` where a series ends.

    A row is what one tick has: the numbers of one step, a word, a frame; of text any piece, which may be several
    tokens. `condition` is the class that starts the series of a run that was trained with one.
    """

    def __init__(self, served: Served, condition: str | None = None) -> None:
        self._served, self._model, self._device = served, served.model, device_of(served.model)
        with evaluating(self._model):
            self.flow = served.task.flow(served.model, condition)
        self._start()

    def _start(self) -> None:
        with evaluating(self._model):
            self._step = stepped(self.flow.layer)  # by the weights as they are now
        self.n_read = 0  # ticks of this series
        self._state = clone(self.flow.state)
        self._before = self.flow.first  # what the layer has not read yet, where rows are predicted
        self._owed: list[Tensor] = []  # the inputs of ticks whose results come late

    @property
    def most(self) -> int | None:
        """Ticks that a series may have; None: any number."""
        most = self.flow.layer.max_length
        return most if most is None or self.flow.last is None else most - 1  # the end is one too

    @property
    def grows(self) -> bool:
        """Whether every tick costs more than the one before, because the model looks at all of them again."""
        return self.flow.layer.state_grows

    @property
    def n_bytes(self) -> int:
        """Bytes of memory that its state takes."""
        return sum(leaf.nbytes for leaf in leaves(self._state))

    def __repr__(self) -> str:
        cost = "every tick costs more than the one before" if self.grows else "every tick costs the same"
        return f"Session of {self._served.place} (task {self._served.name}): {self.n_read} ticks read, {cost}"

    def push(self, row: Any, place: str = "the row") -> list[Tick]:
        """The results that there are now: none, one or several."""
        x = self.flow.read(row, place)  # [1, n, ..]
        if self.most is not None and self.n_read + x.shape[1] > self.most:
            raise UsageError(f"{place}: this model has positions for at most {self.most} ticks; end the session before")
        with evaluating(self._model):
            return [each for t in range(x.shape[1]) for each in self._tick(x[:, t : t + 1])]

    def end(self) -> list[Tick]:
        """The results that are still owed; the next row begins a new series."""
        owed = [self.flow.blank] * self.flow.delay + ([] if self.flow.last is None else [self.flow.last])
        try:
            with evaluating(self._model):
                return [each for x in owed if self.n_read for each in self._tick(x)]
        finally:
            self._start()

    def _tick(self, x: Tensor) -> list[Tick]:
        """x [1, 1, ..]: read it, or what came before it."""
        require_wanted()
        flow, self.n_read = self.flow, self.n_read + 1
        read = x if self._before is None else self._before
        if flow.onward is not None:
            result = flow.onward(read.to(self._device), clone(self._state))
            _, self._state = self._step(read.to(self._device), self._state)
            return [_finite(result)]
        y, self._state = self._step(read.to(self._device), self._state)  # [1, 1, D']
        if self._before is not None:
            self._before = x
            return [self._told(y, x)]
        self._owed.append(x)
        return [self._told(y, self._owed.pop(0))] if len(self._owed) > flow.delay else []

    def _told(self, y: Tensor, x: Tensor) -> Tick:
        return _finite(self.flow.told(y[0, 0].cpu(), x[0, 0]))

    # ---- from here

    def ahead(self, verb: str = "generate", **request: Any) -> list[Result]:
        """What a verb makes of the stream so far, which stays as it is: `session.ahead("generate", max_tokens=20)`."""
        spec, asked = asked_of(self._served, verb, request)
        if spec.ahead is None or self._before is None:
            raise UsageError(f"'{verb}' cannot continue a stream of the task '{self._served.name}'")
        with evaluating(self._model):
            begun = Begun(self._before.to(self._device), self.flow.layer, clone(self._state))
            return list(spec.ahead(self._served, begun, asked))

    # ---- kept

    def save(self) -> bytes:
        """All that the session remembers; `restore` of a session of the same run takes it back."""
        tensors, tree = flatten((self._state, self._before, self._owed))
        facts = {"tree": tree, "n_read": self.n_read, "weights": self._weights()}
        kept = {f"state/{name}": value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
        return bytes_of({**kept, FACTS: torch.frombuffer(bytearray(json.dumps(facts).encode()), dtype=torch.uint8)})

    def restore(self, saved: bytes) -> None:
        """Continue where a session of the same run was saved."""
        try:
            kept = tensors_in(saved)
            facts = json.loads(bytes(kept.pop(FACTS).tolist()))
            tree, n_read, weights = facts["tree"], int(facts["n_read"]), facts["weights"]
        except Exception as error:  # whatever these bytes are
            raise DataError(f"not a saved session ({type(error).__name__})") from None
        if weights != self._weights():
            raise DataError("this session was saved with the weights of another run")
        with evaluating(self._model):
            _, template = self.flow.layer(self.flow.blank.to(self._device), clone(self.flow.state))
        tensors = {name.removeprefix("state/"): value.to(self._device) for name, value in kept.items()}
        state, before, owed = unflatten(tensors, tree, (template, self.flow.first, None))
        for kept_leaf, leaf in zip(leaves(state), leaves(template)):
            if kept_leaf.dtype != leaf.dtype or kept_leaf.dim() != leaf.dim() or kept_leaf.shape[:1] != leaf.shape[:1]:
                raise DataError("this session was saved by another model: the structure of its state differs")
        self._state, self.n_read = state, n_read
        self._before = None if before is None else before.cpu()
        self._owed = [each.cpu() for each in owed]

    def _weights(self) -> str:
        """What identifies the weights of a model."""
        found = hashlib.sha256()
        for name, value in self._model.state_dict().items():
            found.update(
                name.encode() + value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
        return found.hexdigest()


def _finite(result: dict[str, Any]) -> Tick:
    require_finite(result)
    return cast(Tick, result)
