"""RAdam: Adam that steps without scaling until its mean square is worth trusting."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_adam,
    decayed_descent,
    divided_by,
    in_a_graph,
    numbers,
    rate_of,
    reals,
    settings,
    step_counter,
    update_moments_,
    zeros,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["RAdam", "radam"]


class RAdam(Stepwise):
    """RAdam (Liu et al., 2020); with decoupled_weight_decay, RAdamW."""

    _later_settings = {**Stepwise._later_settings, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_adam(lr, betas, eps, weight_decay=weight_decay)
        names = (
            "lr betas eps weight_decay maximize foreach capturable "
            "decoupled_weight_decay differentiable"
        )
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {
            "step": step_counter(0.0, param, group),
            "exp_avg": zeros(param),
            "exp_avg_sq": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        beta1, beta2 = group["betas"]
        radam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"],
            capturable=group["capturable"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )


def _rectification(step, beta2) -> tuple[float | torch.Tensor, bool | torch.Tensor]:
    """(how far to trust the mean square after some steps, whether its variance is bounded)."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    counted = isinstance(step, torch.Tensor)
    if not counted and length <= 5.0:
        return 1.0, False
    ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return (ratio.abs() if counted else ratio) ** 0.5, length > 5.0


def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1,
    beta2,
    lr: float | torch.Tensor,
    weight_decay,
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
    update_moments_(exp_avgs, exp_avg_sqs, grads, beta1, beta2)
    updates = divided_by(exp_avgs, [1 - beta1**step for step in steps])
    updates = [update * lr for update in updates]
    rows = zip(params, updates, exp_avg_sqs, steps, strict=True)
    for param, update, exp_avg_sq, step in rows:
        trust, bounded = _rectification(step, beta2)
        if capturable or bounded:
            root = exp_avg_sq.sqrt() + eps
            scaled = update * (root.reciprocal() * (1 - beta2**step) ** 0.5) * trust
            update = torch.where(bounded, scaled, update) if capturable else scaled
        param.sub_(update)
