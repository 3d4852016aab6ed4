"""Makes docs/results.md from the files in benchmarks/results/, and docs/models.md: no number in the docs is typed."""

from __future__ import annotations

from benchmarks import answer_tables, models_page, writing_tables
from benchmarks.page import HERE, PAGE, curves, picture, read, read_all, table
from unrolled.pictures.kinds import Plot

HEAD = """# Measured results

After this page you know how fast and how good the models are, beside other libraries and published results. It is generated
by `make docs` from the files that `make bench`, `make reproduce` and `python -m benchmarks.memory` write to
`benchmarks/results/`. Speeds are ratios from one interleaved run, the best of several repetitions.
"""

GOALS = {"lstm": 1.58, "gru": 1.60, "elman": 1.85, "tcn": 1.70, "transformer": 1.70}


def recurrent() -> str:
    """torch.nn's time over ours, by number of threads."""
    found = read("recurrent")
    if not found:
        return ""
    threads = [result["threads"] for result in found["results"]]
    rows = []
    for lines in zip(*(result["rows"] for result in found["results"]), strict=True):
        first = lines[0]
        size = "(" + ", ".join(map(str, first["size"])) + ")"
        goal = f"{first['goal']:.2f}" if first.get("goal") else ""
        ratios = [
            f"{line['ratio']:.2f}" + (" missed" if goal and line["ratio"] < line["goal"] else "") for line in lines
        ]
        rows.append([first["what"], first["cell"], size, *ratios, goal])
    titles = ["what", "cell", "size", *(f"ratio, {n} thread{'s' * (n > 1)}" for n in threads), "goal"]
    text = (
        f"\n## The recurrent family against torch.nn\n\n{found['cpu']}, torch {found['torch']}: torch.nn's time over "
    )
    text += (
        "ours. A training step has size (B, T, D, H), a tick at batch 1 (D, H). The ticks of torch.nn.LSTM vary by a "
    )
    text += "factor of four from run to run; these are its faster ones.\n\n"
    return text + table(titles, rows) + "\n"


