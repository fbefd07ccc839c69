"""NumPy in a trace. An array is a tensor of the graph, and a call of NumPy is a call of the
function of the same name in torch._numpy (torch/_dynamo/numpy_calls.py): it is differentiated,
decomposed and compiled like all else. At the edge of the graph results are NumPy's arrays again.
NumPy is not imported here: a program that has an array has imported it."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, raise_observed, unimplemented
from torch._dynamo.numpy_calls import numpy_attribute, numpy_call, numpy_method, numpy_operator
from torch._dynamo.source import AttrSource, NumpyTensorSource
from torch._dynamo.variables.base import Args, KnownObjectVariable, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    ListVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.tensor import TensorVariable

if TYPE_CHECKING:
    from types import ModuleType

    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_KNOWN = frozenset({"shape", "ndim", "size", "itemsize", "nbytes", "dtype", "strides"})
_COMPUTED = frozenset({"T", "real", "imag", "flat"})
# What gives an array although it has no dimensions; all else gives a number of NumPy then.
_ARRAYS = frozenset(
    """
    T array asarray astype atleast_1d broadcast_to copy empty empty_like expand_dims full full_like
    imag ones ones_like real reshape squeeze swapaxes transpose view where zeros zeros_like
    """.split()
)
# Lists in NumPy 1, tuples in NumPy 2.
_TUPLES = frozenset({"meshgrid", "broadcast_arrays", "atleast_1d", "atleast_2d", "atleast_3d"})
_CHANGES = frozenset({"fill", "sort"})
_REFUSED = frozenset({"resize", "put", "partition", "setflags", "itemset"})


def loaded() -> ModuleType | None:
    """NumPy, where the program has imported it; its own import may be what runs now."""
    numpy = sys.modules.get("numpy")
    return None if getattr(getattr(numpy, "__spec__", None), "_initializing", False) else numpy


def is_numpy(value: object) -> bool:
    """Whether a callable is NumPy's."""
    numpy = loaded()
    if numpy is None:
        return False
    module = getattr(value, "__module__", None)
    if module is not None and (module == "numpy" or module.startswith("numpy.")):
        return True
    owner = getattr(value, "__self__", None)
    return isinstance(value, numpy.ufunc) or type(owner).__module__.startswith("numpy.random")


