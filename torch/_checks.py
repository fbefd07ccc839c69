"""Checks for library code: raise an error of a given type unless a condition holds. The message is
a function, so that it costs nothing while all is well."""

from __future__ import annotations

import torch


def _check_with(error_type, cond, message=None) -> None:
    if not isinstance(cond, (bool, torch.SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if isinstance(cond, torch.SymBool):
        from torch.fx.experimental.symbolic_shapes import expect_true

        if expect_true(cond):  # known, guarded, or checked when the program runs
            return
    elif cond:
        return
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. The check gave no message; the traceback "
            "shows its place."
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond, message=None) -> None:
    _check_with(RuntimeError, cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    _check(i >= 0, message)
    if isinstance(i, torch.SymInt):
        from torch.fx.experimental.symbolic_shapes import _advise_is_size

        _advise_is_size(i)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond, message=None) -> None:
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None) -> None:
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None) -> None:
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None) -> None:
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    if not isinstance(cond, torch.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not torch.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None) -> None:
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition, message):
    """An assert statement as a function, which tracing can record."""
    if type(condition) is not torch.Tensor and torch.overrides.has_torch_function((condition,)):
        return torch.overrides.handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
