"""Weights in fewer bits: what rounding does to numbers, and programs that keep them as they are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from tests.engine.decoders import CAUSAL, decoder
from tests.engine.test_ensembles import ensemble
from tests.engine.test_stepper import LEVELS, apart, native_step, tokens
from tests.thorough import every
from unrolled.core.causal import Causal
from unrolled.decode.config import Decoding
from unrolled.engine.builder import CannotLower
from unrolled.engine.forms import FORMS, held, rounded
from unrolled.engine.operations import Do, Form
from unrolled.engine.rounding import round_weights
from unrolled.kernels import native
from unrolled.layers.parts.assembled import Decoder

COMPUTED = {"tcn-normed", "feedback"}  # some of whose matrices are made of several parameters
pytestmark = pytest.mark.skipif(not LEVELS, reason="no native library was built")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def highest() -> Iterator[None]:
    with native.using(LEVELS[-1]):
        yield


def matrices() -> Iterator[Tensor]:
    torch.manual_seed(0)
    for n, K in ((1, 1), (3, 1), (1, 7), (40, 33)):
        for scale in (1e-30, 1e-3, 1.0, 1e30):
            yield scale * torch.randn(n, K)
    yield torch.cat([torch.zeros(2, 5), torch.randn(2, 5), torch.full((1, 5), 1e-44)])


@pytest.mark.parametrize("form", FORMS.values())
def test_rounded_numbers_are_near_and_held_exactly(form: Form) -> None:
    for W in matrices():
        near = rounded(W, form)
        most = W.abs() / 256 if form == Form.BF16 else W.abs().amax(1, keepdim=True) / 253
        assert ((near - W).abs() <= most.clamp(min=2.0**-100)).all()
        assert torch.equal(rounded(near, form), near)
        found, numbers, scales = held(near)
        assert found != Form.FULL
        back = numbers.view(torch.bfloat16).float() if found == Form.BF16 else numbers * scales[:, None]  # type: ignore[index]
        assert torch.equal(back, near)


def test_no_number_is_lost_without_being_asked() -> None:
    W = torch.randn(9, 20)
    assert held(W).form == Form.FULL
    for form in FORMS.values():
        near = rounded(W, form)
        assert held(near).form == form
        near[8, 19] = torch.nextafter(near[8, 19], torch.tensor(9.0))  # one digit of the last number
        assert held(near).form == Form.FULL
    for bad in (float("nan"), float("inf")):
        near = rounded(W, Form.INT8)
        near[3, 3] = bad
        assert held(near).form != Form.INT8
    assert held(torch.ones(2, 2).double()).form == Form.FULL


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "name"), every(2, itertools.product([1, 3, 6, 15], CAUSAL)))
def test_a_tick_with_rounded_weights_is_that_of_torch(level: str, form: str, rows: int, name: str) -> None:
    torch.manual_seed(rows)
    for width in (1, 5, 16, 33):
        model = decoder(name, width)
        kept = round_weights(model, FORMS[form])
        assert 0 < kept.in_form <= kept.in_all and (kept.in_form == kept.in_all or name in COMPUTED)
        step = native_step(model)
        assert apart(model, rows, ticks=12, step=step) < 1e-5
        assert sum(n for k, n in step.program.forms.items() if k != Form.FULL) == kept.in_form


@pytest.mark.parametrize("form", FORMS)
def test_members_of_an_ensemble_are_rounded(level: str, form: str) -> None:
    model = ensemble(["lstm", "gpt"], gated=True)
    kept = round_weights(model, FORMS[form])
    assert kept.in_form == kept.in_all and apart(model, 3, ticks=12) < 2e-5


def test_a_program_reads_a_half_and_a_quarter() -> None:
    model = decoder("lstm", 32)
    whole = native_step(model).program
    assert whole.forms.keys() == {Form.FULL}
    for form, share in (("bf16", 2), ("int8", 4)):
        round_weights(model, FORMS[form])
        assert native_step(model).program.n_bytes == whole.n_bytes / share


@pytest.mark.parametrize("form", FORMS)
def test_tokens_of_rounded_weights(level: str, form: str) -> None:
    for name in ("lstm", "gpt", "wavenet"):
        model = decoder(name, 24, sharpness=4.0)
        round_weights(model, FORMS[form])
        for asked, rows in ((Decoding(top_k=5), 1), (Decoding(temperature=0.0), 5)):
            assert tokens(native_step(model), asked, 100, rows=rows) == tokens(model, asked, 100, rows=rows)


def trained() -> Decoder:
    """A model that has learned to repeat a sequence."""
    model, text = decoder("gru", 16), torch.tensor([[1, 5, 3, 8, 9, 4, 7, 6, 10, 3, 5, 4] * 6])
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(60):
        y, _ = model(text[:, :-1], None)
        loss = nn.functional.cross_entropy(y[0], text[0, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < 0.3
    return model.eval()


def test_what_was_learned_is_written_with_fewer_bits() -> None:
    model = trained()
    asked = Decoding(temperature=0.0)
    before = tokens(native_step(model), asked, 60)[0][0]
    for form in FORMS.values():
        round_weights(model, form)
        assert tokens(native_step(model), asked, 60)[0][0] == before


class Own(Causal):
    def __init__(self) -> None:
        super().__init__()
        self.inner = decoder("lstm", 4)

    def forward(self, x: Tensor, state: object = None) -> tuple[Tensor, object]:
        return self.inner(x, state)


def test_what_has_no_form_is_refused_and_left_as_it_is() -> None:
    reasons = {"Own has no native form": Own(), "float64": decoder("lstm", 4).double(),
               "bfloat16": decoder("lstm", 4).bfloat16()}  # fmt: skip
    for reason, model in reasons.items():
        before = [p.clone() for p in model.parameters()]
        with pytest.raises(CannotLower, match=reason):
            round_weights(model, Form.INT8)
        assert all(map(torch.equal, before, model.parameters()))


def test_native_code_refuses_forms_that_it_does_not_know() -> None:
    for dtype in (torch.float32, torch.float64):
        model = decoder("lstm", 4).to(dtype)
        step = native_step(model)
        matrices = [op for op in step.program._code if op.kind == Do.AFFINE]
        state, was = model(torch.ones(1, 1).long(), None)[1], [op.b for op in matrices]
        try:
            for op in matrices:
                op.b = Form.INT8 + 1 if dtype == torch.float32 else Form.INT8
            with torch.no_grad(), pytest.raises(RuntimeError, match="an unknown operation"):
                step(torch.ones(1, 1).long(), state)
        finally:
            for op, form in zip(matrices, was):
                op.b = form
