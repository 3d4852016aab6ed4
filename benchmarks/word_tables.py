"""The section of docs/results.md on word vectors, from what benchmarks.word_vectors kept."""

from __future__ import annotations

from benchmarks.page import read, table


def words() -> str:
    """Words per second, and how well related words are told from random ones, beside gensim."""
    found = read("word-vectors")
    if not found:
        return ""
    text = (
        f"\n## Word vectors\n\nSkip-gram vectors of {found['width']} numbers on {found['words']:,} words of a slice of "
    )
    text += (
        f"Wikipedia, {found['epochs']} epochs, {found['workers']} workers, beside gensim {found['gensim_version']}; "
    )
    text += "`related` is the area under the ROC curve on held-out text ([word vectors](word_vectors.md)).\n\n"
    missed = "" if found["ratio"] >= found["goal"] else " missed"
    rows = [
        ["words per second", f"{found['ours']:,}", f"{found['gensim']:,}", f"{found['ratio']:.2f}{missed}"],
        ["related", f"{found['related']['ours']:.3f}", f"{found['related']['gensim']:.3f}", f"{-found['behind']:+.3f}"],
    ]
    return text + table(["metric", "ours", "gensim", "ratio (goal 1.5), difference (at least -0.02)"], rows) + "\n"
