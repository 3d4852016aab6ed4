"""Sound flow: generate all samples of a recording in one parallel pass, by flows distilled from a model of next-sample.

    C = KL(P_S || P_T) + power * |P_x - P_y|^2 / |P_y|^2 - contrast * KL(P_S(c) || P_T(c'))
    KL(P_S || P_T) = mean over t of  H(p_S(x_t | z_<t), p_T(. | x_<t)) - (log s_t + 2)

The student P_S turns logistic noise z into samples x (layers/parts/flows.py): given z_<t, x_t is logistic with mu_t and
s_t, whose entropy log s_t + 2 is known in closed form; the cross entropy is a mean over `draws` of x_t from it. The
teacher P_T is a run of next-sample with a logistic mixture, whose weights rest. The power loss compares how much power
each frequency has with that of a recording under the same condition; c' is the condition of another recording. Without
a teacher there is the power loss alone. Van den Oord et al. 2018 (Parallel WaveNet).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core import task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.errors import DataError, UsageError
from unrolled.core.forward import evaluating, outputs
from unrolled.core.front import option
from unrolled.core.sharing import shared_by
from unrolled.core.spec import Asks, ConditionPorts, Ports
from unrolled.data.codecs.samples import MU
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.sampler import Pooled, pooled_batches
from unrolled.emissions.logistic_mixture import HALF, LogisticMixture
from unrolled.objectives import sound
from unrolled.tasks._sound import SoundTask
from unrolled.tasks._sound_config import SoundConfig
from unrolled.tasks._sound_pictures import pictures_of_sound
from unrolled.tasks._sound_writing import steps_of

FRAME = 0.032  # seconds of a frame of the power loss
ROWS = 8  # that are evaluated together
KEPT, SHOWN = 10, 4000  # recordings that the saved predictions have, and samples of each
SEED_OF_DRAWS = 1  # of evaluations


class Config(SoundConfig):
    piece: float = Field(0.25, gt=0, le=60)
    """Seconds of an example: longer recordings are cut into such pieces."""
    teacher_run: str | None = None
    """The run that is distilled: of next-sample, with a logistic mixture; `unrolled distill` names it."""
    flows: int = Field(4, ge=1, le=20)
    """Flows, each with a model of its own."""
    power: float = Field(1.0, ge=0)
    """Weight of the power loss."""
    contrast: float = Field(0.0, ge=0, lt=1)
    """Weight of the contrastive term: how unlike the student is to the teacher under another condition."""
    draws: int = Field(4, ge=1, le=1000)
    """Draws of each sample for the cross entropy."""


class Task(SoundTask):
    SCORE = "spectral_distance"
    FIGURES = ("spectral_distance", "kl")
    UNIT = "samples"
    DEFAULT_MODEL = "wavenet"
    ADVICE = {"wavenet": {"model.d_model": 32, "model.d_skip": 64}}
    FOR_KIND = {"causal": {"batching.batch_size": 4, "ends.d_embedding": 32}}
    PREDICTS = False
    OBEYS = {"generate": ("n", "seconds", "max_tokens", "temperature", "seed", "condition")}
    MIXES = False

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.teacher: Causal | Conditional | None = None
        self.teaches: Any = None  # the emission of the teacher

    @property
    def criterion(self) -> str:
        return self.SCORE if self.teacher is None else "kl"

    @property
    def teacher_run(self) -> str | None:
        return self.config.teacher_run

    def learn_from_run(self, teacher: Any, model: Any, place: str) -> None:
        """Before `prepare`: samples and conditions are those of the teacher."""
        if not isinstance(teacher, SoundTask) or isinstance(teacher, Task):
            raise UsageError(f"{place}: expected a run of the task next-sample as the teacher")
        if not teacher.is_numbers:
            raise UsageError(
                f"{place}: gives a probability to each level, which has no gradient in the samples; train the teacher "
                f"with {option('output', 'logistic-mixture')}"
            )
        wrong = [name for name in ("bits", "features") if dict(self.config)[name] != dict(teacher.config)[name]]
        if wrong:
            raise UsageError(f"{place}: its {wrong[0]} is {dict(teacher.config)[wrong[0]]}; set the same here")
        self.rate, self.conditions, self._is_saved = teacher.rate, teacher.conditions, True
        self.teacher, self.teaches = model.eval().requires_grad_(False), teacher.emission

    def prepare(self, source: Any) -> None:
        rate = self.rate
        super().prepare(source)
        if self.teacher is not None and self.rate != rate:
            raise DataError(f"the data has {self.rate:,} samples a second, but the teacher has {rate:,}; convert it")

    # ---- what is asked of a model

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "numbers", None, "flow")

    def ports(self) -> Ports:
        width = self.conditions.width
        condition = ConditionPorts(width, self.conditions.hop) if width else None
        return Ports(0, 2, d_in=1, targets="flow", condition=condition, flows=self.config.flows)

    @property
    def emission(self) -> LogisticMixture:
        """Outputs (x, mu, log s) are those of a mixture of one component, whose only weight is 1 whatever x is."""
        return LogisticMixture(1, self.codec.levels)

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return Noised(Pooled(self.sections["train"], batching.batch_size, self.form, seed), seed, self._noisy)

    def _noisy(self, batch: Batch, seed: int) -> Batch:
        """Noise to read, and the samples as targets."""
        batch = self.as_read(batch)
        return replace(batch, x=noise((len(batch.x), batch.x.shape[1], 1), seed), mask=None)

    def loss(self, y: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        terms = self.terms(y, batch)
        return sum((total / count for total, count in terms), y.new_zeros(())), torch.ones((), device=y.device)

    def terms(self, y: Tensor, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        real = batch.real
        power = self._power_loss(y, batch, real)  # [B]
        terms = [(self.config.power * power.sum(), power.new_tensor(len(power)))]
        if self.teacher is not None:
            count = real.sum().clamp(min=1)
            terms.append((self.kl(y, real, batch.source, batch.source_mask).sum(), count))
            if self.config.contrast and batch.source is not None:
                other = torch.arange(len(y), device=y.device).roll(1)
                masks = None if batch.source_mask is None else batch.source_mask[other]
                terms.append((-self.config.contrast * self.kl(y, real, batch.source[other], masks).sum(), count))
        return terms

    def kl(
        self, y: Tensor, real: Tensor, source: Any, mask: Any = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """KL(p_S(x_t | z_<t) || p_T(. | x_<t)) [B, T] by draws; 0 where nothing is real."""
        assert self.teacher is not None
        x, mu, log_s = y.unbind(-1)
        before = torch.cat([x.new_zeros(len(x), 1), x[:, :-1]], dim=1).unsqueeze(-1)  # 0 for <start>
        decoder, state = begin(self.teacher, source, mask)
        told = decoder(before, state)[0].unsqueeze(-2)  # [B, T, 1, 3 K]
        u = torch.rand((*x.shape, self.config.draws), generator=generator).to(x)
        drawn = mu[..., None] + log_s.exp()[..., None] * torch.logit(u, eps=HALF_SINGLE)  # [B, T, draws]
        log_p = self.teaches.log_mass(told, drawn) - math.log(2 * self.teaches.half)
        return (-log_p.mean(-1) - sound.logistic_entropy(log_s)).masked_fill(~real, 0.0)

    def _power_loss(self, y: Tensor, batch: Batch, real: Tensor) -> Tensor:
        ours, theirs = self._heard_of(y, batch, real)
        return sound.power_loss(ours, theirs, self._frame(ours.shape[1]))

    def _heard_of(self, y: Tensor, batch: Batch, real: Tensor) -> tuple[Tensor, Tensor]:
        """Amplitudes [B, T] of outputs and of targets, 0 behind the end of a row."""
        ours, theirs = self._amplitude(y[..., 0]), self._amplitude(batch.y[..., 0])
        return ours.masked_fill(~real, 0.0), theirs.masked_fill(~real, 0.0)

    def _amplitude(self, u: Tensor) -> Tensor:
        """What is heard of places, also of those that are too loud, so that they have a gradient."""
        if self.codec.bits != 8:
            return u
        return u.sign() * torch.expm1(u.abs().clamp(max=2.0) * math.log1p(MU)) / MU

    def _frame(self, T: int) -> int:
        return max(1, min(round(FRAME * self.rate), T))

    # ---- figures

    def evaluate(
        self, model: Causal | Conditional, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        return self.measure(model, self.sections[split], limit, ledger)

    def measure(
        self, model: Causal | Conditional, section: Examples, limit: int | None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        """How far the sound is from recordings under the same conditions, and from the teacher where it is there."""
        if limit is not None:
            section = section.share(limit / max(len(section.values(TARGET)), 1))
        with shared_by(None):  # the draws are those of one process
            return self._distances(model, section, ledger)

    def _distances(
        self, model: Causal | Conditional, section: Examples, ledger: task.Ledger | None
    ) -> dict[str, float]:
        draws = torch.Generator().manual_seed(SEED_OF_DRAWS)
        distances, n, kl, tokens = 0.0, 0, 0.0, 0
        for batch, y in outputs(model, self.batches(model, section)):
            real = batch.real
            ours, theirs = self._heard_of(y.clamp(-1, 1), batch, real)
            found = sound.spectral_distance(ours, theirs, self._frame(ours.shape[1])).double()  # [B]
            distances, n, tokens = distances + float(found.sum()), n + len(found), tokens + int(real.sum())
            if ledger is not None and batch.rows is not None:
                ledger.add(batch.rows, found, torch.ones_like(found))
            if self.teacher is not None:
                with torch.no_grad():
                    kl += float(self.kl(y, real, batch.source, batch.source_mask, draws).double().sum())
        if n == 0:
            raise DataError("there are no samples to predict in this split: give more sound")
        figures = {"spectral_distance": distances / n, "tokens": tokens}
        return figures if self.teacher is None else {**figures, "kl": kl / max(tokens, 1)}

    def batches(self, model: Causal | Conditional, section: Examples) -> Iterator[Batch]:
        for number, batch in enumerate(pooled_batches(section, ROWS, self.form)):
            yield self._noisy(batch, number)

    def baselines(self) -> list[task.Baseline]:
        return []

    def predictions(self, model: Causal | Conditional, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section = self.sections[split].first(min(limit, KEPT))
        for number in range(section.n_examples):
            each = section.take(np.array([number]))
            batch, y = next(outputs(model, self.batches(model, each)))
            heard = self.codec.heard(y[0, :SHOWN, 0].cpu().numpy()).round(5).tolist()
            known = {} if batch.source is None else {"condition": batch.source[0].tolist()}
            told = {"spectral_distance": self.measure(model, each, None)["spectral_distance"]}
            yield {"text": f"{split}, piece {number}", **told, "samples": heard, **known}

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """Noise as long as some samples, with their condition."""
        batch, names = super().example(value)
        return replace(batch, x=noise((1, batch.x.shape[1], 1), 0), mask=None), names

    def predict(
        self, model: Causal | Conditional, given: Sequence[task.Given], decoding: Any = None
    ) -> Iterator[dict[str, Any]]:
        raise UsageError("a run of sound-flow generates sound; it makes no predictions for recordings")

    # ---- writing

    def uses(self) -> list[task.Use]:
        words = self.conditions.example()
        started = ("--condition", words) if words else ()
        return [task.Use("write a second of sound", "generate", ("--seconds", "1", *started, "-o", "NEW_FILE.wav"))]

    def generate(self, model: Causal | Conditional, prompt: task.Given, decoding: Any) -> list[dict[str, Any]]:
        """n recordings of `seconds` in one pass each, the most probable first."""
        if prompt.value is not None and not (isinstance(prompt.value, str) and not prompt.value):
            raise UsageError("a flow generates all samples at once, so it cannot continue a prompt")
        vectors = self._asked(prompt.condition)
        long = vectors is not None and len(vectors) > 1 and not (decoding.max_tokens or dict(decoding).get("seconds"))
        steps = len(vectors) * self.conditions.hop if long and vectors is not None else steps_of(decoding, self.rate)
        asked = decoding.settled(samples=True, max_tokens=steps)
        made = [self._drawn(model, vectors, steps, asked, number) for number in range(asked.n)]
        return sorted(made, key=lambda each: -float(each["logp"]))

    def go_on(self, begun: Any, decoding: Any) -> list[dict[str, Any]]:
        raise UsageError("a flow generates all samples at once, so it cannot continue from the middle of a stream")

    def _drawn(
        self, model: Causal | Conditional, vectors: NDArray[Any] | None, steps: int, asked: Any, number: int
    ) -> dict[str, Any]:
        z = asked.temperature * noise((1, steps, 1), asked.seed, number)
        with evaluating(model) as device:
            source = None if vectors is None else torch.from_numpy(vectors)[None].to(device)
            decoder, state = begin(model, source)
            x, _, log_s = decoder(z.to(device), state)[0][0].double().unbind(-1)  # [T] each
        z = z[0, :, 0].to(x)
        log_p = F.logsigmoid(z) + F.logsigmoid(-z) - log_s + math.log(2 * self.emission.half)  # of about a level
        facts = {"given": 0, "rate": self.rate, "seconds": steps / self.rate}
        return {"samples": self.codec.heard(x.cpu().numpy()), "logp": float(log_p.sum()), **facts}

    def pictures(self, model: Causal | Conditional, split: str) -> dict[str, Any]:
        """A piece of the data beside what the flow makes of noise under its condition."""
        section = self.sections[split].first(1)
        batch, y = next(outputs(model, self.batches(model, section)))
        n = len(section.fields[TARGET][0])
        found = {f"{split} data": batch.y[0, :n, 0], "generated": y[0, :n, 0]}
        heard = {name: self.codec.heard(each.cpu().numpy()) for name, each in found.items()}
        return pictures_of_sound(heard, self.rate, "A piece of the data, and what the flow makes of noise.")


HALF_SINGLE = 1e-7  # nearer to 0 or 1 single precision has no logit


def noise(shape: tuple[int, ...], seed: int, number: int = 0) -> Tensor:
    """Logistic noise, the same for the same numbers."""
    u = np.random.Generator(np.random.PCG64([seed, number])).random(shape)
    return torch.logit(torch.from_numpy(u + HALF)).float()


class Noised(task.Sampler):
    """Batches of recordings, as noise and targets."""

    def __init__(self, inner: task.Sampler, seed: int, read: Callable[[Batch, int], Batch]) -> None:
        self.inner, self._seed, self._read = inner, seed, read
        self.steps_per_epoch, self.tokens_per_step = inner.steps_per_epoch, inner.tokens_per_step
        self.notes = inner.notes

    def batch(self, step: int) -> Batch:
        return self._read(self.inner.batch(step), self._seed * 1_000_003 + step)
