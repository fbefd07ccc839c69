"""torch.library.get_ctx: fake forms of operators whose results have sizes that the data decide."""

import pytest

import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.library import Library, custom_op


def kept_with(**bounds):
    """An operator that keeps positive elements; its fake form asks for a size within bounds."""

    @custom_op("test_sizes::kept", mutates_args=())
    def kept(x: Tensor) -> Tensor:
        return x[x > 0]

    @kept.register_fake
    def _(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(**bounds))

    return kept


class Kept(nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x) * 2


def test_exported_operator_returns_as_many_elements_as_the_data_have():
    program = torch.export.export(Kept(kept_with(max=7)), (torch.randn(5),))
    assert "VR[0, 7]" in str(program.range_constraints)
    for x in ([1.0, -1.0, 2.0, 3.0, -4.0], [-1.0] * 5):
        wanted = [2 * v for v in x if v > 0]
        assert program.module()(torch.tensor(x)).tolist() == wanted


def test_compiled_operator_returns_as_many_elements_as_the_data_have():
    compiled = torch.compile(Kept(kept_with()), backend="eager")
    assert compiled(torch.tensor([1.0, -1.0, 2.0])).tolist() == [2.0, 4.0]


def test_size_below_zero_is_refused():
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        torch.export.export(Kept(kept_with(min=-1)), (torch.randn(5),))


def test_mode_without_symbols_says_that_the_shape_is_dynamic():
    op = kept_with()
    with FakeTensorMode(), pytest.raises(DynamicOutputShapeException):
        op(torch.ones(3))


def test_meta_tensors_cannot_have_such_sizes():
    with pytest.raises(RuntimeError, match="run it on FakeTensors"):
        kept_with()(torch.ones(3, device="meta"))


def test_library_operator_has_a_context_and_loses_it_afterwards():
    library = Library("test_sizes_lib", "DEF")
    try:
        library.define("some(Tensor x) -> Tensor")
        library.impl("some", lambda x: x[x > 0], "CPU")

        def fake(x):
            return x.new_empty(torch.library.get_ctx().new_dynamic_size(min=2))

        torch.library.register_fake("test_sizes_lib::some", fake, lib=library)
        with FakeTensorMode(shape_env=ShapeEnv()):
            size = torch.ops.test_sizes_lib.some(torch.ones(3)).shape[0]
        assert isinstance(size, torch.SymInt)
        with pytest.raises(RuntimeError, match="outside of a fake implementation"):
            torch.library.get_ctx()
    finally:
        library._destroy()
