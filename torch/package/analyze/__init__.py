"""Questions about packages and the code in them."""

from torch.package.analyze.find_first_use_of_broken_modules import find_first_use_of_broken_modules
from torch.package.analyze.trace_dependencies import trace_dependencies

__all__ = ["find_first_use_of_broken_modules", "trace_dependencies"]
