"""torch.utils._sympy: functions compute as Python does, ranges hold every value of an operation."""

import itertools
import math
import pickle

import pytest

sympy = pytest.importorskip("sympy")

from torch.utils._sympy.functions import CeilDiv, FloorDiv, Mod, OpaqueUnaryFn_cos  # noqa: E402
from torch.utils._sympy.interp import sympy_interp  # noqa: E402
from torch.utils._sympy.numbers import int_oo  # noqa: E402
from torch.utils._sympy.reference import PythonReferenceAnalysis  # noqa: E402
from torch.utils._sympy.solve import try_solve  # noqa: E402
from torch.utils._sympy.value_ranges import (  # noqa: E402
    ValueRangeAnalysis,
    ValueRanges,
    bound_sympy,
)

NUMBERS = (-7, -2, -1, 1, 3, 8)


def test_divisions_of_integers_round_as_python_does():
    for a, b in itertools.product(NUMBERS, repeat=2):
        assert FloorDiv(sympy.Integer(a), sympy.Integer(b)) == a // b
        assert CeilDiv(sympy.Integer(a), sympy.Integer(b)) == -(-a // b)
        assert Mod(sympy.Integer(a), sympy.Integer(b)) == a % b


def test_the_integer_infinity_bounds_integers_and_lies_below_the_real_one():
    assert int_oo + 1 is int_oo and 2 - int_oo is -int_oo
    assert int_oo > 2**80 and int_oo < sympy.oo and -int_oo > -sympy.oo


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "minimum", "bitwise_and"])
def test_ranges_hold_every_value_of_an_operation(name):
    plain = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "floordiv": lambda x, y: x // y,
        "minimum": min,
        "bitwise_and": lambda x, y: x & y,
    }[name]
    spans = [(low, high) for low in range(-4, 4) for high in range(low, 4)]
    for x, y in itertools.product(spans[::3], spans[::5]):
        if name == "floordiv" and y[0] <= 0 <= y[1]:
            continue
        found = getattr(ValueRangeAnalysis, name)(ValueRanges(*x), ValueRanges(*y))
        for a, b in itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1)):
            assert plain(a, b) in found, (name, x, y, found)


def test_an_expression_runs_on_python_numbers_and_has_a_range():
    x = sympy.Symbol("x", integer=True, positive=True)
    expr = FloorDiv(3 * x + 1, 4) - x
    assert sympy_interp(PythonReferenceAnalysis, {x: 9}, expr) == (3 * 9 + 1) // 4 - 9
    assert bound_sympy(2 * x + 1) == ValueRanges(3, int_oo)


def test_a_relation_is_solved_for_a_symbol_where_that_is_possible():
    a, b = sympy.symbols("a b", integer=True)
    assert try_solve(sympy.Eq(a + 5, b - 5), a) == (sympy.Eq(a, b - 10), b - 10)
    assert try_solve(sympy.Lt(a * b, 1), a) is None


def test_functions_of_numbers_are_pickled_and_compute_floats():
    call = OpaqueUnaryFn_cos(sympy.Symbol("a"))
    assert pickle.loads(pickle.dumps(call)) == call
    assert float(OpaqueUnaryFn_cos(sympy.Float(0.5))) == math.cos(0.5)
