"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_fused,
    check_fused_group,
    is_computed,
    reals,
    settings,
)
from torch.optim.optimizer import run_closure

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim.optimizer import ParamsT

__all__ = ["SGD", "sgd"]


class SGD(Stepwise):
    """p -= lr * v, where v is the gradient or, with momentum, a running sum of gradients."""

    _later_settings = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    }
    _scalars = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        named = {
            "learning rate": lr,
            "momentum value": momentum,
            "weight_decay value": weight_decay,
        }
        for name, value in named.items():
            if value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, settings(locals(), names))

    def step(self, closure: Callable[[], typing.Any] | None = None) -> typing.Any:
        """Updates every parameter that has a gradient."""
        loss = run_closure(closure)
        recording = torch.enable_grad if self.defaults["differentiable"] else torch.no_grad
        with recording():
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group) -> None:
        check_fused_group(group)
        momentum = group["momentum"]
        plain = group["differentiable"] or is_computed(group["lr"])
        params, grads, buffers, complete = [], [], [], not plain
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            params.append(param)
            grads.append(grad)
            if momentum != 0:
                buffer = self.state[param].get("momentum_buffer")
                buffers.append(buffer)
                complete = complete and buffer is not None
        kind = {
            "weight_decay": group["weight_decay"],
            "momentum": momentum,
            "lr": group["lr"],
            "dampening": group["dampening"],
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }
        # Nearly every step: no list has to be taken apart.
        if complete and _is_plain(params, grads):
            if params:
                kind["lr"] = float(group["lr"])
                torch._fused_sgd_(params, grads, buffers, is_first_step=False, **kind)
            return
        buffers = buffers or [None] * len(params)
        sgd(params, grads, buffers, differentiable=group["differentiable"], **kind)
        if momentum != 0:
            for param, buffer in zip(params, buffers, strict=True):
                self.state[param]["momentum_buffer"] = buffer


def _is_plain(params, grads) -> bool:
    """Whether the fused kernel takes all of them at once."""
    strided = torch.strided
    return all(grad.layout is strided for grad in grads) and not any(
        param.is_complex() for param in params
    )


def sgd(
    params,
    d_p_list,
    momentum_buffer_list,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr: float | torch.Tensor,
    dampening,
    nesterov,
    maximize,
    differentiable: bool = False,
) -> None:
    """One step on lists of tensors, in place; buffers that are None are made."""
    plain = differentiable or is_computed(lr)
    kind = {
        "weight_decay": weight_decay,
        "momentum": momentum,
        "lr": lr if plain else float(lr),
        "dampening": dampening,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    fresh, running = ([], [], []), ([], [], [])
    for i, (param, grad) in enumerate(zip(params, d_p_list, strict=True)):
        if plain or grad.layout is not torch.strided:
            momentum_buffer_list[i] = _plain_step(param, grad, momentum_buffer_list[i], kind)
            continue
        lists = running
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = torch.empty_like(grad)
                lists = fresh
            lists[2].append(buffer)
        lists[0].append(param)
        lists[1].append(grad)
    scaling = {"grad_scale": grad_scale, "found_inf": found_inf}
    for lists, first in ((fresh, True), (running, False)):
        if lists[0]:
            torch._fused_sgd_(*reals(*lists), is_first_step=first, **kind, **scaling)


def _plain_step(param, grad, buffer, kind):
    """The step of one parameter in tensor operations, for a sparse gradient, which leaves the rows
    it does not name as they are, and for autograd to follow. Returns the momentum buffer."""
    if kind["maximize"]:
        grad = -grad
    if kind["weight_decay"] != 0:
        if grad.layout is not torch.strided:
            raise RuntimeError("weight_decay is not compatible with sparse gradients")
        grad = grad.add(param, alpha=kind["weight_decay"])
    momentum = kind["momentum"]
    if momentum != 0:
        if buffer is None:
            buffer = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - kind["dampening"])
        grad = grad.add(buffer, alpha=momentum) if kind["nesterov"] else buffer.clone()
    lr = kind["lr"]
    if isinstance(lr, torch.Tensor):
        param.sub_(grad * lr)
    else:
        param.add_(grad, alpha=-lr)
    return buffer
