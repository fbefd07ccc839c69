"""Adam and AdamW: steps scaled by running means of the gradient and its square."""

from __future__ import annotations

import typing

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_beta_types,
    check_betas,
    check_fused,
    check_fused_group,
    check_lr,
    check_not_negative,
    held,
    is_computed,
    reals,
    refuse_foreach,
    settings,
    step_counter,
    zeros,
)
from torch.optim.optimizer import run_closure

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from torch.optim.optimizer import ParamsT

__all__ = ["Adam", "AdamW", "adam"]


def _check(lr, betas, eps, weight_decay, fused, foreach, capturable, differentiable) -> None:
    check_lr(lr)
    if isinstance(lr, torch.Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    check_not_negative(epsilon=eps)
    check_beta_types(betas, foreach, capturable)
    check_betas(betas)
    check_not_negative(weight_decay=weight_decay)
    check_fused(fused, foreach, differentiable)


class Adam(Stepwise):
    """Adam (Kingma and Ba, 2015); with decoupled_weight_decay, AdamW."""

    _later_settings = {
        **Stepwise._later_settings,
        "amsgrad": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check(lr, betas, eps, weight_decay, fused, foreach, capturable, differentiable)
        names = (
            "lr betas eps weight_decay amsgrad maximize foreach capturable "
            "differentiable fused decoupled_weight_decay"
        )
        super().__init__(params, settings(locals(), names))

    def _init_state(self, param, group) -> dict[str, torch.Tensor]:
        state = self.state[param]
        state["step"] = step_counter(0.0, param, group)
        largest = ("max_exp_avg_sq",) if group["amsgrad"] else ()
        state.update((name, zeros(param)) for name in ("exp_avg", "exp_avg_sq", *largest))
        return state

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
        params, grads, means, squares, largest, steps = [], [], [], [], [], []
        amsgrad = group["amsgrad"]
        states = self.state
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError(
                    "Adam does not support sparse gradients, please consider SparseAdam instead"
                )
            state = states.get(param) or self._init_state(param, group)
            params.append(param)
            grads.append(grad)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            if amsgrad:
                largest.append(state["max_exp_avg_sq"])
            steps.append(state["step"])
        beta1, beta2 = group["betas"]
        adam(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=amsgrad,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself (Loshchilov and Hutter, 2019)."""

    __module__ = "torch.optim.adamw"  # where pickled optimisers look for it

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale=None,
    found_inf=None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr: float | torch.Tensor,
    weight_decay,
    eps,
    maximize,
) -> None:
    """One step on lists of tensors, in place: one fused kernel, or, where gradients are to flow
    through the step itself or a captured graph is to count its steps, tensor operations."""
    if not params:
        return
    refuse_foreach(foreach, differentiable)
    for step in state_steps:
        step.add_(1)
    lists = params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs
    if any(param.is_complex() for param in params):
        lists = reals(*lists)
    capturable = capturable or is_computed(lr)
    plain = differentiable or capturable
    kind = {
        "lr": lr if plain else float(lr),
        "beta1": beta1 if plain else float(beta1),
        "beta2": beta2 if plain else float(beta2),
        "weight_decay": weight_decay,
        "eps": eps,
        "amsgrad": amsgrad,
        "maximize": maximize,
    }
    if not plain:
        fused = torch._fused_adamw_ if decoupled_weight_decay else torch._fused_adam_
        scaling = {"grad_scale": grad_scale, "found_inf": found_inf}
        fused(*lists, state_steps, **kind, **scaling)
        return
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs = lists
    for i, param in enumerate(params):
        largest = max_exp_avg_sqs[i] if amsgrad else None
        averages = exp_avgs[i], exp_avg_sqs[i], largest
        step = state_steps[i] if capturable else state_steps[i].item()
        _plain_step(param, grads[i], averages, step, decoupled_weight_decay, kind)


def _plain_step(param, grad, averages, step, decoupled, kind) -> None:
    """The step of one parameter in tensor operations, with nothing read back."""
    mean, square, largest = averages
    lr, beta1, beta2 = kind["lr"], kind["beta1"], kind["beta2"]
    decay = kind["weight_decay"]
    if kind["maximize"]:
        grad = -grad
    if decay != 0 and decoupled:
        param.mul_(1 - lr * decay)
    elif decay != 0:
        grad = grad.add(param, alpha=decay)
    mean.lerp_(grad, 1 - beta1)
    square.mul_(beta2).add_((1 - beta2) * grad * grad)
    (now, height) = held([mean, square])
    if largest is not None:
        (before,) = held([largest])
        largest.copy_(torch.maximum(before, height))
        (height,) = held([largest])
    denominator = (height / (1 - beta2**step)).sqrt() + kind["eps"]
    param.sub_(lr / (1 - beta1**step) * (now / denominator))
