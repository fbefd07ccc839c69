"""NumPy's dtypes over torch's: scalar classes, `dtype` objects, promotion and casting rules.

Everything follows from one table of scalar types: the kind and size of each decides what it can be
cast to and what two of them become together.
"""

from __future__ import annotations

import builtins

import torch


class generic:
    """The base of all scalar types. Calling a concrete one makes an array without dimensions."""

    name: str
    typecode: str
    torch_dtype: torch.dtype

    def __new__(cls, value: object = 0) -> object:
        from torch._numpy._ndarray import asarray

        if not hasattr(cls, "torch_dtype"):
            raise TypeError(f"cannot create '{cls.__name__}' instances")
        return asarray(value, dtype=cls)


class number(generic):
    pass


class integer(number):
    pass


class inexact(number):
    pass


class signedinteger(integer):
    pass


class unsignedinteger(integer):
    pass


class floating(inexact):
    pass


class complexfloating(inexact):
    pass


# Name, base, typecode, other names of the class, other names of the dtype.
_TABLE = [
    ("bool_", generic, "?", "", "bool b1"),
    ("int8", signedinteger, "b", "byte", "i1"),
    ("int16", signedinteger, "h", "short", "i2"),
    ("int32", signedinteger, "i", "intc", "i4"),
    ("int64", signedinteger, "l", "int_ intp longlong", "int i8 q p"),
    ("uint8", unsignedinteger, "B", "ubyte", "u1"),
    ("uint16", unsignedinteger, "H", "ushort", "u2"),
    ("uint32", unsignedinteger, "I", "uintc", "u4"),
    ("uint64", unsignedinteger, "L", "ulonglong", "uint u8 Q"),
    ("float16", floating, "e", "half", "f2"),
    ("float32", floating, "f", "single", "f4"),
    ("float64", floating, "d", "double float_", "float f8"),
    ("complex64", complexfloating, "F", "csingle singlecomplex", "c8"),
    ("complex128", complexfloating, "D", "cdouble cfloat complex_", "complex c16"),
]

_BY_NAME: dict[str, type[generic]] = {}
_BY_TORCH: dict[torch.dtype, type[generic]] = {}
_CLASSES: dict[str, type[generic]] = {}


def _declare() -> None:
    for name, base, code, classes, names in _TABLE:
        made = type(name, (base,), {"__module__": __name__, "name": name, "typecode": code})
        made.torch_dtype = getattr(torch, name.rstrip("_"))
        _BY_TORCH[made.torch_dtype] = made
        for known in [name, code, *classes.split(), *names.split()]:
            _BY_NAME[known] = made
        for known in [name, *classes.split()]:
            _CLASSES[known] = made


_declare()
globals().update(_CLASSES)
# bfloat16 has no NumPy scalar; arrays of it can be made from tensors only.

sctypes = {
    "int": [t for t in _BY_TORCH.values() if issubclass(t, signedinteger)],
    "uint": [t for t in _BY_TORCH.values() if issubclass(t, unsignedinteger)],
    "float": [t for t in _BY_TORCH.values() if issubclass(t, floating)],
    "complex": [t for t in _BY_TORCH.values() if issubclass(t, complexfloating)],
    "others": [_CLASSES["bool_"]],
}
typecodes = {
    "All": "efdFDBbhil?",
    "AllFloat": "efdFD",
    "AllInteger": "Bbhil",
    "Integer": "bhil",
    "UnsignedInteger": "B",
    "Float": "efd",
    "Complex": "FD",
}


class Defaults:
    """The dtypes of numbers that say nothing of their size."""

    float = torch.float64
    complex = torch.complex128
    int = torch.int64


defaults = Defaults()


def set_default_dtype(fp_dtype: object = "numpy", int_dtype: object = "numpy") -> Defaults:
    """The dtypes that Python's numbers become: 'numpy' (64 bits), 'pytorch' (its own), or any."""
    before = Defaults()
    before.float, before.complex, before.int = defaults.float, defaults.complex, defaults.int
    named = {"numpy": torch.float64, "pytorch": torch.float32}
    if isinstance(fp_dtype, str) and fp_dtype in named:
        fp_dtype = named[fp_dtype]
    defaults.float = dtype(fp_dtype).torch_dtype
    defaults.complex = torch.complex64 if defaults.float == torch.float32 else torch.complex128
    whole = int_dtype if int_dtype not in ("numpy", "pytorch") else torch.int64
    defaults.int = dtype(whole).torch_dtype
    return before