class NumpyNdarrayVariable(VariableTracker):
    """An array, or a NumPy number (`scalar`), that the graph has as a tensor. A tensor has no
    negative steps: `view_of` has array and key of which the tensor is a copy and the array is
    not."""

    __slots__ = ("scalar", "tensor", "view_of")

    def __init__(
        self,
        tensor: TensorVariable,
        source: Source | None = None,
        scalar: bool = False,
        view_of: tuple[NumpyNdarrayVariable, VariableTracker] | None = None,
    ) -> None:
        super().__init__(source)
        self.tensor = tensor
        self.scalar = scalar
        self.view_of = view_of

    def describe(self) -> str:
        return self.tensor.describe()

    def python_type(self) -> type:
        return self.dtype().type if self.scalar else loaded().ndarray

    def dtype(self) -> object:
        """NumPy's dtype of it."""
        return loaded().dtype(str(self.tensor.fake.dtype).removeprefix("torch."))

    def as_proxy(self) -> object:
        return self.tensor.as_proxy()

    def children(self) -> Iterator[VariableTracker]:
        yield self.tensor
        yield from self.view_of or ()

    def hash_key(self, tx: Frame) -> object:
        raise_error(tx, TypeError, "unhashable type: 'numpy.ndarray'")

    def truth(self, tx: Frame) -> bool | VariableTracker:
        return self.tensor

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        if self.tensor.fake.dim() == 0:
            raise_error(tx, TypeError, "len() of unsized object")
        return self.tensor.length(tx)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name in _KNOWN:
            return self._known(tx, name)
        if name in _COMPUTED:
            return _traced(tx, numpy_attribute, name, [self], {})
        if name == "__class__":
            return VariableTracker.build(tx, self.python_type())
        return tx.attribute_of_builtin(self, name)

    def _known(self, tx: Frame, name: str) -> VariableTracker:
        fake = self.tensor.fake
        if name == "shape":
            return TupleVariable(list(self.tensor.getattr(tx, "shape").items))
        if name == "size":
            return self.tensor.call_method(tx, "numel", [], {})
        if name == "dtype":
            return NumpyConstantVariable(self.dtype())
        if name == "strides":
            return TupleVariable(
                [ConstantVariable(int(step) * fake.itemsize) for step in fake.stride()]
            )
        return ConstantVariable(getattr(fake, name))

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        unimplemented("attribute of an array", name, "an array is changed")

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__len__":
            return self.length(tx)
        if name == "__getitem__":
            return self.getitem(tx, args[0])
        if name == "__setitem__":
            self.setitem(tx, *args)
            return ConstantVariable(None)
        if name == "__iter__":
            return tx.make_iterator(self)
        if name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__"):
            unimplemented(f"ndarray.{name}", repr(self), "the values are not known while tracing")
        if name in _REFUSED:
            unimplemented(f"ndarray.{name}", repr(self), "an array is changed in place")
        if name in _CHANGES:
            self.check_own(name)
        return _traced(tx, numpy_method, name, [self, *args], kwargs)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        if self.tensor.fake.dim() == 0:
            raise_error(tx, TypeError, "iteration over a 0-d array")
        count = int(self.tensor.fake.size(0))
        return (self.getitem(tx, ConstantVariable(i)) for i in range(count))

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        found = _traced(tx, numpy_operator, "getitem", [self, key], {})
        parts = [
            part.realize() for part in (key.items if isinstance(key, TupleVariable) else [key])
        ]
        if isinstance(found, NumpyNdarrayVariable):
            if any(isinstance(p, SliceVariable) and _is_negative(p.items[2]) for p in parts):
                found.view_of = (self, key)
            elif any(p.is_python_constant() and p.as_python_constant() is ... for p in parts):
                found.scalar = False
        return found

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        self.check_own(repr(key))
        _traced(tx, numpy_operator, "setitem", [self, key, value], {})

    def inplace(self, tx: Frame, op: Callable, other: VariableTracker) -> VariableTracker:
        """An operator such as +=."""
        if self.scalar:
            return _traced(tx, numpy_operator, op.__name__.removeprefix("i"), [self, other], {})
        self.check_own(op.__name__)
        return _traced(tx, numpy_operator, op.__name__, [self, other], {})

    def check_own(self, what: str) -> None:
        """The tensor is the array's memory."""
        if self.view_of is not None:
            unimplemented("change of an array", what, "a view with a negative step is changed")

    def reconstruct(self, cg: Codegen) -> str:
        if self.view_of is not None:
            array, key = self.view_of
            return f"{cg.expr(array)}[{cg.expr(key)}]"
        text = f"{cg.expr(self.tensor)}.numpy(force=True)"
        return f"{text}[()]" if self.scalar else text


def _is_negative(step: VariableTracker) -> bool:
    step = step.realize()
    value = step.as_python_constant() if step.is_python_constant() else None
    return isinstance(value, int) and value < 0


class NumpyConstantVariable(KnownObjectVariable):
    """A dtype, finfo or iinfo."""

    __slots__ = ()

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise_observed(tx, error)
        return VariableTracker.build(tx, found)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        return self.getattr(tx, name).call_function(tx, args, kwargs)


# ---- from the running program


