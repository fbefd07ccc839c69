"""Batch norms of compiled graphs on CUDA, which do on the way what stands beside them: with the
bits of the operators one by one, and without kernels of their own."""

import pytest
from cuda_support import cuda, launched_kernels

import torch
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def norm(training=True):
    torch.manual_seed(0)
    made = torch.nn.BatchNorm2d(4).to(cuda).train(training)
    with torch.no_grad():
        made.weight.uniform_(-1, 1), made.bias.uniform_(-1, 1)
        made.running_mean.uniform_(-1, 1), made.running_var.uniform_(0.5, 2)
    made.num_batches_tracked = None  # has a kernel of its own
    return made


def steps(body, module, *inputs, backward=True):
    """Result, gradients and statistics of three calls, plainly and compiled, and the kernels of the
    first compiled forward and backward, which is not recorded."""
    state = {k: v.clone() for k, v in module.state_dict().items()}
    found, names = [], []
    for run in (body, torch.compile(body)):
        module.load_state_dict(state, strict=False)
        module.zero_grad()
        seen = []
        names = []
        for _ in range(3):
            given = [x.detach().clone().requires_grad_(backward) for x in inputs]
            out = []
            names.append(
                launched_kernels(lambda run=run, given=given, out=out: out.append(run(*given)))
            )
            seen.append(out[0].detach())
            if backward:
                slope = torch.linspace(-1, 1, out[0].numel(), device=cuda).view(out[0].shape)
                slope = slope.to(out[0].dtype)
                names.append(launched_kernels(lambda out=out, slope=slope: out[0].backward(slope)))
                seen += [x.grad for x in given]
        seen += [p.grad.clone() for p in module.parameters() if p.grad is not None]
        seen += [v.clone() for v in module.buffers()]
        found.append(seen)
    for got, want in zip(found[1], found[0], strict=True):
        assert got.dtype == want.dtype and got.stride() == want.stride()
        assert torch.equal(got.cpu().nan_to_num(7.0), want.cpu().nan_to_num(7.0))
    return names[: 2 if backward else 1]


def images(dtype=torch.float32, layout=torch.contiguous_format, plane=(3, 4)):
    torch.manual_seed(1)
    x = torch.randn(2, 4, *plane).to(dtype)
    x[0, 1, 0, 0] = 0.0
    return x.to(memory_format=layout).to(cuda)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_positive_part_is_taken_by_the_norm(dtype, layout):
    module = norm()
    forward, backward = steps(lambda x: F.relu(module(x)) * 1.0, module, images(dtype, layout))
    assert not any("elu" in name or name.startswith("cast") for name in forward), forward
    assert sum(name == "cresset_fused" for name in backward) <= 1, backward


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_residual_is_added_by_the_norm(layout):
    module = norm()
    x, y = images(torch.float32, layout), images(torch.float32, layout).flip(0)
    y = y.contiguous(memory_format=layout)
    forward, _ = steps(lambda x, y: F.relu(module(x) + y), module, x, y)
    assert "cresset_fused" not in forward, forward
    torch._dynamo.reset()
    steps(lambda x, y: F.relu(y + module(x)), module, x, y)


def test_a_residual_in_another_order_of_memory_is_added_by_itself():
    module = norm()
    y = images(torch.float32, torch.channels_last)
    steps(lambda x, y: F.relu(module(x) + y), module, images(), y)


def test_statistics_that_stay_serve_inference():
    module = norm(training=False)
    (forward,) = steps(lambda x: F.relu(module(x)), module, images(), backward=False)
    assert "cresset_fused" not in forward, forward
    steps(lambda x: F.relu(module(x)), module, images())


def test_bad_values_pass_as_they_do_one_by_one():
    module = norm()
    x = images()
    x[1, 2, 1, 1] = float("nan")
    steps(lambda x: F.relu(module(x)), module, x)
    x[1, 2, 1, 1] = float("inf")
    steps(lambda x: F.relu(module(x)), module, x)


def test_results_that_are_read_again_are_kept():
    module = norm()

    def both(x):
        y = module(x)
        return F.relu(y) + y.sum(0)

    steps(both, module, images())
    steps(lambda x: module(x) + F.relu(module(x)), module, images())


def test_two_norms_that_meet_and_the_gradient_that_goes_to_both():
    first, second = norm(), norm()
    both = torch.nn.ModuleList([first, second])
    steps(lambda x: F.relu(first(x) + second(x * 2)), both, images())


def test_odd_planes_and_single_values():
    module = norm()
    for plane in ((1, 1), (1, 3), (5, 1)):
        torch._dynamo.reset()
        steps(lambda x: F.relu(module(x)), module, images(plane=plane))


def test_running_statistics_are_written_where_they_lie():
    module = norm()
    places = [module.running_mean.data_ptr(), module.running_var.data_ptr()]
    forward, _ = steps(lambda x: module(x), module, images())
    assert [module.running_mean.data_ptr(), module.running_var.data_ptr()] == places
    assert not any("Memcpy" in name for name in forward), forward
