"""The fixed table of the safe loader: every global that a data-only pickle may name, and for those
that may be called a function that checks number, type and range of the arguments before anything
is built. Tensors are made by torch's own checked constructors (`set_` verifies geometry against
the storage); the checks here are those that concern the file.

Programs add their own names with torch.serialization.add_safe_globals; those, and only those, are
called as they are."""

from __future__ import annotations

from collections import Counter, OrderedDict

import torch

# The makers of sparse tensors use these; loaded here, so that no file is the cause of an import.
import torch._ops
import torch._sparse_construct
import torch.sparse
from torch._serialization.deferred import when_filled
from torch._serialization.errors import brief, refused
from torch._serialization.safe_unpickler import KeyGuard
from torch.nn.parameter import Parameter
from torch.storage import _DTYPE_TO_STORAGE, TypedStorage, UntypedStorage

__all__ = ["SafeTable", "STORAGE_DTYPES", "user_globals", "global_name"]

_MAX_RANK = 64
_INT64 = 1 << 63

# Objects that programs allow by add_safe_globals, by full name.
user_globals = {}

# Several of these share a byte, and none means anything without a scale.
_QUANTIZED = frozenset((torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4))

# The classes that a persistent id may name, with the dtype of their elements.
STORAGE_DTYPES = {cls: dtype for dtype, cls in _DTYPE_TO_STORAGE.items()}
STORAGE_DTYPES[UntypedStorage] = STORAGE_DTYPES[TypedStorage] = torch.uint8


def global_name(item) -> str:
    """The full name under which pickles refer to a class or a function."""
    return f"{item.__module__}.{item.__qualname__}"


def _fail(what, reason):
    raise refused(f"{what}: {reason}")


def _count(what, args, low, high=None) -> None:
    if not low <= len(args) <= (high or low):
        _fail(what, f"{len(args)} arguments")


def _exact(what, value, *kinds):
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds)
        _fail(what, f"expected {expected}, got {type(value).__name__}")
    return value


# ---- tensors ------------------------------------------------------------------------------------


def _geometry(what, size, stride) -> None:
    for name, values in (("size", size), ("stride", stride)):
        _exact(f"{what}: {name}", values, tuple, torch.Size)
        if len(values) > _MAX_RANK:
            _fail(what, f"{len(values)} dimensions, at most {_MAX_RANK} are possible")
        for value in values:
            if type(value) is not int or not 0 <= value < _INT64:
                _fail(what, f"{name} {brief(value)} is not acceptable")
    if len(size) != len(stride):
        _fail(what, f"{len(size)} sizes and {len(stride)} strides")


def _hooks(what, hooks) -> None:
    if hooks is not None and (type(hooks) not in (dict, OrderedDict) or hooks):
        _fail(what, "backward hooks are not data")


def _grad_flag(what, tensor, requires_grad):
    if _exact(f"{what}: requires_grad", requires_grad, bool):
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            _fail(what, f"requires_grad of a tensor of {tensor.dtype}")
        tensor.requires_grad_(True)
    return tensor


def _with_metadata(what, tensor, metadata) -> torch.Tensor:
    if metadata is None:
        return tensor
    _exact(f"{what}: metadata", metadata, dict)
    for key, value in metadata.items():
        if key not in ("conj", "neg") or type(value) is not bool:
            _fail(what, f"unknown metadata {brief(key)}")
    if metadata.get("conj"):
        if not tensor.dtype.is_complex:
            _fail(what, f"a conjugate bit on a tensor of {tensor.dtype}")
        tensor = tensor.conj()
    return torch._neg_view(tensor) if metadata.get("neg") else tensor


