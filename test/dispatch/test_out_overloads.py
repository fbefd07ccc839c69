"""Out overloads that only `torch.ops` shows: each writes what the functional operator returns."""

import pytest

import torch

aten = torch.ops.aten
IMAGE = torch.arange(2 * 6 * 6, dtype=torch.float32).reshape(1, 2, 6, 6)


@pytest.mark.parametrize(
    "op, args, kwargs",
    [
        (aten.clone, (IMAGE,), {}),
        (aten._to_copy, (IMAGE,), {}),
        (aten.ones_like, (IMAGE,), {}),
        (aten.full_like, (IMAGE, 3.0), {}),
        (aten.new_full, (IMAGE, [2, 3], 4.0), {}),
        (aten.new_zeros, (IMAGE, [2, 3]), {}),
        (aten.scalar_tensor, (2.5,), {}),
        (aten.affine_grid_generator, (torch.eye(2, 3)[None], [1, 1, 2, 2], False), {}),
    ],
)
def test_out_overload_resizes_and_fills_the_given_tensor(op, args, kwargs):
    expected = op(*args, **kwargs)
    out = torch.empty(0, dtype=expected.dtype)
    assert op.out(*args, **kwargs, out=out) is out
    assert torch.equal(out, expected)


def test_out_overload_with_two_results_fills_both():
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.long)
    aten.max_pool2d_with_indices.out(IMAGE, [3, 3], out=values, indices=indices)
    assert values.tolist() == [[[[14.0, 17.0], [32.0, 35.0]], [[50.0, 53.0], [68.0, 71.0]]]]
    assert indices[0].tolist() == [[[14, 17], [32, 35]]] * 2


def test_gradient_overload_writes_into_grad_input():
    grad = torch.ones(1, 2, 3, 3)
    out = torch.empty(0)
    aten.avg_pool2d_backward.grad_input(
        grad, IMAGE, [2, 2], [2, 2], [0, 0], False, True, None, grad_input=out
    )
    assert torch.equal(out, torch.full((1, 2, 6, 6), 0.25))


def test_random_out_overload_draws_the_stream_of_the_functional_one():
    out = torch.empty(0)
    torch.manual_seed(3)
    aten.rand_like.out(IMAGE, out=out)
    torch.manual_seed(3)
    assert torch.equal(out, torch.rand(1, 2, 6, 6))


def test_isinf_out_needs_a_tensor_that_holds_truth_values():
    out = torch.empty(0, dtype=torch.bool)
    aten.isinf.out(torch.tensor([1.0, float("inf"), -float("inf"), float("nan")]), out=out)
    assert out.tolist() == [False, True, True, False]
