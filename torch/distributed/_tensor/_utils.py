"""The former name of torch.distributed.tensor._utils."""

from torch.distributed.tensor._utils import (  # noqa: F401
    compute_global_tensor_info,
    compute_local_shape,
    compute_local_shape_and_global_offset,
)
