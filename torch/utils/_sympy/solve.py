"""Solves a relation for one expression in it."""

import sympy

from torch.utils._sympy.functions import FloorDiv

_SIDES = ((sympy.Gt, sympy.Lt), (sympy.Ge, sympy.Le))
_MIRROR = {kind: kind for kind in (sympy.Eq, sympy.Ne)} | {
    kind: other for pair in _SIDES for kind, other in (pair, pair[::-1])
}
INEQUALITY_TYPES = tuple(kind for side in zip(*_SIDES, strict=True) for kind in side)


def mirror_rel_op(type_: type) -> type | None:
    """The relation with its sides exchanged."""
    return _MIRROR.get(type_)


def try_solve(
    expr: sympy.Basic,
    thing: sympy.Basic,
    trials: int = 5,
    floordiv_inequality: bool = True,
) -> tuple[sympy.Rel, sympy.Expr] | None:
    """(thing OP rest, rest) that is equivalent to `expr`, or None. `trials` bounds the number of
    steps."""
    mirror = mirror_rel_op(type(expr))
    if mirror is None:
        return None
    left, right = expr.lhs.has(thing), expr.rhs.has(thing)
    if left == right:
        return None
    relation = expr if left else mirror(expr.rhs, expr.lhs)
    for _ in range(trials):
        if relation.lhs == thing:
            return relation, relation.rhs
        step = _step(relation, thing, floordiv_inequality)
        if step is None or not isinstance(step, sympy.Rel) or not step.lhs.has(thing):
            return None
        relation = step
    return (relation, relation.rhs) if relation.lhs == thing else None


def _step(relation: sympy.Rel, thing: sympy.Basic, floordiv: bool) -> sympy.Basic | None:
    """One layer around the thing moved to the other side."""
    left = relation.lhs
    if isinstance(left, sympy.Add):
        others = left.func(*(arg for arg in left.args if not arg.has(thing)))
        return relation.func(left - others, relation.rhs - others, evaluate=True)
    if isinstance(left, sympy.Mul):
        return _divide(relation, thing)
    if isinstance(left, FloorDiv) and floordiv:
        return _undo_floordiv(relation, thing)
    return None


def _divide(relation: sympy.Rel, thing: sympy.Basic) -> sympy.Basic | None:
    others = sympy.Mul(*(arg for arg in relation.lhs.args if not arg.has(thing)))
    op = relation.func
    if isinstance(relation, INEQUALITY_TYPES):
        if others.is_negative:
            op = mirror_rel_op(op)
        elif not others.is_positive:
            return None
    return op(relation.lhs / others, relation.rhs / others)


def _undo_floordiv(relation: sympy.Rel, thing: sympy.Basic) -> sympy.Basic | None:
    """a // b OP c as a relation of a, for positive b and an integer c."""
    (base, divisor), bound = relation.lhs.args, relation.rhs
    if not base.has(thing) or not divisor.is_positive or not bound.is_integer:
        return None
    low, high = bound * divisor, (bound + 1) * divisor
    kinds = {
        sympy.Eq: lambda: sympy.And(sympy.Ge(base, low), sympy.Lt(base, high)),
        sympy.Ne: lambda: sympy.Or(sympy.Lt(base, low), sympy.Ge(base, high)),
        sympy.Gt: lambda: sympy.Ge(base, high),
        sympy.Ge: lambda: sympy.Ge(base, low),
        sympy.Lt: lambda: sympy.Lt(base, low),
        sympy.Le: lambda: sympy.Lt(base, high),
    }
    return kinds[type(relation)]()
