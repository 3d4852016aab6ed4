"""Checkpoints of Hugging Face's transformers on disk: loaded as a run directory, and runs saved for transformers.

    config.json  model.safetensors  tokenizer.json        a directory that `save_pretrained` wrote
    model.safetensors.index.json                          in place of the second: which of several files has a tensor

Nothing in it is executed: weights are safetensors, the rest is JSON. What a directory is, its config.json says; an
architecture that is not made of our blocks is refused with those that are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import unrolled
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.opening import JSON, open_regular, parse_json, read_bytes, read_text, shortened
from unrolled.core.task import Model, Task
from unrolled.core.tokens import SPECIALS
from unrolled.data.codecs.hub import HubCodec
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.words import BpeCodec
from unrolled.data.config import DataConfig
from unrolled.runs import build, fitting
from unrolled.runs.config import RunConfig
from unrolled.runs.hub_families import FAMILIES, Family, Part
from unrolled.runs.run import Run, load
from unrolled.runs.storage import atomic, formats, manifest
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import opening, saved

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = WEIGHTS + ".index.json"
NEVER = -1e4  # the logit of a special token that the checkpoint does not have
LARGEST = 64 * 2**30  # bytes of weights
SPARE = 32  # bytes for each number of the model: heads of other tasks may be beside it


# ---- loading


def is_checkpoint(path: str | Path) -> bool:
    """Whether a directory says of itself what transformers writes."""
    place = Path(path)
    return (place / CONFIG).is_file() and not (place / manifest.NAME).exists()


def load_checkpoint(path: str | Path, out: str | Path) -> Run:
    """Write the run directory `out` with the weights and the tokenizer of a checkpoint directory."""
    place = Path(path)
    with opening(place):
        config, task, model, missing = _read(place)
    codec = task.codec
    RunDirectory(out).require_free()
    if Path(out).is_dir():  # what a run that never began has left
        atomic.remove_directory(Path(out))
    with atomic.new_directory(Path(out)) as temp:
        run = RunDirectory.create(temp)
        task.save_codec(run.path / "codec")
        run.seal()
        notes = [f"newly initialised, because {place} does not have it: {listed(missing)}"] if missing else []
        facts = {"source": "memory", "vocabulary": codec.size, "tokens_are": codec.kind, "notes": notes}
        run.write_json("data.json", {**task.describe(), "facts": facts | {"fingerprint": ""}})
        run.write_tensors(WEIGHTS, model.state_dict())
        run.write_config(config.model_dump(mode="json"))
        run.seal()
    return load(out)


def _read(place: Path) -> tuple[RunConfig, Any, Model, list[str]]:
    """The model of a checkpoint directory, which may come from anybody, and what is newly initialised in it."""
    values = _json(place / CONFIG)
    family, own = _settings(place, values)
    codec = _codec(place, _whole(place, values, "vocab_size"))
    stored = _stored(place, family)
    tied = bool(values.get("tie_word_embeddings", True)) and "lm_head.weight" not in stored
    pairs = float("cls.seq_relationship.weight" in stored)
    with saved(place / CONFIG):
        config = RunConfig.parse({
            "task": family.task, "model": family.model, "source": "memory", "model_settings": {**own},
            "task_settings": {"next_sentence": pairs} if family.task == "masked-token" else {},
            "ends": {"d_embedding": own["d_model"], "tied": tied}, "data": DataConfig(tokens="bpe").model_dump(),
            "versions": {"unrolled": unrolled.__version__},
        })  # fmt: skip
        config = config.model_copy(update={"model_settings": build.settings(config).model_dump()})
    task = _task(config, codec)
    fitting.require_fit(config, task.ports(), task.ACCEPTS, stored)
    with fitting.within(stored):
        model = build.make_model(config, task)
    found = sum(each.size for each in stored.values())
    if found > SPARE * (fitting.MORE_NUMBERS + sum(each.numel() for each in model.state_dict().values())):
        raise DataError(f"{place / WEIGHTS}: holds {found:,} bytes, far more than the model of {CONFIG} needs")
    where = str(place / WEIGHTS)
    missing = _fill(model.state_dict(), family.parts(own), _tensors(place, family), _order(codec)[0], where)
    return config, task, model, missing


def _whole(place: Path, values: Mapping[str, Any], name: str) -> int:
    if isinstance(found := values.get(name), int) and found > 0:
        return found
    raise DataError(f"{place / CONFIG}: {name} must be an integer above 0, found {shortened(found)}")


def _json(path: Path) -> Any:
    values = parse_json(read_text(path, JSON), str(path))
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected a JSON object")
    return values


def _settings(place: Path, values: Mapping[str, Any]) -> tuple[Family, dict[str, Any]]:
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise DataError(
            f"{place / CONFIG}: the architecture {shortened(repr(kind))} cannot be loaded; those that can: "
            f"{listed(FAMILIES)}"
        )
    try:
        return FAMILIES[kind], FAMILIES[kind].settings(values)
    except KeyError as error:
        raise DataError(f"{place / CONFIG}: {error} is missing, so it is not the config of a {kind} model") from None
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise DataError(f"{place / CONFIG}: {error}") from None


def _codec(place: Path, size: int) -> Codec:
    """The tokenizer; one that was saved by us is what it was."""
    if not (place / TOKENIZER).is_file():
        raise DataError(f"{place}: {TOKENIZER} is missing; save the tokenizer beside the model, as a fast tokenizer")
    values = _json(place / TOKENIZER)
    try:
        own = [token["content"] for token in values["added_tokens"][: len(SPECIALS)]] == [*SPECIALS]
        codec = Codec.from_json(json.dumps(values)) if own else HubCodec(values)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{place / TOKENIZER}: not a tokenizer of the tokenizers library ({error})") from None
    if (n := _order(codec)[1]) > size:
        raise DataError(
            f"{place}: the tokenizer has {n:,} tokens, but the model has vectors for {size:,}; they do "
            "not belong together"
        )
    return codec


def _stored(place: Path, family: Family) -> dict[str, formats.Stored]:
    """What the headers of the weights announce, by their names without the prefix that only some classes have."""
    found: dict[str, formats.Stored] = {}
    for file in _files(place):
        with open_regular(file, LARGEST) as stream:
            stored = formats.stored_tensors(stream, os.fstat(stream.fileno()).st_size, str(file))
        _require_new(file, found, stored)
        found |= stored
    return {_plain(name, family): each for name, each in found.items()}


def _tensors(place: Path, family: Family) -> dict[str, Tensor]:
    """The weights by the same names; whole numbers beside them are positions and the like."""
    found: dict[str, Tensor] = {}
    left = LARGEST
    for file in _files(place):
        tensors = formats.parse_tensors(read_bytes(file, min(file.stat().st_size, left)), str(file))
        _require_new(file, found, tensors)
        found |= tensors
        left -= file.stat().st_size
    return {_plain(name, family): each.float() for name, each in found.items() if each.is_floating_point()}


def _require_new(file: Path, before: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    if twice := sorted(before.keys() & found.keys()):
        raise DataError(f"{file}: it has the tensor {twice[0]}, which another file beside it has too")


def _plain(name: str, family: Family) -> str:
    return name.replace(".gamma", ".weight").replace(".beta", ".bias").removeprefix(family.prefix)


def _files(place: Path) -> list[Path]:
    """The file of the weights, or those that an index names; each is a file of this directory."""
    if (place / WEIGHTS).is_file():
        return [place / WEIGHTS]
    if not (place / INDEX).is_file():
        raise DataError(
            f"{place}: {WEIGHTS} is missing; weights in .bin files, which may hold code, are not read: save them again "
            "by model.save_pretrained(...) of transformers"
        )
    of = _json(place / INDEX).get("weight_map")
    if not isinstance(of, dict) or not of:
        raise DataError(f"{place / INDEX}: expected the file of each tensor under 'weight_map'")
    names = {str(name) for name in of.values()}
    for name in sorted(names):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise DataError(f"{place / INDEX}: {name!r} is not the name of a .safetensors file of this directory")
        if not (place / name).is_file():
            raise DataError(f"{place}: {name} is missing, one of the {len(names)} files that {INDEX} names")
    return [place / name for name in sorted(names)]


def _task(config: RunConfig, codec: Codec) -> Task:
    """The task of a run that has read no data, with a codec."""
    task: Any = build.make_task(config)
    task.codec, task.has_codec = codec, True
    return task  # type: ignore[no-any-return]


def _fill(
    ours: Mapping[str, Tensor], parts: Mapping[str, Part], theirs: Mapping[str, Tensor], order: Tensor, where: str
) -> list[str]:
    """Copy the tensors of a checkpoint into those of a model; the names of which it lacks."""
    missing = []
    for name, tensor in ours.items():
        part = parts.get(name)
        if part is None:  # a bias that they lack: none, and never for tokens that they lack
            tensor.zero_() if tensor.shape != order.shape else tensor.copy_(torch.where(order < 0, NEVER, 0.0))
            continue
        if absent := [each for each in part.theirs if each.split(":")[0] not in theirs]:
            if not part.optional:
                raise DataError(f"{where}: {absent[0].split(':')[0]} is missing, so the weights are not of this kind")
            missing.append(name)
            continue
        value = torch.cat([_piece(theirs, each) for each in part.theirs])
        if not bool(value.isfinite().all()):
            raise DataError(f"{where}: {part.theirs[0]} holds NaN or infinity")
        value = value.mT if part.transposed and value.dim() == 2 else value
        if part.rows:
            if len(value) < (n := int(order.max()) + 1):
                raise DataError(f"{where}: {part.theirs[0]} has {len(value):,} rows for {n:,} tokens of the tokenizer")
            value = value[order.clamp_min(0)]
            value[order < 0] = NEVER if value.dim() == 1 else 0.0
        if value.shape != tensor.shape:
            raise DataError(
                f"{where}: {part.theirs[0]} gives the shape {list(value.shape)}, but the config the shape "
                f"{list(tensor.shape)}"
            )
        tensor.copy_(value)
    return missing


def _piece(theirs: Mapping[str, Tensor], name: str) -> Tensor:
    """A tensor, or of queries, keys and values in one (`:q`, `:kv`) those."""
    name, _, which = name.partition(":")
    value = theirs[name]
    n = value.shape[-1] // 3
    return value if not which else value[..., :n] if which == "q" else value[..., n:]


# ---- saving


def save_checkpoint(run: Run, out: str | Path) -> Path:
    """Write a directory that transformers loads, for a run whose architecture it has."""
    family, own, values = _family_of(run)
    codec = run.task.codec  # type: ignore[attr-defined]
    order, size = _order(codec)
    state = run.model.state_dict()
    tensors: dict[str, Tensor] = {}
    for name, part in family.parts(own).items():
        if name in state:
            _give(tensors, state[name], part, order, size)
    left = {name: each for name, each in state.items() if name not in family.parts(own)}
    for name, each in left.items():
        known = each[order >= 0] if each.shape == order.shape else each
        if bool((known != 0).any()):
            raise UsageError(
                f"{run.path}: {family.architecture} has no place for {name}, which is not zero; train with it "
                f"frozen at zero, or keep the run directory"
            )
    pairs = "cls.seq_relationship.weight" in tensors
    architecture = family.architecture if family.type != "bert" or pairs else "BertForMaskedLM"
    values |= {"model_type": family.type, "architectures": [architecture], "vocab_size": size}
    values |= {"tie_word_embeddings": run.config.ends.tied, "dtype": "float32"}
    place = Path(out)
    if place.exists() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty: name another directory")
    with atomic.new_directory(place) as temp:
        atomic.make_directory(temp)
        atomic.write_bytes(temp / CONFIG, formats.json_text(values, CONFIG).encode())
        _, pieces = formats.tensor_file({_named(name, family): each for name, each in tensors.items()}, str(place))
        atomic.write_chunks(temp / WEIGHTS, (bytes(piece) for piece in pieces))
        if isinstance(codec, HubCodec):
            atomic.write_bytes(temp / TOKENIZER, formats.json_text(codec.values, TOKENIZER, indent=None).encode())
        elif isinstance(codec, BpeCodec):
            atomic.write_bytes(temp / TOKENIZER, codec.to_json().encode())
    return place


def _family_of(run: Run) -> tuple[Family, dict[str, Any], dict[str, Any]]:
    """The family that a run is of, its settings, and its config.json."""
    own, reasons = dict(run.config.model_settings), []
    for family in FAMILIES.values():
        if (family.task, family.model) != (run.config.task, run.config.model):
            continue
        try:
            values = family.config(own)
        except ValueError as error:
            reasons.append(f"{family.type}: {error}")
            continue
        if run.config.ends.d_embedding != own["d_model"]:
            reasons.append(f"{family.type}: d_embedding = {run.config.ends.d_embedding} differs from d_model")
        elif family.type != "llama" and not run.config.ends.tied:
            reasons.append(f"{family.type}: the head is not tied to the embedding")
        else:
            return family, own, values
    fitting = [f"{each.model} runs of the task {each.task} ({each.type})" for each in FAMILIES.values()]
    why = "; ".join(reasons) or f"it is a {run.config.model} run of the task {run.config.task}"
    raise UsageError(f"{run.path}: cannot be saved for transformers ({why}); those that can: {listed(fitting)}")


def _order(codec: Codec) -> tuple[Tensor, int]:
    """Their id of each of our tokens, and how many they have."""
    if isinstance(codec, HubCodec):
        return torch.from_numpy(codec.order), codec.n_theirs
    return torch.arange(codec.size), codec.size


def _give(tensors: dict[str, Tensor], value: Tensor, part: Part, order: Tensor, size: int) -> None:
    """A tensor of a model under the names of a checkpoint."""
    value = value.detach().cpu().float()
    if part.rows:
        rows = value.new_zeros((size, *value.shape[1:]))
        rows[order[order >= 0]] = value[order >= 0]
        value = rows
    value = value.mT.contiguous() if part.transposed and value.dim() == 2 else value
    if ":" in part.theirs[0]:
        name, which = part.theirs[0].split(":")
        tensors[name] = value if which == "q" else torch.cat([tensors[name], value], -1)
        return
    for name, piece in zip(part.theirs, value.chunk(len(part.theirs))):
        tensors[name] = piece.contiguous()


def _named(name: str, family: Family) -> str:
    return name if name.startswith(("cls.", "lm_head.")) else f"{family.prefix}{name}"
