"""torch._functorch.eager_transforms under its older name."""

from torch._functorch.eager_transforms import *  # noqa: F403
