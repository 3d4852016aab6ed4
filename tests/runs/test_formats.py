"""JSON and safetensors: exact round trips, and nothing but a DataError from damaged or hostile input."""

from __future__ import annotations

import json
import math
import pickle
import random

import pytest
import safetensors.torch
import torch

from unrolled.core import opening
from unrolled.core.errors import DataError
from unrolled.runs.storage import formats
from unrolled.runs.storage.formats import json_text, parse_json, parse_tensors, tensor_file


def to_bytes(tensors: dict[str, torch.Tensor]) -> bytes:
    size, pieces = tensor_file(tensors, "file")
    data = b"".join(bytes(memoryview(piece)) for piece in pieces)
    assert len(data) == size
    return data


def with_header(header: object, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8).tolist()


DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64,
]  # fmt: skip


def test_tensors_round_trip_exactly():
    torch.manual_seed(0)
    tensors = {}
    for dtype in DTYPES:
        for shape in [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 4)]:
            raw = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
            raw = raw % 2 if dtype == torch.bool else raw
            tensor = raw.view(dtype)[..., 0] if dtype != torch.bool else raw[..., 0].bool()
            tensors[f"{dtype} {shape}"] = tensor  # any bits, also those of NaN; not contiguous
    loaded = parse_tensors(to_bytes(tensors), "file")
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        again = loaded[name]
        assert (again.dtype, again.shape) == (tensor.dtype, tensor.shape), name
        assert bits(again) == bits(tensor), name


def test_files_are_those_of_the_safetensors_library():
    tensors = {"b": torch.randn(3, 5).t(), "a": torch.arange(7, dtype=torch.int16), "c": torch.tensor(True)}
    theirs = safetensors.torch.load(to_bytes(tensors))
    ours = parse_tensors(safetensors.torch.save({k: v.contiguous() for k, v in tensors.items()}), "file")
    for name, tensor in tensors.items():
        assert torch.equal(theirs[name], tensor)
        assert torch.equal(ours[name], tensor)


def test_tied_weights_are_stored_once_and_tied_again():
    weight, other = torch.randn(100, 50), torch.randn(100, 50)
    tied = {"input.weight": weight, "head.weight": weight, "part": weight[:10], "turned": weight.t(), "own": other}
    data = to_bytes(tied)
    assert len(data) < 4 * (3 * 5000 + 500) + 1000
    loaded = parse_tensors(data, "file")
    assert loaded["input.weight"].data_ptr() == loaded["head.weight"].data_ptr()
    assert loaded["turned"].data_ptr() != loaded["head.weight"].data_ptr()
    for name, tensor in tied.items():
        assert torch.equal(loaded[name], tensor)


def test_a_tied_module_loads_its_state_dict():
    embedding, head = torch.nn.Embedding(7, 3), torch.nn.Linear(3, 7, bias=False)
    head.weight = embedding.weight
    model = torch.nn.Sequential(embedding, head)
    loaded = parse_tensors(to_bytes(model.state_dict()), "file")
    fresh = torch.nn.Sequential(torch.nn.Embedding(7, 3), torch.nn.Linear(3, 7, bias=False))
    fresh.load_state_dict(loaded)
    assert torch.equal(fresh[1].weight, embedding.weight)


def test_every_loaded_tensor_has_memory_of_its_own():
    loaded = parse_tensors(to_bytes({"a": torch.randn(3), "b": torch.randn(5), "rng": torch.get_rng_state()}), "file")
    for tensor in loaded.values():
        assert tensor.storage_offset() == 0
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        assert tensor.data_ptr() % 64 == 0
        tensor.fill_(1)  # writable
    torch.set_rng_state(torch.get_rng_state())


