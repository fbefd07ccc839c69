"""What surrounds the tracer at run time: guards on models that change between calls, objects that
are one where they were two, what stays alive, what is imported."""

from __future__ import annotations

import collections
import copy
import functools
import gc
import importlib.util
import pathlib
import subprocess
import sys
import types
import weakref
from collections.abc import Callable

import pytest

import torch
import torch._dynamo

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def load_tool(path: str) -> object:
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), TOOLS / f"{path}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ---- models that change


@pytest.mark.parametrize("seed", range(3))
def test_model_changed_at_random_between_calls_computes_as_plain(seed: int) -> None:
    assert load_tool("fuzz/mutations").run(40, seed) == []


class Holder:
    def __init__(self) -> None:
        self.number = 1
        self.items = [1000.5]


def test_value_changed_after_many_unchanged_calls_is_seen() -> None:
    holder = Holder()
    fn = torch.compile(lambda x, h: x + h.number * h.items[0], backend="eager")
    x = torch.ones(1)
    for _ in range(20):
        assert fn(x, holder).item() == 1001.5
    holder.items[0] = float("2000.5")
    assert fn(x, holder).item() == 2001.5
    holder.number = 2
    assert fn(x, holder).item() == 4002.0
    holder.__dict__["number"] = 1
    assert fn(x, holder).item() == 2001.5


def test_value_that_changes_on_each_call_is_seen_each_time() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Identity()
            self.flag = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.line(x) + (1 if self.flag else 2)

    model = Counting()
    fn = torch.compile(model, backend="eager")
    for i in range(60):
        model.flag = i % 3 == 0
        assert fn(torch.zeros(1)).item() == (1 if i % 3 == 0 else 2)


def test_objects_of_one_class_in_turn_each_give_their_own_result() -> None:
    holders = [Holder() for _ in range(50)]
    for i, holder in enumerate(holders):
        holder.items = [float(i % 3)]
    fn = torch.compile(lambda x, h: x + h.items[0], backend="eager")
    for _ in range(3):
        for i, holder in enumerate(holders):
            assert fn(torch.zeros(1), holder).item() == i % 3


def test_code_of_global_function_replaced_is_seen() -> None:
    space: dict[str, object] = {}
    exec(
        "def helper(x): return x + 1\n"
        "def other(x): return x + 2\n"
        "def main(x): return helper(x) * 1\n",
        space,
    )
    fn = torch.compile(space["main"], backend="eager")
    assert fn(torch.zeros(1)).item() == 1
    space["helper"].__code__ = space["other"].__code__
    assert fn(torch.zeros(1)).item() == 2


# ---- objects that are one


def append_and_measure(x: torch.Tensor, a: list, b: list) -> torch.Tensor:
    a.append(1)
    return x + len(b)


def put_and_get(x: torch.Tensor, a: dict, b: dict) -> torch.Tensor:
    a["k"] = 5
    return x + b.get("k", 0)


def set_and_read(x: torch.Tensor, a: Holder, b: Holder) -> torch.Tensor:
    a.number = 7
    return x + b.number


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (append_and_measure, lambda: [0]),
        (append_and_measure, lambda: collections.deque([0])),
        (put_and_get, dict),
        (put_and_get, collections.OrderedDict),
        (set_and_read, Holder),
    ],
)
def test_argument_changed_that_is_also_another_argument_computes_as_plain(
    function: Callable, make: Callable[[], object]
) -> None:
    fn = torch.compile(function, backend="eager")
    for one in (False, True, False, True, True, False):
        a, c = make(), make()
        b, d = (a, c) if one else (make(), make())
        assert torch.equal(fn(torch.ones(2), a, b), function(torch.ones(2), c, d))
        shown = [vars(o) if isinstance(o, Holder) else o for o in (a, b, c, d)]
        assert shown[:2] == shown[2:]


def test_arguments_that_are_one_and_only_read_need_no_second_graph() -> None:
    counter = torch._dynamo.testing.CompileCounter()
    fn = torch.compile(lambda x, a, b: x + len(a) + len(b), backend=counter)
    same = [1]
    fn(torch.ones(1), [1], [1])
    fn(torch.ones(1), same, same)
    assert counter.frame_count == 1


