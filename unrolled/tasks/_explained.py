"""What a model says of a target that is given, as a function of its outputs: what an explanation is of."""

from __future__ import annotations

from torch import Tensor

from unrolled.core.emission import Emission
from unrolled.core.task import Explained
from unrolled.data.codecs.labels import AnswerCodec, ClassCodec


def explained(answers: AnswerCodec, emission: Emission, y: Tensor, at: int) -> Explained:
    """The class that outputs y [1, T, D'] find most probable at a position by its log p, a set of classes by those of
    its parts; or the first of the numbers, as the model gives it."""
    y = y[0, at].detach()  # [D']
    names = answers.names if isinstance(answers, ClassCodec) else []
    if answers.kind in ("class", "tags"):
        target = y.argmax()
        said = names[int(target)]
    elif answers.kind == "classes":
        target = (y > 0).to(y)  # [C]
        said = ", ".join(name for name, is_one in zip(names, target.tolist()) if is_one) or "no class"
    else:
        return Explained("output 1", "the number", "standard deviations", lambda y: y[:, at, 0])
    return Explained(said, "log p", "nats", lambda y: -emission.losses(y[:, at], target.expand(len(y), *target.shape)))
