"""Operators that are one kernel on CUDA stay one in compiled graphs, with their bits."""

import pytest
from cuda_support import cuda, launched_kernels

import torch
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def both(body, *inputs, seed=None, exact=True):
    """Checks result and gradients, plainly and compiled; the kernels of the compiled call."""
    found, names = [], []
    for run in (body, torch.compile(body)):
        given = [
            x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs
        ]
        if seed is not None:
            torch.manual_seed(seed)
        out = []

        names = launched_kernels(lambda run=run, given=given, out=out: out.append(run(*given)))
        names += launched_kernels(lambda out=out: out[0].sum().backward())
        found.append([out[0].detach(), *(x.grad for x in given if x.is_floating_point())])
    for got, want in zip(found[1], found[0], strict=True):
        if exact:
            assert got.dtype == want.dtype and torch.equal(got.cpu(), want.cpu())
        else:  # rows are summed in another order
            torch.testing.assert_close(got.cpu(), want.cpu(), rtol=2e-6, atol=1e-6)
    return names


def scores(dtype=torch.float32, shape=(6, 10)):
    torch.manual_seed(0)
    x = torch.randn(*shape, device=cuda).to(dtype)
    target = torch.randint(0, shape[-1], shape[:-1], device=cuda)
    return x, target


def test_cross_entropy_is_one_kernel_a_direction():
    names = both(lambda x, t: F.cross_entropy(x * 2, t), *scores())
    assert sum("cross_entropy" in name for name in names) == 3, names
    assert not any("softmax" in name for name in names), names


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_of_half_precision_are_not_widened_in_memory(dtype):
    def loss(x, t):
        return F.cross_entropy((x * 2).float().view(-1, x.shape[-1]), t.view(-1))

    names = both(loss, *scores(dtype, (2, 3, 10)), exact=False)
    short = {torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
    assert f"cross_entropy_rows_{short}" in names, names
    assert f"cross_entropy_backward_{short}" in names, names


def test_a_gradient_that_is_rounded_later_is_kept_in_float32():
    def loss(x, t):
        wide = x.float()
        return F.cross_entropy(wide, t) + (wide * wide).sum()

    both(loss, *scores(torch.bfloat16), exact=False)


def test_wide_scores_that_are_returned_too():
    def loss(x, t):
        wide = (x * 2).float()
        return F.cross_entropy(wide, t) * 3 + wide[0, 0] * 0

    both(loss, *scores(torch.bfloat16), exact=False)
    compiled = torch.compile(lambda x, t: ((x * 2).float(), F.cross_entropy((x * 2).float(), t)))
    x, t = scores(torch.bfloat16)
    wide, value = compiled(x, t)
    assert torch.equal(wide.cpu(), (x * 2).float().cpu())
    torch.testing.assert_close(value, F.cross_entropy((x * 2).float(), t))


def test_class_weights_and_ignored_targets():
    x, t = scores(torch.bfloat16)
    t[2] = -100
    weight = torch.rand(10, device=cuda)
    both(lambda x, t: F.cross_entropy(x.float(), t, weight), x, t)
    torch._dynamo.reset()
    both(lambda x, t: F.cross_entropy(x.float(), t, reduction="sum"), x, t, exact=False)
    torch._dynamo.reset()
    both(lambda x, t: F.cross_entropy(x.float(), t, reduction="none"), x, t, exact=False)


def test_batches_of_other_sizes():
    compiled = torch.compile(lambda x, t: F.cross_entropy(x.float() * 1, t))
    for rows in (6, 7, 3, 1):
        x, t = scores(torch.bfloat16, (rows, 10))
        torch.testing.assert_close(compiled(x, t), F.cross_entropy(x.float(), t))


def test_dropout_draws_what_eager_code_draws():
    x = torch.randn(64, 8, device=cuda)
    names = both(lambda x: F.dropout(x * 1.5, 0.3), x, seed=3)
    assert any("dropout" in name for name in names), names


def test_rms_norm_is_one_kernel_a_direction():
    x, w = torch.randn(6, 16, device=cuda), torch.randn(16, device=cuda)
    names = both(lambda x, w: F.rms_norm(x * 2, (16,), w), x, w)
    assert sum("rms_norm" in name and "backward" not in name for name in names) == 1, names
