"""torch._functorch.vmap under its older name."""

from torch._functorch.vmap import *  # noqa: F403
