"""Gradients of each sample's loss by themselves, left in `grad_sample` of the parameters.

A batch has one set of parameters; here each sample gets its own view of them, made by expansion
and without a copy, and the module is mapped over samples and views together. Their gradients after
the one backward pass are those of the samples. What PyTorch does layer by layer falls out of vmap
for every module that it can map.
"""

import functools

import torch
from torch.utils import _pytree

__all__ = ["call_for_per_sample_grads"]


def _check(module, batch_size, loss_reduction) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, torch.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if parameter.requires_grad and getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for "
                "multiple calls without clearing gradients: clear the grad_sample of a parameter "
                f"of size {tuple(parameter.shape)}"
            )


def _batch_size(leaves, dim, given):
    """The number of samples, on which all tensors have to agree."""
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            continue
        if leaf.dim() <= max(dim, 1):
            raise RuntimeError(
                "Input does not have a batch dimension. Expanded Weights expected input of at "
                f"least rank {max(dim, 1) + 1}, got of rank {leaf.dim()}"
            )
        size = leaf.shape[dim]
        if given is not None and size != given:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{given} and one with batch size {size}. Please specify it explicitly using the "
                "batch size kwarg in call_for_per_sample_grads"
            )
        given = size
    if given is None:
        raise RuntimeError("no tensor among the arguments: name the batch_size")
    return given


def _keep(parameter, scale, grad) -> None:
    grad = grad.detach() * scale
    known = getattr(parameter, "grad_sample", None)
    parameter.grad_sample = grad if known is None else known + grad


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function that calls `module` on a batch such that backward() leaves, for each parameter
    that requires gradients, `grad_sample` of shape (batch, *parameter.shape) instead of `grad`.

    `loss_reduction` says how the loss joins the samples: gradients of a mean are scaled back."""
    _check(module, batch_size, loss_reduction)
    dim = 0 if batch_first else 1

    def call(*args, **kwargs):
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        size = _batch_size(leaves, dim, batch_size)
        scale = size if loss_reduction == "mean" else 1
        views = {}
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                view = parameter.detach().unsqueeze(0).expand(size, *parameter.shape)
                views[name] = view.requires_grad_()
                view.register_hook(functools.partial(_keep, parameter, scale))

        def one(own, *sample):
            whole = [x.unsqueeze(dim) if isinstance(x, torch.Tensor) else x for x in sample]
            inputs, named = _pytree.tree_unflatten(whole, spec)
            out = torch.func.functional_call(module, own, inputs, named)
            return _pytree.tree_map_only(torch.Tensor, lambda x: x.squeeze(dim), out)

        in_dims = (0, *(dim if isinstance(x, torch.Tensor) else None for x in leaves))
        mapped = torch.func.vmap(one, in_dims=in_dims, out_dims=dim, randomness="different")
        return mapped(views, *leaves)

    return call
