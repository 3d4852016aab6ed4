"""The training loop: knows a task, a model and a run directory, and no names of models.

A step is a pure function of (weights, optimiser, carried state, step number): the batch and the noise of dropout are
functions of (seed, step). So a checkpoint needs no random state and no data position beyond one integer, and a run
that is killed and resumed ends with the same bits.
"""

from __future__ import annotations

import math
import time
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from unrolled.core import state as states
from unrolled.core.batch import Batch
from unrolled.core.causal import Encoder, decoder_of
from unrolled.core.compose import pick
from unrolled.core.errors import DataError, Diverged, NotTrained
from unrolled.core.forward import carries, forward, start
from unrolled.core.front import option
from unrolled.core.sharing import shared_by
from unrolled.core.state import State
from unrolled.core.task import Learner, Model, Task
from unrolled.runs.config import RunConfig
from unrolled.runs.parts import Frozen
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import stopped
from unrolled.training.batches import sampler_of
from unrolled.training.mixing import mixed, truth_share
from unrolled.training.optimiser import OPTIMISERS
from unrolled.training.precision import autocast
from unrolled.training.processes import Abandoned, GaveUp, One, Processes
from unrolled.training.progress import Progress
from unrolled.training.sampling import written
from unrolled.training.saving import Position, restored, saved
from unrolled.training.schedule import Plan, rate_of
from unrolled.training.seeds import noise_seed, seed_noise
from unrolled.training.signals import StopFlag
from unrolled.training.writers import writers

PLATEAU_PATIENCE, PLATEAU_CUT = 2, 0.5
BACKWARD = 3.0  # a training step takes about so many times as long as evaluating as much data
WRITING = 0.15  # of a time budget: the most that goes into writing texts for the final figures


