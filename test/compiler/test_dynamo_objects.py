"""Objects that a traced function makes or is given: modules, parameters, hooks, iterators,
containers of trees, fake tensors. Each result is compared with the function run as it is."""

from __future__ import annotations

import copy

import pytest

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.utils import _pytree as pytree
from torch.utils.hooks import RemovableHandle


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def compiled(fn):
    """The function as one graph, and what counts its graphs."""
    count = CompileCounter()
    return torch.compile(fn, backend=count, fullgraph=True), count


# ---- hooks


def test_hook_on_an_input_is_registered_once_and_changes_its_gradient():
    def fn(x, k):
        x.register_hook(lambda grad: grad * k)
        return x.sin()

    run, count = compiled(fn)
    x = torch.ones(3, requires_grad=True)
    run(x, torch.tensor(3.0)).sum().backward()
    assert torch.allclose(x.grad, torch.cos(torch.ones(3)) * 3)
    assert count.frame_count == 1


def test_hook_that_is_removed_in_the_function_does_nothing():
    def fn(x):
        handle = x.register_hook(lambda grad: grad * 2)
        handle.remove()
        return x * 1, handle

    run, _ = compiled(fn)
    x = torch.ones(3, requires_grad=True)
    y, handle = run(x)
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones(3))
    assert isinstance(handle, RemovableHandle)


def test_handle_that_is_returned_removes_the_hook():
    def fn(x):
        return x * 1, x.register_hook(lambda grad: grad * 2)

    run, _ = compiled(fn)
    x = torch.ones(3, requires_grad=True)
    y, handle = run(x)
    handle.remove()
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones(3))


def test_hook_on_a_computed_value_breaks_the_graph():
    def fn(x):
        y = x * 2
        y.register_hook(lambda grad: grad * 5)
        return y.sin()

    count = CompileCounter()
    x = torch.ones(3, requires_grad=True)
    torch.compile(fn, backend=count)(x).sum().backward()
    assert torch.allclose(x.grad, torch.cos(torch.full((3,), 2.0)) * 10)
    assert count.frame_count == 2


# ---- modules and parameters


class Scaled(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x):
        return x * self.k + self.offset


def test_module_made_in_the_function_runs_and_leaves_it():
    first = nn.Linear(3, 3)

    def fn(x):
        made = nn.Sequential(first, nn.ReLU(), Scaled(2))
        return made(x), made[1:](x), made

    run, _ = compiled(fn)
    x = torch.randn(2, 3)
    whole, part, made = run(x)
    assert torch.equal(whole, torch.relu(first(x)) * 2 + 1)
    assert torch.equal(part, torch.relu(x) * 2 + 1)
    assert made[0] is first and made.training and isinstance(made[2], Scaled)
    assert torch.equal(made[2].offset, torch.ones(3))
    assert torch.equal(copy.deepcopy(made)(x), whole)


