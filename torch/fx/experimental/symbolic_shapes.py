"""Sizes that are symbols: the environment of a trace, and questions about numbers that may be plain
or symbolic. A question either decides (with a guard, which limits the trace to sizes with the same
answer) or only looks at what is known."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import SymBool, SymFloat, SymInt
from torch.fx.experimental import _config as config  # noqa: F401
from torch.fx.experimental._shape_contexts import (
    CallMethodKey,
    Constraint,
    ConvertIntKey,
    DimConstraint,
    DimDynamic,
    DivideByKey,
    EqualityConstraint,
    InnerTensorKey,
    RelaxedUnspecConstraint,
    StatefulSymbolicContext,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
    SubclassSymbolicContext,
    SymbolicContext,
    SymIntSymbolicContext,
)
from torch.fx.experimental._shape_env import (
    RuntimeAssert,
    ShapeEnv,
    ShapeEnvSettings,
    ShapeGuard,
)
from torch.fx.experimental._shape_guards import ConstraintViolationError

if TYPE_CHECKING:
    import sympy

__all__ = [
    "CallMethodKey",
    "Constraint",
    "ConstraintViolationError",
    "ConvertIntKey",
    "DimConstraint",
    "DimConstraints",
    "DimDynamic",
    "DivideByKey",
    "DynamicDimConstraintPrinter",
    "EqualityConstraint",
    "GuardOnDataDependentSymNode",
    "InnerTensorKey",
    "PendingUnbackedSymbolNotFound",
    "RelaxedUnspecConstraint",
    "RuntimeAssert",
    "ShapeEnv",
    "ShapeEnvSettings",
    "ShapeGuard",
    "StatefulSymbolicContext",
    "StatelessSymbolicContext",
    "StrictMinMaxConstraint",
    "SubclassSymbolicContext",
    "SymIntSymbolicContext",
    "SymbolicContext",
    "canonicalize_bool_expr",
    "compute_unbacked_bindings",
    "constrain_range",
    "constrain_unify",
    "definitely_false",
    "definitely_true",
    "expect_true",
    "fx_placeholder_targets",
    "fx_placeholder_vals",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_hint",
    "has_static_value",
    "hint_int",
    "is_accessor_node",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbol_binding_fx_node",
    "is_symbolic",
    "optimization_hint",
    "rebind_unbacked",
    "resolve_unbacked_bindings",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
]

SymTypes = (SymInt, SymFloat, SymBool)


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision was asked for that depends on the data of the program. `cond` is what was
    asked."""

    def __init__(self, cond: Any, *args: Any) -> None:
        super().__init__(*args)
        self._cond = cond

    @property
    def cond(self) -> "sympy.Basic":
        """The condition as a sympy object."""
        return self._cond.node.expr if isinstance(self._cond, SymTypes) else self._cond


class PendingUnbackedSymbolNotFound(RuntimeError):
    """An unbacked symbol was made by an operator but is in none of its outputs."""


# ---- what a number is
def is_symbolic(val: Any) -> bool:
    """Whether a number is symbolic."""
    if isinstance(val, (int, float, bool)):
        return False
    return val.node.is_symbolic()


def has_hint(a: Any) -> bool:
    """Whether a number has a value in the traced run."""
    return a.node.has_hint() if isinstance(a, SymTypes) else True


def _is_concrete(a: Any, plain: type, as_plain: str) -> bool:
    if isinstance(a, plain):
        return True
    return getattr(a.node, as_plain)() is not None


def is_concrete_int(a: "int | SymInt") -> bool:
    """Whether an integer is known to have one value."""
    return _is_concrete(a, int, "maybe_as_int")


def is_concrete_float(a: "float | SymFloat") -> bool:
    """Whether a float is known to have one value."""
    return _is_concrete(a, float, "maybe_as_float")


def is_concrete_bool(a: "bool | SymBool") -> bool:
    """Whether a truth value is known."""
    return _is_concrete(a, bool, "maybe_as_bool")


