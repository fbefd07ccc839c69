"""checkpoint: a module that computes its activations again in the backward pass, in its place."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed._composable.contract import contract
from torch.utils.checkpoint import checkpoint as _recompute

__all__ = ["checkpoint"]


_OPTIONS = {"context_fn", "debug", "determinism_check", "early_stop", "preserve_rng_state"}


@contract()
def checkpoint(module: nn.Module, **kwargs: Any) -> nn.Module:
    """Keeps a module's inputs only and runs it again for the gradient; arguments are those of
    torch.utils.checkpoint without `use_reentrant`."""
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use "
            "torch.utils.checkpoint.checkpoint instead."
        )
    unknown = kwargs.keys() - _OPTIONS
    if unknown:
        raise ValueError(f"Unexpected keyword arguments: {', '.join(sorted(unknown))}")
    forward = module.forward

    def again(*args: Any, **named: Any) -> Any:
        return _recompute(forward, *args, use_reentrant=False, **kwargs, **named)

    module.forward = again
    return module
