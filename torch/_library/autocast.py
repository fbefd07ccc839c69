"""What torch.library.register_autocast registers: a kernel of an operator at the autocast key of a
device that casts the floating point tensors of that device and calls the operator again with
autocast off, as the built-in list of casts does for operators of the library itself. Double
precision is left as it is, since nobody asks for it by accident.
"""

import torch
from torch.utils import _pytree as pytree

__all__ = ["KEYS", "casting_kernel"]

KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


def key_of(device_type):
    """The dispatch key of a device's autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"device_type should be a string, got {type(device_type).__name__}")
    key = KEYS.get(device_type)
    if key is None and device_type == torch._C._get_privateuse1_backend_name():
        key = "AutocastPrivateUse1"
    if key is None:
        raise ValueError(
            f"register_autocast: unknown device type {device_type!r}, expected "
            f"one of {sorted(KEYS)}"
        )
    return key


def casting_kernel(overload, device_type, dtype_of):
    """The kernel; `dtype_of()` is asked at each call, so that a later registration counts."""

    def cast(value, dtype):
        eligible = (
            isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and value.dtype != torch.float64
            and value.device.type == device_type
        )
        return value.to(dtype) if eligible else value

    def kernel(_, *args, **kwargs):
        dtype = dtype_of()
        args, kwargs = pytree.tree_map(lambda value: cast(value, dtype), (args, kwargs))
        with torch.autocast(device_type, enabled=False):
            return overload(*args, **kwargs)

    return kernel
