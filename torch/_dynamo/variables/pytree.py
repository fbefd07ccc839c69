"""Trees of torch.utils._pytree. The C functions that take trees apart and put them together run on
real containers whose leaves are marks for trackers; a tree's structure is a constant."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch._C import _pytree
from torch._dynamo.exc import unimplemented
from torch._dynamo.trace_rules import handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable, DefaultDictVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    DequeVariable,
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    TupleVariable,
)
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import UserDefinedObjectVariable
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame


_IN_GRAPH = (TensorVariable, SymNodeVariable)


class Leaf:
    """A mark for a tracker."""

    __slots__ = ("vt",)

    def __init__(self, vt: VariableTracker) -> None:
        self.vt = vt


def marked(tx: Frame, vt: VariableTracker, is_leaf: VariableTracker | None) -> object:
    """A tree of trackers as real containers of marks."""
    vt = vt.realize()
    if is_leaf is not None and tx.truth(is_leaf.call_function(tx, [vt], {})):
        return Leaf(vt)
    below = lambda item: marked(tx, item, is_leaf)
    if isinstance(vt, ConstantVariable) and vt.value is None:
        return None
    if isinstance(vt, NamedTupleVariable) and hasattr(vt.tuple_cls, "_make"):
        return vt.tuple_cls._make([below(item) for item in vt.items])
    if isinstance(vt, NamedTupleVariable) and hasattr(vt.tuple_cls, "n_fields"):
        return vt.tuple_cls([below(item) for item in vt.items])
    if isinstance(vt, RangeVariable | SizeVariable | NamedTupleVariable):
        return Leaf(vt)
    if isinstance(vt, DequeVariable):
        return collections.deque([below(item) for item in vt.items], vt.maxlen)
    if isinstance(vt, BaseListVariable):
        return vt.cls([below(item) for item in vt.items])
    if isinstance(vt, ConstDictVariable):
        plain = {k.as_python_constant(): below(v) for k, v in vt.pairs(tx)}
        if isinstance(vt, DefaultDictVariable):
            return collections.defaultdict(vt.default_factory.as_python_constant(), plain)
        return vt.cls(plain)
    if isinstance(vt, UserDefinedObjectVariable) and vt.cls in pytree.SUPPORTED_NODES:
        return _registered(tx, vt, below)
    return Leaf(vt)


def _registered(
    tx: Frame, vt: UserDefinedObjectVariable, below: Callable[[VariableTracker], object]
) -> object:
    """A container of the program's own: an object of its class that holds marks."""
    node = pytree.SUPPORTED_NODES[vt.cls]
    parts = VariableTracker.build(tx, node.flatten_fn).call_function(tx, [vt], {}).unpack(tx)
    if len(parts) != 2 or not parts[1].is_python_constant():
        unimplemented("tree", repr(vt), "the structure of a container is not a constant")
    children = [below(child) for child in parts[0].unpack(tx)]
    return node.unflatten_fn(children, parts[1].as_python_constant())


def unmarked(tx: Frame, tree: object) -> VariableTracker:
    """Real containers of marks as a tracker."""
    if isinstance(tree, Leaf):
        return tree.vt
    cls = type(tree)
    if cls is list:
        return ListVariable([unmarked(tx, item) for item in tree])
    if cls is tuple:
        return TupleVariable([unmarked(tx, item) for item in tree])
    if isinstance(tree, tuple) and (hasattr(cls, "_make") or hasattr(cls, "n_fields")):
        return NamedTupleVariable([unmarked(tx, item) for item in tree], cls)
    if cls is collections.deque:
        return DequeVariable([unmarked(tx, item) for item in tree], maxlen=tree.maxlen)
    if cls is dict or cls is collections.OrderedDict:
        pairs = [(VariableTracker.build(tx, k), unmarked(tx, v)) for k, v in tree.items()]
        return ConstDictVariable.of(tx, pairs, cls)
    if cls is collections.defaultdict:
        pairs = [(VariableTracker.build(tx, k), unmarked(tx, v)) for k, v in tree.items()]
        factory = VariableTracker.build(tx, tree.default_factory)
        return DefaultDictVariable(ConstDictVariable.of(tx, pairs).items, factory)
    if cls in pytree.SUPPORTED_NODES:
        node = pytree.SUPPORTED_NODES[cls]
        children, context = node.flatten_fn(tree)
        items = ListVariable([unmarked(tx, child) for child in children])
        make = VariableTracker.build(tx, node.unflatten_fn)
        return make.call_function(tx, [items, VariableTracker.build(tx, context)], {})
    return VariableTracker.build(tx, tree)


