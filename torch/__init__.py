"""The package `torch`: tensors, their operators and what is built on them.

Importing it must stay cheap (the budget is 150 ms over bare Python), so that only the extension
module, the Tensor class and a few small Python files are loaded here. Everything else, torch.nn
and torch.optim included, is loaded by the first use of its name: see `_LAZY` and `__getattr__`
at the end.
"""

from __future__ import annotations

# ruff: noqa: E402, F401
import importlib.machinery  # packages take it for loaded once torch is (80 us)
from math import e, inf, nan, pi

import torch  # programs reach the package as torch.torch too
from torch import _C

_C._require_main_interpreter()

from torch.torch_version import __version__

newaxis = None

# The extension holds every object that is implemented in C++: operators as members of
# _VariableFunctions, types and state functions as members of the module itself.
for _name in dir(_C):
    if _name[0] != "_" and not _name.endswith("Base"):
        globals()[_name] = getattr(_C, _name)
_VariableFunctions = _C._VariableFunctions
for _name in dir(_VariableFunctions):
    if not _name.startswith("__"):
        globals()[_name] = getattr(_VariableFunctions, _name)
for _name in _C._functional_tensor_names:
    globals()[_name] = getattr(_C, _name)
# Names of the first sparse products, which the general operators have long covered.
dsmm = spmm = _VariableFunctions.mm
hsmm = _VariableFunctions.hspmm
saddmm = _VariableFunctions.sspaddmm
del _name

Size, device, dtype, layout = _C.Size, _C.device, _C.dtype, _C.layout
finfo, iinfo, memory_format, qscheme = _C.finfo, _C.iinfo, _C.memory_format, _C.qscheme
Generator, default_generator = _C.Generator, _C.default_generator
OutOfMemoryError = _C.OutOfMemoryError
AcceleratorError = _C.AcceleratorError
_segment_reduce = _VariableFunctions.segment_reduce
StorageBase = _C.StorageBase
has_lapack = has_openmp = has_spectral = has_mkl = True
has_mkldnn = has_mps = has_cudnn = False
legacy_contiguous_format = _C.contiguous_format

from torch._checks import (
    _assert,
    _check,
    _check_index,
    _check_is_size,
    _check_not_implemented,
    _check_tensor_all,
    _check_tensor_all_with,
    _check_type,
    _check_value,
    _check_with,
)
from torch._legacy_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    tensortype,
)
from torch._queries import get_device, is_nonzero, numel
from torch._settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_default_device,
    set_default_dtype,
    set_default_tensor_type,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_warn_always,
    use_deterministic_algorithms,
)
from torch._symbolic import (
    SymBool,
    SymFloat,
    SymInt,
    _sym_acos,
    _sym_asin,
    _sym_atan,
    _sym_cos,
    _sym_cosh,
    _sym_is_integer,
    _sym_log2,
    _sym_sin,
    _sym_sinh,
    _sym_sqrt,
    _sym_tan,
    _sym_tanh,
    sym_constrain_range,
    sym_constrain_range_for_size,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from torch._tensor import Tensor
from torch._tensor_str import get_printoptions, set_printoptions
from torch.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from torch.functional import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    istft,
    lu,
    meshgrid,
    nonzero,
    norm,
    split,
    stft,
    tensordot,
    unique,
    unique_consecutive,
    unravel_index,
)
from torch.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from torch.storage import (
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    QInt8Storage,
    QInt32Storage,
    QUInt2x4Storage,
    QUInt4x2Storage,
    QUInt8Storage,
    ShortStorage,
    TypedStorage,
    UntypedStorage,
)

Storage = FloatStorage

__all__ = [
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "DoubleStorage",
    "DoubleTensor",
    "FloatStorage",
    "FloatTensor",
    "Generator",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "ShortStorage",
    "ShortTensor",
    "Size",
    "SymBool",
    "SymFloat",
    "SymInt",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "are_deterministic_algorithms_enabled",
    "device",
    "dtype",
    "e",
    "enable_grad",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_rng_state",
    "inf",
    "inference_mode",
    "initial_seed",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "layout",
    "load",
    "manual_seed",
    "memory_format",
    "nan",
    "newaxis",
    "no_grad",
    "pi",
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "split",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
    "typename",
    "use_deterministic_algorithms",
]
__all__ += [
    _name
    for _name, _value in globals().items()
    if _name[0] != "_" and isinstance(_value, (dtype, layout, memory_format, qscheme))
]
__all__ += [_name for _name in dir(_VariableFunctions) if _name[0] != "_" and _name not in __all__]

