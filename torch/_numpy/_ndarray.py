"""`ndarray`: a torch tensor that behaves as a NumPy array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

import torch
from torch._numpy import _dtypes, _ufuncs
from torch._numpy._util import cast, ndarrays_to_tensors, to_tensor, typecast


class Flags:
    """How an array lies in memory, by attribute or by NumPy's names and their letters."""

    _LETTERS = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "O": "OWNDATA", "W": "WRITEABLE"}

    def __init__(self, values: dict[str, bool]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> bool:
        if name.islower() and name.upper() in self._values:
            return self._values[name.upper()]
        raise AttributeError(f"No flag attribute '{name}'")

    def __getitem__(self, key: str) -> bool:
        key = self._LETTERS.get(key, key)
        if key in self._values:
            return self._values[key]
        raise KeyError(f"No flag key '{key}'")

    def __setattr__(self, name: str, value: object) -> None:
        if name.islower() and not name.startswith("_"):
            self[name.upper()] = value
        else:
            super().__setattr__(name, value)

    def __setitem__(self, key: str, value: object) -> None:
        raise NotImplementedError("Modifying flags is not implemented")


def _index(value: object) -> object:
    """An index as tensors take it: integers in 64 bits (bytes would be a mask), lists as arrays."""
    if isinstance(value, tuple):
        return tuple(_index(v) for v in value)
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return slice(*(None if e is None else operator.index(e) for e in ends))
    if isinstance(value, list):
        value = to_tensor(value) if value else torch.empty(0, dtype=torch.int64)
    value = ndarrays_to_tensors(value)
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point or value.dtype.is_complex:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return value if value.dtype == torch.bool else value.to(torch.int64)
    if isinstance(value, float):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are "
            "valid indices"
        )
    return value


