# Types of the names that torch itself offers. Operators come from the stubs that torchgen writes,
# the rest from the modules that define it; what a program seldom names falls to __getattr__.

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import _C as _C
from torch import amp as amp
from torch import autograd as autograd
from torch import backends as backends
from torch import compiler as compiler
from torch import cpu as cpu
from torch import cuda as cuda
from torch import distributions as distributions
from torch import fft as fft
from torch import func as func
from torch import functional as functional
from torch import futures as futures
from torch import hub as hub
from torch import jit as jit
from torch import library as library
from torch import linalg as linalg
from torch import multiprocessing as multiprocessing
from torch import nn as nn
from torch import optim as optim
from torch import overrides as overrides
from torch import profiler as profiler
from torch import quasirandom as quasirandom
from torch import random as random
from torch import return_types as return_types
from torch import serialization as serialization
from torch import sparse as sparse
from torch import special as special
from torch import storage as storage
from torch import testing as testing
from torch import types as types
from torch import utils as utils
from torch import version as version
from torch._C import AcceleratorError as AcceleratorError
from torch._C import DispatchKey as DispatchKey
from torch._C import DispatchKeySet as DispatchKeySet
from torch._C import Event as Event
from torch._C import Generator as Generator
from torch._C import OutOfMemoryError as OutOfMemoryError
from torch._C import Size as Size
from torch._C import Stream as Stream
from torch._C import default_generator as default_generator
from torch._C import device as device
from torch._C import dtype as dtype
from torch._C import finfo as finfo
from torch._C import get_default_dtype as get_default_dtype
from torch._C import get_num_interop_threads as get_num_interop_threads
from torch._C import get_num_threads as get_num_threads
from torch._C import iinfo as iinfo
from torch._C import is_grad_enabled as is_grad_enabled
from torch._C import is_inference_mode_enabled as is_inference_mode_enabled
from torch._C import layout as layout
from torch._C import memory_format as memory_format
from torch._C import qscheme as qscheme
from torch._C import set_flush_denormal as set_flush_denormal
from torch._C import set_num_interop_threads as set_num_interop_threads
from torch._C import set_num_threads as set_num_threads
from torch._symbolic import SymBool as SymBool
from torch._symbolic import SymFloat as SymFloat
from torch._symbolic import SymInt as SymInt
from torch._tensor import Tensor as Tensor
from torch.amp import GradScaler as GradScaler
from torch.amp import autocast as autocast
from torch.autograd import enable_grad as enable_grad
from torch.autograd import inference_mode as inference_mode
from torch.autograd import no_grad as no_grad
from torch.autograd import set_grad_enabled as set_grad_enabled
from torch.storage import TypedStorage as TypedStorage
from torch.storage import UntypedStorage as UntypedStorage

_F = TypeVar("_F", bound=Callable[..., Any])

__version__: _str

ops: Any

# ---- values
e: _float
inf: _float
nan: _float
pi: _float
newaxis: None

float32: dtype
float: dtype
float64: dtype
double: dtype
float16: dtype
half: dtype
bfloat16: dtype
float8_e4m3fn: dtype
float8_e4m3fnuz: dtype
float8_e5m2: dtype
float8_e5m2fnuz: dtype
float8_e8m0fnu: dtype
complex32: dtype
chalf: dtype
complex64: dtype
cfloat: dtype
complex128: dtype
cdouble: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
int8: dtype
int16: dtype
short: dtype
int32: dtype
int: dtype
int64: dtype
long: dtype
bool: dtype
quint8: dtype
qint8: dtype
qint32: dtype

strided: layout
sparse_coo: layout
sparse_csr: layout
sparse_csc: layout
sparse_bsr: layout
sparse_bsc: layout
jagged: layout

contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format

# ---- tensors from data
def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: device | _str | _int | None = None,
    requires_grad: _bool = False,
    pin_memory: _bool = False,
) -> Tensor: ...
def as_tensor(
    data: Any, dtype: dtype | None = None, device: device | _str | _int | None = None
) -> Tensor: ...
def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: device | _str | _int | None = None,
    copy: _bool | None = None,
    requires_grad: _bool = False,
) -> Tensor: ...
def from_numpy(ndarray: Any, /) -> Tensor: ...
def frombuffer(
    buffer: Any,
    *,
    dtype: dtype,
    count: _int = -1,
    offset: _int = 0,
    requires_grad: _bool = False,
) -> Tensor: ...
def from_dlpack(ext_tensor: Any, **kwargs: Any) -> Tensor: ...
def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[_int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | _str | _int | None = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
    check_invariants: _bool | None = None,
    is_coalesced: _bool | None = None,
) -> Tensor: ...

# ---- functions written in Python
def atleast_1d(*tensors: Any) -> Any: ...
def atleast_2d(*tensors: Any) -> Any: ...
def atleast_3d(*tensors: Any) -> Any: ...
def block_diag(*tensors: Any) -> Tensor: ...
def broadcast_shapes(*shapes: Any) -> Size: ...
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]: ...
def cartesian_prod(*tensors: Tensor) -> Tensor: ...
def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor: ...
def einsum(*args: Any) -> Tensor: ...
def meshgrid(*tensors: Any, indexing: _str | None = None) -> tuple[Tensor, ...]: ...
def split(
    tensor: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0
) -> tuple[Tensor, ...]: ...
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor: ...
def unique(
    input: Tensor,
    sorted: _bool = True,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
) -> Any: ...
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]: ...

# ---- questions
def is_tensor(obj: Any, /) -> _bool: ...
def is_storage(obj: Any, /) -> _bool: ...
def is_complex(input: Tensor) -> _bool: ...
def is_floating_point(input: Tensor) -> _bool: ...
def is_nonzero(input: Tensor) -> _bool: ...
def numel(input: Tensor) -> _int: ...
def typename(obj: Any, /) -> _str: ...

# ---- state
def manual_seed(seed: _int) -> Generator: ...
def seed() -> _int: ...
def initial_seed() -> _int: ...
def get_rng_state() -> Tensor: ...
def set_rng_state(new_state: Tensor) -> None: ...
def set_default_dtype(d: dtype, /) -> None: ...
def set_default_device(device: device | _str | None) -> None: ...
def get_default_device() -> device: ...
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None: ...
def are_deterministic_algorithms_enabled() -> _bool: ...
def set_float32_matmul_precision(precision: _str) -> None: ...
def get_float32_matmul_precision() -> _str: ...
def set_printoptions(
    precision: _int | None = None,
    threshold: _float | None = None,
    edgeitems: _int | None = None,
    linewidth: _int | None = None,
    profile: _str | None = None,
    sci_mode: _bool | None = None,
) -> None: ...

# ---- files
def save(
    obj: Any,
    f: Any,
    pickle_module: Any = ...,
    pickle_protocol: _int = ...,
    _use_new_zipfile_serialization: _bool = True,
    _disable_byteorder_record: _bool = False,
) -> None: ...
def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: _bool | None = None,
    mmap: _bool | None = None,
    **pickle_load_args: Any,
) -> Any: ...

# ---- functions of functions
def compile(model: _F | None = None, **settings: Any) -> _F: ...
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: _str = "error",
    *,
    chunk_size: _int | None = None,
) -> Callable[..., Any]: ...
def __getattr__(name: _str) -> Any: ...

# Last, so that the functions above, which Python wraps, keep their own signatures.
from torch._C._VariableFunctions import *  # type: ignore[assignment] # noqa: E402, F403
