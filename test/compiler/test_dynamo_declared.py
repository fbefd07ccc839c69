"""What programs declare about functions: how far they are traced, when they are compiled."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo
from torch._dynamo import exc
from torch._dynamo.testing import CompileCounter
from torch.onnx.operators import shape_as_tensor
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Pair:
    def __init__(self, a: object, b: object) -> None:
        self.a, self.b = a, b


pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))


@torch._dynamo.nonstrict_trace
def on_trees(given: dict, count: int = 2, *, pair: Pair) -> dict:
    torch._dynamo.graph_break()
    total = given["a"] + given["b"][0] * count + pair.a
    return {"total": total, "count": count, "b": given["b"], "pair": Pair(total + 1, "text")}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_function_that_is_not_traced_strictly_takes_and_gives_trees(backend: str) -> None:
    def fn(x: torch.Tensor) -> tuple:
        found = on_trees({"a": x, "b": [x + 1]}, pair=Pair(x * 3, None))
        return found["total"], found["count"], found["b"], found["pair"].a, found["pair"].b

    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    for x in (torch.randn(3), torch.randn(3)):
        wanted, got = fn(x), compiled(x)
        assert torch.equal(got[0], wanted[0]) and torch.equal(got[3], wanted[3])
        assert torch.equal(got[2][0], wanted[2][0]) and (got[1], got[4]) == (2, "text")


def test_object_that_is_no_tree_is_refused_with_what_would_help() -> None:
    class Unknown:
        pass

    @torch._dynamo.nonstrict_trace
    def fn(obj: Unknown, x: torch.Tensor) -> torch.Tensor:
        return x

    compiled = torch.compile(lambda x: fn(Unknown(), x), backend="eager", fullgraph=True)
    with pytest.raises(exc.Unsupported, match=r"Invalid input type.*\n.*\n.*register_pytree_node"):
        compiled(torch.ones(2))


def test_isolated_compilation_neither_uses_forms_of_others_nor_counts_for_them() -> None:
    counter = CompileCounter()

    def fn(x: torch.Tensor, n: str) -> torch.Tensor:
        return x + len(n)

    shared = torch.compile(fn, backend=counter, recompile_limit=2)
    alone = torch.compile(fn, backend=counter, recompile_limit=2, isolate_recompiles=True)
    x = torch.ones(2)
    for text in ("", "a"):
        assert torch.equal(shared(x, text), alone(x, text))
    assert counter.frame_count == 4
    alone(x, "abc")
    assert counter.frame_count == 4


def test_stance_cannot_change_inside_of_compiled_code() -> None:
    @torch.compiler.set_stance("force_eager")
    def decorated(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def inside(x: torch.Tensor) -> torch.Tensor:
        with torch.compiler.set_stance("force_eager"):
            return x + 1

    for fn in (lambda x: decorated(x), inside):
        with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
            torch.compile(fn, backend="eager")(torch.ones(2))


def test_stances_against_recompiling_allow_no_first_compilation() -> None:
    counter = CompileCounter()
    fn = torch.compile(lambda x: x + 1, backend=counter)
    x = torch.ones(2)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(fn(x), x + 1) and counter.frame_count == 0
    with (
        torch.compiler.set_stance("fail_on_recompile"),
        pytest.raises(RuntimeError, match="fail_on_recompile"),
    ):
        fn(x)
    with pytest.raises(RuntimeError, match="cannot have force_backend set"):
        torch.compiler.set_stance("eager_on_recompile", force_backend="eager")


def test_size_that_was_promised_to_vary_and_is_fixed_says_what_to_do() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.shape[0] == 5 else x

    x = torch.ones(5, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(Exception, match=r"You marked L\['x'\].size.* as dynamic.*maybe_mark"):
        torch.compile(fn, backend="eager")(x)


def test_policy_of_a_checkpoint_may_be_a_partial() -> None:
    kept = [torch.ops.aten.mm.default]
    policy = functools.partial(create_selective_checkpoint_contexts, kept)

    def fn(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda a: a.sin() @ a.t(), x, use_reentrant=False, context_fn=policy)

    x = torch.randn(3, 4, requires_grad=True)
    found = torch.compile(fn, backend="aot_eager", fullgraph=True)(x)
    assert torch.allclose(found, x.sin() @ x.t())


def test_vmap_by_chunks_is_captured() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple:
        return torch.vmap(lambda a, b: (a * b, {"sum": a.sum()}), in_dims=(0, None), chunk_size=2)(
            x, y
        )

    x, y = torch.randn(5, 4), torch.randn(4)
    found = torch.compile(fn, backend="eager", fullgraph=True)(x, y)
    assert torch.equal(found[0], x * y) and torch.allclose(found[1]["sum"], x.sum(1))


class Kind(enum.Enum):
    A = 1
    B = 2


def test_membership_in_a_class_asks_its_metaclass() -> None:
    fn = torch.compile(lambda x, k: x + (k in Kind), backend="eager", fullgraph=True)
    assert torch.equal(fn(torch.zeros(2), Kind.A), torch.ones(2))


@pytest.mark.parametrize("shape_of", [torch._shape_as_tensor, shape_as_tensor])
def test_shape_as_a_tensor_follows_the_shape(shape_of: Callable) -> None:
    fn = torch.compile(lambda x: shape_of(x)[0] + 1, backend="eager", fullgraph=True)
    assert [int(fn(torch.ones(n))) for n in (6, 7, 8)] == [7, 8, 9]


def test_exported_graph_and_failed_guard_unpack_as_tuples() -> None:
    found = torch._dynamo.export(lambda x: x + 1)(torch.ones(2))
    assert len(found) == 2 and found._fields == ("graph_module", "guards")
    reasons = []
    fn = torch._dynamo.optimize("eager", guard_fail_fn=lambda fail: reasons.append(fail[0]))(
        lambda x: x + 1
    )
    fn(torch.ones(2))
    fn(torch.ones(2, dtype=torch.float64))
    assert len(reasons) == 1 and "dtype" in reasons[0]


def test_break_is_raised_as_the_public_class() -> None:
    def fn(x: torch.Tensor) -> None:
        torch._dynamo.graph_break()

    with pytest.raises(exc.Unsupported) as caught:
        torch.compile(fn, backend="eager", fullgraph=True)(torch.ones(2))
    assert type(caught.value) is exc.Unsupported and caught.value.gb_id == "GB0025"


def test_number_that_depends_on_data_and_decides_is_a_user_error() -> None:
    x = torch.ones(5, 3)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    fn = torch.compile(lambda x: x + 1 if x.shape[0] > 3 else x, backend="eager", fullgraph=True)
    with pytest.raises(exc.UserError, match="Could not guard on data-dependent expression"):
        fn(x)
