"""Gradients that are collected in contexts and leave `grad` alone."""

import pytest

import torch
from torch.distributed import autograd as dist_autograd
from torch.distributed.autograd import _check_call


def test_contexts_collect_gradients_apart_and_leave_grad_alone():
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    with dist_autograd.context() as number:
        loss = (a * b).sum()
        dist_autograd.backward(number, [loss], retain_graph=True)
        dist_autograd.backward(number, [loss, (2 * a).sum()])
        found = dist_autograd.get_gradients(number)
        assert torch.allclose(found[a], 2 * b.detach() + 2) and torch.allclose(found[b], 2 * a)
        with pytest.raises(RuntimeError, match="nested"), dist_autograd.context():
            pass
        with pytest.raises(NotImplementedError, match="other processes"):
            _check_call(((a,), {}))
        _check_call(((a.detach(), 3), {}))
    assert a.grad is None and b.grad is None
    with pytest.raises(RuntimeError, match=f"Could not find autograd context with id: {number}"):
        dist_autograd.get_gradients(number)


@pytest.mark.parametrize(
    "roots, words",
    [
        ([], "No tensors provided"),
        ([torch.ones(1)], "requires_grad not set on root"),
        ([torch.ones(3, requires_grad=True)], "scalar outputs"),
    ],
)
def test_roots_that_have_no_gradient_raise(roots, words):
    with dist_autograd.context() as number, pytest.raises(RuntimeError, match=words):
        dist_autograd.backward(number, roots)
