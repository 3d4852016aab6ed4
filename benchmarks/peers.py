"""Models of other libraries, of the same sizes as ours, in a process of their own: its python is named by PEER_PYTHON.

A benchmark asks for one run at a time and gets its seconds, so that ours and theirs take turns:

    with Peers() as peers:
        best = in_turns({"ours": seconds_of(ours), "hugging face": peers.run("gpt", rows=1, ..)}, repeats=7)

The environment needs torch, transformers and ctranslate2. With one thread the clock is that of the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

Seconds = Callable[[], float]
START, STOP, EMPTY = 2, 3, 0


def in_turns(runs: Mapping[str, Seconds], repeats: int) -> dict[str, float]:
    """The best seconds of each run; the first turn warms up."""
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(repeats + 1):
        for name, run in runs.items():
            seconds = run()
            best[name] = min(best[name], seconds) if turn else best[name]
    return best


def seconds_of(run: Callable[[], object], clock: Callable[[], float] = time.process_time) -> Seconds:
    def timed() -> float:
        begun = clock()
        run()
        return clock() - begun

    return timed


class Peers:
    """The process of the peers; without PEER_PYTHON there is none, and `run` gives nothing."""

    def __init__(self, threads: int = 1) -> None:
        self.python, self.threads = os.environ.get("PEER_PYTHON"), threads
        self.process: subprocess.Popen[str] | None = None
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self.python is None:
            print("PEER_PYTHON is not set: peers are left out; name the python of an environment that has transformers "
                  "and ctranslate2")  # fmt: skip
            return self
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads), "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            [self.python, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        self.versions = self._ask({"threads": self.threads})
        return self

    def __exit__(self, *error: object) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()

    def run(self, name: str, **settings: Any) -> dict[str, Seconds]:
        """A model of that kind, by the libraries that have it: what runs it once."""
        if self.process is None:
            return {}
        found: list[str] = self._ask({"make": name, "settings": settings})
        return {each: partial(self._ask, {"run": each}) for each in found}

    def _ask(self, what: dict[str, Any]) -> Any:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("the process of the peers has ended, see above")
        return json.loads(answer)


# ---- in that process


def gpt(tokens: int, width: int, layers: int, heads: int, new: int) -> dict[str, Callable[[], int]]:
    """GPT-2 with random weights writes `new` tokens, sampling."""
    import ctranslate2
    import torch
    from tokenizers import Tokenizer, models
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    ids = {"vocab_size": tokens, "bos_token_id": START, "eos_token_id": STOP}
    model = GPT2LMHeadModel(GPT2Config(n_embd=width, n_layer=layers, n_head=heads, n_positions=1024, **ids)).eval()
    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(tokens)}, unk_token="t1"))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        named = {"unk_token": "t1", "bos_token": f"t{START}", "eos_token": f"t{STOP}"}
        PreTrainedTokenizerFast(tokenizer_object=words, **named).save_pretrained(folder)
        place = ctranslate2.converters.TransformersConverter(folder).convert(f"{folder}/converted")
        threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
        quick = ctranslate2.Generator(place, device="cpu", compute_type="float32", **threads)
    asked = GenerationConfig(
        max_new_tokens=new, min_new_tokens=new, do_sample=True, top_k=0, use_cache=True, pad_token_id=EMPTY,
        eos_token_id=STOP, bos_token_id=START,
    )  # fmt: skip
    first = torch.tensor([[5]])

    def slowly() -> int:
        found = model.generate(first, attention_mask=torch.ones_like(first), generation_config=asked)
        return int(found.shape[1]) - 1

    def quickly() -> int:
        lengths = {"max_length": new, "min_length": new}
        (found,) = quick.generate_batch([["t5"]], sampling_topk=0, include_prompt_in_result=False, **lengths)
        return len(found.sequences_ids[0])

    return {"hugging face": slowly, "ctranslate2": quickly}


def beam(
    tokens: int, width: int, layers: int, heads: int, d_ff: int, new: int, beams: int, rows: int, source: int
) -> dict[str, Callable[[], int]]:
    """An encoder-decoder (Marian) with random weights, by beam search."""
    import torch
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=tokens, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=d_ff, decoder_ffn_dim=d_ff, activation_function="relu",
        max_position_embeddings=512, share_encoder_decoder_embeddings=False, decoder_vocab_size=tokens,
        bos_token_id=START, eos_token_id=STOP, pad_token_id=EMPTY, decoder_start_token_id=START,
        forced_eos_token_id=None,
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    asked = GenerationConfig(
        max_new_tokens=new, min_new_tokens=new, num_beams=beams, do_sample=False, use_cache=True, length_penalty=0.0,
        pad_token_id=EMPTY, eos_token_id=STOP, bos_token_id=START, decoder_start_token_id=START,
    )  # fmt: skip
    x = torch.randint(STOP + 1, tokens, (rows, source))

    def search() -> int:
        found = model.generate(x, attention_mask=torch.ones_like(x), generation_config=asked)
        return int(found[:, 1:].numel())

    return {"hugging face": search}


KINDS: dict[str, Callable[..., dict[str, Callable[[], int]]]] = {"gpt": gpt, "beam": beam}


def serve() -> None:
    """Answer questions, one JSON line for each."""
    sys.path = [each for each in sys.path if Path(each) != Path(__file__).parent]  # coverage.py is another module
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print
    import ctranslate2
    import torch
    import transformers

    torch.manual_seed(0)
    made: dict[str, Callable[[], int]] = {}
    expected = 0
    for line in sys.stdin:
        asked = json.loads(line)
        answer: Any
        if "threads" in asked:
            torch.set_num_threads(asked["threads"])
            answer = {each.__name__: each.__version__ for each in (torch, transformers, ctranslate2)}
        elif "make" in asked:
            made = KINDS[asked["make"]](**asked["settings"])
            expected = asked["settings"]["new"] * asked["settings"].get("rows", 1)
            answer = [*made]
        else:
            clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
            begun = clock()
            written = made[asked["run"]]()
            answer = clock() - begun
            assert written == expected, f"{asked['run']} wrote {written} tokens, not {expected}"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
