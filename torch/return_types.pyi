# The named tuples of functions with several results; torchgen writes their types.
from torch._C._return_types import *  # noqa: F403