class ndarray:
    """An array. `tensor` is the tensor whose memory it shares."""

    # Operators with NumPy's own arrays and scalars come here.
    __array_priority__ = 1000

    def __init__(self, tensor: torch.Tensor | None = None) -> None:
        if tensor is None:
            tensor = torch.empty(())
        elif not isinstance(tensor, torch.Tensor):
            raise ValueError(
                "ndarray constructor is not recommended; prefer either array(...) or zeros/empty"
                "(...)"
            )
        self.tensor = tensor

    # ---- attributes
    shape = property(
        lambda self: tuple(self.tensor.shape), lambda self, value: self._set_shape(value)
    )
    size = property(lambda self: self.tensor.numel())
    ndim = property(lambda self: self.tensor.dim())
    dtype = property(lambda self: _dtypes.dtype(self.tensor.dtype))
    itemsize = property(lambda self: self.tensor.element_size())
    nbytes = property(lambda self: self.tensor.numel() * self.tensor.element_size())
    strides = property(
        lambda self: tuple(s * self.tensor.element_size() for s in self.tensor.stride())
    )
    T = property(lambda self: self.transpose())

    def _set_shape(self, shape: object) -> None:
        self.tensor = self.tensor.reshape(shape)

    @property
    def flags(self) -> Flags:
        tensor = self.tensor
        return Flags(
            {
                "C_CONTIGUOUS": tensor.is_contiguous(),
                "F_CONTIGUOUS": self.T.tensor.is_contiguous(),
                "OWNDATA": tensor._base is None,
                "WRITEABLE": True,
            }
        )

    @property
    def data(self) -> int:
        return self.tensor.data_ptr()

    @property
    def flat(self) -> ndarray:
        """All elements in a row: a view where memory allows, else a copy."""
        return ndarray(self.tensor.reshape(-1))

    @property
    def real(self) -> ndarray:
        return ndarray(self.tensor.real if self.tensor.is_complex() else self.tensor)

    @real.setter
    def real(self, value: object) -> None:
        part = self.tensor.real if self.tensor.is_complex() else self.tensor
        part.copy_(cast(to_tensor(value), part.dtype).broadcast_to(part.shape))

    @property
    def imag(self) -> ndarray:
        if self.tensor.is_complex():
            return ndarray(self.tensor.imag)
        return ndarray(torch.zeros_like(self.tensor))

    @imag.setter
    def imag(self, value: object) -> None:
        if not self.tensor.is_complex():
            raise TypeError("cannot set imag of an array of real numbers")
        self.tensor.imag.copy_(to_tensor(value).broadcast_to(self.tensor.shape))

    # ---- conversion
    def astype(
        self,
        dtype: object,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> ndarray:
        if order != "K":
            raise NotImplementedError(f"astype(..., order={order} is not implemented.")
        if subok is not True:
            raise NotImplementedError(f"astype(..., subok={subok} is not implemented.")
        wanted = _dtypes.dtype(dtype).torch_dtype
        result = typecast(self.tensor, wanted, casting)
        return ndarray(result.clone() if copy and result is self.tensor else result)

    def view(self, *args: object, **kwargs: object) -> ndarray:
        """The same memory read as another dtype."""
        if len(args) + len(kwargs) > 1 or set(kwargs) - {"dtype"}:
            raise NotImplementedError("view takes one dtype")
        if not args and not kwargs:
            return ndarray(self.tensor.view(self.tensor.dtype))
        kind = args[0] if args else kwargs["dtype"]
        if isinstance(kind, type) and issubclass(kind, ndarray):
            return ndarray(self.tensor.view(self.tensor.dtype))
        return ndarray(self.tensor.view(_dtypes.dtype(kind).torch_dtype))

    def tolist(self) -> object:
        return self.tensor.tolist()

    def item(self, *args: object) -> object:
        if not args:
            return self.tensor.item()
        place = args[0] if len(args) == 1 else args
        if isinstance(place, tuple):
            return self.tensor[place].item()
        return self.tensor.reshape(-1)[operator.index(place)].item()  # type: ignore[arg-type]

    def copy(self, order: str = "C") -> ndarray:
        if order not in ("C", "K"):
            raise NotImplementedError(f"copy(order={order!r})")
        return ndarray(self.tensor.clone())

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> ndarray:
        return self.copy()

    def fill(self, value: object) -> None:
        number = to_tensor(value)
        if number.dim() > 0:
            raise ValueError("fill takes a number")
        self.tensor.fill_(cast(number, self.tensor.dtype))

    def flatten(self, order: str = "C") -> ndarray:
        if order != "C":
            raise NotImplementedError(f"flatten(order={order!r})")
        return ndarray(torch.flatten(self.tensor).clone())

    def resize(self, *new_shape: object, refcheck: bool = False) -> None:
        """Changes the array itself; new elements are zeros."""
        if refcheck:
            raise NotImplementedError("resize(..., refcheck=True) is not implemented.")
        if new_shape in [(), (None,)]:
            return
        shape = new_shape[0] if len(new_shape) == 1 else new_shape
        if isinstance(shape, int):
            shape = (shape,)
        if any(s < 0 for s in shape):  # type: ignore[attr-defined]
            raise ValueError("all elements of `new_shape` must be non-negative")
        before = self.tensor.numel()
        # Where the memory must grow it moves, so that views keep the old one.
        total = 1
        for s in shape:  # type: ignore[attr-defined]
            total *= s
        flat = self.tensor.reshape(-1)[:total]
        if total > before:
            flat = torch.cat([flat, flat.new_zeros(total - before)])
        self.tensor = flat.reshape(shape)

    def sort(self, axis: int = -1, kind: object = None, order: object = None) -> None:
        from torch._numpy import _funcs

        if order is not None:
            raise NotImplementedError("'order' parameter is not supported.")
        self.tensor.copy_(_funcs.sort(self, axis, kind).tensor)

    def reshape(self, *shape: object, order: str = "C") -> ndarray:
        if order != "C":
            raise NotImplementedError("'order' parameter is not supported.")
        wanted = shape[0] if len(shape) == 1 else shape
        return ndarray(self.tensor.reshape(ndarrays_to_tensors(wanted)))

    def transpose(self, *axes: object) -> ndarray:
        if axes in [(), (None,), ((),)]:
            return ndarray(self.tensor.permute(tuple(reversed(range(self.tensor.dim())))))
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return ndarray(self.tensor.permute(order))

    def is_integer(self) -> bool:
        value = self.tensor.item()
        return float(value).is_integer() if not isinstance(value, complex) else False

    # ---- Python's protocols
    def __str__(self) -> str:
        text = str(self.tensor)
        return text.replace("tensor", "torch.ndarray").replace("dtype=torch.", "dtype=")

    __repr__ = __str__
    __hash__ = None  # type: ignore[assignment]

    def __index__(self) -> int:
        try:
            return operator.index(self.tensor.item())  # type: ignore[arg-type]
        except Exception as error:
            raise TypeError(
                "only integer scalar arrays can be converted to a scalar index"
            ) from error

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __complex__(self) -> complex:
        if self.tensor.numel() != 1:
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        return complex(self.tensor.item())

    def __len__(self) -> int:
        if self.tensor.dim() == 0:
            raise TypeError("len() of unsized object")
        return self.tensor.shape[0]

    def __iter__(self) -> Iterator[ndarray]:
        if self.tensor.dim() == 0:
            raise TypeError("iteration over a 0-d array")
        return map(ndarray, iter(self.tensor))

    def __contains__(self, value: object) -> bool:
        return bool((self == value).tensor.any())

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        found = self.tensor.detach().cpu().numpy()
        return found if dtype is None else found.astype(dtype)

    def __getitem__(self, index: object) -> ndarray:
        return ndarray(self.tensor[_index(index)])

    def __setitem__(self, index: object, value: object) -> None:
        if not isinstance(value, (bool, int, float, complex)) or isinstance(value, complex):
            value = cast(to_tensor(value), self.tensor.dtype)
        self.tensor[_index(index)] = value

    def __dlpack__(self, *, stream: object = None) -> object:
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> object:
        return self.tensor.__dlpack_device__()

    def __reduce__(self) -> tuple[object, ...]:
        return ndarray, (self.tensor,)

    # ---- comparisons never raise for things that are no arrays
    def __eq__(self, other: object) -> object:
        return self._compared("equal", other)

    def __ne__(self, other: object) -> object:
        return self._compared("not_equal", other)

    def _compared(self, name: str, other: object) -> object:
        try:
            return getattr(_ufuncs, name)(self, other)
        except (RuntimeError, TypeError, NotImplementedError, ValueError):
            # A shape or a value that nothing here can equal.
            return ndarray(torch.full((), name == "not_equal"))


# Operators: the method's name and the function behind it.
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "pow": "power",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "matmul": "matmul",
}


