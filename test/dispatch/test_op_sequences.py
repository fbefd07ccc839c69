"""Which operators a handler of __torch_dispatch__ sees, forward and backward. Programs match on
these sequences (patterns, exporters, backends), so they are part of the interface;
docs/op_sequences.md says where they differ from PyTorch's."""

import pytest

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten.").removesuffix(".default"))
        return func(*args, **(kwargs or {}))


def forward(function, *inputs):
    with Log() as log:
        result = function(*inputs)
    return log.names, result


def backward(function, *inputs):
    result = function(*inputs)
    grad = torch.ones_like(result)
    with Log() as log:
        result.backward(grad)
    return log.names


def leaf(*shape):
    return torch.rand(shape).add_(0.5).requires_grad_()


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: x + 2, ["add.Tensor"]),
        (lambda x: x * 2.5, ["mul.Tensor"]),
        (lambda x: x // 2, ["floor_divide"]),
        (lambda x: 2 - x, ["rsub.Scalar"]),
        (lambda x: x > 0, ["gt.Scalar"]),
        (lambda x: torch.isfinite(x), ["abs", "ne.Scalar", "eq.Tensor", "mul.Tensor"]),
        (lambda x: torch.where(x > 0, x, 0.0), ["gt.Scalar", "scalar_tensor", "where.self"]),
        (lambda x: torch.tensor([1.0]), ["lift_fresh"]),
        (
            lambda x: F.dropout(x, 0.5),
            ["empty_like", "bernoulli_.float", "div_.Scalar", "mul.Tensor"],
        ),
        (
            lambda x: F.rms_norm(x, (4,), eps=1e-5),
            "pow.Tensor_Scalar mean.dim add_.Scalar rsqrt mul.Tensor".split(),
        ),
        (lambda x: F.linear(x, torch.eye(4)), ["eye", "t", "mm"]),
        (lambda x: torch.msort(x), ["sort"]),
        (lambda x: torch.fft.fft2(x), ["_to_copy", "_fft_c2c"]),
        (lambda x: torch.linalg.multi_dot([x.T, x]), ["permute", "mm", "view"]),
        (
            lambda x: torch.cumulative_trapezoid(x),
            "slice.Tensor slice.Tensor add.Tensor mul.Scalar cumsum".split(),
        ),
    ],
)
def test_forward_sequence_without_gradient_is_the_operators_users_know(function, names):
    assert forward(function, torch.rand(3, 4))[0] == names


def test_conjugate_view_is_resolved_by_a_copy():
    z = torch.view_as_complex(torch.ones(3, 2))
    with Log() as log:
        resolved = z.conj().resolve_conj()
    assert log.names == ["_conj", "clone"]
    assert not resolved.is_conj() and resolved.tolist() == [1 - 1j] * 3


def test_negative_view_is_resolved_by_a_copy():
    with Log() as log:
        resolved = torch.ones(3)._neg_view().resolve_neg()
    assert log.names[1:] == ["_neg_view", "clone"]
    assert not resolved.is_neg() and resolved.tolist() == [-1, -1, -1]


def test_assigned_number_is_seen_as_a_tensor():
    def assign(x):
        x[0] = 1.0
        return x

    names, result = forward(assign, torch.zeros(2, 2))
    assert names == ["lift_fresh", "select.int", "fill_.Tensor"]
    assert result.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_number_reaches_the_handler_as_a_number():
    seen = []

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(args[1])
            return func(*args, **(kwargs or {}))

    ones = torch.ones(2)
    with Keep():
        result = ones * 3
    assert seen == [3] and type(seen[0]) is int and result.tolist() == [3.0, 3.0]


def test_linear_with_bias_is_a_transpose_and_a_product_forward_and_backward():
    x, w, b = leaf(2, 3, 4), leaf(5, 4), leaf(5)
    names, result = forward(F.linear, x, w, b)
    assert names == ["view", "t", "addmm", "view"]
    expected = x.detach().numpy() @ w.detach().numpy().T + b.detach().numpy()
    torch.testing.assert_close(result.detach(), torch.from_numpy(expected))
    with Log() as log:
        result.backward(torch.ones(2, 3, 5))
    names = log.names[1:]
    assert names[:7] == ["view", "t", "mm", "t", "mm", "t", "sum.dim_IntList"]


def test_saved_output_is_detached_when_saved_and_when_used():
    x = leaf(3)
    assert forward(torch.exp, x)[0] == ["exp", "detach"]
    with Log() as log:
        torch.exp(x).backward(torch.ones(3))
    assert log.names == ["exp", "detach", "ones", "detach", "mul.Tensor", "detach"]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (torch.sqrt, ["detach", "mul.Scalar", "div.Tensor", "detach"]),
        (torch.square, ["pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor", "detach"]),
        (lambda x: x.clamp(min=1.0), ["scalar_tensor", "ge.Scalar", "where.self", "detach"]),
        (lambda x: x.mean(1), ["unsqueeze", "expand", "div.Scalar", "detach"]),
        (lambda x: x[0:1].squeeze(0), ["unsqueeze", "slice_backward", "detach"]),
        (
            lambda x: x.norm(),
            ["detach", "div.Tensor", "eq.Scalar", "masked_fill_.Scalar", "mul.Tensor", "detach"],
        ),
        (lambda x: x + x.sin(), ["cos", "mul.Tensor", "add.Tensor", "detach"]),
        (lambda x: x + 1, ["new_empty_strided", "copy_"]),
    ],
)
def test_backward_sequence_is_the_operators_users_know(function, names):
    assert backward(function, leaf(3, 4)) == names


def test_second_backward_adds_in_place():
    x = leaf(3)
    torch.sin(x).backward(torch.ones(3))
    assert backward(torch.sin, x) == ["cos", "mul.Tensor", "add_.Tensor"]


def test_gradients_of_products_of_numbers_with_zeros_are_right_while_seen():
    x = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    y = torch.prod(x)
    with Log() as log:
        y.backward()
    assert x.grad.tolist() == [0.0, 6.0, 0.0]
    assert "_local_scalar_dense" not in log.names


def test_wrapper_class_sees_the_same_operators_as_a_mode():
    names = []

    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            names.append(str(func))
            plain = [a.inner if isinstance(a, cls) else a for a in args]
            return cls(func(*plain, **(kwargs or {})))

    x, w = Wrapped(torch.ones(2, 4)), Wrapped(torch.ones(3, 4))
    result = F.linear(x + 2, w)
    assert names == ["aten.add.Tensor", "aten.t.default", "aten.mm.default"]
    assert result.inner.tolist() == [[12.0] * 3] * 2
