"""Images, strokes and piano rolls are predicted for in every form, with texts or without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest
from PIL import Image

from tests.runs.test_inputs import said, trained
from unrolled.core.errors import UnrolledError

TEXTS = ["dark", "light"] * 10


def test_images_without_captions(tmp_path: Path) -> None:
    images = np.stack([np.full((4, 4, 3), 200 * (i % 2) + i, np.uint8) for i in range(20)])
    for i, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{i:02}.png")
    run = trained((images, TEXTS), tmp_path / "made", "caption", "nearest-target", tokens="word")
    wanted = said(run, list(images))
    assert set(wanted) == {"dark", "light"}
    np.savez(tmp_path / "new.npz", images=images)
    rows = [{"note": "x", "image": str(tmp_path / f"{i:02}.png")} for i in range(20)]
    polars.DataFrame(rows).write_csv(tmp_path / "new.csv")
    for form in ((images, TEXTS), (images,), {"images": images}, tmp_path / "new.npz", rows, polars.DataFrame(rows),
                 tmp_path / "new.csv", tmp_path):  # fmt: skip
        assert said(run, form) == wanted
    for bad in ({"x_rays": images}, [{"note": "x"}], [{"image": "missing.png"}]):
        with pytest.raises(UnrolledError, match="image"):
            run.predict(bad)


def test_strokes_without_texts(tmp_path: Path) -> None:
    strokes = [[[[0, 0], [1 + i % 2, 4 * (i % 2)], [2, 1 + i]]] for i in range(20)]
    rows = [{"strokes": drawing, "text": text} for drawing, text in zip(strokes, TEXTS)]
    run = trained(rows, tmp_path / "made", "recognise", "nearest-target")
    wanted = said(run, strokes)
    assert len(set(wanted)) == 2
    alone = [{"note": "x", "strokes": drawing} for drawing in strokes]
    polars.DataFrame(alone).write_ndjson(tmp_path / "new.jsonl")
    for form in (rows, alone, polars.DataFrame(alone), tmp_path / "new.jsonl"):
        assert said(run, form) == wanted
    with pytest.raises(UnrolledError, match="'strokes'"):
        run.predict([{"note": "x"}])


def test_piano_rolls_in_every_form(tmp_path: Path) -> None:
    rolls = np.random.default_rng(0).integers(0, 2, (20, 6, 5)).astype(np.uint8)
    np.savez(tmp_path / "rolls.npz", rolls=rolls)
    run = trained(tmp_path / "rolls.npz", tmp_path / "made", "next-frame", "key-chain")
    wanted = run.score(list(rolls))
    assert run.score(tmp_path / "rolls.npz") == run.score(rolls) == wanted
    with pytest.raises(UnrolledError):
        run.score([rolls[0][:, :3]])
