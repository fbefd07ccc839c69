"""Per-sample gradients and second derivatives through vmap."""

import pytest

import torch
import torch.nn.functional as F
from torch.func import grad, vmap


def test_index_by_a_tensor_under_vmap():
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.arange(10, 14)
    with TransformGetItemToIndex():
        found = torch.vmap(lambda i: table[i])(torch.tensor([2, 0]))
    assert found.tolist() == [12, 10]


class TestPerSampleGradients:
    """torch.nn.utils._per_sample_grad: as many backward passes as samples are the reference."""

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_gradients_are_those_of_each_sample(self, reduction):
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Conv1d(2, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Flatten(),
            torch.nn.Linear(12, 3),
        ).double()  # fmt: skip
        x = torch.randn(5, 2, 5, dtype=torch.float64)
        call = call_for_per_sample_grads(module, loss_reduction=reduction)
        getattr(call(x).pow(2).sum(1), reduction)().backward()
        for i in range(5):
            expected = torch.autograd.grad(module(x[i : i + 1]).pow(2).sum(), module.parameters())
            for parameter, one in zip(module.parameters(), expected, strict=True):
                assert parameter.grad is None
                torch.testing.assert_close(parameter.grad_sample[i], one)
        with pytest.raises(RuntimeError, match="grad_sample"):
            call_for_per_sample_grads(module)

    def test_sizes_have_to_agree(self):
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

        with pytest.raises(RuntimeError, match="batch size"):
            call_for_per_sample_grads(torch.nn.Linear(2, 3), batch_size=5)(torch.ones(4, 2))
        with pytest.raises(RuntimeError, match="sum or mean"):
            call_for_per_sample_grads(torch.nn.Linear(2, 3), loss_reduction="max")


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_second_derivative_through_vmap_of_a_loss(loss, reduction):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 2, dtype=torch.double)
    y = torch.randn(3, 5, 4, dtype=torch.double).sign()

    def step(w, x, y):
        return grad(lambda w: loss(F.linear(x, w), y, reduction=reduction))(w)

    w = torch.randn(4, 2, dtype=torch.double, requires_grad=True)
    (ours,) = torch.autograd.grad(vmap(step, (None, 0, 0))(w, x, y).pow(2).sum(), w)
    total = torch.zeros_like(w)
    for a, b in zip(x, y, strict=True):
        (g,) = torch.autograd.grad(
            loss(F.linear(a, w), b, reduction=reduction), w, create_graph=True
        )
        total += torch.autograd.grad(g.pow(2).sum(), w)[0]
    torch.testing.assert_close(ours, total)


def test_gradcheck_of_a_function_that_takes_gradients_itself():
    def derivative(v):
        (gradient,) = torch.autograd.grad((v**3).sum(), v, create_graph=True)
        return gradient

    assert torch.autograd.gradcheck(
        derivative, (torch.rand(3, dtype=torch.float64).requires_grad_(),)
    )
