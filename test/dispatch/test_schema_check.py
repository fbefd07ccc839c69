"""SchemaCheckMode and _SchemaInfo: operators keep to the writes and aliases of their schemas."""

import pytest

import torch
from torch._C import _SchemaArgType, _SchemaArgument, _SchemaInfo
from torch._subclasses.schema_check_mode import SchemaCheckMode


@pytest.fixture
def library():
    made = torch.library.Library("schema_check_test", "FRAGMENT")
    yield made
    made._destroy()


def _define(library, text, function):
    name = text.partition("(")[0]
    library.define(text)
    library.impl(name, function, "CPU")
    return getattr(torch.ops.schema_check_test, name)


def test_operators_writes_and_aliases_are_recorded():
    x = torch.rand(3, 3)
    with SchemaCheckMode() as mode:
        y = x.relu()
        y.sinh_()
        y.view(9)
    assert mode.ops == ["aten::relu", "aten::sinh_", "aten::view"]
    assert mode.mutated == [("aten::sinh_", "input")]
    assert mode.aliasing == [
        ("aten::sinh_", "input", "output_0"),
        ("aten::view", "input", "output_0"),
    ]


def test_the_same_tensor_passed_twice_may_be_written_through_either():
    x = torch.rand(3)
    with SchemaCheckMode() as mode:
        x.add_(x)
    assert mode.mutated == [("aten::add_", "input"), ("aten::add_", "other")]


def test_a_change_of_shape_alone_counts_as_a_write():
    x = torch.rand(3, 3)
    with SchemaCheckMode() as mode:
        x.resize_(9)
    assert mode.mutated == [("aten::resize_", "input")]


def test_nan_that_stays_is_no_write():
    with SchemaCheckMode() as mode:
        torch.full((3,), torch.nan).sin()
    assert mode.mutated == []


def test_batch_norm_in_training_may_write_its_statistics():
    layer, x = torch.nn.BatchNorm1d(3), torch.rand(4, 3)
    with SchemaCheckMode() as mode:
        layer(x)
    assert ("running_mean" in {name for _, name in mode.mutated}) is True


def test_a_write_that_the_schema_denies_is_refused(library):
    op = _define(library, "writes(Tensor x) -> Tensor", lambda x: x.mul_(2) * 3)
    with pytest.raises(RuntimeError, match="x is not defined as mutable"), SchemaCheckMode():
        op(torch.ones(2))


def test_a_view_that_the_schema_denies_is_refused(library):
    op = _define(library, "views(Tensor x) -> Tensor", lambda x: x.view(-1))
    with pytest.raises(RuntimeError, match="not defined to alias output"), SchemaCheckMode():
        op(torch.ones(2, 2))


def test_an_argument_returned_by_an_operator_of_another_package_is_refused(library):
    op = _define(library, "same(Tensor(a) x) -> Tensor(a)", lambda x: x)
    with pytest.raises(RuntimeError, match="not allowed to directly return"), SchemaCheckMode():
        op(torch.ones(2))


def test_unsafe_views_are_allowed_to_alias():
    with SchemaCheckMode() as mode:
        torch._unsafe_view(torch.rand(4), (2, 2))
    assert mode.aliasing == []


def test_schema_info_joins_the_schema_and_the_values_of_a_call():
    first, second = (_SchemaArgument(_SchemaArgType.input, i) for i in (0, 1))
    info = _SchemaInfo(torch.ops.aten.add_.Tensor._schema)
    assert info.is_mutable(first) and not info.is_mutable(second)
    assert not info.may_alias(first, second)
    x = torch.ones(2)
    info.add_argument_values({"input": x, "other": x[:1]})
    assert info.is_mutable(second) and info.may_alias(first, second)
    with pytest.raises(RuntimeError, match="no argument named nothing"):
        info.add_argument_value("nothing", 1)


def test_overlaps_looks_into_lists_and_is_false_for_empty_ones():
    x, y = torch.ones(2), torch.ones(2)
    assert torch._C._overlaps([x, y], y)
    assert not torch._C._overlaps([], x)
    assert not torch._C._is_alias_of(x, y)
    assert torch._C._is_alias_of(x, x.view(2, 1))
