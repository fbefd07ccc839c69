"""MTIA devices, where a package brings a backend for them (ATen/detail/MTIAHooksInterface.h); this
build has none of its own."""

from torch import _foreign_device

_foreign_device.fill(globals(), "mtia", "MTIA")
