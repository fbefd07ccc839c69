"""Names of dtypes, layouts and memory formats in the format, and expressions of symbols as text.
The text is what sympy.srepr writes; it is read as a tree and never evaluated."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import torch
from torch._export.serde import schema
from torch._export.serde.schema import Layout, MemoryFormat, ScalarType, SchemaError

if TYPE_CHECKING:
    import sympy

    from torch.fx.experimental.symbolic_shapes import ShapeEnv

__all__ = ["DTYPES", "LAYOUTS", "MEMORY_FORMATS", "Symbols", "expr_text", "invert"]

# dtypes in the order of their numbers (schema.ScalarType).
_DTYPES = "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool"
_DTYPES += " bfloat16 uint16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
_DTYPES += " float8_e8m0fnu uint32 uint64"
DTYPES = {
    getattr(torch, name): number
    for name, number in zip(_DTYPES.split(), list(ScalarType)[1:], strict=True)
    if hasattr(torch, name)
}
LAYOUTS = {
    torch.strided: Layout.Strided,
    torch.sparse_coo: Layout.SparseCoo,
    torch.sparse_csr: Layout.SparseCsr,
    torch.sparse_csc: Layout.SparseCsc,
    torch.sparse_bsr: Layout.SparseBsr,
    torch.sparse_bsc: Layout.SparseBsc,
}
MEMORY_FORMATS = {
    torch.contiguous_format: MemoryFormat.ContiguousFormat,
    torch.channels_last: MemoryFormat.ChannelsLast,
    torch.channels_last_3d: MemoryFormat.ChannelsLast3d,
    torch.preserve_format: MemoryFormat.PreserveFormat,
}


def invert(table: dict, number: object, what: str) -> object:
    """The value that a number of the format stands for."""
    for value, known in table.items():
        if known == number:
            return value
    raise SchemaError(f"no {what} has the number {number}")


# ---- expressions

_SYMPY = "Add Mul Pow Max Min Equality Unequality Eq Ne GreaterThan LessThan StrictGreaterThan "
_SYMPY += "StrictLessThan Ge Le Gt Lt And Or Not Piecewise"
_OWN = "FloorDiv ModularIndexing Mod PythonMod CleanDiv CeilDiv IntTrueDiv FloatTrueDiv ToFloat "
_OWN += "TruncToInt TruncToFloat CeilToInt FloorToInt RoundToInt PowByNatural FloatPow Where "
_OWN += "LShift RShift Identity OpaqueUnaryFn_sqrt"


def expr_text(expr: sympy.Expr) -> str:
    """An expression as text."""
    import sympy

    return sympy.srepr(expr)


class Symbols:
    """Symbols of a file by name, and numbers of a shape environment for expressions of them."""

    def __init__(self, env: ShapeEnv, ranges: dict[str, schema.RangeConstraint]) -> None:
        self.env, self.ranges = env, ranges
        self.hints: dict[str, int] = {}

    def number(self, expr: schema.SymExpr, kind: type) -> object:
        """The symbolic number of an expression."""
        from torch.fx.experimental import _sympy_bridge as bridge
        from torch.fx.experimental._shape_env import _number

        hint = None if expr.hint is None else expr.hint.value
        found = self.parse(expr.expr_str, hint)
        node = bridge.node_of_expr(self.env, found)
        if kind is torch.SymFloat and not node.is_float():
            node = node.sym_float()
        return _number(node)

    def parse(self, text: str, hint: object = None) -> sympy.Expr:
        """The expression of a text."""
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise SchemaError(f"not an expression: {text!r:.80}") from error
        return self._build(tree, text, hint, 0)

    def _build(self, tree: ast.AST, text: str, hint: object, depth: int) -> sympy.Expr:
        import sympy

        from torch.utils._sympy import functions

        if depth > 100 or not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise SchemaError(f"not an expression: {text!r:.80}")
        name = tree.func.id
        if name == "Symbol":
            return self.symbol(_constant(tree.args[0], str, text), hint)
        if name == "Integer":
            return sympy.Integer(_integer(tree.args[0], text))
        if name == "Rational":
            return sympy.Rational(*(_integer(arg, text) for arg in tree.args))
        if name == "Float":
            return sympy.Float(_constant(tree.args[0], str, text), precision=53)
        parts = [self._build(arg, text, None, depth + 1) for arg in tree.args]
        if name in _SYMPY.split():
            return getattr(sympy, name)(*parts)
        if name in _OWN.split() and hasattr(functions, name):
            return getattr(functions, name)(*parts)
        raise SchemaError(f"unknown function {name} in {text!r:.80}")

    def symbol(self, name: str, hint: object = None) -> sympy.Symbol:
        """The symbol of a name, made when it is first met."""
        if not name.isidentifier() or len(name) > 64:
            raise SchemaError(f"not a symbol: {name!r:.80}")
        env = self.env
        if name not in env._nodes:
            self._make(name, hint)
        return env._sympy_symbol(name)

    def _make(self, name: str, hint: object) -> None:
        env = self.env
        prefix = name.rstrip("0123456789")
        is_float = prefix in ("zf", "zuf")
        backed = prefix in ("s", "zf") and hint is not None
        allowed = self.ranges.get(name)
        low = high = None
        if allowed is not None and not is_float:
            low, high = allowed.min_val, allowed.max_val
        if backed and not is_float:
            low = max(low or 0, 2) if hint >= 2 else low
            high = None if high is not None and high < hint else high
            low = None if low is not None and low > hint else low
        kind = float if is_float else int
        node = env._symbol(name, kind, hint if backed else None, low, high, False)
        env._nodes[name] = node
        env._positive[name] = prefix == "s"
        env._sources[name] = []
        digits = name[len(prefix) :]
        if digits and len(digits) < 10:  # later symbols of this environment get other names
            import itertools

            first = next(env._counters[prefix])
            env._counters[prefix] = itertools.count(max(first, int(digits) + 1))


def _constant(node: ast.AST, kind: type, text: str) -> object:
    if isinstance(node, ast.Constant) and type(node.value) is kind:
        return node.value
    raise SchemaError(f"not an expression: {text!r:.80}")


def _integer(node: ast.AST, text: str) -> int:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_integer(node.operand, text)
    value = _constant(node, int, text)
    if value.bit_length() > 128:
        raise SchemaError(f"a number too large in {text!r:.80}")
    return value
