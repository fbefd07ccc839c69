"""`out=` that is an operand or shares memory with one: the result is that of a call with memory of
its own, also where the result has another shape."""

import pytest

import torch

LONG = torch.long


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def positive(n):
    a = numbers(n, n)
    return a @ a.mT + n * torch.eye(n, dtype=torch.float64)


def with_indices(function):
    """An operator of (values, indices) as one of values."""

    def call(x, out=None):
        if out is None:
            return function(x)[0]
        return function(x, out=(out, torch.empty(0, dtype=LONG)))[0]

    return call


# name -> (operand, the operator with that operand and out=)
SAME_SHAPE = {
    "mm": (numbers(40, 40), lambda x, **k: torch.mm(x, x.mT.clone(), **k)),
    "mm, second": (numbers(40, 40), lambda x, **k: torch.mm(x.mT.clone(), x, **k)),
    "addmm": (numbers(40, 40), lambda x, **k: torch.addmm(x, x, x, **k)),
    "bmm": (numbers(3, 20, 20), lambda x, **k: torch.bmm(x, x, **k)),
    "sort": (numbers(9, 8), with_indices(lambda x, **k: torch.sort(x, dim=0, **k))),
    "topk": (numbers(40, 40), with_indices(lambda x, **k: torch.topk(x, 40, **k))),
    "cross": (numbers(5, 3), lambda x, **k: torch.linalg.cross(x, x.roll(1, 1), **k)),
    "cumsum": (numbers(5, 3), lambda x, **k: torch.cumsum(x, 0, **k)),
    "inv": (positive(5), lambda x, **k: torch.linalg.inv(x, **k)),
    "cholesky": (positive(20), lambda x, **k: torch.linalg.cholesky(x, **k)),
    "softmax": (numbers(5, 3), lambda x, **k: torch.softmax(x, 0, **k)),
}
OTHER_SHAPE = {
    "mm": (numbers(40, 2), lambda x, **k: torch.mm(x, numbers(2, 400), **k)),
    "bmm": (numbers(3, 40, 2), lambda x, **k: torch.bmm(x, numbers(3, 2, 400), **k)),
    "addmm": (
        numbers(40, 2),
        lambda x, **k: torch.addmm(x[:, :1].clone(), x, numbers(2, 400), **k),
    ),
    "mv": (numbers(40, 2), lambda x, **k: torch.mv(x, numbers(2), **k)),
    "qr": (
        numbers(30, 3),
        lambda x, out=None: (
            torch.linalg.qr(x, "complete")[0]
            if out is None
            else torch.linalg.qr(x, "complete", out=(out, torch.empty(0, dtype=x.dtype)))[0]
        ),
    ),
    "kthvalue": (numbers(40, 5), with_indices(lambda x, **k: torch.kthvalue(x, 2, **k))),
    "sum": (numbers(40, 30), lambda x, **k: torch.sum(x, 1, **k)),
    "amax": (numbers(40, 30), lambda x, **k: torch.amax(x, 1, **k)),
    "logsumexp": (numbers(40, 30), lambda x, **k: torch.logsumexp(x, 1, **k)),
    "vector norm": (numbers(40, 30), lambda x, **k: torch.linalg.vector_norm(x, 2, 1, **k)),
    "pad": (numbers(1, 1, 40), lambda x, **k: torch._C._nn.reflection_pad1d(x, (30, 30), **k)),
    "upsample": (
        numbers(1, 1, 3, 3),
        lambda x, **k: torch._C._nn.upsample_nearest2d(x, [9, 9], **k),
    ),
    "diag": (numbers(7), lambda x, **k: torch.diag(x, **k)),
}


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_result_over_its_operand_equals_the_result_apart(name):
    x, operator = SAME_SHAPE[name]
    want = operator(x.clone())
    target = x.clone()
    assert operator(target, out=target) is target
    torch.testing.assert_close(target, want)


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_result_over_a_shifted_view_of_its_operand_equals_the_result_apart(name):
    x, operator = SAME_SHAPE[name]
    want = operator(x.clone())
    memory = torch.zeros(x.numel() + 3, dtype=x.dtype)
    operand = memory[:-3].view(x.shape).copy_(x)
    target = memory[3:].view(x.shape)
    operator(operand, out=target)
    torch.testing.assert_close(target, want)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", OTHER_SHAPE)
def test_result_of_another_shape_over_its_operand_equals_the_result_apart(name):
    x, operator = OTHER_SHAPE[name]
    want = operator(x.clone())
    target = x.clone()
    operator(target, out=target)
    torch.testing.assert_close(target, want)


def test_empty_out_among_the_operands_is_filled():
    empty = torch.empty(0)
    assert torch.cat([empty, torch.ones(1000)], out=empty).tolist() == [1.0] * 1000


def test_overlap_that_is_refused_stays_refused():
    x = torch.ones(10, 3)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.index_select(x, 0, torch.zeros(40, dtype=LONG), out=x)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.cat([x, x], out=x)
