"""Gradual checking of tensor shapes. Types of nodes are Dyn (nothing known) or a TensorType, some
of whose dimensions may be Dyn. A rule per function or module gives the type of a result; what it
says and what the user wrote on the node are met, and TypeError is raised where they contradict.

`Refine` gives unknown dimensions names and says which must be equal."""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.refinement_types import Equality
from torch.fx.experimental.unification import Var
from torch.fx.node import Node, Target
from torch.fx.tensor_type import Dyn, TensorType, is_consistent

__all__ = [
    "GraphTypeChecker",
    "Refine",
    "adaptiveavgpool2d_inference_rule",
    "broadcast_types",
    "get_greatest_upper_bound",
    "register_algebraic_expressions_inference_rule",
    "register_inference_rule",
    "register_refinement_rule",
]

_INFERENCE_RULES: dict[Target, Callable] = {}
_REFINEMENT_RULES: dict[Target, Callable] = {}
_RULES: dict[Target, Callable] = {}


def _registrar(table: dict[Target, Callable]) -> Callable:
    def register(call_target: Target) -> Callable:
        """A decorator that makes a function the rule of a target."""

        def enter(fn: Callable) -> Callable:
            if call_target in table:
                raise RuntimeError(f"Rule already registered for {call_target}!")
            table[call_target] = fn
            return fn

        return enter

    return register


register_inference_rule = _registrar(_INFERENCE_RULES)
register_refinement_rule = _registrar(_REFINEMENT_RULES)
register_algebraic_expressions_inference_rule = _registrar(_RULES)


# ---- types
def expand_to_tensor_dim(t: Any, n: int) -> TensorType:
    """Dyn as a tensor of that rank; a tensor of another rank raises."""
    if t == Dyn:
        return TensorType((Dyn,) * n)
    if not isinstance(t, TensorType):
        raise TypeError(f"Cannot match the type {t} with a tensor")
    if len(t.__args__) != n:
        raise TypeError(
            f"Cannot extend tensor. Tensor {t} has rank {len(t.__args__)}. It should have rank {n}"
        )
    return t


def broadcast_types(t1: Any, t2: Any) -> tuple[Any, Any]:
    """Two tensor types brought to one rank, with ones stretched; other types stay."""
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        if t1 == Dyn or t2 == Dyn or isinstance(t1, Var) or isinstance(t2, Var):
            return t1, t2
        raise TypeError(f"Cannot broadcast types {t1} and {t2}")
    rank = max(len(t1.__args__), len(t2.__args__))
    left, right = ([1] * (rank - len(t.__args__)) + list(t.__args__) for t in (t1, t2))
    pairs = [(b if a == 1 else a, a if b == 1 else b) for a, b in zip(left, right, strict=True)]
    return TensorType(tuple(a for a, _ in pairs)), TensorType(tuple(b for _, b in pairs))


def get_greatest_upper_bound(type1: Any, type2: Any) -> Any:
    """The type that says what both say; TypeError where they contradict."""
    if type1 == Dyn:
        return type2
    if type2 == Dyn:
        return type1
    if not is_consistent(type1, type2):
        raise TypeError(f"Inconsistent types {type1}, {type2}")
    if isinstance(type1, TensorType):
        pairs = zip(type1.__args__, type2.__args__, strict=True)
        return TensorType(tuple(b if a == Dyn else a for a, b in pairs))
    return type1


def _common(type1: Any, type2: Any) -> Any:
    """What is sure of the sum of two values: a dimension is known where both are."""
    pairs = zip(type1.__args__, type2.__args__, strict=True)
    return TensorType(tuple(Dyn if Dyn in (a, b) else a for a, b in pairs))


def _first(n: Node) -> Node:
    return n.args[0]


