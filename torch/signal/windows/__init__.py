"""Windows for spectral analysis."""

from torch.signal.windows.windows import *  # noqa: F403
from torch.signal.windows.windows import __all__ as __all__
