"""Storages: the memory behind tensors.

UntypedStorage is bytes on a device. TypedStorage, the older view of it as elements of a dtype,
is kept because checkpoints and programs name it; it is written here entirely, on top of the
former."""

from __future__ import annotations

import copy as _copy
import sys as _sys
import warnings
import weakref as _weakref

import torch
from torch import _C

__all__ = ["TypedStorage", "UntypedStorage"]

_StorageBase = _C.StorageBase
_DTYPE_TO_STORAGE = {}


class UntypedStorage(_C.StorageBase):
    """A block of bytes on a device. Tensors that share one share memory."""

    is_sparse = False
    is_sparse_csr = False

    def __repr__(self):
        info = f"[torch.storage.UntypedStorage(device={self.device}) of size {self.size()}]"
        if self.device.type == "meta":
            return "...\n" + info
        return "".join(f" {value}\n" for value in self.tolist()) + info

    __str__ = __repr__

    def __iter__(self):
        return iter(self.tolist())

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo) -> UntypedStorage:
        copies = memo.setdefault("torch", {})
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
        return copies[self._cdata]

    def __sizeof__(self):
        return super().__sizeof__() + self.nbytes()

    def __reduce__(self):
        # The pickler of multiprocessing gets descriptors even where nothing has imported
        # torch.multiprocessing, which would have told it.
        if _pickles_for_a_process(_sys._getframe(1)):
            return torch.multiprocessing.reductions.reduce_storage(self)
        return _load_from_bytes, (_saved(self),)

    def clone(self) -> UntypedStorage:
        """A copy on the same device."""
        return type(self)(self.nbytes(), device=self.device).copy_(self)

    def tolist(self) -> list[int]:
        """The bytes as integers."""
        return list(_C._storage_bytes(self))

    def cpu(self) -> UntypedStorage:
        """This storage if it is on the CPU, else a copy there."""
        return self if self.device.type == "cpu" else self._to_device("cpu", False)

    def cuda(self, device=None, non_blocking=False) -> UntypedStorage:
        """This storage if it is on that GPU, else a copy there."""
        target = torch.device("cuda" if device is None else device)
        if target.index is None:
            target = torch.device("cuda", torch.cuda.current_device())
        return self if self.device == target else self._to_device(target, non_blocking)

    def to(self, *, device, non_blocking=False):
        """This storage if it is on that device, else a copy there."""
        device = torch.device(device)
        return self if self.device == device else self._to_device(device, non_blocking)

    def _to_device(self, device, non_blocking) -> UntypedStorage:
        return UntypedStorage(self.nbytes(), device=device).copy_(self, non_blocking)

    @classmethod
    def _new_shared(cls, size, *, device="cpu") -> UntypedStorage:
        """New memory that other processes can share."""
        return cls(size, device=device).share_memory_()

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """The descriptor of the memory file and the number of bytes; the storage moves there."""
        descriptor, size, offset = _C._storage_share(self)
        if offset:
            raise RuntimeError("_share_fd_cpu_: the storage is a part of another one")
        return descriptor, size

    @staticmethod
    def from_buffer(buffer, byte_order=None, count=-1, offset=0, *, dtype=None) -> UntypedStorage:
        """A storage with a copy of `count` elements (all when negative) of a buffer's bytes, which
        are in the given byte order from `offset` on."""
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        if not isinstance(dtype, torch.dtype):
            raise RuntimeError("argument 'dtype' must be of type torch.dtype")
        if byte_order is None and dtype not in (torch.uint8, torch.int8):
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        order = _sys.byteorder if byte_order in (None, "native") else byte_order
        if order not in ("big", "little"):
            raise ValueError(
                f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        content = bytearray(memoryview(buffer).cast("B"))
        size = _buffer_elements(len(content), count, offset, dtype.itemsize) * dtype.itemsize
        storage = UntypedStorage(size)
        if size:
            flat = torch.tensor([], dtype=torch.uint8).set_(storage)
            flat.copy_(torch.frombuffer(content, dtype=torch.uint8, count=size, offset=offset))
        if order != _sys.byteorder and dtype.itemsize > 1:
            storage.byteswap(dtype)
        return storage

    @staticmethod
    def _new_shared_fd_cpu(descriptor, size) -> UntypedStorage:
        """A storage on memory that another process shares by descriptor."""
        return _C._storage_from_descriptor(descriptor, size)

    def untyped(self):
        """The storage itself."""
        return self

    def _fix_weakref(self) -> None:
        """Weak references hold on to the memory's one Python object; there is nothing to mend."""

    def type(self, dtype=None, non_blocking=False):
        """The name of the class, or a typed copy of the bytes."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        return self._as_typed(dtype)

    def _as_typed(self, dtype):
        """Each byte as an element of `dtype`."""
        values = torch.tensor([], dtype=torch.uint8, device=self.device).set_(self)
        return values.to(dtype)._typed_storage()

    def is_pinned(self, device=None):
        """Whether the memory is page-locked."""
        return _C._storage_is_pinned(self)

    def pin_memory(self, device=None):
        """A page-locked copy."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return _C._storage_pin(self)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self):
        """The index of the device, -1 for the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index

    @property
    def filename(self):
        """The file that the memory maps, or None."""
        return self._get_filename()

    def byteswap(self, dtype) -> None:
        """Reverses the bytes of each element in place."""
        size = torch.empty((), dtype=dtype).element_size()
        if dtype.is_complex:
            size //= 2
        view = torch.tensor([], dtype=torch.uint8).set_(self)
        count = self.nbytes() // size
        rows = view[: count * size].view(count, size)
        rows.copy_(rows.flip(1))


for _dtype_name in (
    "double float half long int short char byte bool bfloat16 float8_e5m2 float8_e4m3fn "
    "float8_e5m2fnuz float8_e4m3fnuz"
).split():
    _target = {"char": "int8", "byte": "uint8"}.get(_dtype_name, _dtype_name)

    def _convert(self, _target=_target):
        return self._as_typed(getattr(torch, _target))

    _convert.__name__ = _dtype_name
    _convert.__doc__ = f"A typed copy with elements of torch.{_target}."
    setattr(UntypedStorage, _dtype_name, _convert)
UntypedStorage.complex_double = lambda self: self._as_typed(torch.complex128)
UntypedStorage.complex_float = lambda self: self._as_typed(torch.complex64)
del _dtype_name, _target, _convert


def _buffer_elements(length, count, offset, itemsize) -> int:
    """How many elements from_buffer takes out of `length` bytes."""
    if not 0 <= offset <= length:
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({length}) , but got "
            f"{offset}"
        )
    left = length - offset
    if count < 0:
        if left % itemsize:
            raise ValueError(
                f"buffer size ({left}) must be a multiple of element size ({itemsize})"
            )
        return left // itemsize
    if left < count * itemsize:
        raise ValueError(
            f"buffer has only {left // itemsize} elements after offset {offset}, but specified a "
            f"size of {count}"
        )
    return count


def _pickles_for_a_process(frame) -> bool:
    forking = _sys.modules.get("multiprocessing.reduction")
    return forking is not None and frame.f_globals is vars(forking)


def _saved(storage) -> bytes:
    """A storage as the file in torch.save's old format that pickles of PyTorch hold it in."""
    import io

    file = io.BytesIO()
    torch.save(storage, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def _load_from_bytes(b) -> TypedStorage:
    """Unpickles a storage. Programs replace this function to choose a map_location."""
    import io

    return torch.load(io.BytesIO(b), weights_only=False)


# What the elements of quantized storages are as plain numbers.
_PLAIN_DTYPES = {
    torch.quint8: torch.uint8,
    torch.quint4x2: torch.uint8,
    torch.quint2x4: torch.uint8,
    torch.qint8: torch.int8,
    torch.qint32: torch.int32,
}

_typed_while_pickled = _weakref.WeakValueDictionary()


def _typed_for_pickling(untyped, dtype) -> TypedStorage:
    """The same TypedStorage for all tensors that share a storage while one of them is pickled, so
    that they share it afterwards."""
    # A TypedStorage keeps its storage, so an id in the table is that of a living one.
    key = id(untyped), dtype
    typed = _typed_while_pickled.get(key)
    if typed is None:
        typed = _typed_while_pickled[key] = _typed_from_untyped(untyped, dtype)
    return typed


def _typed_from_untyped(untyped, dtype) -> TypedStorage:
    """Unpickles a TypedStorage."""
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


_warned = False
_warn_always = False


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Whether every use of a TypedStorage warns, rather than the first."""
    global _warn_always
    if not isinstance(always_warn, bool):
        raise TypeError(f"expected a bool, got {type(always_warn).__name__}")
    _warn_always = always_warn


def _get_always_warn_typed_storage_removal() -> bool:
    """What _set_always_warn_typed_storage_removal chose."""
    return _warn_always


def _warn_typed_storage_removal(stacklevel=2) -> None:
    """Says once per process (always, if set_warn_always) that TypedStorage is deprecated."""
    global _warned
    if _warned and not (_warn_always or torch.is_warn_always_enabled()):
        return
    _warned = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
        "be the only "
        "storage class. This should only matter to you if you are using storages directly.  To "
        "access "
        "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def _argument_size(args) -> object:
    if len(args) > 1:
        raise TypeError(f"Too many positional arguments: {len(args)}")
    return args[0] if args else 0


class TypedStorage:
    """A storage seen as elements of a dtype."""

    is_sparse = False
    _dtype_of_class = None
    _device_of_class = "cpu"

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        dtype = dtype or type(self)._dtype_of_class or torch.get_default_dtype()
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype)}")
        self.dtype = dtype
        if wrap_storage is not None:
            if args or device is not None:
                raise RuntimeError("With 'wrap_storage', neither a size nor 'device' may be given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
                )
            self._untyped_storage = wrap_storage
            return
        source = _argument_size(args)
        if isinstance(source, int):
            device = device or type(self)._device_of_class
            self._untyped_storage = UntypedStorage(source * dtype.itemsize, device=device)
        else:
            plain = _PLAIN_DTYPES.get(dtype, dtype)
            values = torch.tensor(list(source), dtype=plain)
            target = torch.device(device or type(self)._device_of_class)
            self._untyped_storage = values.to(target).untyped_storage()

    def _flat(self) -> torch.Tensor:
        """The storage as a one-dimensional tensor that shares its memory."""
        dtype = _PLAIN_DTYPES.get(self.dtype, self.dtype)
        return torch.tensor([], dtype=dtype, device=self.device).set_(
            self._untyped_storage, 0, (self._size(),), (1,)
        )

    @property
    def device(self) -> torch.device:
        """The device of the memory."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """Whether the memory is on a CUDA device."""
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return self._size()

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the memory."""
        return self._untyped_storage.data_ptr()

    def __getitem__(self, idx):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(idx, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(idx, int):
            raise RuntimeError(f"can't idx a {type(self)} with {type(idx)}")
        return self._flat()[self._checked_index(idx)].item()

    def _checked_index(self, index):
        size = self._size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index % size

    def __setitem__(self, idx, value) -> None:
        if isinstance(idx, int):
            idx = self._checked_index(idx)
        elif not isinstance(idx, slice):
            raise RuntimeError(f"can't idx a {type(self)} with {type(idx)}")
        with torch.no_grad():
            flat = self._flat()
            flat[idx] = torch.tensor(value, dtype=flat.dtype)

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list[float]:
        """The elements as Python numbers."""
        return self._flat().tolist()

    def fill_(self, value):
        """Sets every element."""
        self._flat().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Copies the elements of another storage, converting them."""
        if isinstance(source, TypedStorage):
            self._flat().copy_(source._flat(), bool(non_blocking))
        else:
            self._untyped_storage.copy_(source, bool(non_blocking))
        return self

    def resize_(self, size) -> None:
        """Changes the number of elements; the common part stays."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def resizable(self):
        """Whether resize_ is possible."""
        return self._untyped_storage.resizable()

    def _wrap(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def clone(self):
        """A copy."""
        return self._wrap(self._untyped_storage.clone())

    def cpu(self):
        """This storage or a copy on the CPU."""
        return self._wrap(self._untyped_storage.cpu())

    def cuda(self, device=None, non_blocking=False):
        """This storage or a copy on a GPU."""
        return self._wrap(self._untyped_storage.cuda(device, non_blocking))

    def to(self, *, device, non_blocking=False):
        """This storage or a copy on another device."""
        return self._wrap(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def is_shared(self):
        """Whether the memory is shared between processes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        """Moves the memory to where other processes can map it."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device=None):
        """Whether the memory is page-locked."""
        return self._untyped_storage.is_pinned()

    def pin_memory(self, device=None):
        """A page-locked copy."""
        return self._wrap(self._untyped_storage.pin_memory())

    def get_device(self):
        """The index of the device, -1 for the CPU."""
        return self._untyped_storage.get_device()

    @property
    def filename(self):
        """The file that the memory maps, or None."""
        return self._untyped_storage.filename

    def _get_legacy_storage_class(self):
        return _DTYPE_TO_STORAGE.get(self.dtype)

    def pickle_storage_type(self):
        """The class name under which files know this kind of storage."""
        cls = _DTYPE_TO_STORAGE.get(self.dtype)
        if cls is None:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return cls.__name__

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype=None, non_blocking=False) -> str | TypedStorage:
        """The name of the class, or a copy with elements of another dtype."""
        if dtype is None:
            cls = _DTYPE_TO_STORAGE.get(self.dtype)
            return f"torch.{cls.__name__}" if cls else "torch.storage.TypedStorage"
        return self._flat().to(dtype)._typed_storage()

    @classmethod
    def from_buffer(cls, *args, **kwargs) -> TypedStorage:
        """A storage with a copy of a buffer's bytes."""
        cls._refuse_on_gpu()
        if cls._dtype_of_class is not None and "dtype" in kwargs:
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and "
                "TypedStorage.from_buffer"
            )
        device = torch.device(kwargs.pop("device", None) or "cpu")
        if device.type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {device.type}")
        dtype = cls._dtype_of_class or kwargs.pop("dtype", None) or torch.get_default_dtype()
        untyped = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    _from_buffer = from_buffer

    @classmethod
    def _refuse_on_gpu(cls) -> None:
        if cls._device_of_class == "cuda":
            raise RuntimeError("Not available for CUDA storage")

    @classmethod
    def _new_with_weak_ptr(cls, *args, **kwargs):
        cls._refuse_on_gpu()
        raise NotImplementedError("storages are not made from weak pointers here")

    @classmethod
    def _new_shared_filename(cls, *args, **kwargs):
        cls._refuse_on_gpu()
        raise NotImplementedError("storages are shared by descriptor, not by file name")

    def _deepcopy(self, memo):
        return self.__deepcopy__(memo)

    # The names under which torch itself calls these, without the warning of old.
    _resize_ = resize_
    _is_shared = is_shared
    _share_memory_ = share_memory_
    _setitem = __setitem__
    _getitem = __getitem__
    _element_size = element_size
    _data_ptr = data_ptr
    _nbytes = nbytes

    def __repr__(self):
        kind = f"dtype={self.dtype}, device={self.device}"
        info = f"[torch.storage.TypedStorage({kind}) of size {len(self)}]"
        if self.device.type == "meta":
            return "...\n" + info
        with _C._DisableTorchDispatch():  # what is printed is no part of the program
            return "".join(f" {value}\n" for value in self.tolist()) + info

    __str__ = __repr__

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return self._wrap(_copy.deepcopy(self._untyped_storage, memo))

    def __eq__(self, other):
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self._cdata == other._cdata and self.dtype is other.dtype

    __hash__ = object.__hash__

    def __reduce__(self):
        if _pickles_for_a_process(_sys._getframe(1)):
            return _typed_from_untyped, (self._untyped_storage, self.dtype)
        return _load_from_bytes, (_saved(self),)


def _conversions() -> dict[str, str]:
    names = "double float half long int short char byte bool bfloat16".split()
    named = {"char": "int8", "byte": "uint8"}
    table = {name: named.get(name, name) for name in names}
    table |= {"complex_double": "complex128", "complex_float": "complex64"}
    table |= {n: n for n in ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz")}
    return table


def _conversion(name, target):
    def convert(self) -> TypedStorage:
        return self.type(getattr(torch, target))

    convert.__name__ = name
    convert.__doc__ = f"A copy with elements of torch.{target}."
    return convert


for _name, _target in _conversions().items():
    setattr(TypedStorage, _name, _conversion(_name, _target))
del _name, _target


class _LegacyStorageMeta(type):
    """isinstance(storage, torch.FloatStorage) asks for the dtype of a TypedStorage."""

    def __instancecheck__(cls, instance) -> bool:
        return (
            type(instance) is TypedStorage
            and instance.dtype is cls._dtype_of_class
            and instance.device.type == cls._device_of_class
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """torch.FloatStorage and its like: calling one makes a TypedStorage of its dtype."""

    dtype = None

    def __new__(
        cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False
    ) -> TypedStorage:
        if dtype is not None:
            raise RuntimeError(f"{cls.__module__}.{cls.__name__}: the dtype is that of the class")
        return TypedStorage(
            *args,
            wrap_storage=wrap_storage,
            dtype=cls._dtype_of_class,
            device=device if wrap_storage is not None else device or cls._device_of_class,
            _internal=True,
        )


def _legacy_class(name, dtype, device="cpu"):
    members = {
        "__module__": "torch" if device == "cpu" else "torch." + device,
        "_dtype_of_class": dtype,
        "_device_of_class": device,
        "dtype": dtype,
        "_dtype": dtype,
    }
    cls = _LegacyStorageMeta(name, (_LegacyStorage,), members)
    if device == "cpu":
        _DTYPE_TO_STORAGE[dtype] = cls
    return cls


ByteStorage = _legacy_class("ByteStorage", torch.uint8)
DoubleStorage = _legacy_class("DoubleStorage", torch.float64)
FloatStorage = _legacy_class("FloatStorage", torch.float32)
HalfStorage = _legacy_class("HalfStorage", torch.float16)
LongStorage = _legacy_class("LongStorage", torch.int64)
IntStorage = _legacy_class("IntStorage", torch.int32)
ShortStorage = _legacy_class("ShortStorage", torch.int16)
CharStorage = _legacy_class("CharStorage", torch.int8)
BoolStorage = _legacy_class("BoolStorage", torch.bool)
BFloat16Storage = _legacy_class("BFloat16Storage", torch.bfloat16)
ComplexDoubleStorage = _legacy_class("ComplexDoubleStorage", torch.complex128)
ComplexFloatStorage = _legacy_class("ComplexFloatStorage", torch.complex64)
QUInt8Storage = _legacy_class("QUInt8Storage", torch.quint8)
QInt8Storage = _legacy_class("QInt8Storage", torch.qint8)
QInt32Storage = _legacy_class("QInt32Storage", torch.qint32)
QUInt4x2Storage = _legacy_class("QUInt4x2Storage", torch.quint4x2)
QUInt2x4Storage = _legacy_class("QUInt2x4Storage", torch.quint2x4)


def _dtype_to_storage_type_map() -> dict[torch.dtype, str]:
    """dtype: the name of its storage class."""
    return {dtype: cls.__name__ for dtype, cls in _DTYPE_TO_STORAGE.items()}


def _storage_type_to_dtype_map():
    """The name of a storage class: its dtype."""
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}
