"""The format of a run directory: its number, JSON and safetensors. Written in one canonical way, read with caps.

What is read may be damaged or hostile: nothing here can run code, and every length is checked before memory is spent
on it. There is no pickle. torch is imported only by the functions that handle tensors.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from unrolled.core.errors import DataError
from unrolled.core.opening import DEPTH, JSON, parse_json, read_json, shortened

if TYPE_CHECKING:
    import torch
    from torch import Tensor

RUN_FORMAT = 2  # the number in config.json, plan.json and table.json
"""It rises when a directory written before would be read wrongly or not at all: a setting renamed, a weight moved. Then
the runs in tests/fixtures/runs are made again; from the first release on, older formats are converted when read."""
MANIFEST_FORMAT = 1  # the number in MANIFEST.json, which marks what is a run in every format
FORMAT = "format"  # the key of the number
MAX_HEADER_BYTES = JSON
MAX_TENSORS = 100_000
COMPARE_AGAIN = "run the comparison again, or restore the file from a copy"
CHECK = "check"  # the key of the sha256 of a table within it
ALIASES = "aliases"  # the key of the safetensors metadata under which tied names are kept


def json_text(obj: Any, where: str, indent: int | None = 2) -> str:
    """JSON with sorted keys; a NaN, an infinity or a key that is no text is refused by its place."""
    _check_plain(obj, where, "", 0)
    text = json.dumps(obj, sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, as in the name of an oddly encoded file
        text = json.dumps(obj, sort_keys=True, indent=indent, allow_nan=False)
    return text + "\n"


def _check_plain(obj: Any, where: str, place: str, depth: int) -> None:
    if depth > DEPTH:
        raise ValueError(f"{where}: nested more than {DEPTH} levels deep")
    if isinstance(obj, float) and not math.isfinite(obj):
        raise ValueError(f"{where}: {place or 'the value'} is {obj}, which JSON cannot hold")
    if isinstance(obj, Mapping):
        for key, value in obj.items():
            if not isinstance(key, str):
                raise TypeError(f"{where}: the key {key!r} in {place or 'the top level'} is not text")
            _check_plain(value, where, f"{place}.{key}" if place else key, depth + 1)
    elif isinstance(obj, list | tuple):
        for i, value in enumerate(obj):
            _check_plain(value, where, f"{place}[{i}]", depth + 1)


class OtherFormat(DataError):
    """What another release wrote: `is_older` or later, and the `values` that were found, which may be anything."""

    def __init__(self, text: str, is_older: bool, values: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.is_older, self.values = is_older, values


def numbered(body: Mapping[str, Any]) -> dict[str, Any]:
    """A table with the number of the format that this release writes."""
    return {**body, FORMAT: RUN_FORMAT}


def without_number(values: Mapping[str, Any], where: str | Path, again: str) -> dict[str, Any]:
    """A table without its number, which is the one that this release reads; `again` is what to do where it is older."""
    require_format(values, RUN_FORMAT, where, again)
    return {key: value for key, value in values.items() if key != FORMAT}


def require_format(values: Mapping[str, Any], reads: int, where: str | Path, again: str) -> None:
    """Refuse a table of another format than `reads`; without a number it is of the first."""
    found = values.get(FORMAT, 1)
    if type(found) is not int or found < 1:
        raise DataError(f"{where}: invalid value {FORMAT} = {shortened(found)}: expected {reads}; {again}")
    if found > reads:
        later = later_release(where, f"format {shortened(found)}, this release reads format {reads}")
        raise OtherFormat(later, False, values)
    if found < reads:
        old = f"written by an earlier release in format {found}, and this release reads format {reads}"
        raise OtherFormat(f"{where}: {old}; {again}", True, values)


def later_release(where: str | Path, what: str) -> str:
    """The sentence on a directory of a later release; `what` shows that it is one."""
    return f"{where}: written by a later release ({what}); update unrolled"


def check_of(body: Mapping[str, Any]) -> str:
    """The sha256 of a table, however it is written."""
    return hashlib.sha256(json_text(body, "the table", indent=None).encode()).hexdigest()


def with_check(body: Mapping[str, Any]) -> dict[str, Any]:
    """A table that carries its own sha256, so that one changed digit shows."""
    return {**body, CHECK: check_of(body)}


def read_checked(path: Path, within: Path) -> dict[str, Any]:
    """The table of plan.json or table.json, without its own sha256 and the number of its format.

    The sha256 also covers the number, so it is compared first: a changed digit is damage, not another release.
    """
    values = read_json(path, within)
    if not isinstance(values, dict):
        raise DataError(f"{path}: not a JSON object; {COMPARE_AGAIN}")
    damaged = DataError(f"{path}: damaged (its own sha256 differs or is missing); {COMPARE_AGAIN}")
    check = values.pop(CHECK, None)
    if check is not None and check != check_of(values):
        raise damaged
    body = without_number(values, path, "compare again")
    if check is None:  # files of the first format may have none
        raise damaged
    return body


def _dtype_codes() -> dict[torch.dtype, str]:
    import torch

    return {
        torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
        torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
        torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8",
        torch.bool: "BOOL", torch.complex64: "C64",
        torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
    }  # fmt: skip


def _split_aliases(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors to store, and for every tied name the name under which its values are stored."""
    stored: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    for name in sorted(tensors):
        tensor = tensors[name]
        identity = (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(),
                    tensor.is_conj(), tensor.is_neg())  # fmt: skip
        if tensor.numel() and identity in first:
            aliases[name] = first[identity]
        else:
            first[identity] = name
            stored[name] = tensor
    return stored, aliases


