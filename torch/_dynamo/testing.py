"""Help for tests of the compiler: backends that count or keep what they are given, and
comparisons."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import torch
from torch import fx
from torch._dynamo import config, optimize_assert, reset
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.utils import same

__all__ = [
    "AotEagerAndRecordGraphs",
    "CompileCounter",
    "CompileCounterInt",
    "CompileCounterWithBackend",
    "EagerAndRecordGraphs",
    "InductorAndRecordGraphs",
    "collect_results",
    "debug_dir",
    "dummy_fx_compile",
    "empty_line_normalizer",
    "expectedFailureDynamic",
    "expectedFailureDynamicWrapper",
    "extract_graph",
    "extract_graph_backend",
    "make_test_cls_with_patches",
    "named_buffers_for_optimized_module",
    "named_parameters_for_optimized_module",
    "normalize_gm",
    "rand_strided",
    "reduce_to_scalar_loss",
    "remove_optimized_module_prefix",
    "remove_trailing_space",
    "requires_bwd_pass",
    "same",
    "skipIfNotPy311",
    "skipIfNotPy312",
    "skipIfOnlyNotPy312",
    "skipIfPy312",
    "skipIfPy313",
    "standard_test",
    "strip_comment",
    "unsupported",
    "xfailIfPy312",
]

Graph = fx.GraphModule
unsupported = torch._dynamo.utils.unsupported
three = 3  # a global for tests of guards on globals


# ---- backends that look


def _operations(gm: Graph) -> int:
    return sum("call" in node.op for node in gm.graph.nodes)


class CompileCounter:
    """The backend `eager` that counts graphs (frame_count) and calls in them (op_count)."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
        self.frame_count += 1
        self.op_count += _operations(gm)
        return gm.forward

    def clear(self) -> None:
        """Counts from zero."""
        self.frame_count: int | CompileCounterInt = 0
        self.op_count: int | CompileCounterInt = 0


class CompileCounterInt(int):
    """A count whose sums with other numbers are counts."""

    def __add__(self, other: int) -> CompileCounterInt:
        return CompileCounterInt(super().__add__(other))


class CompileCounterWithBackend:
    """A backend that counts graphs, keeps them, and passes them on to another."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
        self.frame_count += 1
        self.op_count += _operations(gm)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Counts from zero and forgets the graphs."""
        self.frame_count: int | CompileCounterInt = 0
        self.op_count: int | CompileCounterInt = 0
        self.graphs: list[Graph] = []


class EagerAndRecordGraphs:
    """The backend `eager` that keeps the graphs."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []

    def __call__(self, gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
        self.graphs.append(gm)
        return gm.forward


class AotEagerAndRecordGraphs:
    """The backend `aot_eager` that keeps captured, forward and backward graphs."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.fw_graphs: list[Graph] = []
        self.bw_graphs: list[Graph] = []

    def __call__(self, gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
        from torch._dynamo.backends.common import aot_autograd
        from torch._dynamo.backends.debugging import boxed_nop

        self.graphs.append(gm)

        def keep(into: list[Graph]) -> Callable:
            def compiler(graph: Graph, inputs: list[torch.Tensor]) -> Callable:
                into.append(graph)
                return boxed_nop(graph, inputs)

            return compiler

        backend = aot_autograd(fw_compiler=keep(self.fw_graphs), bw_compiler=keep(self.bw_graphs))
        return backend(gm, example_inputs)


class InductorAndRecordGraphs:
    """The backend `inductor` that keeps captured graphs."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.inductor_graphs: list[Graph] = []

    def __call__(self, gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
        self.graphs.append(gm)
        return lookup_backend("inductor")(gm, example_inputs)


def extract_graph_backend(gm: Graph, *args: object, gms: list[Graph] | None = None) -> Callable:
    """The backend `eager`; graphs go to `gms`."""
    if gms is not None:
        gms.append(gm)
    return gm.forward


def extract_graph(fn: Callable, *args: object, **kwargs: object) -> tuple[object, list[Graph]]:
    """The result of a compiled call, and its graphs."""
    backend = EagerAndRecordGraphs()
    return torch.compile(fn, backend=backend)(*args, **kwargs), backend.graphs


def dummy_fx_compile(gm: Graph, example_inputs: list[torch.Tensor]) -> Callable:
    """A backend that compiles nothing."""
    return gm.forward


# ---- graphs as text


def strip_comment(code: str) -> str:
    """Text without comments."""
    return re.sub(r"(?m)^ *#.*\n?", "", code)


def remove_trailing_space(code: str) -> str:
    """Text without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in code.split("\n"))


