"""torch._has_compatible_shallow_copy_type, which subclasses of Tensor override."""

import torch
from torch.overrides import handle_torch_function, has_torch_function


def _has_compatible_shallow_copy_type(self, source) -> bool:
    """Whether `self` can take over what `source` stands for without a new tensor."""
    if has_torch_function((self, source)):
        return handle_torch_function(
            _has_compatible_shallow_copy_type, (self, source), self, source
        )
    return torch.ops.aten._has_compatible_shallow_copy_type(self, source)