class LeafCall:
    """A function in a graph: it takes the leaves of its arguments and gives those of its result."""

    def __init__(self, fn: Callable, spec: object) -> None:
        self.fn = fn
        self.spec = spec
        self.out_spec: object = None
        self.__name__ = fn.__name__

    def __call__(self, *leaves: object) -> list[object]:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.spec)
        found, self.out_spec = pytree.tree_flatten(self.fn(*args, **kwargs))
        return found


def call_on_leaves(tx: Frame, fn: Callable, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A call in the graph whose arguments and result are trees of tensors and constants."""
    names = {name: marked(tx, vt, None) for name, vt in kwargs.items()}
    leaves, spec = pytree.tree_flatten((tuple(marked(tx, a, None) for a in args), names))
    values = [unmarked(tx, leaf) for leaf in leaves]
    for vt in values:
        if not (isinstance(vt, _IN_GRAPH) or vt.is_python_constant()):
            unimplemented(
                "Invalid input type for nonstrict_trace-ed function",
                repr(vt),
                "For `nonstrict_trace`-ed functions, only tensors, numbers and other constants, "
                "and containers of those, are allowed as inputs; an argument is a "
                f"{vt.describe()}.",
                (
                    "`torch.utils._pytree.register_pytree_node` makes a class a container; "
                    "`register_constant` makes it a constant.",
                ),
            )
    call = LeafCall(fn, spec)
    found = tx.out.call_effect(tx, call, values, {})
    marks = [Leaf(item) for item in found.unpack(tx)]
    return unmarked(tx, pytree.tree_unflatten(marks, call.out_spec))


def _wanted(is_leaf: VariableTracker) -> VariableTracker | None:
    return None if is_leaf.is_same(NONE) else is_leaf


@handler(_pytree.flatten)
def _flatten(tx: Frame, tree: VariableTracker, is_leaf: VariableTracker = NONE) -> VariableTracker:
    leaves, spec = _pytree.flatten(marked(tx, tree, _wanted(is_leaf)), None)
    return TupleVariable(
        [ListVariable([unmarked(tx, leaf) for leaf in leaves]), ConstantVariable(spec)]
    )


@handler(_pytree.unflatten)
def _unflatten(tx: Frame, leaves: VariableTracker, spec: VariableTracker) -> VariableTracker:
    marks = [Leaf(item) for item in leaves.unpack(tx)]
    return unmarked(tx, _pytree.unflatten(marks, spec.as_python_constant()))


@handler(_pytree.map)
def _map(
    tx: Frame, fn: VariableTracker, tree: VariableTracker, is_leaf: VariableTracker = NONE
) -> VariableTracker:
    leaves, spec = _pytree.flatten(marked(tx, tree, _wanted(is_leaf)), None)
    mapped = [Leaf(fn.call_function(tx, [unmarked(tx, leaf)], {})) for leaf in leaves]
    return unmarked(tx, _pytree.unflatten(mapped, spec))


@handler(_pytree.leaves)
def _leaves(tx: Frame, tree: VariableTracker, is_leaf: VariableTracker = NONE) -> VariableTracker:
    leaves = _pytree.leaves(marked(tx, tree, _wanted(is_leaf)), None)
    return ListVariable([unmarked(tx, leaf) for leaf in leaves])
