"""DTensor: a tensor whose parts lie on the devices of a mesh, and the functions that make one."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh, _mesh_resources
from torch.distributed.tensor import _dispatch
from torch.distributed.tensor._collective_utils import placed_from_first
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._redistribute import (
    Redistribute,
    gradient_placements,
    redistribute_local_tensor,
)
from torch.distributed.tensor._utils import (
    compute_global_tensor_info,
    compute_local_shape_and_global_offset,
    normalize_to_torch_size,
)
from torch.distributed.tensor.placement_types import Placement, Replicate, Shard, _StridedShard

__all__ = [
    "DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn",
    "zeros",
]  # fmt: skip

Tensor = torch.Tensor


def _normal(
    placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int
) -> tuple[Placement, ...]:
    """Placements as a tuple, one for each mesh dimension, with dimensions counted from the
    front."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements "
            f"length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for placement in placements:
        if isinstance(placement, Shard) and placement.dim < 0:
            dim = placement.dim + ndim
            strided = isinstance(placement, _StridedShard)
            placement = _StridedShard(dim, placement.split_factor) if strided else Shard(dim)
        made.append(placement)
    return tuple(made)


class _ToLocal(torch.autograd.Function):
    """to_local: the gradient of the part is a part of the gradient."""

    @staticmethod
    def forward(ctx: Any, input: DTensor, grad_placements: Sequence[Placement] | None) -> Tensor:
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        local = input._local_tensor
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        spec = ctx.spec
        _, stride = compute_global_tensor_info(grad, spec.mesh, spec.placements)
        meta = TensorMeta(spec.shape, tuple(stride), grad.dtype)
        placements = ctx.grad_placements
        if placements is None:
            placements = gradient_placements(spec.placements)
        made = DTensorSpec(spec.mesh, tuple(placements), meta)
        return DTensor(grad, made, requires_grad=grad.requires_grad), None


