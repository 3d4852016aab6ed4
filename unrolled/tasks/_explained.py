"""What a model says of a target that is given, as a function of its outputs: what an explanation is of."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.task import Explained
from unrolled.data.codecs.labels import AnswerCodec, ClassCodec


def explained(answers: AnswerCodec, y: Tensor, at: int, temperature: float) -> Explained:
    """The class that outputs y [1, T, D'] find most probable at a position by its log p, a set of classes by those of
    its parts; or the first of the numbers, as the model gives it."""
    y, T = y[0, at].detach(), temperature  # [D']
    names = answers.names if isinstance(answers, ClassCodec) else []
    if answers.kind in ("class", "tags"):
        best = int(y.argmax())
        return Explained(names[best], "log p", "nats", lambda y: (y[:, at] / T).log_softmax(-1)[:, best])
    if answers.kind == "classes":
        signs = torch.where(y > 0, 1.0, -1.0).to(y)  # [C]
        chosen = [name for name, sign in zip(names, signs.tolist()) if sign > 0]
        said = ", ".join(chosen) or "no class"
        return Explained(said, "log p", "nats", lambda y: F.logsigmoid(signs * y[:, at] / T).sum(-1))
    return Explained("output 1", "the number", "standard deviations", lambda y: y[:, at, 0])
