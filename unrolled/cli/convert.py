"""`unrolled convert`: a checkpoint of transformers becomes a run, a run becomes one."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    source: Annotated[str, typer.Argument(help="A checkpoint directory (config.json, model.safetensors), or a run.")],
    out: Annotated[str, typer.Option("-o", "--out", help="The directory to write.")],
) -> None:
    """Convert a checkpoint directory of Hugging Face's transformers into a run directory, or a run into a checkpoint.

    Checkpoints of BERT, GPT-2 and Llama are read, with their tokenizer.json. A run that was made so generates, predicts
    and embeds as others do, and training can start from it. The other way round, runs with one of these
    architectures are written.

    Examples:

        unrolled convert checkpoints/gpt2 -o runs/gpt2

        unrolled train reviews.csv --task classify --from runs/gpt2 --freeze embedding

        unrolled convert runs/bert-text -o checkpoints/bert-text
    """
    from unrolled.runs.hub import is_checkpoint, load_checkpoint, save_checkpoint
    from unrolled.runs.run import load

    if is_checkpoint(source):
        run = load_checkpoint(source, out)
        for note in run.directory.read_json("data.json")["facts"]["notes"]:
            print(f"note: {note}")
        print(run.path)
    else:
        print(save_checkpoint(load(source), out))
