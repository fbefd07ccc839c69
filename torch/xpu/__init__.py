"""Intel GPUs: this build has no support for them."""

from torch import _absent_device

_absent_device.fill(globals(), "XPU")
