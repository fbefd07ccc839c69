"""Parts around graphs: symbolic sizes and tracing through the dispatcher."""

from torch.fx import _SUBMODULES  # noqa: F401
