"""Tensors and symbolic numbers. Operations on them become nodes of the graph; what depends on
shape, dtype and device alone is known while tracing."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, unimplemented
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.keys import IdentityKey
from torch._dynamo.variables.lists import (
    ListVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.places import fixed_place
from torch.utils._python_dispatch import is_traceable_wrapper_subclass_type

if TYPE_CHECKING:
    import torch.fx
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

# Attributes that the fake tensor knows.
_KNOWN = frozenset(
    """dtype device layout ndim requires_grad is_sparse is_quantized is_meta is_cuda is_cpu is_mps
    is_xpu is_nested is_mkldnn itemsize nbytes names retains_grad is_leaf is_xla is_mtia
    is_sparse_csr output_nr _version is_vulkan is_ipu""".split()
)
# Attributes that are tensors made from the tensor: nodes.
_COMPUTED = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
_REFUSED_METHODS = {
    "data_ptr": "the address of memory is not known while tracing",
    "tolist": "the values are not known while tracing",
    "backward": "the backward pass is not traced",
    "untyped_storage": "storages are not traced",
    "storage": "storages are not traced",
    "share_memory_": "memory is not traced",
    "__array__": "NumPy arrays are not traced",
    "__reduce_ex__": "pickling is not traced",
    "__dlpack__": "memory is not traced",
    "retain_grad": "gradients of intermediate values",
    "type_as_": "unknown",
}


def plain_in_graph(cls: type) -> bool:
    """Whether the graph computes tensors of a class as plain ones: the class takes over calls, and
    the trace has followed that."""
    return (
        cls is not torch.Tensor
        and not issubclass(cls, torch.nn.Parameter)
        and cls.__torch_function__ is not torch._C._disabled_torch_function_impl
        and not is_traceable_wrapper_subclass_type(cls)
    )


class TensorVariable(VariableTracker):
    """A tensor: the node that computes it and a fake tensor with its properties. `real` is the
    running program's tensor, for inputs."""

    __slots__ = ("cls", "fake", "named", "node", "real")

    def __init__(
        self,
        node: torch.fx.Node,
        fake: torch.Tensor,
        source: Source | None = None,
        real: torch.Tensor | None = None,
    ) -> None:
        self.source = source
        self.changed = False
        self.node = node
        self.fake = fake
        self.real = real
        self.cls = torch.Tensor if real is None else type(real)
        self.named = not node.op.startswith("call")

    def describe(self) -> str:
        return self.node.name

    def python_type(self) -> type:
        return self.cls

    def as_proxy(self) -> object:
        return self.node

    def hash_key(self, tx: Frame) -> object:
        return IdentityKey(self)

    def truth(self, tx: Frame) -> bool | VariableTracker:
        return self

    def is_same(self, other: VariableTracker) -> bool | None:
        return self is other

    # ---- attributes

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        stored = tx.out.side_effects.attribute(self, name)
        if stored is not None:
            return stored
        if name in _KNOWN:
            return self._known(tx, name)
        if name == "shape":
            return self.call_method(tx, "size", [], {})
        if name in _COMPUTED:
            return tx.out.call(tx, getattr, [self, ConstantVariable(name)], {})
        if name == "grad":
            return self._grad(tx)
        if name == "grad_fn":
            return self._grad_fn(tx)
        if name == "__class__":
            return VariableTracker.build(tx, self.cls)
        if self.real is not None:
            own = self.real.__dict__
            tx.out.check_own_dict(own)
            if name in own:
                return VariableTracker.build(tx, own[name], AttrSource(self.source, name))
        if self.real is None and is_traceable_wrapper_subclass_type(self.cls):
            found = self._of_wrapper(tx, name)
            if found is not None:
                return found
        return self._from_class(tx, name)

    def _of_wrapper(self, tx: Frame, name: str) -> VariableTracker | None:
        """An attribute of a wrapper that the graph computes: its parts are values of the graph, the
        rest is what the class derived from constants."""
        own = self.fake.__dict__
        if name not in own:
            return None
        if isinstance(own[name], torch.Tensor):
            return tx.out.call(tx, getattr, [self, ConstantVariable(name)], {})
        return VariableTracker.build(tx, own[name])

    def _known(self, tx: Frame, name: str) -> VariableTracker:
        if name == "is_leaf" and self.real is None and self.fake.requires_grad:
            return ConstantVariable(self.fake.is_leaf)
        if name == "retains_grad" and self.real is not None:
            return ConstantVariable(self.real.retains_grad)
        if name == "_version":
            return (
                tx.out.call(tx, torch._C._autograd._tensor_version, [self], {})
                if hasattr(torch._C, "_autograd") and hasattr(torch._C._autograd, "_tensor_version")
                else super().getattr(tx, name)
            )
        return VariableTracker.build(tx, getattr(self.fake, name))

    def _grad(self, tx: Frame) -> VariableTracker:
        if self.real is not None and self.source is not None:
            return VariableTracker.build(tx, self.real.grad, AttrSource(self.source, "grad"))
        if not self.fake.requires_grad:
            return NONE
        unimplemented("gradient", f"{self!r}.grad", "the gradient of a tensor made in the graph")

    def _grad_fn(self, tx: Frame) -> VariableTracker:
        if self.fake.grad_fn is None:
            return NONE
        unimplemented("grad_fn", f"{self!r}.grad_fn", "nodes of autograd are not traced")

    def _from_class(self, tx: Frame, name: str) -> VariableTracker:
        from torch._dynamo.variables.misc import GetAttrVariable
        from torch._dynamo.variables.user_defined import _MISSING, class_attribute

        raw = class_attribute(self.cls, name)
        if raw is _MISSING:
            if self.source is not None:
                tx.out.guard(self.source, "NOT_PRESENT_IN_GENERIC_DICT", name)
            raise_error(
                tx, AttributeError, f"{self.cls.__name__!r} object has no attribute {name!r}"
            )
        if self.cls is not torch.Tensor and class_attribute(torch.Tensor, name) is not raw:
            return tx.bind_class_attribute(self, self.cls, name, raw)
        if callable(raw) or isinstance(raw, staticmethod | classmethod):
            return GetAttrVariable(self, name)
        if isinstance(raw, property) and raw.fget is not None:
            return VariableTracker.build(tx, raw.fget).call_function(tx, [self], {})
        return super().getattr(tx, name)

    def setattr(self, tx: Frame, name: str, value: VariableTracker) -> None:
        if name == "requires_grad":
            self.call_method(tx, "requires_grad_", [value], {})
            return
        if name == "data":
            unimplemented("setattr", f"{self!r}.data", "the data of a tensor is replaced")
        if name == "grad" and self.source is None:
            unimplemented("setattr", f"{self!r}.grad", "a gradient is set")
        if self.real is not None and not hasattr(self.cls, name):
            tx.out.note_own_dict(self.real.__dict__)
        tx.out.side_effects.set_attribute(self, self, name, value)

    # ---- methods

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        rule = _METHODS.get(name)
        if rule is not None:
            found = rule(self, tx, *args, **kwargs)
            if found is not None:
                return found
        if name in _REFUSED_METHODS:
            unimplemented(
                f"Tensor.{name}", f"{self!r}.{name}()", f"Tensor.{name}: {_REFUSED_METHODS[name]}"
            )
        if self.cls is not torch.Tensor:
            from torch._dynamo.variables.user_defined import class_attribute

            raw = class_attribute(self.cls, name)
            if class_attribute(torch.Tensor, name) is not raw:
                bound = tx.bind_class_attribute(self, self.cls, name, raw)
                return bound.call_function(tx, args, kwargs)
        if not hasattr(torch.Tensor, name):
            stored = self.getattr(tx, name)
            return stored.call_function(tx, args, kwargs)
        return tx.out.call_method(tx, name, [self, *args], kwargs)

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        if self.fake.dim() == 0:
            raise_error(tx, TypeError, "len() of a 0-d tensor")
        return self.call_method(tx, "size", [ConstantVariable(0)], {})

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        if self.fake.dim() == 0:
            raise_error(tx, TypeError, "iteration over a 0-d tensor")
        count = int(self.fake.size(0))
        return (self.getitem(tx, ConstantVariable(i)) for i in range(count))

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        return tx.out.call(tx, operator.getitem, [self, numbers_in_slices(tx, key)], {})

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        key = numbers_in_slices(tx, key)
        tx.out.call_effect(tx, operator.setitem, [self, key, value], {})

    def reconstruct(self, cg: Codegen) -> str:
        raise AssertionError("a tensor is an output of the graph")


