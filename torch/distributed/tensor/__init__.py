"""Tensors over a mesh of devices: the placements. Tensors themselves are not implemented yet."""

from torch import _later
from torch.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

globals().update(
    _later.names(
        __name__,
        "DTensor DeviceMesh distribute_module distribute_tensor empty full init_device_mesh ones "
        "rand randn zeros",
    )
)

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
