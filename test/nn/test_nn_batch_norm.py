"""Batch norm: statistics of the right forward pass, repeated calls, second derivatives."""

import torch
from torch import nn


def test_batch_norm_called_twice_before_backward():
    norm = nn.BatchNorm1d(3)
    x = torch.randn(4, 3, requires_grad=True)
    (norm(x).square().sum() + norm(x * 2).square().sum()).backward()
    once = nn.BatchNorm1d(3)
    y = x.detach().requires_grad_()
    once(y).square().sum().backward()
    other = nn.BatchNorm1d(3)
    z = x.detach().requires_grad_()
    other(z * 2).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad + z.grad)


def test_batch_norm_backward_uses_the_statistics_of_its_forward():
    norm = nn.BatchNorm1d(3).eval()
    with torch.no_grad():
        norm.running_var.fill_(4.0)
    x = torch.randn(4, 3, requires_grad=True)
    y = norm(x)
    norm.train()
    norm(torch.randn(8, 3) * 10)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4, 3), (4.0 + norm.eps) ** -0.5))


def test_batch_norm_second_order_in_eval():
    norm = nn.BatchNorm1d(3).double().eval()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(norm, (x,))
