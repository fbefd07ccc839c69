"""Names that programs look for in the extension module and that need no C++: what compiled scripts
are made of (there is no script compiler, so the classes have no instances and its switches change
nothing), and a few questions. torch._C answers them from here at their first use."""

import torch
from torch import _later
from torch._file_check import FileCheck  # noqa: F401
from torch._schema_info import (  # noqa: F401
    _is_alias_of,
    _overlaps,
    _SchemaArgType,
    _SchemaArgument,
    _SchemaInfo,
)

globals().update(
    _later.names(
        "torch._C",
        "Block Graph Node ScriptFunction Use Value",
    )
)


class _KindOfType(type):
    """The class of the classes of types: a type is an instance of the one of its kind."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch._C.Type) and value.kind() == cls.__name__


def _kind(name: str) -> _KindOfType:
    def refuse(self: object, *args: object) -> None:
        raise NotImplementedError(f"torch._C.{name}: types are made by parsing a schema")

    text = "The types of schemas of this kind; isinstance tells."
    body = {"__module__": "torch._C", "__doc__": text, "__init__": refuse}
    return _KindOfType(name, (), body)


for _name in (
    "AnyType BoolType DeviceObjType DictType FloatType IntType ListType NoneType NumberType "
    "OptionalType StringType TensorType TupleType"
).split():
    globals()[_name] = _kind(_name)

# What the switches of the script compiler were set to.
_switches = {}


def _switch(name):
    def switch(value):
        before = _switches.get(name, False)
        _switches[name] = bool(value)
        return before

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = "Keeps the value and answers the one before; nothing is compiled either way."
    return switch


for _name in (
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_bailout_depth",
    "_jit_set_inline_everything_mode",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
    "_jit_set_nvfuser_horizontal_mode",
    "_jit_set_nvfuser_single_node_mode",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
):
    globals()[_name] = _switch(_name)
del _name


def _jit_can_fuse_on_cpu() -> bool:
    """Whether scripts are fused into kernels: no."""
    return False


_jit_can_fuse_on_gpu = _jit_texpr_fuser_enabled = _jit_can_fuse_on_cpu


def _jit_try_infer_type(obj):
    """The type of a Python value in the script language: an object with success(), type() and
    reason()."""
    from torch import _inferred_types

    return _inferred_types.infer(obj)


def set_vital(vital, attr, value) -> bool:
    """Would note an event for whoever watches the process; nobody can, and False says so."""
    return False


def _is_tracing() -> bool:
    """Whether a trace is being recorded: never."""
    return False


def _infer_size(first: torch.Size, second: torch.Size) -> torch.Size:
    """The size of what two tensors of these sizes broadcast to; RuntimeError if they do not."""
    a, b = tuple(first), tuple(second)
    width = max(len(a), len(b))
    a, b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
    for dim, (m, n) in enumerate(zip(a, b, strict=True)):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                f"non-singleton dimension {dim}"
            )
    return torch.Size(n if m == 1 else m for m, n in zip(a, b, strict=True))


def _get_accelerator(check=None):
    """The device that is not the host, where there is one, else the host."""
    found = torch.accelerator.current_accelerator()
    if found is None and check:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return torch.device("cpu") if found is None else found


def _get_privateuse1_backend_name() -> str:
    """The name of the device type left to other packages."""
    return "privateuseone"


# The library is built with the C++11 library ABI: see torch.compiled_with_cxx11_abi.
_GLIBCXX_USE_CXX11_ABI = True


def _mps_is_available() -> bool:
    """Whether there is an Apple graphics device: never."""
    return False


# Modules of their own that are part of the extension elsewhere.
_MODULES = {
    "_distributed_c10d": "torch._C._distributed_c10d",
    "_functions": "torch._C_functions",
}


def __getattr__(name):
    if name in _MODULES:
        import importlib

        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


# What the operators can do: torch.backends says more.
has_lapack = has_spectral = has_mkl = has_openmp = True
_has_mkldnn = False
