"""The named tuples that functions with several results return. They are made on first use by the
bindings; asking for one here makes it."""

import torch


def __getattr__(name):
    found = torch._C._get_return_type(name)
    if found is None:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    globals()[name] = found
    return found
