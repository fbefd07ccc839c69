"""torch.compile with the backend that runs graphs as they are: capture, guards, recompilation,
frames behind graph breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo


class Count:
    """A backend that counts its graphs."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[object]) -> Callable[..., object]:
        self.graphs.append(gm)
        return gm.forward


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def double(z):
    return z * 2


def test_break_makes_two_graphs_and_later_calls_none() -> None:
    count = Count()

    @torch.compile(backend=count)
    def f(x, k):
        y = double(x) + k
        print(end="")
        return double(y) + 1

    x = torch.randn(3)
    for _ in range(3):
        assert torch.equal(f(x, 2), (x * 2 + 2) * 2 + 1)
    assert len(count.graphs) == 2


def test_sizes_and_numbers_that_change_become_symbols() -> None:
    count = Count()

    @torch.compile(backend=count, fullgraph=True)
    def f(x, k):
        return x.reshape(-1) * k + x.shape[0]

    for n in range(3, 12):
        x = torch.randn(n, 2)
        assert torch.equal(f(x, n + 1), x.reshape(-1) * (n + 1) + n)
    assert len(count.graphs) == 2


def test_value_that_the_trace_read_is_guarded() -> None:
    class Holder:
        scale = 1

    holder = Holder()
    holder.items = [1, 2]
    holder.mode = "a"

    def f(x, h):
        if h.mode == "a":
            return x * len(h.items)
        return x + h.scale

    compiled = torch.compile(f, backend="eager")
    x = torch.randn(3)
    for change in (
        lambda: None,
        lambda: holder.items.append(3),
        lambda: setattr(holder, "mode", "b"),
        lambda: setattr(holder, "scale", 5),
        lambda: setattr(Holder, "scale", 7),
        lambda: delattr(holder, "scale"),
    ):
        change()
        assert torch.equal(compiled(x, holder), f(x, holder))


def test_module_follows_its_parameters_mode_and_hooks() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.ReLU())
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    x = torch.randn(2, 3)
    net.eval()
    assert torch.equal(compiled(x), net(x))
    with torch.no_grad():
        net[0].weight.zero_()
    assert torch.equal(compiled(x), net(x))
    net[0] = torch.nn.Linear(3, 4)
    assert torch.equal(compiled(x), net(x))
    net[2].register_forward_hook(lambda module, args, out: out + 1)
    assert torch.equal(compiled(x), net(x))
    net.train()
    torch.manual_seed(0)
    expected = net(x)
    torch.manual_seed(0)
    assert torch.equal(compiled(x), expected)


def test_training_step_gives_the_same_gradients() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))
    compiled = torch.compile(net, backend="eager")
    x = torch.randn(5, 3)
    net(x).pow(2).sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    compiled(x).pow(2).sum().backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(net.parameters(), expected, strict=True))


def test_exception_of_the_program_leaves_as_it_is() -> None:
    @torch.compile(backend="eager")
    def f(x, n):
        y = x + 1
        if n == 0:
            raise ValueError("no", n)
        return y / n

    x = torch.ones(2)
    assert torch.equal(f(x, 2), (x + 1) / 2)
    with pytest.raises(ValueError) as caught:
        f(x, 0)
    assert caught.value.args == ("no", 0)


def test_method_closure_and_default_arguments() -> None:
    class Scaled:
        def __init__(self, by: int) -> None:
            self.by = by

        @torch.compile(backend="eager", fullgraph=True)
        def run(self, x, plus=1):
            return x * self.by + plus

    x = torch.ones(2)
    assert torch.equal(Scaled(3).run(x), x * 3 + 1)
    assert torch.equal(Scaled(4).run(x, plus=2), x * 4 + 2)
    shift = 1

    @torch.compile(backend="eager", fullgraph=True)
    def g(x):
        return x + shift

    assert torch.equal(g(x), x + 1)
    shift = 5
    assert torch.equal(g(x), x + 5)


