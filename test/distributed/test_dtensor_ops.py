"""Operators on distributed tensors give what they give on whole ones, for every placement of their
arguments, forwards and backwards."""

import itertools

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

INDEX = torch.tensor([[0, 2, 5], [1, 1, 4]])
LABELS = torch.tensor([1, 0, 3, 2])


def _t(*shape):
    generator = torch.Generator().manual_seed(len(shape) * 100 + sum(shape))
    return torch.randn(*shape, generator=generator)


# name: (function of tensors, tensors)
CALLS = {
    "add": (lambda a, b: a + b, [_t(4, 6), _t(4, 6)]),
    "add_broadcast": (lambda a, b: a + b, [_t(4, 6), _t(6)]),
    "add_number": (lambda a: a + 2, [_t(4, 6)]),
    "mul": (lambda a, b: a * b, [_t(4, 6), _t(4, 1)]),
    "div_number": (lambda a: a / 3, [_t(4, 6)]),
    "gelu": (F.gelu, [_t(4, 6)]),
    "where": (lambda a, b: torch.where(a > 0, a, b), [_t(4, 6), _t(4, 6)]),
    "clamp": (lambda a: a.clamp(min=0.1), [_t(5, 3)]),
    "sum": (lambda a: a.sum(), [_t(4, 6)]),
    "sum_dim": (lambda a: a.sum(0), [_t(4, 6)]),
    "sum_keep": (lambda a: a.sum(1, keepdim=True), [_t(5, 6)]),
    "mean": (lambda a: a.mean(), [_t(5, 6)]),
    "mean_dim": (lambda a: a.mean(1), [_t(4, 6)]),
    "amax": (lambda a: a.amax(0), [_t(4, 6)]),
    "var": (lambda a: a.var(1), [_t(4, 6)]),
    "norm": (lambda a: torch.linalg.vector_norm(a), [_t(5, 6)]),
    "norm_inf": (lambda a: torch.linalg.vector_norm(a, float("inf"), 0), [_t(5, 6)]),
    "softmax": (lambda a: a.softmax(-1), [_t(4, 6)]),
    "log_softmax": (lambda a: a.log_softmax(0), [_t(4, 6)]),
    "cumsum": (lambda a: a.cumsum(0), [_t(4, 6)]),
    "topk": (lambda a: a.topk(2, 1)[0], [_t(4, 6)]),
    "sort": (lambda a: a.sort(0)[0], [_t(4, 6)]),
    "mm": (torch.mm, [_t(4, 6), _t(6, 5)]),
    "addmm": (torch.addmm, [_t(5), _t(4, 6), _t(6, 5)]),
    "bmm": (torch.bmm, [_t(4, 3, 6), _t(4, 6, 5)]),
    "matmul": (torch.matmul, [_t(2, 4, 6), _t(6, 5)]),
    "linear": (F.linear, [_t(2, 3, 6), _t(4, 6), _t(4)]),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), [_t(2, 3, 4), _t(2, 5, 4)]),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (6,), w, b), [_t(4, 6), _t(6), _t(6)]),
    "group_norm": (lambda a, w, b: F.group_norm(a, 2, w, b), [_t(4, 6, 3), _t(6), _t(6)]),
    "group_norm_plain": (lambda a: F.group_norm(a, 3), [_t(4, 6, 3)]),
    "log_sigmoid": (F.logsigmoid, [_t(4, 6)]),
    "bce_logits": (
        lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()),
        [_t(4, 6), _t(4, 6)],
    ),
    "bce_logits_sum": (
        lambda a: F.binary_cross_entropy_with_logits(
            a, a.detach().sigmoid(), pos_weight=_whole(torch.arange(6.0), a), reduction="sum"
        ),
        [_t(4, 6)],
    ),
    "max_pool": (lambda a: F.max_pool2d(a, 2, 1), [_t(4, 2, 3, 4)]),
    "max_pool_3d": (lambda a: F.max_pool3d(a, 2), [_t(2, 2, 2, 3, 4)]),
    "avg_pool": (lambda a: F.avg_pool2d(a, 2, padding=1), [_t(4, 2, 3, 4)]),
    "avg_pool_unbatched": (lambda a: F.avg_pool2d(a, 2), [_t(4, 3, 4)]),
    "nearest": (lambda a: F.interpolate(a, scale_factor=2), [_t(4, 2, 3, 4)]),
    "bilinear": (lambda a: F.interpolate(a, size=(5, 4), mode="bilinear"), [_t(4, 2, 3, 4)]),
    "used_in_two_ways": (lambda a: a.t().exp() @ a, [_t(4, 6)]),
    "view_split": (lambda a: a.view(2, 2, 6), [_t(4, 6)]),
    "view_merge": (lambda a: a.view(24), [_t(4, 6)]),
    "view_other": (lambda a: a.reshape(6, 4), [_t(4, 6)]),
    "view_ones": (lambda a: a.view(1, 4), [_t(1, 2, 2)]),
    "view_as_complex": (lambda a: torch.view_as_complex(a).real, [_t(4, 3, 2)]),
    "flatten": (lambda a: a.flatten(0, 1), [_t(4, 3, 2)]),
    "transpose": (lambda a: a.transpose(0, 1), [_t(4, 6)]),
    "permute": (lambda a: a.permute(2, 0, 1), [_t(4, 6, 2)]),
    "unsqueeze": (lambda a: a.unsqueeze(1), [_t(4, 6)]),
    "squeeze": (lambda a: a.squeeze(), [_t(2, 1, 4)]),
    "expand": (lambda a: a.expand(4, 6), [_t(1, 6)]),
    "repeat": (lambda a: a.repeat(2, 1), [_t(4, 6)]),
    "select": (lambda a: a[1], [_t(4, 6)]),
    "slice": (lambda a: a[:, 1:4], [_t(4, 6)]),
    "chunk": (lambda a: a.chunk(2, 1)[1], [_t(4, 6)]),
    "split": (lambda a: torch.cat(a.split(2), 1), [_t(4, 6)]),
    "unbind": (lambda a: a.unbind(1)[0], [_t(4, 6)]),
    "cat": (lambda a, b: torch.cat([a, b], 1), [_t(4, 6), _t(4, 2)]),
    "stack": (lambda a, b: torch.stack([a, b], 1), [_t(4, 6), _t(4, 6)]),
    "tril": (lambda a: a.tril(), [_t(4, 4)]),
    "embedding": (lambda w: F.embedding(_whole(INDEX, w), w), [_t(6, 4)]),
    "index_select": (lambda a: a.index_select(0, _whole(LABELS, a)), [_t(4, 6)]),
    "gather": (lambda a: a.gather(1, _whole(INDEX, a)), [_t(2, 6)]),
    "index": (lambda a: a[_whole(LABELS, a)], [_t(4, 6)]),
    "cross_entropy": (lambda a: F.cross_entropy(a, _whole(LABELS, a)), [_t(4, 6)]),
    "cross_entropy_sum": (
        lambda a: F.cross_entropy(a, _whole(LABELS, a), reduction="sum"), [_t(4, 6)],
    ),
    "mse_loss": (F.mse_loss, [_t(4, 6), _t(4, 6)]),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [_t(2, 4, 3, 5), _t(2, 4, 3, 5), _t(2, 4, 3, 5)],
    ),
    "conv2d": (F.conv2d, [_t(2, 4, 5, 5), _t(6, 4, 3, 3), _t(6)]),
}  # fmt: skip