def numbers_in_slices(tx: Frame, key: VariableTracker) -> VariableTracker:
    """An index whose slices have tensors as bounds needs their numbers."""
    if isinstance(key, SliceVariable):
        if any(isinstance(item, TensorVariable) for item in key.items):
            bounds = [
                item.call_method(tx, "item", [], {}) if isinstance(item, TensorVariable) else item
                for item in key.items
            ]
            return SliceVariable(bounds)
    elif type(key) is TupleVariable:
        return TupleVariable([numbers_in_slices(tx, item.realize()) for item in key.items])
    return key


def _storage_offset(self: TensorVariable, tx: Frame) -> VariableTracker:
    return ConstantVariable(fixed_place(tx, self.fake))


def _size(self: TensorVariable, tx: Frame, dim: VariableTracker | None = None) -> object:
    sizes = tuple(self.fake.size())
    if any(isinstance(s, torch.SymInt) for s in sizes):
        items = [tx.size_of(self, i) for i in range(len(sizes))]
    else:
        items = [ConstantVariable(s) for s in sizes]
    if dim is None or dim.is_same(NONE):
        return SizeVariable(items)
    if not dim.is_python_constant():
        return None
    index = dim.as_python_constant()
    if not isinstance(index, int) or not -len(items) <= index < len(items):
        return None
    return items[index]