class DType:
    """A dtype: the description of a scalar type."""

    def __init__(self, kind: object) -> None:
        self._scalar_type = _scalar_type(kind)

    @property
    def name(self) -> str:
        return self._scalar_type.name

    @property
    def type(self) -> type[generic]:
        return self._scalar_type

    @property
    def kind(self) -> str:
        scalar = self._scalar_type
        if scalar is _CLASSES["bool_"]:
            return "b"
        bases = ((signedinteger, "i"), (unsignedinteger, "u"), (floating, "f"))
        return next((k for base, k in bases if issubclass(scalar, base)), "c")

    @property
    def typecode(self) -> str:
        return self._scalar_type.typecode

    # NumPy's name of the same.
    char = typecode

    @property
    def torch_dtype(self) -> torch.dtype:
        return self._scalar_type.torch_dtype

    @property
    def itemsize(self) -> int:
        return self.torch_dtype.itemsize

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self._scalar_type is other._scalar_type
        try:
            return self._scalar_type is _scalar_type(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f'dtype("{self.name}")'

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        return DType, (self.name,)


def _scalar_type(kind: object) -> type[generic]:
    if kind is None:
        return _BY_TORCH[defaults.float]
    if isinstance(kind, DType):
        return kind._scalar_type
    if isinstance(kind, torch.dtype):
        if kind in _BY_TORCH:
            return _BY_TORCH[kind]
    elif isinstance(kind, str):
        known = kind[1:] if kind[:1] in "<=>|" and len(kind) > 1 and kind[0] != ">" else kind
        if known in _BY_NAME:
            return _BY_NAME[known]
    elif isinstance(kind, builtins.type):
        python = {bool: torch.bool, int: defaults.int, float: defaults.float}
        python[complex] = defaults.complex
        if kind in python:
            return _BY_TORCH[python[kind]]
        if issubclass(kind, generic) and hasattr(kind, "torch_dtype"):
            return kind
        abstract = {generic: "float64", number: "float64", inexact: "float64", floating: "float64"}
        abstract |= {complexfloating: "complex128", unsignedinteger: "uint64"}
        abstract |= {integer: "int64", signedinteger: "int64"}
        if kind in abstract:
            return _BY_NAME[abstract[kind]]
    raise TypeError(f"data type {kind!r} not understood")


def dtype(kind: object) -> DType:
    """The dtype that a name, a typecode, a scalar type, a Python type or a torch dtype means."""
    return kind if isinstance(kind, DType) else DType(kind)


# ---- promotion and casting -----------------------------------------------------------------------
def category(kind: torch.dtype) -> int:
    """0 truth values, 1 integers, 2 floats, 3 complex numbers."""
    if kind.is_complex:
        return 3
    if kind.is_floating_point:
        return 2
    return 0 if kind == torch.bool else 1


def _signed(size: int) -> torch.dtype:
    return {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]


def _two(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The smallest dtype that holds all values of two, as NumPy sees it: a float holds integers of
    half its size."""
    if a == b:
        return a
    if torch.bfloat16 in (a, b):
        return torch.promote_types(a, b)
    if category(a) > category(b):
        a, b = b, a
    low, high = category(a), category(b)
    if low == 0:
        return b
    if low == high == 1:
        if a.is_signed == b.is_signed:
            return a if a.itemsize >= b.itemsize else b
        signed, plain = (a, b) if a.is_signed else (b, a)
        size = max(signed.itemsize, 2 * plain.itemsize)
        return _signed(size) if size <= 8 else torch.float64
    size = a.itemsize
    if low == 1:
        size = min(8, 2 * a.itemsize)
    elif low == 3:
        size = a.itemsize // 2
    size = max(size, b.itemsize // (2 if high == 3 else 1))
    if high == 3:
        return torch.complex64 if size <= 4 else torch.complex128
    return {2: torch.float16, 4: torch.float32, 8: torch.float64}[size]


def common(kinds: list[torch.dtype]) -> torch.dtype:
    """The dtype that holds the values of all."""
    if not kinds:
        raise ValueError("at least one array or dtype is required")
    found = kinds[0]
    for kind in kinds[1:]:
        found = _two(found, kind)
    return found


def with_number(kind: torch.dtype, value: complex) -> torch.dtype:
    """The dtype of an array combined with a number of Python, which has a kind but no size."""
    wanted = 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2
    wanted = 3 if isinstance(value, complex) else wanted
    if wanted <= category(kind):
        return kind
    if wanted == 1:
        return defaults.int
    if wanted == 2:
        return defaults.float
    if category(kind) == 2:
        return torch.complex64 if kind.itemsize <= 4 else torch.complex128
    return defaults.complex


def may_cast(source: torch.dtype, target: torch.dtype, casting: str) -> bool:
    """Whether a cast is allowed by one of NumPy's rules."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError("casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe'")
    if casting == "unsafe" or source == target:
        return True
    if casting in ("no", "equiv"):
        return False
    if _two(source, target) == target:
        return True
    if casting == "safe":
        return False
    same = category(source) == category(target)
    if same and category(source) == 1:
        return target.is_signed or not source.is_signed
    return same or (category(source) < category(target) and target.is_signed)


def issubdtype(first: object, second: object) -> bool:
    """Whether the first type lies below the second in the hierarchy of scalar types."""

    def as_class(kind: object) -> type:
        if isinstance(kind, builtins.type) and issubclass(kind, generic):
            return kind
        return _scalar_type(kind)

    return issubclass(as_class(first), as_class(second))


def names() -> dict[str, type[generic]]:
    """All scalar types by their names and other names."""
    abstract = [generic, number, integer, inexact, signedinteger, unsignedinteger, floating]
    return {**_CLASSES, **{c.__name__: c for c in [*abstract, complexfloating]}}
