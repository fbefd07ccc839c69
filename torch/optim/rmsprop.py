"""RMSprop: steps scaled by a running mean of squared gradients."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_lr,
    check_not_negative,
    descent,
    held,
    in_a_graph,
    rate_of,
    reals,
    settings,
    step_along_,
    step_counter,
    zeros,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Stepwise):
    """RMSprop (Hinton, lecture notes, 2012); centered, the variant of Graves (2013)."""

    _later_settings = {**Stepwise._later_settings, "momentum": 0, "centered": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        names = (
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        )
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        state = {"step": step_counter(0.0, param, group), "square_avg": zeros(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(param)
        if group["centered"]:
            state["grad_avg"] = zeros(param)
        return state

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        with_momentum, centered = group["momentum"] > 0, group["centered"]
        rmsprop(
            params,
            grads,
            [state["square_avg"] for state in states],
            [state["grad_avg"] for state in states] if centered else [],
            [state["momentum_buffer"] for state in states] if with_momentum else [],
            [state["step"] for state in states],
            maximize=group["maximize"],
            capturable=group["capturable"],
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=centered,
        )


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | torch.Tensor,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    capturable = in_a_graph(capturable)
    lr = rate_of(lr, capturable)
    torch._foreach_add_(state_steps, 1)
    params, grads, square_avgs, grad_avgs, buffers = reals(
        params, grads, square_avgs, grad_avgs, momentum_buffer_list
    )
    grads = descent(grads, params, weight_decay, maximize)
    torch._foreach_mul_(square_avgs, alpha)
    torch._foreach_addcmul_(square_avgs, grads, grads, value=1 - alpha)
    if centered:
        torch._foreach_lerp_(grad_avgs, grads, 1 - alpha)
        means = held(grad_avgs)
        roots = torch._foreach_sqrt(torch._foreach_addcmul(square_avgs, means, means, value=-1))
    else:
        roots = torch._foreach_sqrt(square_avgs)
    roots = torch._foreach_add(roots, eps)
    if momentum > 0:
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_addcdiv_(buffers, grads, roots)
        step_along_(params, held(buffers), lr)
    else:
        step_along_(params, torch._foreach_div(grads, roots), lr)