def _strided(what, storage, dtype, offset, size, stride) -> torch.Tensor:
    if type(storage) is not TypedStorage:
        _fail(what, f"expected a storage, got {type(storage).__name__}")
    if type(offset) is not int or not 0 <= offset < _INT64:
        _fail(what, f"storage offset {brief(offset)} is not acceptable")
    _geometry(what, size, stride)
    if dtype in _QUANTIZED:
        _fail(what, f"elements of {dtype} without their scale")
    untyped = storage.untyped()
    last = (
        offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if 0 not in size
        else -1
    )
    if (last + 1) * dtype.itemsize > untyped.nbytes():
        _fail(
            what,
            f"size {tuple(size)}, stride {tuple(stride)}, offset {offset} of {dtype} need "
            f"{(last + 1) * dtype.itemsize} bytes, the storage has {untyped.nbytes()}",
        )
    empty = torch.empty((0,), dtype=dtype, device=untyped.device)
    return empty.set_(untyped, offset, tuple(size), tuple(stride))


def _rebuild_tensor(args):
    what = "_rebuild_tensor"
    _count(what, args, 4)
    if type(args[0]) is not TypedStorage:
        _fail(what, f"expected a storage, got {type(args[0]).__name__}")
    return _strided(what, args[0], args[0].dtype, *args[1:])


def _rebuild_tensor_v2(args) -> torch.Tensor:
    what = "_rebuild_tensor_v2"
    _count(what, args, 6, 7)
    storage, offset, size, stride, requires_grad, hooks = args[:6]
    if type(storage) is not TypedStorage:
        _fail(what, f"expected a storage, got {type(storage).__name__}")
    _hooks(what, hooks)
    tensor = _strided(what, storage, storage.dtype, offset, size, stride)
    tensor = _with_metadata(what, tensor, args[6] if len(args) > 6 else None)
    return _grad_flag(what, tensor, requires_grad)


def _rebuild_tensor_v3(args) -> torch.Tensor:
    what = "_rebuild_tensor_v3"
    _count(what, args, 7, 8)
    storage, offset, size, stride, requires_grad, hooks, dtype = args[:7]
    _exact(f"{what}: dtype", dtype, torch.dtype)
    # This form is for dtypes without a storage class; the others would escape their checks.
    if dtype in _DTYPE_TO_STORAGE or dtype.itemsize == 0:
        _fail(what, f"{dtype} is not stored in this form")
    _hooks(what, hooks)
    tensor = _strided(what, storage, dtype, offset, size, stride)
    tensor = _with_metadata(what, tensor, args[7] if len(args) > 7 else None)
    return _grad_flag(what, tensor, requires_grad)


def _rebuild_meta(args) -> torch.Tensor:
    what = "_rebuild_meta_tensor_no_storage"
    _count(what, args, 4)
    dtype, size, stride, requires_grad = args
    _exact(f"{what}: dtype", dtype, torch.dtype)
    _geometry(what, size, stride)
    tensor = torch.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return _grad_flag(what, tensor, requires_grad)


def _attributes(what, target, state) -> OrderedDict | torch.Tensor:
    """Python attributes that were kept beside a tensor or a dict."""
    if type(state) is not dict:
        _fail(what, f"a state of type {type(state).__name__}")
    for key in state:
        if type(key) is not str or not key.isidentifier() or hasattr(type(target), key):
            _fail(what, f"an attribute named {brief(key)}")
    target.__dict__.update(state)
    return target


def _rebuild_parameter(args) -> torch.Tensor:
    what = "_rebuild_parameter"
    _count(what, args, 3)
    data, requires_grad, hooks = args
    _exact(f"{what}: data", data, torch.Tensor)
    _exact(f"{what}: requires_grad", requires_grad, bool)
    _hooks(what, hooks)
    if requires_grad and not (data.dtype.is_floating_point or data.dtype.is_complex):
        _fail(what, f"requires_grad of a tensor of {data.dtype}")
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(args) -> torch.Tensor:
    what = "_rebuild_parameter_with_state"
    _count(what, args, 4)
    return _attributes(what, _rebuild_parameter(args[:3]), args[3])


