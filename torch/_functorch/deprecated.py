"""The transforms as functorch offers them: torch.func's, with a warning that names it."""

import functools
import warnings
from collections.abc import Callable

from torch import func as _func
from torch._functorch import make_functional as _modules

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _deprecated(function: Callable[..., object], present: str) -> Callable[..., object]:
    """`function` with a warning that names what to call instead."""
    name = function.__name__

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        warnings.warn(
            f"We've integrated functorch into PyTorch. `functorch.{name}` is deprecated and will "
            f"be removed. Please use `{present}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return wrapped


vmap = _deprecated(_func.vmap, "torch.vmap")
grad = _deprecated(_func.grad, "torch.func.grad")
grad_and_value = _deprecated(_func.grad_and_value, "torch.func.grad_and_value")
vjp = _deprecated(_func.vjp, "torch.func.vjp")
jvp = _deprecated(_func.jvp, "torch.func.jvp")
jacrev = _deprecated(_func.jacrev, "torch.func.jacrev")
jacfwd = _deprecated(_func.jacfwd, "torch.func.jacfwd")
hessian = _deprecated(_func.hessian, "torch.func.hessian")
functionalize = _deprecated(_func.functionalize, "torch.func.functionalize")
make_functional = _deprecated(_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(
    _modules.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = _deprecated(
    _modules.combine_state_for_ensemble, "torch.func.stack_module_state"
)
