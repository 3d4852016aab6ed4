"""The next-pixel task: figures by brute force, images that are generated and completed, what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.data.pixels_prepare import decode, encode
from unrolled.runs.run import Run

SETTINGS = {
    "steps": 120, "d_state": 24, "d_embedding": 12, "batch_size": 8, "lr": 0.02, "warmup": 2, "threads": 1, "levels": 3,
}  # fmt: skip
SIZE = (6, 5)


def stripes(n: int, seed: int) -> np.ndarray:
    """[n, H, W] with bright columns that go all the way down: the upper half says the lower."""
    random = np.random.default_rng(seed)
    columns = random.integers(0, 3, (n, SIZE[1])) / 2
    return np.repeat(columns[:, None], SIZE[0], axis=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("stripes") / "run"
    return unrolled.train(stripes(160, 0), "next-pixel", "gru", out, settings=SETTINGS)


def test_figures_are_means_over_pixels(run: Run) -> None:
    images = stripes(3, 5)
    scored = run.score(list(images))
    for image, line in zip(images, scored, strict=True):
        ids = torch.from_numpy(encode(image, 3).astype(np.int64))
        x = torch.cat([torch.tensor([2]), ids[:-1]])[None]  # behind <start>
        with torch.no_grad():
            log_p = run.task.emission.log_probabilities(run.model(x)[0][0].double())
        total = float(log_p.gather(1, ids[:, None]).sum())
        assert line["logp"] == pytest.approx(total, rel=1e-4)
        assert line["bits_per_pixel"] == pytest.approx(-total / math.log(2) / 30, rel=1e-4)
    assert run.result["test"]["bits_per_pixel"] == pytest.approx(run.result["test"]["nats"] / math.log(2))
    assert unrolled.load(run.path).evaluate(images)["nats"] == pytest.approx(
        -sum(line["logp"] for line in scored) / 90, rel=1e-4
    )


def test_baselines(run: Run) -> None:
    baselines = run.result["baselines"]
    assert set(baselines) == {"level frequencies", "bigram", "trigram", "left and upper pixel"}
    assert baselines["left and upper pixel"]["test"]["bits_per_pixel"] < math.log2(3) * 0.4  # one row of six is new
    assert run.result["test"]["nats"] < baselines["trigram"]["test"]["nats"]


def test_an_upper_half_is_completed(run: Run, tmp_path: Path) -> None:
    right = []
    for image in stripes(6, 9):
        Image.fromarray(decode(encode(image, 3), 3, SIZE[1])).save(tmp_path / "a.png")
        made = run.generate(str(tmp_path / "a.png"), temperature=0)[0]
        assert (made["given"], made["image"].shape) == (3, SIZE)
        np.testing.assert_array_equal(made["image"][:3], np.rint(image[:3] * 255))
        right.append((made["image"][3:] == np.rint(image[3:] * 255)).mean())
    assert np.mean(right) > 0.55  # one of three levels by chance
    rows = run.generate(f"{tmp_path / 'a.png'}:5", temperature=0)[0]
    assert rows["given"] == 5


def test_the_command_writes_images(run: Run, tmp_path: Path) -> None:
    done = run_unrolled("generate", run.path, "-n", 2, "--seed", 4, "-o", tmp_path / "new.png")
    assert done.stdout.split() == [str(tmp_path / "new-0.png"), str(tmp_path / "new-1.png")]
    with Image.open(tmp_path / "new-0.png") as image:
        assert image.size == (SIZE[1], SIZE[0])
        found = np.asarray(image.convert("L"))
    assert set(np.unique(found)) <= {0, 128, 255}
    np.testing.assert_array_equal(found, run.generate(n=2, seed=4)[0]["image"])


def test_levels_there_and_back() -> None:
    for levels in (2, 16, 256):
        ids = encode(np.random.default_rng(0).random((4, 5)), levels)
        assert np.array_equal(encode(decode(ids, levels, 5) / 255, levels), ids)


def test_neighbours_as_the_equation_says(run: Run) -> None:
    from unrolled.core.batch import TARGET
    from unrolled.models.neighbours import Neighbours

    images = [encode(image, 3).reshape(SIZE) for image in np.random.default_rng(1).random((7, *SIZE))]
    from unrolled.data.pixels_prepare import examples_of

    model, V = Neighbours(SIZE[1], 7), 7
    model.solve(examples_of([image.ravel() for image in images]))
    n: dict[tuple[int, int, int], int] = {}
    for image in images:
        for i in range(SIZE[0]):
            for j in range(SIZE[1]):
                key = (image[i, j - 1] if j else -1, image[i - 1, j] if i else -1, image[i, j])
                n[key] = n.get(key, 0) + 1

    def count(**fixed: int) -> int:
        names = ("a", "b", "c")
        return sum(v for k, v in n.items() if all(k[names.index(m)] == value for m, value in fixed.items()))

    image = images[0]
    x = torch.from_numpy(np.concatenate([[2], image.ravel()[:-1]]).astype(np.int64))[None]
    whole, _ = model(x)
    halves = []
    state = None
    for cut in x.split([3, 9, 18], dim=1):
        y, state = model(cut, state)
        halves.append(y)
    assert torch.equal(torch.cat(halves, 1), whole)
    total = sum(n.values())
    for i, j in ((0, 0), (0, 3), (2, 0), (4, 4)):
        a, b, c = image[i, j - 1] if j else -1, image[i - 1, j] if i else -1, image[i, j]
        p = (count(c=c) + 1) / (total + 3)
        p = (count(a=a, c=c) + p) / (count(a=a) + 1)
        p = (count(a=a, b=b, c=c) + p) / (count(a=a, b=b) + 1)
        assert float(whole[0, i * SIZE[1] + j, c].exp()) == pytest.approx(p, rel=1e-4)
    assert float(whole.exp().sum(-1).max()) == pytest.approx(1, rel=1e-4)
    assert model.d_out == V and TARGET == "target"


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected 5 x 6 grey ones"):
        run.evaluate(np.zeros((3, 7, 5)))
    with pytest.raises(DataError, match="expected brightness"):
        run.score([np.full(SIZE, 3.0)])
    Image.fromarray(np.zeros(SIZE, np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(UsageError, match="expected 1 to 5 rows"):
        run.generate(f"{tmp_path / 'a.png'}:6")
    with pytest.raises(UsageError, match="is a setting for text"):
        unrolled.train(stripes(9, 0), "next-pixel", "gru", tmp_path / "x", settings={"tokens": "word"})
    with pytest.raises(UsageError, match="closed form"):
        unrolled.train(stripes(9, 0), "next-pixel", "linear-prediction", tmp_path / "y")