class _FromLocal(torch.autograd.Function):
    """from_local: the gradient of the part is this rank's part of the gradient."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, spec: DTensorSpec) -> DTensor:
        ctx.spec = spec
        return DTensor(input.view_as(input), spec, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple:
        spec = ctx.spec
        wanted = gradient_placements(spec.placements)
        if grad._spec.placements == wanted:
            return grad.to_local(), None
        target = DTensorSpec(spec.mesh, wanted, grad._spec.tensor_meta)
        return redistribute_local_tensor(grad._local_tensor, grad._spec, target), None


class DTensor(torch.Tensor):
    """A tensor of which each device of a mesh holds a part, or all. It is used as any other tensor;
    what has to be communicated follows from the placements."""

    _local_tensor: Tensor
    _spec: DTensorSpec

    @staticmethod
    def __new__(
        cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool = False
    ) -> DTensor:
        """Wraps a part. Programs call from_local or distribute_tensor."""
        if local_tensor.requires_grad and not requires_grad:
            warnings.warn(
                "To construct DTensor from torch.Tensor, it's recommended to use "
                "local_tensor.detach() and make requires_grad consistent.",
                stacklevel=2,
            )
        meta = spec.tensor_meta
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            meta.shape,
            strides=meta.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            layout=local_tensor.layout,
            requires_grad=requires_grad,
        )
        made._spec = spec
        # Gradients are the wrapper's: a part that has its own graph would keep it alive.
        made._local_tensor = local_tensor.detach() if local_tensor.requires_grad else local_tensor
        return made

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return _dispatch.dispatch(DTensor, func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    # ---- as a container of its part
    def __tensor_flatten__(self) -> tuple[list[str], tuple]:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(
        inner: dict[str, Tensor], context: tuple, outer_size: Any, outer_stride: Any
    ) -> DTensor:
        spec, requires_grad = context
        meta = TensorMeta(torch.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype)
        local = inner["_local_tensor"]
        return DTensor(
            local, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=requires_grad
        )

    def __coerce_tangent_metadata__(self) -> DTensor:
        if not any(p.is_partial() for p in self.placements):
            return self
        return self.redistribute(placements=gradient_placements(self.placements))

    def __coerce_same_metadata_as_tangent__(
        self, flatten_spec: tuple, expected_type: type | None = None
    ) -> DTensor | None:
        if expected_type is not None:
            return None
        return self.redistribute(flatten_spec[0].mesh, flatten_spec[0].placements)

    # ---- to and from parts
    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: torch.Size | None = None,
        stride: tuple[int, ...] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor of which each rank gives its part. Gradients flow back to the parts."""
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        device = mesh.device_type
        placed = _normal(placements, mesh, local_tensor.ndim)
        if device != local_tensor.device.type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(device)
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the "
                "same time."
            )
        if shape is None:
            whole, strides = compute_global_tensor_info(local_tensor, mesh, placed)
            shape, stride = torch.Size(whole), tuple(strides)
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        elif run_check:
            local_tensor = _checked(local_tensor, mesh, placed)
        spec = DTensorSpec(
            mesh, placed, TensorMeta(torch.Size(shape), tuple(stride), local_tensor.dtype)
        )
        return _FromLocal.apply(local_tensor, spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part. `grad_placements` says how the gradient that comes back lies."""
        if not torch.is_grad_enabled():
            return self._local_tensor
        if grad_placements is not None:
            grad_placements = _normal(grad_placements, self._spec.mesh, self.ndim)
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: torch.dtype | None = None,
        backward_dtype: torch.dtype | None = None,
    ) -> DTensor:
        """The same tensor under other placements. Gradients go the way back."""
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placed = _normal(placements, mesh, self.ndim)
        for old, new in zip(self._spec.placements, placed, strict=True):
            if new.is_partial() and old != new:
                raise RuntimeError("Can not redistribute to Partial, redistribute is not the way!")
        return Redistribute.apply(self, mesh, placed, async_op, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- questions
    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    def __metadata_guard__(self, orig: tuple, other: tuple) -> bool:
        return orig == other

    # ---- for checkpoints
    def __create_chunk_list__(self) -> list:
        from torch.distributed.checkpoint.metadata import ChunkStorageMetadata

        spec = self._spec
        sizes, offsets = compute_local_shape_and_global_offset(
            spec.shape, spec.mesh, spec.placements
        )
        # The end of a tensor may leave nothing for the last ranks.
        if spec.mesh.get_coordinate() is None or (0 in sizes and 0 not in spec.shape):
            return []
        return [ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))]

    def __get_tensor_shard__(self, index: Any) -> Tensor:
        return self._local_tensor


def _checked(local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> Tensor:
    """The part, when all ranks agree on what it is; replicated dimensions take the first rank's."""
    mine = (str(local.dtype), tuple(local.stride()), local.requires_grad)
    for dim in range(mesh.ndim):
        every: list[Any] = [None] * mesh.size(dim)
        _core.all_gather_object(every, mine, group=mesh.get_group(dim))
        for other in every:
            if other != mine:
                raise ValueError(
                    f"Inconsistent tensor metadata (dtype, stride, requires_grad) across ranks: "
                    f"{other}, here {mine}"
                )
    with torch.no_grad():
        for dim, placement in enumerate(placements):
            if placement.is_replicate():
                whole = local.contiguous()
                _core.broadcast(whole, group=mesh.get_group(dim), group_src=0)
                if whole is not local:
                    local.copy_(whole)
    return local


# ---- making distributed tensors ------------------------------------------------------------------
def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A leaf tensor, the same on all ranks, as a distributed one. The data of the mesh's first rank
    count; with src_data_rank=None each rank takes its part of its own."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    device = mesh.device_type
    if device != tensor.device.type and not tensor.is_meta:
        tensor = tensor.to(device)
    placed = _normal(placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a "
                f"different device mesh {mesh}."
            )
        if tensor.placements != placed:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different "
                f"placements {placed}. do you want to call `redistribute` instead?"
            )
        return tensor
    for placement in placed:
        if isinstance(placement, Shard) and not 0 <= placement.dim < max(tensor.ndim, 1):
            raise ValueError(f"{placement!r} is out of range for a tensor of {tensor.ndim} dims")
    if mesh.get_coordinate() is None:
        local = tensor.detach().new_empty(0)
    else:
        local = placed_from_first(tensor.detach(), mesh, placed, src_data_rank)
    spec = DTensorSpec(mesh, placed, TensorMeta(tensor.size(), tensor.stride(), tensor.dtype))
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def _shard_tensor(
    full_tensor: Tensor,
    placements: Sequence[Shard],
    device_mesh: DeviceMesh | None = None,
) -> DTensor:
    """A tensor that every rank has, as a distributed one, without communication."""
    return distribute_tensor(full_tensor, device_mesh, placements, src_data_rank=None)


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
) -> nn.Module:
    """Makes a module's parameters distributed: partition_fn(name, submodule, mesh) places them,
    what it leaves is replicated. input_fn and output_fn run before and after the module's
    forward."""
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been "
            "called on this module!"
        )
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    whole = [Replicate()] * mesh.ndim
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, parameter in part._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor):
                placed = distribute_tensor(parameter.data, mesh, whole)
                made = nn.Parameter(placed, requires_grad=parameter.requires_grad)
                part.register_parameter(key, made)
        for key, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh, whole)
    if input_fn is not None:
        _hook_input(module, input_fn, mesh)
    if output_fn is not None:
        _hook_output(module, output_fn, mesh)
    module._distribute_module_applied = True
    return module


