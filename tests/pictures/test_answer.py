"""What a question found out, as it is shown in Python."""

from __future__ import annotations

import torch

from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars, Table

ROWS = [{"layer": 1, "name": "a", "open": 0.25, "all": [1, 2]}, {"layer": 2, "name": None, "open": 0.5, "all": []}]
ANSWER = Answer(
    "It is open <half> of the time.",
    {"mean_open": 0.375, "rows": ROWS, "positions": ["a", "b"], "empty": []},
    {"gates": torch.zeros(2, 3)},
    [Bars(title="Gates", names=["a"], values=[1.0])],
)


def test_in_words_it_names_what_it_has() -> None:
    assert repr(ANSWER).splitlines() == [
        "Answer: It is open <half> of the time.",
        "  numbers: mean_open, rows, positions, empty",
        "  arrays: gates [2, 3]",
        "  pictures: Gates",
    ]
    assert repr(Answer("Nothing.")) == "Answer: Nothing."


def test_in_a_notebook_it_shows_numbers_tables_and_pictures() -> None:
    shown = ANSWER._repr_html_()
    assert "It is open &lt;half&gt; of the time." in shown
    assert "mean open: 0.375" in shown
    assert "<figcaption>rows</figcaption>" in shown and "<figcaption>Gates</figcaption>" in shown


def test_rows_of_numbers_are_a_table_with_the_columns_that_fit_into_cells() -> None:
    (table,) = ANSWER.tables()
    assert (table.columns, table.rows) == (["layer", "name", "open"], [[1, "a", 0.25], [2, None, 0.5]])


def test_what_a_picture_tells_already_is_no_second_table() -> None:
    assert Answer("x", {"rows": ROWS}, pictures=[Table(title="t", columns=["a"], rows=[[1]])]).tables() == []
