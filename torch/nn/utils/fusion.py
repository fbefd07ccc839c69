"""Batch norms with fixed statistics folded into the layer before them."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any as _Any

import torch
from torch.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fold(
    weight, bias, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape
) -> tuple[torch.Tensor, torch.Tensor]:
    """weight and bias that do what layer and norm did one after the other."""
    bias = torch.zeros_like(bn_rm) if bias is None else bias
    bn_w = torch.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = torch.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * torch.rsqrt(bn_rv + bn_eps)
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - bn_rm) * scale + bn_b).to(bias.dtype)
    return (
        Parameter(new_weight.detach(), weight.requires_grad),
        Parameter(new_bias.detach(), bias.requires_grad),
    )


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose: bool = False):
    """Folds a batch norm into the weight and bias of a convolution."""
    rest = [1] * (conv_w.dim() - 2)
    shape = [1, -1, *rest] if transpose else [-1, 1, *rest]
    return _fold(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b) -> _Any:
    """Folds a batch norm into the weight and bias of a linear layer."""
    return _fold(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _check_evaluating(layer, bn) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _fused(layer, bn, fold):
    """A copy of the layer with the weight and bias that fold() gives for it and the norm."""
    _check_evaluating(layer, bn)
    statistics = (bn.running_mean, bn.running_var, bn.eps)
    copied = deepcopy(layer)
    copied.weight, copied.bias = fold(layer.weight, layer.bias, *statistics, bn.weight, bn.bias)
    return copied


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A convolution that does what conv and bn, both in eval mode, do one after the other."""
    return _fused(conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_linear_bn_eval(linear, bn) -> _Any:
    """A linear layer that does what linear and bn, both in eval mode, do one after the other."""
    _check_evaluating(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)
