"""loss_parallel: cross entropy of logits that are cut along the classes. Each rank has the logits
of its classes; a maximum, a sum and the target's logit are reduced, the logits never are
gathered."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch.distributed import _functional_collectives as _functional
from torch.distributed.tensor import _dispatch, _rules
from torch.distributed.tensor._dtensor_spec import DTensorSpec, local_part
from torch.distributed.tensor._rules import losses, normal, reduction

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall
    from torch.distributed.tensor._signature import Signature

__all__ = ["loss_parallel"]

Tensor = torch.Tensor
_MEAN, _SUM = 1, 2


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside the block, forward and backward of cross_entropy keep logits cut along the classes.
    Targets and weights may be plain tensors, the same on all ranks."""
    ops = torch.ops.aten
    table: dict[object, Callable] = {
        ops._log_softmax.default: _log_softmax,
        ops._log_softmax_backward_data.default: _log_softmax_backward,
        ops.nll_loss_forward.default: _nll_loss,
        ops.nll_loss2d_forward.default: _nll_loss,
        ops.nll_loss_backward.default: _nll_loss_backward,
        ops.nll_loss2d_backward.default: _nll_loss_backward,
    }
    before = {op: _rules._entry(op) for op in table}
    replicating = _dispatch.settings.replicating_ops
    _dispatch.settings.replicating_ops = replicating | table.keys()
    for op, make in table.items():
        _rules.set_rule(op, make)
    _dispatch.clear_plans()
    try:
        yield
    finally:
        _rules._found.update(before)
        _dispatch.settings.replicating_ops = replicating
        _dispatch.clear_plans()


def _cuts(spec: DTensorSpec, dim: int) -> list[int]:
    """The mesh dimensions that cut a dimension of a tensor."""
    return [i for i, placement in enumerate(spec.placements) if placement.is_shard(dim)]


def _over(tensor: Tensor, op: str, spec: DTensorSpec, dim: int) -> Tensor:
    for mesh_dim in _cuts(spec, dim):
        tensor = _functional.wait_tensor(_functional.all_reduce(tensor, op, (spec.mesh, mesh_dim)))
    return tensor


# ---- log_softmax
def _log_softmax(call: Call) -> Signature:
    made = reduction.along(call)
    made.frozen = set()
    made.local = _log_softmax_of_part
    return made


def _log_softmax_of_part(local: LocalCall) -> Tensor:
    x, dim, widen = local.args
    spec = local.inputs[0]
    dim = normal(dim, x.ndim)
    if not _cuts(spec, dim):
        return local.op(*local.args)
    x = x.float() if widen else x
    top = _over(torch.amax(x, dim, keepdim=True), "max", spec, dim)
    shifted = x - top
    total = _over(torch.exp(shifted).sum(dim, keepdim=True), "sum", spec, dim)
    return shifted - total.log()


def _log_softmax_backward(call: Call) -> Signature:
    made = reduction.along(call)
    made.frozen = set()
    made.local = _log_softmax_backward_of_part
    return made


def _log_softmax_backward_of_part(local: LocalCall) -> Tensor:
    grad, output, dim, dtype = local.args
    spec = local.inputs[0]
    dim = normal(dim, output.ndim)
    if not _cuts(spec, dim):
        return local.op(*local.args)
    total = _over(grad.sum(dim, keepdim=True), "sum", spec, dim)
    return (grad - torch.exp(output) * total).to(dtype)


# ---- nll_loss
def _nll_loss(call: Call) -> Signature:
    made = losses.nll_loss(call)
    classes = next(iter(made.frozen))
    made.frozen = set()
    made.whole |= {(0, classes), (1, classes)}
    made.local = _nll_loss_of_part
    return made


def _class_dim(x: Tensor) -> int:
    return 1 if x.ndim > 1 else 0


def _own_targets(x: Tensor, target: Tensor, spec: DTensorSpec) -> tuple[Tensor, Tensor]:
    """Targets as indices into this rank's classes, and which of them are not its own."""
    dim = _class_dim(x)
    sizes, offsets = local_part(spec)
    own = target - offsets[dim]
    foreign = (own < 0) | (own >= sizes[dim])
    return own.masked_fill(foreign, 0), foreign


def _weights(
    target: Tensor, weight: Tensor | None, ignore: int, x: Tensor, spec: DTensorSpec
) -> Tensor:
    """The weight of each sample; that of ignored ones is zero."""
    used = target != ignore
    if weight is None:
        return used.to(x.dtype)
    own, foreign = _own_targets(x, target, spec)
    picked = weight[own].masked_fill(foreign | ~used, 0)
    return _over(picked, "sum", spec, _class_dim(x))


def _nll_loss_of_part(local: LocalCall) -> tuple[Tensor, Tensor]:
    x, target, weight, how, ignore = local.args
    spec = local.inputs[0]
    dim = _class_dim(x)
    if not _cuts(spec, dim):
        return losses._nll_loss(local) if how else local.op(*local.args)
    own, foreign = _own_targets(x, target, spec)
    picked = x.gather(dim, own.unsqueeze(dim)).squeeze(dim).masked_fill(foreign, 0)
    picked = _over(picked, "sum", spec, dim)
    weights = _weights(target, weight, ignore, x, spec)
    loss, total = -picked * weights, weights.sum()
    if how not in (_MEAN, _SUM):
        return loss, total.new_zeros(())
    others = [i for i, p in enumerate(spec.placements) if p.is_shard() and not p.is_shard(dim)]
    for mesh_dim in others:
        total = _functional.wait_tensor(_functional.all_reduce(total, "sum", (spec.mesh, mesh_dim)))
    return (loss.sum() / total if how == _MEAN else loss.sum()), total


def _nll_loss_backward(call: Call) -> Signature:
    made = losses.nll_loss_backward(call)
    made.frozen = set()
    made.local = _nll_loss_backward_of_part
    return made


def _nll_loss_backward_of_part(local: LocalCall) -> Tensor:
    grad, x, target, weight, how, ignore, total = local.args
    spec = local.inputs[1]
    dim = _class_dim(x)
    if not _cuts(spec, dim):
        return local.op(*local.args)
    own, foreign = _own_targets(x, target, spec)
    weights = _weights(target, weight, ignore, x, spec)
    scale = grad / total if how == _MEAN else grad
    values = (-weights * scale).masked_fill(foreign, 0).to(x.dtype)
    return torch.zeros_like(x).scatter_(dim, own.unsqueeze(dim), values.unsqueeze(dim))
