"""What a program says about a region of its code, and what a trace depends on around it: breaks
that are errors, backends in place of others, transforms that run, names of values."""

import collections
import dataclasses
import threading

import pytest

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter, EagerAndRecordGraphs
from torch._higher_order_ops.hints_wrap import hints_wrapper


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# ---- breaks


def test_break_inside_a_region_where_breaks_are_errors_raises_with_the_user_line():
    def run(x):
        with torch._dynamo.error_on_graph_break(True):
            torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported, match="from user code"):
        torch.compile(run, backend="eager")(torch.zeros(1))


def test_break_in_an_inner_region_that_permits_it_is_none():
    def run(x):
        x = x + 1
        with torch._dynamo.error_on_graph_break(True):
            x = x * 2
            with torch._dynamo.error_on_graph_break(False):
                torch._dynamo.graph_break()
            x = x - 1
        return x

    counter = CompileCounter()
    assert torch.compile(run, backend=counter)(torch.zeros(1)).item() == 1
    assert counter.frame_count == 2


def test_break_in_the_rest_of_a_region_is_an_error_after_a_permitted_one():
    def run(x):
        with torch._dynamo.error_on_graph_break(True):
            with torch._dynamo.error_on_graph_break(False):
                torch._dynamo.graph_break()
            torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(run, backend="eager")(torch.zeros(1))


def test_decorated_function_makes_its_breaks_errors():
    @torch._dynamo.error_on_graph_break(True)
    def inner(x):
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(lambda x: inner(x), backend="eager")(torch.zeros(1))


def test_region_that_permits_breaks_does_not_loosen_fullgraph():
    def run(x):
        with torch._dynamo.error_on_graph_break(False):
            torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(run, backend="eager", fullgraph=True)(torch.zeros(1))


# ---- backends and modules


def test_stance_with_a_forced_backend_uses_it_and_leaves_the_own_forms_alone():
    own, forced = CompileCounter(), CompileCounter()
    compiled = torch.compile(lambda x: x + 1, backend=own)
    compiled(torch.zeros(1))
    with torch.compiler.set_stance("default", force_backend=forced):
        compiled(torch.zeros(1))
        compiled(torch.zeros(1))
    compiled(torch.zeros(1))
    assert (own.frame_count, forced.frame_count) == (1, 1)


def test_disabled_class_of_modules_runs_as_it_is_with_its_hooks():
    @torch._dynamo.disable
    class Plain(torch.nn.Module):
        def forward(self, x):
            return torch.sigmoid(x)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = Plain()

        def forward(self, x):
            return self.plain(torch.sin(x)) + 1

    model = Model()
    model.plain.register_forward_pre_hook(lambda module, args: (args[0].cos(),))
    backend = EagerAndRecordGraphs()
    x = torch.ones(3)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), model(x))
    called = {node.target for graph in backend.graphs for node in graph.graph.nodes}
    assert torch.sin in called and torch.sigmoid not in called and "cos" not in called


# ---- transforms


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad], ids=["vmap", "grad"])
def test_compiled_function_under_a_transform_is_run_as_it_is_or_refused(transform):
    def run(x):
        return x.sin().sum()

    x = torch.rand(2, 3)
    plain = torch.compile(run, backend="eager")
    torch.testing.assert_close(transform(plain)(x), transform(run)(x))
    whole = torch.compile(lambda x: x.sin().sum(), backend="aot_eager", fullgraph=True)
    name = transform.__name__
    with pytest.raises(torch._dynamo.exc.Unsupported, match=f"Calling torch.func.{name}"):
        transform(whole)(x)


def test_function_that_begins_a_transform_is_guarded_on_those_around_it():
    @torch.compile(backend="eager")
    def run(x):
        return torch.func.vmap(torch.sin)(x)

    run(torch.rand(3))
    entry = torch._dynamo.eval_frame._debug_get_cache_entry_list(run.__wrapped__.__code__)[0]
    assert any("compare_functorch_state([])" in text for text in entry.guard_texts)


# ---- values


def test_node_has_the_name_of_the_first_variable_that_holds_its_value():
    def run(x):
        total = x + 1
        again = total
        return again * 2

    backend = EagerAndRecordGraphs()
    torch.compile(run, backend=backend)(torch.zeros(1))
    names = [node.name for node in backend.graphs[0].graph.nodes]
    assert names == ["l_x_", "total", "mul", "output"]


def test_exported_graph_names_its_inputs_and_values_after_the_program():
    def run(x, y):
        z = torch.cos(x)
        return z + y

    gm, _ = torch._dynamo.export(run)(torch.zeros(2), torch.zeros(2))
    assert "l_x_ = arg0" in gm.code and "z = torch.cos(l_x_)" in gm.code


def test_export_of_an_object_that_is_no_container_names_its_class():
    @dataclasses.dataclass
    class Pair:
        x: torch.Tensor

    with pytest.raises(torch._dynamo.exc.UserError, match=r"one of the inputs with type .*Pair"):
        torch._dynamo.export(lambda pair: pair.x + 1)(Pair(torch.zeros(1)))


def test_frozen_dataclass_enters_the_graph_by_its_fields():
    @dataclasses.dataclass(frozen=True)
    class Pair:
        x: torch.Tensor
        factor: int = 3

    @torch.compiler.allow_in_graph
    def product(pair):
        return pair.x * pair.factor

    compiled = torch.compile(lambda x: product(Pair(x + 1)), backend="aot_eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [6.0, 6.0]


def test_deque_made_with_more_items_than_it_holds_keeps_the_last():
    def run(x):
        items = collections.deque([x, x + 1, x + 2, x + 3], maxlen=2)
        return len(items), items[0]

    count, first = torch.compile(run, backend="eager", fullgraph=True)(torch.zeros(1))
    assert count == 2 and first.item() == 2


def test_iterator_over_a_range_is_advanced_by_what_the_trace_took():
    def run(x, numbers):
        return x + next(numbers)

    numbers = iter(range(1, 9, 2))
    compiled = torch.compile(run, backend="eager", fullgraph=True)
    assert [compiled(torch.zeros(1), numbers).item() for _ in range(3)] == [1, 3, 5]
    assert list(numbers) == [7]


def test_attribute_set_on_an_object_of_a_c_class_is_set_by_that_class():
    holder = threading.local()

    def run(x, held):
        held.x = x
        return x + 1

    x = torch.zeros(1)
    torch.compile(run, backend="eager", fullgraph=True)(x, holder)
    assert holder.x is x


# ---- hints


def test_function_with_hints_is_one_node_with_the_hints_beside_it():
    def run(x, y):
        return hints_wrapper(lambda a, b: torch.relu(a) + b, (x, y), {}, hints={"fast": True})

    x, y = torch.tensor([-1.0, 2.0]), torch.ones(2)
    backend = EagerAndRecordGraphs()
    for found in (run(x, y), torch.compile(run, backend=backend, fullgraph=True)(x, y)):
        assert found.tolist() == [1.0, 3.0]
    node = next(n for n in backend.graphs[0].graph.nodes if n.target is hints_wrapper)
    assert node.kwargs == {"hints": {"fast": True}}
    assert torch.compile(run, backend="aot_eager")(x, y).tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    "args, hints, message",
    [
        (({"a": 1},), {"a": 1}, "args must be a tuple of tensors, ints, floats, or bools"),
        ((1,), {"a": (1,)}, "hints must be a dict containing int, float, bool or str value"),
    ],
)
def test_arguments_or_hints_of_other_kinds_are_refused(args, hints, message):
    with pytest.raises(RuntimeError, match=message):
        hints_wrapper(lambda *a: a, args, {}, hints)