def _coo_is_ordered(indices, size) -> bool:
    """Whether the columns are strictly increasing in row-major order."""
    if indices.size(1) < 2:
        return True
    flat = torch.zeros(indices.size(1), dtype=torch.int64)
    for row, extent in zip(indices, size, strict=False):
        flat = flat * extent + row
    return bool((flat[1:] > flat[:-1]).all())


def _rebuild_sparse(args) -> torch.Tensor:
    what = "_rebuild_sparse_tensor"
    _count(what, args, 2)
    layout, data = args
    _exact(f"{what}: layout", layout, torch.layout)
    _exact(f"{what}: data", data, tuple)
    coordinates = layout is torch.sparse_coo
    _count(what, data, 3 if coordinates else 4, 4)
    tensors, size = (data[:2], data[2]) if coordinates else (data[:3], data[3])
    for tensor in tensors:
        _exact(what, tensor, torch.Tensor)
    _geometry(what, size, (0,) * len(size) if type(size) in (tuple, torch.Size) else size)
    if coordinates:
        make, unchecked = torch.sparse_coo_tensor, torch._sparse_coo_tensor_unsafe
    else:
        make, unchecked = torch.sparse_compressed_tensor, torch._sparse_compressed_tensor_unsafe
    claim = coordinates and len(data) == 4 and _exact(f"{what}: is_coalesced", data[3], bool)
    named = {"is_coalesced": claim or None} if coordinates else {"layout": layout}

    def check() -> None:
        make(*tensors, tuple(size), **named, check_invariants=True)
        if claim and not _coo_is_ordered(tensors[0], size):
            _fail(what, "the indices are not those of a coalesced tensor")

    when_filled(check)
    return unchecked(*tensors, tuple(size), **named)


def _rebuild_jagged(args):
    what = "_rebuild_jagged_tensor"
    _count(what, args, 5)
    values, offsets, lengths, ragged_idx, requires_grad = args
    for tensor in (values, offsets) if lengths is None else (values, offsets, lengths):
        _exact(what, tensor, torch.Tensor)
    _exact(f"{what}: ragged dimension", ragged_idx, int)
    try:
        made = torch._utils._rebuild_jagged_tensor(values, offsets, lengths, ragged_idx, False)
    except RuntimeError as error:
        _fail(what, str(error))
    return _grad_flag(what, made, requires_grad)


def _rebuild_nested(args):
    what = "_rebuild_nested_tensor"
    _count(what, args, 4)
    for tensor in args:
        _exact(what, tensor, torch.Tensor)
    try:
        return torch._utils._rebuild_nested_tensor(*args)
    except RuntimeError as error:
        _fail(what, str(error))


def _rebuild_strided_nested(args):
    what = "_rebuild_strided_nested_tensor"
    _count(what, args, 3)
    values, sizes, requires_grad = args
    for tensor in (values, sizes):
        _exact(what, tensor, torch.Tensor)
    try:
        made = torch._utils._rebuild_strided_nested_tensor(values, sizes, False)
    except RuntimeError as error:
        _fail(what, str(error))
    return _grad_flag(what, made, requires_grad)


def _quantizer(what, params):
    """Scale and zero point, or those of each slice and the axis."""
    _exact(what, params, tuple)
    counts = {
        torch.per_tensor_affine: 3,
        torch.per_channel_affine: 4,
        torch.per_channel_affine_float_qparams: 4,
    }
    count = counts.get(params[0]) if params and isinstance(params[0], torch.qscheme) else None
    if count != len(params):
        _fail(what, f"quantizer {brief(params)}")
    if count == 3:
        kinds = zip(params[1:], (float, int), strict=True)
    else:
        kinds = zip(params[1:], (torch.Tensor, torch.Tensor, int), strict=True)
    for value, kind in kinds:
        _exact(what, value, kind)


