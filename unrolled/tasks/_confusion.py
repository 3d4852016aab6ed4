"""Pictures of which class or tag was predicted for which."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.data.codecs.labels import ClassCodec
from unrolled.objectives import classes
from unrolled.pictures import kinds


def confusion_pictures(confusion: Tensor, codec: ClassCodec, split: str) -> dict[str, Any]:
    """What was predicted as what [C + U, C + U], and precision, recall and F1 of each class or tag.

    Of the U that training never showed, those that occur have a row.
    """
    word, occurs = codec.word, confusion.sum(1) > 0
    rows = [i for i in range(len(confusion)) if i < codec.size or occurs[i]]
    names = [codec.all_names[i] for i in rows]
    heat = kinds.Heatmap(
        title="Confusion matrix",
        alt=f"How often each true {word} (row) of the {split} data was predicted as which (column).",
        values=confusion[rows, : codec.size].tolist(), rows=names, columns=codec.names, x_label="predicted",
        y_label="true", write_values=len(names) <= 12,
    )  # fmt: skip
    found = classes.class_table(classes.hits_of(confusion), codec.all_names)
    table = kinds.Table(
        title=f"Per {word}", alt=f"Precision, recall and F1 of each {word} in the {split} data.",
        columns=list(found[0]), rows=[list(found[i].values()) for i in rows],
    )  # fmt: skip
    return {"confusion": heat, "classes": table}
