"""The section of docs/results.md that shows what `python -m benchmarks.writing` left in benchmarks/results/."""

from __future__ import annotations

from benchmarks.answer_tables import COST, cost, judged, share
from benchmarks.page import curves, picture, read, table
from unrolled.pictures.kinds import Plot, Series

BLEU = {  # way: (goal, community notebooks on GPUs with 9 to 20 M parameters)
    "start": (14.0, 13.8), "every-step": (20.0, 20.6), "attention": (28.0, 28.3), "transformer": (35.0, 36.5),
}  # fmt: skip


def translation() -> str:
    """Multi30k by the four ways in which a source reaches the decoder."""
    found = {way: read(f"writing-multi30k-{way}") for way in BLEU}
    found = {way: result for way, result in found.items() if result}
    if not found:
        return ""
    first = next(iter(found.values()))
    rows = [
        [name, f"{parts['test']['bleu']:.1f}", f"{parts['test']['chrf']:.1f}"] + [""] * 7
        for name, parts in first["baselines"].items()
    ]
    for way, result in found.items():
        goal, published = BLEU[way]
        test = result["figures"]["test"]
        rows.append([f"{result['model']}, {way}" if result["model"] == "seq2seq" else result["model"],
                     f"{test['bleu']:.1f}", f"{test['chrf']:.1f}", f"{test['nats']:.3f}", f"{goal:.0f}",
                     judged(test["bleu"], goal), f"{published:.1f}", *cost(result)])  # fmt: skip
    text = f"\n### {first['protocol']}\n\nBLEU by sacrebleu (`{first['figures']['how_measured']['bleu']}`) of the "
    text += (
        "generated texts, with references in lower case. Published: community notebooks with 9 to 20 M parameters on "
    )
    text += "GPUs, computed on other tokens.\n\n"
    titles = ["model", "BLEU", "chrF", "nats/token", "goal", "goal met", "published", *COST]
    text += table(titles, rows) + "\n"
    text += picture("multi30k", Plot(
        title="Multi30k, German to English", series=curves(found, "nats"), x_label="seconds",
        y_label="nats/token, validation",
        alt="Validation loss of each model over training time.",
    ))  # fmt: skip
    best = list(found.values())[-1]
    text += f"\nTranslations by {best['model']}:\n\n"
    lines = [[line["source"], line["prediction"], line["target"]] for line in best["samples"][:4]]
    return text + table(["source", "translation", "reference"], lines) + "\n"


def dates() -> str:
    found = read("writing-dates")
    if not found:
        return ""
    test = found["figures"]["test"]
    names = [name for name in test if name.startswith("exact_match")]
    rows = [
        [name.replace("_", " "), f"{test[name]:.2%}", "99.5%", judged(test[name], 0.995), *cost(found)]
        for name in names
    ]
    text = f"\n### {found['protocol']}\n\n`{found['model']}` with attention.\n\n"
    return text + table(["metric", "value", "goal", "goal met", *COST], rows) + "\n"


def lengths() -> str:
    """How much is correct by the length of the source."""
    found = read("writing-lengths")
    if not found:
        return ""
    bins = [f"{each['from']}-{each['to']}" for each in next(iter(found["runs"].values()))["by_length"]]
    rows = [
        [context, *(share(each["letters"]) for each in run["by_length"]), share(run["figures"]["exact_match"])]
        for context, run in found["runs"].items()
    ]
    text = f"\n### One vector or attention: {found['protocol']}\n\nCorrect letters by the length of the source, after "
    text += f"{found['time']} of training each; in the last column, words without an error.\n\n"
    text += table(["context", *bins, "words"], rows) + "\n"
    curves = [
        Series(name=context, x=[(each["from"] + each["to"]) / 2 for each in run["by_length"]],
               y=[each["letters"] for each in run["by_length"]])
        for context, run in found["runs"].items()
    ]  # fmt: skip
    return text + picture("lengths", Plot(
        title="Correct letters by the length of the source", series=curves, x_label="letters of the source",
        y_label="fraction of correct letters",
        alt="With one vector the fraction of correct letters falls with length; with attention it does not.",
    ))  # fmt: skip


def captions() -> str:
    rows = []
    for piece, goal in (("shapes", 0.95), ("shapes-bound", None), ("emoji", None)):
        found = read(f"writing-{piece}")
        if found:
            test, valid = found["figures"]["test"], found["figures"]["valid"]
            rows.append([found["protocol"], share(test["exact_match"]), share(goal), judged(test["exact_match"], goal),
                         f"{valid['nats']:.3f}", share(found.get("memorised")), *cost(found)])  # fmt: skip
    if not rows:
        return ""
    titles = ["images", "exact match, test", "goal", "goal met", "validation nats/token",
              "exact match, training", *COST]  # fmt: skip
    return (
        "\n### Captions\n\nA CNN trained from scratch, and a GRU that attends to its regions.\n\n"
        + table(titles, rows)
        + "\n"
    )


def recognition() -> str:
    rows = []
    for piece in ("spoken", "pen"):
        found = read(f"writing-{piece}")
        for run in found["runs"] if found else ():
            test = run["figures"]["test"]
            way = "CTC" if run["settings"].get("objective") == "ctc" else "attention"
            rows.append([found["protocol"], f"{run['model']}, {way}", share(test["character_error_rate"]),
                         share(test["exact_match"]), *cost(run)])  # fmt: skip
    titles = ["source", "model", "character error rate", "exact match", *COST]
    return f"\n### Recognition\n\n{table(titles, rows)}\n" if rows else ""


def report() -> str:
    """All tables that were measured."""
    text = translation() + dates() + lengths() + captions() + recognition()
    return "\n## Translation, captions and recognition\n\nNothing was selected on test data.\n" + text if text else ""