def test_unknown_tensors_are_refused_by_name():
    with pytest.raises(TypeError, match="'odd'"):
        to_bytes({"odd": torch.zeros(2, dtype=torch.complex128)})
    with pytest.raises(TypeError, match="'thin'"):
        to_bytes({"thin": torch.zeros(2, device="meta")})


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE = {
    "empty": b"",
    "short": b"\x01\x02",
    "header length beyond the file": (2**62).to_bytes(8, "little") + b"{}",
    "header length beyond any": b"\xff" * 8 + b"{}",
    "header is a list": with_header([1, 2]),
    "header is no JSON": (3).to_bytes(8, "little") + b"abc",
    "deep header": (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "offsets beyond the file": with_header({"a": {**ENTRY, "data_offsets": [0, 2**40]}}, b"\0" * 8),
    "size does not fit the shape": with_header({"a": {**ENTRY, "shape": [3]}}, b"\0" * 8),
    "huge shape": with_header({"a": {**ENTRY, "shape": [2**62, 2**62]}}, b"\0" * 8),
    "huge empty shape": with_header({"a": {"dtype": "F32", "shape": [2**62, 4, 0], "data_offsets": [0, 0]}}),
    "negative": with_header({"a": {**ENTRY, "shape": [-2]}}, b"\0" * 8),
    "overlap": with_header({"a": ENTRY, "b": {**ENTRY, "data_offsets": [4, 12]}}, b"\0" * 12),
    "backwards": with_header({"a": {**ENTRY, "data_offsets": [8, 0]}}, b"\0" * 8),
    "gap": with_header({"a": ENTRY, "b": {**ENTRY, "data_offsets": [12, 20]}}, b"\0" * 20),
    "bytes left over": with_header({"a": ENTRY}, b"\0" * 100),
    "unknown dtype": with_header({"a": {**ENTRY, "dtype": "X9"}}, b"\0" * 8),
    "bool of 7": with_header({"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\7"),
    "alias to nothing": with_header({"__metadata__": {"aliases": '{"b": "c"}'}, "a": ENTRY}, b"\0" * 8),
    "alias over a tensor": with_header({"__metadata__": {"aliases": '{"a": "a"}'}, "a": ENTRY}, b"\0" * 8),
    "alias is no table": with_header({"__metadata__": {"aliases": "[1]"}, "a": ENTRY}, b"\0" * 8),
    "deep alias": with_header({"__metadata__": {"aliases": "[" * 100_000}, "a": ENTRY}, b"\0" * 8),
    "pickle": pickle.dumps({"weights": [1.0, 2.0]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tensor_files_are_refused(name: str):
    with pytest.raises(DataError, match=r"^model\.safetensors"):
        parse_tensors(HOSTILE[name], "model.safetensors")


def test_a_pickle_saved_by_torch_is_not_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'exploded')!r}, 'w').close()",))

    torch.save({"weights": Bomb()}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="not a safetensors file"):
        parse_tensors((tmp_path / "model.safetensors").read_bytes(), "model.safetensors")
    assert not (tmp_path / "exploded").exists()


def test_caps_on_tensors_and_header(monkeypatch: pytest.MonkeyPatch):
    data = to_bytes({str(i): torch.zeros(1) for i in range(20)})
    assert len(parse_tensors(data, "file")) == 20
    monkeypatch.setattr(formats, "MAX_TENSORS", 18)
    with pytest.raises(DataError, match="more than the limit of 18"):
        parse_tensors(data, "file")
    monkeypatch.setattr(formats, "MAX_HEADER_BYTES", 100)
    with pytest.raises(DataError, match="more than the limit of 100"):
        parse_tensors(data, "file")


def test_random_damage_gives_tensors_or_a_data_error_and_nothing_else():
    numbers = random.Random(0)
    weight = torch.arange(6.0)
    good = to_bytes({"a": weight, "b": weight, "c": torch.ones(3, dtype=torch.bool), "d": torch.zeros(0, 4)})
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(numbers.choice((1, 1, 2, 5))):
            data[numbers.randrange(len(data) if numbers.random() < 0.2 else 200)] = numbers.randrange(256)
        if numbers.random() < 0.2:
            del data[numbers.randrange(len(data)) :]
        try:
            parse_tensors(bytes(data), "file")
        except DataError:
            refused += 1
    assert refused > 1000


def test_json_is_stable_and_exact():
    value = {"b": [1, 0.1 + 0.2, -0.0, 5e-324, 2**70], "a": {"text": "Wörter\n", "none": None, "true": True}}
    text = json_text(value, "file")
    assert text == json_text(dict(reversed(value.items())), "file")
    assert text.index('"a"') < text.index('"b"')
    assert "Wörter" in text
    assert repr(parse_json(text.encode(), "file")) == repr({"a": value["a"], "b": value["b"]}).replace(
        "{'text': 'Wörter\\n', 'none': None, 'true': True}", "{'none': None, 'text': 'Wörter\\n', 'true': True}"
    )
    assert parse_json(json_text("half \udc80", "file").encode(), "file") == "half \udc80"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan(bad: float):
    with pytest.raises(ValueError, match=r"losses\[1\]\.train is (nan|inf|-inf)"):
        json_text({"losses": [0.0, {"train": bad}]}, "file")
    with pytest.raises(DataError, match="NaN is not a JSON number"):
        parse_json(b'{"a": NaN}', "file")


def test_json_keys_are_text():
    with pytest.raises(TypeError, match="the key 3"):
        json_text({"a": {3: 1}}, "file")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"a": 1,}', b"\xff\xfe{}", b'{"a": ' + b"9" * 10_000 + b"}", b"[" * 1_000_000,
     b'{"a":' * 100_000, b"[" * 300 + b"]" * 300, b"[Infinity]"],
)  # fmt: skip
def test_hostile_json_is_refused(data: bytes):
    with pytest.raises(DataError, match=r"^config\.json"):
        parse_json(data, "config.json")


def test_json_depth_is_the_same_for_writing_and_reading(monkeypatch: pytest.MonkeyPatch):
    value: list = []
    for _ in range(opening.DEPTH):
        value = [value]
    assert parse_json(json_text(value, "file").encode(), "file") == value
    with pytest.raises(ValueError, match="deep"):
        json_text([value], "file")
    with pytest.raises(DataError, match="deep"):
        parse_json(json.dumps([value]).encode(), "file")
    monkeypatch.setattr(opening, "JSON", 10)
    with pytest.raises(DataError, match="more than the limit of 10"):
        parse_json(b"[1, 2, 3, 4, 5]", "file")
