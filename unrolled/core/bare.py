"""Whether a call of a module is the forward of its class on its own parameters, and nothing else.

Only then may its equation be computed elsewhere: by a kernel, or in a native program.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules import module as every_module

GLOBAL_HOOKS = (
    every_module._global_forward_hooks,
    every_module._global_forward_pre_hooks,
    every_module._global_backward_hooks,
    every_module._global_backward_pre_hooks,
)


def bare(module: nn.Module) -> bool:
    """No hook (by which pruning and the older weight norm act), no parametrisation, no forward put in the place of its
    own, and plain parameters.

    >>> linear = nn.Linear(2, 2)
    >>> bare(linear), bool(linear.register_forward_hook(print)), bare(linear)
    (True, True, False)
    """
    own = module.__dict__
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(own[name] for name in hooks) or any(GLOBAL_HOOKS) or "forward" in own:
        return False
    plain = all(parameter is None or type(parameter) is nn.Parameter for parameter in module._parameters.values())
    return plain or torch.compiler.is_exporting()  # where what stands for parameters has another type
