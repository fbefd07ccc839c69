"""How masked tensors are made."""

import torch
from torch.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A new leaf over copies of data and mask."""
    made = MaskedTensor(data, mask, requires_grad)
    made._masked_data, made._masked_mask = made._masked_data.clone(), mask.clone()
    return made


class _Attach(torch.autograd.Function):
    """Puts a mask beside a tensor without leaving its graph."""

    @staticmethod
    def forward(ctx, data, mask):
        ctx.mask = mask
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx, grad):
        data = grad.get_data() if isinstance(grad, MaskedTensor) else grad
        return MaskedTensor(data, ctx.mask), None


def as_masked_tensor(data, mask):
    """The data with a mask; gradients flow back to it."""
    return _Attach.apply(data, mask)