def _declare_operators() -> None:
    def forward(function: Callable) -> Callable:
        return lambda self, other: function(self, other)

    def alone(function: Callable) -> Callable:
        return lambda self: function(self)

    def reverse(function: Callable) -> Callable:
        return lambda self, other: function(other, self)

    def in_place(function: Callable) -> Callable:
        return lambda self, other: function(self, other, out=self)

    for short, name in _OPERATORS.items():
        function = getattr(_ufuncs, name)
        setattr(ndarray, f"__{short}__", forward(function))
        setattr(ndarray, f"__r{short}__", reverse(function))
        setattr(ndarray, f"__i{short}__", in_place(function))
    ndarray.__divmod__ = forward(_ufuncs.divmod)  # type: ignore[attr-defined]
    ndarray.__rdivmod__ = reverse(_ufuncs.divmod)  # type: ignore[attr-defined]
    for short, name in (("gt", "greater"), ("lt", "less"), ("ge", "greater_equal")):
        setattr(ndarray, f"__{short}__", forward(getattr(_ufuncs, name)))
    ndarray.__le__ = forward(_ufuncs.less_equal)  # type: ignore[attr-defined]
    for short, name in (("abs", "absolute"), ("invert", "invert"), ("neg", "negative")):
        setattr(ndarray, f"__{short}__", alone(getattr(_ufuncs, name)))
    ndarray.__pos__ = lambda self: _ufuncs.positive(self)  # type: ignore[attr-defined]


_declare_operators()

# Methods that are functions with the array as the first argument.
METHODS = """
    all any argmax argmin argsort choose clip conj conjugate cumprod cumsum diagonal dot
    max mean min nonzero prod ptp put ravel repeat round searchsorted squeeze std sum
    swapaxes take trace var
""".split()


def declare_methods(functions: dict[str, Callable]) -> None:
    """Gives arrays the methods that are functions of `functions`."""
    for name in METHODS:
        function = functions[name]
        setattr(ndarray, name, lambda self, *args, _f=function, **kwargs: _f(self, *args, **kwargs))


def array(
    obj: object,
    dtype: object = None,
    *,
    copy: bool = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: object = None,
) -> ndarray:
    """An array of numbers, sequences of them, tensors or arrays; a copy unless `copy` is false."""
    if subok is not False or like is not None:
        raise NotImplementedError("'subok' and 'like' parameters are not supported.")
    if order not in ("K", "C", "A"):
        raise NotImplementedError("'order' parameter is not supported.")
    wanted = None if dtype is None else _dtypes.dtype(dtype).torch_dtype
    tensor = to_tensor(obj, wanted)
    given = obj.tensor if isinstance(obj, ndarray) else obj
    if copy and (tensor is given or not isinstance(obj, (ndarray, list, tuple))):
        tensor = tensor.clone()
    if ndmin > tensor.dim():
        tensor = tensor.reshape((1,) * (ndmin - tensor.dim()) + tuple(tensor.shape))
    return ndarray(tensor)


def asarray(a: object, dtype: object = None, order: str = "K", *, like: object = None) -> ndarray:
    """The argument as an array, without a copy where it is one."""
    return array(a, dtype=dtype, order=order, like=like, copy=False)


def ascontiguousarray(a: object, dtype: object = None, *, like: object = None) -> ndarray:
    found = asarray(a, dtype=dtype, like=like)
    return found if found.tensor.is_contiguous() else ndarray(found.tensor.contiguous())


def from_dlpack(x: object, /) -> ndarray:
    return ndarray(torch.from_dlpack(x))


def can_cast(from_: object, to: object, casting: str = "safe") -> bool:
    """Whether a cast is allowed by one of NumPy's rules."""
    kind = from_.tensor.dtype if isinstance(from_, ndarray) else _dtypes.dtype(from_).torch_dtype
    return _dtypes.may_cast(kind, _dtypes.dtype(to).torch_dtype, casting)


def result_type(*arrays_and_dtypes: object) -> _dtypes.DType:
    """The dtype of arrays, numbers and dtypes together."""
    kinds, numbers = [], []
    for value in arrays_and_dtypes:
        if isinstance(value, (bool, int, float, complex)):
            numbers.append(value)
        elif isinstance(value, (ndarray, torch.Tensor)):
            kinds.append(to_tensor(value).dtype)
        else:
            try:
                kinds.append(_dtypes.dtype(value).torch_dtype)
            except TypeError:
                kinds.append(to_tensor(value).dtype)
    if not kinds:
        kinds = [to_tensor(n).dtype for n in numbers]
        numbers = []
    found = _dtypes.common(kinds)
    for value in numbers:
        found = _dtypes.with_number(found, value)
    return _dtypes.dtype(found)
