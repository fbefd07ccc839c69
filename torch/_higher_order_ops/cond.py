"""A branch as an operator, computed eagerly: the condition is looked at and one branch runs."""

import torch
from torch._ops import HigherOrderOperator

__all__ = ["cond", "cond_op"]


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) where pred holds, else false_fn(*operands)."""
    if not isinstance(pred, (bool, torch.Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, torch.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return true_fn(*operands) if pred else false_fn(*operands)


class _CondOp(HigherOrderOperator):
    def __call__(self, pred, true_fn, false_fn, operands=()):
        return super().__call__(pred, true_fn, false_fn, operands)


cond_op = _CondOp("cond")
cond_op.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(cond)
