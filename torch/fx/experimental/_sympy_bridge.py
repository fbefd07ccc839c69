"""Symbolic expressions as sympy objects and back, for code that asks for them. The engine itself is
torch._C's; importing this module does not import sympy, using it does."""

import operator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import sympy

_RELATIONS = {"eq": "Eq", "ne": "Ne", "lt": "Lt", "le": "Le"}
_MIRRORED = {"lt": "Gt", "le": "Ge"}
_NAMED = {
    "floordiv": "FloorDiv",
    "mod": "Mod",
    "min": "Min",
    "max": "Max",
    "pow": "PowByNatural",
    "lshift": "LShift",
    "rshift": "RShift",
    "bitand": "BitwiseFn_bitwise_and",
    "bitor": "BitwiseFn_bitwise_or",
    "bitxor": "BitwiseFn_bitwise_xor",
    "trunc": "TruncToInt",
    "floor": "FloorToInt",
    "ceil": "CeilToInt",
    "round": "RoundToInt",
    "to_float": "ToFloat",
    "float_pow": "FloatPow",
    "float_mod": "PythonMod",
    "float_min": "Min",
    "float_max": "Max",
}


def expr_of_node(node: Any) -> "sympy.Basic":
    """The sympy object of a node's expression, as it was built."""
    import sympy

    from torch.utils._sympy import functions

    kind, payload, parts = node._tree()
    if kind == "symbol":
        return node.shape_env._sympy_symbol(payload)
    if kind in ("integer", "real", "truth"):
        return {"integer": sympy.Integer, "real": sympy.Float, "truth": sympy.sympify}[kind](
            payload
        )
    args = [expr_of_node(part) for part in parts]
    if kind == "sum":
        terms = [factor * arg for factor, arg in zip(payload[1:], args, strict=True)]
        return sympy.Add(payload[0], *terms)
    if kind in ("product", "float_mul"):
        return sympy.Mul(*args)
    if kind == "float_add":
        return sympy.Add(*args)
    if kind == "truediv":
        return _quotient(args)
    if kind == "function":
        return getattr(functions, f"OpaqueUnaryFn_{payload}")(*args)
    if kind == "where":
        return sympy.Piecewise((args[1], args[0]), (args[2], True))
    if kind in _RELATIONS:
        return _relation(kind, args)
    if kind in ("and", "or", "not"):
        return {"and": sympy.And, "or": sympy.Or, "not": sympy.Not}[kind](*args)
    return getattr(functions, _NAMED[kind])(*args)


def _relation(kind: str, args: list) -> "sympy.Basic":
    import sympy

    if kind in _MIRRORED and args[0].is_number:
        return getattr(sympy, _MIRRORED[kind])(args[1], args[0])
    return getattr(sympy, _RELATIONS[kind])(*args)


def _quotient(args: list) -> "sympy.Basic":
    """The division of two integers has a name of its own."""
    from torch.utils._sympy import functions

    def whole(arg: Any) -> Any:
        if isinstance(arg, functions.ToFloat):
            return arg.args[0]
        return int(arg) if arg.is_Float and arg == int(arg) else None

    parts = [whole(arg) for arg in args]
    if None in parts:
        return functions.FloatTrueDiv(*args)
    return functions.IntTrueDiv(*parts)


_BINARY = {
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
    "Min": "sym_min",
    "Max": "sym_max",
    "PowByNatural": "pow",
    "FloatPow": "pow",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitwiseFn_bitwise_and": "bitwise_and",
    "BitwiseFn_bitwise_or": "bitwise_or",
    "BitwiseFn_bitwise_xor": "bitwise_xor",
    "FloatTrueDiv": "truediv",
    "IntTrueDiv": "truediv",
    "Equality": "eq",
    "Unequality": "ne",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
    "And": "and_",
    "Or": "or_",
    "Add": "add",
    "Mul": "mul",
}
_UNARY = {
    "TruncToInt": "trunc",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
    "ToFloat": "sym_float",
    "Not": "sym_not",
    "Abs": "abs",
    "floor": "floor",
    "ceiling": "ceil",
}


def node_of_expr(shape_env: Any, expr: Any) -> Any:
    """The node of a sympy object, or of a plain or symbolic number, in `shape_env`."""
    if isinstance(expr, torch._C._SymNode):
        return expr
    if isinstance(expr, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return expr.node
    if isinstance(expr, (bool, int, float)):
        return shape_env._constant(expr)
    if expr.is_Symbol:
        return shape_env._node_of_symbol(expr)
    if expr.is_Boolean and not expr.args:
        return shape_env._constant(bool(expr))
    if expr.is_Integer or expr.is_Float:
        return shape_env._constant(int(expr) if expr.is_Integer else float(expr))
    args = [node_of_expr(shape_env, arg) for arg in expr.args]
    return _apply(shape_env, expr, args)


def _apply(shape_env: Any, expr: Any, args: list) -> Any:
    name = expr.func.__name__
    if name in _BINARY:
        out = args[0]
        for arg in args[1:]:
            out = getattr(out, _BINARY[name])(arg)
        return out
    if name in _UNARY:
        return getattr(args[0], _UNARY[name])()
    if name == "Pow":
        return args[0].pow(args[1])
    if name.startswith("OpaqueUnaryFn_"):
        return args[0]._function(name[len("OpaqueUnaryFn_") :])
    if name == "Piecewise":
        return _choice(shape_env, expr)
    if name == "Rational":
        return args[0].truediv(args[1])
    raise NotImplementedError(f"symbolic expression: {name} is not implemented")


def _choice(shape_env: Any, expr: Any) -> Any:
    pairs = [(node_of_expr(shape_env, value), condition) for value, condition in expr.args]
    out = pairs[-1][0]
    for value, condition in reversed(pairs[:-1]):
        out = node_of_expr(shape_env, condition).sym_ite(value, out)
    return out


def make_node(
    expr: Any,
    shape_env: Any,
    pytype: type,
    hint: Any = None,
    constant: Any = None,
    fx_node: Any = None,
) -> Any:
    """SymNode(...): the node of an expression, of the type that is asked for."""
    if shape_env is None:
        raise ValueError("SymNode() expects a ShapeEnv, got None")
    node = node_of_expr(shape_env, expr)
    if node.pytype is not pytype:
        node = _converted(shape_env, node, pytype)
    if fx_node is not None:
        node.fx_node = fx_node
    return node


def _converted(shape_env: Any, node: Any, pytype: type) -> Any:
    if pytype is float:
        return node.sym_float()
    if pytype is bool:
        return node.ne(0)
    if node.pytype is float:
        return node.trunc()
    return node.sym_ite(shape_env._constant(1), shape_env._constant(0))


def plain_operator(name: str) -> Any:
    """operator.NAME, math.NAME or torch.sym_NAME: the function behind the method of a node."""
    import math

    for module in (torch, operator, math):
        if hasattr(module, name):
            return getattr(module, name)
    raise KeyError(name)
