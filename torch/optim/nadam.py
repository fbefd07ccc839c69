"""NAdam: Adam with Nesterov's look ahead, its momentum warmed up."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    add_ratios_,
    check_adam,
    decayed_descent,
    divided_by,
    held,
    in_a_graph,
    numbers,
    rate_of,
    reals,
    scaled_by,
    settings,
    step_counter,
    update_moments_,
    zeros,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["NAdam", "nadam"]


class NAdam(Stepwise):
    """NAdam (Dozat, 2016); with decoupled_weight_decay, NAdamW."""

    _later_settings = {**Stepwise._later_settings, "decoupled_weight_decay": False}
    _scalars = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 2e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam(lr, betas, eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        names = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize "
            "foreach capturable differentiable"
        )
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {
            "step": step_counter(0.0, param, group),
            "mu_product": step_counter(1.0, param, group),
            "exp_avg": zeros(param),
            "exp_avg_sq": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        beta1, beta2 = group["betas"]
        nadam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["mu_product"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            eps=group["eps"],
        )


def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1,
    beta2,
    lr: float | torch.Tensor,
    weight_decay,
    momentum_decay,
    eps,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    capturable = in_a_graph(capturable)
    lr = rate_of(lr, capturable)
    torch._foreach_add_(state_steps, 1)
    steps = numbers(state_steps, capturable)
    params, grads, exp_avgs, exp_avg_sqs = reals(params, grads, exp_avgs, exp_avg_sqs)
    grads = decayed_descent(grads, params, lr, weight_decay, decoupled_weight_decay, maximize)
    mus = [beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay)) for step in steps]
    nexts = [beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay)) for step in steps]
    torch._foreach_copy_(mu_products, scaled_by(mu_products, mus))
    so_far = numbers(mu_products, capturable or differentiable)
    update_moments_(exp_avgs, exp_avg_sqs, grads, beta1, beta2)
    denoms = divided_by(exp_avg_sqs, [1 - beta2**step for step in steps])
    denoms = torch._foreach_add(torch._foreach_sqrt(denoms), eps)
    rates = [-lr * (1.0 - mu) / (1.0 - done) for mu, done in zip(mus, so_far, strict=True)]
    add_ratios_(params, grads, denoms, rates)
    rates = [-lr * mu / (1.0 - done * mu) for mu, done in zip(nexts, so_far, strict=True)]
    add_ratios_(params, held(exp_avgs), denoms, rates)