def wrap(tx: Frame, value: object, source: Source | None) -> VariableTracker | None:
    """The tracker of a value of NumPy; None for others."""
    numpy = loaded()
    if numpy is None:
        return None
    if callable(value) and not isinstance(value, numpy.ndarray | numpy.generic | numpy.dtype):
        from torch._dynamo.variables.builtin import BuiltinVariable

        if source is not None:
            tx.out.guard(source, "ID_MATCH", value)
        return BuiltinVariable(value, source)
    if isinstance(value, numpy.dtype | numpy.finfo | numpy.iinfo):
        if source is not None and isinstance(value, numpy.dtype):
            tx.out.guard(source, "EQUALS_MATCH", value)
        elif source is not None:
            tx.out.guard(source, "TYPE_MATCH", type(value))
            tx.out.guard(AttrSource(source, "dtype"), "EQUALS_MATCH", value.dtype)
        return NumpyConstantVariable(value, source)
    if isinstance(value, numpy.generic) and source is None:
        return ConstantVariable(value)
    if isinstance(value, numpy.ndarray | numpy.generic) and source is not None:
        return _input(tx, value, source)
    return None


def _input(tx: Frame, value: object, source: Source) -> VariableTracker | None:
    from torch._dynamo.variables import builder

    if type(value).__module__ != "numpy":
        return None
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError):
        return None
    tx.out.guard(source, "TYPE_MATCH", type(value))
    for name in ("dtype", "shape", "strides"):
        tx.out.guard(AttrSource(source, name), "EQUALS_MATCH", getattr(value, name))
    fake = tx.out.fake_mode.from_tensor(tensor, static_shapes=True)
    inner = NumpyTensorSource(source)
    node = tx.out.add_input(inner, tensor, fake)
    made = TensorVariable(node, fake, inner, tensor)
    numpy = loaded()
    found = NumpyNdarrayVariable(made, source, isinstance(value, numpy.generic))
    builder.remember(tx, value, found)
    return found


def joined(tx: Frame, vt: VariableTracker) -> VariableTracker:
    """A list that holds arrays as the array of it; other values as they are."""

    def holds(part: VariableTracker) -> bool:
        part = part.realize()
        inside = part.items if isinstance(part, ListVariable | TupleVariable) else ()
        return isinstance(part, NumpyNdarrayVariable) or any(map(holds, inside))

    if isinstance(vt, NumpyNdarrayVariable) or not holds(vt):
        return vt
    return _traced(tx, numpy_call, "array", [vt], {})


def as_tensor(vt: VariableTracker) -> VariableTracker:
    """An array as the tensor it is; other values as they are."""
    return vt.tensor if isinstance(vt, NumpyNdarrayVariable) else vt


def beside(tx: Frame, array: NumpyNdarrayVariable, tensor: TensorVariable) -> TensorVariable:
    """An array as an operand next to a tensor of PyTorch. A number of NumPy is like Python's: next
    to integers it has the default dtype."""
    made = array.tensor
    if not array.scalar or not made.fake.is_floating_point():
        return made
    if tensor.fake.is_floating_point() or tensor.fake.is_complex():
        return made
    dtype = ConstantVariable(torch.get_default_dtype())
    return made.call_method(tx, "to", [dtype], {})


# ---- calls


def construct(tx: Frame, cls: type, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A call of a class of NumPy."""
    numpy = loaded()
    if issubclass(cls, numpy.dtype | numpy.finfo | numpy.iinfo):
        given = [a.as_python_constant() for a in args]
        try:
            return NumpyConstantVariable(
                cls(*given, **{k: v.as_python_constant() for k, v in kwargs.items()})
            )
        except Exception as error:
            raise_observed(tx, error)
    return call(tx, cls, args, kwargs)


@functools.cache
def _names() -> dict[int, str]:
    """The functions and types of NumPy that torch._numpy has, by identity."""
    import torch._numpy as tnp

    found = {}
    for part in ("", "linalg.", "fft.", "random."):
        own = getattr(tnp, part.rstrip("."), tnp) if part else tnp
        theirs = getattr(loaded(), part.rstrip(".")) if part else loaded()
        for name in dir(own):
            value = getattr(theirs, name, None)
            if name[0] != "_" and callable(value):
                found.setdefault(_identity(value), part + name)
    return found


def _identity(value: object) -> int | tuple[int, str]:
    """Equal for the same function; methods of NumPy's generator are new objects at each look."""
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, type(sys)):
        return id(value)
    return id(owner), value.__name__


