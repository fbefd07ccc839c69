"""Every operator as a graph, from the op records: what make_fx records on fake tensors, of fixed
and of symbolic sizes, computes what the operator computes. Memory that nobody wrote is filled, so
that a value that a kernel wrote while it was traced, and that the graph lost, shows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import flat_tensors

# Results in sparse layouts have no fake form.
RECORDS = [r for r in records() if "number of elements" not in (r.skip_reason("meta") or "")]
CASES = [
    pytest.param(record, dtype, id=f"{record.full_name}-{str(dtype)[6:]}")
    for record in RECORDS
    for dtype in (torch.float32, torch.int64)
    if record.supports_dtype(dtype)
]
UNKNOWABLE = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    GuardOnDataDependentSymNode,
)
# How operators say that they read values, or take no such arguments.
REASONS = (
    "get value out of a tracing tensor",
    "convert all Tensors to FakeTensors",
    "has no memory",
    "storage of SparseTensorImpl",
    "do not describe",
    "duplicate values",
)
SAMPLES = 4


@pytest.fixture(autouse=True)
def filled() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(before, warn_only=warn)


def graph_of(record, sample, mode) -> tuple:
    """The graph of a call, and the tensors of the call."""
    given: list[torch.Tensor] = []
    sample.transform(lambda t: given.append(t.detach().clone()) or t)

    def call(*tensors):
        remaining = iter(tensors)
        return flat_tensors(record.apply(sample.transform(lambda t: next(remaining))))

    return make_fx(call, tracing_mode=mode)(*[t.clone() for t in given]), given


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.layout is not torch.strided or a.is_quantized:
        return a.layout is b.layout
    form = (a.dtype, a.shape) == (b.dtype, b.shape)
    return form and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_graph_of_an_operator_gives_its_results(record, dtype, mode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in list(record.sample_inputs("cpu", dtype))[:SAMPLES]:
            torch.manual_seed(0)
            wanted = flat_tensors(record.apply(sample.transform(lambda t: t.detach().clone())))
            try:
                graph, given = graph_of(record, sample, mode)
            except UNKNOWABLE:
                continue
            except (RuntimeError, AssertionError, IndexError) as error:
                if any(reason in str(error) for reason in REASONS):
                    continue
                raise
            torch.manual_seed(0)
            got = graph(*[t.clone() for t in given])
            assert len(got) == len(wanted)
            for a, b in zip(wanted, got, strict=True):
                assert same(a, b), (sample, graph.code)


# Inputs are the ends of longer tensors, so that their sizes are sums of a symbol and a number, and
# guards find out that some of them are 1.
PAD = 5


def gradients(record, sample, tensors) -> list[torch.Tensor]:
    """The gradients of an operator called with the ends of tensors."""
    with torch.enable_grad():
        ends = [t[tuple(slice(PAD, None) for _ in t.shape)].detach() for t in tensors]
        leaves = [t.requires_grad_() for t in ends if t.is_floating_point()]
        remaining = iter(ends)
        out = flat_tensors(record.apply(sample.transform(lambda t: next(remaining))))
        parts = [o.abs() if o.is_complex() else o for o in out if o.requires_grad]
        if not parts or not leaves:
            return []
        total = sum(part.sin().sum() for part in parts)
        found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [g for g in found if g is not None]


def longer(t: torch.Tensor) -> torch.Tensor:
    out = t.new_zeros([size + PAD for size in t.shape])
    out[tuple(slice(PAD, None) for _ in t.shape)] = t.detach()
    return out


@pytest.mark.parametrize(
    "record",
    [
        r
        for r in RECORDS
        if r.supports_autograd and r.grad_op is None and not r.name.startswith("_")
    ],
    ids=lambda r: r.full_name,
)
def test_graph_of_a_gradient_of_symbolic_sizes_gives_the_gradient(record) -> None:
    samples = list(record.sample_inputs("cpu", torch.float64, requires_grad=True))[:SAMPLES]
    for sample in samples:
        given: list[torch.Tensor] = []
        sample.transform(lambda t, given=given: given.append(longer(t)) or t)
        if any(t.layout is not torch.strided for t in given):
            continue

        def call(*tensors, sample=sample):
            return gradients(record, sample, tensors)

        torch.manual_seed(0)
        try:
            wanted = call(*given)
        except RuntimeError:  # ends of tensors are not contiguous; derivatives in one argument only
            continue
        try:
            graph = make_fx(call, tracing_mode="symbolic")(*given)
        except UNKNOWABLE:
            continue
        except (RuntimeError, AssertionError) as error:
            if any(reason in str(error) for reason in REASONS):
                continue
            raise
        torch.manual_seed(0)
        for a, b in zip(wanted, graph(*given), strict=True):
            assert same(a, b), (sample, graph.code)


@pytest.mark.parametrize("name", ["mean", "var", "std", "rms_norm", "layer_norm", "var_mean"])
def test_gradients_divide_by_a_size_that_a_guard_has_fixed(name) -> None:
    def loss(x):
        if x.size(-1) == 6:
            if name.endswith("norm"):
                out = getattr(torch.nn.functional, name)(x, (6,))
            else:
                out = getattr(torch, name)(x, -1, keepdim=True)
            out = out if isinstance(out, torch.Tensor) else out[0] + out[1]
        return (out * x).sum()

    def gradient(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(loss(x), x)[0]

    x = torch.randn(3, 4, 6)
    graph = make_fx(gradient, tracing_mode="symbolic")(x)
    torch.testing.assert_close(graph(x), gradient(x))