def _rebuild_quantized(args):
    what = "_rebuild_qtensor"
    _count(what, args, 7)
    storage, offset, size, stride, params, requires_grad, hooks = args
    if type(storage) is not TypedStorage or storage.dtype not in _QUANTIZED:
        _fail(what, f"expected a storage of a quantized dtype, got {type(storage).__name__}")
    plain = torch._utils._LEVELS.get(storage.dtype)
    if plain is not None:
        _strided(what, storage, plain, offset, size, stride)
    else:
        _geometry(what, size, stride)
    _quantizer(what, params)
    if requires_grad is not False or len(hooks) > 0:
        _fail(what, "gradients of a quantized tensor")
    try:
        return torch._utils._rebuild_qtensor(
            storage, offset, tuple(size), tuple(stride), params, False, hooks
        )
    except (RuntimeError, TypeError) as error:
        _fail(what, str(error))


# ---- plain values -------------------------------------------------------------------------------


def _encode(args) -> bytes:
    """How bytes are written by protocol 2: as text in the encoding that maps byte to character."""
    _count("_codecs.encode", args, 2)
    text, encoding = (_exact("_codecs.encode", value, str) for value in args)
    if encoding not in ("latin1", "latin-1"):
        _fail("_codecs.encode", f"encoding {encoding[:40]!r}")
    return text.encode("latin-1")


def _make_bytearray(args):
    _count("bytearray", args, 0, 2)
    if len(args) == 2:
        return bytearray(_encode(args))
    return bytearray(_exact("bytearray", args[0], bytes)) if args else bytearray()


def _make_complex(args) -> complex:
    _count("complex", args, 2)
    return complex(*(_exact("complex", value, float, int) for value in args))


def _make_set(kind):
    def make(args):
        _count(kind.__name__, args, 0, 1)
        items = _exact(kind.__name__, args[0], list, tuple) if args else ()
        return kind(map(KeyGuard().check, items))

    return make


def _make_ordered_dict(args) -> OrderedDict:
    _count("OrderedDict", args, 0, 1)
    result, keys = OrderedDict(), KeyGuard()
    for pair in _exact("OrderedDict", args[0], list) if args else ():
        _exact("OrderedDict", pair, list, tuple)
        _count("OrderedDict", pair, 2)
        result[keys.check(pair[0])] = pair[1]
    return result


def _make_counter(args) -> Counter:
    _count("Counter", args, 0, 1)
    result = Counter()
    for key, value in (_exact("Counter", args[0], dict) if args else {}).items():
        result[key] = value
    return result


def _make_size(args) -> torch.Size:
    _count("torch.Size", args, 1)
    values = _exact("torch.Size", args[0], tuple, list)
    for value in values:
        if type(value) is not int or not -_INT64 <= value < _INT64:
            _fail("torch.Size", f"element {brief(value)}")
    return torch.Size(values)


def _make_device(args) -> torch.device:
    _count("torch.device", args, 1, 2)
    _exact("torch.device", args[0], str)
    if len(args) == 2:
        _exact("torch.device", args[1], int)
    return torch.device(*args)


def _make_layout(args) -> torch.layout | None:
    _count("_get_layout", args, 1)
    layout = _LAYOUTS.get(_exact("_get_layout", args[0], str))
    if layout is None:
        _fail("_get_layout", f"unknown layout {args[0][:40]!r}")
    return layout


# ---- the table ----------------------------------------------------------------------------------


def get_layout(name) -> torch.layout:
    """The layout of that name; files refer to this function as torch.serialization._get_layout."""
    return _make_layout((name,))


_LAYOUTS = {str(v): v for v in vars(torch).values() if isinstance(v, torch.layout)}


def _unchecked(name):
    """The function that pickles name; in the safe loader it only stands for its checked form."""
    return getattr(torch._utils, name)


