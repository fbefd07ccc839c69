"""Fused optimizer steps and clipping on CUDA: the CPU's fused kernels give the numbers."""

import pytest
from cuda_support import cuda

import torch

SHAPES = [(3,), (17, 5), (), (0, 4), (8193,), (2, 3, 4), (20000,)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 1e-2}


def parameters(device, dtype, shapes):
    torch.manual_seed(0)
    params = [torch.randn(s).to(dtype).to(device).requires_grad_() for s in shapes]
    return params


def set_grads(params, step):
    torch.manual_seed(100 + step)
    for p in params:
        p.grad = torch.randn(p.shape).to(p.dtype).to(p.device)


def run(make, device, dtype, shapes=SHAPES, steps=3):
    params = parameters(device, dtype, shapes)
    optimizer = make(params)
    for step in range(steps):
        set_grads(params, step)
        optimizer.step()
    return [p.detach().cpu() for p in params], optimizer


MAKERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95)),
    "adam l2": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, maximize=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, fused=True),
    "adagrad l2": lambda p: torch.optim.Adagrad(
        p, lr=0.1, weight_decay=0.1, maximize=True, fused=True
    ),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, maximize=True),
}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("name", list(MAKERS))
def test_steps_match_the_cpu(name, dtype):
    want, _ = run(MAKERS[name], "cpu", dtype)
    got, _ = run(MAKERS[name], cuda, dtype)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_hundreds_of_tensors_go_in_one_table_and_more_in_several():
    shapes = [(1 + i % 7,) for i in range(600)]
    want, _ = run(MAKERS["adamw"], "cpu", torch.float32, shapes, 2)
    got, _ = run(MAKERS["adamw"], cuda, torch.float32, shapes, 2)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=2e-6, atol=2e-6)


def test_parameters_that_join_later_have_their_own_step():
    results = []
    for device in ("cpu", cuda):
        params = parameters(device, torch.float32, [(4,), (5,)])
        optimizer = torch.optim.AdamW(params, lr=0.1)
        set_grads(params[:1], 0)
        optimizer.step()
        set_grads(params, 1)
        optimizer.step()
        results.append([p.detach().cpu() for p in params])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-6, atol=2e-6)


def test_strided_and_unaligned_parameters_are_updated_in_place():
    results = []
    for device in ("cpu", cuda):
        torch.manual_seed(1)
        base = torch.randn(6, 40).to(device)
        flat = torch.randn(41).to(device)
        params = [base.t()[3:], flat[1:]]
        for p in params:
            p.requires_grad_()
        optimizer = torch.optim.AdamW(params, lr=0.1)
        set_grads(params, 2)
        optimizer.step()
        results.append([p.detach().cpu() for p in params] + [base.cpu(), flat.cpu()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-6, atol=2e-6)


def test_grad_scale_and_found_inf_stay_on_the_device():
    def call(device, found):
        p, g = torch.ones(5, device=device), torch.full((5,), 8.0, device=device)
        m, v = torch.zeros(5, device=device), torch.zeros(5, device=device)
        torch._fused_adamw_(
            [p], [g], [m], [v], [], [torch.tensor(1.0)], lr=0.1, beta1=0.9, beta2=0.99,
            weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False,
            grad_scale=torch.tensor(4.0, device=device),
            found_inf=torch.tensor(found, device=device),
        )  # fmt: skip
        return [t.cpu() for t in (p, g, m, v)]

    for found in (0.0, 1.0):
        for a, b in zip(call("cpu", found), call(cuda, found), strict=True):
            torch.testing.assert_close(a, b)


def test_state_dict_moves_between_devices():
    got, optimizer = run(MAKERS["adamw"], cuda, torch.float32, [(4,), (3, 2)])
    params = parameters("cpu", torch.float32, [(4,), (3, 2)])
    other = torch.optim.AdamW(params, lr=0.01, weight_decay=0.1)
    other.load_state_dict(optimizer.state_dict())
    for p, value in zip(params, got, strict=True):
        p.data.copy_(value)
    set_grads(params, 7)
    other.step()
    assert all(other.state[p]["exp_avg"].device.type == "cpu" for p in params)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf"), 3.0])
def test_clipping_matches_the_cpu(norm_type):
    results = []
    for device in ("cpu", cuda):
        shapes = [shape for shape in SHAPES if 0 not in shape]  # no largest element of none
        params = parameters(device, torch.float32, shapes)
        set_grads(params, 3)
        total = torch.nn.utils.clip_grad_norm_(params, 2.0, norm_type)
        assert total.device.type == torch.device(device).type
        results.append([total.cpu()] + [p.grad.cpu() for p in params])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_mismatched_lists_are_errors():
    p = [torch.ones(3, device=cuda)]
    with pytest.raises(RuntimeError, match="does not fit"):
        torch._fused_sgd_(
            p, [torch.ones(3)], [], weight_decay=0, momentum=0, lr=0.1, dampening=0,
            nesterov=False, maximize=False, is_first_step=True,
        )  # fmt: skip
