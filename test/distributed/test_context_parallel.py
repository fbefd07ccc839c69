"""Attention over a sequence that is cut among processes gives what one process computes."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import (
    _cp_options,
    context_parallel_unshard,
    set_rotate_method,
)


def _inputs():
    torch.manual_seed(3)
    return torch.randn(2, 16, 12), torch.randn(36, 12)


def _attended(x, weight, causal):
    q, k, v = (part.unflatten(-1, (3, 4)).transpose(1, 2) for part in (x @ weight.T).chunk(3, -1))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(-2)


def _parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    found = {}
    for method in ("allgather", "alltoall"):
        for balanced in (True, False):
            for causal in (True, False):
                set_rotate_method(method)
                _cp_options.enable_load_balance = balanced
                x, weight = _inputs()
                weight.requires_grad_()
                with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
                    assert x.shape == (2, 16 // size, 12)
                    out = _attended(x, weight, causal)
                    out.square().sum().backward()
                assert torch.equal(x, _inputs()[0])
                (whole,) = context_parallel_unshard(mesh, [out.detach()], [1])
                torch.distributed.all_reduce(weight.grad)
                found[method, balanced, causal] = whole, weight.grad
    return found


@needs_gloo
@pytest.mark.parametrize("size", [2, 4])
def test_every_method_gives_the_output_and_gradients_of_one_process(size):
    for found in run_ranks(_parallel, size):
        for (_, _, causal), (out, grad) in found.items():
            x, weight = _inputs()
            weight.requires_grad_()
            wanted = _attended(x, weight, causal)
            wanted.square().sum().backward()
            torch.testing.assert_close(out, wanted.detach(), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(grad, weight.grad, rtol=1e-3, atol=1e-4)


def _refused(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = torch.ones(1, 5, 4)
    with (
        pytest.raises(ValueError, match="a sequence of 5 tokens"),
        context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]),
    ):
        pass
    with (
        pytest.raises(ValueError, match="same number of elements"),
        context_parallel(mesh, buffers=[x], buffer_seq_dims=[]),
    ):
        pass
    x = torch.ones(1, 8, 4)
    with (
        context_parallel(mesh, buffers=[x], buffer_seq_dims=[1], no_restore_buffers={x}),
        pytest.raises(NotImplementedError, match="attn_mask or dropout_p"),
    ):
        F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)
    return x.shape[1]


@needs_gloo
def test_sequences_that_cannot_be_cut_and_masks_are_refused():
    assert run_ranks(_refused, 2) == [4, 4]
    with pytest.raises(NotImplementedError, match="unknown method"):
        set_rotate_method("pigeon")