def call(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A call of NumPy or of an operator on arrays, as a node."""
    if getattr(operator, getattr(fn, "__name__", ""), None) is fn:
        return _traced(tx, numpy_operator, fn.__name__, args, kwargs)
    name = _names().get(_identity(fn))
    random = name is not None and name.startswith("random.")
    if not random:
        plain = _plain_number(fn, args, kwargs)
        if plain is not None:
            return plain
    if name is None:
        unimplemented("NumPy", repr(fn), "torch._numpy has no such function")
    if random and torch._dynamo.config.use_numpy_random_stream:
        unimplemented("NumPy", name, "the stream of NumPy's random numbers is asked for")
    return _traced(tx, numpy_call, name, args, kwargs)


def _plain_number(fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker | None:
    """A number that a call of constants gives."""
    given = [vt.realize() for vt in (*args, *kwargs.values())]
    if not all(vt.is_python_constant() for vt in given):
        return None
    plain = [vt.as_python_constant() for vt in given]
    try:
        value = fn(*plain[: len(args)], **dict(zip(kwargs, plain[len(args) :], strict=True)))
    except Exception:
        return None
    if isinstance(value, int | float | bool | str | complex | loaded().generic):
        return ConstantVariable(value)
    return NumpyConstantVariable(value) if isinstance(value, loaded().dtype) else None


def _traced(tx: Frame, target: Callable, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
    """The node of a call, and its result as arrays."""
    held: list[NumpyNdarrayVariable] = []
    given = [ConstantVariable(name), *[_argument(tx, arg, held) for arg in args]]
    named = {key: _argument(tx, value, held) for key, value in kwargs.items()}
    changes = name == "setitem" or (target is numpy_method and name in _CHANGES)
    run = tx.out.call_effect if changes else tx.out.call
    keeps = name.rpartition(".")[2] in _ARRAYS
    found = _result(run(tx, target, given, named), held, keeps)
    if name in _TUPLES and isinstance(found, ListVariable) and loaded().__version__ >= "2":
        return TupleVariable(found.items)
    return found


def _result(
    found: VariableTracker, held: list[NumpyNdarrayVariable], keeps: bool
) -> VariableTracker:
    if isinstance(found, TensorVariable):
        same = next((array for array in held if array.tensor is found), None)
        return same or NumpyNdarrayVariable(found, None, not keeps and found.fake.dim() == 0)
    if isinstance(found, TupleVariable):
        return TupleVariable([_result(item.realize(), held, keeps) for item in found.items])
    if isinstance(found, ListVariable):
        return ListVariable([_result(item.realize(), held, keeps) for item in found.items])
    return found


def _argument(tx: Frame, vt: VariableTracker, held: list[NumpyNdarrayVariable]) -> VariableTracker:
    """An argument of a call as graphs have it: tensors for arrays and names for dtypes."""
    vt = vt.realize()
    if isinstance(vt, NumpyNdarrayVariable):
        held.append(vt)
        return vt.tensor
    if isinstance(vt, SliceVariable):
        return SliceVariable([_argument(tx, item, held) for item in vt.items])
    if isinstance(vt, BaseListVariable) and vt.cls in (list, tuple, torch.Size):
        items = [_argument(tx, item, held) for item in vt.items]
        return ListVariable(items) if vt.cls is list else TupleVariable(items)
    if isinstance(vt, ConstDictVariable):
        pairs = [(key, _argument(tx, value, held)) for key, value in vt.items.values()]
        return ConstDictVariable.of(tx, pairs)
    if not vt.is_python_constant():
        return vt
    value, numpy = vt.as_python_constant(), loaded()
    if isinstance(value, numpy.generic):
        kind = ConstantVariable(value.dtype.name)
        return tx.out.call(tx, numpy_call, [kind, ConstantVariable(value.item())], {})
    if isinstance(value, type) and (issubclass(value, numpy.generic) or value in _PYTHON_TYPES):
        value = numpy.dtype(value)
    return ConstantVariable(value.name) if isinstance(value, numpy.dtype) else vt


_PYTHON_TYPES = (bool, int, float, complex)
