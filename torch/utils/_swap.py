"""Small helpers that torch.utils offers by name."""

import sys
import traceback
import weakref

import torch

__all__ = ["get_cpp_backtrace", "set_module", "swap_tensors"]


def set_module(obj, mod) -> None:
    """Sets the module an object says it is from."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2) -> None:
    """Exchanges two tensors, their attributes and classes included: every name for one becomes a
    name for the other."""
    for tensor in (t1, t2):
        if weakref.getweakrefs(tensor):
            raise RuntimeError("Cannot swap a tensor that has weakref associated with it")
    if t1.__class__ is not t2.__class__:
        t1_class = t1.__class__
        t1.__class__, t2.__class__ = t2.__class__, t1_class
    attributes = dict(t1.__dict__), dict(t2.__dict__)
    gradients = t1.grad, t2.grad
    required = t1.requires_grad, t2.requires_grad
    for tensor in (t1, t2):
        if tensor.grad_fn is not None:
            raise RuntimeError("swap_tensors: only leaves can be swapped, not results of operators")
        tensor.requires_grad_(False)
    with torch.no_grad():
        data = t1.data
        t1.grad = t2.grad = None
        t1.data = t2.data
        t2.data = data
    for tensor, new, gradient, requires in zip(
        (t1, t2), reversed(attributes), reversed(gradients), reversed(required), strict=True
    ):
        tensor.__dict__.clear()
        tensor.__dict__.update(new)
        tensor.requires_grad_(requires)
        if gradient is not None:
            tensor.grad = gradient


def get_cpp_backtrace(frames_to_skip=0, maximum_number_of_frames=64) -> str:
    """The frames of the program as text; those of C++ are not named."""
    frames = traceback.extract_stack(sys._getframe(1 + frames_to_skip))
    return "".join(traceback.format_list(frames[-maximum_number_of_frames:]))
