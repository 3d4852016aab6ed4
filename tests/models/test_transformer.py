"""The transformers: their shape, long streams, tables with an end, rows of unequal prompts, and that they learn."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled
from tests.thorough import every
from unrolled.core import state as tree
from unrolled.core.compose import Each, Serial
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.core.trace import trace
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import collect, rollout
from unrolled.models import transformer, transformer_encoder
from unrolled.testing import check_model

V = 11


def body(**settings: object) -> transformer.Transformer:
    torch.manual_seed(5)
    return transformer.make(transformer.MODEL.tiny.updated(settings), Sizes(5, 6))


def language_model(**settings: object) -> Serial:
    inner = body(**settings)
    return Serial(Each(nn.Embedding(V, 5)), inner, Each(nn.Linear(inner.d_out, V))).double().eval()


def test_parameters_at_default_size() -> None:
    """Four blocks of eq. (7.32) at p = 128, N_1 = 512, H = 4, m = 32, and the last norm."""
    layer = transformer.make(transformer.Config(), Sizes(128, 65))
    assert layer.receptive_field == 1 + 4 * 127
    block = 4 * 128 + 2 * 512 * 128 + 512 + 128 + 4 * (4 * 32 * 128)
    assert sum(p.numel() for p in layer.parameters()) == 4 * block + 2 * 128
    assert layer.d_out == 128


def test_claims_follow_from_window_and_depth() -> None:
    assert (body().receptive_field, body().state_grows) == (None, True)
    windowed = body(window=4, n_layers=3)
    assert (windowed.receptive_field, windowed.state_grows) == (1 + 3 * 3, False)
    assert body(position="learned").max_length == 24
    assert body(position="sinusoid").max_length is None


@pytest.mark.parametrize("position", every(2, ["rotary", "sinusoid"]))
def test_windowed_models_are_lawful(position: str) -> None:
    module = type(transformer)("varied")
    tiny = transformer.MODEL.tiny.updated({"window": 3, "position": position})
    module.MODEL = replace(transformer.MODEL, tiny=tiny)
    assert "state size" in check_model(module)


def test_thousands_of_ticks_with_sinusoids_and_a_window() -> None:
    layer = body(position="sinusoid", window=16, n_layers=1, norm="post").double()
    x = torch.randn(1, 3_000, 5).double()
    with torch.no_grad():
        chunks, state = [], None
        for piece in x.split(977, 1):
            y, state = layer(piece, state)
            chunks.append(y)
        wanted = torch.cat(chunks, 1)
        ticks, state = [], None
        for t in range(3_000):
            y, state = layer(x[:, t : t + 1], state)
            ticks.append(y)
    torch.testing.assert_close(torch.cat(ticks, 1), wanted)
    assert tree.nbytes(state) < 16 * 2 * 8 * 8 + 100


def test_a_table_that_ends_is_refused_before_any_work() -> None:
    layer = body(position="learned", n_positions=10)
    worked = []
    layer.layers[1].register_forward_hook(lambda *_: worked.append(1))
    with pytest.raises(UsageError, match="position 11 is beyond max_length = 10 of Learned"):
        layer(torch.randn(1, 11, 5))
    assert worked == []


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match="width 8 is not divisible by 3 heads"):
        body(n_heads=3)


@pytest.mark.parametrize(
    "settings", [{}, {"window": 4}, {"position": "sinusoid"}, {"position": "learned"}, {"norm": "post", "window": 9}]
)
def test_unequal_prompts_are_decoded_together_as_alone(settings: dict[str, object]) -> None:
    model = language_model(**settings)
    prompts = [[1, 2, 3, 4, 5, 6, 7], [8], [3, 3, 9]]
    lengths = torch.tensor([len(p) for p in prompts])
    padded = torch.tensor([p + [0] * (7 - len(p)) for p in prompts])
    choose = make_chooser(Decoding(temperature=1.0))
    with torch.no_grad():
        together = collect(rollout(model, None, padded, lengths, choose, 0, 8, seed=3))
        for row, prompt in enumerate(prompts):
            numbers = torch.tensor([row])
            (alone,) = collect(rollout(model, None, torch.tensor([prompt]), None, choose, 0, 8, numbers, seed=3))
            assert together[row].tokens == alone.tokens
            assert together[row].log_p == pytest.approx(alone.log_p)


@pytest.mark.parametrize("settings", [{}, {"window": 3}])
def test_rows_that_skip_ticks_stand_where_they_are(settings: dict[str, object]) -> None:
    """A batch whose rows are at different lengths goes on as each row alone (state.where, state.take)."""
    model = language_model(**settings)
    tokens = torch.randint(V, (2, 20))
    with torch.no_grad():
        _, state = model(tokens[:, :6], None)
        _, state = model(tokens[:, 6:7], state)  # room has grown
        old = tree.clone(state)
        _, new = model(tokens[:, 7:8], state)
        mixed = tree.take(tree.where(torch.tensor([True, False]), new, old), torch.tensor([1, 0]))
        y, mixed = model(tokens[[1, 0], 10:12], mixed)
        y_more, _ = model(tokens[[1, 0], 12:13], mixed)
        for row, history in ((0, [*range(7)]), (1, [*range(8)])):
            mine = tokens[1 - row : 2 - row][:, [*history, 10, 11, 12]]
            wanted, _ = model(mine, None)
            torch.testing.assert_close(torch.cat([y, y_more], 1)[row], wanted[0, -3:])


def test_beam_search_finds_the_likeliest_of_all() -> None:
    model = language_model()
    stop, width, steps = 0, V**2, 3
    with torch.no_grad():
        ((best, *_),) = beam_search(model, None, torch.tensor([[4, 2]]), stop, width, steps)
        found = []
        for length in range(steps):
            for inner in itertools.product(range(1, V), repeat=length):
                sequence = [*inner, stop]
                log_q = model(torch.tensor([[4, 2, *sequence]]), None)[0][0].log_softmax(-1)
                found.append((sum(float(log_q[1 + i, token]) for i, token in enumerate(sequence)), sequence))
    log_p, tokens = max(found)
    assert best.tokens == tokens
    assert best.log_p == pytest.approx(log_p)


def test_every_layer_offers_its_weights() -> None:
    layer = body(n_layers=3)
    with trace() as seen:
        layer(torch.randn(2, 5, 5))
    assert [tuple(w.shape) for w in seen["attention"]] == [(2, 2, 5, 5)] * 3
    encoder = transformer_encoder.make(transformer_encoder.MODEL.tiny, Sizes(5, 6))
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    with trace() as seen:
        encoder(torch.randn(2, 5, 5), mask)
    for weights in seen["attention"]:
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
        assert (weights[1, :, :, 2:] == 0).all()


def test_an_encoder_table_that_ends_is_refused() -> None:
    encoder = transformer_encoder.make(
        transformer_encoder.MODEL.tiny.updated({"position": "learned", "n_positions": 4}), Sizes(5, 6)
    )
    with pytest.raises(UsageError, match="position 5 is beyond max_length = 4"):
        encoder(torch.randn(1, 5, 5), torch.ones(1, 5, dtype=torch.bool))


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "own"),
    [(24, {}), (24, {"windows": "carried"}), (0, {"length": 256, "batch_size": 4})],
)
def test_a_letter_is_carried_over_dots(window: int, own: dict[str, object], tmp_path: Path) -> None:
    """Trained, evaluated, saved and generated from through the public interface; lines of `a...a`."""
    generator = torch.Generator().manual_seed(0)
    letters = ["abcd"[int(i)] for i in torch.randint(4, (1500,), generator=generator)]
    file = tmp_path / "letters.txt"
    file.write_text("".join(f"{letter}...{letter}\n" for letter in letters))
    settings = {"d_model": 16, "d_embedding": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "steps": 200, "lr": 0.01,
                "batch_size": 16, "length": 24, "warmup": 10, "threads": 1, "evaluate_every": 200, "split": "80/20",
                "window": window} | own  # fmt: skip
    run = unrolled.train(file, model="transformer", out=tmp_path / "run", settings=settings)
    assert run.result["valid"]["nats"] < 0.34  # log 4 / 6 = 0.231 with memory, twice that without
    lines = run.generate("a...a\n", max_tokens=120)[0]["text"].splitlines()[:-1]  # five windows long
    assert sum(len(line) == 5 and line[0] == line[4] for line in lines) >= 0.8 * len(lines)