def has_static_value(a: Any) -> bool:
    """Whether a number has the same value for all sizes."""
    if not isinstance(a, SymTypes):
        return True
    asked = (a.node.maybe_as_int, a.node.maybe_as_float, a.node.maybe_as_bool)
    return any(ask() is not None for ask in asked)


# ---- values, fixed by a guard
def guard_int(a: "int | SymInt") -> int:
    """An integer as a plain one."""
    if isinstance(a, SymInt):
        return a.node.guard_int("", 0)
    if type(a) is not int:
        raise TypeError(f"guard_int expects an int, got {type(a).__name__}")
    return a


def guard_float(a: "float | SymFloat") -> float:
    """A float as a plain one."""
    if isinstance(a, SymFloat):
        return a.node.guard_float("", 0)
    if not isinstance(a, float):
        raise TypeError(f"guard_float expects a float, got {type(a).__name__}")
    return a


def guard_bool(a: "bool | SymBool") -> bool:
    """A truth value as a plain one."""
    if isinstance(a, SymBool):
        return a.node.guard_bool("", 0)
    if type(a) is not bool:
        raise TypeError(f"guard_bool expects a bool, got {type(a).__name__}")
    return a


def guard_scalar(a: Any) -> Any:
    """A number of any kind as a plain one."""
    if isinstance(a, (bool, SymBool)):
        return guard_bool(a)
    if isinstance(a, (int, SymInt)):
        return guard_int(a)
    if isinstance(a, (float, SymFloat)):
        return guard_float(a)
    raise AssertionError(f"unrecognized scalar {a}")


def hint_int(a: "int | SymInt", fallback: int | None = None) -> int:
    """The value of an integer in the traced run; nothing is guarded."""
    if not isinstance(a, SymInt):
        return a
    value = a.node.hint
    if value is None and fallback is None:
        return a.node.guard_int("", 0)  # raises the error of data-dependent values
    return fallback if value is None else value


def optimization_hint(a: "int | SymInt", fallback: int = 8192) -> int:
    """A value to plan with: the traced run's, or a guess."""
    return hint_int(a, fallback)


# ---- decisions about truth values
def statically_known_true(x: "bool | SymBool") -> bool:
    """Whether x holds for all sizes. No guard."""
    return x.node.statically_known_true("", 0) if isinstance(x, SymBool) else bool(x)


def statically_known_false(x: "bool | SymBool") -> bool:
    """Whether x holds for no size. No guard."""
    return statically_known_true(torch.sym_not(x)) if isinstance(x, SymBool) else not x


def guard_or_false(a: "bool | SymBool") -> bool:
    """Decides a, with a guard; False where that depends on data."""
    return a.node.guard_or_false("", 0) if isinstance(a, SymBool) else bool(a)


def guard_or_true(a: "bool | SymBool") -> bool:
    """Decides a, with a guard; True where that depends on data."""
    return a.node.guard_or_true("", 0) if isinstance(a, SymBool) else bool(a)


def guard_size_oblivious(expr: "bool | SymBool") -> bool:
    """Decides as if sizes that depend on data were neither 0 nor 1."""
    if isinstance(expr, SymBool):
        return expr.node.guard_size_oblivious("", 0)
    if not isinstance(expr, bool):
        raise TypeError(f"guard_size_oblivious expects a bool, got {type(expr).__name__}")
    return expr


def definitely_true(a: "bool | SymBool") -> bool:
    """Whether a holds; False where that depends on data."""
    return guard_or_false(a)


def definitely_false(a: "bool | SymBool") -> bool:
    """Whether a does not hold; False where that depends on data."""
    return not guard_or_true(a)


def expect_true(a: "bool | SymBool", skip: int = 0) -> bool:
    """States that a holds: a guard, or a check at run time where it depends on data."""
    return a.node.expect_true("", 0) if isinstance(a, SymBool) else bool(a)