def _whole(tensor, like):
    """A plain tensor beside plain ones, a replicated one beside distributed ones."""
    if not isinstance(like, DTensor):
        return tensor
    return distribute_tensor(tensor, like.device_mesh, [Replicate()])


def _placed(tensor, mesh, placement):
    if placement.is_partial():
        return DTensor.from_local(tensor / mesh.size(), mesh, [placement])
    return distribute_tensor(tensor, mesh, [placement])


def _placements(tensor):
    return [Replicate(), Partial(), *(Shard(dim) for dim in range(tensor.ndim))]


def _outcomes(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    found = {}
    for name, (function, tensors) in CALLS.items():
        faults = []
        plain = [t.clone().requires_grad_() for t in tensors]
        wanted = function(*plain)
        weight = torch.linspace(0.5, 1.5, wanted.numel()).view(wanted.shape)
        (wanted * weight).sum().backward()
        for placements in itertools.product(*map(_placements, tensors)):
            try:
                fault = _fault(function, tensors, mesh, placements, wanted, weight, plain)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault:
                faults.append(f"{placements}: {fault}")
        found[name] = faults
    return found


def _fault(function, tensors, mesh, placements, wanted, weight, plain):
    placed = [
        _placed(tensor, mesh, placement).detach().requires_grad_()
        for tensor, placement in zip(tensors, placements, strict=True)
    ]
    result = function(*placed)
    if not torch.allclose(result.full_tensor(), wanted, atol=1e-5):
        return f"wrong value under {result.placements}"
    local = result._local_tensor.shape
    if local != _expected_local(result):
        return f"part of shape {tuple(local)} under {result.placements}"
    (result * _whole(weight, result)).sum().backward()
    for i, (own, other) in enumerate(zip(placed, plain, strict=True)):
        if own.grad is None:
            return f"no gradient of argument {i}"
        if not torch.allclose(own.grad.full_tensor(), other.grad, atol=1e-5):
            return f"wrong gradient of argument {i} under {own.grad.placements}"
    return None


def _expected_local(tensor):
    part = torch.empty(tensor.shape, device="meta")
    (placement,) = tensor.placements
    if placement.is_shard():
        rank, size = tensor.device_mesh.get_local_rank(), tensor.device_mesh.size()
        chunks = part.chunk(size, placement.dim)
        if rank >= len(chunks):
            return part.narrow(placement.dim, 0, 0).shape
        part = chunks[rank]
    return part.shape


@pytest.fixture(scope="module")
def outcomes():
    return run_ranks(_outcomes, 2, timeout=300)


@needs_gloo
@pytest.mark.parametrize("name", CALLS)
def test_operator_on_parts_equals_operator_on_whole_tensors(outcomes, name):
    for rank, found in enumerate(outcomes):
        assert not found[name], f"rank {rank}: " + "\n".join(found[name][:5])


def _decomposed(rank, size, dim):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    matrices = torch.randn(4, 3, 3, dtype=torch.double)
    matrices = matrices @ matrices.mT + torch.eye(3, dtype=torch.double)
    parts = distribute_tensor(matrices, mesh, [Shard(dim)])
    calls = (
        torch.linalg.eigh, torch.linalg.qr, torch.linalg.cholesky, torch.linalg.det,
        torch.linalg.inv, torch.linalg.slogdet, torch.linalg.svdvals, torch.matrix_exp,
    )  # fmt: skip
    for call in calls:
        wanted, found = call(matrices), call(parts)
        if isinstance(wanted, torch.Tensor):
            wanted, found = [wanted], [found]
        for want, got in zip(wanted, found, strict=True):
            assert got.placements == ((Shard(0),) if dim == 0 else (Replicate(),)), call
            assert torch.allclose(got.full_tensor(), want), call


@needs_gloo
@pytest.mark.parametrize("dim", [0, 1])
def test_functions_of_matrices_keep_a_cut_of_the_batch_and_no_other(dim):
    run_ranks(_decomposed, 2, dim)
