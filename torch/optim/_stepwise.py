"""What the optimizers written as tensor operations share: checks, state, gathering of lists.

Each such optimizer is a class that keeps settings and state, and a function of lists of tensors
that does the arithmetic with the foreach operators. `foreach` and `fused` choose between ways of
computing the same numbers elsewhere; here they are accepted and kept. With `capturable`, step
counts and rates stay tensors, so that a captured graph counts its own steps; with `differentiable`,
state is copied where autograd keeps it.
"""

from __future__ import annotations

import typing
from typing import Any

import torch
from torch.optim._helpers import _device_dtype_check_for_fused
from torch.optim.optimizer import Optimizer, run_closure

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Stepwise",
    "check_betas",
    "check_lr",
    "descent",
    "held",
    "real",
    "reals",
    "settings",
    "step_counter",
]


def settings(given: dict[str, Any], names: str) -> dict[str, Any]:
    """The settings among a constructor's arguments, `locals()`, in the order of `names`: the order
    in which checkpoints list them."""
    return {name: given[name] for name in names.split()}


def check_lr(lr: float | torch.Tensor, text="Invalid learning rate: {}") -> None:
    """Refuses a negative learning rate and a tensor of more than one."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(text.format(lr))


def check_not_negative(**settings) -> None:
    """Refuses negative settings; names are given as the messages spell them."""
    for name, value in settings.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: tuple[float | torch.Tensor, float | torch.Tensor]) -> None:
    """Refuses decay rates outside [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_adam(lr, betas, eps, **settings) -> None:
    """The checks of Adam and its relatives, in the order in which they complain."""
    check_lr(lr)
    check_not_negative(epsilon=eps)
    check_betas(betas)
    check_not_negative(**settings)


def check_beta_types(
    betas: tuple[float | torch.Tensor, float | torch.Tensor], foreach, capturable
) -> None:
    """Refuses decay rates of which only one is a tensor, or tensors where numbers are needed."""
    kinds = [isinstance(betas[i], torch.Tensor) for i in (0, 1)]
    if not any(kinds):
        return
    if not all(kinds):
        raise ValueError("betas must be either both floats or both Tensors")
    for i in (0, 1):
        if foreach and not capturable:
            raise ValueError(
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if betas[i].numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


def refuse_foreach(foreach, differentiable) -> None:
    """Refuses steps over lists where gradients are to flow through them."""
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd")


def check_fused(fused, foreach, differentiable) -> None:
    """Refuses combinations that contradict each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_fused_group(group) -> None:
    """Refuses parameters of a group with `fused` that the kernel does not take."""
    if group["fused"]:
        for param in group["params"]:
            if param.grad is not None:
                _device_dtype_check_for_fused(param)


def step_counter(value=0.0, param=None, group=None) -> torch.Tensor:
    """A number kept as a tensor, as saved states have it; beside the parameter where the steps of
    a captured graph have to count it. Fused steps count in float32 always."""
    group = group or {}
    wide = torch.get_default_dtype() == torch.float64 and not group.get("fused")
    device = param.device if group.get("capturable") else "cpu"
    kind = torch.float64 if wide else torch.float32
    return torch.tensor(float(value), dtype=kind, device=device)


def zeros(param) -> torch.Tensor:
    """State that begins at zero, laid out as the parameter."""
    return torch.zeros_like(param, memory_format=torch.preserve_format)


def in_a_graph(capturable) -> bool:
    """Whether a captured or compiled graph computes with numbers kept as tensors: neither can read
    them back."""
    return capturable or torch.compiler.is_compiling()


def varies(number) -> bool:
    """Whether a number stands for others too: a symbol of a graph. A trace of bytecode answers this
    itself (torch._dynamo.variables.torch)."""
    return isinstance(number, torch.SymFloat)


def is_computed(lr) -> bool:
    """Whether a graph gets the learning rate as a value, a tensor or a number that varies between
    its calls. It cannot be read back, and a fused kernel would fix it."""
    return in_a_graph(False) if isinstance(lr, torch.Tensor) else varies(lr)


def numbers(tensors, capturable) -> list[float | torch.Tensor]:
    """Numbers kept as tensors: read back, or as they are where a captured graph computes them."""
    return list(tensors) if capturable else [tensor.item() for tensor in tensors]


def scaled_by(tensors, factors) -> list[torch.Tensor] | tuple[torch.Tensor, ...]:
    """Tensors times a number each."""
    if isinstance(factors[0], torch.Tensor):
        return [tensor * factor for tensor, factor in zip(tensors, factors, strict=True)]
    return torch._foreach_mul(tensors, factors)


def divided_by(tensors, divisors) -> list[torch.Tensor] | tuple[torch.Tensor, ...]:
    """Tensors divided by a number each."""
    if isinstance(divisors[0], torch.Tensor):
        return [tensor / divisor for tensor, divisor in zip(tensors, divisors, strict=True)]
    return torch._foreach_div(tensors, divisors)


def rate_of(lr, capturable) -> float | torch.Tensor:
    """A learning rate as a number, or as the tensor that a captured graph reads anew."""
    return lr if capturable and isinstance(lr, torch.Tensor) else float(lr)


def step_along_(params, directions, lr) -> None:
    """params -= lr * directions."""
    if not isinstance(lr, torch.Tensor):
        torch._foreach_add_(params, directions, alpha=-lr)
        return
    for param, direction in zip(params, directions, strict=True):
        param.sub_(lr * direction)


def add_ratios_(params, tops, bottoms, rates) -> None:
    """params += rate * top / bottom, with a number as the rate of each."""
    if not isinstance(rates[0], torch.Tensor):
        torch._foreach_addcdiv_(params, tops, bottoms, rates)
        return
    for param, top, bottom, rate in zip(params, tops, bottoms, rates, strict=True):
        param.add_(rate * (top / bottom))


def real(tensor) -> torch.Tensor:
    """A complex tensor as pairs of reals that share its memory; others unchanged."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def reals(*lists) -> list[list[torch.Tensor]]:
    """The same for the tensors of each list."""
    return [[real(tensor) for tensor in tensors] for tensors in lists]


def held(tensors) -> list[torch.Tensor]:
    """State as an operand: a copy where autograd keeps it, because the next step changes it."""
    return [tensor.clone() for tensor in tensors] if torch.is_grad_enabled() else tensors


def descent(grads, params, weight_decay, maximize) -> list[torch.Tensor] | tuple[torch.Tensor, ...]:
    """The gradients to descend along: turned round to maximize, with weight decay added."""
    if maximize:
        grads = torch._foreach_neg(grads)
    if weight_decay != 0:
        grads = torch._foreach_add(grads, params, alpha=weight_decay)
    return grads


def decayed_descent(
    grads, params, lr, weight_decay, decoupled, maximize
) -> list[torch.Tensor] | tuple[torch.Tensor, ...]:
    """The same with weight decay that, where decoupled, is taken off the parameters at once."""
    if decoupled and weight_decay != 0:
        for param in params:
            param.mul_(1 - lr * weight_decay)
    return descent(grads, params, 0 if decoupled else weight_decay, maximize)


def update_moments_(exp_avgs, exp_avg_sqs, grads, beta1, beta2) -> None:
    """Adam's running means of the gradients and of their squares."""
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_avg_sqs, beta2)
    torch._foreach_addcmul_(exp_avg_sqs, grads, grads, value=1 - beta2)


class Stepwise(Optimizer):
    """Subclasses define `_new_state(param, group)` and `_update(group)`."""

    # Settings that checkpoints of older versions lack, with the value that keeps them the same.
    _later_settings = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    # State kept as a 0-d tensor, which older versions saved as a plain number.
    _scalars = ("step",)

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key, value in self._later_settings.items():
                group.setdefault(key, value)
            for param in group["params"]:
                kept = self.state.get(param, {})
                for key in self._scalars:
                    if key in kept and not isinstance(kept[key], torch.Tensor):
                        kept[key] = step_counter(kept[key], param, group)

    def step(self, closure: Callable[[], typing.Any] | None = None) -> typing.Any:
        """Updates every parameter that has a gradient."""
        loss = run_closure(closure)
        with torch.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            for group in self.param_groups:
                refuse_foreach(group.get("foreach"), group.get("differentiable"))
                self._update(group)
        return loss

    def _collect(self, group):
        """The parameters of a group that have gradients, their gradients, and their states."""
        params, grads, states = [], [], []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            self._check_grad(grad)
            params.append(param)
            grads.append(grad)
            state = self.state[param]
            if not state:
                state.update(self._new_state(param, group))
            states.append(state)
        return params, grads, states

    def _check_grad(self, grad) -> None:
        if grad.is_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
