"""AOTAutograd: a compiled function does to its inputs, its outputs and their gradients what the
function itself does. Every program is run both ways; the graphs are checked to have no writes."""

import numpy as np
import pytest

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch._functorch.aot_autograd import (
    aot_export_joint_simple,
    aot_export_module,
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)
from torch._functorch.compilers import memory_efficient_fusion, nop
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)

aten = torch.ops.aten


class Graphs:
    """A compiler that keeps the graphs it is given."""

    def __init__(self):
        self.found = []

    def __call__(self, graph, inputs):
        self.found.append(graph)
        return make_boxed_func(graph.forward)

    def operators(self, index=0):
        calls = [n for n in self.found[index].graph.nodes if n.op == "call_function"]
        return [n.target for n in calls if isinstance(n.target, torch._ops.OpOverload)]


def tensors(*shapes, grad=True):
    made = [torch.randn(s, dtype=torch.float64) for s in shapes]
    return [t.requires_grad_(grad) for t in made]


def copies(values):
    return [
        v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def outputs_and_gradients(function, leaves, inputs):
    """What the function returns, and the gradients of the leaves by all of it."""
    found = pytree.tree_leaves(function(*inputs))
    wanted = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
    parts = [t for t in found if isinstance(t, torch.Tensor) and t.requires_grad]
    grads = ()
    if parts and wanted:
        total = sum((t * torch.arange(1, t.numel() + 1).reshape(t.shape)).sum() for t in parts)
        grads = torch.autograd.grad(total, wanted, allow_unused=True)
    return found, grads


def same(mine, theirs):
    assert type(mine) is type(theirs)
    if not isinstance(mine, torch.Tensor):
        assert mine == theirs
        return
    assert (mine.shape, mine.dtype, mine.stride()) == (theirs.shape, theirs.dtype, theirs.stride())
    assert mine.requires_grad == theirs.requires_grad and mine.is_leaf == theirs.is_leaf
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)


def check(function, leaves, prepare=lambda values: values, **settings):
    """Runs a function plainly and compiled, on inputs that `prepare` makes of the leaves; returns
    the graphs. Compiled twice, so that the second call meets what the first one left."""
    graphs = Graphs()
    compiled = aot_function(function, graphs, graphs, **settings)
    for _ in range(2):
        mine, theirs = copies(leaves), copies(leaves)
        my_inputs, their_inputs = prepare(mine), prepare(theirs)
        found, grads = outputs_and_gradients(compiled, mine, my_inputs)
        expected, wanted = outputs_and_gradients(function, theirs, their_inputs)
        for a, b in zip([*found, *my_inputs], [*expected, *their_inputs], strict=True):
            same(a, b)
        for a, b in zip(grads, wanted, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
        for i, out in enumerate(expected):
            if isinstance(out, torch.Tensor):
                alias = [out._is_view() and out._base is x for x in their_inputs]
                mine_alias = [found[i]._is_view() and found[i]._base is x for x in my_inputs]
                assert alias == mine_alias
    return graphs


def no_leaves(values):
    """Inputs that may be written to."""
    return [v + 1 if isinstance(v, torch.Tensor) else v for v in values]


# ---- functions without writes ---------------------------------------------------------------


def mlp(x, w, b):
    return torch.tanh(x @ w + b).sum(), (x * 2).sin()


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_function_of_several_inputs_has_its_outputs_and_gradients(partition):
    graphs = check(mlp, tensors((3, 4), (4, 5), (5,)), partition_fn=partition)
    assert len(graphs.found) == 2


def test_function_without_gradients_is_one_graph_with_inputs_named_arg():
    graphs = check(mlp, tensors((3, 4), (4, 5), (5,), grad=False))
    (graph,) = graphs.found
    names = [n.name for n in graph.graph.find_nodes(op="placeholder")]
    assert names == ["arg0_1", "arg1_1", "arg2_1"]


def test_numbers_and_none_pass_through():
    check(lambda a, n, m: (a * n, n, None), [*tensors((2, 2)), 3, None])


def test_nested_arguments_and_results_keep_their_structure():
    compiled = aot_function(lambda d, *, k: {"a": [d["x"] * k, d["x"]], "b": (k,)}, nop)
    x = torch.ones(2, requires_grad=True)
    found = compiled({"x": x}, k=2)
    assert found["a"][1] is x and found["b"] == (2,) and found["a"][0].tolist() == [2, 2]


def test_output_of_unknown_type_raises():
    with pytest.raises(RuntimeError, match="not a known type"):
        aot_function(lambda x: object(), nop)(torch.ones(2))


def test_gradient_that_only_part_of_the_inputs_need_is_none_for_the_others():
    check(lambda a, b: a * b, [*tensors((3,)), *tensors((3,), grad=False)])


def test_gradient_enabled_inside_a_block_without_is_taken():
    def function(x):
        kept = x.sin()
        with torch.enable_grad():
            return kept, x.cos()

    compiled = aot_function(function, nop)
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        plain, differentiable = compiled(x)
    assert not plain.requires_grad and differentiable.requires_grad
    differentiable.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), -np.sin(np.ones(3)), rtol=1e-6)