# ---- rules of functions
@register_inference_rule(torch.add)
@register_inference_rule(operator.add)
@register_inference_rule(operator.iadd)
def add_inference_rule(n: Node) -> Any:
    """Sums broadcast."""
    kinds = [a.type if isinstance(a, Node) else type(a) for a in n.args[:2]]
    numbers = [k in (int, float) for k in kinds]
    if any(numbers):
        n.type = kinds[1] if numbers[0] else kinds[0]
        return n.type
    before = kinds
    left, right = broadcast_types(*kinds)
    if [left, right] != before:
        n.meta["broadcast"] = True
        n.meta[str(n.args[0])], n.meta[str(n.args[1])] = left, right
    if not is_consistent(left, right):
        raise TypeError(
            f"Cannot add arguments {n.args[0]} ({before[0]}) and {n.args[1]} ({before[1]}) in node "
            f"{n}. Types should match "
        )
    if Dyn in (left, right):
        n.type = Dyn
    else:
        n.type = _common(left, right)
    return n.type


@register_inference_rule(getattr)
def get_attr_inference_rule(n: Node, traced: Any = None) -> Any:
    """Of an attribute only `shape` and `device` occur, and nothing is known of them."""
    n.type = Dyn
    return n.type


@register_inference_rule(torch.transpose)
def transpose_inference_rule(n: Node) -> Any:
    """Swaps two dimensions."""
    kind, (a, b) = _first(n).type, n.args[1:3]
    if kind == Dyn:
        n.type = Dyn
        return n.type
    dims = list(kind.__args__)
    if not all(-len(dims) <= d < len(dims) for d in (a, b)):
        raise TypeError(f"Cannot transpose {a} and {b} in type {kind} for node {n}")
    dims[a], dims[b] = dims[b], dims[a]
    n.type = get_greatest_upper_bound(n.type, TensorType(tuple(dims)))
    return n.type


@register_inference_rule(torch.reshape)
def reshape_inference_rule(n: Node) -> Any:
    """The number of elements must stay."""
    kind, wanted = _first(n).type, n.args[1]
    if kind == Dyn:
        n.type = TensorType(tuple(Dyn if d == -1 else d for d in wanted))
        return n.type
    have = math.prod(d for d in kind.__args__ if d != Dyn)
    want = math.prod(d for d in wanted if d != -1)
    static = Dyn not in kind.__args__
    fits = have % want == 0 if static else (have % want == 0 or want % have == 0)
    if static and -1 not in wanted:
        fits = have == want
    if not fits:
        raise TypeError(f"Cannot reshape in node {n} from type {kind} to type {tuple(wanted)}")
    missing = have // want if static else Dyn
    n.type = TensorType(tuple(missing if d == -1 else d for d in wanted))
    return n.type


@register_inference_rule(torch.flatten)
def flatten_inference_rule(n: Node) -> Any:
    """Merges dimensions."""
    kind = _first(n).type
    start = n.args[1] if len(n.args) > 1 else n.kwargs.get("start_dim", 0)
    end = n.args[2] if len(n.args) > 2 else n.kwargs.get("end_dim", -1)
    if kind == Dyn:
        n.type = Dyn
        return n.type
    n.type = flatten_check(kind, start, end)
    return n.type


def flatten_check(tensor_type: TensorType, start_dim: int, end_dim: int) -> TensorType:
    """The type of a flattened tensor."""
    dims = list(tensor_type.__args__)
    rank = len(dims)
    start, end = (d + rank if d < 0 else d for d in (start_dim, end_dim))
    if not 0 <= start <= end < rank:
        raise TypeError(f"Incompatible dimensions {start_dim}, {end_dim} in type {tensor_type}")
    middle = dims[start : end + 1]
    merged = Dyn if Dyn in middle else math.prod(middle)
    return TensorType((*dims[:start], merged, *dims[end + 1 :]))


# ---- rules of modules
def _pair(value: Any) -> tuple[Any, Any]:
    return tuple(value) if isinstance(value, list | tuple) else (value, value)


def calculate_out_dimension(d_in: Any, module_instance: Any, index: int) -> Any:
    """The length of a dimension behind a convolution or pooling."""
    if d_in == Dyn:
        return Dyn
    if not isinstance(d_in, int):
        raise TypeError(
            f"{d_in} in {module_instance} must be a number or Dyn. Received {type(d_in)}"
        )
    return math.floor(_window_count(d_in, module_instance, index))


