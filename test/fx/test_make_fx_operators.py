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
