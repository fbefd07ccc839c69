"""Nested tensors on CUDA: the results and gradients of the CPU."""

from cuda_support import cuda

import torch
import torch.nn.functional as F


def run(device):
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(n, 8, generator=generator) for n in (2, 5, 2)]
    weight = torch.randn(8, 8, generator=generator).to(device).requires_grad_()
    nt = torch.nested.nested_tensor(
        [p.to(device) for p in parts], layout=torch.jagged, requires_grad=True
    )
    assert nt.device.type == nt.offsets().device.type == torch.device(device).type
    hidden = F.layer_norm(F.gelu(F.linear(nt, weight)), (8,)) + nt
    heads = hidden.unflatten(-1, (2, 4)).transpose(1, 2)
    attended = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(2)
    scaled = attended * nt.mean(1, keepdim=True)
    results = [
        scaled.values(),
        scaled.sum(1),
        scaled.amax(1),
        scaled.softmax(1).values(),
        scaled.to_padded_tensor(3.0),
    ]
    sum(r.square().sum() for r in results).backward()
    return [*(r.detach() for r in results), nt.grad.values(), weight.grad]


def test_results_and_gradients_are_those_of_the_cpu():
    for found, wanted in zip(run(cuda), run("cpu"), strict=True):
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-4)


def test_moving_keeps_the_structure():
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    moved = nt.to(cuda)
    assert moved.is_cuda and moved.offsets().is_cuda and moved.shape == nt.shape
    assert (moved * 2).shape == nt.shape and torch.equal(moved.cpu(), nt)
    assert moved.unbind()[0].is_cuda and moved.to_padded_tensor(0.0).is_cuda
