"""Operators defined in Python: torch.ops, torch.library and custom operators."""

import copy
import gc
import pickle
from collections.abc import Sequence

import pytest

import torch
from torch import Tensor
from torch.library import Library, custom_op, infer_schema, opcheck
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def lib():
    made = Library("test_library", "DEF")
    yield made
    made._destroy()


def test_ops_finds_operators_by_name_and_overload():
    add = torch.ops.aten.add
    assert str(add) == "aten.add" and "Tensor" in add.overloads()
    assert add.Tensor is torch.ops.aten.add.Tensor
    assert str(add.Tensor) == "aten.add.Tensor" and add.Tensor.name() == "aten::add.Tensor"
    assert repr(add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert add.Tensor(torch.ones(2), torch.ones(2), alpha=2).tolist() == [3, 3]
    assert add(torch.ones(2), 1).tolist() == [2, 2]
    assert copy.deepcopy(add.Tensor) is add.Tensor
    assert pickle.loads(pickle.dumps(add.Tensor)) is add.Tensor


def test_ops_without_such_operator_or_overload_raise():
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_that_name'"):
        _ = torch.ops.aten.nothing_of_that_name
    with pytest.raises(AttributeError, match="no overload name 'Foo'"):
        _ = torch.ops.aten.add.Foo
    with pytest.raises((TypeError, RuntimeError)):
        torch.ops.aten.add.Tensor(torch.ones(1), "a")
    with pytest.raises((TypeError, RuntimeError), match="failed to match any schema"):
        torch.ops.aten.add("a", "b")


def test_schema_describes_arguments():
    schema = torch.ops.aten.add.Tensor._schema
    assert [a.name for a in schema.arguments] == ["self", "other", "alpha"]
    assert schema.arguments[2].kwarg_only and schema.arguments[2].default_value == 1
    assert not schema.is_mutable and torch.ops.aten.add_.Tensor._schema.is_mutable


def test_library_defines_and_implements(lib):
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError):
        torch.ops.test_library.twice(torch.ones(1))
    lib.impl("twice", lambda x: x * 2, "CPU")
    assert torch.ops.test_library.twice(torch.ones(2)).tolist() == [2, 2]
    lib.impl("twice", lambda x: torch.empty_like(x), "Meta")
    assert torch.ops.test_library.twice(torch.ones(2, device="meta")).is_meta


def test_library_checks_what_it_is_told(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError):
        lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError):
        lib.define("broken(Tensor x -> ")
    with pytest.raises(RuntimeError):
        lib.impl("f", lambda x: x, "NoSuchKey")
    with pytest.raises(TypeError):
        lib.impl("f", 3, "CPU")
    with pytest.raises(ValueError, match="Unsupported kind"):
        Library("test_library_2", "FOO")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("test_library", "DEF")


def test_library_results_are_checked_against_the_schema(lib):
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: "text", "CPU")
    with pytest.raises((RuntimeError, TypeError)):
        torch.ops.test_library.g(torch.ones(1))


def test_errors_of_python_kernels_reach_the_caller(lib):
    class Mine(Exception):
        pass

    def kernel(x):
        raise Mine("here")

    lib.define("h(Tensor x) -> Tensor")
    lib.impl("h", kernel, "CPU")
    with pytest.raises(Mine, match="here"):
        torch.ops.test_library.h(torch.ones(1))


def test_destroyed_library_takes_its_operators_along():
    made = Library("test_library_gone", "DEF")
    made.define("f(Tensor x) -> Tensor")
    assert torch.ops.test_library_gone.f
    made._destroy()
    with pytest.raises(AttributeError):
        _ = torch.ops.test_library_gone.f


def test_infer_schema_reads_annotations():
    def f(
        x: Tensor, ys: Sequence[Tensor], n: int = 1, o: Tensor | None = None, *, s: str = "a"
    ) -> tuple[Tensor, Tensor]: ...

    assert infer_schema(f, mutates_args=()) == (
        '(Tensor x, Tensor[] ys, SymInt n=1, Tensor? o=None, *, str s="a") -> (Tensor, Tensor)'
    )
    assert infer_schema(f, mutates_args=("ys",)).startswith("(Tensor x, Tensor(a1!)[] ys")

    def g(x: Tensor) -> list[Tensor]: ...

    assert infer_schema(g, mutates_args=()) == "(Tensor x) -> Tensor[]"


@pytest.mark.parametrize(
    "source",
    [
        "def f(x) -> Tensor: ...",
        "def f(x: Tensor): ...",
        "def f(x: dict) -> Tensor: ...",
        "def f(*x: Tensor) -> Tensor: ...",
    ],
)
def test_infer_schema_refuses_what_operators_cannot_take(source):
    space = {"Tensor": Tensor}
    exec(source, space)
    with pytest.raises(ValueError):
        infer_schema(space["f"], mutates_args=())


