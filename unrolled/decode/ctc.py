"""What frames say under CTC: the best path, or the likeliest target by a search over prefixes.

The best path takes the likeliest token of every frame and merges them. A target has many paths, so it is not always the
likeliest target. The search keeps for every prefix w that it follows

    p_b(w), p_n(w)      the probability of all paths of t frames that say w and end in a blank, or in its last token

and goes frame by frame, q the probabilities of frame t, - the blank and c any other token (Graves 2012, section 7.5):

    p_b'(w)      = q(-) (p_b(w) + p_n(w))
    p_n'(w)      = q(c) p_n(w)                          where w ends in c
    p_n'(w + c) += q(c) (p_b(w) + p_n(w))               but q(c) p_b(w) where w ends in c already

With a width that holds every prefix the result is exact.
"""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.decode.rollout import Candidate

BLANK = 0
Prefix = tuple[int, ...]


def best_paths(logits: Tensor, mask: Tensor) -> list[Candidate]:
    """The best path of every row, merged; logits [B, S, V], mask [B, S] True = real. log_p is that of the path.

    >>> logits = 9 * torch.eye(3)[torch.tensor([[1, 1, 0, 1, 2]])]
    >>> best_paths(logits, torch.ones(1, 5, dtype=torch.bool))[0].tokens
    [1, 1, 2]
    """
    log_q, path = torch.log_softmax(logits.masked_fill(~mask.unsqueeze(-1), 0).double(), dim=-1).max(dim=-1)  # [B, S]
    totals = log_q.masked_fill(~mask, 0).sum(1).tolist()
    before = torch.cat([path.new_full((len(path), 1), BLANK), path[:, :-1]], dim=1)
    said = mask & (path != BLANK) & (path != before)  # [B, S]
    return [Candidate(path[b][said[b]].tolist(), totals[b], True, totals[b]) for b in range(len(path))]


def prefix_search(
    logits: Tensor, mask: Tensor, width: int = 8, n_best: int = 1, tokens_per_frame: int = 32
) -> list[list[Candidate]]:
    """The likeliest targets of every row, best first; log_p is that of the target, over the paths that were followed.

    width: prefixes that are kept after each frame; tokens_per_frame: the likeliest ones, that may continue a prefix.
    """
    if not 1 <= n_best <= width or tokens_per_frame < 1:
        raise UsageError(f"invalid value n_best = {n_best} with width = {width}: expected 1 <= n_best <= width")
    log_q = torch.log_softmax(logits.masked_fill(~mask.unsqueeze(-1), 0).double(), dim=-1)  # [B, S, V]
    results = []
    for b, length in enumerate(mask.sum(1).tolist()):
        beams: dict[Prefix, tuple[float, float]] = {(): (0.0, -math.inf)}  # w -> log p_b, log p_n
        best = log_q[b, :length].topk(min(tokens_per_frame, log_q.shape[2]), dim=-1)
        blanks = log_q[b, :length, BLANK].tolist()
        for values, tokens, blank in zip(best.values.tolist(), best.indices.tolist(), blanks, strict=True):
            frame = {token: value for token, value in zip(tokens, values, strict=True) if token != BLANK}
            beams = _best_of(_next(beams, frame, blank), width)
        ranked = sorted(((_either(*p), w) for w, p in beams.items()), key=lambda pair: (-pair[0], pair[1]))
        results.append([Candidate(list(w), p, True, p) for p, w in ranked[:n_best]])
    return results


def _either(p: float, q: float) -> float:
    """log(e^p + e^q)."""
    high, low = max(p, q), min(p, q)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _next(
    beams: dict[Prefix, tuple[float, float]], frame: dict[int, float], blank: float
) -> dict[Prefix, tuple[float, float]]:
    """The prefixes after one more frame; `frame` has log q of the tokens that are looked at."""
    by_blank: defaultdict[Prefix, float] = defaultdict(lambda: -math.inf)
    by_token: defaultdict[Prefix, float] = defaultdict(lambda: -math.inf)
    for w, (p_b, p_n) in beams.items():
        both = _either(p_b, p_n)
        by_blank[w] = _either(by_blank[w], blank + both)
        last = w[-1] if w else BLANK
        if last in frame:
            by_token[w] = _either(by_token[w], frame[last] + p_n)
        for c, log_q in frame.items():
            longer = (*w, c)
            by_token[longer] = _either(by_token[longer], log_q + (p_b if c == last else both))
    return {w: (by_blank[w], by_token[w]) for w in {**by_blank, **by_token}}


def _best_of(beams: dict[Prefix, tuple[float, float]], width: int) -> dict[Prefix, tuple[float, float]]:
    if len(beams) <= width:
        return beams
    ranked = sorted(beams, key=lambda w: (-_either(*beams[w]), w))
    return {w: beams[w] for w in ranked[:width]}
