"""torch.vmap inside of compiled functions."""

import pytest

import torch

X = torch.arange(12.0).reshape(3, 4)
TABLE = torch.ones(5, requires_grad=True)


def _causal(x):
    def see(batch, head, query, key):
        return query >= key

    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None)):
        see = torch.vmap(see, in_dims=dims)
    mask = torch.vmap(see, in_dims=(0, None, None, None))
    return mask(torch.arange(2), torch.arange(1), torch.arange(4), torch.arange(4))


PROGRAMS = {
    "a tensor from outside": lambda x: torch.vmap(lambda a: a * 2 + TABLE.sum())(x),
    "two levels": lambda x: torch.vmap(torch.vmap(lambda a: a.sin()))(x),
    "one argument for all": lambda x: torch.vmap(lambda a, b: a @ b, in_dims=(None, 0))(x, x),
    "containers": lambda x: torch.vmap(lambda d: {"s": d["a"] + d["b"][0]})(
        {"a": x, "b": (x * 2,)}
    )["s"],
    "another output dimension": lambda x: torch.vmap(lambda a: a * 3, out_dims=1)(x),
    "the mask of attention": _causal,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap_is_captured_whole_and_equals_eager(name):
    program = PROGRAMS[name]
    compiled = torch.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), program(X))


def test_a_break_inside_of_vmap_leaves_no_level_open():
    seen = []

    def program(x):
        def one(a):
            seen.append(torch.vmap)
            print(end="")
            return a * 2

        return torch.vmap(one)(x)

    assert torch.equal(torch.compile(program, backend="eager")(X), X * 2)
    assert torch._C._functorch._level_kinds() == ()
    assert len(seen) == 1


def test_a_wrong_dimension_raises_as_in_eager():
    def program(x):
        return torch.vmap(lambda a: a, in_dims=5)(x)

    with pytest.raises(ValueError, match="in_dim=5"):
        torch.compile(program, backend="eager")(X)


def test_function_called_first_under_a_transform_is_compiled_later():
    counter = torch._dynamo.testing.CompileCounter()
    fn = torch.compile(lambda x: x.sin() + 1, backend=counter)
    x = torch.randn(3, 4)
    for transform in (torch.vmap, lambda f: torch.func.grad(lambda v: f(v).sum())):
        transform(fn)(x)
    assert torch.equal(fn(x), x.sin() + 1)
    assert counter.frame_count == 1
