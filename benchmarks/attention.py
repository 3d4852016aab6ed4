"""Attention: `python -m benchmarks.attention [--threads 1 2] [--repeats 5] [--only memory generation training]`.

memory      forward and backward of causal attention over T positions, each in a process of its own; the figure is how
            far its peak memory rises above what it holds before
generation  a GPT of 4 x 256 at batch 1: with keys and values as state, by computing the prefix again, and by Hugging
            Face's generate with its cache on a GPT-2 of the same size
training    a step (forward, backward, AdamW) of the same model at B = 16, T = 256 against Hugging Face's module, and
            its share of what matrix products reach on this machine

Ours and theirs take turns within one run, and the best of several counts for both. `transformers` is needed for the
comparisons only and left out with a sentence when it is not installed. Results: benchmarks/results/attention.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.recurrent import cpu_name, interleaved
from unrolled.core.compose import Each, Serial
from unrolled.core.spec import Sizes
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import collect, rollout
from unrolled.layers.attention.attention import attend_causally
from unrolled.layers.attention.scores import ScaledDot
from unrolled.layers.attention.tiled import tiled_attention
from unrolled.models import transformer

RESULTS = Path(__file__).parent / "results" / "attention.json"
HEADS, WIDTH = 2, 32  # of the attention whose memory is measured
LENGTHS = {"tiled": [2048, 4096, 8192, 16384], "sdpa": [2048, 4096, 8192, 16384], "all weights": [1024, 2048, 4096]}
VOCABULARY, D_MODEL, N_LAYERS, N_HEADS, N_POSITIONS = 65, 256, 4, 4, 1024
PREFIX, NEW = 64, 192  # tokens of a prompt, and generated behind it
B, T = 16, 256
GOALS = {"state against recomputing": 4.0, "generate": 1.5, "training step": 1.1}


# ---- memory


def all_weights(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The definition, which holds T x T weights."""
    T = q.shape[2]
    s = (q @ k.mT / WIDTH**0.5).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)
    return s.softmax(-1) @ v


WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "tiled": lambda q, k, v: tiled_attention(q, k, v, causal=True),
    "sdpa": lambda q, k, v: attend_causally(ScaledDot(WIDTH, WIDTH), q, k, v),
    "all weights": all_weights,
}


def peak() -> float:
    """The most memory that this process has held so far, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1024 if sys.platform != "darwin" else most / 1024**2


def measure(way: str, T: int) -> dict[str, Any]:
    """Run one way over T positions in this process."""
    torch.set_num_threads(1)
    small = [torch.randn(1, HEADS, 64, WIDTH, requires_grad=True) for _ in range(3)]
    WAYS[way](*small).sum().backward()  # what is loaded at the first call is not counted
    q, k, v = (torch.randn(1, HEADS, T, WIDTH, requires_grad=True) for _ in range(3))
    before, start = peak(), time.perf_counter()
    WAYS[way](q, k, v).sum().backward()
    return {
        "way": way,
        "T": T,
        "megabytes": round(peak() - before, 1),
        "seconds": round(time.perf_counter() - start, 2),
    }


def bench_memory() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for way, lengths in LENGTHS.items():
        for T in lengths:
            command = [sys.executable, "-m", "benchmarks.attention", "--one", way, str(T)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(done.stdout)
            before = rows[-1] if rows and rows[-1]["way"] == way else None
            row["growth"] = None if before is None else round(row["megabytes"] / max(before["megabytes"], 0.1), 2)
            rows.append(row)
            growth = "" if row["growth"] is None else f"  x {row['growth']:.2f} for twice the length"
            print(
                f"memory      {way:12} T {T:6}  {row['megabytes']:8.1f} MB  {row['seconds']:7.2f} s{growth}", flush=True
            )
    return rows


# ---- ours and theirs


def ours() -> Serial:
    """A GPT-2 of this size: learned positions, pre-norm, gelu, the head tied to the embedding."""
    config = transformer.Config(
        d_model=D_MODEL, n_layers=N_LAYERS, n_heads=N_HEADS, d_ff=4 * D_MODEL, position="learned",
        n_positions=N_POSITIONS, window=0,
    )  # fmt: skip
    embedding, head = nn.Embedding(VOCABULARY, D_MODEL), nn.Linear(D_MODEL, VOCABULARY, bias=False)
    head.weight = embedding.weight
    return Serial(Each(embedding), transformer.make(config, Sizes(D_MODEL, VOCABULARY)), Each(head))


def theirs() -> Any:
    """Hugging Face's GPT-2 of the same size, or None with a sentence."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        print(
            "transformers is not installed, so the comparison with Hugging Face is left out: pip install transformers"
        )
        return None
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=N_POSITIONS, n_embd=D_MODEL, n_layer=N_LAYERS, n_head=N_HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def line(what: str, peer: str, found: dict[str, float], unit: str) -> dict[str, Any]:
    ratio = found["ours"] / found[peer]
    goal = GOALS[what]
    print(f"{what:26} {peer} {found[peer]:9.1f}  ours {found['ours']:9.1f} {unit}  ratio {ratio:5.2f}  goal {goal:.2f} "
          f"{'met' if ratio >= goal else 'MISSED'}", flush=True)  # fmt: skip
    return {"what": what, **{name: round(value, 2) for name, value in found.items()}, "unit": unit,
            "ratio": round(ratio, 3), "goal": goal}  # fmt: skip


