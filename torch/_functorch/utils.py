"""What code that handles levels of transforms by hand needs beside the levels themselves."""

import contextlib

import torch

__all__ = ["enable_single_level_autograd_function", "exposed_in", "unwrap_dead_wrappers"]


def enable_single_level_autograd_function() -> contextlib.AbstractContextManager:
    """A block for torch.autograd.function._SingleLevelFunction, which is always allowed here."""
    return contextlib.nullcontext()


def unwrap_dead_wrappers(args: tuple) -> tuple:
    """The arguments, with wrappers of levels that have ended replaced by what they hold."""
    from torch._functorch.autograd_function import _settled

    return tuple(_settled(args))


def exposed_in(module: str):
    """A decorator: the function says that it belongs to a module."""

    def name(fn):
        fn.__module__ = module
        return fn

    return name


argnums_t = int | tuple[int, ...]
device_t = torch.device | str | int
