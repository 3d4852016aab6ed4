"""The copy memory task: `python -m benchmarks.copy_memory MODEL [--minutes 10] [--length 1000]`.

    input    10 random symbols of 1 .. 8, then T - 1 blanks (0), then 11 times 9: a delimiter, and room to answer
    target   T + 10 blanks, then the 10 symbols

as in Bai, Kolter & Koltun (2018), section 5.2: loss averaged over all T + 20 positions. Who knows the pattern but
remembers nothing pays 10 ln(8) / (T + 20). Data is made on the fly, so nothing is seen twice; the rate falls to zero
over the last half of the time. The learning curve goes to benchmarks/results/copy-memory-MODEL.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.recurrent import cpu_name
from unrolled.core.causal import Causal
from unrolled.core.spec import Ports
from unrolled.runs.build import build, count_parameters
from unrolled.runs.config import Ends, RunConfig

RESULTS = Path(__file__).parent / "results"
N_SYMBOLS, N_RECALL, BLANK, DELIMITER, V = 8, 10, 0, 9, 10
PUBLISHED = {"tcn": 3.5e-5, "lstm": 0.0204, "gru": 0.0197}
# 13 to 17 K parameters, about the size of the published comparison
SETTINGS: dict[str, dict[str, Any]] = {
    "tcn": {"widths": (10,) * 8, "kernel": 8},
    "lstm": {"d_state": 58},
    "gru": {"d_state": 67},
}
RATE = {"tcn": 5e-3, "lstm": 2e-3, "gru": 2e-3}


def make_batch(rows: int, T: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """x and y [B, T + 20]."""
    symbols = torch.randint(1, N_SYMBOLS + 1, (rows, N_RECALL), generator=generator)
    x = torch.full((rows, T + 2 * N_RECALL), BLANK)
    y = torch.full_like(x, BLANK)
    x[:, :N_RECALL] = symbols
    x[:, T + N_RECALL - 1 :] = DELIMITER
    y[:, -N_RECALL:] = symbols
    return x, y


def guess(T: int) -> float:
    """The loss of knowing the pattern and none of the symbols."""
    return N_RECALL * math.log(N_SYMBOLS) / (T + 2 * N_RECALL)


def evaluate(model: Causal, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Loss per position, and the share of the symbols to recall that are right."""
    model.eval()
    total, right = 0.0, 0
    with torch.no_grad():
        for a, b in zip(x.split(20), y.split(20)):
            logits = model(a)[0]  # [B, T + 20, V]
            total += F.cross_entropy(logits.flatten(0, 1), b.flatten(), reduction="sum").item()
            right += int((logits[:, -N_RECALL:].argmax(-1) == b[:, -N_RECALL:]).sum())
    model.train()
    return total / y.numel(), right / (len(y) * N_RECALL)


def train(name: str, T: int, minutes: float, rows: int, rate: float, seed: int) -> dict[str, Any]:
    settings = SETTINGS.get(name, {})
    config = RunConfig(model=name, model_settings=settings, ends=Ends(input="one-hot"), seed=seed)
    model = build(config, Ports(V, V), ("causal",))
    assert isinstance(model, Causal)
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    generator = torch.Generator().manual_seed(seed)
    test = make_batch(100, T, torch.Generator().manual_seed(seed + 1))
    print(f"{name}: {count_parameters(model):,} parameters, receptive field {model.receptive_field or 'all'}, "
          f"guessing gives {guess(T):.3g}", flush=True)  # fmt: skip
    begin = time.perf_counter()
    curve: list[dict[str, float]] = []
    step, passed = 0, 0.0
    while True:
        passed = (time.perf_counter() - begin) / (60 * minutes)
        if passed >= 1 or passed >= len(curve) / 20:
            loss, right = evaluate(model, *test)
            curve.append({"step": step, "seconds": round(60 * minutes * passed, 1), "loss": loss, "recalled": right})
            print(f"{curve[-1]['seconds']:7.1f} s  step {step:6}  loss {loss:.3e}  recalled {right:.3f}", flush=True)
        if passed >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = rate * min((step + 1) / 50, 1.0, 2 * (1 - passed))
        x, y = make_batch(rows, T, generator)
        logits = model(x)[0]
        optimiser.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        step += 1
    return {
        "protocol": f"copy memory, T = {T}, {minutes:g} minutes on {torch.get_num_threads()} threads",
        "model": name, "settings": settings, "parameters": count_parameters(model), "T": T, "rows": rows, "lr": rate,
        "seed": seed, "steps": step, "loss": curve[-1]["loss"], "recalled": curve[-1]["recalled"], "guess": guess(T),
        "published": PUBLISHED.get(name), "torch": torch.__version__, "python": platform.python_version(),
        "cpu": cpu_name(), "curve": curve,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="any causal model; tcn, lstm and gru have the size of the published ones")
    parser.add_argument("--minutes", type=float, default=10.0, help="training time")
    parser.add_argument("--length", type=int, default=1000, help="T, the blanks")
    parser.add_argument("--rows", type=int, default=16, help="rows per batch")
    parser.add_argument("--rate", type=float, help="peak learning rate")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="processor threads")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rate = options.rate or RATE.get(options.model, 2e-3)
    result = train(options.model, options.length, options.minutes, options.rows, rate, options.seed)
    if options.length == 1000:
        place = RESULTS / f"copy-memory-{options.model}.json"
        place.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written to {place}")
    else:
        print(f"not written: the protocol has T = 1000, this was {options.length}")


if __name__ == "__main__":
    main()
