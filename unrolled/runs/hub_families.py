"""The architectures of Hugging Face checkpoints that are made of our blocks: their settings and the names of weights.

A `Family` says what a config.json means in our settings and the other way round, and of each of our tensors which of
theirs it is, in parts: several are joined below one another, and GPT-2 stores its matrices transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Settings = dict[str, Any]


class Part(NamedTuple):
    """One of our tensors: theirs, joined; `rows` says that its first axis is the vocabulary."""

    theirs: tuple[str, ...]
    transposed: bool = False
    rows: bool = False
    optional: bool = False  # a checkpoint may lack it: then it is newly initialised


@dataclass(frozen=True)
class Family:
    """One architecture."""

    type: str  # model_type of config.json
    architecture: str
    task: str
    model: str
    prefix: str  # that names have or lack
    settings: Callable[[Mapping[str, Any]], Settings]  # of a config.json
    config: Callable[[Mapping[str, Any]], Settings]  # the config.json of settings
    parts: Callable[[Mapping[str, Any]], dict[str, Part]]  # by our name, of settings


def _pair(ours: str, theirs: str, **more: Any) -> dict[str, Part]:
    return {f"{ours}.{what}": Part((f"{theirs}.{what}",), **more) for what in ("weight", "bias")}


def _required(config: Mapping[str, Any], **wanted: Any) -> None:
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise ValueError(f"{name} = {config[name]!r} is not supported, expected {value!r}")


# ---- BERT


def _bert_settings(config: Mapping[str, Any]) -> Settings:
    _required(config, hidden_act="gelu", position_embedding_type="absolute", is_decoder=False, layer_norm_eps=1e-12)
    return {
        "d_model": config["hidden_size"], "n_layers": config["num_hidden_layers"],
        "n_heads": config["num_attention_heads"], "d_ff": config["intermediate_size"],
        "n_positions": config["max_position_embeddings"], "dropout": config.get("hidden_dropout_prob", 0.1),
    }  # fmt: skip


def _bert_config(own: Mapping[str, Any]) -> Settings:
    _required(own, position="learned", norm="post", norm_by="layer", activation="gelu", bias=True, n_key_heads=0,
              epsilon=1e-12)  # fmt: skip
    return {
        "hidden_size": own["d_model"], "num_hidden_layers": own["n_layers"], "num_attention_heads": own["n_heads"],
        "intermediate_size": own["d_ff"], "max_position_embeddings": own["n_positions"], "hidden_act": "gelu",
        "hidden_dropout_prob": own["dropout"], "layer_norm_eps": own["epsilon"], "type_vocab_size": 2,
    }  # fmt: skip


def _bert_parts(own: Mapping[str, Any]) -> dict[str, Part]:
    found = {
        "embedding.weight": Part(("embeddings.word_embeddings.weight",), rows=True),
        "embedding.segments": Part(("embeddings.token_type_embeddings.weight",)),
        "body.position.position.table": Part(("embeddings.position_embeddings.weight",)),
        **_pair("body.first.0", "embeddings.LayerNorm"),
        "head.tokens.bias": Part(("cls.predictions.bias",), rows=True, optional=True),
        **_pair("head.transform", "cls.predictions.transform.dense", optional=True),
        **_pair("head.norm", "cls.predictions.transform.LayerNorm", optional=True),
        **_pair("head.pooler", "pooler.dense", optional=True),
        **_pair("head.whole", "cls.seq_relationship", optional=True),
    }
    for i in range(own["n_layers"]):
        ours, theirs = f"body.blocks.{i}", f"encoder.layer.{i}"
        heads, attention = f"{ours}.attention.heads", f"{theirs}.attention"
        found |= _pair(f"{heads}.W_q", f"{attention}.self.query")
        for what in ("weight", "bias"):
            found[f"{heads}.W_kv.{what}"] = Part((f"{attention}.self.key.{what}", f"{attention}.self.value.{what}"))
        found |= _pair(f"{heads}.W_c", f"{attention}.output.dense")
        found |= _pair(f"{ours}.norm_1", f"{attention}.output.LayerNorm")
        found |= _pair(f"{ours}.feed_forward.W_1", f"{theirs}.intermediate.dense")
        found |= _pair(f"{ours}.feed_forward.W_2", f"{theirs}.output.dense")
        found |= _pair(f"{ours}.norm_2", f"{theirs}.output.LayerNorm")
    return found


# ---- GPT-2


def _gpt2_settings(config: Mapping[str, Any]) -> Settings:
    activation = {"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu": "gelu", "relu": "relu"}
    if config["activation_function"] not in activation:
        _required(config, activation_function="gelu_new")
    _required(config, scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True, add_cross_attention=False)
    return {
        "d_model": config["n_embd"], "n_layers": config["n_layer"], "n_heads": config["n_head"],
        "d_ff": config.get("n_inner") or 4 * config["n_embd"], "n_positions": config["n_positions"],
        "epsilon": config["layer_norm_epsilon"], "activation": activation[config["activation_function"]],
        "position": "learned", "norm": "pre", "bias": True, "window": 0, "dropout": config.get("resid_pdrop", 0.0),
    }  # fmt: skip


def _gpt2_config(own: Mapping[str, Any]) -> Settings:
    _required(own, position="learned", norm="pre", norm_by="layer", bias=True, window=0, n_key_heads=0)
    names = {"gelu-tanh": "gelu_new", "gelu": "gelu", "relu": "relu"}
    if own["activation"] not in names:
        _required(own, activation="gelu-tanh")
    return {
        "n_embd": own["d_model"], "n_layer": own["n_layers"], "n_head": own["n_heads"], "n_inner": own["d_ff"],
        "n_positions": own["n_positions"], "layer_norm_epsilon": own["epsilon"], "resid_pdrop": own["dropout"],
        "activation_function": names[own["activation"]], "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip


def _gpt2_parts(own: Mapping[str, Any]) -> dict[str, Part]:
    n = own["n_layers"]
    found = {
        "embedding.weight": Part(("wte.weight",), rows=True),
        "body.layers.0.position.table": Part(("wpe.weight",)),
        **_pair(f"body.layers.{n + 1}.module", "ln_f"),
    }
    for i in range(n):
        ours, theirs = f"body.layers.{i + 1}", f"h.{i}"
        for what in ("weight", "bias"):  # queries, keys and values in one
            found[f"{ours}.attention.heads.W_q.{what}"] = Part((f"{theirs}.attn.c_attn.{what}:q",), True)
            found[f"{ours}.attention.heads.W_kv.{what}"] = Part((f"{theirs}.attn.c_attn.{what}:kv",), True)
        found |= _pair(f"{ours}.attention.heads.W_c", f"{theirs}.attn.c_proj", transposed=True)
        found |= _pair(f"{ours}.norm_1", f"{theirs}.ln_1") | _pair(f"{ours}.norm_2", f"{theirs}.ln_2")
        found |= _pair(f"{ours}.feed_forward.W_1", f"{theirs}.mlp.c_fc", transposed=True)
        found |= _pair(f"{ours}.feed_forward.W_2", f"{theirs}.mlp.c_proj", transposed=True)
    return found


# ---- Llama


def _llama_settings(config: Mapping[str, Any]) -> Settings:
    _required(config, hidden_act="silu", attention_bias=False, mlp_bias=False, rope_scaling=None)
    heads, rope = config["num_attention_heads"], config.get("rope_parameters") or {}
    _required(config, head_dim=config["hidden_size"] // heads)
    _required(rope, rope_type="default")
    return {
        "d_model": config["hidden_size"], "n_layers": config["num_hidden_layers"], "n_heads": heads,
        "n_key_heads": config.get("num_key_value_heads") or heads, "d_ff": config["intermediate_size"],
        "rotary_base": float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        "epsilon": config["rms_norm_eps"], "norm_by": "rms", "activation": "swiglu", "position": "rotary",
        "norm": "pre", "bias": False, "window": 0, "n_positions": config["max_position_embeddings"],
    }  # fmt: skip


def _llama_config(own: Mapping[str, Any]) -> Settings:
    _required(own, position="rotary", norm="pre", norm_by="rms", activation="swiglu", bias=False, window=0)
    return {
        "hidden_size": own["d_model"], "num_hidden_layers": own["n_layers"], "num_attention_heads": own["n_heads"],
        "num_key_value_heads": own["n_key_heads"] or own["n_heads"], "intermediate_size": own["d_ff"],
        "rms_norm_eps": own["epsilon"], "rope_theta": own["rotary_base"], "hidden_act": "silu",
        "max_position_embeddings": own["n_positions"], "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip


def _llama_parts(own: Mapping[str, Any]) -> dict[str, Part]:
    n = own["n_layers"]
    found = {
        "embedding.weight": Part(("embed_tokens.weight",), rows=True),
        "head.weight": Part(("lm_head.weight",), rows=True, optional=True),
        f"body.layers.{n}.module.weight": Part(("norm.weight",)),
    }
    for i in range(n):
        ours, theirs = f"body.layers.{i}", f"layers.{i}"
        heads, attention = f"{ours}.attention.heads", f"{theirs}.self_attn"
        found[f"{heads}.W_q.weight"] = Part((f"{attention}.q_proj.weight",))
        found[f"{heads}.W_kv.weight"] = Part((f"{attention}.k_proj.weight", f"{attention}.v_proj.weight"))
        found[f"{heads}.W_c.weight"] = Part((f"{attention}.o_proj.weight",))
        found[f"{ours}.norm_1.weight"] = Part((f"{theirs}.input_layernorm.weight",))
        found[f"{ours}.norm_2.weight"] = Part((f"{theirs}.post_attention_layernorm.weight",))
        names = {"W_1": "gate_proj", "W_3": "up_proj", "W_2": "down_proj"}
        found |= {f"{ours}.feed_forward.{a}.weight": Part((f"{theirs}.mlp.{b}.weight",)) for a, b in names.items()}
    return found


FAMILIES = {
    family.type: family
    for family in (
        Family("bert", "BertForPreTraining", "masked-token", "bert", "bert.", _bert_settings, _bert_config,
               _bert_parts),
        Family("gpt2", "GPT2LMHeadModel", "next-token", "transformer", "transformer.", _gpt2_settings, _gpt2_config,
               _gpt2_parts),
        Family("llama", "LlamaForCausalLM", "next-token", "transformer", "model.", _llama_settings, _llama_config,
               _llama_parts),
    )
}  # fmt: skip