def _window_count(d_in: Any, module: Any, index: int) -> Any:
    fields = ("padding", "dilation", "kernel_size", "stride")
    padding, dilation, kernel, stride = (_pair(getattr(module, name))[index] for name in fields)
    reach = d_in + 2 * padding - dilation * (kernel - 1) - 1
    if isinstance(d_in, int):
        return reach // stride + 1
    return reach / stride + 1


@register_inference_rule(torch.nn.ReLU)
def relu_inference_rule(n: Node, module_instance: Any) -> Any:
    """The shape stays."""
    n.type = get_greatest_upper_bound(_first(n).type, n.type)
    return n.type


@register_inference_rule(torch.nn.BatchNorm2d)
def bn2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The shape stays; the second dimension is the number of features."""
    _first(n).type = kind = expand_to_tensor_dim(_first(n).type, 4)
    own = expand_to_tensor_dim(n.type, 4)
    features = TensorType((Dyn, module_instance.num_features, Dyn, Dyn))
    for other in (kind, own):
        if not is_consistent(other, features):
            raise TypeError(
                f"Cannot apply {module_instance} with input type {kind} and type {own} on {n}"
            )
    n.type = get_greatest_upper_bound(kind, own)
    return n.type


@register_inference_rule(torch.nn.Conv2d)
def conv2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """Channels are checked, heights and widths computed."""
    _first(n).type = kind = expand_to_tensor_dim(_first(n).type, 4)
    own = expand_to_tensor_dim(n.type, 4)
    if not is_consistent(kind.__args__[1], module_instance.in_channels):
        raise TypeError(f"Cannot apply {module_instance} with input type {kind} on {n}")
    sizes = [calculate_out_dimension(kind.__args__[2 + i], module_instance, i) for i in (0, 1)]
    made = TensorType((kind.__args__[0], module_instance.out_channels, *sizes))
    n.type = get_greatest_upper_bound(made, own)
    return n.type


@register_inference_rule(torch.nn.MaxPool2d)
def maxpool2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """Three or four dimensions, of which the last two shrink."""
    kind = _first(n).type
    if kind == Dyn:
        kind = _first(n).type = expand_to_tensor_dim(kind, 4)
    if not isinstance(kind, TensorType) or len(kind.__args__) not in (3, 4):
        raise TypeError(f"Wrong size {kind} for {module_instance}")
    *lead, height, width = kind.__args__
    sizes = [calculate_out_dimension(d, module_instance, i) for i, d in enumerate((height, width))]
    n.type = get_greatest_upper_bound(TensorType((*lead, *sizes)), n.type)
    return n.type


@register_inference_rule(torch.nn.Linear)
def linear_inference_rule(n: Node, module_instance: Any) -> Any:
    """The last dimension is replaced."""
    kind = _first(n).type
    if isinstance(kind, TensorType):
        n.type = get_greatest_upper_bound(linear_check(kind, module_instance), n.type)
    return n.type


def linear_check(tensor_type: TensorType, module_instance: Any) -> TensorType:
    """The type behind a linear layer."""
    *lead, last = tensor_type.__args__ or (None,)
    if len(tensor_type.__args__) < 2:
        raise TypeError(f"Type {tensor_type} must have rank 2 or more.")
    if not is_consistent(module_instance.in_features, last):
        raise TypeError(
            f"Inconsistent {module_instance.in_features} and {last} in {module_instance}"
        )
    return TensorType((*lead, module_instance.out_features))


@register_inference_rule(torch.nn.AdaptiveAvgPool2d)
def adaptiveavgpool2d_inference_rule(n: Node, module_instance: Any) -> Any:
    """The last two dimensions are those asked for."""
    kind = _first(n).type
    if kind == Dyn:
        kind = _first(n).type = expand_to_tensor_dim(kind, 4)
    if not isinstance(kind, TensorType) or len(kind.__args__) not in (3, 4):
        raise TypeError(f"Tensor ranks in {kind} should be 3 or 4")
    lead, old = kind.__args__[:-2], kind.__args__[-2:]
    wanted = _pair(module_instance.output_size)
    sizes = [b if w is None else w for w, b in zip(wanted, old, strict=True)]
    n.type = get_greatest_upper_bound(n.type, TensorType((*lead, *sizes)))
    return n.type


# ---- checking
class GraphTypeChecker:
    """Checks the types of a traced module and notes them on its nodes."""

    def __init__(self, env: Any, traced: Any) -> None:
        self.env = env
        self.traced = traced

    def type_check(self) -> bool:
        """Checks all nodes; TypeError names the first that does not fit."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n: Node) -> Any:
        """The type of a node whose inputs have theirs."""
        if n.type is None:
            n.type = Dyn
        if n.op == "placeholder":
            return n.type
        if n.op == "get_attr":
            return self._attribute(n)
        if n.op == "output":
            result = n.args[0]
            n.type = result.type if isinstance(result, Node) else Dyn
            if isinstance(result, list | tuple):
                n.type = tuple(a.type if isinstance(a, Node) else Dyn for a in result)
            return n.type
        if n.op == "call_function":
            return self._rule(n.target, n.target)(n)
        if n.op == "call_module":
            module = self.traced.get_submodule(n.target)
            return self._rule(type(module), n.target)(n, module)
        raise NotImplementedError(f"Method {n.op} not yet implemented")

    def _rule(self, key: Any, shown: Any) -> Callable:
        if key not in _INFERENCE_RULES:
            raise RuntimeError(f"No inference rule registered for target {shown}!")
        return _INFERENCE_RULES[key]

    def _attribute(self, n: Node) -> Any:
        value: Any = self.traced
        for part in n.target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            n.type = get_greatest_upper_bound(TensorType(tuple(value.shape)), n.type)
        return n.type


