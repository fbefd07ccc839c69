"""Making scripted modules of Python modules, by the names that programs reach it with."""

from __future__ import annotations

import torch
from torch.jit._modules import RecursiveScriptModule, script_module


def wrap_cpp_module(cpp_module) -> RecursiveScriptModule:
    """The Python module of what `module._c` gives."""
    return cpp_module._module


def create_script_module(
    nn_module: torch.nn.Module, stubs_fn=None, share_types: bool = True, is_tracing: bool = False
) -> RecursiveScriptModule:
    """The scripted form of a module."""
    if not share_types:
        from torch.jit import _module_types

        known = dict(_module_types._shared)
        _module_types._shared.clear()
        try:
            return script_module(nn_module)
        finally:
            _module_types._shared.update(known)
    return script_module(nn_module)


def infer_methods_to_compile(nn_module: torch.nn.Module) -> list[str]:
    """The methods that scripting starts from: forward and those marked with torch.jit.export."""
    names = [
        name
        for name in dir(type(nn_module))
        if getattr(getattr(type(nn_module), name, None), "__script_mark__", None) == "export"
    ]
    return ["forward", *names]
