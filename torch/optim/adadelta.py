"""Adadelta: steps in units of the parameters' own recent changes."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_lr,
    check_not_negative,
    descent,
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

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Stepwise):
    """Adadelta (Zeiler, 2012)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        names = "lr rho eps weight_decay maximize capturable foreach differentiable"
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        return {
            "step": step_counter(0.0, param, group),
            "square_avg": zeros(param),
            "acc_delta": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        adadelta(
            params,
            grads,
            [state["square_avg"] for state in states],
            [state["acc_delta"] for state in states],
            [state["step"] for state in states],
            lr=group["lr"],
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
            capturable=group["capturable"],
        )


def adadelta(
    params,
    grads,
    square_avgs,
    acc_deltas,
    state_steps,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | torch.Tensor,
    rho,
    eps,
    weight_decay,
    maximize,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    capturable = in_a_graph(capturable)
    torch._foreach_add_(state_steps, 1)
    params, grads, square_avgs, acc_deltas = reals(params, grads, square_avgs, acc_deltas)
    grads = descent(grads, params, weight_decay, maximize)
    torch._foreach_mul_(square_avgs, rho)
    torch._foreach_addcmul_(square_avgs, grads, grads, value=1 - rho)
    roots = torch._foreach_sqrt(torch._foreach_add(square_avgs, eps))
    deltas = torch._foreach_sqrt(torch._foreach_add(acc_deltas, eps))
    deltas = torch._foreach_mul(torch._foreach_div(deltas, roots), grads)
    torch._foreach_mul_(acc_deltas, rho)
    torch._foreach_addcmul_(acc_deltas, deltas, deltas, value=1 - rho)
    step_along_(params, deltas, rate_of(lr, capturable))
