"""The tables of what runs on several processes, and large tables, come to."""

from __future__ import annotations

from benchmarks.page import read, table

ENGINES = {"processes": "processes of one machine", "join": "two processes that join a plan", "ray": "Ray"}
GOALS = {"join": 1.05, "ray": 1.10}


def scale() -> str:
    """Engines beside the process engine, and two processes beside one."""
    return _engines() + _processes() + _large_tables()


def _engines() -> str:
    found = read("scale")
    if not found:
        return ""
    rows = [
        [ENGINES[name], f"{ratio:.2f}", f"{GOALS[name]:.2f}" if name in GOALS else ""]
        for name, ratio in found["ratios"].items()
    ]
    text = (
        f"\n## Many runs, by engine\n\nA comparison of {found['runs']} runs of {found['steps']} steps on "
        f"{found['cores']} cores: time of the whole, planning and start included, over that of the process engine, the "
        f"best of {found['rounds']} rounds. "
    )
    same = "the same digit by digit" if found["same_scores"] else "not the same"
    return text + f"Scores are {same}.\n\n" + table(["engine", "ratio", "goal"], rows) + "\n"


def _processes() -> str:
    found = read("processes")
    if not found:
        return ""
    rows = [[name, f"{speed:,}"] for name, speed in found["tokens_per_second"].items()]
    text = (
        f"\n## One run on two processes\n\nA GPT of 4 layers of width 256, 16 rows of 256 characters, one thread for "
        f"each process, {found['cores']} cores, {found['cpu']}: {found['ratio']:.2f} times as many tokens per second "
        f"(goal {found['goal']}). After {found['steps']} steps the loss on validation data differs by "
        f"{found['largest_difference_of_loss']:.0e}.\n\n"
    )
    return text + table(["processes", "tokens per second"], rows) + "\n"


def _large_tables() -> str:
    found = read("large_tables")
    if not found:
        return ""
    names = ("file_megabytes", "rows", "peak_anonymous_megabytes", "seconds")
    rows = [[row["table"], *(f"{row[name]:,}" for name in names)] for row in found]
    text = "\n## Memory does not grow with a table\n\nParquet files of labelled texts and of pairs, 20 steps. "
    titles = ["table", *(name.replace("_", " ") for name in names)]
    return text + "The goal is 1,500 MB.\n\n" + table(titles, rows) + "\n"
