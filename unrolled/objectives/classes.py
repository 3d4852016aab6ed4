"""Metrics of classes: confusion, precision, recall, F1 and the area under the ROC curve.

Confusions and hits are sums over examples, so those of several batches add up. Labels are whole numbers from 0; -1
means that there is no label, and such places do not count.

    precision P = TP / (TP + FP)        recall R = TP / (TP + FN)        F1 = 2 P R / (P + R) = 2 TP / (2 TP + FP + FN)

Where a denominator is 0, so is the figure. Averages over classes ("macro") leave out classes that neither occur nor are
ever predicted, as scikit-learn does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.objectives.answers import NO_LABEL


class Hits(NamedTuple):
    """How often each class was found, called falsely, and missed; each [C], whole numbers."""

    found: Tensor  # TP
    false: Tensor  # FP
    missed: Tensor  # FN


def confusion_matrix(predicted: Tensor, labels: Tensor, n_classes: int, ignore: int = NO_LABEL) -> Tensor:
    """How often class i (row) was called j (column): [C, C]; predicted and labels have one shape, [B] or [B, S].

    >>> confusion_matrix(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 0, -1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    real = labels != ignore
    pairs = labels[real] * n_classes + predicted[real]  # [n]
    return torch.bincount(pairs, minlength=n_classes * n_classes).view(n_classes, n_classes)


def hits_of(confusion: Tensor) -> Hits:
    """The hits of each class from a confusion matrix [C, C]."""
    found = confusion.diagonal()
    return Hits(found, confusion.sum(dim=0) - found, confusion.sum(dim=1) - found)


def multilabel_hits(predicted: Tensor, targets: Tensor, mask: Tensor | None = None) -> Hits:
    """The hits of each label from yes-or-no answers [B, C] (logits > 0, say) and truths [B, C]; mask [B] or [B, C]."""
    p, v = predicted.bool(), targets.nan_to_num().bool()
    real = torch.ones_like(p) if mask is None else mask.view(*mask.shape, *[1] * (p.dim() - mask.dim())).expand_as(p)
    p, v, real = (part.flatten(0, -2) for part in (p, v, real))  # [n, C]
    return Hits((p & v & real).sum(0), (p & ~v & real).sum(0), (~p & v & real).sum(0))


def _share(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part.double() / whole.clamp_min(1), 0.0)


def precision(hits: Hits) -> Tensor:
    """TP / (TP + FP): [C]."""
    return _share(hits.found, hits.found + hits.false)


def recall(hits: Hits) -> Tensor:
    """TP / (TP + FN): [C]."""
    return _share(hits.found, hits.found + hits.missed)


def f1(hits: Hits) -> Tensor:
    """2 TP / (2 TP + FP + FN): [C]."""
    return _share(2 * hits.found, 2 * hits.found + hits.false + hits.missed)


def _average(values: Tensor, over: Tensor) -> float:
    if not over.any():
        raise DataError("there is nothing to evaluate: the data has no targets; give at least one")
    return values[over].mean().item()


def macro_f1(hits: Hits) -> float:
    """The mean F1 of the classes that occur or were predicted."""
    return _average(f1(hits), hits.found + hits.false + hits.missed > 0)


def mean_recall(hits: Hits) -> float:
    """The mean recall of the classes that occur (balanced accuracy)."""
    return _average(recall(hits), hits.found + hits.missed > 0)


def micro_f1(hits: Hits) -> float:
    """The F1 of all decisions together; for one label per example this is the accuracy."""
    together = Hits(*(part.sum().reshape(1) for part in hits))
    return _average(f1(together), sum(together, torch.zeros(1, device=together.found.device)) > 0)


def class_table(hits: Hits, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each class, in order: label, precision, recall, f1 and support (how often it occurs); JSON values."""
    columns = precision(hits).tolist(), recall(hits).tolist(), f1(hits).tolist(), (hits.found + hits.missed).tolist()
    return [
        {"label": name, "precision": p, "recall": r, "f1": f, "support": n}
        for name, p, r, f, n in zip(names, *columns, strict=True)
    ]


def roc_auc(scores: Tensor, positive: Tensor) -> float:
    """The probability that a positive example scores higher than a negative one, ties counted half.

    AUC = (sum of the ranks of the positives - n_+ (n_+ + 1) / 2) / (n_+ n_-), equal scores sharing their mean rank
                                                                                          (Mann & Whitney 1947)

    scores [N] of any order-preserving kind (logits, probabilities), positive [N] of truths. With one class only there
    is no such probability, which is an error.

    >>> roc_auc(torch.tensor([0.1, 0.4, 0.4, 0.8]), torch.tensor([False, False, True, True]))
    0.875
    """
    positive = positive.bool()
    n_positive, n = int(positive.sum()), positive.numel()
    if n_positive in (0, n):
        raise DataError("ROC-AUC needs examples of both classes, but the data has only one; give more examples")
    if not scores.isfinite().all():
        raise DataError("ROC-AUC needs finite scores, but the model's outputs are infinite or NaN")
    _, place, sizes = scores.unique(sorted=True, return_inverse=True, return_counts=True)
    ranks = (sizes.cumsum(0).double() - (sizes - 1).double() / 2)[place]  # [N], mean rank of equal scores
    above = ranks[positive].sum().item() - n_positive * (n_positive + 1) / 2
    return above / (n_positive * (n - n_positive))


def log_odds(logits: Tensor) -> Tensor:
    """log p_c - log(1 - p_c) of p = softmax(z), z [N, C]: the order of the probabilities, also where these are so near
    to 1 that they cannot be distinguished; in double precision.

    >>> log_odds(torch.tensor([[60.0, 0.0], [0.0, 90.0]])).tolist()
    [[60.0, -60.0], [-90.0, 90.0]]
    """
    z = logits.double()
    best = z.argmax(1, keepdim=True)
    z = z - z.gather(1, best)
    rest = z.scatter(1, best, -torch.inf).logsumexp(1, keepdim=True)  # [N, 1], of all but the best
    own = z.exp().scatter(1, best, 0.0)  # [N, C]
    others = (1 + rest.exp() - own).log()  # of all but c; no two like numbers are subtracted, as c is not the best
    return z - others.scatter(1, best, rest)


def macro_roc_auc(scores: Tensor, labels: Tensor, ignore: int = NO_LABEL) -> float:
    """The mean ROC-AUC of each class against the rest, over the classes that occur; scores [N, C], labels [N].

    Of two classes it is the plain ROC-AUC when the scores of a row have a fixed sum (`log_odds`, not logits). A label
    of C or more is a class without a score, so one of the rest.
    """
    real = labels != ignore
    scores, labels = scores[real], labels[real]
    present = [c for c in labels.unique().tolist() if c < scores.shape[1]]
    if not present or len(labels.unique()) < 2:
        raise DataError("ROC-AUC needs examples of at least two classes, but the data has fewer; give more examples")
    return sum(roc_auc(scores[:, c], labels == c) for c in present) / len(present)