def test_double_backward_raises():
    x = torch.ones(3, requires_grad=True)
    out = aot_function(lambda x: x.sin(), nop)(x)
    (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        grad.sum().backward()


def test_backward_graph_is_compiled_when_it_is_first_needed():
    forward, backward = Graphs(), Graphs()
    x = torch.ones(3, requires_grad=True)
    out = aot_function(torch.sin, forward, backward)(x)
    assert len(forward.found) == 1 and not backward.found
    out.sum().backward()
    assert len(backward.found) == 1


def test_tangent_of_other_strides_is_brought_into_the_traced_ones():
    check(lambda x: x.t().view(-1) * 2, [torch.randn(4, 3, dtype=torch.float64).t()])
    x = torch.randn(2, 3, requires_grad=True)
    out = aot_function(lambda x: (x * 2).view(3, 2), nop)(x)
    out.backward(torch.ones(2, 3).t())
    assert x.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_dropout_draws_the_numbers_of_the_function():
    x = torch.ones(1000, requires_grad=True)
    compiled = aot_function(lambda x: nn.functional.dropout(x, 0.5), nop)
    torch.manual_seed(5)
    expected = nn.functional.dropout(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(compiled(x), expected)


# ---- writes to inputs -----------------------------------------------------------------------


def doubled(a):
    a.mul_(2)
    return a * 3


def written_view(a):
    a[0].mul_(2)
    return a + 1


def written_and_returned(a):
    a.mul_(2)
    return a, a.view(-1)


def transposed(a):
    a.t_()
    a[0].mul_(3)
    return a.view(a.shape)


def reshaped_only(a):
    a.t_()
    return a * 2


def detached_write(a):
    a.detach().mul_(2)
    return a + 3


def write_without_grad(a):
    with torch.no_grad():
        a.mul_(4)
    return a + 5


WRITES = [
    doubled,
    written_view,
    written_and_returned,
    transposed,
    reshaped_only,
    detached_write,
    write_without_grad,
]


@pytest.mark.parametrize("keep", [False, True], ids=["written_after", "written_in_graph"])
@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_write_to_an_input_is_seen_outside(function, grad, keep):
    graphs = check(
        function, tensors((3, 3), grad=grad), no_leaves, keep_inference_input_mutations=keep
    )
    for graph in graphs.found:
        writes = [
            n
            for n in graph.graph.nodes
            if getattr(n.target, "_schema", None) and n.target._schema.is_mutable
        ]
        allowed = (aten.copy_.default,) if keep else ()
        assert all(n.target in allowed for n in writes)


def test_write_to_a_leaf_raises_as_it_does_without_compiling():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        aot_function(doubled, nop)(torch.ones(3, requires_grad=True))


def test_version_of_a_written_input_moves():
    x = torch.ones(3, requires_grad=True).clone()
    before = x._version
    aot_function(write_without_grad, nop, keep_inference_input_mutations=True)(x)
    assert x._version > before


def test_batch_norm_moves_its_statistics():
    torch.manual_seed(0)
    module = nn.BatchNorm1d(3)
    x = torch.randn(5, 3)
    graphs = Graphs()
    out = aot_module(module, graphs, graphs)(x)
    np.testing.assert_allclose(module.running_mean.numpy(), 0.1 * x.mean(0).numpy(), rtol=1e-5)
    assert module.num_batches_tracked == 1
    out.sum().backward()
    assert module.weight.grad is not None
    assert aten._native_batch_norm_legit_functional.default in graphs.operators()


def pair(function):
    """Two views of one row of the leaf."""

    def prepare(values):
        base = values[0] + 1
        return function(base)

    return prepare


OVERLAPS = {
    "same_row": pair(lambda x: [x[0], x[0]]),
    "one_tensor_twice": pair(lambda x: [x, x]),
    "whole_and_part": pair(lambda x: [x.view(-1), x[0].repeat(1)[:4].mul(1)]),
    "crossing": pair(lambda x: [x.view(-1)[0:4], x.view(-1)[2:6]]),
}


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("inputs", OVERLAPS, ids=list(OVERLAPS))
def test_write_through_one_of_two_inputs_of_the_same_memory(inputs, grad):
    def function(a, b):
        a.mul_(2)
        return (a.sum() + b).sin()

    check(function, tensors((4, 4), grad=grad), OVERLAPS[inputs])


def test_write_and_new_shape_of_two_inputs_of_the_same_memory():
    def function(a, b):
        a.mul_(2)
        b.t_()
        return a.mul(b)

    check(function, tensors((2, 2)), pair(lambda x: [x.view(2, 2), x.view(2, 2)]))


def test_inputs_that_share_a_storage_and_no_element_stay_two_inputs():
    def function(a, b):
        a.mul_(3)
        b.mul_(2)
        return a + b

    graphs = check(function, tensors((4, 4), grad=False), pair(lambda x: [x[:, :2], x[:, 2:]]))
    assert len(graphs.found[0].graph.find_nodes(op="placeholder")) == 2


# ---- outputs that share memory --------------------------------------------------------------

ALIASES = {
    "view_of_input": lambda a: a.view(-1),
    "input_itself": lambda a: (a, a + 1),
    "detached_input": lambda a: (a.detach(), a * 2),
    "views_of_intermediate": lambda a: (lambda o: (o.view(-1), o.t()))(a * 3),
    "intermediate_and_view": lambda a: (lambda o: (o, o.view(-1), o))(a * 3),
    "two_intermediates": lambda a: (lambda o, p: (o.view(-1), p.t(), o.t()))(a * 3, a * 4),
    "slices_of_input": lambda a: (a[0], a[1:].t(), a.unsqueeze(0)),
    "parts_of_intermediate": lambda a: list((a * 2).unbind(0)),
    "parts_of_input": lambda a: list(a.unbind(0)),
}


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("function", ALIASES.values(), ids=list(ALIASES))
def test_output_that_shares_memory_is_returned_as_such(function, grad):
    leaves = tensors((3, 3), grad=grad)
    if function is not ALIASES["parts_of_input"]:
        check(function, leaves, no_leaves)
    else:
        found, grads = outputs_and_gradients(aot_function(function, nop), leaves, leaves)
        expected, wanted = outputs_and_gradients(function, leaves, leaves)
        assert all(map(torch.equal, found, expected)) and all(map(torch.equal, grads, wanted))


def test_write_to_one_output_is_seen_in_the_other_and_in_its_gradient():
    def function(a):
        out = a * 3
        return out, out.view(-1)

    def use(call, x):
        first, second = call(x)
        first.mul_(2)
        (second * second).sum().backward()
        return second

    x, y = (torch.randn(2, 2, dtype=torch.float64).requires_grad_() for _ in range(2))
    y.data.copy_(x.data)
    assert torch.equal(use(function, x), use(aot_function(function, nop), y))
    assert torch.equal(x.grad, y.grad)


def test_write_to_an_output_that_is_a_view_of_an_input_is_a_write_to_the_input():
    x = torch.ones(3, 3)
    out = aot_function(lambda a: a[0], nop)(x)
    out.add_(1)
    assert x[0].tolist() == [2, 2, 2]


# ---- modules, wrappers, exports -------------------------------------------------------------


def test_module_takes_parameters_as_inputs_and_has_their_gradients():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    compiled = memory_efficient_fusion(plain)
    x = torch.randn(3, 4)
    compiled(x).square().sum().backward()
    found = [p.grad.clone() for p in plain.parameters()]
    plain.zero_grad()
    plain(x).square().sum().backward()
    for got, parameter in zip(found, plain.parameters(), strict=True):
        np.testing.assert_allclose(got.numpy(), parameter.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_simplified_module_wants_a_tuple():
    class One(nn.Module):
        def forward(self, x):
            return x + 1

    with pytest.raises(RuntimeError, match="Graph output must be a"):
        aot_module_simplified(One(), (torch.ones(2),), nop)


class Pair(torch.Tensor):
    """Two tensors on which every operator runs."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            a.shape,
            strides=a.stride(),
            dtype=a.dtype,
            device=a.device,
            requires_grad=a.requires_grad,
        )

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def run(name):
            return func(
                *pytree.tree_map_only(Pair, lambda t: getattr(t, name), args), **(kwargs or {})
            )

        first, spec = pytree.tree_flatten(run("a"))
        made = [
            Pair(x, y) if isinstance(x, torch.Tensor) else x
            for x, y in zip(first, pytree.tree_leaves(run("b")), strict=True)
        ]
        return pytree.tree_unflatten(made, spec)


def test_wrapper_is_taken_apart_into_inputs_of_the_graph_and_put_together_again():
    graphs = Graphs()
    compiled = aot_function(lambda a, b: torch.mul(a, 6) + torch.div(b, 2), graphs, graphs)
    a = Pair(torch.ones(3), torch.full((3,), 2.0)).requires_grad_()
    b = torch.ones(3, requires_grad=True)
    out = compiled(a, b)
    assert isinstance(out, Pair) and out.a.tolist() == [6.5] * 3 and out.b.tolist() == [12.5] * 3
    assert len(graphs.found[0].graph.find_nodes(op="placeholder")) == 3
    out.sum().backward()
    assert isinstance(a.grad, Pair) and a.grad.b.tolist() == [6] * 3
    assert isinstance(b.grad, Pair) and b.grad.a.tolist() == [0.5] * 3


def test_export_of_a_module_returns_what_is_written_and_names_it():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = nn.Buffer(torch.zeros(()))

        def forward(self, x, y):
            y.add_(4)
            self.seen.add_(1)
            return (x.cos() + y, self.seen.sum())

    graph, signature = aot_export_module(
        Counting(), [torch.ones(2), torch.zeros(2)], trace_joint=False
    )
    assert signature.buffers_to_mutate == {"add_1": "seen"}
    assert signature.user_inputs_to_mutate == {"add": "arg2_1"}
    assert signature.inputs_to_buffers == {"arg0_1": "seen"}
    found = graph(torch.zeros(()), torch.ones(2), torch.zeros(2))
    assert found[0].item() == 1 and found[1].tolist() == [4, 4] and found[3].item() == 1


def test_export_of_a_joint_graph_has_the_gradients_of_the_loss():
    module = nn.Linear(3, 1)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            out = self.inner(x)
            return out.square().sum(), out.detach()

    x = torch.randn(4, 3)
    graph, signature = aot_export_module(Loss(), [x], trace_joint=True, output_loss_index=0)
    loss, _, *grads = graph(module.weight, module.bias, x)
    module(x).square().sum().backward()
    assert list(signature.backward_signature.gradients_to_parameters.values()) == [
        "inner.weight",
        "inner.bias",
    ]
    assert torch.allclose(grads[0], module.weight.grad) and torch.allclose(
        grads[1], module.bias.grad
    )
    assert loss.item() > 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p, x: (x.t_(),), "received a metadata mutation"),
        (lambda p, x: (p.mul_(2) + x,), "requires gradients, and received a mutation"),
    ],
)
def test_export_refuses_what_needs_a_runtime(function, message):
    p = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        aot_export_joint_simple(function, [p, torch.ones(2, 2)], trace_joint=False)


def test_export_refuses_written_inputs_that_share_memory():
    def function(x, y):
        x.mul_(2)
        return (x + y,)

    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Encountered duplicated inputs that are mutated"):
        aot_export_joint_simple(function, [x, x], trace_joint=False)
    with pytest.raises(RuntimeError, match="Encountered aliased inputs that are mutated"):
        aot_export_joint_simple(function, [x, x.view(-1)], trace_joint=False)


def test_boxed_function_takes_a_list():
    compiler = make_boxed_compiler(lambda graph, inputs: graph.forward)
    called = compiler(torch.fx.symbolic_trace(lambda x: (x + 1,)), [])
    assert called([torch.ones(1)])[0].item() == 2 and called._boxed_call


class Counter(nn.Module):
    """Adds to a buffer, and switches gradients on for a part of its work."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x):
        with torch.enable_grad():
            y = self.linear(x).clone()
        self.total.add_(y.sum(0))
        return y.relu_(), self.total * 2


def test_export_above_autograd_keeps_composite_operators_and_switches_of_gradients():
    module, x = Counter(), torch.randn(3, 2)
    with torch.no_grad():
        graph, signature = aot_export_module(module, [x], trace_joint=False, pre_dispatch=True)
        targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
        assert torch.ops.aten.linear.default in targets and torch._C._set_grad_enabled in targets
        assert not any(t._schema.is_mutable for t in targets if hasattr(t, "_schema"))
        state = [*module.parameters(), *module.buffers()]
        total, *found = graph(*state, x)
        expected = module(x)
    assert list(signature.buffers_to_mutate.values()) == ["total"]
    assert all(map(torch.equal, found, expected)) and torch.equal(total, module.total)


def test_export_above_autograd_has_no_joint_graph():
    with pytest.raises(RuntimeError, match="pre_dispatch"):
        aot_export_module(Counter(), [torch.ones(1, 2)], trace_joint=True, pre_dispatch=True)


@pytest.mark.parametrize(
    "write", [lambda x, y: x.add_(y), lambda x, y: x.mul_(y) * 1], ids=["returned", "used"]
)
def test_input_that_a_write_makes_differentiable_has_the_history_of_eager(write):
    def run(function):
        x, y = torch.full((2,), 3.0), torch.ones(2, requires_grad=True)
        out = function(x, y)
        (out.sum() + 2 * x.sum()).backward()
        return out.detach(), x.detach(), x.requires_grad, y.grad

    want = run(write)
    for compile in (
        lambda: aot_function(write, Graphs()),
        lambda: torch.compile(
            write, backend=lambda g, i: aot_module_simplified(g, i, fw_compiler=Graphs())
        ),
    ):
        for a, b in zip(run(compile()), want, strict=True):
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_input_whose_shape_a_captured_program_changes_is_traced_with_its_own():
    def turn(x):
        x.t_()
        return x * 2

    compiled = torch.compile(
        turn, backend=lambda g, i: aot_module_simplified(g, i, fw_compiler=Graphs())
    )
    x, y = torch.rand(2, 3), torch.rand(2, 3)
    y.copy_(x)
    torch.testing.assert_close(compiled(x), turn(y))
    assert x.shape == y.shape == (3, 2)


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_dynamic_function_compiles_once_for_all_sizes(partition):
    graphs = []

    def note(module, inputs):
        graphs.append(module)
        return module

    def f(a, w):
        return nn.functional.linear(a, w).tanh().sum(0).mean(0)

    compiled = aot_function(
        f, fw_compiler=note, bw_compiler=note, partition_fn=partition, dynamic=True
    )
    for rows in (4, 7, 9):
        ours = [torch.randn(rows, 5).requires_grad_(), torch.randn(3, 5).requires_grad_()]
        plain = [t.detach().requires_grad_() for t in ours]
        compiled(*ours).backward()
        f(*plain).backward()
        for got, expected in zip(ours, plain, strict=True):
            torch.testing.assert_close(got.grad, expected.grad, rtol=1e-5, atol=1e-6)
    assert len(graphs) == 2