def test_operators_of_functions_hold_graphs_of_their_own() -> None:
    from torch._higher_order_ops.wrap import wrap

    count = Count()
    y = torch.randn(3)

    @torch.compile(backend=count, fullgraph=True)
    def f(x):
        a = wrap(lambda z: z.sin() + y * x, x)
        b = torch.cond(x.sum() > 0, lambda v: v + y, lambda v: v * x, (a,))
        return torch.utils.checkpoint.checkpoint(torch.cos, b, use_reentrant=False)

    for x in (torch.ones(3), -torch.ones(3)):
        a = x.sin() + y * x
        assert torch.equal(f(x), torch.cos(a + y if x.sum() > 0 else a * x))
    assert len(count.graphs) == 1
    names = [node.target for node in count.graphs[0].graph.nodes if node.op == "get_attr"]
    assert names == ["wrap_body_0", "cond_true_0", "cond_false_0", "wrap_body_1"]


def test_function_of_an_operator_that_changes_something_outside_is_refused() -> None:
    from torch._higher_order_ops.wrap import wrap

    seen = []

    @torch.compile(backend="eager", fullgraph=True)
    def f(x):
        def body(z):
            seen.append(1)
            return z + 1

        return wrap(body, x)

    with pytest.raises(torch._dynamo.exc.Unsupported, match="not in the current scope"):
        f(torch.ones(2))


def test_iterators_go_on_after_a_break_without_running_ahead() -> None:
    log = []

    def f(x):
        def step(v):
            log.append(v)
            return v + 1

        values = map(step, [1, 2, 3])
        rest = [10, 20]
        it = iter(rest)
        x = x + next(values) + next(it)
        torch._dynamo.graph_break()
        rest.append(30)
        return x + next(values), list(it), list(enumerate(values, 5))

    x = torch.ones(2)
    expected, plain = f(x), list(log)
    log.clear()
    got = torch.compile(f, backend="eager")(x)
    assert torch.equal(got[0], expected[0]) and got[1:] == expected[1:] and log == plain


def test_disabled_function_runs_as_it_is_and_compiled_one_is_inlined() -> None:
    count = Count()
    seen = []

    @torch.compiler.disable
    def hidden(x):
        seen.append(type(x))
        return x + 1

    inner = torch.compile(lambda x: x * 3, backend="eager")

    @torch.compile(backend=count)
    def f(x):
        return hidden(inner(x) * 2) * 2

    assert torch.equal(f(torch.ones(2)), torch.full((2,), 14.0))
    assert seen == [torch.Tensor] and len(count.graphs) == 2


def test_super_without_arguments_works_behind_a_break() -> None:
    class Base:
        def run(self, x):
            return x + 1

    class Derived(Base):
        def run(self, x):
            y = x * 2
            torch._dynamo.graph_break()
            return super().run(y)

    assert torch.equal(
        torch.compile(Derived().run, backend="eager")(torch.ones(2)), torch.full((2,), 3.0)
    )


def test_trees_are_taken_apart_and_put_together_while_tracing() -> None:
    from torch.utils import _pytree as pytree

    @torch.compile(backend="eager", fullgraph=True)
    def f(tree):
        leaves, spec = pytree.tree_flatten(tree)
        made = pytree.tree_unflatten([leaf + 1 for leaf in leaves], spec)
        return pytree.tree_map(lambda t: t * 2, made), spec.num_leaves, pytree.tree_leaves(made)

    tree = {"a": [torch.zeros(1), (torch.ones(1),)], "b": torch.zeros(1)}
    made, count, leaves = f(tree)
    assert count == 3 and [int(leaf) for leaf in leaves] == [1, 2, 1]
    assert made == {
        "a": [torch.full((1,), 2.0), (torch.full((1,), 4.0),)],
        "b": torch.full((1,), 2.0),
    }


def test_size_that_was_promised_to_vary_and_is_fixed_raises() -> None:
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    def f(x):
        return x.sum() if x.shape[0] == 3 else x

    x = torch.ones(3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises((ConstraintViolationError, torch._dynamo.exc.TorchDynamoException)):
        torch.compile(f, backend="eager", fullgraph=True)(x)