def shakespeare() -> str:
    """Quality within a time budget, with the curves."""
    found = {model: read(f"shakespeare-{model}") for model in GOALS}
    found = {model: result for model, result in found.items() if result}
    if not found:
        return ""
    first = next(iter(found.values()))
    text = f"\n## {first['protocol']}\n\nNats per character on validation data; lower is better.\n\n"
    rows = [
        [name, f"{parts['valid']['nats']:.4f}", "", "", "", "closed form"] for name, parts in first["baselines"].items()
    ]
    for model, result in found.items():
        figures = result["figures"]
        rows.append(
            [
                model,
                f"{figures['valid']['nats']:.4f}",
                f"{GOALS[model]:.2f}",
                f"{figures['parameters']:,}",
                f"{figures['steps']:,}",
                f"{figures['training_seconds']:.0f} s, {figures['tokens_per_second']:,} tokens/s",
            ]
        )
    text += table(["model", "nats/char", "goal", "parameters", "steps", "training"], rows) + "\n"
    text += "\nPublished: a small GPT 1.88 after about three laptop minutes, 1.4697 after training a 10 M "
    text += "parameter GPT on a GPU (nanoGPT README).\n\nLearning curves (seconds: nats/char):\n\n"
    for model, result in found.items():
        points = result["curve"]
        some = points[:: max(1, len(points) // 12)] + points[-1:]
        text += f"- {model}: " + ", ".join(f"{p['seconds']:.0f}: {p['nats']:.3f}" for p in some) + "\n"
    text += picture("shakespeare", Plot(
        title="tinyshakespeare, five minutes on two cores", series=curves(found, "nats"), x_label="seconds",
        y_label="nats/character",
        alt="Validation loss of each model over five minutes of training.",
    ))  # fmt: skip
    sample = found.get("lstm", first)["sample"].strip().splitlines()
    text += "\nThe LSTM continues `ROMEO:`\n\n" + "\n".join(f"    {line}" for line in sample) + "\n"
    return text


def attention() -> str:
    """Memory of attention, generation and training of a GPT."""
    found = read("attention")
    if not found:
        return ""
    text = f"\n## Attention\n\n{found['cpu']}, torch {found['torch']}. Memory beyond the inputs by length:\n\n"
    rows = [
        [row["way"], f"{row['T']:,}", f"{row['megabytes']:.1f}", f"{row['seconds']:.2f}", f"{row['growth'] or '':}"]
        for row in found["memory"]
    ]
    text += table(["way", "T", "megabytes", "seconds", "growth for twice the length"], rows)
    text += "\n\nA GPT of 4 blocks of width 256 at batch 1, and its training step at (16, 256):\n\n"
    rows = []
    for part in ("generation", "training"):
        for threads, lines in found[part].items():
            for line in lines:
                peer = next(name for name in ("recomputing", "hugging face") if name in line)
                share = f"{line['share_of_matmul_peak']:.0%}" if "share_of_matmul_peak" in line else ""
                ratio = f"{line['ratio']:.2f}" + (" missed" if line["ratio"] < line["goal"] else "")
                rows.append([line["what"], threads, f"{peer} {line[peer]:,.0f}", f"{line['ours']:,.0f} {line['unit']}",
                             ratio, f"{line['goal']:.1f}", share])  # fmt: skip
    titles = ["what", "threads", "peer", "ours", "ratio", "goal", "share of the matrix-product peak"]
    return text + table(titles, rows) + "\n"


def generation() -> str:
    from benchmarks import streaming

    found = read("streaming")
    return streaming.report(found) if found else ""


def beams() -> str:
    from benchmarks import beam

    found = read("beam")
    return beam.report(found) if found else ""


def copy_memory() -> str:
    """Recall over 1000 blanks beside the published figures."""
    found = read_all("copy-memory-*")
    if not found:
        return ""
    rows = [
        [result["protocol"], result["model"], f"{result['loss']:.2e}", f"{result['recalled']:.1%}",
         "" if result["published"] is None else f"{result['published']:.1e}", f"{result['parameters']:,}",
         f"{result['steps']:,}"]
        for result in found
    ]  # fmt: skip
    text = f"\n## Copy memory\n\nLoss per position; guessing gives {found[0]['guess']:.2e}. "
    text += "Published: Bai, Kolter & Koltun (2018), table 1.\n\n"
    text += table(["protocol", "model", "loss", "recalled", "published", "parameters", "steps"], rows) + "\n"
    lines = curves({result["model"]: result for result in found}, "loss", first=0)
    return text + picture("copy-memory", Plot(
        title="Copy memory, T = 1000", series=lines, x_label="seconds", y_label="loss per position", log_y=True,
        alt="Loss of each model over training time; only the convolution learns to recall.",
    ))  # fmt: skip


def memory() -> str:
    found = read("memory")
    if not found:
        return ""
    rows = [[f"{value:,}" for value in row.values()] for row in found]
    titles = [name.replace("_", " ") for name in found[0]]
    return "\n## Memory does not grow with the corpus\n\nA GRU, 40 steps.\n\n" + table(titles, rows) + "\n"


def music() -> str:
    """Polyphonic music beside the published table."""
    found = read_all("polymusic-*")
    if not found:
        return ""
    rows = []
    for result in found:
        figures = result["figures"]
        valid, test = (f"{figures[part]['nats_after_first']:.3f}" for part in ("valid", "test"))
        published = "" if result["published"] is None else f"{result['published']:.2f}"
        rows.append([result["protocol"], result["model"], valid, test, published, f"{figures['parameters']:,}"])
    text = (
        "\n## Polyphonic music\n\nNats per frame over all frames but the first of each piece; published: Bai, Kolter & "
    )
    text += "Koltun (2018), table 1. Weights were selected on validation pieces.\n\n"
    return text + table(["protocol", "model", "valid", "test", "published", "parameters"], rows) + "\n"


def autoregression() -> str:
    """The closed form beside the lagged matrix."""
    found = read("autoregression")
    if not found:
        return ""
    rows = [
        [row["way"], f"{row['ms']:,.1f}", f"{row['megabytes']:,.1f}", f"{row['difference']:.0e}"]
        for row in found["ways"]
    ]
    titles = ["way", "ms", "megabytes beyond the series", "largest difference of weights"]
    head = f"\n## AR({found['order']}) on {found['points']:,} points, {found['threads'] or 'all'} threads\n\n"
    return head + table(titles, rows) + "\n"


def mutants() -> str:
    """How many small faults the tests notice, room by room."""
    found = [result for result in read_all("mutants-*") if "before" not in result["room"]]
    if not found:
        return ""
    rows = []
    for result in found:
        before = read(f"mutants-before-{result['room']}")
        earlier = "" if before is None else f"{before['survivors_share']:.1%} of {before['tried']}"
        share = f"{result['survivors_share']:.1%} of {result['tried']}"
        rows.append([result["room"], f"{result['possible']:,}", earlier, share, str(result["equivalent"])])
    text = (
        "\n## Mutation testing\n\nOne small fault at a time in the code of a package ([mutation testing](mutants.md)); "
    )
    text += "of those drawn by a fixed seed, the share that survives all tests. Before: when the check "
    text += "was introduced.\n\n"
    return text + table(["package", "possible faults", "before", "now", "equivalent, not counted"], rows) + "\n"


def main() -> None:
    models_page.PAGE.write_text(models_page.page(), encoding="utf-8")
    parts = (
        recurrent,
        generation,
        attention,
        beams,
        autoregression,
        shakespeare,
        copy_memory,
        music,
        answer_tables.report,
        writing_tables.report,
        memory,
        mutants,
    )
    PAGE.write_text(HEAD + "".join(part() for part in parts), encoding="utf-8")
    for place in (models_page.PAGE, PAGE):
        print(f"wrote {place.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