def _arity(function: Callable, name: str) -> int:
    count = len(inspect.signature(function).parameters)
    if count == 2:
        warnings.warn(
            f"Deprecating {name} that takes two arguments (inputs, device_mesh), please use "
            f"{name} that takes in (module, inputs, device_mesh) instead!",
            FutureWarning,
            stacklevel=3,
        )
    elif count != 3:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    return count


def _hook_input(module: nn.Module, function: Callable, mesh: DeviceMesh) -> None:
    if _arity(function, "input_fn") == 2:
        module.register_forward_pre_hook(lambda _, inputs: function(inputs, mesh))
    else:
        module.register_forward_pre_hook(lambda own, inputs: function(own, inputs, mesh))


def _hook_output(module: nn.Module, function: Callable, mesh: DeviceMesh) -> None:
    if _arity(function, "output_fn") == 2:
        module.register_forward_hook(lambda own, inputs, outputs: function(outputs, mesh))
    else:
        module.register_forward_hook(lambda own, inputs, outputs: function(own, outputs, mesh))


# ---- factories -----------------------------------------------------------------------------------
def _made(
    fill: Callable[..., Tensor],
    size: Sequence[Any],
    *,
    dtype: torch.dtype | None,
    layout: torch.layout,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    random: bool = False,
) -> DTensor:
    """A distributed tensor whose parts fill(shape, ...) makes. Random ones are drawn in full."""
    from torch.distributed.tensor import _random
    from torch.distributed.tensor._rules.random import part_of

    if layout != torch.strided:
        raise AssertionError("layout value not supported!")
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    shape = normalize_to_torch_size(size)
    placed = _normal(placements, mesh, len(shape))
    stride = torch.empty(shape, device="meta").stride()
    meta = TensorMeta(shape, stride, dtype or torch.get_default_dtype())
    spec = DTensorSpec(mesh, placed, meta)
    sizes, _ = compute_local_shape_and_global_offset(shape, mesh, placed)
    options = {"dtype": dtype, "device": mesh.device_type}
    if mesh.get_coordinate() is None:
        local = torch.empty(0, **options)
    elif random and spec.is_sharded():
        _random.agree(mesh)
        local = part_of(fill(shape, **options), spec).contiguous()
    else:
        if random:
            _random.agree(mesh)
        local = fill(sizes, **options)
    if local.dtype != meta.dtype:
        spec = DTensorSpec(mesh, placed, meta._replace(dtype=local.dtype))
    return DTensor(local, spec, requires_grad=requires_grad)


def ones(
    *size: Any,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A distributed tensor of ones."""
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _made(torch.ones, size, device_mesh=device_mesh, placements=placements, **options)


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A distributed tensor of zeros."""
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _made(torch.zeros, size, device_mesh=device_mesh, placements=placements, **options)


def empty(
    *size: Any,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A distributed tensor whose values are not set."""
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _made(torch.empty, size, device_mesh=device_mesh, placements=placements, **options)


def full(
    size: Sequence[int],
    fill_value: float,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A distributed tensor of one value."""

    def fill(shape: Sequence[int], **options: Any) -> Tensor:
        return torch.full(shape, fill_value, **options)

    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _made(fill, (size,), device_mesh=device_mesh, placements=placements, **options)


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Uniform random numbers, the same for every placement."""
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad, "random": True}
    return _made(torch.rand, size, device_mesh=device_mesh, placements=placements, **options)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Normal random numbers, the same for every placement."""
    options = {"dtype": dtype, "layout": layout, "requires_grad": requires_grad, "random": True}
    return _made(torch.randn, size, device_mesh=device_mesh, placements=placements, **options)
