"""One parameter of a sharded module, in its two forms: the part that this process keeps, a DTensor
that the optimizer sees, and the whole one that forward and backward use.

The whole parameter is one tensor object for ever. Its memory is given back when the module is
resharded and filled again when it is gathered; what autograd saved of it therefore stays valid."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributed.fsdp._fully_shard._mesh import MeshInfo, spec_of
from torch.distributed.fsdp._fully_shard._policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import Shard, cut, padded

Tensor = torch.Tensor


def _plain(tensor: Tensor) -> Tensor:
    """The local part of a distributed tensor, any other as it is."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


class ShardedParameter:
    """A parameter, the places in modules where it is used, and its two forms."""

    def __init__(
        self,
        parameter: nn.Parameter,
        places: list[tuple[nn.Module, str]],
        info: MeshInfo,
        placement: Shard | None,
        mp_policy: MixedPrecisionPolicy,
        offload: OffloadPolicy,
        device: torch.device,
    ) -> None:
        self.places, self.info, self.device = places, info, device
        self.offloaded = isinstance(offload, CPUOffloadPolicy)
        self.pin = self.offloaded and offload.pin_memory and device.type == "cuda"
        self.dim = (placement.dim if placement is not None else 0) % max(parameter.ndim, 1)
        if not parameter.is_contiguous():
            raise NotImplementedError(
                f"FSDP does not support non-contiguous parameters yet: {tuple(parameter.shape)} "
                f"with strides {parameter.stride()}"
            )
        inner = _plain(parameter.data)
        if inner.ndim == 0:
            raise ValueError(
                "fully_shard doesn't support scalar parameters. Change it to a 1D tensor with "
                "numel equal to 1."
            )
        if self.dim and inner.size(self.dim) % info.shard_size:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {self.dim}: {tuple(inner.shape)} "
                f"(world size: {info.shard_size})"
            )
        self.whole_shape, self.inner_spec = inner.shape, getattr(parameter, "_spec", None)
        self.spec = spec_of(info, parameter, self.dim)
        self.dtype = parameter.dtype
        self.requires_grad = parameter.requires_grad
        wanted = mp_policy.param_dtype
        self.param_dtype = wanted if wanted is not None and self.dtype.is_floating_point else None
        self.reduce_dtype = mp_policy.reduce_dtype
        self.length = inner.size(self.dim)
        self.longest = cut(self.length, info.shard_size, 0)[0]
        part, _ = cut(self.length, info.shard_size, info.shard_rank)
        self._keep(inner, part)
        self.whole: nn.Parameter | None = None
        self.grad: Tensor | None = None  # of the whole, waiting for a reduction
        self.partial: Tensor | None = None  # reduced over the parts' processes only
        self.put_sharded()

    def _keep(self, inner: Tensor, part: int) -> None:
        """Cuts the parameter and keeps the part of this process."""
        begin = cut(self.length, self.info.shard_size, self.info.shard_rank)[1]
        local = inner.narrow(self.dim, begin, part).clone(memory_format=torch.contiguous_format)
        if self.offloaded and not local.is_meta:
            local = local.cpu().pin_memory() if self.pin else local.cpu()
        made = DTensor(local, self.spec)
        self.sharded = nn.Parameter(made, requires_grad=self.requires_grad)

    # ---- which form the modules have
    def _put(self, parameter: nn.Parameter) -> None:
        for module, name in self.places:
            module._parameters[name] = parameter

    def put_sharded(self) -> None:
        """The modules get the part."""
        self._put(self.sharded)

    def refresh(self) -> None:
        """Takes over a parameter that the program has put into the module: moved, or loaded."""
        module, name = self.places[0]
        now = module._parameters[name]
        if now is self.sharded or now is self.whole or not isinstance(now, DTensor):
            return
        self.sharded = now
        self.dtype = now.dtype
        self.spec = now._spec
        self._put(now)

    # ---- gathering
    def shard(self) -> Tensor:
        """The part as it is sent: padded, in the dtype that is computed in, flat."""
        local = _plain(self.sharded.detach())
        if local.is_meta:
            raise RuntimeError(
                f"FSDP parameters should be materialized from meta device before training, but "
                f"the parameter {self.places[0][1]} was still on meta device. Call module."
                "to_empty(device) to materialize it and then initialize it."
            )
        if local.device != self.device:
            local = local.to(self.device, non_blocking=self.pin)
        if self.param_dtype is not None:
            local = local.to(self.param_dtype)
        return padded(local, self.dim, self.longest - local.size(self.dim)).reshape(-1)

    @property
    def part_numel(self) -> int:
        """How many elements a padded part has."""
        whole = self.whole_shape.numel()
        return whole // max(self.length, 1) * self.longest if self.length else 0

    def fill(self, parts: Tensor) -> None:
        """Makes the whole parameter of the parts, one row for each process."""
        shape = list(self.whole_shape)
        shape[self.dim] = self.longest
        pieces = parts.reshape(parts.size(0), *shape)
        dtype = self.param_dtype or self.dtype
        if self.whole is None:
            data = torch.empty(self.whole_shape, dtype=dtype, device=self.device)
            self.whole = nn.Parameter(self._wrapped(data), requires_grad=self.requires_grad)
        plain = _plain(self.whole.data)
        storage = plain.untyped_storage()
        needed = self.whole_shape.numel() * dtype.itemsize
        if storage.size() != needed:
            storage.resize_(needed)
        if self.dim == 0:
            plain.copy_(pieces.reshape(-1, *shape[1:])[: self.length])
        else:
            plain.copy_(torch.cat(list(pieces.unbind(0)), self.dim))
        self.whole.requires_grad_(self.sharded.requires_grad)
        self._put(self.whole)

    def _wrapped(self, data: Tensor) -> Tensor:
        if self.inner_spec is None:
            return data
        meta = self.inner_spec.tensor_meta._replace(dtype=data.dtype)
        spec = DTensorSpec(self.inner_spec.mesh, self.inner_spec.placements, meta)
        return DTensor(data, spec)

    def drop(self) -> None:
        """Gives back the memory of the whole parameter."""
        self.put_sharded()
        if self.whole is not None:
            _plain(self.whole.data).untyped_storage().resize_(0)

    # ---- gradients
    def requires_grads(self) -> bool:
        """Whether a backward pass computes a gradient."""
        return self.whole is not None and self.whole.requires_grad

    def take_grad(self) -> None:
        """Moves the gradient of the whole parameter to where it waits for a reduction."""
        if self.whole is None or self.whole.grad is None:
            return
        grad = self.whole.grad
        self.whole.grad = None
        if isinstance(grad, DTensor):
            wanted = self.inner_spec.placements
            if grad.placements != wanted:
                grad = grad.redistribute(placements=wanted)
            grad = grad._local_tensor
        if self.reduce_dtype is not None:
            grad = grad.to(self.reduce_dtype)
        self.grad = grad if self.grad is None else self.grad.add_(grad)

    def grad_parts(self) -> Tensor:
        """The waiting gradient as one row for each process."""
        grad, size = self.grad, self.info.shard_size
        if self.dim == 0:
            return padded(grad, 0, self.longest * size - self.length).reshape(size, -1)
        return torch.stack([part.reshape(-1) for part in grad.chunk(size, self.dim)])

    def add_grad(self, part: Tensor) -> None:
        """Adds a reduced part to the gradient that the optimizer sees."""
        shape = list(self.whole_shape)
        shape[self.dim] = self.longest
        length = cut(self.length, self.info.shard_size, self.info.shard_rank)[0]
        local = part.reshape(shape).narrow(self.dim, 0, length)
        local = local.to(self.dtype) if local.dtype != self.dtype else local.contiguous()
        if self.offloaded:
            local = local.cpu()
        if self.sharded.grad is not None:
            _plain(self.sharded.grad).add_(local)
            return
        meta = TensorMeta(self.spec.shape, self.spec.stride, self.dtype)
        self.sharded.grad = DTensor(local, DTensorSpec(self.spec.mesh, self.spec.placements, meta))
