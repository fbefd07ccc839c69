"""Models for phones. Such a model starts from a ScriptModule, which this version does not make:
the functions check what they are given and say so."""

import enum

import torch
from torch import _later

__all__ = [
    "LintCode",
    "MobileOptimizerType",
    "generate_mobile_module_lints",
    "optimize_for_mobile",
]


class LintCode(enum.Enum):
    """What may be wrong with a model for phones."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


MobileOptimizerType = _later.cls(f"{__name__}.MobileOptimizerType")


def _check(script_module) -> None:
    if not isinstance(script_module, torch.jit.ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")


def optimize_for_mobile(
    script_module,
    optimization_blocklist=None,
    preserved_methods=None,
    backend="CPU",
):
    """A copy of a scripted model with the passes for phones applied."""
    _check(script_module)
    if backend.lower() not in ("cpu", "vulkan", "metal"):
        raise TypeError("Unknown backend, must be one of 'CPU', 'Vulkan' or 'Metal'")
    raise NotImplementedError("optimize_for_mobile is not implemented in this version")


def generate_mobile_module_lints(script_module):
    """What may be wrong with a scripted model on a phone, as a list of dictionaries."""
    _check(script_module)
    found = []
    for name, parameter in script_module.named_parameters():
        if parameter.requires_grad:
            found.append({"name": LintCode.REQUIRES_GRAD.name, "message": f"Param {name}"})
    for name, module in script_module.named_modules():
        for kind, code in (("Dropout", LintCode.DROPOUT), ("BatchNorm", LintCode.BATCHNORM)):
            if kind in type(module).__name__:
                found.append({"name": code.name, "message": f"{kind} {name}"})
    return found
