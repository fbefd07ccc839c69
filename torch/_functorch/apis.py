"""The public transforms under the name of the file that other programs import them from."""

from torch._functorch.eager_transforms import grad, grad_and_value
from torch._functorch.vmap import vmap

__all__ = ["grad", "grad_and_value", "vmap"]
