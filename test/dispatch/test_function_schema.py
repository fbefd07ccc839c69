"""FunctionSchema: whether calls and saved programs of one version work with another; what types
are called; and operators that only check."""

import pytest

import torch
from torch._C import parse_schema

OLD = "op.x(Tensor self, *, Tensor b, int c) -> Tensor"


@pytest.mark.parametrize(
    ("new", "compatible"),
    [
        (OLD, True),
        ("op.x(Tensor self, *, Tensor b, int c, int d=1) -> Tensor", True),
        ("op.x(Tensor self, Tensor b, int c) -> Tensor", True),
        ("op.x(Tensor self, *, Tensor b, int? c) -> Tensor", True),
        ("op.x(Tensor self, *, Tensor b, int c=1) -> Tensor", True),
        ("op.y(Tensor self, *, Tensor b, int c) -> Tensor", False),
        ("op.x(Tensor self, *, Tensor b) -> Tensor", False),
        ("op.x(Tensor self, *, Tensor b, int c, int d) -> Tensor", False),
        ("op.x(Tensor self, *, int c, Tensor b) -> Tensor", False),
        ("op.x(Tensor self, *, Tensor b, int renamed) -> Tensor", False),
        ("op.x(Tensor self, *, Tensor b, int[] c) -> Tensor", False),
        ("op.x(Tensor self, *, Tensor b, int c) -> Tensor?", False),
        ("op.x(Tensor self, *, Tensor b, int c) -> (Tensor, Tensor)", False),
        ("op.x(Tensor(a!) self, *, Tensor b, int c) -> Tensor", False),
    ],
)
def test_a_newer_schema_is_backward_compatible_where_old_calls_mean_the_same(new, compatible):
    assert parse_schema(new).is_backward_compatible_with(parse_schema(OLD)) is compatible


def test_results_may_become_stricter_and_never_looser():
    strict, loose = parse_schema("op() -> Tensor"), parse_schema("op() -> Tensor?")
    assert strict.is_backward_compatible_with(loose)
    assert not loose.is_backward_compatible_with(strict)


def test_out_arguments_are_compared_apart_from_the_others():
    old = parse_schema("op(int a, *, Tensor(a!) out) -> Tensor(a!)")
    more = parse_schema("op(int a, int b=1, *, Tensor(a!) out, Tensor(b!) x) -> Tensor(a!)")
    moved = parse_schema("op(int a, int b=1, *, Tensor(b!) x, Tensor(a!) out) -> Tensor(a!)")
    assert more.is_backward_compatible_with(old)
    assert not moved.is_backward_compatible_with(old)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("op(int a) -> int", ""),
        ("op(int a, int b=1, int c=1) -> int", ""),
        ("op(int a, int b=4) -> int", "'b' is not forward compatible"),
        ("op(int a, int c=1) -> int", "'c' is not forward compatible"),
        ("op(int a=1, int b=1) -> int", "'a' is not forward compatible"),
        ("op(int a, int b=1, int[2] c=1) -> int", "'c' of type int[] has a container type"),
        ("op(int a, int b=1, int c) -> int", "'c' of type int did not provide a default"),
        ("op(int a, int b=1, *, Tensor(a!) out) -> int", "same number of out arguments"),
    ],
)
def test_forward_compatibility_says_what_stands_in_its_way(new, reason):
    old = parse_schema("op(int a, int b=1) -> int")
    compatible, why = parse_schema(new).check_forward_compatible_with(old)
    assert compatible is (reason == "")
    assert reason in why


def test_types_have_a_name_for_scripts_and_a_real_one():
    schema = parse_schema("op(Tensor x, SymInt n, ScalarType? dtype=None, Device? d=None) -> int")
    symbolic = parse_schema("op(Tensor x) -> SymInt")
    assert [a.type.str() for a in schema.arguments] == ["Tensor", "int", "int?", "Device?"]
    assert schema.arguments[1].real_type.str() == "SymInt"
    assert symbolic.returns[0].type.str() == "int"
    assert symbolic.returns[0].real_type.str() == "SymInt"
    assert "ScalarType? dtype" in str(schema)


def test_wrong_schemas_and_arguments_are_refused():
    with pytest.raises(RuntimeError, match=r"schemas with vararg \(...\) can't have default"):
        parse_schema("op(int a, int b=0, ...) -> int")
    with pytest.raises(TypeError, match="takes a FunctionSchema, not int"):
        parse_schema(OLD).is_backward_compatible_with(3)


def test_assert_tensor_metadata_compares_what_it_is_given():
    x = torch.ones(2, 3)
    torch._assert_tensor_metadata(x, [2, 3], [3, 1], torch.float32, device="cpu")
    torch._assert_tensor_metadata(x)
    for arguments, word in (
        (([3],), "sizes"),
        ((None, [1, 2]), "strides"),
        ((None, None, torch.int32), "dtype"),
    ):
        with pytest.raises(RuntimeError, match=f"Tensor {word} mismatch"):
            torch._assert_tensor_metadata(x, *arguments)
    with pytest.raises(RuntimeError, match="Tensor layout mismatch"):
        torch._assert_tensor_metadata(x, layout=torch.sparse_coo)


def test_addmm_activation_is_the_activation_of_the_sum():
    import math

    bias, a, b = torch.randn(2), torch.randn(3, 4), torch.randn(4, 2)
    total = (2 * bias + 0.5 * (a @ b)).double()
    relu = torch._addmm_activation(bias, a, b, beta=2, alpha=0.5)
    torch.testing.assert_close(relu.double(), total.clamp(min=0), atol=1e-5, rtol=1e-5)
    gelu = torch._addmm_activation(bias, a, b, beta=2, alpha=0.5, use_gelu=True)
    expected = [[v * 0.5 * (1 + math.erf(v / 2**0.5)) for v in row] for row in total.tolist()]
    torch.testing.assert_close(gelu.double(), torch.tensor(expected).double(), atol=1e-5, rtol=1e-5)


def test_types_are_instances_of_the_class_of_their_kind():
    first, second = parse_schema("f(Tensor x, int? y) -> Tensor").arguments
    assert isinstance(first.type, torch.TensorType)
    assert isinstance(second.type, torch.OptionalType)
    assert not isinstance(first.type, torch.OptionalType)
    made = torch.OptionalType(first.type)
    assert isinstance(made, torch.OptionalType) and made.getElementType() == first.type
