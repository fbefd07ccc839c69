"""Losses and their derivatives. A loss is a function of elements and a reduction (0 none, 1 mean,
2 sum); its derivative scales the gradient by the reduction and multiplies by the slope."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp._register import decomposes, widened

aten = torch.ops.aten

MEAN, SUM = 1, 2


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """The loss after its reduction."""
    if reduction == MEAN:
        return torch.mean(loss)
    return torch.sum(loss) if reduction == SUM else loss


def _spread(grad: Tensor, loss_like: Tensor, reduction: int) -> Tensor:
    """The gradient of every element of the loss."""
    return grad / loss_like.numel() if reduction == MEAN else grad


@decomposes(aten.mse_loss)
def mse_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    return widened(lambda x, y: reduced((x - y) * (x - y), reduction))(self, target)


@decomposes(aten.mse_loss_backward)
def mse_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    factor = 2.0 / input.numel() if reduction == MEAN else 2.0
    return widened(lambda g, x, y: factor * (x - y) * g)(grad_output, input, target)


def _bent(distance: Tensor, bend: float, scale: float) -> Tensor:
    """Half the square up to the bend, linear from there on, divided by scale."""
    size = torch.abs(distance)
    straight = bend * (size - 0.5 * bend)
    return torch.where(size < bend, 0.5 * size * size, straight) / scale


def _bent_slope(distance: Tensor, bend: float) -> Tensor:
    return torch.clamp(distance, -bend, bend)


@decomposes(aten.smooth_l1_loss)
def smooth_l1_loss(
    self: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0
) -> Tensor:
    if beta == 0:
        return widened(lambda x, y: reduced(torch.abs(x - y), reduction))(self, target)
    return widened(lambda x, y: reduced(_bent(x - y, beta, beta), reduction))(self, target)


@decomposes(aten.smooth_l1_loss_backward)
def smooth_l1_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    def slope(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        bent = torch.sign(x - y) if beta == 0 else _bent_slope(x - y, beta) / beta
        return bent * _spread(grad, x, reduction)

    return widened(slope)(grad_output, self, target)


@decomposes(aten.huber_loss)
def huber_loss(self: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    torch._check(delta > 0, lambda: "huber_loss does not support non-positive values for delta.")
    return widened(lambda x, y: reduced(_bent(x - y, delta, 1.0), reduction))(self, target)


@decomposes(aten.huber_loss_backward)
def huber_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float
) -> Tensor:
    def slope(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return _bent_slope(x - y, delta) * _spread(grad, x, reduction)

    return widened(slope)(grad_output, self, target)


@decomposes(aten.soft_margin_loss)
def soft_margin_loss(self: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    def loss(x: Tensor, y: Tensor) -> Tensor:
        return reduced(torch.log1p(torch.exp(-x * y)), reduction)

    return widened(loss)(self, target)


@decomposes(aten.soft_margin_loss_backward)
def soft_margin_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int
) -> Tensor:
    def slope(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return y * _spread(grad, x, reduction) * (torch.sigmoid(x * y) - 1)

    return widened(slope)(grad_output, self, target)


# The logarithm of a probability is cut off here, so that a certain mistake costs a finite amount.
_LOWEST_LOG = -100.0
_SMALLEST_VARIANCE = 1e-12


@decomposes(aten.binary_cross_entropy)
def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    def loss(x: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        missed = torch.clamp_min(torch.log1p(-x), _LOWEST_LOG)
        found = (y - 1) * missed - y * torch.clamp_min(torch.log(x), _LOWEST_LOG)
        return reduced(found if weight is None else found * weight, reduction)

    return widened(loss)(self, target, weight)


@decomposes(aten.binary_cross_entropy_backward)
def binary_cross_entropy_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    def slope(grad: Tensor, x: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        found = grad * (x - y) / torch.clamp_min((1 - x) * x, _SMALLEST_VARIANCE)
        return _spread(found if weight is None else found * weight, x, reduction)

    return widened(slope)(grad_output, self, target, weight)


@decomposes(aten.binary_cross_entropy_with_logits)
def binary_cross_entropy_with_logits(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    likelihood = torch.nn.functional.logsigmoid(self)
    if pos_weight is None:
        loss = (1 - target) * self - likelihood
    else:
        loss = (1 - target) * self - ((pos_weight - 1) * target + 1) * likelihood
    return reduced(loss if weight is None else loss * weight, reduction)


def _class_dim(self: Tensor) -> int:
    return 0 if self.dim() < 2 else 1


def _per_class(weight: Tensor, self: Tensor) -> Tensor:
    """Weights of classes, ready to be multiplied with scores."""
    shape = [1] * self.dim()
    shape[_class_dim(self)] = weight.shape[0]
    return weight.view(shape)


def _nll_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Minus the score of the target class, and the total weight of the targets that count."""
    dim = _class_dim(self)
    counts = target != ignore_index
    index = torch.where(counts, target, 0).unsqueeze(dim)
    scores = self if weight is None else self * _per_class(weight, self)
    loss = torch.where(counts, -torch.gather(scores, dim, index).squeeze(dim), 0)
    if reduction == 0 and self.dim() > 1:
        return loss, self.new_full((), 0.0)
    if weight is None:
        total = counts.sum().to(self.dtype)
    else:
        shares = torch.gather(_per_class(weight, self).expand(self.shape), dim, index).squeeze(dim)
        total = torch.where(counts, shares, 0).sum()
    if reduction == MEAN:
        return loss.sum() / total, total
    return (loss.sum() if reduction == SUM else loss), total