# ---- what stays alive


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_reset_leaves_nothing_of_the_program_alive(backend: str) -> None:
    refs = load_tool("compile_leaks").one_round(backend)
    gc.collect()
    assert [ref() for ref in refs] == [None] * len(refs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiling_again_and_again_keeps_no_graphs(backend: str) -> None:
    tool = load_tool("compile_leaks")

    def graphs() -> int:
        for _ in range(3):  # code objects are freed with what a first pass found
            gc.collect()
        return sum(isinstance(o, torch.fx.Graph) for o in gc.get_objects())

    tool.one_round(backend)
    before = graphs()
    for _ in range(3):
        tool.one_round(backend)
    assert graphs() == before


def test_programs_of_every_kind_leave_no_objects_and_no_frames() -> None:
    tool = load_tool("compile_leaks")
    tool.one_round("eager")
    gc.collect()
    for program in tool.PROGRAMS:
        refs = program("eager")
        torch._dynamo.reset()
        gc.collect()
        assert [ref() for ref in refs] == [None] * len(refs), program.__name__
    assert tool.dead_frames() == 0


def test_objects_of_a_call_are_freed_without_the_collector() -> None:
    def program(x, held):
        try:
            raise KeyError(held.number)
        except KeyError:
            y = x + held.number
        torch._dynamo.graph_break()
        return y * held.items[0]

    compiled = torch.compile(program, backend="eager")
    gc.collect()
    gc.disable()
    try:
        holder = Holder()
        ref = weakref.ref(holder)
        compiled(torch.ones(1), holder)
        del holder
        assert ref() is None
    finally:
        gc.enable()


def test_names_for_objects_without_a_name_go_with_what_was_compiled() -> None:
    space: dict[str, object] = {"torch": torch}
    other: dict[str, object] = {"factor": torch.full((2,), 3.0)}
    exec("def scaled(x):\n    return x * factor", other)
    # The trace reads what is behind the cache, to which no source leads.
    space["scaled"] = functools.lru_cache(other["scaled"])
    exec("def main(x):\n    return scaled(x) + 1", space)
    before, names = weakref.ref(other["factor"]), set(space)
    compiled = torch.compile(space["main"], backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [4, 4]
    assert set(space) > names
    del space["scaled"]
    other.clear()
    torch._dynamo.reset()
    gc.collect()
    assert set(space) < names
    assert before() is None


def test_function_and_what_it_used_die_without_reset() -> None:
    def make() -> list[weakref.ref]:
        model = torch.nn.Linear(2, 2)
        holder = Holder()

        def function(x: torch.Tensor) -> torch.Tensor:
            return model(x) + holder.number

        fn = torch.compile(function, backend="eager")
        for _ in range(4):
            fn(torch.ones(1, 2))
        return [weakref.ref(o) for o in (model, model.weight, holder, function)]

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 4


def test_code_of_a_function_that_was_traced_dies_with_it() -> None:
    def make() -> weakref.ref:
        def broken(x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

        function = types.FunctionType(broken.__code__.replace(co_name="copy"), globals())
        torch.compile(function, backend="eager")(torch.ones(1))
        return weakref.ref(function.__code__)

    ref = make()
    gc.collect()
    assert ref() is None


# ---- what is imported


def test_import_of_the_tracer_loads_neither_modules_nor_logging() -> None:
    script = "import sys, torch, torch._dynamo; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"torch.nn", "torch.fx", "torch._inductor", "sympy", "numpy", "logging", "pickle"}
    assert not heavy & set(loaded)


def test_explain_called_twice_works_both_times() -> None:
    for _ in range(2):
        assert torch._dynamo.explain(lambda x: x + 1)(torch.ones(1)).graph_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_varying_integer_and_size_give_the_result_of_each_call_on_every_backend(backend):
    def run(x, n):
        return x.sum(0) * n / x.shape[0] + x.new_ones(n).sum()

    torch._dynamo.reset()
    compiled = torch.compile(run, backend=backend)
    for rows, n in ((3, 2), (4, 3), (5, 4), (6, 7)):
        for wanted_grad in (False, True):
            x = torch.arange(2.0 * rows).reshape(rows, 2).requires_grad_(wanted_grad)
            torch.testing.assert_close(compiled(x, n), run(x, n))


# ---- compiled graphs as functions


def _boxed(result: object) -> Callable[[list[object]], object]:
    def run(args: list[object]) -> object:
        seen = [*args, torch.is_grad_enabled()]
        args.clear()
        return result(seen) if callable(result) else result

    return run


def test_graph_without_derivative_returns_a_list_of_the_values_wanted() -> None:
    untrained = torch._C._aot.UntrainedFunction
    assert untrained(_boxed((1, 2, 3)), 2, False)([]) == [1, 2]
    assert untrained(_boxed([1, 2, 3]), -1, False)([]) == [1, 2, 3]
    assert untrained(_boxed([1]), 4, False)([]) == [1]
    assert untrained(_boxed(7), 1, False)([]) == [7]
    assert untrained(_boxed(lambda seen: seen), -1, True)([5]) == [5, False]
    assert untrained(_boxed(lambda seen: seen), -1, False)([5]) == [5, True]
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        untrained(_boxed(lambda seen: 1 / 0), 1, True)([])
    assert torch.is_grad_enabled()
    with pytest.raises(TypeError, match="one list"):
        untrained(_boxed([]), 0, False)((1,))


def test_function_of_single_arguments_behaves_like_a_python_function() -> None:
    flat = torch._C._aot.FlatFunction(_boxed(lambda seen: seen[:-1]), [1, 2])
    assert flat(3, 4) == [1, 2, 3, 4] and flat() == [1, 2]
    with pytest.raises(TypeError, match="named"):
        flat(x=1)
    flat.note = 5
    assert flat.note == 5 and flat.__dict__ == {"note": 5}
    assert copy.deepcopy(flat) is flat and copy.copy(flat) is flat
    flat.itself = flat
    alive = weakref.ref(flat)
    del flat
    gc.collect()
    assert alive() is None