def tensor_file(tensors: Mapping[str, Tensor], where: str) -> tuple[int, Iterator[Any]]:
    """The size and the pieces of a safetensors file, one tensor at a time, so that saving needs no second copy.

    Tied weights (one tensor under several names) are stored once; the metadata says which names share it.
    """
    import torch

    codes = _dtype_codes()
    stored, aliases = _split_aliases(tensors)
    for name, tensor in stored.items():
        if tensor.dtype not in codes or tensor.layout != torch.strided or tensor.device.type == "meta":
            raise TypeError(f"{where}: tensor '{name}' ({tensor.dtype}, {tensor.layout}) cannot be stored")
    if len(tensors) > MAX_TENSORS:
        raise ValueError(f"{where}: {len(tensors):,} tensors, more than the limit of {MAX_TENSORS:,}")
    names = sorted(stored, key=lambda name: (-stored[name].element_size(), name))  # wide items first: all are aligned
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    if aliases:
        header["__metadata__"][ALIASES] = json.dumps(aliases, sort_keys=True)
    end = 0
    for name in names:
        tensor, begin = stored[name], end
        end += tensor.numel() * tensor.element_size()
        header[name] = {"dtype": codes[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)

    def pieces() -> Iterator[Any]:
        yield len(text).to_bytes(8, "little") + text
        for name in names:
            if stored[name].numel():
                flat = stored[name].detach().cpu().resolve_conj().resolve_neg().reshape(-1).contiguous()  # [n]
                flat = flat.as_strided(flat.shape, (1,))  # a single number may keep an odd stride
                yield flat.view(torch.uint8).numpy()

    return 8 + len(text) + end, pieces()


def parse_tensors(data: bytes, where: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file that may be damaged or hostile; tied names share one tensor again.

    Each is a copy with memory of its own: views into one buffer crash `torch.set_rng_state`, and their alignment can
    change the last bit of a product.
    """
    import safetensors
    import safetensors.torch
    import torch

    header = _tensor_header(data, len(data), where)
    try:
        loaded = safetensors.torch.load(data)  # refuses overlaps, gaps and sizes that do not fit
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError, AssertionError, OverflowError) as error:
        raise DataError(f"{where}: not a complete safetensors file ({shortened(str(error))})") from None
    tensors: dict[str, Tensor] = {}
    for name in sorted(loaded):
        tensor = loaded.pop(name)
        if tensor.dtype == torch.bool and tensor.numel() and int(tensor.view(torch.uint8).max()) > 1:
            raise DataError(f"{where}: tensor '{name}' holds values other than 0 and 1")
        tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
    stored = set(tensors)
    for alias, name in _aliases(header, where).items():
        if alias in tensors or name not in stored:
            raise DataError(f"{where}: the tied names '{alias}' and '{name}' contradict the tensors in the file")
        tensors[alias] = tensors[name]
    return tensors


class Stored(NamedTuple):
    """A tensor as the header of its file announces it."""

    dtype: str
    shape: tuple[int, ...]
    size: int  # bytes

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


def stored_tensors(stream: BinaryIO, size: int, where: str) -> dict[str, Stored]:
    """What a safetensors file of so many bytes holds, from its header alone."""
    head = stream.read(8)
    length = int.from_bytes(head, "little")
    if len(head) == 8 and length <= min(size - 8, MAX_HEADER_BYTES):
        head += stream.read(length)
    header = _tensor_header(head, size, where)
    found = {name: _stored(entry, f"{where}, tensor '{shortened(name)}'") for name, entry in header.items()
             if name != "__metadata__"}  # fmt: skip
    if 8 + length + sum(each.size for each in found.values()) != size:
        raise DataError(
            f"{where}: not a complete safetensors file (its header does not match the size of {size:,} bytes)"
        )
    return found


def _stored(entry: Any, where: str) -> Stored:
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        raise DataError(f"{where}: its entry in the header is damaged")
    shape, ends = _whole_numbers(entry.get("shape"), where), _whole_numbers(entry.get("data_offsets"), where)
    if len(ends) != 2 or ends[1] < ends[0]:
        raise DataError(f"{where}: its offsets in the file are damaged")
    found = Stored(entry["dtype"], shape, ends[1] - ends[0])
    if found.size < found.numel // 2 or (found.size and not found.numel):  # half a byte is the least that a number has
        raise DataError(f"{where}: {found.size:,} bytes cannot hold a tensor of shape {shortened(list(shape))}")
    return found


def _whole_numbers(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**48 for n in value):
        raise DataError(f"{where}: found {shortened(value)}, expected integers")
    return tuple(value)


def _tensor_header(data: bytes, size: int, where: str) -> dict[str, Any]:
    """The header at the start of `data`, of a file of so many bytes."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > size - 8:
        raise DataError(f"{where}: not a safetensors file (its header is longer than the file)")
    if length > MAX_HEADER_BYTES:
        raise DataError(f"{where}: its header has {length:,} bytes, more than the limit of {MAX_HEADER_BYTES:,}")
    header = parse_json(data[8 : 8 + length], f"{where} (header)")
    if not isinstance(header, dict):
        raise DataError(f"{where}: not a safetensors file (its header does not list tensors)")
    if len(header) > MAX_TENSORS + 1:
        raise DataError(f"{where}: {len(header):,} tensors, more than the limit of {MAX_TENSORS:,}")
    return header


def _aliases(header: dict[str, Any], where: str) -> dict[str, str]:
    metadata = header.get("__metadata__", {})
    text = metadata.get(ALIASES, "{}") if isinstance(metadata, dict) else "{}"
    aliases = parse_json(text.encode("utf-8", "replace"), f"{where} (tied names)") if isinstance(text, str) else None
    if not isinstance(aliases, dict) or len(aliases) > MAX_TENSORS:
        raise DataError(f"{where}: the list of tied names is damaged")
    if not all(isinstance(name, str) for name in aliases.values()):
        raise DataError(f"{where}: the list of tied names is damaged")
    return aliases