def _build_table():
    found = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "_codecs.encode": _encode,
        "torch.Size": torch.Size,
        "torch.device": torch.device,
        "torch.Tensor": torch.Tensor,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.nn.Parameter": Parameter,
        "torch.serialization._get_layout": get_layout,
        "torch._tensor._rebuild_from_type_v2": torch._tensor._rebuild_from_type_v2,
        "torch.storage.TypedStorage": TypedStorage,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch._utils._rebuild_qtensor": _rebuild_quantized,
        "torch._utils._rebuild_wrapper_subclass": torch._utils._rebuild_wrapper_subclass,
    }
    for kind in (set, frozenset, bytearray, complex):
        found[f"builtins.{kind.__name__}"] = found[f"__builtin__.{kind.__name__}"] = kind
    for name in _CHECKED:
        found[f"torch._utils.{name}"] = _unchecked(name)
    for cls in _DTYPE_TO_STORAGE.values():
        found[f"torch.{cls.__name__}"] = found[f"torch.cuda.{cls.__name__}"] = cls
    for name, value in vars(torch).items():
        if isinstance(value, (torch.dtype, torch.qscheme)):
            found[f"torch.{name}"] = value
    return found


_CHECKED = {
    "_rebuild_nested_tensor": _rebuild_nested,
    "_rebuild_tensor": _rebuild_tensor,
    "_rebuild_tensor_v2": _rebuild_tensor_v2,
    "_rebuild_tensor_v3": _rebuild_tensor_v3,
    "_rebuild_parameter": _rebuild_parameter,
    "_rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "_rebuild_meta_tensor_no_storage": _rebuild_meta,
    "_rebuild_sparse_tensor": _rebuild_sparse,
    "_rebuild_jagged_tensor": _rebuild_jagged,
    "_rebuild_strided_nested_tensor": _rebuild_strided_nested,
}
_TABLE = _build_table()
_CALLS = {
    OrderedDict: _make_ordered_dict,
    Counter: _make_counter,
    set: _make_set(set),
    frozenset: _make_set(frozenset),
    bytearray: _make_bytearray,
    complex: _make_complex,
    torch.Size: _make_size,
    torch.device: _make_device,
    get_layout: _make_layout,
    _encode: _encode,
    _rebuild_quantized: _rebuild_quantized,
}
_CALLS.update({_unchecked(name): call for name, call in _CHECKED.items()})
# What stands where a function is expected may be anything: it is compared, never hashed, because
# hashing a deeply nested tuple recurses.
_CALLS_BY_ID = {id(function): call for function, call in _CALLS.items()}
_TENSOR_CALLS_BY_ID = {
    id(_unchecked(name)): call for name, call in _CHECKED.items() if "parameter" not in name
}


# Makers of nested tensors: the values come first and stay what they are, of the others (sizes,
# offsets, lengths) every row is looked at.
_ROWS_BY_ID = {id(_unchecked(name)) for name in _CHECKED if "nested" in name or "jagged" in name}
_ROW_COST = 160


