"""Metrics of classes against scikit-learn and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as reference
from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.objectives import metrics
from unrolled.objectives.classes import (
    Hits,
    class_table,
    confusion_matrix,
    f1,
    hits_of,
    log_odds,
    macro_f1,
    macro_roc_auc,
    mean_recall,
    micro_f1,
    multilabel_hits,
    precision,
    recall,
    roc_auc,
)

N, C = 200, 4


@pytest.fixture
def sample() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(C, (N,), generator=generator)
    return torch.randn(N, C, generator=generator) + 1.5 * torch.eye(C)[labels], labels


def test_one_label_per_example(sample: tuple[Tensor, Tensor]) -> None:
    logits, labels = sample
    predicted = logits.argmax(-1)
    confusion = confusion_matrix(predicted, labels, C)
    hits = hits_of(confusion)
    assert confusion.tolist() == reference.confusion_matrix(labels, predicted).tolist()
    accuracy = reference.accuracy_score(labels, predicted)
    right, count = metrics.accuracy(logits, labels, ignore=-1)
    assert right.item() / count.item() == pytest.approx(accuracy)
    assert micro_f1(hits) == pytest.approx(accuracy)
    assert macro_f1(hits) == pytest.approx(reference.f1_score(labels, predicted, average="macro"))
    assert mean_recall(hits) == pytest.approx(reference.balanced_accuracy_score(labels, predicted))
    wanted = reference.precision_recall_fscore_support(labels, predicted)
    for ours, theirs in zip((precision(hits), recall(hits), f1(hits)), wanted, strict=False):
        assert ours.tolist() == pytest.approx(theirs.tolist())


def test_the_table_names_classes_and_how_often_they_occur() -> None:
    confusion = torch.tensor([[3, 1], [0, 0]])
    assert class_table(hits_of(confusion), ["a", "b"]) == [
        {"label": "a", "precision": 1.0, "recall": 0.75, "f1": pytest.approx(6 / 7), "support": 4},
        {"label": "b", "precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0},
    ]


def test_classes_that_never_occur_do_not_pull_averages_down() -> None:
    predicted, labels = torch.tensor([0, 1, 0, 0]), torch.tensor([0, 1, 1, 0])
    hits = hits_of(confusion_matrix(predicted, labels, 5))
    assert macro_f1(hits) == pytest.approx(reference.f1_score(labels, predicted, average="macro"))
    assert mean_recall(hits) == pytest.approx(0.75)
    called = hits_of(confusion_matrix(torch.tensor([0, 2]), torch.tensor([0, 0]), 5))
    assert macro_f1(called) == pytest.approx((2 / 3 + 0) / 2)
    assert mean_recall(called) == 0.5


def test_a_class_that_occurs_once_counts_like_any_other() -> None:
    predicted, labels = torch.tensor([0, 0, 1, 1, 0]), torch.tensor([0, 0, 1, 1, 2])
    hits = hits_of(confusion_matrix(predicted, labels, 3))
    assert mean_recall(hits) == pytest.approx(reference.balanced_accuracy_score(labels, predicted))
    assert macro_f1(hits) == pytest.approx(reference.f1_score(labels, predicted, average="macro", zero_division=0))
    assert micro_f1(hits_of(torch.tensor([[1]]))) == 1


def test_places_without_a_label_do_not_count_and_batches_add_up(sample: tuple[Tensor, Tensor]) -> None:
    logits, labels = sample
    predicted, labels = logits.argmax(-1), labels.clone()
    labels[::3] = -1
    kept = labels >= 0
    whole = confusion_matrix(predicted, labels, C)
    assert whole.tolist() == confusion_matrix(predicted[kept], labels[kept], C).tolist()
    assert whole.tolist() == confusion_matrix(predicted.view(20, 10), labels.view(20, 10), C).tolist()
    parts = [confusion_matrix(p, y, C) for p, y in zip(predicted.split(64), labels.split(64), strict=True)]
    assert whole.tolist() == sum(parts).tolist()


def test_several_labels_per_example(sample: tuple[Tensor, Tensor]) -> None:
    logits, _ = sample
    targets = (torch.randn(N, C, generator=torch.Generator().manual_seed(1)) + 0.5 * logits > 0.3).long()
    hits = multilabel_hits(logits > 0.2, targets)
    predicted = (logits > 0.2).long()
    assert micro_f1(hits) == pytest.approx(reference.f1_score(targets, predicted, average="micro"))
    assert macro_f1(hits) == pytest.approx(reference.f1_score(targets, predicted, average="macro"))
    mask = torch.rand(N, generator=torch.Generator().manual_seed(2)) < 0.5
    junk = targets.double().masked_fill(~mask[:, None], math.nan)
    for found, wanted in zip(
        multilabel_hits(logits > 0.2, junk, mask), multilabel_hits(predicted[mask], targets[mask]), strict=True
    ):
        assert found.tolist() == wanted.tolist()
    each = torch.ones(N, C, dtype=torch.bool)
    each[:, 0] = False
    assert multilabel_hits(predicted, targets, each).found[0] == 0


@pytest.mark.parametrize("digits", [8, 1, 0], ids=["no ties", "ties", "many ties"])
def test_roc_auc_with_and_without_ties(sample: tuple[Tensor, Tensor], digits: int) -> None:
    logits, labels = sample
    scores = logits[:, 0].double().round(decimals=digits)
    found = roc_auc(scores, labels == 0)
    assert found == pytest.approx(reference.roc_auc_score(labels == 0, scores), abs=1e-12)
    assert roc_auc(-scores, labels == 0) == pytest.approx(1 - found)
    assert roc_auc(torch.zeros(N), labels == 0) == 0.5
    assert roc_auc((labels == 0).float(), labels == 0) == 1.0


@pytest.mark.parametrize("digits", [8, 1])
def test_macro_roc_auc_is_one_against_the_rest(sample: tuple[Tensor, Tensor], digits: int) -> None:
    logits, labels = sample
    p = logits.double().softmax(-1)
    p = p.round(decimals=digits) if digits < 8 else p
    wanted = sum(reference.roc_auc_score(labels == c, p[:, c]) for c in range(C)) / C
    assert macro_roc_auc(p, labels) == pytest.approx(wanted, abs=1e-12)
    if digits == 8:
        assert wanted == pytest.approx(reference.roc_auc_score(labels, p, multi_class="ovr", average="macro"))
    two = labels < 2
    q = logits[two, :2].softmax(-1)
    assert macro_roc_auc(q, labels[two]) == pytest.approx(roc_auc(q[:, 1], labels[two] == 1))
    some = labels.masked_fill(labels == 3, -1)
    assert macro_roc_auc(p, some) == pytest.approx(macro_roc_auc(p[labels != 3], labels[labels != 3]))


def test_what_cannot_be_measured_is_an_error() -> None:
    with pytest.raises(DataError, match="both classes"):
        roc_auc(torch.rand(3), torch.tensor([True, True, True]))
    with pytest.raises(DataError, match="finite scores"):
        roc_auc(torch.tensor([math.nan, 1.0]), torch.tensor([True, False]))
    with pytest.raises(DataError, match="at least two classes"):
        macro_roc_auc(torch.rand(3, 2), torch.tensor([1, -1, 1]))
    nothing = Hits(*(torch.zeros(3, dtype=torch.long),) * 3)
    for figure in (macro_f1, mean_recall, micro_f1):
        with pytest.raises(DataError, match="nothing to evaluate"):
            figure(nothing)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_log_odds_order_what_probabilities_cannot(scale: float) -> None:
    z = scale * torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    y = (z + scale * torch.randn(400, 3, generator=torch.Generator().manual_seed(1))).argmax(1)
    exact = np.stack([z[:, c].double().numpy() - np.logaddexp.reduce(np.delete(z.double().numpy(), c, 1), 1)
                      for c in range(3)], 1)  # fmt: skip
    torch.testing.assert_close(log_odds(z), torch.from_numpy(exact), rtol=1e-9, atol=1e-9)
    peer = reference.roc_auc_score(np.eye(3)[y.numpy()], exact, average="macro")
    assert macro_roc_auc(log_odds(z), y) == pytest.approx(peer, abs=1e-12)