def _item(self: TensorVariable, tx: Frame, *args: VariableTracker) -> object:
    from torch._dynamo import config

    if not config.capture_scalar_outputs:
        unimplemented(
            "Unsupported Tensor.item() call with capture_scalar_outputs=False",
            f"call_method {self!r} item () {{}}",
            "Dynamo does not support tracing `Tensor.item()` with "
            "config.capture_scalar_outputs=False.",
            (
                "Set `torch._dynamo.config.capture_scalar_outputs = True` or "
                "`export TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1` to include these operations in the "
                "captured graph.",
            ),
        )
    return None


def _iter(self: TensorVariable, tx: Frame) -> object:
    return tx.make_iterator(self)


def _setitem(
    self: TensorVariable, tx: Frame, key: VariableTracker, value: VariableTracker
) -> object:
    self.setitem(tx, key, value)
    return NONE


def _requires_grad(
    self: TensorVariable, tx: Frame, requires_grad: VariableTracker | None = None
) -> object:
    wanted = True if requires_grad is None else requires_grad.as_python_constant()
    if self.fake.requires_grad == wanted:
        return self
    unimplemented(
        "Tensor.requires_grad_", f"{self!r}.requires_grad_({wanted})", "it changes a tensor's mode"
    )


def _numel(self: TensorVariable, tx: Frame) -> object:
    total: VariableTracker = ConstantVariable(1)
    for item in _size(self, tx).items:
        total = tx.binary(operator.mul, total, item)
    return total


def _new(self: TensorVariable, tx: Frame, *args: VariableTracker, **kwargs: object) -> object:
    return tx.out.call_method(tx, "new_empty", [self, *(args or [TupleVariable([])])], {})


def _tolist(self: TensorVariable, tx: Frame) -> object:
    from torch._dynamo import config

    integer = not (self.fake.is_floating_point() or self.fake.is_complex())
    if not config.capture_scalar_outputs and not integer:
        return None
    if self.fake.dim() == 0:
        mode = tx.out.fake_mode
        before, mode.allow_scalar_outputs = mode.allow_scalar_outputs, True
        try:
            return tx.out.call_method(tx, "item", [self], {})
        finally:
            mode.allow_scalar_outputs = before
    return ListVariable([row.call_method(tx, "tolist", [], {}) for row in self.unpack(tx)])


def _as_subclass(self: TensorVariable, tx: Frame, cls: VariableTracker) -> object:
    kind = cls.as_python_constant()
    made = TensorVariable(self.node, self.fake)
    made.cls = kind
    tx.out.overridable = tx.out.overridable or plain_in_graph(kind)
    return made


def _numpy(self: TensorVariable, tx: Frame, *, force: VariableTracker | None = None) -> object:
    from torch._dynamo.variables.numpy_arrays import NumpyNdarrayVariable

    forced = force is not None and tx.truth(force)
    if self.fake.device.type != "cpu" and not forced:
        unimplemented("Tensor.numpy", repr(self), "only tensors of the CPU become arrays")
    # Gradients flow through arrays of compiled code, unless the array is forced out of the tensor.
    plain = self.call_method(tx, "detach", [], {}) if forced else self
    return NumpyNdarrayVariable(plain)