class Loop:
    """One run being trained."""

    def __init__(
        self,
        config: RunConfig,
        task: Task,
        model: Model,
        frozen: Frozen,
        run: RunDirectory,
        progress: Progress,
        started: float,
        processes: Processes | None = None,
    ) -> None:
        self.config, self.task, self.model, self.run, self.progress = config, task, model, run, progress
        self.frozen, self.processes = frozen, processes or One()
        self.processes.setup(model)
        self.judged = model  # the one that is evaluated
        self.carries = carries(model, config.batching.windows)
        self.sampler = sampler_of(config, task, model)
        own = self.processes.part
        self.optimiser = OPTIMISERS[config.optimiser.optimiser](model, config.optimiser, config.start, own)
        self.plan = Plan(config.budget, config.optimiser, self.sampler.steps_per_epoch, self.sampler.tokens_per_step)
        self.checkpoints, self.events = writers(run, model, self.processes.rank)
        self.at = Position()
        self.state: State = None
        self.started = started  # when the budget began to run
        self.reserve = 0.0  # seconds kept for the figures at the end
        self.needs = 0.0  # seconds until there is a second evaluation, and the figures at the end
        self.running: list[float] = []  # training losses since the last evaluation
        self.sound = True  # the last score on validation data was finite
        self.stop = StopFlag()
        self.now, self.asked = time.monotonic(), False  # as all processes know them
        self.saved, self.saved_step = started, -1  # when, and at which step, the last checkpoint was written

    # ---- one step

    def _forward(self, batch: Batch) -> Tensor:
        """Outputs for a batch; the state is carried, detached, to the next one."""
        teacher = truth_share(self.config.optimiser, self.at.step)
        if teacher < 1 and not isinstance(self.model, Encoder):
            decoder, state = start(self.model, batch, self.state)
            y, state = mixed(decoder, batch.x, state, teacher, self._noise())
            y = y if batch.at is None else pick(y, batch.at)
        else:
            y, state = forward(self.model, batch, self.state)
        self.state = self._carried(state, batch)
        return y  # [B, T, V]

    def _carried(self, state: State, batch: Batch) -> State:
        """What the next batch continues from: nothing where it starts every row anew, such as from a source."""
        return states.detach(state) if self.carries and batch.source_mask is None else None

    def _noise(self) -> int:
        """The seed of the noise of a step, which differs between processes."""
        return noise_seed(self.config.seed, self.at.step, self.processes.rank)

    def _gradient(self, step: int) -> tuple[float, float]:
        """Loss and gradient norm of one optimiser step's batches."""
        settings, together = self.config.optimiser, self.processes
        loss = 0.0
        for part in range(settings.accumulate):
            batch, counts = together.own(self.sampler.batch(step * settings.accumulate + part))
            batch = batch.to(self.config.device)
            if isinstance(self.model, Learner):
                known = self.model.learn(batch, self.optimiser.rate)
                loss += known[0] / max(known[1], 1) / settings.accumulate
                continue
            with autocast(self.config):
                y = self._forward(batch)
            terms = self.task.terms(y.float(), batch)
            means = [self._mean(*term, counts, len(terms) > 1) for term in terms]
            mean = reduce(add, means) / settings.accumulate
            together.backward(mean)
            loss += float(mean.detach())
        together.collect(self.optimiser.weights)
        norm = together.clip([*self.model.parameters()], settings.clip or math.inf)
        return together.mean(loss), norm

    def _mean(self, total: Tensor, count: Tensor, counts: bool, several: bool) -> Tensor:
        """This process's share of the mean over all targets of a batch."""
        if not counts:
            total, count = total * 0, count * 0
        count = self.processes.total(count)
        return total / (count.clamp_min(1) if several else count)

    def _step(self) -> float:
        """Move the weights once; returns the loss (NaN when the batch was skipped)."""
        at, settings = self.at, self.config.optimiser
        seed_noise(self._noise(), self.config.device)
        self.frozen.rest()
        self.optimiser.rate = rate_of(settings, at.step, self.plan.horizon, at.plateau, at.guard.scale)
        self.optimiser.begin(at.step)
        loss, norm = self._gradient(at.step)
        verdict = at.guard.judge(at.step, loss, norm)
        if verdict == "fine":
            self.optimiser.step()
        else:
            self.state = None
            self._trouble(verdict, loss, norm)
        at.step += 1
        return loss if verdict == "fine" else math.nan

    def _trouble(self, verdict: str, loss: float, norm: float) -> None:
        at = self.at
        text = f"batch {at.step}: loss {loss}, gradient norm {norm}: not finite, batch skipped"
        if verdict == "roll back":
            guard = at.guard
            found = self.checkpoints.of_step(at.target)
            if found is not None:
                self._restore(found.tensors, found.facts)
                self.events.resume(self.at.step)
            self.processes.wait()  # until all have read it
            self.at.guard = guard
            back = at.step + 1 if found is None else self.at.step
            rate = f"the learning rate times {guard.scale:.3g}"
            text = f"batch {at.step}: still not finite, rolled back to step {back} with {rate}"
        self._note(at.step, text)

    def _note(self, step: int, text: str) -> None:
        """Something that went wrong, for who watches and for who reads later."""
        self.progress.say(text)
        self.run.append_metrics({"step": step, "event": text})

    # ---- looking

    def _abandon_when_asked(self, *_: Any) -> None:
        late = self.at.looked < 0 and self.processes.rank == 0 and self.left(time.monotonic()) <= 0
        if self.stop.asked or late:  # the time is up before the first score
            raise Abandoned

    def _look(self) -> None:
        """Evaluate, unless somebody asks to stop meanwhile, or the time is up before anything was trained."""
        self.judged = self.processes.evaluated(self.model)
        watched = decoder_of(self.judged).register_forward_pre_hook(self._abandon_when_asked)
        try:
            self._evaluate()
        except GaveUp:
            pass
        except Abandoned:
            self.processes.give_up()
        finally:
            watched.remove()
            self._hear()

    def _evaluate(self) -> None:
        at = self.at
        self._hear()
        before = self.now
        with shared_by(self.processes.others):
            figures = self.task.evaluate(self.judged, "valid", limit=self.config.watching.evaluate_tokens)
        if not self.processes.finished():
            raise GaveUp
        self._hear()
        spent = self.now - before
        at.looked = at.step
        self.reserve = self.processes.first(lambda: self._reserve(spent, figures["tokens"]))
        if at.step == 0:
            self.needs = self._needs(spent, figures["tokens"])
        score = figures[self.task.criterion]
        self.sound = math.isfinite(score)
        if not self.sound:
            at.stale += 1
            text = f"{self.task.criterion} is {score} on validation data, so these weights were not saved"
            self._note(at.step, f"step {at.step}: {text}")
            return
        kept = not at.guard.skipped  # weights that fail are not
        better, best = kept and score < at.best, kept and score <= at.best  # of equal ones the later: trained longer
        if best:
            at.best, at.best_step = score, at.step
            self.run.write_tensors("model.safetensors", self.processes.whole(self.model.state_dict()))
        at.stale = 0 if better else at.stale + 1
        if at.stale and self.config.optimiser.schedule == "plateau" and at.stale % PLATEAU_PATIENCE == 0:
            at.plateau *= PLATEAU_CUT
        train = sum(self.running) / len(self.running) if self.running else math.nan
        self.running = []
        shown = {self.task.criterion: score} | ({"train": train} if math.isfinite(train) else {})
        known = {name: value for name, value in figures.items() if math.isfinite(value)}
        line = {"step": at.step, "split": "valid", **known} | ({"train_loss": train} if math.isfinite(train) else {})
        self.run.append_metrics(line | {"rate": self.optimiser.rate, "seconds": round(at.elapsed, 3)})
        self.events.scalars(at.step, {f"valid/{k}": v for k, v in known.items()})
        self.progress.evaluation(at.step, shown, best)
        self.progress.sample(lambda: written(self.task, self.judged))

    def _reserve(self, spent: float, tokens: float) -> float:
        """Seconds that a last evaluation and the figures on all held-out data will take, from the speed of this one."""
        left = sum(map(self.task.size, self.task.held_out()))
        most = math.inf if self.plan.time is None else WRITING * self.plan.time
        return 1.5 * spent * left / max(tokens, 1) + min(1.5 * self.task.more_seconds(self.judged), most) + spent + 0.5

    def _needs(self, spent: float, tokens: float) -> float:
        """Seconds up to a second evaluation and the figures at the end, from the speed of the first evaluation."""
        per_step = self.task.size("train") / self.sampler.steps_per_epoch * self.config.optimiser.accumulate
        training = self.config.watching.evaluate_every * per_step * BACKWARD * spent / max(tokens, 1)
        return self.used() + training + spent + self.reserve

    # ---- saving

    def save(self, target: bool = False) -> None:
        """Add a checkpoint, the first always; later none that going back to would not help: weights that fail."""
        if self.at.step > 0 and (not self.sound or self.at.guard.skipped):
            return
        self.at.target = self.at.step if target else self.at.target
        tensors, structure = saved(self.processes, self.model, self.optimiser, self.state)
        facts = self.at.facts()
        facts |= {"plan": self.plan.state(), "structure": structure, "running": self.running, "reserve": self.reserve}
        facts["metrics_bytes"] = self.run.metrics_bytes()
        self.events.flush()  # before, so that a checkpoint is never ahead of the curves
        self.checkpoints.save(self.at.step, tensors, facts, self.at.target)
        self.saved, self.saved_step = self.now, self.at.step

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.state = restored(self.processes, self.model, self.optimiser, tensors, facts["structure"], self._some_state)
        self.state = states.to(self.state, self.config.device)
        self.at = Position.of(facts)
        self.plan.restore(facts["plan"])
        if (at := self.at).step:  # an evaluation may come before the next step
            own = self.config.optimiser, at.step - 1, self.plan.horizon, at.plateau, at.guard.scale
            self.optimiser.rate = rate_of(*own)
        self.running, self.reserve = list(facts["running"]), float(facts.get("reserve", 0.0))
        self.sound = True

    def _some_state(self) -> State:
        """A state of the form that this model carries: what a batch leaves behind. Its values mean nothing."""
        with torch.no_grad(), autocast(self.config):
            self._forward(self.processes.own(self.sampler.batch(0))[0].to(self.config.device))
        return self.state

    def resume(self) -> None:
        """Resume from the last good checkpoint; what a damaged one cost is said."""
        found = self.checkpoints.latest()
        if found is None:
            if (last := self.run.last_step()) > 0:  # the first is saved before the first step
                raise DataError(
                    f"{self.checkpoints.path}: the checkpoints are gone, but metrics.jsonl shows that this run "
                    f"was trained up to step {last} or further; restore them, or start a new run"
                )
            self.run.cut_metrics(-1)
            self.progress.say("there is no checkpoint, and metrics.jsonl shows no training step: starting at step 0")
            return
        self._restore(found.tensors, found.facts)
        self.run.cut_metrics(self.at.step, found.facts.get("metrics_bytes"))
        self.events.resume(self.at.step)
        self.saved_step = self.at.step
        for text in found.notes:
            self._note(found.step, text)
        self.now = time.monotonic()
        self.started = self.now - self.at.elapsed
        self.progress.say(f"resuming at step {self.at.step}")

    # ---- the whole

    def left(self, now: float | None = None) -> float:
        """Seconds of a time budget that are left for training."""
        used = self.used() if now is None else now - self.started
        return math.inf if self.plan.time is None else self.plan.time - self.reserve - used

    def used(self) -> float:
        """Seconds of the budget that are used."""
        return self.now - self.started

    def _hear(self) -> None:
        """What time it is and whether anybody asks to stop: what is decided by either is decided alike everywhere."""
        self.now, self.asked = self.processes.heard(time.monotonic(), self.stop.asked)

    def train(self) -> None:
        """Run to the end of the budget; raises Interrupted after saving when asked to stop."""
        self.started = self.processes.first(lambda: self.started)
        self._hear()
        self.saved = self.now
        begun = self.now - self.at.training
        self.model.train()
        if self.frozen.fixed:
            self.progress.say(self.frozen.words())
        self.progress.begin(None)
        with self.stop:
            try:
                if self._due():
                    self._look_and_save()
                while not self.plan.done(self.at.step, self.left()):
                    loss = self._step()
                    self._hear()
                    if math.isfinite(loss):
                        self.running.append(loss)
                        self.events.note(self.at.step, {"train/loss": loss})
                    self.at.elapsed, self.at.training = self.used(), self.now - begun
                    self.plan.settle(self.at.step, self.at.training, self.left())
                    if self._look_and_save():
                        break
                    self._show(loss)
                if self.at.step == 0:
                    raise self._not_trained()
                self.plan.close(self.at.step)
                if self.at.looked != self.at.step:
                    self._look()
                if self.saved_step != self.at.step:
                    self.save()
                self._hear()
                self._leave_if_asked()
                if not math.isfinite(self.at.best):
                    raise self._diverged()
            finally:
                self.progress.end()
                self.events.close()
        self._hear()
        self._leave_if_asked()  # by a signal since the last look

    def _not_trained(self) -> NotTrained:
        self.needs = self.needs or 2 * self.used()  # the first evaluation did not come to its end
        enough = f"{option('time')} of about {self.needs:.0f} s"
        return NotTrained(
            "no training steps were run: preparing the data and evaluation alone need "
            f"{self.used() + self.reserve:.0f} s of the budget; use a {enough}, or less held-out data with "
            f"{option('held_out')}",
            self.needs,
        )

    def _diverged(self) -> Diverged:
        smaller = f"lower the learning rate with {option('lr')} or clip gradients with {option('clip')}"
        return Diverged(f"training diverged: {self.task.criterion} was never finite on validation data; {smaller}")

    def _due(self) -> bool:
        """Whether this step has an evaluation that was not made yet."""
        return self.at.step % self.config.watching.evaluate_every == 0 and self.at.looked != self.at.step

    def _look_and_save(self) -> bool:
        """Evaluate and save when it is time; True when training should stop."""
        at = self.at
        if due := self._due():
            self._look()
        owed = at.step - at.target > self.config.watching.evaluate_every  # one was left out
        if self.asked or due or owed or self.now - self.saved > self.config.watching.save_every:
            self.save(target=at.looked == at.step if due else owed)
        self._leave_if_asked()
        patience = self.config.budget.patience
        return patience is not None and at.stale >= patience

    def _leave_if_asked(self) -> None:
        if self.asked:
            saved = "saved" if self.saved_step == self.at.step else f"the last checkpoint is of step {self.saved_step}"
            raise stopped(f"stopped at step {self.at.step} and {saved}", self.run.path, self.config)

    def _show(self, loss: float) -> None:
        at, plan = self.at, self.plan
        speed = at.step * self.sampler.tokens_per_step * self.config.optimiser.accumulate / max(at.training, 1e-9)
        total = plan.expected(at.step, at.training, self.left())
        share = at.step / total if total else 0.0
        left = (total - at.step) * at.training / at.step if total and at.step else None
        self.progress.step(share, loss, speed, left)
