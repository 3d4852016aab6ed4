"""Pictures of which class or tag was predicted for which."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.data.codecs.labels import ClassCodec
from unrolled.objectives import classes
from unrolled.pictures import predictions


def confusion_pictures(said: Tensor, true: Tensor, codec: ClassCodec, split: str) -> dict[str, Any]:
    """What was predicted as what, and precision, recall and F1 of each class or tag, from numbers of classes [n] each.

    Of the classes that training never showed, those that occur have a row.
    """
    confusion = classes.confusion_matrix(said, true, len(codec.all_names))  # [C + U, C + U]
    rows = [i for i in range(len(confusion)) if i < codec.size or confusion[i].sum() > 0]
    counts, names = confusion[rows, : codec.size].tolist(), [codec.all_names[i] for i in rows]
    found = classes.class_table(classes.hits_of(confusion), codec.all_names)
    return {
        "confusion": predictions.confusion(counts, names, codec.names, codec.word, split),
        "classes": predictions.per_class([found[i] for i in rows], codec.word, split),
    }
