"""Adam and AdamW: steps scaled by running means of the gradient and its square."""

import torch
from torch.optim.optimizer import Optimizer, run_closure

__all__ = ["Adam", "AdamW"]


def _check(lr, betas, eps, weight_decay):
    if not isinstance(lr, torch.Tensor) and not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if not eps >= 0.0:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
    if not weight_decay >= 0.0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); with decoupled_weight_decay, AdamW."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        _check(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for key, default in (
                ("amsgrad", False),
                ("maximize", False),
                ("foreach", None),
                ("capturable", False),
                ("differentiable", False),
                ("fused", None),
                ("decoupled_weight_decay", False),
            ):
                group.setdefault(key, default)
            for param in group["params"]:
                kept = self.state.get(param, {})
                if "step" in kept and not isinstance(kept["step"], torch.Tensor):
                    kept["step"] = torch.tensor(float(kept["step"]), dtype=torch.float32)

    def _init_state(self, param, amsgrad):
        state = self.state[param]
        state["step"] = torch.tensor(0.0, dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        if amsgrad:
            state["max_exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        return state

    def step(self, closure=None):
        """Updates every parameter that has a gradient."""
        loss = run_closure(closure)
        with torch.no_grad():
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group):
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
            state = states.get(param) or self._init_state(param, amsgrad)
            params.append(param)
            grads.append(grad)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            if amsgrad:
                largest.append(state["max_exp_avg_sq"])
            state["step"].add_(1)
            steps.append(state["step"])
        if not params:
            return
        fused = torch._fused_adamw_ if group["decoupled_weight_decay"] else torch._fused_adam_
        beta1, beta2 = group["betas"]
        fused(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=amsgrad,
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
