"""The operations that the JavaScript of a page has (engine.js): by name with the overload, or by name alone."""

from __future__ import annotations

KNOWN = {
    "%", "*", "+", "-", "//", "__and__", "__or__", "_to_copy", "_unsafe_view", "abs", "add", "addcmul", "addmm",
    "alias", "amax", "amin", "any.dim", "arange", "arange.start", "arange.start_step", "baddbmm", "bitwise_and",
    "bitwise_not", "bitwise_or", "bmm", "call", "cat", "chunk", "clamp", "clamp_max", "clamp_min", "clone",
    "contiguous", "conv1d", "conv2d", "cos", "cummax", "cumsum", "detach", "detach_", "div", "dropout", "embedding",
    "eq", "exp", "expand", "expand_as", "flatten", "flip", "full", "full_like", "gather", "ge", "gelu", "gt",
    "index.Tensor", "index_select", "item", "layer_norm", "le", "lerp", "lift_fresh_copy", "linalg_vector_norm",
    "linear", "log", "log1p", "log_softmax", "logical_and", "logical_not", "logical_or", "lt", "mT", "masked_fill",
    "matmul", "max", "maximum", "mean", "min", "minimum", "mm", "mul", "ne", "neg", "new_full", "new_ones",
    "new_zeros", "ones", "ones_like", "pad", "permute", "pow", "relu", "remainder", "repeat", "reshape", "rsqrt",
    "rsub", "scaled_dot_product_attention", "scan", "scatter_add", "select", "sigmoid", "silu", "sin", "slice",
    "softmax", "split.Tensor", "split_with_sizes", "sqrt", "square", "squeeze.dim", "stack", "sub", "sum",
    "sym_numel", "sym_size", "t", "tanh", "to.device", "to.dtype", "to.dtype_layout", "transpose", "unbind",
    "unflatten", "unsqueeze", "view", "where.Scalar", "where.ScalarOther", "where.ScalarSelf", "where.self",
    "zeros", "zeros_like",
}  # fmt: skip


def is_known(op: str) -> bool:
    """Whether a page has an operation of a program."""
    return op in KNOWN or op.split(".")[0] in KNOWN
