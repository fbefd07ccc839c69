"""Rprop: a step size per element, grown or shrunk as the gradient keeps or changes its sign."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import Stepwise, check_lr, real, settings, step_counter, zeros

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["Rprop", "rprop"]


class Rprop(Stepwise):
    """Resilient backpropagation (Riedmiller and Braun, 1993); for full batches."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        names = "lr etas step_sizes foreach maximize differentiable capturable"
        super().__init__(params, settings(locals(), names))

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        first = float(group["lr"])
        # Both parts of a complex number have a step size of their own.
        first = complex(first, first) if param.is_complex() else first
        return {
            "step": step_counter(0.0, param, group),
            "prev": zeros(param),
            "step_size": torch.full_like(param.grad, first),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        etaminus, etaplus = group["etas"]
        least, most = group["step_sizes"]
        rprop(
            params,
            grads,
            [state["prev"] for state in states],
            [state["step_size"] for state in states],
            [state["step"] for state in states],
            maximize=group["maximize"],
            step_size_min=least,
            step_size_max=most,
            etaminus=etaminus,
            etaplus=etaplus,
        )


def rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
) -> None:
    """One step on lists of tensors, in place."""
    rows = zip(params, grads, prevs, step_sizes, state_steps, strict=True)
    for param, grad, prev, size, step in rows:
        step += 1
        param, grad, prev, size = real(param), real(grad), real(prev), real(size)
        grad = -grad if maximize else grad
        agreement = grad.mul(prev.clone()).sign_()
        factor = torch.ones_like(agreement)
        factor.masked_fill_(agreement > 0, etaplus).masked_fill_(agreement < 0, etaminus)
        size.copy_((size.clone() * factor).clamp_(step_size_min, step_size_max))
        # Where the sign turned, the element rests for this step.
        grad = grad.masked_fill(agreement < 0, 0)
        param.sub_(grad.sign() * size)
        prev.copy_(grad)
