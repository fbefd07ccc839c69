"""Tensors over a mesh of devices: the placements. Tensors themselves are not implemented yet."""

from torch import _later
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

globals().update(
    _later.names(
        __name__,
        "DTensor distribute_module distribute_tensor empty full ones rand randn zeros",
    )
)

__all__ = ["DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "init_device_mesh"]