def test_module_set_on_a_module_in_the_function_is_registered():
    class Holder(nn.Module):
        def forward(self, x):
            self.inner = Scaled(3)
            return self.inner(x)

    holder = Holder()
    run, _ = compiled(holder)
    x = torch.randn(3)
    assert torch.equal(run(x), x * 3 + 1)
    assert [name for name, _ in holder.named_children()] == ["inner"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_parameter_made_in_the_function_is_a_leaf_with_a_gradient(backend):
    def fn(x):
        weight = nn.Parameter(x * 2)
        return (weight * x).sum(), weight

    x = torch.tensor([1.0, 2.0])
    total, weight = torch.compile(fn, backend=backend, fullgraph=True)(x)
    assert isinstance(weight, nn.Parameter) and weight.is_leaf and weight.requires_grad
    assert torch.equal(weight, x * 2)
    total.backward()
    assert torch.equal(weight.grad, x)


def test_layer_made_in_the_function_draws_the_weights_of_eager():
    def fn(x):
        layer = nn.Linear(3, 2)
        return layer(x), layer

    x = torch.randn(4, 3)
    torch.manual_seed(7)
    wanted, _ = fn(x)
    torch.manual_seed(7)
    got, layer = torch.compile(fn, backend="eager", fullgraph=True)(x)
    assert torch.equal(got, wanted)
    got.sum().backward()
    assert torch.allclose(layer.weight.grad, x.sum(0).expand(2, 3))


def test_hooks_of_layers_kept_under_other_numbers_share_one_graph():
    count = CompileCounter()
    layers = [nn.Linear(2, 2) for _ in range(4)]
    for layer in layers:
        layer.register_forward_pre_hook(lambda _, inputs: (inputs[0] + 1,))

    def fn(layer, x):
        return layer(x)

    run = torch.compile(fn, backend=count, fullgraph=True)
    x = torch.ones(1, 2)
    for layer in layers:
        assert torch.equal(run(layer, x), layer(x))
    assert count.frame_count == 1


# ---- iterators


def test_iterator_over_a_tuple_is_advanced_by_what_the_function_took():
    def fn(x, it):
        return x + next(it) + next(it)

    run, count = compiled(fn)
    it = iter((1, 2, 3, 4, 5))
    assert torch.equal(run(torch.zeros(1), it), torch.tensor([3.0]))
    assert next(it) == 3
    assert torch.equal(run(torch.zeros(1), it), torch.tensor([9.0]))
    assert list(it) == []
    assert count.frame_count == 2


# ---- trees


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


pytree.register_pytree_node(
    Pair, lambda p: ([p.first, p.second], None), lambda parts, _: Pair(*parts)
)


def test_tree_with_a_container_of_the_program_is_mapped_whole():
    def fn(x):
        tree = {"a": Pair(x, [x + 1]), "b": (x,)}
        return pytree.tree_map(lambda t: t * 2, tree), pytree.tree_leaves(tree)

    run, _ = compiled(fn)
    x = torch.ones(2)
    mapped, leaves = run(x)
    assert isinstance(mapped["a"], Pair)
    assert torch.equal(mapped["a"].second[0], torch.full((2,), 4.0))
    assert [leaf[0].item() for leaf in leaves] == [1.0, 2.0, 1.0]


# ---- constants of the trace


def test_constant_result_is_computed_from_the_real_inputs():
    @torch._dynamo.assume_constant_result
    def count_positive(x):
        return int((x > 0).sum())

    def fn(x):
        return x.sin() * count_positive(x * 1)

    x = torch.tensor([1.0, -1.0, 2.0])
    run, _ = compiled(fn)
    assert torch.equal(run(x), x.sin() * 2)


def test_assert_of_a_tensor_is_checked_by_the_graph():
    # As text: pytest writes the assertions of test files anew.
    names: dict = {}
    text = "def fn(x):\n    assert x.sum() > 0, 'must be positive'\n    return x + 1\n"
    exec(text, names)
    run, count = compiled(names["fn"])
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(RuntimeError, match="must be positive"):
        run(-torch.ones(2))
    assert count.frame_count == 1


# ---- lists of the running program


def test_list_that_is_only_appended_to_may_have_any_length():
    seen: list[torch.Tensor] = []

    def fn(x):
        y = x + 1
        seen.append(y)
        seen.append(x)
        return y * 2

    run, count = compiled(fn)
    x = torch.arange(3.0)
    for _ in range(4):
        assert torch.equal(run(x), (x + 1) * 2)
    assert count.frame_count == 1
    assert [found.tolist() for found in seen[-2:]] == [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]]
    assert len(seen) == 8 and seen[1] is x


def test_list_that_is_read_after_an_append_is_guarded_by_its_length():
    seen: list[int] = [7]

    def fn(x):
        seen.append(3)
        return x * len(seen) + seen[0] + seen[-1]

    run, count = compiled(fn)
    x = torch.ones(2)
    for length in (2, 3):
        assert torch.equal(run(x), x * length + 10)
    assert count.frame_count == 2
    assert seen == [7, 3, 3]


def test_list_that_holds_itself_is_read_once():
    knot: list = [1]
    knot.append(knot)

    def fn(x):
        return x + knot[0] + len(knot[1][1])

    run, _ = compiled(fn)
    assert torch.equal(run(torch.zeros(1)), torch.tensor([3.0]))


def test_list_filled_after_a_graph_break_is_not_compiled_anew_for_each_call():
    seen: list[float] = []

    def fn(x):
        y = x.sin()
        seen.append(float(y.sum()))
        return y + 1

    count = CompileCounter()
    run = torch.compile(fn, backend=count)
    x = torch.arange(4.0)
    for _ in range(5):
        assert torch.equal(run(x), x.sin() + 1)
    assert count.frame_count == 2
    assert seen == [float(x.sin().sum())] * 5
