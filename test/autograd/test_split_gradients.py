"""Gradients of the parts of a split that lie side by side in memory already are the gradient of the
whole: nothing is copied, and nobody can tell."""

import pytest

import torch


class Parts(torch.autograd.Function):
    """Three operands whose gradients are parts of one piece of memory."""

    kept: list = []

    @staticmethod
    def forward(ctx, a, b, c):
        ctx.sizes = [t.shape[-1] for t in (a, b, c)]
        ctx.rows = a.shape[0]
        return a.sum() + b.sum() + c.sum()

    @staticmethod
    def backward(ctx, grad):
        whole = torch.arange(float(ctx.rows * sum(ctx.sizes))).view(ctx.rows, -1) * grad
        Parts.address = whole.data_ptr()
        return whole.split(ctx.sizes, 1)


def expected(rows, columns):
    return torch.arange(float(rows * columns)).view(rows, columns)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [1, 3, 2]])
def test_parts_that_lie_together_are_not_copied(sizes):
    seen = []
    x = torch.randn(4, 6, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: seen.append(g.data_ptr()))
    Parts.apply(*y.split(sizes, 1)).backward()
    assert torch.equal(x.grad, expected(4, 6))
    assert seen == [Parts.address]


def test_a_part_that_somebody_keeps_is_not_shared():
    x = torch.randn(3, 6, requires_grad=True)
    parts = x.split([2, 2, 2], 1)
    kept = []
    parts[1].register_hook(lambda g: kept.append(g) or None)
    Parts.apply(*parts).backward()
    x.grad.zero_()
    assert torch.equal(kept[0], expected(3, 6)[:, 2:4])


def test_parts_in_another_order_are_joined_by_a_copy():
    x = torch.randn(3, 6, requires_grad=True)
    a, b, c = x.split(2, 1)
    Parts.apply(b, a, c).backward()
    want = expected(3, 6)
    assert torch.equal(x.grad, torch.cat([want[:, 2:4], want[:, :2], want[:, 4:]], 1))


def test_gradients_with_a_history_keep_it():
    x = torch.randn(3, 6, requires_grad=True)
    a, b, c = x.split(2, 1)
    (grad,) = torch.autograd.grad((a * b * c).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert torch.allclose(second[:, :2], (b + c).detach())