def _nll_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    dim = _class_dim(self)
    grad = grad_output / total_weight if reduction == MEAN else grad_output
    counts = (target != ignore_index).unsqueeze(dim)
    index = torch.where(counts, target.unsqueeze(dim), 0)
    if grad.dim() and grad.dim() < self.dim():
        grad = grad.unsqueeze(dim)
    grad = torch.where(counts, -grad, 0)
    placed = torch.zeros_like(self).scatter(dim, index, grad.expand(index.shape).to(self.dtype))
    return placed if weight is None else placed * _per_class(weight, self)


decomposes(aten.nll_loss_forward, aten.nll_loss2d_forward)(_nll_forward)
decomposes(aten.nll_loss_backward, aten.nll_loss2d_backward)(_nll_backward)
nll_loss_forward = nll_loss2d_forward = _nll_forward
nll_loss_backward = nll_loss2d_backward = _nll_backward


@decomposes(aten.multi_margin_loss)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    scores = torch.atleast_2d(input)
    index = torch.atleast_1d(target).unsqueeze(1)
    classes = scores.shape[1]
    short = torch.clamp_min(margin - torch.gather(scores, 1, index) + scores, 0)
    cost = short if p == 1 else short * short
    if weight is not None:
        cost = cost * weight[index]
    others = torch.arange(classes, device=input.device) != index
    loss = torch.where(others, cost, 0).sum(1) / classes
    if reduction == 0 and input.dim() < 2:
        return loss.squeeze(0)
    return reduced(loss, reduction)


@decomposes(aten.multilabel_margin_loss_forward)
def multilabel_margin_loss_forward(
    input: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    scores, labels = torch.atleast_2d(input), torch.atleast_2d(target)
    classes = scores.shape[1]
    place = torch.arange(classes, device=target.device)
    # The labels of a row end at the first negative one.
    end = torch.where(labels < 0, place, classes).amin(-1, keepdim=True)
    listed = place < end
    index = torch.where(listed, labels, 0)
    wanted = (listed.unsqueeze(-1) & (place == index.unsqueeze(-1))).any(1)
    short = torch.clamp_min(
        1 - torch.gather(scores, 1, index).unsqueeze(-1) + scores.unsqueeze(1), 0
    )
    pairs = listed.unsqueeze(-1) & ~wanted.unsqueeze(1)
    loss = torch.where(pairs, short, 0).sum((1, 2)) / classes
    if reduction == 0 and input.dim() < 2:
        loss = loss.squeeze(0)
    is_target = wanted.to(input.dtype).reshape(target.shape)
    return reduced(loss, reduction), is_target
