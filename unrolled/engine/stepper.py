"""Steppers: a causal model as `step(x, state)`, whose single ticks run natively, and many of them in one call.

    step = stepper(decoder)        a `Stepper`, or None where a layer has no native form
    step = stepped(decoder)        the same, or the decoder itself

The state is the decoder's own, so that a chunk by torch and ticks by native code continue each other, and beams, saved
sessions and everything else that works on states knows no difference. As every layer may, a tick works in the memory of
the state it is given.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.emission import Chooser
from unrolled.core.errors import DataError
from unrolled.core.state import State
from unrolled.core.stopping import require_wanted
from unrolled.core.trace import tracing
from unrolled.decode.choose import ByDecoding, no_choice
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import Block, Step
from unrolled.decode.together import Ran
from unrolled.engine.builder import CannotLower
from unrolled.engine.operations import DrawingStruct
from unrolled.engine.program import NUMBERS, Program, Stream, fits, program_of
from unrolled.kernels import native

MOST_ROWS = 128  # of which native code makes a tick; more are for torch
FIRST_TICKS, MOST_TICKS = 4, 128  # of a call: the first tokens come at once, and a call can be interrupted
NO_CHOICE = 7  # the fault of native code that is none of its own


class Wanted(NamedTuple):
    """What is asked for by `Stepper.draw`."""

    prompt: Tensor
    lengths: Tensor
    settings: ByDecoding
    stops: Collection[int]
    max_steps: int
    noise: Noise


class Stepper:
    """The step of a decoder."""

    def __init__(self, decoder: Causal, program: Program) -> None:
        self.decoder, self.program = decoder, program
        self._step = native.function(program.library, f"step_{program.name}")
        self._draw = native.function(program.library, f"draw_{program.name}")

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if x.dim() < 2 or x.shape[1] != 1 or not self._may(x, state):
            return self.decoder(x, state)
        stream, program = Stream(self.program, state, len(x)), self.program
        stream.make_room(1)
        y = torch.empty(len(x), 1, program.d_out, dtype=program.dtype)
        lies = x.contiguous()  # which must live as long as the call
        given = ctypes.c_void_p(lies.data_ptr())
        what = (given, None) if program.reads == "tokens" else (None, given)
        fault = self._step(
            ctypes.byref(program.struct), ctypes.byref(stream.struct), *what, ctypes.c_void_p(y.data_ptr())
        )
        if fault:
            self._report(fault, x, state)
        return y, stream.tree()

    def _may(self, x: Tensor, state: State) -> bool:
        """Whether native code can make a tick of this."""
        wanted = torch.long if self.program.reads == "tokens" else self.program.dtype
        usual = x.dtype == wanted and x.is_cpu and native.is_plain(x) and 0 < len(x) <= MOST_ROWS
        free = not torch.is_grad_enabled() and not tracing() and not torch.is_autocast_enabled("cpu")
        free = free and not torch._C._are_functorch_transforms_active()
        return usual and free and fits(self.program, state, len(x))

    def _report(self, fault: int, x: Tensor, state: State) -> NoReturn:
        """Raise what is wrong, in the words of the layers where they find it too."""
        self.decoder(x, state)
        raise internal(fault)

    def draw(
        self,
        y: Tensor,
        state: State,
        prompt: Tensor,
        lengths: Tensor,
        choose: Chooser,
        stops: Collection[int],
        max_steps: int,
        noise: Noise,
    ) -> Iterator[Block] | None:
        """The ticks after the first chunk, many at a time; None where native code cannot make them."""
        if not self._draws(y, state, prompt, choose, noise):
            return None
        assert isinstance(choose, ByDecoding)
        wanted = Wanted(prompt, lengths, choose, stops, max_steps, noise)
        return self._blocks(Drawing(self.program, y, wanted), Stream(self.program, state, len(prompt)), wanted)

    def run(
        self, y: Tensor, state: State, history: Tensor, choose: Chooser, stops: Collection[int], n_ticks: int,
        noise: Noise,
    ) -> Ran | None:  # fmt: skip
        """At most so many ticks of one row after the tokens of a history [1, T]; None where native code cannot make
        them."""
        if not self._draws(y, state, history, choose, noise):
            return None
        assert isinstance(choose, ByDecoding)
        lengths = torch.tensor([history.shape[1]])
        drawing = Drawing(self.program, y, Wanted(history, lengths, choose, stops, n_ticks + 1, noise))
        stream = Stream(self.program, state, 1)
        stream.make_room(n_ticks)
        block = drawing.run(self._draw, stream, n_ticks)
        if drawing.fault == NO_CHOICE:
            raise DataError(no_choice(drawing.struct.row))
        if drawing.fault:
            self._report(drawing.fault, block.tokens[:, -1:], stream.tree())
        return Ran(block.tokens[0].tolist(), block.log_p[0].tolist(), drawing.y, stream.tree())

    def _draws(self, y: Tensor, state: State, prompt: Tensor, choose: Chooser, noise: Noise) -> bool:
        """Whether native code can choose by this."""
        usual = isinstance(choose, ByDecoding) and noise.n == 1 and y.dtype == self.program.dtype
        return usual and self.program.reads == "tokens" and prompt.dim() == 2 and self._may(prompt[:, :1], state)

    def _blocks(self, drawing: Drawing, stream: Stream, wanted: Wanted) -> Iterator[Block]:
        n, end = FIRST_TICKS, int(wanted.lengths.max()) + wanted.max_steps
        while drawing.alive.any():
            require_wanted()
            n_ticks = min(n, end - drawing.tick)
            stream.make_room(n_ticks)
            block = drawing.run(self._draw, stream, n_ticks)
            if block.tokens.shape[1]:
                yield block
            if drawing.fault == NO_CHOICE:
                raise DataError(no_choice(drawing.struct.row))
            if drawing.fault:
                self._report(drawing.fault, block.tokens[:, -1:], stream.tree())
            n = min(2 * n, MOST_TICKS)


class Drawing:
    """What is drawn for some rows, and by which settings."""

    def __init__(self, program: Program, y: Tensor, wanted: Wanted) -> None:
        prompt, lengths, asked = wanted.prompt, wanted.lengths, wanted.settings.decoding
        B, V = len(prompt), program.d_out
        self.program, self.tick, self.fault = program, int(lengths.min()), 0
        self.alive, seen = np.ones(B, np.uint8), np.zeros((B, V if asked.repetition_penalty != 1 else 0), np.uint8)
        if seen.size:
            np.put_along_axis(seen, prompt[:, : self.tick].numpy(), 1, axis=1)
        self._held: dict[str, NDArray[Any]] = {
            "never": np.array(sorted(wanted.settings.forbidden), np.int64),
            "stops": np.array(sorted(wanted.stops), np.int64),
            "given": np.ascontiguousarray(prompt.numpy()),
            "lengths": np.ascontiguousarray(lengths.numpy()),
            "ends": (lengths + wanted.max_steps).numpy(),
            "keys": wanted.noise.keys,
            "alive": self.alive,
            "seen": seen,
            "y": np.array(y.detach().numpy(), order="C"),
            "room": np.empty((3, V), NUMBERS[program.dtype]),
        }
        self.struct = DrawingStruct(
            n_choices=V, tick=self.tick, temperature=asked.temperature, top_p=asked.top_p,
            penalty=asked.repetition_penalty, top_k=asked.top_k or 0, n_never=len(self._held["never"]),
            n_stops=len(self._held["stops"]), n_given=prompt.shape[1],
            **{name: each.ctypes.data if each.size else None for name, each in self._held.items()},
        )  # fmt: skip

    @property
    def y(self) -> Tensor:
        """The outputs that the next choice is made from [B, V]."""
        return torch.from_numpy(self._held["y"])

    def run(self, draw: Callable[..., int], stream: Stream, n_ticks: int) -> Block:
        B = stream.rows
        tokens, log_p = np.zeros((B, n_ticks), np.int64), np.zeros((B, n_ticks))
        active, stopped = np.zeros((B, n_ticks), np.uint8), np.zeros((B, n_ticks), np.uint8)
        at = self.struct
        at.n_ticks, at.tokens, at.log_p = n_ticks, tokens.ctypes.data, log_p.ctypes.data
        at.active, at.stopped = active.ctypes.data, stopped.ctypes.data
        fault: int = draw(ctypes.byref(self.program.struct), ctypes.byref(stream.struct), ctypes.byref(at))
        self.fault, self.tick, n = fault, at.tick, at.n_done
        parts = (tokens, active.astype(bool), stopped.astype(bool), log_p)
        return Block(*(torch.from_numpy(np.ascontiguousarray(part[:, :n])) for part in parts))


def internal(fault: int) -> RuntimeError:
    return RuntimeError(f"internal error, please report it: a program met {native.FAULTS.get(fault, fault)}")


def stepper(decoder: Causal) -> Stepper | None:
    """The native step of a decoder as it is now; None where there is none."""
    return None if isinstance(found := lowered(decoder), str) else found


def lowered(decoder: Causal) -> Stepper | str:
    """The native step, or the reason why torch makes the ticks."""
    _, why, library = native.loaded()
    if library is None:
        return f"no native kernels ({why})"
    try:
        return Stepper(decoder, program_of(library, decoder))
    except CannotLower as reason:
        return str(reason)


def stepped(step: Step) -> Step:
    """A step as fast as it is known, with the same results."""
    return (stepper(step) or step) if isinstance(step, Causal) else step
