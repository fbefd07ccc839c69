"""What the inputs of an exported program have to be: sizes that were fixed, sizes that are
expressions of others, ranges, constants, and conditions that the trace took. The conditions are
text, because archives hold them as text; they are read by a small evaluator and never run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.utils._pytree as pytree
from torch.export.graph_signature import ConstantArgument, InputKind

if TYPE_CHECKING:
    import sympy

    from torch.export.exported_program import ExportedProgram

__all__ = ["InputChecks", "evaluate", "input_texts", "is_input_check"]

_BINARY: dict[type, Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "max": max,
    "min": min,
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
}
_GEOMETRY = ("size", "stride", "storage_offset")
_MAX_NUMBER = 1 << 128


def is_input_check(hook: object) -> bool:
    """Whether a hook of a module is the check of inputs that programs have, and nothing else."""
    return getattr(hook, "_checks_inputs", False)


def evaluate(text: str, names: dict[str, object]) -> object:
    """The value of an expression of comparisons, arithmetic and sizes of inputs. Everything else
    raises ValueError."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
        raise ValueError(f"not a condition: {text!r}") from error
    return _value(tree.body, names, text)


def _value(node: ast.AST, names: dict[str, object], text: str) -> object:
    match node:
        case ast.Constant(value=value) if isinstance(value, (int, float, str, bool, type(None))):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Subscript(value=held, slice=index):
            return _value(held, names, text)[_value(index, names, text)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(type(op), _value(left, names, text), _value(right, names, text), text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, text)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names, text)
        case ast.BoolOp(op=op, values=parts):
            every = all if isinstance(op, ast.And) else any
            return every(_value(part, names, text) for part in parts)
        case ast.Compare():
            return _compare(node, names, text)
        case ast.Call(func=ast.Attribute(value=held, attr=attr), args=[]) if attr in _GEOMETRY:
            tensor = _value(held, names, text)
            if isinstance(tensor, torch.Tensor):
                return getattr(tensor, attr)()
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(arg, names, text) for arg in args))
    raise ValueError(f"cannot evaluate {ast.dump(node)[:80]} in {text!r}")


def _bounded(op: type, left: object, right: object, text: str) -> object:
    if op is ast.Pow and not (isinstance(right, int) and 0 <= right <= 8):
        raise ValueError(f"no such power in {text!r}")
    if not all(isinstance(v, (int, float, torch.SymInt, torch.SymFloat)) for v in (left, right)):
        raise ValueError(f"arithmetic on {type(left)} and {type(right)} in {text!r}")
    found = _BINARY[op](left, right)
    if isinstance(found, int) and abs(found) > _MAX_NUMBER:
        raise ValueError(f"a number too large in {text!r}")
    return found


def _compare(node: ast.Compare, names: dict[str, object], text: str) -> bool:
    left = _value(node.left, names, text)
    for op, other in zip(node.ops, node.comparators, strict=True):
        right = _value(other, names, text)
        if type(op) not in _BINARY:
            raise ValueError(f"cannot evaluate {ast.dump(op)} in {text!r}")
        if not _BINARY[type(op)](left, right):
            return False
        left = right
    return True


def input_texts(ep: ExportedProgram) -> list[str]:
    """x, y[0], z['k']: the leaves of the arguments as the caller writes them."""
    signature = ep.module_call_graph[0].signature
    in_spec = signature.in_spec
    names = signature.forward_arg_names
    tree = pytree.tree_unflatten(list(range(in_spec.num_leaves)), in_spec)
    found = []
    for path, _ in pytree.tree_leaves_with_path(tree):
        if path[0].idx == 0:
            place = path[1].idx
            known = names is not None and place < len(names)
            first = names[place] if known else f"args[{place}]"
        else:
            first = str(path[1].key)
        found.append(first + pytree.keystr(path[2:]))
    return found


