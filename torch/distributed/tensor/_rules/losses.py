"""Losses with a reduction. A mean over parts is exact: the sums of the parts are divided by what
all have together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.distributed import _functional_collectives as _functional
from torch.distributed.tensor._rules import rule
from torch.distributed.tensor._signature import Letters, Signature, broadcast_dims

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call, LocalCall

_NONE, _MEAN, _SUM = 0, 1, 2
_POINTWISE = "mse_loss smooth_l1_loss huber_loss binary_cross_entropy soft_margin_loss"


@rule(_POINTWISE + " binary_cross_entropy_with_logits")
def pointwise_loss(call: Call) -> Signature:
    """Elements are independent; their mean or sum joins all parts."""
    letters = Letters()
    own = letters.dims(call.tensors[0].shape)
    inputs = {i: broadcast_dims(letters, own, spec.shape) for i, spec in enumerate(call.tensors)}
    reduction = call.arguments["reduction"]
    if reduction == _NONE:
        return Signature(inputs, {0: own}, letters.sizes)
    join = "sum" if reduction == _SUM else "even:avg"
    return Signature(inputs, {0: ()}, letters.sizes, reduces=dict.fromkeys(letters.sizes, join))


@rule(" ".join(f"{name}_backward" for name in _POINTWISE.split()))
def pointwise_loss_backward(call: Call) -> Signature:
    """The gradient of a mean knows how many elements there are in all."""
    letters = Letters()
    own = letters.dims(call.results[0].shape)
    inputs = {i: broadcast_dims(letters, own, spec.shape) for i, spec in enumerate(call.tensors)}
    made = Signature(inputs, {0: own}, letters.sizes)
    if call.arguments["reduction"] == _MEAN:
        made.local = _of_all
    return made


def _of_all(local: LocalCall) -> torch.Tensor:
    found = local.op(*local.args, **local.kwargs)
    whole = local.outputs[0].shape.numel()
    return found * (found.numel() / whole) if found.numel() != whole else found


@rule("nll_loss_forward nll_loss2d_forward")
def nll_loss(call: Call) -> Signature:
    """Samples are independent, classes are whole."""
    letters, inputs, classes, samples = _nll(call)
    reduction = call.arguments["reduction"]
    made = Signature(inputs, {}, letters.sizes, frozen={classes})
    if reduction == _NONE:
        made.outputs = {0: samples, 1: ()}
        made.reduces = dict.fromkeys(letters.sizes, "sum")
        made.whole = {(1, letter) for letter in letters.sizes}
        return made
    made.outputs = {0: (), 1: ()}
    made.reduces = dict.fromkeys(letters.sizes, "sum")
    made.whole = {(1, letter) for letter in letters.sizes}
    made.local = _nll_loss
    return made


def _nll(call: Call) -> tuple[Letters, dict, int, tuple]:
    letters = Letters()
    own = letters.dims(call.shape("self"))
    at = 1 if len(own) > 1 else 0
    samples = tuple(dim for i, dim in enumerate(own) if i != at)
    names = {"self": own, "target": samples, "weight": (own[at],), "total_weight": ()}
    names["grad_output"] = samples if call.arguments["reduction"] == _NONE else ()
    inputs = {call.at(name): dims for name, dims in names.items() if call.at(name) >= 0}
    return letters, dict(sorted(inputs.items())), own[at][0], samples


def _nll_loss(local: LocalCall) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a part over the weight of all: parts of a sum."""
    self, target, weight, reduction, ignore = local.args[:5]
    spec = local.inputs[0]
    cuts = [dim for dim, p in enumerate(spec.placements) if p.is_shard()]
    if not cuts:
        return local.op(*local.args, **local.kwargs)
    loss, total = local.op(self, target, weight, _SUM, ignore)
    for dim in cuts:
        total = _functional.wait_tensor(_functional.all_reduce(total, "sum", (spec.mesh, dim)))
    return (loss / total if reduction == _MEAN else loss), total


@rule("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(call: Call) -> Signature:
    """As the loss; the total weight is that of all."""
    letters, inputs, classes, _ = _nll(call)
    own = inputs[call.at("self")]
    return Signature(inputs, {0: own}, letters.sizes, frozen={classes})
