"""Adagrad: steps scaled by the sum of all squared gradients so far."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    add_ratios_,
    check_fused,
    check_fused_group,
    check_lr,
    check_not_negative,
    descent,
    in_a_graph,
    numbers,
    rate_of,
    reals,
    settings,
    step_counter,
)

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Stepwise):
    """Adagrad (Duchi, Hazan and Singer, 2011)."""

    _later_settings = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        check_fused(fused, foreach, differentiable)
        names = (
            "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
            "differentiable fused"
        )
        super().__init__(params, settings(locals(), names))
        # The sums exist from the start, so that they can be put into shared memory before a step.
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._new_state(param, group))

    def share_memory(self) -> None:
        """Moves the sums to memory that other processes can write."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        start = group["initial_accumulator_value"]
        start = complex(start, start) if param.is_complex() else start
        total = torch.full_like(param, start, memory_format=torch.preserve_format)
        return {"step": step_counter(), "sum": total.detach()}

    def _check_grad(self, grad) -> None:
        pass

    def _update(self, group) -> None:
        check_fused_group(group)
        params, grads, states = self._collect(group)
        adagrad(
            params,
            grads,
            [state["sum"] for state in states],
            [state["step"] for state in states],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused: bool | None = None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | torch.Tensor,
    weight_decay,
    lr_decay,
    eps,
    maximize,
) -> None:
    """One step on lists of tensors, in place."""
    if not params:
        return
    rest = [i for i, grad in enumerate(grads) if not grad.is_sparse]
    for i in range(len(grads)):
        if grads[i].is_sparse:
            if weight_decay != 0:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            state_steps[i] += 1
            rate = float(lr) / (1 + (state_steps[i].item() - 1) * lr_decay)
            _sparse_step(params[i], grads[i], state_sums[i], rate, eps, maximize)
    params, grads, state_sums, state_steps = (
        [each[i] for i in rest] for each in (params, grads, state_sums, state_steps)
    )
    if not params:
        return
    torch._foreach_add_(state_steps, 1)
    capturable = in_a_graph(False)
    lr, steps = rate_of(lr, capturable), numbers(state_steps, capturable)
    rates = [-lr / (1 + (step - 1) * lr_decay) for step in steps]
    params, grads, state_sums = reals(params, grads, state_sums)
    grads = descent(grads, params, weight_decay, maximize)
    torch._foreach_addcmul_(state_sums, grads, grads, value=1)
    roots = torch._foreach_add(torch._foreach_sqrt(state_sums), eps)
    add_ratios_(params, grads, roots, rates)


def _sparse_step(param, grad, state_sum, rate, eps, maximize) -> None:
    """The step on the rows that a sparse gradient names; the others stay as they are."""
    grad = (-grad if maximize else grad).coalesce()
    values = grad._values()
    if values.numel() == 0:
        return

    def rows(values):
        return torch._sparse_coo_tensor_unsafe(grad._indices(), values, grad.shape)

    state_sum.add_(rows(values.square()))
    roots = state_sum.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(rows(values / roots), alpha=-rate)
