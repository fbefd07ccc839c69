"""NumPy in a trace. An array is a tensor of the graph; a call of NumPy on arrays is one operator
(torch._higher_order_ops.numpy_call). What depends on shape and dtype alone is known while tracing.
NumPy is not imported here: a program that has an array has imported it."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, raise_observed, unimplemented
from torch._dynamo.source import AttrSource, NumpyTensorSource
from torch._dynamo.variables.base import Args, KnownObjectVariable, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable

if TYPE_CHECKING:
    from types import ModuleType

    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source
    from torch._higher_order_ops.numpy_call import NumpyCall

_KNOWN = frozenset({"shape", "ndim", "size", "itemsize", "nbytes", "dtype", "strides"})
_COMPUTED = frozenset({"T", "real", "imag"})


def loaded() -> ModuleType | None:
    """NumPy, where the program has imported it."""
    return sys.modules.get("numpy")


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
    """An array, or a NumPy number (`scalar`), that the graph has as a tensor."""

    __slots__ = ("scalar", "tensor")

    def __init__(
        self, tensor: TensorVariable, source: Source | None = None, scalar: bool = False
    ) -> None:
        super().__init__(source)
        self.tensor = tensor
        self.scalar = scalar

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
            return call(tx, operator.attrgetter(name), [self], {})
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
        if name in ("fill", "sort", "resize", "put", "partition", "setflags", "itemset"):
            unimplemented(f"ndarray.{name}", repr(self), "an array is changed in place")
        return call(tx, Method(name), [self, *args], kwargs)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        if self.tensor.fake.dim() == 0:
            raise_error(tx, TypeError, "iteration over a 0-d array")
        count = int(self.tensor.fake.size(0))
        return (self.getitem(tx, ConstantVariable(i)) for i in range(count))

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        return call(tx, operator.getitem, [self, key], {})

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        self.check_own(key)
        self.tensor.setitem(tx, key, as_tensor(value))

    def overwrite(self, tx: Frame, value: VariableTracker) -> None:
        """An operator such as += has computed new values."""
        self.tensor.call_method(tx, "copy_", [as_tensor(value)], {})

    def check_own(self, what: VariableTracker) -> None:
        """What a call of NumPy gave may be a view, and the graph does not know of what."""
        node = self.tensor.node
        made = node.op != "placeholder" and "numpy_call" in str(node.args)
        if made or any("numpy_call" in str(user.target) for user in node.users):
            unimplemented("change of an array", repr(what), "an array that has views is changed")

    def reconstruct(self, cg: Codegen) -> str:
        text = f"{cg.expr(self.tensor)}.numpy()"
        return f"{text}[()]" if self.scalar else text


class Method:
    """A method of an array by its name, as a function."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, array: object, *args: object, **kwargs: object) -> object:
        return getattr(array, self.__name__)(*args, **kwargs)


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


def as_tensor(vt: VariableTracker) -> VariableTracker:
    """An array as the tensor it is; other values as they are."""
    return vt.tensor if isinstance(vt, NumpyNdarrayVariable) else vt


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


def call(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A call of NumPy, as a node."""
    from torch._higher_order_ops.numpy_call import NumpyCall, ValuesDecide, numpy_call

    tensors: list[TensorVariable] = []
    given = tuple(_template(tx, arg, tensors) for arg in args)
    named = {k: _template(tx, v, tensors) for k, v in kwargs.items()}
    made = NumpyCall(fn, given, named)
    fakes = [vt.fake for vt in tensors]
    if any(isinstance(size, torch.SymInt) for fake in fakes for size in fake.shape):
        unimplemented("NumPy", repr(made), "an array whose shape is symbolic")
    if not tensors and not str(getattr(fn, "__module__", "")).startswith("numpy.random"):
        plain = _plain_number(made)
        if plain is not None:
            return plain
    try:
        leaves = made.examples(fakes)
    except ValuesDecide as error:
        unimplemented("NumPy", repr(made), str(error))
    except Exception as error:
        raise_observed(tx, error)
    return _result(tx, numpy_call, made, tensors, leaves)


def _plain_number(made: NumpyCall) -> VariableTracker | None:
    """A number that a call of constants gives."""
    try:
        value = made.apply([])
    except Exception:
        return None
    if isinstance(value, int | float | bool | str | complex | loaded().generic):
        return ConstantVariable(value)
    return NumpyConstantVariable(value) if isinstance(value, loaded().dtype) else None


def _result(
    tx: Frame, op: object, made: NumpyCall, tensors: list[TensorVariable], leaves: list
) -> VariableTracker:
    from torch._dynamo.variables.pytree import Leaf, unmarked
    from torch.utils import _pytree as pytree

    held = tx.out.attribute_node("numpy_call", made)
    nodes = tx.out.lift_all(tuple(vt.node for vt in tensors))
    with tx.out.fake_mode:
        values = tuple(op(made, *[vt.fake for vt in tensors]))
    node = tx.out.graph.create_node("call_function", op, (held, *nodes), {})
    node.meta["example_value"] = values
    parts = tx.out.wrap_node(tx, node, values).items
    marks = [
        Leaf(part if kind == "tensor" else NumpyNdarrayVariable(part, None, kind == "scalar"))
        for kind, part in zip(made.kinds, parts, strict=True)
    ]
    return unmarked(tx, pytree.tree_unflatten(marks, made.structure))


def _template(tx: Frame, vt: VariableTracker, tensors: list[TensorVariable]) -> object:
    """An argument of a call, with a hole for each tensor."""
    from torch._higher_order_ops.numpy_call import ARRAY, SCALAR, TENSOR, Hole

    vt = vt.realize()
    if isinstance(vt, NumpyNdarrayVariable | TensorVariable):
        array = isinstance(vt, NumpyNdarrayVariable)
        tensors.append(vt.tensor if array else vt)
        kind = (SCALAR if vt.scalar else ARRAY) if array else TENSOR
        return Hole(len(tensors) - 1, kind)
    if isinstance(vt, SymNodeVariable):
        return vt.evaluate()
    if isinstance(vt, SliceVariable):
        return slice(*[_template(tx, item, []) for item in vt.items])
    if isinstance(vt, BaseListVariable) and vt.cls in (list, tuple, torch.Size):
        items = [_template(tx, item, tensors) for item in vt.items]
        return tuple(items) if vt.cls is not list else items
    if isinstance(vt, ConstDictVariable):
        return {k.as_python_constant(): _template(tx, v, tensors) for k, v in vt.items.values()}
    if not vt.is_python_constant():
        unimplemented("NumPy", repr(vt), "an argument that is neither an array nor a constant")
    return vt.as_python_constant()