class SafeTable:
    """The table as the unpickler uses it, together with the globals that the program allowed."""

    def __init__(self) -> None:
        self._user = dict(user_globals)
        self._user_items = {id(item) for item in self._user.values()}

    def find(self, module, name):
        """The object of that full name; raises if the table has none."""
        full = f"{module}.{name}"
        if full.startswith("__builtin__."):
            full = "builtins." + full[len("__builtin__.") :]
        found = self._user.get(full, _TABLE.get(full))
        if found is None:
            raise refused(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please "
                f"use `torch.serialization.add_safe_globals([{name}])` or the context manager "
                f"`torch.serialization.safe_globals([{name}])` to allowlist it, if you trust it "
                "and the file."
            )
        return found

    def _allowed(self, item) -> bool:
        return id(item) in self._user_items

    def call(self, function, args):
        """What REDUCE does."""
        if self._allowed(function):
            return function(*args)
        if function is torch._tensor._rebuild_from_type_v2:
            return self._from_type(args)
        if function is torch._utils._rebuild_wrapper_subclass:
            return self._wrapper(args)
        checked = _CALLS_BY_ID.get(id(function))
        if checked is None:
            name = getattr(function, "__name__", type(function).__name__)
            raise refused(f"Trying to call reduce for unrecognized function {name}")
        return checked(args)

    def cost(self, function, args) -> int:
        """Bytes that a call takes for rows of its tensors, which need no memory in the file: they
        may be empty or all the same."""
        if function is torch._tensor._rebuild_from_type_v2 and len(args) == 4:
            function, args = args[0], args[2]
        if id(function) not in _ROWS_BY_ID or type(args) is not tuple:
            return 0
        tensors = [item for item in args if type(item) is torch.Tensor]
        return sum(_ROW_COST * max(t.numel(), *t.shape, 1) for t in tensors[1:])

    def _from_type(self, args):
        what = "_rebuild_from_type_v2"
        _count(what, args, 4)
        function, kind, inner, state = args
        _exact(what, inner, tuple)
        if function is torch._utils._rebuild_wrapper_subclass:
            call = self._wrapper
        else:
            call = _TENSOR_CALLS_BY_ID.get(id(function))
        if call is None:
            _fail(what, "it does not make a tensor")
        tensor = call(inner)
        if kind is torch.Tensor:
            return _attributes(what, tensor, state) if state else tensor
        self._check_tensor_class(what, kind)
        if type(tensor) is not kind:
            tensor = tensor.as_subclass(kind)
        if not state:
            return tensor
        if kind.__setstate__ is not torch.Tensor.__setstate__:
            tensor.__setstate__(state)
            return tensor
        for part in state if type(state) is tuple and len(state) == 2 else (state,):
            _exact(f"{what}: state", part, dict)
            for name in part:
                _exact(f"{what}: the name of an attribute", name, str)
        return torch._utils._set_obj_state(tensor, state)

    def _check_tensor_class(self, what, kind) -> None:
        if not self._allowed(kind) or not isinstance(kind, type):
            _fail(what, f"{brief(kind)} is not an allowed class")
        if not issubclass(kind, torch.Tensor):
            _fail(what, f"{kind.__name__} is not a class of tensors")

    def _wrapper(self, args):
        """A subclass that holds other tensors, which its state brings, and no memory."""
        what = "_rebuild_wrapper_subclass"
        _count(what, args, 8)
        kind, dtype, size, stride, offset, layout, device, requires_grad = args
        self._check_tensor_class(what, kind)
        _exact(f"{what}: dtype", dtype, torch.dtype)
        _geometry(what, size, stride)
        if type(offset) is not int or not 0 <= offset < _INT64:
            _fail(what, f"storage offset {brief(offset)} is not acceptable")
        _exact(f"{what}: layout", layout, torch.layout)
        _exact(f"{what}: device", device, torch.device)
        _exact(f"{what}: requires_grad", requires_grad, bool)
        return torch._utils._rebuild_wrapper_subclass(*args)

    def new(self, cls, args):
        """What NEWOBJ does: only for classes that the program allowed, and never for those whose
        instances are made in C++, which would be left without content."""
        if not self._allowed(cls) or not isinstance(cls, type):
            name = getattr(cls, "__name__", type(cls).__name__)
            raise refused(f"Trying to create new object for unrecognized class {name}")
        if issubclass(cls, (torch.Tensor, torch._C.StorageBase)):
            raise refused(f"an object of {cls.__name__} cannot be made without its data")
        return cls.__new__(cls, *args)

    def build(self, target, state) -> None:
        """What BUILD does."""
        kind = type(target)
        if kind is OrderedDict:
            _attributes("OrderedDict", target, state)
            return
        if not self._allowed(kind):
            raise refused(f"Trying to set the state of an object of type {kind.__name__}")
        setstate = getattr(target, "__setstate__", None)
        if setstate is not None:
            setstate(state)
            return
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        for part in (state, slots):
            if part is not None and type(part) is not dict:
                raise refused(f"a state of type {type(part).__name__} for {kind.__name__}")
        if state:
            target.__dict__.update(state)
        for name, value in (slots or {}).items():
            setattr(target, name, value)