def sym_eq(x: Any, y: Any) -> "bool | SymBool":
    """Whether two numbers, or two sequences of numbers, are equal, as a truth value."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        if len(x) != len(y):
            return False
        return sym_and(*(sym_eq(a, b) for a, b in zip(x, y, strict=True)))
    if isinstance(x, (int, SymInt)) and isinstance(y, (int, SymInt)):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def sym_and(*values: "bool | SymBool") -> "bool | SymBool":
    """Whether all hold, as a truth value."""
    out: bool | SymBool = True
    for value in values:
        out = value if out is True else out & value
    return out


def sym_or(*values: "bool | SymBool") -> "bool | SymBool":
    """Whether one holds, as a truth value."""
    out: bool | SymBool = False
    for value in values:
        out = value if out is False else out | value
    return out


# ---- statements about ranges
def _constrain_range_for_size(a: Any, min: int | None = None, max: int | None = None) -> None:
    """States that a number that depends on data is a size."""
    if isinstance(a, (SymFloat, SymBool)):
        raise ValueError("Constraining SymFloat/SymBool is nyi")
    low = 0 if min is None else min
    if max is not None and max < low:
        raise ValueError(
            "Maximum value to constrain_as_size can't be less than the specified min value, "
            f"received min={min} and max={max}"
        )
    constrain_range(a, min=low, max=max)
    if isinstance(a, SymInt):
        for symbol in a.node._symbols():
            if not a.node.shape_env._state(symbol)[0]:
                a.node.shape_env._mark_size_like(symbol)


def constrain_range(a: Any, *, min: int | None, max: int | None = None) -> None:
    """States the range of a number; a plain one has to be in it."""
    if isinstance(a, (SymFloat, SymBool)):
        raise ValueError("Constraining SymFloat/SymBool is nyi")
    low, high = min, max
    plain = a if isinstance(a, int) else a.node.maybe_as_int()
    if plain is not None:
        if (low is not None and plain < low) or (high is not None and plain > high):
            raise ValueError(f"Invalid value {plain} for range [{min}:{max}]")
        return
    if not a.node.shape_env._constrain(a.node, low, high):
        raise ValueError(f"Invalid ranges [{min}:{max}]")


_constrain_range = constrain_range


def constrain_unify(a: "int | SymInt", b: "int | SymInt") -> None:
    """States that two numbers are equal."""
    if not expect_true(sym_eq(a, b)):
        raise ValueError(f"{a} and {b} are not equal")


def _advise_is_size(a: "int | SymInt") -> None:
    """Says that a number will be used as a size."""
    if isinstance(a, SymInt) and a.node._tree()[0] == "symbol":
        env = a.node.shape_env
        if not env._state(a.node)[0]:
            env._mark_size_like(a.node)


# ---- symbols in values
def _walk(val: Any, found: list) -> None:
    if isinstance(val, SymTypes):
        found.append(val.node)
    elif isinstance(val, torch.Tensor):
        for part in (val.size(), val.stride(), val.storage_offset()):
            _walk(part, found)
    elif isinstance(val, dict):
        _walk(tuple(val.values()), found)
    elif isinstance(val, (tuple, list, set)):
        for item in val:
            _walk(item, found)
    elif val is None or isinstance(val, (int, float, bool, str)):
        return
    elif hasattr(val, "free_symbols"):
        found.append(val)
    else:
        raise AssertionError(f"cannot compute free_symbols of {val} {type(val)}")


def free_symbols(val: Any) -> "set[sympy.Symbol]":
    """The symbols in a number, a tensor's geometry or a structure of them."""
    found: list = []
    _walk(val, found)
    out: set = set()
    for part in found:
        out |= part.free_symbols if hasattr(part, "free_symbols") else part.expr.free_symbols
    return out


def has_free_symbols(val: Any) -> bool:
    """Whether a value has symbols."""
    found: list = []
    _walk(val, found)
    return any(
        bool(part.free_symbols if hasattr(part, "free_symbols") else part._symbols())
        for part in found
    )


def _is_unbacked_name(name: str) -> bool:
    return name.rstrip("0123456789") in ("u", "zuf")


def free_unbacked_symbols(val: Any) -> "set[sympy.Symbol]":
    """The symbols in a value that depend on data."""
    return {symbol for symbol in free_symbols(val) if _is_unbacked_name(symbol.name)}