# ---- refining
def _leading_equal(n: Node, count: int) -> list[Equality]:
    """The first dimensions of input and result are the same."""
    kind, own = _first(n).type, n.type
    if not (isinstance(kind, TensorType) and isinstance(own, TensorType)):
        return []
    return [
        Equality(a, b) for a, b in zip(kind.__args__[:count], own.__args__[:count], strict=False)
    ]


@register_refinement_rule(torch.nn.ReLU)
@register_refinement_rule(torch.nn.BatchNorm2d)
def all_eq(n: Node) -> list[Equality]:
    """All dimensions of input and result are the same."""
    kind = _first(n).type
    return _leading_equal(n, len(kind.__args__) if isinstance(kind, TensorType) else 0)


@register_refinement_rule(torch.nn.AdaptiveAvgPool2d)
@register_refinement_rule(torch.nn.MaxPool2d)
def first_two_eq(n: Node) -> list[Equality]:
    """Batch and channels stay."""
    return _leading_equal(n, 2)


@register_refinement_rule(torch.nn.Conv2d)
@register_refinement_rule(torch.flatten)
def first_one_eq(n: Node) -> list[Equality]:
    """The batch stays."""
    return _leading_equal(n, 1)


@register_refinement_rule(torch.nn.Linear)
def all_but_last_eq(n: Node) -> list[Equality]:
    """All but the last dimension stay."""
    kind = _first(n).type
    return _leading_equal(n, len(kind.__args__) - 1 if isinstance(kind, TensorType) else 0)


@register_refinement_rule(torch.add)
@register_refinement_rule(operator.add)
@register_refinement_rule(operator.iadd)
def element_wise_eq(n: Node) -> list[Equality]:
    """Dimensions of a sum: where one side has 1 the other's counts; unknown ones of a broadcast may
    be 1 and say nothing."""
    kinds = [a.type if isinstance(a, Node) else None for a in n.args[:2]]
    own = n.type
    if not all(isinstance(k, TensorType) for k in [*kinds, own]):
        return []
    rank = len(own.__args__)
    left, right = ([1] * (rank - len(k.__args__)) + list(k.__args__) for k in kinds)
    broadcast = n.meta.get("broadcast", False)
    out: list[Equality] = []
    for a, b, r in zip(left, right, own.__args__, strict=True):
        if a == 1:
            out.append(Equality(b, r))
        elif b == 1:
            out.append(Equality(a, r))
        elif not broadcast or (isinstance(a, int) and isinstance(b, int)):
            out.append(Equality(a, b))
            if not broadcast:
                out.append(Equality(a, r))
    return out


