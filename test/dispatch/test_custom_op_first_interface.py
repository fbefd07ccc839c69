"""torch._custom_ops, the first interface to operators written in Python."""

import pytest

import torch
from torch import _custom_ops as custom_ops
from torch._custom_op.impl import CustomOp, get_op, global_registry

NS = "first_interface"


@pytest.fixture(autouse=True)
def undefine():
    yield
    for name in [n for n in global_registry if n.startswith(f"{NS}::")]:
        custom_ops._destroy(name)


def _sine():
    custom_ops.custom_op(f"{NS}::sine", "(Tensor x) -> Tensor")
    custom_ops.impl(f"{NS}::sine", func=lambda x: x.sin())
    return get_op(f"{NS}::sine")


def test_a_call_before_there_are_kernels_says_what_is_missing():
    custom_ops.custom_op(f"{NS}::sine", "(Tensor x) -> Tensor")
    op = get_op(f"{NS}::sine")
    with pytest.raises(NotImplementedError, match="no cpu impl registered"):
        op(torch.ones(2))
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel"):
        op(torch.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        op(torch.ones(2, requires_grad=True))


def test_gradient_comes_from_its_two_halves():
    op = _sine()
    custom_ops.impl_save_for_backward(f"{NS}::sine", func=lambda inputs, output: inputs.x)
    custom_ops.impl_backward(f"{NS}::sine", func=lambda ctx, x, grad: {"x": grad * x.cos()})
    x = torch.tensor([0.2, 0.4], requires_grad=True)
    op(x).sum().backward()
    assert torch.allclose(x.grad, x.detach().cos())


def test_half_a_gradient_is_refused_at_the_call():
    op = _sine()
    custom_ops.impl_backward(f"{NS}::sine", func=lambda ctx, x, grad: {"x": grad})
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        op(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda g: g, "to be a dict"),
        (lambda g: {"x": g, "y": None}, "to have keys {'x'}"),
        (lambda g: {"x": (g,)}, "either None or a Tensor"),
    ],
)
def test_backward_must_return_a_gradient_for_each_tensor_argument(returned, words):
    op = _sine()
    custom_ops.impl_save_for_backward(f"{NS}::sine", func=lambda inputs, output: None)
    custom_ops.impl_backward(f"{NS}::sine", func=lambda ctx, saved, grad: returned(grad))
    with pytest.raises(RuntimeError, match=words):
        op(torch.ones(2, requires_grad=True)).sum().backward()


def test_outputs_marked_as_not_differentiable_require_no_grad():
    custom_ops.custom_op(f"{NS}::pair", "(Tensor x) -> (Tensor, Tensor)")
    custom_ops.impl(f"{NS}::pair", func=lambda x: (x.clone(), x.clone()))
    custom_ops.impl_save_for_backward(f"{NS}::pair", func=lambda inputs, output: None)
    custom_ops.impl_backward(
        f"{NS}::pair",
        output_differentiability=[False, True],
        func=lambda ctx, saved, a, b: {"x": b},
    )
    first, second = get_op(f"{NS}::pair")(torch.ones(2, requires_grad=True))
    assert not first.requires_grad
    assert second.requires_grad


@pytest.mark.parametrize(
    ("name", "schema", "kind", "words"),
    [
        (f"{NS}::f", "(Tensor(a!) x) -> Tensor(a)", ValueError, "only supports functional"),
        (f"{NS}::f", "(Tensor self) -> Tensor", ValueError, "named 'self'"),
        (f"{NS}::f", "(", AssertionError, "Invalid function schema: f"),
        (f"{NS}::f.over", "() -> ()", ValueError, "overload"),
        ("aten::f", "(Tensor x) -> Tensor", ValueError, "is a reserved namespace"),
        ("f", "(Tensor x) -> Tensor", ValueError, "to be a namespace"),
    ],
)
def test_definitions_that_are_refused(name, schema, kind, words):
    with pytest.raises(kind, match=words):
        custom_ops.custom_op(name, schema)


def test_an_operator_with_kernels_from_elsewhere_is_not_given_others():
    with torch.library._scoped_library(NS, "FRAGMENT") as lib:
        lib.define("known(Tensor x) -> Tensor")
        lib.impl("known", lambda x: x.sin(), "CPU")
        with pytest.raises(RuntimeError, match="already has an implementation"):
            custom_ops.impl(f"{NS}::known", func=lambda x: x)
        custom_ops._destroy(f"{NS}::known")


def test_the_constructor_is_private():
    with pytest.raises(RuntimeError, match="constructor is private"):
        CustomOp(None, None, None, None, None)


def test_define_refuses_a_schema_with_a_name():
    with pytest.raises(ValueError, match="expected schema to look like"):
        torch.library.define(f"{NS}::g", "g(Tensor x) -> Tensor")


def test_overloads_of_a_custom_op_are_operators_of_one_packet():
    @torch.library.custom_op(f"{NS}::h", mutates_args=())
    def one(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @torch.library.custom_op(f"{NS}::h.pair", mutates_args=())
    def two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    packet = getattr(torch.ops, NS).h
    assert packet(torch.ones(1)).tolist() == [1.0]
    assert packet(torch.ones(1), torch.ones(1)).tolist() == [2.0]
    one._lib_destroy()
    two._lib_destroy()


def test_the_fake_form_knows_where_it_was_registered():
    from torch._library.simple_registry import singleton

    with torch.library._scoped_library(NS, "FRAGMENT") as lib:
        lib.define("placed(Tensor x) -> Tensor")
        torch.library.register_fake(f"{NS}::placed", torch.empty_like, lib=lib)
        torch.library.register_fake(f"{NS}::placed", lambda x: x.new_empty(3), lib=lib)
        source = singleton.find(f"{NS}::placed").fake_impl.kernel.source
        assert "test_custom_op_first_interface.py:" in source
