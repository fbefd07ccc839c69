"""torch._functorch.make_functional under its older name."""

from torch._functorch.make_functional import *  # noqa: F403