# ---- generation


def bench_generation(repeats: int) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    model, peer = ours().eval(), theirs()
    tokens = torch.randint(VOCABULARY, (1, 512))
    choose = make_chooser(Decoding(temperature=0))
    rows = []
    with torch.no_grad():
        _, state = model(tokens, None)
        _, state = model(tokens[:, -1:], state)  # now there is spare room
        runs: list[Callable[[], Any]] = [lambda: model(tokens, None), lambda: model(tokens[:, -1:], state)]
        again, tick = interleaved(runs, 4 * repeats, inner=4)
        found = {"recomputing": 1 / again, "ours": 1 / tick}
        rows.append(line("state against recomputing", "recomputing", found, "tokens/s at length 512"))
        if peer is not None:
            rows.append(_generate(model, peer.eval(), tokens[:, :PREFIX], choose, repeats))
    return rows


def _generate(model: Serial, peer: Any, prompt: Tensor, choose: Any, repeats: int) -> dict[str, Any]:
    from transformers import GenerationConfig

    settings = GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, use_cache=True, pad_token_id=0)
    runs: list[Callable[[], Any]] = [
        lambda: peer.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings),
        lambda: collect(rollout(model, None, prompt, None, choose, (), NEW)),
    ]
    assert len(runs[0]()[0]) == PREFIX + NEW
    assert len(runs[1]()[0].tokens) == NEW
    times = interleaved(runs, repeats)
    row = line("generate", "hugging face", {"hugging face": NEW / times[0], "ours": NEW / times[1]}, "tokens/s")
    return row | {"prompt": PREFIX, "parameters": count(model), "their_parameters": count(peer)}


# ---- training


def bench_training(repeats: int) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    model, peer = ours(), theirs()
    x = torch.randint(VOCABULARY, (B, T + 1))

    def our_loss() -> Tensor:
        return F.cross_entropy(model(x[:, :-1], None)[0].flatten(0, 1), x[:, 1:].flatten())

    def their_loss() -> Tensor:
        logits: Tensor = peer(x[:, :-1], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())

    a = torch.randn(2048, 2048)
    runs = [_step(model, our_loss), lambda: a @ a]
    if peer is not None:
        runs.append(_step(peer, their_loss))
    own, product, *rest = interleaved(runs, repeats)
    matmul = 2 * 2048**3 / product
    products = count(model) - N_POSITIONS * D_MODEL  # weights that are multiplied with, the head's included
    work = 6 * products + 6 * N_LAYERS * T * D_MODEL  # per token; causal attention does half of T x T
    share = work * B * T / own / matmul
    print(
        f"training step  {B * T / own:9.0f} tokens/s, {share:.0%} of {matmul / 1e9:.0f} GFLOP/s in products", flush=True
    )
    found = {"what": "training step", "tokens_per_second": round(B * T / own), "share_of_matmul_peak": round(share, 3),
             "matmul_gflops": round(matmul / 1e9, 1), "size": [B, T, N_LAYERS, D_MODEL]}  # fmt: skip
    if not rest:
        return [found]
    speeds = {"hugging face": B * T / rest[0], "ours": B * T / own}
    return [found | line("training step", "hugging face", speeds, "tokens/s")]


def _step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[torch.get_num_threads()], help="thread counts to run"
    )
    parser.add_argument("--repeats", type=int, default=5, help="turns of each; the best counts")
    parser.add_argument("--only", nargs="+", default=["memory", "generation", "training"], help="which parts to run")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "T"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    report: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    report |= {"torch": torch.__version__, "python": platform.python_version(), "cpu": cpu_name()}
    if "memory" in options.only:
        report["memory"] = bench_memory()
    for threads in options.threads:
        torch.set_num_threads(threads)
        print(f"--- {threads} thread(s), {cpu_name()}, torch {torch.__version__}")
        if "generation" in options.only:
            report.setdefault("generation", {})[str(threads)] = bench_generation(options.repeats)
        if "training" in options.only:
            report.setdefault("training", {})[str(threads)] = bench_training(options.repeats)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
