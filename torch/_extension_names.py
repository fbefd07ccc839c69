"""Names that programs look for in the extension module and that need no C++: kinds of types,
switches of executors that this library does not have, and a few questions. torch._C finds them here
at their first use; what graphs of scripted code are made of is in torch.jit._native_names."""

import torch
from torch import _cpu_features as _cpu  # noqa: F401
from torch._file_check import FileCheck  # noqa: F401
from torch._schema_info import (  # noqa: F401
    _is_alias_of,
    _overlaps,
    _SchemaArgType,
    _SchemaArgument,
    _SchemaInfo,
)
from torch._tags import Tag  # noqa: F401


class _KindOfType(type):
    """The class of the classes of types: a type is an instance of the one of its kind, be it a type
    of a schema or one of scripted code. Calling one makes a type of scripted code."""

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, torch._C.Type):
            return value.kind() == cls.__name__
        from torch.jit import _types

        return isinstance(value, _types.Type) and value.kind() == cls.__name__

    def __call__(cls, *parts):
        from torch.jit import _types

        makers = {
            "TupleType": lambda parts: _types.tuple_of(*parts),
            "OptionalType": _types.optional,
        }
        return makers.get(cls.__name__, getattr(_types, cls.__name__).of)(*parts)

    def __getattr__(cls, name: str):
        from torch.jit import _types

        return getattr(getattr(_types, cls.__name__), name)


def _kind(name: str) -> _KindOfType:
    def get(*parts):
        """The type with these parts; there is one of each."""
        from torch.jit import _types

        return getattr(_types, name).of(*parts)

    text = "Types of this kind; isinstance tells."
    body = {"__module__": "torch._C", "__doc__": text, "get": staticmethod(get)}
    return _KindOfType(name, (), body)


for _name in (
    "AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType "
    "IntType InterfaceType ListType NoneType NumberType OptionalType PyObjectType StreamObjType "
    "StringType TensorType TupleType UnionType"
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


def _jit_get_operation(name: str):
    """An operator by its name ("aten::add"), whose call chooses the overload, and the names of its
    overloads; (None, None) where there is none."""
    namespace, _, own = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), own, None) if own else None
    return (packet, packet.overloads()) if packet is not None else (None, None)


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
    return torch.device("privateuseone").type


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
    if not name.startswith("__"):
        from torch.jit import _native_names

        if hasattr(_native_names, name):
            return getattr(_native_names, name)
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


# What the operators can do: torch.backends says more.
has_lapack = has_spectral = has_mkl = has_openmp = True
_has_mkldnn = False