def _hook(method: str) -> object:
    def run(self: TensorVariable, tx: Frame, hook: VariableTracker) -> object:
        from torch._dynamo.variables import hooks

        return hooks.register(tx, method, self, hook)

    return run


_METHODS = {
    "numpy": _numpy,
    "register_hook": _hook("register_hook"),
    "register_post_accumulate_grad_hook": _hook("register_post_accumulate_grad_hook"),
    "size": _size,
    "item": _item,
    "__iter__": _iter,
    "__len__": lambda self, tx: self.length(tx),
    "__getitem__": lambda self, tx, key: self.getitem(tx, key),
    "__setitem__": _setitem,
    "__contains__": lambda self, tx, value: (
        tx.binary(operator.eq, self, value)
        .call_method(tx, "any", [], {})
        .call_method(tx, "item", [], {})
    ),
    "requires_grad_": _requires_grad,
    "storage_offset": _storage_offset,
    "numel": _numel,
    "nelement": _numel,
    "dim": lambda self, tx: ConstantVariable(self.fake.dim()),
    "ndimension": lambda self, tx: ConstantVariable(self.fake.dim()),
    "is_floating_point": lambda self, tx: ConstantVariable(self.fake.is_floating_point()),
    "is_complex": lambda self, tx: ConstantVariable(self.fake.is_complex()),
    "get_device": lambda self, tx: ConstantVariable(self.fake.get_device()),
    "new": _new,
    "as_subclass": _as_subclass,
    "tolist": _tolist,
    "__bool__": lambda self, tx: None,
    "__hash__": lambda self, tx: None,
}


class SymNodeVariable(VariableTracker):
    """A symbolic number."""

    __slots__ = ("named", "node", "sym")

    def __init__(
        self,
        node: torch.fx.Node,
        sym: torch.SymInt | torch.SymFloat | torch.SymBool,
        source: Source | None = None,
    ) -> None:
        super().__init__(source)
        self.node = node
        self.sym = sym
        self.named = not node.op.startswith("call")

    @staticmethod
    def create(node: torch.fx.Node, sym: object, source: Source | None = None) -> VariableTracker:
        """The tracker of a number; a constant where only one value is possible."""
        inner = sym.node
        for known in (inner.maybe_as_int, inner.maybe_as_float, inner.maybe_as_bool):
            value = known()
            if value is not None:
                return ConstantVariable(value)
        return SymNodeVariable(node, sym, source)

    def describe(self) -> str:
        return str(self.sym)

    def python_type(self) -> type:
        if isinstance(self.sym, torch.SymInt):
            return int
        return float if isinstance(self.sym, torch.SymFloat) else bool

    def is_mutable(self) -> bool:
        return False

    def as_proxy(self) -> object:
        return self.node

    def evaluate(self) -> int | float | bool:
        """The number of this run, and a guard that fixes it."""
        if isinstance(self.sym, torch.SymInt):
            return int(self.sym)
        return float(self.sym) if isinstance(self.sym, torch.SymFloat) else bool(self.sym)

    def truth(self, tx: Frame) -> bool:
        return bool(self.sym != 0) if not isinstance(self.sym, torch.SymBool) else bool(self.sym)

    def hash_key(self, tx: Frame) -> object:
        return self.evaluate()

    def is_same(self, other: VariableTracker) -> bool | None:
        return True if self is other else (False if other.is_same(NONE) else None)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        op = _NUMBER_METHODS.get(name)
        if op is not None and len(args) <= 1:
            if name.startswith("__r") and name != "__round__":
                return tx.binary(op, args[0], self)
            return tx.binary(op, self, args[0]) if args else tx.unary(op, self)
        plain = ConstantVariable(self.evaluate())
        return plain.call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        raise AssertionError("a symbolic number is an output of the graph")


_NUMBER_METHODS = {
    **{
        f"__{name}__": getattr(operator, name)
        for name in (
            *("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "eq", "ne", "lt"),
            *("le", "gt", "ge", "neg", "pos", "abs"),
        )
    },
    **{
        f"__r{name}__": getattr(operator, name)
        for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow")
    },
}
