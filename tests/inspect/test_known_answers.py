"""Questions whose answers are known beforehand: by hand, by a formula, or because they were planted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import unrolled
from unrolled.core import discover
from unrolled.core.batch import SOURCE, Batch
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.inspect import attention, parameters, positions, states
from unrolled.inspect.tools.looking import Look, principal_plane
from unrolled.layers.attention.attention import CausalSelfAttention
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.models import transformer
from unrolled.runs.run import Run

QUICK = {"steps": 1, "batch_size": 4, "evaluate_every": 1, "evaluate_tokens": 40, "warmup": 1, "threads": 1,
         "d_embedding": 5, "split": "80/20", "examples": "lines"}  # fmt: skip
SMALL = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "window": 0, "n_positions": 24}

Make = Callable[..., Run]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A run of one step on words of the letters a, b, c, d."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "words.txt").write_text("\n".join("abcd"[i % 4] + "dbca"[i // 4 % 4] * (1 + i % 3) for i in range(40)))

    def run(model: str, **settings: Any) -> Run:
        out = folder / f"{model}-{len(list(folder.iterdir()))}"
        return unrolled.train(folder / "words.txt", model=model, out=out, settings=QUICK | settings)

    return run


def tokens(run: Run, text: str) -> Tensor:
    return run.task.example(text)[0].x


# ---- attention


def by_hand(layer: CausalSelfAttention, x: Tensor) -> Tensor:
    """alpha_tau^{h,(t)} of eqs (7.20), (7.25) in plain loops, of x [T, D]."""
    heads, (T, _) = layer.heads, x.shape
    m, alpha = heads.d_key, torch.zeros(heads.n_heads, T, T)
    for h in range(heads.n_heads):
        W_q, W_k = (W.weight.detach()[h * m : (h + 1) * m] for W in (heads.W_q, heads.W_kv))
        for t in range(T):
            first = 0 if layer.window is None else max(0, t - layer.window + 1)
            scores = [float((W_q @ x[t]) @ (W_k @ x[tau])) / math.sqrt(m) for tau in range(first, t + 1)]
            total = sum(math.exp(s) for s in scores)
            for tau, s in enumerate(scores, first):
                alpha[h, t, tau] = math.exp(s) / total
    return alpha


@pytest.mark.parametrize("window", [0, 3])
def test_attention_is_the_softmax_computed_by_hand(make: Make, window: int) -> None:
    run = make("transformer", **SMALL | {"window": window}, position="none")
    layers = [module for module in run.model.modules() if isinstance(module, CausalSelfAttention)]
    with torch.no_grad():
        for layer in layers:
            layer.heads.W_q.weight.mul_(8)  # away from even weights
    inputs: list[Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0][0])) for layer in layers]
    answer = run.inspect("attention", "abcdabcd")
    for hook in hooks:
        hook.remove()
    seen = inputs[-2:]
    for number, (layer, x) in enumerate(zip(layers, seen, strict=True), 1):
        torch.testing.assert_close(answer.arrays[f"layer_{number}"].float(), by_hand(layer, x), atol=1e-5, rtol=1e-4)
    assert answer.numbers["largest_deviation_from_one"] < 1e-6
    assert "sums to one" in answer.reading
    assert answer.pictures[0].rows == ["<start>", *"abcdabcd"]
    for weights in answer.arrays.values():
        assert float(weights.triu(1).abs().max()) == 0


def test_a_head_that_looks_everywhere_alike(make: Make) -> None:
    run = make("transformer", **SMALL)
    with torch.no_grad():
        for module in run.model.modules():
            if isinstance(module, CausalSelfAttention):
                module.heads.W_q.weight.zero_()
    head = run.inspect("attention", "abcd").numbers["heads"][0]
    even = sum(math.log(t) for t in range(1, 6)) / 5
    assert head["entropy"] == pytest.approx(even, abs=1e-6)
    assert head["entropy_if_even"] == pytest.approx(even, abs=1e-6)
    assert head["distance"] == pytest.approx(sum(t / 2 for t in range(5)) / 5, abs=1e-6)
    assert head["on_itself"] == pytest.approx(sum(1 / t for t in range(1, 6)) / 5, abs=1e-6)
    assert head["on_previous"] == pytest.approx(sum(1 / t for t in range(2, 6)) / 4, abs=1e-6)


def test_a_head_that_looks_at_a_source_is_nowhere_near_itself(tmp_path: Path) -> None:
    pairs = [{"source": word, "target": word[::-1]} for word in ("ab", "abc", "bca", "cab", "ca", "bcc")]
    tiny = {"steps": 1, "d_state": 4, "d_embedding": 4, "threads": 1, "context": "attention", "tokens": "char"}
    run = unrolled.train(pairs, task="translate", model="seq2seq", out=tmp_path / "run", settings=tiny)
    answer = run.inspect("attention", ("abc", "cba"))
    [head] = answer.numbers["heads"]
    assert head["looks_at"] == attention.SOURCE and not {"distance", "on_itself", "on_previous"} & set(head)
    assert "farthest" not in answer.reading


def test_attention_says_when_rows_do_not_sum_to_one() -> None:
    assert attention.deviation(torch.tensor([[0.5, 0.5], [0.5, 0.4], [0.0, 0.0]])) == pytest.approx(0.1)
    head = {"layer": 1, "head": 1, "entropy": 0.0, "entropy_if_even": 0.0, "distance": 0.0}
    assert "do not sum to one" in attention._reading([head], 0.1)


def test_attention_to_a_source_is_target_by_source(make: Make) -> None:
    run = make("transformer", **SMALL)
    source, x = tokens(run, "dcbadcb"), tokens(run, "ab")
    look = Look(run.model, Batch(x, sources={SOURCE: source}), ["<start>", "a", "b"])
    run.task.source_names = lambda ids: [run.task.codec.name(int(token)) for token in ids]
    rows, columns, label = attention.axes(torch.full((3, source.shape[1]), 1 / 8), look, run)
    assert (rows, columns) == (["a", "b", "<stop>"], ["<start>", *"dcbadcb"])  # what is written at each position
    assert "source" in label
    with_past = attention.axes(torch.full((3, 5), 0.2).tril(2), replace(look, batch=Batch(x)), run)
    assert with_past[1] == ["-2", "-1", "<start>", "a", "b"]


def test_few_pictures_of_many_layers() -> None:
    assert [i for i, _ in attention.spread([torch.zeros(1)] * 24)] == [1, 6, 10, 15, 19, 24]
    assert [i for i, _ in attention.spread([torch.zeros(1)] * 3)] == [1, 2, 3]


def test_a_layer_that_is_not_there(make: Make) -> None:
    with pytest.raises(UsageError, match="has 2 attention layer"):
        make("transformer", **SMALL).inspect("attention", "ab", {"layer": 3})


# ---- gates and states


def lstm_by_hand(run: Run, text: str) -> dict[str, Tensor]:
    """Eqs (7.16)-(7.17), tick by tick, in the order i, f, g, o of torch: each [T, m]."""
    embedding = next(module for module in run.model.modules() if isinstance(module, nn.Embedding))
    cell = next(module for module in run.model.modules() if type(module).__name__ == "LSTM")
    h, c, found = torch.zeros(6), torch.zeros(6), {name: [] for name in ("input", "forget", "output", "cell", "state")}
    for token in tokens(run, text)[0]:
        a = cell.weight_ih @ embedding.weight[token] + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh
        i, f, g, o = (a[6 * k : 6 * k + 6] for k in range(4))
        i, f, o = (1 / (1 + torch.exp(-z)) for z in (i, f, o))
        c = f * c + i * torch.tanh(g)
        h = o * torch.tanh(c)
        for name, value in zip(found, (i, f, o, c, h), strict=True):
            found[name].append(value)
    return {name: torch.stack(values).detach() for name, values in found.items()}


def test_gates_and_states_of_an_lstm_are_those_computed_by_hand(make: Make) -> None:
    run = make("lstm", d_state=6)
    expected = lstm_by_hand(run, "abdc")
    gates, moved = run.inspect("gates", "abdc"), run.inspect("states", "abdc")
    for name in ("input", "forget", "output", "cell"):
        torch.testing.assert_close(gates.arrays[f"layer_1_{name}"], expected[name])
    for name in ("state", "cell"):
        torch.testing.assert_close(moved.arrays[f"layer_1_{name}"], expected[name])
    figures = {each["part"]: each for each in moved.numbers["states"]}
    assert figures["cell"]["norm_last"] == pytest.approx(float(expected["cell"][-1].norm()), rel=1e-5)
    assert [each["gate"] for each in gates.numbers["gates"]] == ["input", "forget", "output"]


def test_an_open_gate_and_a_saturated_state(make: Make) -> None:
    run = make("lstm", d_state=6)
    with torch.no_grad():
        run.model.get_parameter("body.layers.0.cell.bias_ih")[6:12] = 50.0  # the forget gate
        run.model.get_parameter("body.layers.0.cell.bias_ih")[18:24] = -50.0  # the output gate
    figures = {each["gate"]: each for each in run.inspect("gates", "ab").numbers["gates"]}
    assert (figures["forget"]["open"], figures["forget"]["units_always_open"]) == (1.0, 1.0)
    assert (figures["output"]["closed"], figures["output"]["open"]) == (1.0, 0.0)
    elman = make("elman", d_state=6)
    with torch.no_grad():
        elman.model.get_parameter("body.layers.0.cell.weight_ih").mul_(1e4)
    assert elman.inspect("states", "abc").numbers["states"][0]["saturated"] == 1.0
    linear = make("linear-rnn", d_state=6)
    with torch.no_grad():
        linear.model.get_parameter("body.layers.0.cell.weight_ih").mul_(1e4)
    assert linear.inspect("states", "abc").numbers["states"][0]["saturated"] is None  # it has no limits to stand at


def test_the_gated_units_of_wavenet_are_filter_times_gate(make: Make) -> None:
    run = make("wavenet", d_model=3, d_skip=4, n_dilations=2)
    answer = run.inspect("gates", "abcd")
    (z,) = Look(run.model, Batch(tokens(run, "abcd")), ["<start>", *"abcd"]).seen["gated"]
    made = [answer.arrays[f"layer_{i}_filter"] * answer.arrays[f"layer_{i}_gate"] for i in (1, 2)]
    torch.testing.assert_close(torch.cat(made, dim=1), z[0])
    assert {each["gate"] for each in answer.numbers["gates"]} == {"gate"}


def test_the_path_of_a_model_without_recurrence_is_its_state(make: Make) -> None:
    run = make("tcn", widths=(4, 6), kernel=2)
    path = run.inspect("states", "abcd").arrays["layer_1_state"]
    with torch.no_grad():
        _, state = run.model(tokens(run, "abcd"))
    last = torch.cat([leaf.flatten() for leaf in states.moving(state) if leaf.is_floating_point()])
    assert path.shape == (5, len(last))
    torch.testing.assert_close(path[-1], last)


def test_a_path_along_a_line_has_one_dimension() -> None:
    t = torch.arange(7.0)[:, None]
    line = principal_plane(t * torch.tensor([3.0, -1.0, 2.0]))
    assert line.dimension == pytest.approx(1)
    assert line.points[:, 0].diff().abs().std() < 1e-4
    cross = principal_plane(torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]))
    assert cross.dimension == pytest.approx(2)
    assert cross.shares == pytest.approx([0.5, 0.5])
    assert principal_plane(torch.ones(1, 3)).points.tolist() == [[0, 0]]


# ---- embeddings


def test_planted_neighbours_are_found(make: Make) -> None:
    run = make("elman", d_state=4, d_embedding=2)
    angles = {"a": 0.0, "b": 0.2, "c": 2.0, "d": 2.1}  # a near b, c near d
    (_, table), *_ = [(n, m) for n, m in run.model.named_modules() if isinstance(m, nn.Embedding)]
    ids = {letter: int(tokens(run, letter)[0, 1]) for letter in angles}
    with torch.no_grad():
        for length, (letter, angle) in enumerate(angles.items(), 1):
            table.weight[ids[letter]] = length * torch.tensor([math.cos(angle), math.sin(angle)])
    near = run.inspect("embeddings", "abcd").numbers["neighbours"]
    assert {letter: row[0]["token"] for letter, row in near.items()} == {"a": "b", "b": "a", "c": "d", "d": "c"}
    assert near["a"][0]["cosine"] == pytest.approx(math.cos(0.2), abs=1e-6)
    assert [each["token"] for each in near["a"]] == ["b", "c", "d"]
    one = run.inspect("embeddings", settings={"token": "c", "top": 2})
    assert [each["token"] for each in one.numbers["neighbours"]["c"]] == ["d", "b"]
    assert one.pictures[0].names == ["d", "b"]
    with pytest.raises(UsageError, match="'zz' is not a token"):
        run.inspect("embeddings", settings={"token": "zz"})
    assert "no embedding table" in str(discover.question("embeddings").applies(make("elman", input="one-hot")))


# ---- positions


def test_sinusoids_are_those_of_the_book(make: Make) -> None:
    answer = make("transformer", **SMALL | {"d_embedding": 8}, position="sinusoid").inspect("positions")
    code = answer.arrays["code"]
    assert code.shape == (60, 8)
    for t, i in [(1, 0), (1, 3), (50, 1), (60, 2)]:
        angle = t / 10_000 ** (2 * i / 8)
        assert float(code[t - 1, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-5)
        assert float(code[t - 1, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-5)
    assert answer.numbers["compared"] == [50, 51]
    torch.testing.assert_close(answer.arrays["difference"], code[50] - code[49])
    apart = 2 * math.sqrt(sum(math.sin(10_000 ** (-2 * i / 8) / 2) ** 2 for i in range(4)))
    assert answer.numbers["distance_by_lag"]["1"] == pytest.approx(apart, rel=1e-5)
    heat = answer.pictures[0]
    assert (len(heat.rows), len(heat.columns)) == (8, 60)  # a column per position, as in Fig. 7.14
    assert (heat.columns[0], heat.columns[-1]) == ("1", "60")


def test_every_kind_of_position(make: Make) -> None:
    found: dict[str, Tensor] = {}
    models = {}
    for kind in ("learned", "one-hot", "joint", "sinusoid-appended", "rotary"):
        models[kind] = transformer.make(transformer.Config(**SMALL, position=kind), Sizes(6, 6))
        name, found[kind] = positions.code_of(models[kind], 100)
        assert name.lower().replace("-", "")[:5] == kind.replace("-", "")[:5]
    learned, joint = (
        next(m for n, m in models[k].named_modules() if n.endswith("position")) for k in ("learned", "joint")
    )
    torch.testing.assert_close(found["learned"], learned.table.detach())
    torch.testing.assert_close(found["one-hot"], torch.eye(24))
    by_formula = torch.relu(joint.W_3 + joint.b) @ joint.W_1.T  # W_1 S(W_3 e_t + b), eq. (7.28) of x = 0
    torch.testing.assert_close(found["joint"], by_formula.detach())
    assert found["sinusoid-appended"].shape == (100, 8)
    assert float(found["rotary"][2, 3]) == pytest.approx(math.sin(2 / 10_000 ** (2 / 4)), abs=1e-6)
    assert positions.code_of(transformer.make(transformer.Config(**SMALL, position="none"), Sizes(6, 6)), 2) is None


# ---- parameters


def test_the_toy_network_of_the_book_has_748_parameters(make: Make) -> None:
    """p = q = 8 one-hot tokens (four letters, four special), m = 20."""
    answer = make("elman", d_state=20, input="one-hot").inspect("parameters")
    assert answer.numbers["total"] == answer.numbers["trained"] == 748
    assert [layer["formula"]["count"] for layer in answer.numbers["layers"]] == [20 * 20 + 20 * 8 + 20, 8 * 20 + 8]
    assert answer.pictures[0].rows[-1][2:4] == [748, 748]


def test_a_model_fitted_in_closed_form_has_the_parameters_of_its_result(tmp_path: Path) -> None:
    rows = [{"text": f"{'good' if i % 2 else 'bad'} {i}", "label": "AB"[i % 2]} for i in range(40)]
    run = unrolled.train(rows, model="logistic", out=tmp_path / "run", threads=1)
    answer = run.inspect("parameters")
    assert answer.numbers["parameters"] == run.result["parameters"] > 0 == answer.numbers["trained"]
    keys = run.model.body.keys.numel()
    assert answer.numbers["total"] == answer.numbers["parameters"] + keys
    assert f"parameters, fitted in closed form, and {keys:,} other numbers in tables" in answer.reading


def test_a_transformer_block_has_3150336_parameters() -> None:
    body = transformer.make(transformer.Config(d_model=512, n_layers=1, n_heads=8, d_ff=2048), Sizes(512, 512))
    block = parameters.groups(body)[0]
    assert (block.kind, block.count) == ("CausalBlock", 3_150_336)
    assert block.formula is not None
    assert (block.formula.count, block.formula.source) == (3_150_336, "(7.32)")


@pytest.mark.parametrize(("model", "settings", "gates", "more"), [
    ("lstm", {}, 4, 4 * 6), ("gru", {}, 3, 3 * 6), ("gru", {"reset": "before"}, 3, 0),
])  # fmt: skip
def test_gated_cells_beside_the_books_count(make: Make, model: str, settings: Any, gates: int, more: int) -> None:
    """One bias per gate in the book, two in the form of torch; p = 5, m = 6."""
    answer = make(model, d_state=6, **settings).inspect("parameters")
    cell = answer.numbers["layers"][1]
    assert cell["formula"]["count"] == gates * (6 * 6 + 6 * 5 + 6)
    assert cell["count"] == cell["formula"]["count"] + more
    assert ("second bias" in answer.reading) is (more > 0)


@pytest.mark.parametrize("name", discover.models.names())
def test_every_number_of_every_model_is_listed_once(name: str) -> None:
    module = discover.models.load(name)
    body = body_of(module.MODEL, module.MODEL.tiny, Sizes(6, 6, 6))
    found = parameters.groups(body)
    tables = [tensor for key, tensor in body.state_dict().items() if key in dict(body.named_buffers())]
    assert sum(group.count for group in found) == sum(tensor.numel() for tensor in [*body.parameters(), *tables])


def test_tied_weights_are_counted_once(make: Make) -> None:
    run = make("elman", d_state=5, tied=True)
    answer = run.inspect("parameters")
    assert answer.numbers["total"] == run.result["parameters"] == 8 * 5 + (5 * 5 + 5 * 5 + 5) + 8
