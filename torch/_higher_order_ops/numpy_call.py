"""numpy_call(call, *tensors): a call of NumPy as one operator of a graph. NumPy itself computes, on
arrays that share the tensors' memory, so that results are those of the program as it is. Shapes
and dtypes of results are found by calling on arrays of the same kind with other values: a call
whose shapes depend on values is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, track_tensor_tree
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

if TYPE_CHECKING:
    pass

__all__ = ["NumpyCall", "ValuesDecide", "numpy_call"]

ARRAY, SCALAR, TENSOR = "array", "scalar", "tensor"


class ValuesDecide(RuntimeError):
    """The kind of a result depends on the values of the arguments."""


class Hole:
    """The place of a tensor among the arguments of a call, and what the function gets there."""

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind


class NumpyCall:
    """fn(*args, **kwargs) with holes for tensors. `kinds` and `structure` describe the result."""

    def __init__(self, fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.kinds: list[str] = []
        self.structure: Any = None

    def __repr__(self) -> str:
        return getattr(self.fn, "__name__", str(self.fn))

    def apply(self, values: Sequence[Any]) -> Any:
        """The call with these arrays and tensors."""
        fill = lambda x: values[x.index] if isinstance(x, Hole) else x
        args, kwargs = pytree.tree_map(fill, (self.args, self.kwargs))
        return self.fn(*args, **kwargs)

    def holes(self) -> list[Hole]:
        """The places of tensors, in order."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return sorted([x for x in leaves if isinstance(x, Hole)], key=lambda hole: hole.index)

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        arrays = [_value(hole.kind, tensors[hole.index]) for hole in self.holes()]
        leaves = pytree.tree_leaves(self.apply(arrays))
        return tuple(_tensor(leaf, tensors) for leaf in leaves)

    def examples(self, fakes: Sequence[Tensor]) -> list[Any]:
        """Results of the same kind as those of the call. Sets `kinds` and `structure`."""
        import numpy

        found: list[tuple[list, Any]] = []
        failure: Exception | None = None
        state = numpy.random.get_state()
        for number in (0, 1):
            try:
                with numpy.errstate(all="ignore"), _disable_current_modes():
                    arrays = [_example(h.kind, fakes[h.index], number) for h in self.holes()]
                    found.append(pytree.tree_flatten(self.apply(arrays)))
            except Exception as error:
                failure = error
            finally:
                numpy.random.set_state(state)
        if not found:
            raise failure
        likeness = [[_likeness(leaf) for leaf in leaves] for leaves, _ in found]
        if any(like != likeness[0] for like in likeness[1:]):
            raise ValuesDecide(f"the shape of the result of {self!r} depends on values")
        leaves, self.structure = found[0]
        self.kinds = [_kind(leaf) for leaf in leaves]
        return leaves


def _kind(leaf: Any) -> str:
    import numpy

    if isinstance(leaf, Tensor):
        return TENSOR
    if isinstance(leaf, numpy.ndarray):
        return ARRAY
    if isinstance(leaf, numpy.generic):
        return SCALAR
    raise ValuesDecide(f"a call of NumPy that returns {type(leaf).__name__}")


def _dtype(leaf: Any) -> torch.dtype:
    return leaf.dtype if isinstance(leaf, Tensor) else getattr(torch, leaf.dtype.name)


def _likeness(leaf: Any) -> tuple:
    return (_kind(leaf), tuple(leaf.shape), leaf.dtype)


def _value(kind: str, tensor: Tensor) -> Any:
    """What the function gets for a tensor."""
    if kind == TENSOR:
        return tensor
    array = tensor.detach().numpy()
    return array[()] if kind == SCALAR else array


def _tensor(leaf: Any, given: Sequence[Tensor]) -> Tensor:
    """A result as a tensor. A view of an argument stays one, so that changes of it show."""
    import numpy

    if isinstance(leaf, Tensor):
        return leaf.clone() if any(leaf is t for t in given) else leaf
    array = numpy.asarray(leaf)
    backwards = any(step < 0 for step in array.strides)
    return torch.from_numpy(array.copy() if backwards or not array.flags.writeable else array)


def _example(kind: str, fake: Tensor, number: int) -> Any:
    import numpy

    dtype = numpy.dtype(str(fake.dtype).removeprefix("torch."))
    shape = tuple(int(size) for size in fake.shape)
    count = math.prod(shape)
    ramp = numpy.arange(count) % 5 + 1 if number else numpy.ones(count)
    array = ramp.astype(dtype).reshape(shape)
    if kind == TENSOR:
        return torch.from_numpy(array)
    return array[()] if kind == SCALAR else array


class NumpyCallOp(HigherOrderOperator):
    """numpy_call(call, *tensors) -> tuple of tensors"""

    def __init__(self) -> None:
        super().__init__("numpy_call")

    def __call__(self, call: NumpyCall, *tensors: Tensor) -> tuple[Tensor, ...]:
        return super().__call__(call, *tensors)


numpy_call = NumpyCallOp()


@numpy_call.py_impl(utils.COMPOSITE)
def _run(call: NumpyCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    return call(*tensors)


numpy_call.py_impl(DispatchKey.Autograd)(utils.autograd_not_implemented(numpy_call))


@numpy_call.py_impl(FakeTensorMode)
def _without_data(mode: FakeTensorMode, call: NumpyCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    leaves = call.examples(tensors)
    with mode:
        return tuple(torch.empty(tuple(leaf.shape), dtype=_dtype(leaf)) for leaf in leaves)


@numpy_call.py_impl(ProxyTorchDispatchMode)
def _trace(mode: ProxyTorchDispatchMode, call: NumpyCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    result = numpy_call(call, *tensors)
    name = utils.unique_graph_name(mode, "numpy_call")
    setattr(mode.tracer.root, name, call)
    held = mode.tracer.create_proxy("get_attr", name, (), {})
    given = [mode.tracer.unwrap_proxy(tensor) for tensor in tensors]
    made = mode.tracer.create_proxy("call_function", numpy_call, (held, *given), {})
    return track_tensor_tree(result, made, constant=None, tracer=mode.tracer)


@numpy_call.py_functionalize_impl
def _functional(ctx: Any, call: NumpyCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    inner = ctx.unwrap_tensors(tensors)
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(numpy_call(call, *inner))
