"""Autograd where programs meet its rules: views, in-place functions, hooks, forward mode."""

import io
import sys
import warnings

import numpy as np
import pytest

import torch
from torch.autograd import Function, forward_ad


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_view_of_a_view_made_without_recording_refuses_writes(mode):
    x = torch.zeros(2)
    with getattr(torch, mode)():
        y = x.view(2)
    y.requires_grad_(True)
    with pytest.raises(RuntimeError, match=f"a view of a view .* inside the {mode} block"):
        y.view(2).div_(2)


def test_a_written_view_of_a_leaf_made_without_recording_has_no_known_history():
    leaf = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        view = leaf[:]
        view *= 2
    assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.complex64])
def test_a_view_of_the_bits_requires_no_grad(dtype):
    x = torch.ones(4, requires_grad=True)
    assert not x.view(dtype).requires_grad


def test_hooks_stay_with_the_value_before_a_write_to_the_base():
    seen = []
    base = torch.ones(1, requires_grad=True).clone()
    first, second = base[:], base[:]
    second.register_hook(lambda g: seen.append("old"))
    first.mul_(2)
    _ = second.grad_fn
    second.register_hook(lambda g: seen.append("new"))
    second.sum().backward()
    assert seen == ["new"]


def test_a_hook_gets_none_for_a_gradient_that_does_not_exist():
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    y.register_hook(seen.append)
    torch._C._functions.UndefinedGrad()(y).sum().backward()
    assert seen == [None]
    assert x.grad is None


def test_mark_dirty_of_another_tensor_warns_and_a_view_needs_a_single_output():
    class Other(Function):
        @staticmethod
        def forward(ctx, a):
            b = a * 3
            ctx.mark_dirty(b)
            return b

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    class Pair(Function):
        @staticmethod
        def forward(ctx, a):
            a += 1
            ctx.mark_dirty(a)
            return a, a + 1

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="not an input"):
        Other.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="input that is a view of another Tensor"):
        Pair.apply(x.clone().view(2))


def test_prehooks_of_a_function_see_none_for_outputs_that_are_no_tensors():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, 7, x * 3

        @staticmethod
        def backward(ctx, a, _, b):
            return 2 * a + 3 * b

    x = torch.ones(1, requires_grad=True)
    first, number, second = Mixed.apply(x)
    assert number == 7
    seen = []
    first.grad_fn.register_prehook(lambda grads: seen.append([g is None for g in grads]))
    (first + second).sum().backward()
    assert seen == [[False, True, False]]
    assert x.grad.tolist() == [5.0]


@pytest.mark.parametrize("written", [True, False])
def test_jvp_of_an_in_place_function_must_write_the_tangent(written):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2) if written else tangent

    with forward_ad.dual_level():
        tangent = torch.ones(2)
        dual = forward_ad.make_dual(torch.ones(2), tangent)
        if not written:
            with pytest.raises(RuntimeError, match="modify the corresponding gradient inplace"):
                Double.apply(dual)
            return
        assert forward_ad.unpack_dual(Double.apply(dual)).tangent is tangent


def test_jvp_does_not_see_what_was_saved_for_backward():
    class Copy(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def jvp(ctx, tangent):
            assert ctx.saved_tensors == ()
            return tangent

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(1, requires_grad=True), torch.ones(1))
        assert forward_ad.unpack_dual(Copy.apply(dual)).tangent.tolist() == [1.0]


def test_a_tangent_gets_the_lazy_bits_of_its_primal():
    primal, tangent = torch.tensor([1 + 2j]), torch.tensor([3 + 4j])
    with forward_ad.dual_level():
        same = forward_ad.make_dual(primal, tangent)
        assert forward_ad.unpack_dual(same).tangent is tangent
        other = forward_ad.unpack_dual(forward_ad.make_dual(primal.conj(), tangent)).tangent
        assert other.is_conj()
        assert np.array_equal(other.resolve_conj().numpy(), tangent.numpy())


def test_forward_mode_names_the_operator_that_has_no_formula():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.rand(2), torch.rand(2))
        with pytest.raises(NotImplementedError, match=r"forward AD with .*igamma"):
            torch.igamma(dual, dual)


def test_a_batch_of_tangents_is_added_to_a_single_one():
    x, y = torch.rand(2, dtype=torch.float64), torch.rand(2, dtype=torch.float64)

    def tangent(direction):
        with forward_ad.dual_level():
            a = forward_ad.make_dual(x, torch.zeros(2, dtype=torch.float64))
            b = forward_ad.make_dual(y, direction)
            return forward_ad.unpack_dual(a * b).tangent

    rows = torch.eye(2, dtype=torch.float64)
    assert torch.allclose(torch.func.vmap(tangent)(rows), torch.diag(x))


def test_an_anomaly_is_printed_where_warnings_are_errors(monkeypatch):
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            a = torch.ones(2, requires_grad=True)
            b = a + 1
            c = b**2
            b += 1
            warnings.simplefilter("error")
            monkeypatch.setattr(sys, "stderr", stream)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                c.sum().backward()
    assert "Error detected in PowBackward0" in stream.getvalue()


def test_a_real_tensor_copied_into_a_complex_one_has_a_real_gradient_without_a_warning():
    out = torch.empty(3, dtype=torch.complex128)
    source = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out.copy_(source)
        out.sum().abs().backward()
    assert source.grad.tolist() == [1.0, 1.0, 1.0]


def test_random_tensors_are_new_and_resizing_counts_as_one_write():
    makers = [torch.rand, torch.randn, lambda n: torch.randint(5, (n,))]
    assert [make(3)._version for make in makers] == [0, 0, 0]
    x = torch.rand(1)
    x.resize_(2)
    x.resize_(2)
    assert x._version == 1


def test_volatile_warns():
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert torch.ones(1).volatile is False


def test_zeros_for_unused_inputs_are_refused_only_for_unused_edges():
    x = torch.rand(2, requires_grad=True).clone()
    y = torch.rand(2, requires_grad=True).clone()
    edge = torch.autograd.graph.get_gradient_edge
    options = {"allow_unused": True, "materialize_grads": True}
    found = torch.autograd.grad(x.clone().sum(), (edge(x), y), **options)
    assert [g.tolist() for g in found] == [[1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="GradientEdge"):
        torch.autograd.grad(x.clone().sum(), (x, edge(y)), **options)


def test_resize_function_keeps_elements_and_gives_gradients_back():
    from torch.autograd._functions import Resize

    x = torch.arange(4.0, requires_grad=True)
    y = Resize.apply(x, (2, 2))
    y.backward(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(RuntimeError, match="requested resize"):
        Resize.apply(x, (3,))


def test_an_expanded_sparse_gradient_is_copied_into_the_leaf():
    class Spread(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            values = torch.ones(1, 3).expand(4, 3)
            indices = torch.ones(1, 1, dtype=torch.long).expand(1, 4)
            return torch.sparse_coo_tensor(indices, values, (5, 3))

    x = torch.zeros(5, 3, requires_grad=True)
    Spread.apply(x).sum().backward()
    assert x.grad._values().is_contiguous()
    assert x.grad.to_dense()[1].tolist() == [4.0, 4.0, 4.0]