class InputChecks:
    """The conditions of one program, ready to be asked."""

    def __init__(self, ep: ExportedProgram) -> None:
        signature = ep.graph_signature
        self.specs = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
        nodes = {n.name: n for n in ep.graph.find_nodes(op="placeholder")}
        self.values = [nodes[s.arg.name].meta.get("val") for s in self.specs]
        self.texts = input_texts(ep)
        self.ranges = {str(k): v for k, v in ep.range_constraints.items()}
        self.code = list(ep._guards_code)
        entry = ep.module_call_graph[0].signature
        self.in_spec = entry.in_spec
        self.names = entry.forward_arg_names

    def check(self, leaves: Sequence[object]) -> None:
        """Raises AssertionError where the leaves of a call's arguments do not fit."""
        known: dict[str, tuple[int, str]] = {}
        later: list[tuple[object, int, str]] = []
        rows = zip(self.specs, self.values, self.texts, leaves, strict=True)
        for spec, value, text, leaf in rows:
            if isinstance(spec.arg, ConstantArgument):
                _check_constant(spec.arg.value, leaf, text)
            elif isinstance(value, torch.Tensor):
                self._check_tensor(value, leaf, text, known, later)
            elif isinstance(value, torch.SymInt):
                self._check_size(value, leaf, text, known, later)
        for size, got, text in later:
            self._check_expression(size, got, text, known)
        if self.code:
            self._check_code(leaves)

    def _check_tensor(
        self,
        value: torch.Tensor,
        leaf: object,
        text: str,
        known: dict[str, tuple[int, str]],
        later: list[tuple[object, int, str]],
    ) -> None:
        if not isinstance(leaf, torch.Tensor):
            raise AssertionError(f"Guard failed: isinstance({text}, torch.Tensor)")
        if leaf.dim() != value.dim():
            raise AssertionError(
                f"Guard failed: {text}.dim() == {value.dim()} (Expected input at {text} to have "
                f"{value.dim()} dimensions, but got {leaf.dim()})"
            )
        for dim, (size, got) in enumerate(zip(value.shape, leaf.shape, strict=True)):
            self._check_size(size, got, f"{text}.size()[{dim}]", known, later)

    def _check_size(
        self,
        size: int | torch.SymInt,
        got: int,
        text: str,
        known: dict[str, tuple[int, str]],
        later: list[tuple[object, int, str]],
    ) -> None:
        if not isinstance(size, torch.SymInt) or size.node.maybe_as_int() is not None:
            _expect(got == int(size), f"{text} == {int(size)}", text, f"equal to {size}", got)
            return
        name = str(size)
        if not name.isidentifier():
            later.append((size, got, text))
        elif name in known:
            first, place = known[name]
            _expect(got == first, f"{text} == {place}", text, f"equal to {first}", got)
        else:
            known[name] = (got, text)
            self._check_range(name, got, text)

    def _check_range(self, name: str, got: int, text: str) -> None:
        allowed = self.ranges.get(name)
        if allowed is None:
            return
        _expect_between(allowed.lower, allowed.upper, got, text)

    def _check_expression(
        self,
        size: torch.SymInt,
        got: int,
        text: str,
        known: dict[str, tuple[int, str]],
    ) -> None:
        """A size that is an expression: of known sizes, or linear in one that none tells."""
        expr = size.node.expr
        free = sorted(expr.free_symbols, key=str)
        unknown = [s for s in free if str(s) not in known]
        if len(unknown) > 1:
            return
        if not unknown:
            wanted = evaluate(str(expr), {str(s): known[str(s)][0] for s in free})
            _expect(got == wanted, f"{text} == {expr}", text, f"equal to {wanted}", got)
            return
        values = {s: int(known[str(s)][0]) for s in free if str(s) in known}
        self._solve(expr.xreplace(values), unknown[0], got, text, known)

    def _solve(
        self,
        expr: sympy.Expr,
        symbol: sympy.Symbol,
        got: int,
        text: str,
        known: dict[str, tuple[int, str]],
    ) -> None:
        scale, offset = expr.coeff(symbol, 1), expr.coeff(symbol, 0)
        if scale * symbol + offset != expr or not scale.is_Integer or not offset.is_Integer:
            return
        value, rest = divmod(got - int(offset), int(scale))
        if rest:
            raise AssertionError(
                f"Guard failed: {text} % {scale} == {offset} (Expected input at {text} = {got} to "
                f"be of the form {expr}, where {symbol} is an integer)"
            )
        known[str(symbol)] = (value, str(symbol))
        allowed = self.ranges.get(str(symbol))
        if allowed is not None:
            low, high = (int(scale) * b + int(offset) for b in (allowed.lower, allowed.upper))
            _expect_between(low, high, got, text)

    def _check_code(self, leaves: Sequence[object]) -> None:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.in_spec)
        names = list(self.names or [])
        bound = dict(zip(names, args, strict=False))
        bound.update(kwargs)
        for line in self.code:
            try:
                holds = evaluate(line, {"L": bound})
            except (KeyError, IndexError, TypeError):
                continue  # about something that this call does not have
            if not holds:
                raise AssertionError(f"Guard failed: {_shown(line)}")


def _shown(line: str) -> str:
    import re

    return re.sub(r"L\['(\w+)'\]", r"\1", line)


def _expect(holds: bool, guard: str, text: str, wanted: str, got: object) -> None:
    if not holds:
        raise AssertionError(
            f"Guard failed: {guard} (Expected input at {text} to be {wanted}, but got {got})"
        )


def _expect_between(low: object, high: object, got: int | torch.SymInt, text: str) -> None:
    """Bounds of a size; those that are infinite say nothing, also of a symbol."""
    if getattr(low, "is_Integer", isinstance(low, int)):
        _expect(got >= int(low), f"{text} >= {low}", text, f">= {low}", got)
    if getattr(high, "is_Integer", isinstance(high, int)):
        _expect(got <= int(high), f"{text} <= {high}", text, f"<= {high}", got)


def _check_constant(value: object, leaf: object, text: str) -> None:
    if isinstance(value, float) and isinstance(leaf, float) and value != value:
        return
    if value is None:
        _expect(leaf is None, f"{text} is None", text, "None", leaf)
    else:
        same = type(leaf) is type(value) and leaf == value
        _expect(same, f"{text} == {value!r}", text, f"equal to {value}", leaf)
