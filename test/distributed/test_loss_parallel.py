"""cross_entropy of logits that are cut along the classes."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel


def _losses(rank, size, shape, reduction):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    x = torch.randn(shape, requires_grad=True)
    targets = torch.randint(shape[1], (shape[0], *shape[2:]))
    weights = torch.rand(shape[1])
    cut = distribute_tensor(x.detach(), mesh, [Shard(1)]).requires_grad_()
    # Targets and weights are plain, as a data loader gives them.
    with loss_parallel():
        found = nn.functional.cross_entropy(cut, targets, weights, reduction=reduction)
        found.sum().backward()
    expected = nn.functional.cross_entropy(x, targets, weights, reduction=reduction)
    expected.sum().backward()
    assert cut.grad.placements == (Shard(1),)
    torch.testing.assert_close(found.full_tensor(), expected)
    torch.testing.assert_close(cut.grad.full_tensor(), x.grad)
    with pytest.raises(RuntimeError, match=r"mixed torch\.Tensor and DTensor"):
        nn.functional.cross_entropy(cut, targets)


@needs_gloo
@pytest.mark.parametrize("shape", [(8, 6), (4, 6, 3)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_plain_targets_and_weights_count_as_replicated(shape, reduction):
    run_ranks(_losses, 2, shape, reduction)