def has_free_unbacked_symbols(val: Any) -> bool:
    """Whether a value has symbols that depend on data."""
    return bool(free_unbacked_symbols(val))


def compute_unbacked_bindings(
    shape_env: ShapeEnv | None,
    example_value: Any,
    old_example_value: Any = None,
    peek: bool = False,
) -> dict | None:
    """{unbacked symbol: path to it in `example_value`} for the symbols made since the last call."""
    if shape_env is None or shape_env._ignore_fresh_unbacked:
        return None
    pending = {str(symbol): symbol for symbol in shape_env.pending_fresh_unbacked_symbols}
    if not pending:
        return None
    if not peek:
        shape_env.pending_fresh_unbacked_symbols.clear()
    found: dict = {}
    _find_paths(example_value, (), pending, found)
    missing = [name for name in pending if name not in found]
    if missing:
        raise PendingUnbackedSymbolNotFound(
            f"Pending unbacked symbols {missing} not in returned outputs {example_value}"
        )
    return {pending[name].expr: path for name, path in found.items()}


def _find_paths(value: Any, path: tuple, pending: dict, found: dict) -> None:
    from torch.utils import _pytree as pytree

    if isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            _find_paths(item, (*path, pytree.SequenceKey(i)), pending, found)
    elif isinstance(value, torch.Tensor):
        geometry = {"size": value.size(), "stride": value.stride()}
        for name, numbers in geometry.items():
            for i, item in enumerate(numbers):
                step = (*path, CallMethodKey(name), pytree.SequenceKey(i))
                _find_paths(item, step, pending, found)
        step = (*path, CallMethodKey("storage_offset"))
        _find_paths(value.storage_offset(), step, pending, found)
    elif isinstance(value, SymTypes):
        _note_path(value, path, pending, found)


def _note_path(value: Any, path: tuple, pending: dict, found: dict) -> None:
    kind, payload, parts = value.node._tree()
    if kind == "symbol" and payload in pending:
        found.setdefault(payload, path)
    elif kind == "eq" and len(parts) == 2 and str(parts[0]) in pending:
        found.setdefault(str(parts[0]), (*path, ConvertIntKey()))
    elif kind == "sum" and payload[0] == 0 and len(parts) == 1 and str(parts[0]) in pending:
        found.setdefault(str(parts[0]), (*path, DivideByKey(payload[1])))


def resolve_unbacked_bindings(shape_env: ShapeEnv | None, bindings: dict | None) -> dict | None:
    """Bindings with symbols renamed that were found to be others."""
    if bindings is None or shape_env is None:
        return bindings
    return {shape_env.unbacked_renamings.get(s, s): path for s, path in bindings.items()}


def rebind_unbacked(shape_env: ShapeEnv, n: Any, result: Any) -> None:
    """After a graph was run again: the new symbols of a node's result are its old ones."""
    bindings = resolve_unbacked_bindings(shape_env, n.meta.get("unbacked_bindings")) or {}
    for symbol, path in bindings.items():
        value = result
        for key in path:
            value = key.get(value)
        if isinstance(value, SymInt) and value.node._tree()[0] == "symbol":
            shape_env._add_guard(value.node.eq(shape_env._node_of_symbol(symbol)))


# ---- graphs
def fx_placeholder_vals(gm: torch.fx.GraphModule) -> list:
    """The example values of a graph's inputs."""
    return [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]


def fx_placeholder_targets(gm: torch.fx.GraphModule) -> list[str]:
    """The names of a graph's inputs."""
    return [n.target for n in gm.graph.nodes if n.op == "placeholder"]


def is_symbol_binding_fx_node(node: torch.fx.Node) -> "sympy.Symbol | None":
    """The symbol that an input of a graph is."""
    value = node.meta.get("val")
    if isinstance(value, SymInt) and value.node._tree()[0] == "symbol":
        unbacked = _is_unbacked_name(str(value.node))
        if node.op == "placeholder" or unbacked:
            return value.node.expr
    return None


