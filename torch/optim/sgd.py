"""Stochastic gradient descent, with momentum."""

import torch
from torch.optim.optimizer import Optimizer, run_closure

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr * v, where v is the gradient or, with momentum, a running sum of gradients."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        if not isinstance(lr, torch.Tensor) and lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)

    def step(self, closure=None):
        """Updates every parameter that has a gradient."""
        loss = run_closure(closure)
        for group in self.param_groups:
            self._update(group)
        return loss

    @torch.no_grad()
    def _sparse_step(self, param, grad, group):
        """The step along a sparse gradient: the rows it does not name stay as they are."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay is not compatible with sparse gradients")
        grad = -grad if group["maximize"] else grad
        if group["momentum"] != 0:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        param.add_(grad, alpha=-float(group["lr"]))

    def _update(self, group):
        momentum = group["momentum"]
        fresh, running = ([], [], []), ([], [], [])
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.layout is not torch.strided:
                self._sparse_step(param, grad, group)
                continue
            buffer = None
            lists = running
            if momentum != 0:
                state = self.state[param]
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = torch.empty_like(grad)
                    lists = fresh
            lists[0].append(param)
            lists[1].append(grad)
            if buffer is not None:
                lists[2].append(buffer)
        settings = {
            "weight_decay": group["weight_decay"],
            "momentum": momentum,
            "lr": float(group["lr"]),
            "dampening": group["dampening"],
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }
        with torch.no_grad():
            for (params, grads, buffers), first in ((fresh, True), (running, False)):
                if params:
                    torch._fused_sgd_(params, grads, buffers, is_first_step=first, **settings)