def empty_line_normalizer(code: str) -> str:
    """Text without empty lines."""
    return re.sub(r"[\r\n]+", "\n", code)


def _squash_blank_lines(code: str) -> str:
    lines = code.split("\n")
    kept = [line for i, line in enumerate(lines) if line.strip() or (i and lines[i - 1].strip())]
    return "\n".join(kept)


def normalize_gm(gm_str: str) -> str:
    """The text of a graph in a form that does not depend on lines of the test."""
    return remove_trailing_space(_squash_blank_lines(strip_comment(gm_str)))


# ---- comparisons of runs


def reduce_to_scalar_loss(out: object) -> torch.Tensor | float:
    """A number that depends on everything in an output."""
    if isinstance(out, torch.Tensor):
        return out.sum() / out.numel()
    if isinstance(out, (list, tuple)):
        return sum(reduce_to_scalar_loss(x) for x in out) / len(out)
    if type(out).__name__ in (
        "MaskedLMOutput",
        "Seq2SeqLMOutput",
        "CausalLMOutputWithCrossAttentions",
    ):
        return reduce_to_scalar_loss(out.logits)
    if type(out).__name__ == "SquashedNormal":
        return out.mean.sum()
    if isinstance(out, dict):
        return sum(reduce_to_scalar_loss(x) for x in out.values()) / len(out)
    raise NotImplementedError("Don't know how to reduce", type(out))


def requires_bwd_pass(out: object) -> bool:
    """Whether something in an output has a gradient."""
    if isinstance(out, torch.Tensor):
        return out.requires_grad
    if isinstance(out, (list, tuple)):
        return any(requires_bwd_pass(x) for x in out)
    if out is None or isinstance(out, int):
        return False
    raise NotImplementedError("Don't know how to reduce", type(out))


def collect_results(
    model: torch.nn.Module, prediction: object, loss: object, example_inputs: Sequence[object]
) -> list[object]:
    """What a training step left behind: outputs, gradients, buffers, gradients of inputs."""
    grads = {f"{n}.grad": p.grad for n, p in named_parameters_for_optimized_module(model)}
    params = {n: p.data for n, p in named_parameters_for_optimized_module(model)}
    buffers = dict(named_buffers_for_optimized_module(model))
    inputs = [x.grad for x in example_inputs if isinstance(x, torch.Tensor) and x.grad is not None]
    return [prediction, loss, grads, params, buffers, *inputs]


def remove_optimized_module_prefix(name: str) -> str:
    """The name of a parameter without the wrapper's part."""
    return re.sub(r"^_orig_mod[.]", "", name)


def named_parameters_for_optimized_module(
    mod: torch.nn.Module,
) -> list[tuple[str, torch.nn.Parameter]]:
    """Parameters under the names they have without the wrapper."""
    return [(remove_optimized_module_prefix(n), p) for n, p in mod.named_parameters()]


