"""Adamax: Adam with the largest recent gradient in place of the mean square."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    add_ratios_,
    check_adam,
    descent,
    held,
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

__all__ = ["Adamax", "adamax"]


class Adamax(Stepwise):
    """Adamax (Kingma and Ba, 2015, section 7)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 2e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam(lr, betas, eps, weight_decay=weight_decay)
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {
            "step": step_counter(0.0, param, group),
            "exp_avg": zeros(param),
            "exp_inf": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        beta1, beta2 = group["betas"]
        adamax(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_inf"] for state in states],
            [state["step"] for state in states],
            maximize=group["maximize"],
            capturable=group["capturable"],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
        )


def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps,
    beta1,
    beta2,
    lr: float | torch.Tensor,
    weight_decay,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    capturable = in_a_graph(capturable)
    torch._foreach_add_(state_steps, 1)
    lr = rate_of(lr, capturable)
    rates = [-lr / (1 - beta1**step) for step in numbers(state_steps, capturable)]
    params, grads, exp_avgs, exp_infs = reals(params, grads, exp_avgs, exp_infs)
    grads = descent(grads, params, weight_decay, maximize)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    sizes = torch._foreach_abs(grads)
    torch._foreach_add_(sizes, eps)
    torch._foreach_mul_(exp_infs, beta2)
    torch._foreach_copy_(exp_infs, torch._foreach_maximum(held(exp_infs), sizes))
    add_ratios_(params, held(exp_avgs), held(exp_infs), rates)
