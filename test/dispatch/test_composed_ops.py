"""Operators of torch.ops.aten that are written in terms of others, against NumPy and plain sums."""

import subprocess
import sys

import numpy as np
import pytest

import torch

aten = torch.ops.aten


def rand(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_operators_of_pythons_notation_compute_on_bits():
    a, b = torch.tensor([5, 6, 7]), torch.tensor([3, 1, 2])
    assert aten.__and__.Tensor(a, b).tolist() == [1, 0, 2]
    assert aten.__xor__.Scalar(a, 1).tolist() == [4, 7, 6]
    assert aten.__lshift__.Tensor(a, b).tolist() == [40, 12, 28]
    target = a.clone()
    assert aten.__ior__.Scalar(target, 8) is target
    assert target.tolist() == [13, 14, 15]


def test_nothing_is_defined_before_a_program_asks():
    code = (
        "import sys, torch; torch.ops.aten.add; assert 'torch._composed_ops' not in sys.modules;"
        "torch.ops.aten.trace_backward; assert 'torch._composed_ops' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_operator_nobody_defines_is_still_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_operator"):
        getattr(aten, "no_such_" + "operator")
    with pytest.raises(AttributeError, match="no overload name 'nowhere'"):
        getattr(aten.add, "no" + "where")


def test_gradient_of_matmul_is_that_of_the_sum_of_products():
    a, b, g = rand(2, 3, 4), rand(4, 5, seed=1), rand(2, 3, 5, seed=2)
    to_a, to_b = aten.matmul_backward(g, a, b, [True, True])
    np.testing.assert_allclose(to_a, np.einsum("bij,kj->bik", g, b))
    np.testing.assert_allclose(to_b, np.einsum("bik,bij->kj", a, g))


def test_gradient_of_a_masked_softmax_is_zero_where_hidden():
    hidden = torch.tensor([[False, True, False]])
    weights = aten._masked_softmax(torch.zeros(1, 3), hidden, 1, 2)
    assert weights.tolist() == [[0.5, 0.0, 0.5]]
    grad = aten._masked_softmax_backward(torch.tensor([[1.0, 9.0, 0.0]]), weights, hidden, 1)
    assert grad.tolist() == [[0.25, 0.0, -0.25]]


def test_second_gradient_of_a_convolution_equals_differences():
    x, w, g = rand(1, 2, 4, 4), rand(3, 2, 2, 2, seed=1), rand(1, 3, 3, 3, seed=2)
    dx, dw, db = rand(1, 2, 4, 4, seed=3), rand(3, 2, 2, 2, seed=4), rand(3, seed=5)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    to_g, to_x, to_w = aten._convolution_double_backward(dx, dw, db, g, w, x, *rest, [True] * 3)

    def pairing(x, w, g):
        """<gradients of <g, conv(x, w) + b>, (dx, dw, db)>, which the operator differentiates."""
        gx, gw, gb = aten.convolution_backward(g, x, w, [3], *rest, [True] * 3)
        return float((gx * dx).sum() + (gw * dw).sum() + (gb * db).sum())

    h = 1e-6
    for value, grad, at in ((x, to_x, 0), (w, to_w, 1), (g, to_g, 2)):
        direction = rand(*value.shape, seed=7)
        up, down = [x, w, g], [x, w, g]
        up[at], down[at] = value + h * direction, value - h * direction
        numeric = (pairing(*up) - pairing(*down)) / (2 * h)
        assert float((grad * direction).sum()) == pytest.approx(numeric, rel=1e-5)


def test_statistics_of_parts_join_to_those_of_the_whole():
    x = rand(6, 3, 4)
    parts = [aten.batch_norm_stats(p, 1e-5) for p in (x[:2], x[2:])]
    mean, invstd = (torch.stack(rows) for rows in zip(*parts, strict=True))
    running_mean, running_var = torch.zeros(3).double(), torch.ones(3).double()
    joined = aten.batch_norm_gather_stats_with_counts(
        x, mean, invstd, running_mean, running_var, 0.5, 1e-5, torch.tensor([8.0, 16.0])
    )
    flat = x.numpy().transpose(1, 0, 2).reshape(3, -1)
    np.testing.assert_allclose(joined[0], flat.mean(1))
    np.testing.assert_allclose(joined[1], 1 / np.sqrt(flat.var(1) + 1e-5))
    np.testing.assert_allclose(running_mean, flat.mean(1) / 2)
    np.testing.assert_allclose(running_var, 0.5 + flat.var(1, ddof=1) / 2)


def test_parts_of_batch_norm_give_the_gradient_of_the_whole():
    x, g, weight = rand(4, 2, 3), rand(4, 2, 3, seed=1), rand(2, seed=2)
    mean, invstd = aten.batch_norm_stats(x, 1e-5)
    sums = aten.batch_norm_backward_reduce(g, x, mean, invstd, weight, True, True, True)
    grad = aten.batch_norm_backward_elemt(
        g, x, mean, invstd, weight, sums[0], sums[1], torch.tensor([12])
    )
    leaf = x.clone().requires_grad_()
    centred = leaf - leaf.mean((0, 2), keepdim=True)
    scale = (centred.square().mean((0, 2), keepdim=True) + 1e-5).rsqrt()
    (centred * scale * weight.reshape(1, 2, 1)).backward(g)
    np.testing.assert_allclose(grad, leaf.grad, atol=1e-12)


def test_functional_step_leaves_its_arguments_alone():
    parameter, grad = torch.ones(2), torch.full((2,), 0.5)
    stepped, _, buffers = aten._fused_sgd(
        [parameter],
        [grad],
        [torch.zeros(2)],
        weight_decay=0.0,
        momentum=0.9,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    )
    assert parameter.tolist() == [1.0, 1.0]
    assert stepped[0].tolist() == pytest.approx([0.95, 0.95])
    assert buffers[0].tolist() == [0.5, 0.5]


def test_sums_of_compressed_matrices_skip_what_is_absent():
    matrix = torch.tensor([[1.0, 0, 2], [0, 0, 3], [4, 5, 0]]).to_sparse_csr()
    assert aten._sparse_csr_sum.dim_dtype(matrix, [0], True).to_dense().tolist() == [[5, 5, 5]]
    assert aten._sparse_csr_prod.dim_dtype(matrix, [1], True).to_dense().tolist() == [
        [2],
        [3],
        [20],
    ]


def test_assertions_raise_with_the_given_text():
    aten._assert_scalar(1, "fine")
    with pytest.raises(RuntimeError, match="too short"):
        aten._assert_scalar(0, "too short")
    with pytest.raises(RuntimeError, match="all zero"):
        aten._assert_async.msg(torch.tensor(0), "all zero")
    with pytest.raises(RuntimeError, match="Invalid value range for 5"):
        aten.sym_constrain_range(5, min=0, max=4)


def test_out_overload_of_a_composition_fills_the_callers_tensor():
    out = torch.empty(0, dtype=torch.float64)
    m = rand(2, 3)
    assert aten._conj_physical.out(m, out=out) is out
    assert torch.equal(out, m)
    output = torch.empty(0)
    aten._slow_conv2d_forward.output(
        torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), [2, 2], None, [1, 1], [0, 0], output=output
    )
    assert output.tolist() == [[[[4.0, 4.0], [4.0, 4.0]]]]


@pytest.mark.parametrize("shape, stride, kind", [((2, 3), (3, 1), 0), ((2, 2), (0, 1), 1)])
def test_overlap_of_a_tensor_with_itself_is_told_from_its_strides(shape, stride, kind):
    assert aten._debug_has_internal_overlap(torch.zeros(9).as_strided(shape, stride)) == kind


def test_questions_about_a_tensor_are_operators():
    x = torch.ones(2, requires_grad=True)
    assert aten.is_leaf(x) and not aten.is_leaf(x * 2)
    assert aten.get_device(x) == -1
    x.data.add_(1)
    assert aten._version(torch.zeros(1).add_(1)) == 1
