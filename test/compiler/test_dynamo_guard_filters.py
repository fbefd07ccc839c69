"""guard_filter_fn: which guards of a compiled function a program keeps, and what it is told."""

from __future__ import annotations

import pytest

import torch
from torch import compiler
from torch._dynamo.testing import CompileCounter

X = torch.ones(3)
SETTINGS = [1]


def graphs(fn, calls, choose=None):
    """How many graphs a row of calls makes."""
    torch._dynamo.reset()
    count = CompileCounter()
    options = None if choose is None else {"guard_filter_fn": choose}
    compiled = torch.compile(fn, backend=count, options=options, dynamic=False)
    for call in calls:
        call(compiled)
    return count.frame_count


def shifted(x, n):
    return x + 1 if n > 0 else x + n


def test_guards_on_tensors_alone_let_other_values_vary():
    calls = [lambda f: f(X, 1), lambda f: f(X, 2)]
    assert graphs(shifted, calls) == 2
    assert graphs(shifted, calls, compiler.keep_tensor_guards_unsafe) == 1
    calls.append(lambda f: f(X.double(), 1))
    assert graphs(shifted, calls, compiler.keep_tensor_guards_unsafe) == 2


def test_without_guards_the_first_graph_serves_all_calls():
    calls = [lambda f: f(X, 1), lambda f: f(X.double(), 2)]
    assert graphs(shifted, calls, compiler.skip_all_guards_unsafe) == 1


def test_guards_on_globals_can_be_left_out():
    def change(compiled):
        SETTINGS[0] += 1
        compiled(X)

    calls = [lambda f: f(X), change]
    assert graphs(lambda x: x + SETTINGS[0], calls) == 2
    assert graphs(lambda x: x + SETTINGS[0], calls, compiler.skip_guard_on_globals_unsafe) == 1


@pytest.mark.parametrize(
    ("choose", "expected"),
    [
        (None, 2),
        (compiler.skip_guard_on_inbuilt_nn_modules_unsafe, 1),
        (compiler.skip_guard_on_all_nn_modules_unsafe, 1),
    ],
)
def test_guards_on_modules_can_be_left_out(choose, expected):
    model = torch.nn.Sequential(torch.nn.Dropout(0.0), torch.nn.Linear(3, 3))

    def change(compiled):
        model[0].p = 0.5
        compiled(X, model)

    calls = [lambda f: f(X, model), change]
    assert graphs(lambda x, m: m(x), calls, choose) == expected


def test_filter_sees_names_kinds_and_values_and_answers_once_for_each():
    seen = {}

    def choose(entries):
        seen.update({entry.name: (entry.guard_type, entry.value) for entry in entries})
        return [True for _ in entries]

    graphs(shifted, [lambda f: f(X, 3)], choose)
    assert seen["L['n']"] == ("CONSTANT_MATCH", 3)
    assert seen["L['x']"][0] == "TENSOR_MATCH"
    with pytest.raises(AssertionError, match="answered 0 times to 2 guards"):
        graphs(shifted, [lambda f: f(X, 3)], lambda entries: [])


def test_explain_lists_the_guards_and_counts_breaks_between_graphs():
    def broken(x, n):
        y = x + n
        torch._dynamo.graph_break()
        torch._dynamo.graph_break()
        return y * 2

    found = torch._dynamo.explain(broken)(X, 2)
    assert (found.graph_count, found.graph_break_count) == (2, 1)
    assert len(found.break_reasons) == 2
    assert "L['n']" in {guard.name for guard in found.out_guards}
    assert "CONSTANT_MATCH L['n']" in str(found)
