"""torch.func inside of compiled functions: each transform is part of one graph, gives what it gives
uncompiled, and can be differentiated again."""

from __future__ import annotations

import pytest

import torch
from torch import func

WEIGHT = torch.linspace(0.5, 2.0, 4, requires_grad=True)
LAYER = torch.nn.Linear(4, 3)


def scalar(x):
    return (x.sin() * WEIGHT).sum()


def without_history(x):
    with torch.no_grad():
        return func.grad(scalar)(x)


def applied(params, x):
    return func.functional_call(LAYER, params, (x,)).sum()


TRANSFORMS = {
    "grad": lambda x: func.grad(scalar)(x),
    "grad of a tree": lambda x: func.grad(lambda p: (p[0] * p[1]["k"]).sum())((x, {"k": x}))[0],
    "grad with aux": lambda x: func.grad(lambda y: (scalar(y), y), has_aux=True)(x)[0],
    "grad_and_value": lambda x: func.grad_and_value(scalar)(x)[0],
    "grad of grad": lambda x: func.grad(lambda y: func.grad(scalar)(y).sum())(x),
    "grad without history": without_history,
    "vjp": lambda x: func.vjp(scalar, x)[1](torch.tensor(2.0))[0],
    "jvp": lambda x: func.jvp(scalar, (x,), (x,))[1],
    "jacrev": lambda x: func.jacrev(lambda y: y * y * WEIGHT)(x),
    "jacfwd": lambda x: func.jacfwd(lambda y: y * y * WEIGHT)(x),
    "hessian": lambda x: func.hessian(scalar)(x),
    "linearize": lambda x: func.linearize(torch.sin, x)[1](x),
    "vmap of grad": lambda x: func.vmap(func.grad(lambda y: y.sin() * WEIGHT[0]))(x),
    "gradients per sample": lambda x: func.vmap(func.grad(applied), in_dims=(None, 0))(
        dict(LAYER.named_parameters()), torch.stack([x, x + 1])
    )["weight"],
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "differentiated"])
def test_transform_is_one_graph_and_gives_what_it_gives_uncompiled(
    transform, backend, requires_grad
):
    torch._dynamo.reset()
    x = torch.linspace(-1.0, 1.0, 4, requires_grad=requires_grad)
    found = torch.compile(transform, backend=backend, fullgraph=True)(x)
    wanted = transform(x)
    torch.testing.assert_close(found, wanted)
    assert found.requires_grad == wanted.requires_grad
    if not wanted.requires_grad:
        return
    leaves = [leaf for leaf in (x, WEIGHT, LAYER.weight) if leaf.requires_grad]
    options = {"allow_unused": True, "materialize_grads": True}
    torch.testing.assert_close(
        torch.autograd.grad(found.sum(), leaves, **options),
        torch.autograd.grad(wanted.sum(), leaves, **options),
    )


def test_gradient_mode_switched_off_without_inputs_to_differentiate_is_off_afterwards():
    def switch_off(x):
        y = x + 1
        torch.set_grad_enabled(False)
        return y

    try:
        torch.compile(switch_off, backend="aot_eager", fullgraph=True)(torch.ones(2))
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_named_result_of_an_operator_is_taken_apart_as_a_tree():
    def leaves(x):
        return torch.utils._pytree.tree_leaves(torch.return_types.qr((2 * x, x)))

    found = torch.compile(leaves, backend="eager", fullgraph=True)(torch.ones(2))
    assert [leaf.tolist() for leaf in found] == [[2.0, 2.0], [1.0, 1.0]]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_scripted_and_traced_functions_are_calls_of_the_graph(backend):
    @torch.jit.script
    def scripted(x, n: int):
        return x * n

    traced = torch.jit.trace(lambda x: x * 3, (torch.ones(2),))
    x = torch.ones(2, requires_grad=True)
    run = torch.compile(lambda x: scripted(x, 4) + traced(x), backend=backend, fullgraph=True)
    run(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert run(x).tolist() == [7.0, 7.0]


def test_lazy_module_that_gets_a_named_tuple_is_initialised_by_its_fields():
    import collections

    Pair = collections.namedtuple("Pair", "x y")

    class Scaled(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.UninitializedParameter()

        def initialize_parameters(self, pair):
            with torch.no_grad():
                self.scale.materialize(pair.x.shape)
                self.scale.fill_(2.0)

        def forward(self, pair):
            return pair.x * self.scale + pair.y

    found = torch.compile(Scaled(), backend="eager")(Pair(torch.ones(2), torch.ones(2)))
    assert found.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["hessian", "jacfwd twice", "tangents of independent results"])
def test_forward_mode_around_other_transforms_is_as_without_a_trace(name, backend):
    def square(t):
        return (t.sin() * t).sum()

    functions = {
        "hessian": torch.func.hessian(square),
        "jacfwd twice": torch.func.jacfwd(torch.func.jacfwd(square)),
        "tangents of independent results": torch.func.jacfwd(
            torch.func.jacfwd(lambda t: torch.ones(2) * t.sum().sign())
        ),
    }
    function = functions[name]
    x = torch.linspace(-1, 2, 4)
    torch._dynamo.reset()
    got = torch.compile(lambda t: function(t), backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(got, function(x))