def is_accessor_node(node: torch.fx.Node) -> bool:
    """Whether a node reads the geometry of a tensor."""
    aten = torch.ops.aten
    accessors = (
        aten.sym_size.int,
        aten.sym_stride.int,
        aten.sym_storage_offset.default,
        aten.sym_numel.default,
    )
    return node.op == "call_function" and node.target in accessors


# ---- sympy
def canonicalize_bool_expr(expr: "sympy.Basic") -> "sympy.Basic":
    """A relation with its constant on the right, as `<`, `<=`, `==` or `!=`."""
    import sympy

    if not isinstance(expr, (sympy.And, sympy.Or, sympy.Not, sympy.core.relational.Relational)):
        return expr
    if isinstance(expr, (sympy.And, sympy.Or)):
        return type(expr)(*(canonicalize_bool_expr(arg) for arg in expr.args))
    if isinstance(expr, sympy.Not):
        return sympy.Not(canonicalize_bool_expr(expr.args[0]))
    left, right = expr.lhs, expr.rhs
    swap = {sympy.Gt: sympy.Lt, sympy.Ge: sympy.Le}
    kind = type(expr)
    if kind in swap:
        kind, left, right = swap[kind], right, left
    constant, rest = (left - right).as_coeff_Add()
    return kind(rest, -constant)


def _symbol_printer() -> Callable[[Any], str]:
    from sympy.printing.str import StrPrinter

    return StrPrinter().doprint


class DynamicDimConstraintPrinter:
    """Prints conditions on sizes with the names of their sources."""

    def __init__(self, symbol_to_source: dict, source_name_to_debug_name: dict) -> None:
        self.symbol_to_source = symbol_to_source
        self.source_name_to_debug_name = source_name_to_debug_name

    def doprint(self, expr: "sympy.Basic") -> str:
        """The text of a condition."""
        import sympy

        names = {}
        for symbol in sorted(expr.free_symbols, key=str):
            sources = self.symbol_to_source.get(symbol)
            if not sources:
                raise AssertionError(f"Unknown symbol {symbol} created by constraints solver")
            name = sources[0].name()
            names[symbol] = sympy.Symbol(self.source_name_to_debug_name.get(name, name))
        return _symbol_printer()(expr.xreplace(names))


class DimConstraints:
    """Conditions on the sizes of inputs, collected to be solved for each dimension."""

    def __init__(
        self,
        symbol_to_source: dict,
        var_to_val: dict,
        marked_dynamic: Iterable,
        source_name_to_debug_name: dict,
    ) -> None:
        self._symbol_to_source = symbol_to_source
        self._var_to_val = var_to_val
        self._marked_dynamic = set(marked_dynamic)
        self._printer = DynamicDimConstraintPrinter(symbol_to_source, source_name_to_debug_name)
        self._conditions: list = []
        self._static: set = set()
        self._dynamic: set = set()

    def add(self, expr: "sympy.Basic") -> bool:
        """Notes a condition; whether it says anything."""
        import sympy

        if expr == sympy.true:
            return False
        self._conditions.append(expr)
        return True

    def add_equality(self, source: Any, expr: "sympy.Basic") -> None:
        """Notes that a size equals an expression."""
        name = source.name()
        (self._static if expr.is_number else self._dynamic).add(f"{name} == {expr}")

    def solve(self) -> None:
        """Sorts conditions into sizes that are fixed and relations that stay."""
        import sympy

        by_symbol: dict = {}
        for condition in self._conditions:
            symbols = condition.free_symbols
            if len(symbols) == 1:
                by_symbol.setdefault(next(iter(symbols)), []).append(condition)
            else:
                self._dynamic.add(self._printer.doprint(condition))
        for conditions in by_symbol.values():
            solution = sympy.And(*conditions).simplify()
            fixed = isinstance(solution, sympy.Eq) and solution.rhs.is_number
            (self._static if fixed else self._dynamic).add(self._printer.doprint(solution))

    def forced_specializations(self) -> dict[str, str]:
        """{a size: the number it has to be}"""
        return dict(text.split(" == ", 1) for text in self._static if " == " in text)
