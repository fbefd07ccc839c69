"""Averaged SGD: a decaying rate, and beside each parameter the average of its path."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_lr,
    check_not_negative,
    descent,
    in_a_graph,
    numbers,
    rate_of,
    reals,
    settings,
    step_counter,
    zeros,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["ASGD", "asgd"]


class ASGD(Stepwise):
    """Averaged gradient descent (Polyak and Juditsky, 1992); state["ax"] is the average."""

    _scalars = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {
            "step": step_counter(0.0, param, group),
            "eta": step_counter(group["lr"], param, group),
            "mu": step_counter(1.0, param, group),
            "ax": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        asgd(
            params,
            grads,
            [state["ax"] for state in states],
            [state["mu"] for state in states],
            [state["eta"] for state in states],
            [state["step"] for state in states],
            maximize=group["maximize"],
            capturable=group["capturable"],
            lambd=group["lambd"],
            lr=group["lr"],
            t0=group["t0"],
            alpha=group["alpha"],
            weight_decay=group["weight_decay"],
        )


def asgd(
    params,
    grads,
    axs,
    mus,
    etas,
    state_steps,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd,
    lr: float | torch.Tensor,
    t0,
    alpha,
    weight_decay,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    capturable = in_a_graph(capturable)
    lr = rate_of(lr, capturable)
    torch._foreach_add_(state_steps, 1)
    params, grads, axs = reals(params, grads, axs)
    grads = descent(grads, params, weight_decay, maximize)
    rows = zip(params, grads, axs, mus, etas, state_steps, strict=True)
    for param, grad, ax, mu, eta, step in rows:
        rate, weight, count = numbers((eta, mu, step), capturable)
        param.mul_(1 - lambd * rate)
        param.sub_(grad * rate)
        if capturable:
            ax.copy_(torch.where(weight == 1, param, ax + (param - ax) * weight))
            eta.copy_(lr / (1 + lambd * lr * count) ** alpha)
            mu.copy_(1 / (count - t0).clamp(min=1))
            continue
        if weight == 1:
            ax.copy_(param)
        else:
            ax.add_(param.sub(ax).mul_(weight))
        eta.fill_(lr / (1 + lambd * lr * count) ** alpha)
        mu.fill_(1 / max(1, count - t0))