def test_custom_op_runs_and_has_a_fake_form():
    @custom_op("test_custom::sine", mutates_args=())
    def sine(x: Tensor) -> Tensor:
        return torch.from_numpy(__import__("numpy").sin(x.numpy()))

    assert repr(sine) == "<CustomOpDef(test_custom::sine)>"
    assert torch.allclose(sine(torch.ones(2)), torch.ones(2).sin())
    with pytest.raises(RuntimeError, match="no fake impl"):
        sine(torch.ones(2, device="meta"))

    @sine.register_fake
    def _(x):
        return torch.empty_like(x)

    assert sine(torch.ones(2, device="meta")).is_meta
    assert opcheck(sine, (torch.ones(3),)) == {
        "test_schema": "SUCCESS",
        "test_autograd_registration": "SUCCESS",
        "test_faketensor": "SUCCESS",
    }


def test_custom_op_that_returns_its_input_raises():
    @custom_op("test_custom::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(1))


def test_custom_op_that_mutates_raises_the_version():
    @custom_op("test_custom::fill", mutates_args={"x"})
    def fill(x: Tensor) -> None:
        x.fill_(3)

    x = torch.ones(2)
    before = x._version
    assert fill(x) is None
    assert x.tolist() == [3, 3] and x._version > before


def test_opcheck_finds_undeclared_mutation():
    @custom_op("test_custom::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(Exception, match="not defined as mutable"):
        opcheck(liar, (torch.ones(2),), test_utils="test_schema")


def test_defining_and_destroying_again_costs_no_memory():
    def once():
        lib = Library("fleeting", "DEF")
        lib.define("op(Tensor x) -> Tensor")
        lib.impl("op", lambda x: x + 1, "CPU")
        assert torch.ops.fleeting.op(torch.zeros(1)).item() == 1
        lib._destroy()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(200):
        once()
    gc.collect()
    before = resident()
    for _ in range(2000):
        once()
    gc.collect()
    assert resident() - before < 1 << 20


USES = {
    "product": lambda: torch.rand(4, 4) @ torch.rand(4, 4),
    "shape": lambda: torch.rand(4, 4).view(16).expand(2, 16),
    "strides": lambda: torch.empty_strided((4, 4), (1, 4)),
    "sort": lambda: torch.rand(4, 4).sort(),
    "svd": lambda: torch.linalg.svd(torch.rand(4, 4)),
    "convolution": lambda: torch.conv2d(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 3, 3)),
    "linear": lambda: torch.nn.functional.linear(torch.rand(4, 4), torch.rand(4, 4)),
    "lstm": lambda: torch.nn.LSTM(4, 3)(torch.rand(1, 4, 4)),
    "copy": lambda: torch.rand(4, 4).t().reshape(-1),
    "index": lambda: torch.rand(4, 4)[torch.tensor([0, 1])],
}


@pytest.mark.parametrize("kind", ["None", "shape", "dtype", "text", "without memory"])
@pytest.mark.parametrize("op", ["empty.memory_format", "empty_strided", "mm", "view", "expand"])
@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd"])
def test_kernel_with_a_wrong_result_makes_its_callers_raise_at_worst(op, kind, key):
    answer = {
        "None": None,
        "shape": torch.ones(1),
        "dtype": torch.ones(4, 4, dtype=torch.int8),
        "text": "text",
        "without memory": torch.ones(4, 4, device="meta"),
    }[kind]
    raised = set()
    lib = Library("aten", "IMPL")
    lib.impl(op, lambda *args, **kwargs: answer, key)
    try:
        for use in USES.values():
            try:
                use()
            except (RuntimeError, TypeError) as error:
                raised.add(type(error))
    finally:
        lib._destroy()
    # mm and view have kernels of their own for each device, before which no composite one comes.
    assert raised or key != "CPU"


def test_handler_that_returns_nothing_raises():
    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return None

    x = torch.rand(3, 3)
    with Silent(), pytest.raises(TypeError, match="mm must return a Tensor"):
        x @ x
    with Silent(), pytest.raises(TypeError, match="returned None"):
        torch.empty(3)
    with Silent():
        x.add_(1)  # the argument itself is the result


def test_register_autocast_casts_floating_inputs_of_the_device(lib):
    seen = []

    @custom_op("test_library::watched", mutates_args=())
    def watched(x: Tensor, rows: Sequence[Tensor], index: Tensor) -> Tensor:
        seen.append([x.dtype, *(r.dtype for r in rows), index.dtype, torch.is_autocast_enabled()])
        return x.clone()

    lib.define("by_library(Tensor x) -> Tensor")
    lib.impl("by_library", lambda x: x + 1, "CompositeExplicitAutograd")
    watched.register_autocast("cpu", torch.bfloat16)
    torch.library.register_autocast("test_library::by_library", "cpu", torch.float16)
    x, exact = torch.ones(2), torch.ones(2, dtype=torch.float64)
    index = torch.zeros(1, dtype=torch.int64)
    watched(x, [exact], index)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert watched(x, [x, exact], index).dtype == torch.bfloat16
        assert torch.ops.test_library.by_library(x).dtype == torch.float16
    assert torch.ops.test_library.by_library(x).dtype == torch.float32
    assert seen[0][:2] == [torch.float32, torch.float64]
    assert seen[1] == [torch.bfloat16, torch.bfloat16, torch.float64, torch.int64, False]
    with pytest.raises(ValueError, match="unknown device type 'abacus'"):
        watched.register_autocast("abacus", torch.bfloat16)
    with pytest.raises(ValueError, match="should be a string"):
        watched.register_autocast(3, torch.bfloat16)