def named_buffers_for_optimized_module(mod: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Buffers under the names they have without the wrapper."""
    return [(remove_optimized_module_prefix(n), b) for n, b in mod.named_buffers()]


def standard_test(
    self: unittest.TestCase,
    fn: Callable,
    nargs: int,
    expected_ops: int | None = None,
    expected_ops_dynamic: int | None = None,
    expected_frame_count: int = 1,
) -> None:
    """fn of random tensors gives the same compiled, twice, in as many graphs and calls as said."""
    if not config.assume_static_by_default and expected_ops_dynamic is not None:
        expected_ops = expected_ops_dynamic
    counter = CompileCounter()
    first = [torch.randn(10, 10) for _ in range(nargs)]
    second = [torch.randn(10, 10) for _ in range(nargs)]
    expected = fn(*first), fn(*second)
    reset()
    compiled = optimize_assert(counter)(fn)
    got = compiled(*first), compiled(*second), compiled(*first), compiled(*second)
    reset()
    for have, want in zip(got, expected * 2, strict=True):
        self.assertTrue(same(have, want))
    self.assertEqual(counter.frame_count, expected_frame_count)
    if expected_ops is not None:
        self.assertEqual(counter.op_count, expected_ops)


# ---- conditions


def _version_condition(holds: bool, reason: str) -> Callable[[Callable], Callable]:
    return unittest.skipIf(holds, reason)


skipIfNotPy311 = _version_condition(sys.version_info < (3, 11), "Requires Python 3.11+")
skipIfNotPy312 = _version_condition(sys.version_info < (3, 12), "Requires Python 3.12+")
skipIfOnlyNotPy312 = _version_condition(sys.version_info[:2] != (3, 12), "Requires Python 3.12")
skipIfPy312 = _version_condition(sys.version_info >= (3, 12), "Not supported in Python 3.12+")
skipIfPy313 = _version_condition(sys.version_info >= (3, 13), "Not supported in Python 3.13+")


def xfailIfPy312(fn: Callable) -> Callable:
    """A test that fails from 3.12 on."""
    return unittest.expectedFailure(fn) if sys.version_info >= (3, 12) else fn


def expectedFailureDynamic(fn: Callable) -> Callable:
    """A test that fails when sizes vary."""
    fn._expected_failure_dynamic = True
    return fn


def expectedFailureDynamicWrapper(fn: Callable) -> Callable:
    """A test that fails when sizes vary and the wrapper is generated in C++."""
    fn._expected_failure_dynamic_wrapper = True
    return fn


def reset_rng_state(use_xla: bool = False) -> None:
    """Seeds every generator with the same number."""
    import random

    torch.manual_seed(1337)
    random.seed(1337)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(1337)


@contextlib.contextmanager
def debug_dir() -> Iterator[str]:
    """A folder for debug output that lasts as long as the context."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, config.patch(debug_dir_root=folder):
        yield folder


def check_dynamic_shape_capture() -> bool:
    """Whether a test runs with sizes as symbols from the first call on."""
    return not config.assume_static_by_default


def _skipped_function_for_test_reconstruct(f: Callable, *args: object, **kwargs: object) -> object:
    return f(*args, **kwargs)


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    extra_size: int = 0,
) -> torch.Tensor:
    """A tensor with this geometry whose memory, gaps included, holds random numbers."""
    needed = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 if all(size) else 0
    needed += extra_size
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize > 1 else torch.float16
        memory = torch.randn(needed, dtype=wide, device=device).to(dtype)
    else:
        memory = torch.zeros(needed, dtype=dtype, device=device)
    return torch.as_strided(memory, size, stride)


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: tuple[object, str, object],
    xfail_prop: str | None = None,
    decorator: Callable[[Callable[..., None]], Callable[..., None]] = lambda test: test,
) -> type:
    """A copy of a class of tests whose tests run with attributes of objects set to other values.
    Tests with the attribute `xfail_prop` are expected to fail."""

    def patched(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(self: unittest.TestCase, *args: object, **kwargs: object) -> None:
            for owner, name, value in patches:
                setting = mock.patch.object(owner, name, value)
                setting.start()
                self.addCleanup(setting.stop)
            test(self, *args, **kwargs)

        expected = xfail_prop is not None and hasattr(test, xfail_prop)
        return unittest.expectedFailure(run) if expected else decorator(run)

    body: dict[str, object] = {}
    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_") and callable(value):
            # The test itself is not one of the copy. One that waits for its device and dtype is not
            # a test yet.
            if issubclass(cls, unittest.TestCase) and len(inspect.signature(value).parameters) == 1:
                body[name] = None
            body[name + fn_suffix] = patched(value)
    return type(cls_prefix + cls.__name__, (cls,), body)
