"""Meshes of ranks, under the name that programs of distributed tensors use."""

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
