"""SparseAdam: Adam for sparse gradients, which this build does not have yet."""

import torch
from torch.optim._stepwise import Stepwise, check_betas, check_lr

__all__ = ["SparseAdam"]


class SparseAdam(Stepwise):
    """Adam that touches only the rows a sparse gradient names."""

    _later_settings = {"maximize": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_lr(lr)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.is_sparse
        ]
        if found:
            raise ValueError(
                f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors"
            )

    def _check_grad(self, grad):
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )

    def _new_state(self, param, group):
        return {
            "step": 0,
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update(self, group):
        if self._collect(group)[0]:
            raise NotImplementedError("SparseAdam: sparse gradients are not implemented")
