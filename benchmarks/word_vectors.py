"""word2vec on a slice of Wikipedia, beside gensim: `python -m benchmarks.word_vectors [--repeat 3]`.

Both train skip-gram vectors of WIDTH numbers on the same words (the training split, in lower case, words that occur
five times) with a window of 5, 5 drawn words, subsampling at 0.001, a rate of 0.025 that falls, EPOCHS epochs and two
workers. gensim runs in an environment of its own, whose python is named by PEER_PYTHON, on the faster of its two ways
(a file of lines, or lists); ours needs the extra [fast] for its compiled loop. Words per second are those of the text,
by the clock of whole training calls without reading; processes alternate, and the best of each counts. The area is how
often words that the test split uses together have a larger cosine than random ones (unrolled/objectives/related.py).
Ours draws words once for all inputs of a position, gensim for each. Figures go to benchmarks/results/word-vectors.json.
"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WIDTH, WINDOW, DRAWN, SUBSAMPLE, LEAST, RATE, EPOCHS, WORKERS = 100, 5, 5, 1e-3, 5, 0.025, 5, 2
LINE = 1000  # words of a line for gensim
SHA = "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d"
NOISE = re.compile(r"<[^>]*>|&\w+;|https?://\S+|\w+=\S+")


def text_of(path: Path) -> str:
    """The text of the dump, without most of its marks."""
    return NOISE.sub(" ", bz2.decompress(path.read_bytes()).decode("utf-8"))


def ours(folder: Path) -> dict[str, Any]:
    """Vectors and words per second here."""
    import unrolled

    settings = {
        "window": WINDOW, "negatives": DRAWN, "subsample": SUBSAMPLE, "min_count": LEAST, "lr": RATE, "threads": 1,
        "d_embedding": WIDTH, "vocabulary": 1_000_000, "model.workers": WORKERS, "evaluate_every": 100_000,
        "evaluate_tokens": 4096,
    }  # fmt: skip
    text = (folder / "text.txt").read_text()
    (folder / "short.txt").write_text(text[:400_000])
    found: dict[str, Any] = {}
    for name, epochs in (("short", 1), ("text", EPOCHS)):  # the first compiles
        with tempfile.TemporaryDirectory() as out:
            run = unrolled.train(
                str(folder / f"{name}.txt"), "word-vectors", out=Path(out) / "run", baselines={},
                settings=settings | {"epochs": epochs},
            )  # fmt: skip
            unrolled.vectors(run).save(folder / "ours.bin")
            result = run.result
            found = {"words_per_second": result["tokens_per_second"]}
            found["loss"] = result["test"]["loss"]
    return found


def gensim(folder: Path) -> dict[str, Any]:
    """The same in gensim, by both of its ways; the faster one counts."""
    from gensim import __version__ as version  # type: ignore[import-not-found]
    from gensim.models import Word2Vec  # type: ignore[import-not-found]

    place = str(folder / "train.txt")
    found: dict[str, Any] = {"version": version}
    for way, data in (("file", place), ("lists", [line.split() for line in Path(place).read_text().splitlines()])):
        model = Word2Vec(
            vector_size=WIDTH, window=WINDOW, negative=DRAWN, sample=SUBSAMPLE, min_count=1, alpha=RATE, sg=1,
            workers=WORKERS, seed=1,
        )  # fmt: skip
        source = {"corpus_file" if way == "file" else "corpus_iterable": data}
        model.build_vocab(**source)
        words = model.corpus_total_words
        begun = time.perf_counter()
        model.train(**source, total_examples=model.corpus_count, total_words=words, epochs=EPOCHS)
        found[way] = round(EPOCHS * words / (time.perf_counter() - begun))
    model.wv.save_word2vec_format(str(folder / "gensim.bin"), binary=True)
    return found | {"words_per_second": max(found["file"], found["lists"])}


def prepared(folder: Path) -> Any:
    """Write the training words for gensim; a task that has read the data."""
    from unrolled.runs import build
    from unrolled.training.api import configure

    place = str(folder / "text.txt")
    task: Any = build.make_task(configure("word-vectors", None, place, {"min_count": LEAST, "vocabulary": 1_000_000}))
    task.prepare(place)
    words = [task.codec.name(word) for word in task.found.texts["train"].words.tolist()]
    lines = [" ".join(words[at : at + LINE]) for at in range(0, len(words), LINE)]
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    return task


def related(task: Any, place: Path) -> float:
    """The area of a file of vectors on the test split."""
    import numpy as np

    from unrolled.core.tokens import SPECIALS
    from unrolled.data.word_vectors import WordVectors
    from unrolled.objectives.related import area, related_pairs

    text, known = task.found.texts["test"], WordVectors.read(place)
    pairs = related_pairs(text.words, text.lines, WINDOW, len(SPECIALS))
    assert pairs is not None
    units = np.stack([known.units[known.row(word)] for word in task.codec.words])
    return area(units, pairs, len(SPECIALS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WHO", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        sys.path = [each for each in sys.path if Path(each) != Path(__file__).parent]  # coverage.py is another module
        print(json.dumps({"gensim": gensim, "ours": ours}[asked.one[0]](Path(asked.one[1]))))
        return
    from benchmarks.reproduce import RESULTS, DataSet, find
    from unrolled.kernels.negative_sampling import is_compiled

    peer = os.environ.get("PEER_PYTHON")
    if peer is None:
        sys.exit("PEER_PYTHON is not set: name the python of an environment that has gensim")
    source = find(DataSet("enwiki-slice/enwiki_6MB.xml.bz2", SHA, "the test data of gensim 4.4.0 (PyPI)"))
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "gensim": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text(text_of(source))
        task = prepared(folder)
        for _ in range(asked.repeat):
            for who, python in (("ours", sys.executable), ("gensim", peer)):
                command = [python, str(Path(__file__)), "--one", who, name]
                environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                found = json.loads(done.stdout.splitlines()[-1]) | {"related": related(task, folder / f"{who}.bin")}
                runs[who].append(found)
                print(who, found, flush=True)
        words = len(task.found.texts["train"].words)
    best = {who: max(each["words_per_second"] for each in found) for who, found in runs.items()}
    areas = {who: sum(each["related"] for each in found) / len(found) for who, found in runs.items()}
    result = {
        "words": words, "vocabulary": task.codec.size, "width": WIDTH, "epochs": EPOCHS, "workers": WORKERS,
        "compiled": is_compiled(), "gensim_version": runs["gensim"][0]["version"], "ours": best["ours"],
        "gensim": best["gensim"], "ratio": best["ours"] / best["gensim"], "goal": 1.5, "least": 1.0,
        "related": areas, "behind": areas["gensim"] - areas["ours"], "most_behind": 0.02, "runs": runs,
    }  # fmt: skip
    (RESULTS / "word-vectors.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['ratio']:.2f} times the words per second of gensim; area {areas}")


if __name__ == "__main__":
    main()
