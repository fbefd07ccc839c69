"""Runs a sympy expression under an analysis: an object with one method per operation."""

from collections.abc import Callable

import sympy
from sympy.logic import boolalg

import torch
from torch.utils._sympy import functions as fn

_MANY = {
    sympy.Add: "add",
    sympy.Mul: "mul",
    sympy.Min: "minimum",
    sympy.Max: "maximum",
    fn.Min: "minimum",
    fn.Max: "maximum",
    sympy.And: "and_",
    sympy.Or: "or_",
}
_FIXED = {
    fn.FloorDiv: "floordiv",
    fn.CleanDiv: "floordiv",
    fn.Mod: "mod",
    fn.PythonMod: "python_mod",
    fn.FloatTrueDiv: "truediv",
    fn.IntTrueDiv: "int_truediv",
    fn.FloatPow: "pow",
    fn.PowByNatural: "pow_by_natural",
    fn.LShift: "lshift",
    fn.RShift: "rshift",
    fn.Where: "where",
    fn.Identity: "identity",
    fn.RoundDecimal: "round_decimal",
    fn.BitwiseFn_bitwise_and: "bitwise_and",
    fn.BitwiseFn_bitwise_or: "bitwise_or",
    sympy.Not: "not_",
    sympy.Eq: "eq",
    sympy.Ne: "ne",
    sympy.Lt: "lt",
    sympy.Gt: "gt",
    sympy.Le: "le",
    sympy.Ge: "ge",
    sympy.Abs: "abs",
    sympy.exp: "exp",
    sympy.log: "log",
}
# Operations whose methods take the dtype of the result.
_TO_INT = {
    fn.TruncToInt: "trunc_to_int",
    fn.FloorToInt: "floor_to_int",
    fn.CeilToInt: "ceil_to_int",
    fn.RoundToInt: "round_to_int",
    sympy.floor: "floor_to_int",
    sympy.ceiling: "ceil_to_int",
}


def _constant(analysis: type, expr: sympy.Basic) -> object:
    if expr in (sympy.true, sympy.false):
        return analysis.constant(bool(expr), torch.bool)
    if expr.is_Integer or expr.is_integer:
        return analysis.constant(int(expr) if expr.is_finite else expr, torch.int64)
    return analysis.constant(float(expr), torch.float64)


def _run(analysis: type, expr: sympy.Basic, args: list) -> object:
    kind = expr.func
    if kind in _MANY:
        method = getattr(analysis, _MANY[kind])
        out = args[0]
        for arg in args[1:]:
            out = method(out, arg)
        return out
    if kind in _FIXED:
        return getattr(analysis, _FIXED[kind])(*args)
    if kind in _TO_INT:
        return getattr(analysis, _TO_INT[kind])(*args, torch.int64)
    if kind is fn.ToFloat:
        return analysis.to_dtype(args[0], torch.float64)
    if kind is sympy.Pow:
        whole = expr.args[1].is_Integer and expr.args[1] >= 0
        if expr.args[1] == -1:
            return analysis.reciprocal(args[0])
        return (analysis.pow_by_natural if whole else analysis.pow)(*args)
    name = kind.__name__
    if name.startswith("OpaqueUnaryFn_"):
        return getattr(analysis, name[len("OpaqueUnaryFn_") :])(*args)
    raise NotImplementedError(f"sympy_interp: {name} is not implemented")


def sympy_interp(
    analysis: type,
    env: dict,
    expr: "sympy.Basic | boolalg.Boolean",
    *,
    index_dtype: torch.dtype = torch.int64,
    missing_handler: Callable[[sympy.Symbol], object] | None = None,
) -> object:
    """The value of an expression; `env` has those of its symbols."""
    if isinstance(expr, sympy.Symbol):
        if expr not in env and missing_handler is not None:
            return missing_handler(expr)
        return env[expr]
    if isinstance(expr, (sympy.Number, boolalg.BooleanAtom, sympy.NumberSymbol)):
        return _constant(analysis, expr)
    if expr.func is sympy.Piecewise:
        return _choice(analysis, env, expr, missing_handler)
    args = [sympy_interp(analysis, env, arg, missing_handler=missing_handler) for arg in expr.args]
    return _run(analysis, expr, args)


def _choice(
    analysis: type,
    env: dict,
    expr: sympy.Basic,
    missing_handler: Callable[[sympy.Symbol], object] | None,
) -> object:
    def value(part: sympy.Basic) -> object:
        return sympy_interp(analysis, env, part, missing_handler=missing_handler)

    out = value(expr.args[-1][0])
    for result, condition in reversed(expr.args[:-1]):
        out = analysis.where(value(condition), value(result), out)
    return out
