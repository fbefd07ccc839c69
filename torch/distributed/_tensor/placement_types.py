"""The former name of torch.distributed.tensor.placement_types."""

from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta  # noqa: F401
from torch.distributed.tensor.placement_types import *  # noqa: F403