def _sized_by_windows(n: Node, module: Any) -> None:
    """Heights and widths as expressions of those before."""
    import sympy

    kind, own = _first(n).type, n.type
    if not (isinstance(kind, TensorType) and isinstance(own, TensorType)):
        return
    *lead, height, width = own.__args__
    made = []
    for i, (d, old) in enumerate(zip(kind.__args__[-2:], (height, width), strict=True)):
        if isinstance(d, int):
            made.append(old)
        else:
            made.append(sympy.floor(_window_count(d, module, i)))
    n.type = TensorType((*lead, *made))


_RULES[torch.nn.Conv2d] = _sized_by_windows


class Refine:
    """Names for unknown dimensions, and what is known of them."""

    def __init__(self, traced: Any) -> None:
        self.constraints: list[Equality] = []
        self.traced = traced
        self.symbol_iter = itertools.count(self._first_free())

    def _first_free(self) -> int:
        used = [-1]
        for node in self.traced.graph.nodes:
            if isinstance(node.type, TensorType):
                used += [v.token for v in node.type.__args__ if isinstance(v, Var)]
        return max(v for v in used if isinstance(v, int)) + 1

    def refine(self) -> bool:
        """Names dimensions and collects constraints."""
        for node in self.traced.graph.nodes:
            self.refine_node(node)
        return True

    def symbolic_relations(self) -> bool:
        """Replaces names by symbols, and computed dimensions by expressions."""
        for node in self.traced.graph.nodes:
            node.type = self.convert_to_sympy_symbols(node.type)
            self.infer_symbolic_relations(node)
        return True

    def replace_dyn_with_fresh_var(self, typ: Any) -> Any:
        """A type with a new name for each unknown dimension."""
        if typ == Dyn:
            return Var(next(self.symbol_iter))
        if isinstance(typ, TensorType):
            return TensorType(tuple(self.replace_dyn_with_fresh_var(d) for d in typ.__args__))
        if isinstance(typ, list | tuple):
            return type(typ)(self.replace_dyn_with_fresh_var(t) for t in typ)
        return typ

    def convert_to_sympy_symbols(self, typ: Any) -> Any:
        """A type with symbols of sympy for names."""
        import sympy

        if isinstance(typ, Var):
            return sympy.symbols(str(typ))
        if isinstance(typ, TensorType):
            return TensorType(tuple(self.convert_to_sympy_symbols(d) for d in typ.__args__))
        if isinstance(typ, list | tuple):
            return type(typ)(self.convert_to_sympy_symbols(t) for t in typ)
        return typ

    def refine_node(self, n: Node) -> None:
        """Names the unknown dimensions of a node and adds its constraints."""
        if n.op == "output":
            result = n.args[0]
            n.type = result.type if isinstance(result, Node) else n.type
            return
        if n.type is None:
            n.type = Dyn
        n.type = self.replace_dyn_with_fresh_var(n.type)
        rule = _REFINEMENT_RULES.get(self._key(n))
        if rule is not None:
            self.constraints += rule(n)

    def infer_symbolic_relations(self, n: Node) -> None:
        """Computes the dimensions of a node from those of its input."""
        if n.op == "output" and isinstance(n.args[0], Node):
            n.type = n.args[0].type
        elif n.op == "call_module":
            module = self.traced.get_submodule(n.target)
            rule = _RULES.get(type(module))
            if rule is not None:
                rule(n, module)

    def _key(self, n: Node) -> Any:
        if n.op == "call_module":
            return type(self.traced.get_submodule(n.target))
        return n.target if n.op == "call_function" else None


def get_parameter(traced: Any, target: str) -> Any:
    """The parameter under a dotted path."""
    return traced.get_parameter(target)
