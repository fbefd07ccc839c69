"""Graphs on CUDA through the default compiler: loops become kernels of their own, with the bits of
the operators one by one."""

import pytest
from cuda_support import cuda, launched_kernels

import torch
from torch._inductor import metrics


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    metrics.reset()
    yield
    torch._dynamo.reset()


def same_bits(got, want):
    got, want = got.detach().cpu(), want.detach().cpu()
    assert got.dtype == want.dtype and got.shape == want.shape
    assert torch.equal(got.nan_to_num(7.0), want.nan_to_num(7.0))


def test_loops_over_elements_are_one_kernel_with_the_bits_of_eager():
    def body(x, w, b):
        y = torch.nn.functional.gelu(x * w + b, approximate="tanh")
        return (y + x).to(torch.bfloat16), torch.where(y > 0, y, -y), y.clamp(-0.5, 0.5) * 3

    args = [torch.randn(6, 10, device=cuda), torch.randn(10, device=cuda)]
    args.append(torch.tensor(0.5, device=cuda))
    found = torch.compile(body)(*args)
    assert metrics.generated_kernel_count == 1 and metrics.num_calls == 0
    for got, want in zip(found, body(*args), strict=True):
        assert got.device == args[0].device
        same_bits(got, want)


def test_one_machine_code_serves_other_shapes_and_numbers():
    from torch._inductor.compile_fx import compile_fx_inner
    from torch.fx.experimental.proxy_tensor import make_fx

    def body(x, y):
        return [torch.tanh(x + y) * 2]

    for shape, other in (
        ((7,), (7,)),
        ((33, 3), (3,)),
        ((2, 0), (2, 0)),
        ((4, 5), (4, 1)),
        ((), ()),
    ):
        args = [torch.randn(shape, device=cuda), torch.randn(other, device=cuda)]
        compiled = compile_fx_inner(make_fx(body)(*args), args)
        same_bits(compiled(list(args))[0], body(*args)[0])


def test_strided_and_misaligned_operands_are_read_where_they_lie():
    def body(x, y):
        return torch.relu(x - y)

    base = torch.randn(8, 9, device=cuda)
    for x in (base.t(), base[1:, 1:], base[:, ::2], base.flatten()[1:]):
        y = torch.randn(x.shape, device=cuda)
        torch._dynamo.reset()
        same_bits(torch.compile(body, dynamic=False)(x, y), body(x, y))


def test_calls_and_kernels_take_turns_and_gradients_follow():
    def body(x, w):
        return torch.sigmoid(torch.relu(x) @ w * 2).sum()

    x = torch.randn(5, 4, device=cuda)
    grads = []
    for run in (body, torch.compile(body)):
        a, w = x.clone().requires_grad_(), torch.ones(4, 3, device=cuda).requires_grad_()
        run(a, w).backward()
        grads.append((a.grad, w.grad))
    for got, want in zip(grads[1], grads[0], strict=True):
        torch.testing.assert_close(got.cpu(), want.cpu())
    assert metrics.num_calls > 0 and metrics.generated_kernel_count > 0


def test_writes_to_inputs_are_seen():
    def body(x):
        x.add_(1)
        return x * 2

    a, b = torch.arange(4.0, device=cuda), torch.arange(4.0, device=cuda)
    same_bits(torch.compile(body)(a), body(b))
    same_bits(a, b)


def test_tensors_of_two_devices_run_as_they_are():
    def body(x, y):
        return x.cpu() + y

    x, y = torch.ones(3, device=cuda), torch.ones(3)
    assert torch.compile(body)(x, y).tolist() == [2.0, 2.0, 2.0]


def test_random_numbers_are_those_of_eager():
    def body(x):
        return torch.nn.functional.dropout(x, 0.5) + 1

    x = torch.ones(64, device=cuda)
    torch.manual_seed(3)
    want = body(x)
    torch.manual_seed(3)
    same_bits(torch.compile(body)(x), want)


def test_results_of_another_dtype_than_planned_go_from_call_to_call():
    layer = torch.nn.LayerNorm(8).to(cuda)

    def body(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return (layer(x.bfloat16()) * 2).float().sum()

    grads = []
    for run in (body, torch.compile(body)):
        x = torch.linspace(-1, 2, 32, device=cuda).view(4, 8).requires_grad_()
        run(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1].cpu(), grads[0].cpu())


def test_statistics_of_a_norm_in_half_precision_reach_the_backward_pass():
    from torch._inductor.compile_fx import compile_fx_inner
    from torch.fx.experimental.proxy_tensor import make_fx

    def body(x, grad):
        out, mean, rstd = torch.ops.aten.native_layer_norm(x, [8], None, None, 1e-5)
        back = torch.ops.aten.native_layer_norm_backward(
            grad, x, [8], mean, rstd, None, None, [True, False, False]
        )
        return [out, mean, rstd, back[0], mean.float() + 1]

    args = [torch.randn(4, 8, device=cuda).bfloat16() for _ in range(2)]
    compiled = compile_fx_inner(make_fx(body)(*args), args)
    for got, want in zip(compiled(list(args)), body(*args), strict=True):
        torch.testing.assert_close(got.cpu().float(), want.cpu().float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_gradient_of_a_norm_is_added_to_that_of_the_residual_stream_at_once(kind):
    # Two blocks x + f(norm(x)): the gradient of each norm meets one that came past the block.
    torch.manual_seed(0)
    make = torch.nn.LayerNorm if kind == "layer" else torch.nn.RMSNorm
    norms = torch.nn.ModuleList([make(16), make(16)]).to(cuda)
    products = [torch.randn(16, 16, device=cuda) for _ in norms]

    def body(x):
        for norm, w in zip(norms, products, strict=True):
            x = x + norm(x) @ w
        return x

    grads = []
    for run in (body, torch.compile(body)):
        norms.zero_grad()
        x = torch.ones(6, 16, device=cuda).cumsum(1).sin().requires_grad_()
        y = run(x * 1.5)
        seed = torch.randn(6, 16, generator=torch.Generator().manual_seed(1)).to(cuda)
        names = launched_kernels(lambda y=y, seed=seed: (y * 2.0).backward(seed))
        grads.append([x.grad, *(p.grad for p in norms.parameters())])
    for got, want in zip(grads[1], grads[0], strict=True):
        same_bits(got, want)
    assert sum("norm_backward" in name for name in names) >= 2
    assert not any("add" in name for name in names), names


def test_a_gradient_that_is_read_again_is_not_added_to():
    def body(g, x, w, other):
        past = torch.mm(other, other)
        mean, rstd = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        dx, dw, _ = torch.ops.aten.native_layer_norm_backward(
            g, x, [16], mean, rstd, w, w, [True, True, True]
        )
        return dx + past, torch.mm(past, other), dw

    g, x, other = (torch.randn(16, 16, device=cuda) for _ in range(3))
    w = torch.randn(16, device=cuda)
    found = torch.compile(body)(g, x, w, other)
    for got, want in zip(found, body(g, x, w, other), strict=True):
        same_bits(got, want)
