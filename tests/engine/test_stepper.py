"""Native steppers against torch: the same logits, states and tokens, whatever happened to the model in between."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from tests.engine.decoders import BODIES, CAUSAL, decoder
from tests.thorough import every
from unrolled.core import state as tree
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError, UnrolledError
from unrolled.core.trace import trace
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import best_of, drawn, rollout
from unrolled.decode.text import Begun, Writer
from unrolled.decode.together import Row, Together
from unrolled.engine.stepper import Stepper, lowered, stepped, stepper
from unrolled.kernels import native
from unrolled.layers.parts.assembled import Decoder

LEVELS = [level for level in native.built() if level in native.allowed()[0]]
pytestmark = pytest.mark.skipif(not LEVELS, reason="no native library was built")
V = 11


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def highest() -> Iterator[None]:
    """Where a test does not say which level: the highest, also where the environment says off."""
    with native.using(LEVELS[-1]):
        yield


def native_step(model: Causal) -> Stepper:
    found = lowered(model)
    assert isinstance(found, Stepper), found
    return found


@torch.no_grad()
def apart(model: Causal, rows: int, ticks: int, first: int = 3, step: Stepper | None = None) -> float:
    """The largest difference of logits and of what continues from the states, over some ticks after a chunk."""
    step = step or native_step(model)
    x = torch.randint(0, V, (rows, first))
    (_, state), (_, own) = model(x, None), model(x, None)
    worst = 0.0
    for _ in range(ticks):
        x = torch.randint(0, V, (rows, 1))
        (y, state), (z, own) = model(x, state), step(x, own)
        worst = max(worst, float((y - z).abs().max()))
    x = torch.randint(0, V, (rows, 4))
    return max(worst, float((model(x, state)[0] - model(x, own)[0]).abs().max()))


@pytest.mark.parametrize(("rows", "name"), every(2, itertools.product([1, 3, 6, 15], CAUSAL)))
def test_a_tick_is_that_of_torch(level: str, rows: int, name: str) -> None:
    torch.manual_seed(rows)
    for width in (1, 5, 16, 33):
        assert apart(decoder(name, width), rows, ticks=20) < 1e-5


@pytest.mark.parametrize("name", every(2, CAUSAL))
def test_double_precision_is_lowered_too(level: str, name: str) -> None:
    assert apart(decoder(name, 6).double(), 2, ticks=20) < 1e-12


DECODINGS = {
    "plain": Decoding(), "cool": Decoding(temperature=0.6), "greedy": Decoding(temperature=0.0),
    "top-k": Decoding(top_k=3), "nucleus": Decoding(top_p=0.7), "penalty": Decoding(repetition_penalty=1.5),
    "all": Decoding(temperature=1.4, top_k=7, top_p=0.8, repetition_penalty=1.2),
}  # fmt: skip


def tokens(step: object, decoding: Decoding, n: int, rows: int = 1, stop: tuple[int, ...] = (), of: int = 1) -> list:
    prompt = (torch.arange(4 * rows) % V).view(rows, 4)
    choose = make_chooser(decoding, (0, 2))
    found = best_of(of, step, None, prompt, None, choose, stop, n, seed=decoding.seed)  # type: ignore[arg-type]
    return [(c.tokens, c.finished, round(c.log_p, 2)) for group in found for c in group]


def test_a_thousand_tokens_on_five_seeds() -> None:
    """As long as no two choices are within 1e-5 of one another, which these seeds have not met."""
    model = decoder("lstm", 24, sharpness=6.0)
    for seed in range(5):
        asked = Decoding(seed=seed)
        assert tokens(native_step(model), asked, 1000) == tokens(model, asked, 1000)


@pytest.mark.parametrize("name", DECODINGS)
def test_tokens_by_every_setting(level: str, name: str) -> None:
    model = decoder("lstm", 24, sharpness=6.0)
    for dtype in (torch.float32, torch.float64):
        model.to(dtype)
        assert tokens(native_step(model), DECODINGS[name], 100) == tokens(model, DECODINGS[name], 100)


@pytest.mark.parametrize("name", every(2, CAUSAL))
def test_tokens_of_each_family(level: str, name: str) -> None:
    model = decoder(name, 8, sharpness=4.0)
    assert tokens(native_step(model), Decoding(), 60) == tokens(model, Decoding(), 60)


def test_rows_that_stop_at_different_ticks() -> None:
    model = decoder("gru", 8, sharpness=3.0)
    for asked in (Decoding(), Decoding(repetition_penalty=1.3)):
        mine = tokens(native_step(model), asked, 90, rows=5, stop=(4, 7), of=3)
        assert mine == tokens(model, asked, 90, rows=5, stop=(4, 7), of=3)
        assert len({len(each) for each, _, _ in mine}) > 3


def test_prompts_of_different_lengths() -> None:
    model, prompt, lengths = decoder("lstm", 8), torch.randint(0, V, (4, 9)), torch.tensor([9, 2, 5, 3])
    found = []
    for step in (model, native_step(model)):
        blocks = list(drawn(step, None, prompt, lengths, make_chooser(Decoding()), (3,), 12))
        active = torch.cat([block.active for block in blocks], 1)
        chosen = torch.cat([block.tokens for block in blocks], 1)
        found.append([row[mine].tolist() for row, mine in zip(chosen, active, strict=True)])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", every(3, CAUSAL))
def test_rows_that_join_and_leave(level: str, name: str) -> None:
    """Alone they make several ticks at once, beside others one; the tokens are those of torch."""
    model = decoder(name, 8, sharpness=4.0)
    together, waiting, found = Together(stepped), [*DECODINGS.values()], {}
    with torch.no_grad():
        for turn in range(200):
            if waiting and turn % 3 == 0:
                asked, prompt = waiting.pop().settled(True, 20), torch.tensor([[4, 5, 6, 7, 8][: 1 + len(waiting) % 5]])
                row = Row(Begun(prompt, model, None), asked, [3], [0, 2], number=0)
                together.join(row)
                found[row] = []
            for row, token in together.tick():
                found[row].append(token.token)
    assert len(found) == len(DECODINGS) and not len(together)
    for row, mine in found.items():
        choose = make_chooser(row.decoding, (0, 2))
        with torch.no_grad():
            alone = list(rollout(model, None, row.begun.prompt, None, choose, (3,), 20))
        assert [int(column.tokens[0]) for column in alone] == mine


def test_blocks_are_the_columns_of_a_rollout() -> None:
    model, prompt, choose = decoder("elman", 8), torch.tensor([[1, 2], [3, 4]]), make_chooser(Decoding())
    with torch.no_grad():
        columns = list(rollout(model, None, prompt, None, choose, (), 20))
    blocks = list(drawn(native_step(model), None, prompt, None, choose, (), 20))
    assert torch.equal(torch.cat([b.tokens for b in blocks], 1), torch.stack([c.tokens for c in columns], 1))
    log_p = torch.cat([b.log_p for b in blocks], 1), torch.stack([c.log_p for c in columns], 1)
    assert torch.allclose(log_p[0].float(), log_p[1].float(), atol=1e-5)
    assert len(blocks) < 20


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", CAUSAL)
def test_beams(name: str, width: int) -> None:
    model = decoder(name, 8, sharpness=2.0)
    prompt = torch.tensor([[1, 2], [3, 4]])
    found = [
        beam_search(step, None, prompt, (3,), width, 15, 0.6, forbidden=(0,))
        for step in (model, native_step(model))
    ]  # fmt: skip
    assert [[c.tokens for c in group] for group in found[0]] == [[c.tokens for c in group] for group in found[1]]


# ---- whatever happens to the model


def lstm_and_step() -> tuple[Causal, Stepper]:
    model = decoder("lstm", 9)
    return model, native_step(model)


def rewritten(model: Causal) -> None:
    other = decoder("lstm", 9, seed=1)
    model.load_state_dict(other.state_dict())


def optimised(model: Causal) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.tensor([[1, 2, 3]]))[0].square().sum().backward()
    optimiser.step()


def behind_the_back(model: Causal) -> None:
    """No version counter tells of this."""
    for p in model.parameters():
        p.data.mul_(-1.5)
        p.detach().numpy()[...] += 0.25


def replaced(model: Causal) -> None:
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None:
                module._parameters[name] = nn.Parameter(torch.randn_like(p))


CHANGES: list[Callable[[Causal], object]] = [
    rewritten, optimised, behind_the_back, replaced, lambda model: model.double(),
    lambda model: model.to(torch.float64),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_change_after_lowering(change: Callable[[Causal], object]) -> None:
    model, _ = lstm_and_step()
    change(model)
    assert apart(model, 2, ticks=5) < 1e-5
    change(model)
    assert tokens(native_step(model), Decoding(), 50) == tokens(model, Decoding(), 50)


def test_weights_that_do_not_change_are_packed_once() -> None:
    model, step = lstm_and_step()
    assert native_step(model).program is step.program
    rewritten(model)
    assert native_step(model).program is not step.program


def test_two_threads_write_with_one_model() -> None:
    model = decoder("gru", 40)
    asked = [Decoding(seed=seed, temperature=0.5 + seed) for seed in range(4)]
    alone = [tokens(native_step(model), each, 800) for each in asked]
    found: dict[int, list] = {}

    def write(i: int) -> None:
        with native.using(LEVELS[-1]):
            found[i] = tokens(native_step(model), asked[i], 800)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(4)] == alone


# ---- where torch makes the ticks


class Own(Causal):
    def __init__(self) -> None:
        super().__init__()
        self.inner = decoder("lstm", 4)

    def forward(self, x: Tensor, state: object = None) -> tuple[Tensor, object]:
        return self.inner(x, state)


def test_a_layer_without_a_native_form_is_left_to_torch_and_named() -> None:
    assert stepper(Own()) is None
    assert lowered(Own()) == "Own has no native form"
    assert isinstance(stepped(Own()), Own)
    with native.using("off"):
        assert "UNROLLED_NATIVE" in str(lowered(decoder("lstm", 4))) or "off" in str(lowered(decoder("lstm", 4)))


def test_hooks_and_subclasses_are_not_lowered() -> None:
    model = decoder("lstm", 4)
    handle = model.body.layers[0].cell.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    assert "LSTM" in str(lowered(model))
    handle.remove()
    assert isinstance(lowered(model), Stepper)
    torch.nn.utils.parametrizations.weight_norm(model.head, "weight")  # type: ignore[arg-type]
    assert isinstance(lowered(model), str)


def test_steps_that_native_code_does_not_make() -> None:
    _, step = lstm_and_step()
    x = torch.tensor([[1], [2]])
    with torch.no_grad():
        _, state = step(x, None)
        many, _ = step(x.expand(2, 4), state)
    assert many.shape == (2, 4, V)
    y, _ = step(x, tree.clone(state))  # with gradients
    assert y.requires_grad
    with torch.no_grad(), trace() as seen:
        step(x, tree.clone(state))
    assert seen["output"]
    with torch.no_grad(), pytest.raises(Exception, match="state"):
        step(x, torch.zeros(2, 3))
    with torch.no_grad(), pytest.raises(IndexError):
        step(torch.tensor([[1], [V]]), tree.clone(state))


def test_a_state_is_not_written_into_where_it_belongs_to_a_graph() -> None:
    model, step = lstm_and_step()
    x = torch.tensor([[1, 2]])
    y, state = model(x, None)
    with torch.no_grad():
        step(x[:, :1], state)
    y.sum().backward()


def test_outputs_that_are_not_finite_are_told() -> None:
    model = decoder("lstm", 4)
    with torch.no_grad():
        model.head.bias[3] = float("nan")  # type: ignore[union-attr,index]
    with pytest.raises(DataError, match="no token can be chosen in row 0"):
        tokens(native_step(model), Decoding(), 5)


class Letters:
    """A codec of nothing."""

    def decode(self, ids: list[int]) -> str:
        return "".join(chr(97 + k) for k in ids)

    def name(self, token: int) -> str:
        return chr(97 + token)

    def stream(self) -> Letters:
        return self

    def push(self, token: int) -> str:
        return chr(97 + token)

    def close(self) -> str:
        return ""


def test_streams_are_written_piece_by_piece() -> None:
    model = decoder("lstm", 8)
    writer, asked = Writer(Letters(), [4], [0]), Decoding(max_tokens=50)
    both = [
        list(writer.stream(Begun(torch.tensor([[1, 2]]), step, None), asked)) for step in (model, native_step(model))
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize("rows", [1, 4])
def test_vectors_in_place_of_tokens(level: str, rows: int) -> None:
    torch.manual_seed(2)
    model = Decoder(nn.Linear(3, 6), BODIES["tcn"](6, 7), None).eval()
    step = native_step(model)
    assert step.program.reads == "numbers"
    with torch.no_grad():
        _, state = model(torch.randn(rows, 4, 3), None)
        own = tree.clone(state)
        for _ in range(20):
            x = torch.randn(rows, 1, 3)
            (y, state), (z, own) = model(x, state), step(x, own)
            assert torch.allclose(y, z, atol=1e-5)
    assert step.draw(y[:, 0], own, torch.ones(rows, 1).long(), torch.ones(rows).long(), make_chooser(Decoding()), (), 3,
                     Noise(0, torch.arange(rows))) is None  # fmt: skip


@pytest.mark.parametrize("name", ["gpt", "gpt-window", "gpt2", "one-hot", "tcn", "wavenet"])
def test_states_that_no_model_makes_are_refused(level: str, name: str) -> None:
    """As a damaged file may hold them; native code must not look outside of its memory."""
    model, x = decoder(name, 8), torch.ones(2, 1, dtype=torch.long)
    with torch.no_grad():
        _, state = model(torch.ones(2, 3, dtype=torch.long), None)
        for leaf in tree.leaves(state):
            if leaf.dtype == torch.long:
                leaf[1] = -(10**6)
        with pytest.raises((UnrolledError, RuntimeError, IndexError)):
            native_step(model)(x, state)