_storage_classes = {
    UntypedStorage,
    DoubleStorage,
    FloatStorage,
    LongStorage,
    IntStorage,
    ShortStorage,
    CharStorage,
    ByteStorage,
    HalfStorage,
    BoolStorage,
    QUInt8Storage,
    QInt8Storage,
    QInt32Storage,
    BFloat16Storage,
    ComplexFloatStorage,
    ComplexDoubleStorage,
    QUInt4x2Storage,
    QUInt2x4Storage,
    TypedStorage,
}
_tensor_classes = tensortype.instances


def is_tensor(obj, /) -> bool:
    """Whether obj is a tensor; the same as isinstance(obj, torch.Tensor)."""
    return isinstance(obj, Tensor)


def is_storage(obj, /) -> bool:
    """Whether obj is a storage object."""
    return type(obj) in _storage_classes


def typename(obj, /) -> str:
    """The name of the type of obj: 'torch.FloatTensor' for a tensor, the class's full name
    otherwise.
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    if module == "builtins":
        module = ""
    name = getattr(obj, "__qualname__", "")
    if not name:
        module, name = type(obj).__module__ or "", type(obj).__qualname__
        if module == "builtins":
            module = ""
    return f"{module}.{name}" if module else name


def get_device_module(device=None):
    """The module of a device's kind, such as torch.cuda; by default of the accelerator, or else
    torch.cpu."""
    if device is None:
        device = __getattr__("accelerator").current_accelerator() or "cpu"
    return __getattr__(_C.device(device).type)


def _register_device_module(device_type, module) -> None:
    """Makes a module torch.<device type>, for packages that bring a device of their own."""
    from sys import modules

    kind = _C.device(device_type).type
    if kind in globals() or _is_submodule(kind):
        raise RuntimeError(f"The runtime module of '{kind}' has already been registered")
    globals()[kind] = modules[f"torch.{kind}"] = module


def compiled_with_cxx11_abi() -> bool:
    """Whether libtorch was built with the C++11 library ABI; always so."""
    return True


# ---- names that are loaded on first use
# -----------------------------------------------------------------------

# Public name -> module that defines it, where that is not a submodule of the same name.
_LAZY = {
    "fused_moving_avg_obs_fake_quant": "torch._composed_ops.fake_quantise",
    "has_cuda": "torch.version",
    "_nested_view_from_buffer": "torch.nested",
    "_has_compatible_shallow_copy_type": "torch._shallow_copy",
    **{
        "_cast_" + kind: "torch._casts"
        for kind in ("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
    },
    "save": "torch.serialization",
    "load": "torch.serialization",
    "compile": "torch._compile",
    "_disable_dynamo": "torch._compile",
    "cond": "torch._higher_order_ops",
    "while_loop": "torch._higher_order_ops",
    "vmap": "torch.func",
    "autocast": "torch.amp",
    "GradScaler": "torch.amp",
    "get_autocast_cpu_dtype": "torch.amp._old_names",
    "get_autocast_gpu_dtype": "torch.amp._old_names",
    "set_autocast_cpu_dtype": "torch.amp._old_names",
    "set_autocast_gpu_dtype": "torch.amp._old_names",
    "is_autocast_cpu_enabled": "torch.amp._old_names",
    "set_autocast_cpu_enabled": "torch.amp._old_names",
    "pca_lowrank": "torch._lowrank",
    "svd_lowrank": "torch._lowrank",
    "lobpcg": "torch._lobpcg",
    "eig": "torch._linalg_removed",
    "lstsq": "torch._linalg_removed",
    "matrix_rank": "torch._linalg_removed",
    "solve": "torch._linalg_removed",
    "symeig": "torch._linalg_removed",
    "quasirandom": "torch.quasirandom",
    "ops": "torch._ops",
    "sparse_coo_tensor": "torch._sparse_construct",
    "sparse_compressed_tensor": "torch._sparse_construct",
    "sparse_csr_tensor": "torch._sparse_construct",
    "sparse_csc_tensor": "torch._sparse_construct",
    "sparse_bsr_tensor": "torch._sparse_construct",
    "sparse_bsc_tensor": "torch._sparse_construct",
    "_sparse_coo_tensor_unsafe": "torch._sparse_construct",
    "_sparse_compressed_tensor_unsafe": "torch._sparse_construct",
    "_sparse_csr_tensor_unsafe": "torch._sparse_construct",
    "_sparse_csc_tensor_unsafe": "torch._sparse_construct",
    "_sparse_bsr_tensor_unsafe": "torch._sparse_construct",
    "_sparse_bsc_tensor_unsafe": "torch._sparse_construct",
    "classes": "torch._classes",
    "_VF": "torch._VF",
    "__config__": "torch.__config__",
    "__future__": "torch.__future__",
    "Tag": "torch._tags",
    "from_file": "torch._from_file",
    "_grouped_mm": "torch.nn._grouped",
    "_assert_async": "torch._from_file",
    "is_vulkan_available": "torch._from_file",
    "_nested_from_padded": "torch.nested._strided",
    "_nested_from_padded_and_nested_example": "torch.nested._strided",
    "_nested_tensor_from_mask": "torch.nested._strided",
    "_nested_tensor_from_mask_left_aligned": "torch.nested._strided",
    "Future": "torch.futures",
    "ScriptModule": "torch.jit",
    "ScriptFunction": "torch.jit",
    "ScriptMethod": "torch.jit",
    "CompilationUnit": "torch.jit",
    "FileCheck": "torch._file_check",
    "JITException": "torch.jit._errors",
    "ErrorReport": "torch.jit._errors",
    "PyTorchFileReader": "torch._serialization.file_reader",
    **dict.fromkeys(
        (
            "AnyType BoolType DeviceObjType DictType FloatType IntType ListType NoneType "
            "NumberType OptionalType StringType TensorType TupleType"
        ).split(),
        "torch._extension_names",
    ),
    "set_vital": "torch._extension_names",
    "from_dlpack": "torch.utils.dlpack",
    "to_dlpack": "torch.utils.dlpack",
}


def _extension_name(name):
    """A name of torch._C that is Python: a file of its own, read when one is asked for."""
    if not name.startswith("__"):
        from torch import _extension_names

        if name not in ("torch", "_later") and hasattr(_extension_names, name):
            return getattr(_extension_names, name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


_C.__getattr__ = _extension_name
# Modules of the extension that are files of their own.
_C.__path__ = [__path__[0] + "/_C"]


def _name_modules() -> None:
    # Programs import names from these modules of the extension, and import finds modules only.
    import sys

    from torch import _captured_stack

    sys.modules["torch._C._profiler"] = _C._profiler = _captured_stack
    sys.modules["torch._C._autograd"] = _C._autograd


_name_modules()


class _NotInThisBuild(NotImplementedError, AttributeError):
    """A public name that is not implemented; hasattr() says that it is not there."""


def _is_submodule(name) -> bool:
    """Whether torch/name.py or the package torch/name exists; bare folders such as torch/lib are
    none.
    """
    from importlib.util import find_spec

    spec = find_spec("torch." + name)
    return spec is not None and spec.origin is not None


def __getattr__(name):
    from importlib import import_module

    target = _LAZY.get(name)
    if target is None:
        if not name.isidentifier() or name.startswith("__") or not _is_submodule(name):
            raise AttributeError(f"module 'torch' has no attribute '{name}'")
        return import_module("torch." + name)
    if not _is_submodule(target.removeprefix("torch.")):
        raise _NotInThisBuild(f"torch.{name} is not implemented: this build has no {target}")
    value = import_module(target)
    if target != "torch." + name:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public submodules too, loaded or not: a program that copies the names of the package
    must not miss those that somebody loads later."""
    from pkgutil import iter_modules

    submodules = {module.name for module in iter_modules(__path__) if module.name[0] != "_"}
    return sorted({*globals(), *_LAZY, *submodules})
