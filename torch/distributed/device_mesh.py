"""DeviceMesh: the ranks as an array, with a process group along each of its dimensions."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed.distributed_c10d import ProcessGroup
from torch.utils._python_dispatch import _disable_current_modes

__all__ = ["DeviceMesh", "init_device_mesh"]


class _Active(threading.local):
    """The meshes whose `with` blocks this thread is in."""

    def __init__(self) -> None:
        self.stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """The innermost."""
        if not self.stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.stack[-1]

    def _get_all_submeshes(self, mesh: DeviceMesh, name: str) -> list[DeviceMesh]:
        return mesh._get_all_submeshes(name)


_mesh_resources = _Active()


def _on_numbers(method: Callable) -> Callable:
    """A method that computes with ranks: they are numbers, whatever modes make of tensors."""

    @functools.wraps(method)
    def without_modes(*args: Any, **kwargs: Any) -> Any:
        if not torch._C._len_torch_dispatch_stack():
            return method(*args, **kwargs)
        with _disable_current_modes():
            return method(*args, **kwargs)

    return without_modes


class DeviceMesh:
    """An n-dimensional array of ranks. Along each dimension the ranks that differ in it alone form
    a process group."""

    @_on_numbers
    def __init__(
        self,
        device_type: str,
        mesh: torch.Tensor | list | None = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: tuple | None = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if isinstance(mesh, torch.Tensor) and mesh.device.type != "cpu":
            raise ValueError(f"`mesh` must be a CPU tensor, got {mesh}")
        self.device_type = device_type
        array = mesh.detach() if isinstance(mesh, torch.Tensor) else torch.tensor(mesh)
        self.mesh = array.to(torch.int32)
        self._shape = tuple(self.mesh.shape)
        self._value: tuple | None = None
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if self.mesh_dim_names and len(self.mesh_dim_names) != self.mesh.ndim:
            raise ValueError(
                f"mesh_dim_names {self.mesh_dim_names} must name {self.mesh.ndim} dimensions"
            )
        self._root: DeviceMesh | None = None
        self._flattened: dict[str, DeviceMesh] = {}
        self._parts: tuple[str, ...] = ()  # the names of the dimensions that were made one
        self._groups: list[ProcessGroup] = []
        if _init_backend:
            self._make_default_group()
            self._make_groups()
        rank = _core.get_rank() if _rank is None and _core.is_initialized() else (_rank or 0)
        self._find_self(rank)

    # ---- making
    def _find_self(self, rank: int) -> None:
        places = (self.mesh == rank).nonzero()
        if places.size(0) > 1:
            raise ValueError(f"rank {rank} appears more than once in the mesh {self.mesh.tolist()}")
        self._coordinate = places[0].tolist() if places.size(0) else None

    def _make_default_group(self) -> None:
        if not _core.is_initialized():
            _core.init_process_group()
        size = _core.get_world_size()
        if self.mesh.numel() > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found "
                f"{self.mesh.numel()} ranks!"
            )

    def _make_groups(self) -> None:
        whole = torch.arange(_core.get_world_size(), dtype=torch.int32)
        if self.mesh.ndim == 1 and torch.equal(self.mesh, whole):
            self._groups = [_core._get_default_group()]
            return
        rank = _core.get_rank()
        for dim in range(self.mesh.ndim):
            rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.size(dim)).tolist()
            name = self.mesh_dim_names[dim] if self.mesh_dim_names else f"dim_{dim}"
            mine = None
            for row in rows:
                made = _core.new_group(row, group_desc=f"mesh_{name}", sort_ranks=False)
                if rank in row:
                    mine = made
            if mine is not None:
                self._groups.append(mine)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: torch.Tensor | list | None = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:
        """A mesh whose groups exist already."""
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = _core.get_process_group_ranks(groups[0])
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                f"{made.mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        made._groups = groups
        return made

    # ---- questions
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, along one dimension or in all."""
        return self.mesh.numel() if mesh_dim is None else self._shape[mesh_dim]

    def get_rank(self) -> int:
        """This process's global rank."""
        return _core.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Where this process is in the mesh; None outside of it."""
        return self._coordinate

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` "
                    "needs to be specified when device_mesh.ndim > 1."
                )
            return 0
        if isinstance(mesh_dim, str):
            if not self.mesh_dim_names or mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist.")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's number along a dimension."""
        dim = self._dim(mesh_dim)
        if self._coordinate is None:
            raise RuntimeError("this process is not in the mesh")
        return self._coordinate[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The process group along a dimension."""
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if isinstance(mesh_dim, str) and mesh_dim in self._root_mesh()._flattened:
            return self._root_mesh()._flattened[mesh_dim].get_group()
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root

    # ---- parts
    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (names,) if isinstance(names, str) else tuple(names)
        if names == self.mesh_dim_names:
            return self
        flattened = self._root_mesh()._flattened
        if len(names) == 1 and names[0] in flattened:
            return flattened[names[0]]
        places = [self._places_of(name, names) for name in names]
        dims = [d for place in places for d in place]
        if dims != sorted(set(dims)):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be ascending."
            )
        return self._part(places, names)

    def _places_of(self, name: str, names: tuple[str, ...]) -> list[int]:
        """The dimensions that a name stands for: its own, or those that were made one."""
        own, flattened = self.mesh_dim_names, self._root_mesh()._flattened
        if name in own:
            return [own.index(name)]
        if name in flattened and all(n in own for n in flattened[name]._parts):
            return [own.index(n) for n in flattened[name]._parts]
        raise KeyError(
            f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are "
            f"{[*own, *flattened]}."
        )

    @_on_numbers
    def _part(self, places: list[list[int]], names: tuple[str, ...]) -> DeviceMesh:
        """The ranks that differ from this one in the given dimensions alone."""
        at = self._coordinate or [0] * self.ndim
        dims = [d for place in places for d in place]
        index = tuple(slice(None) if d in dims else at[d] for d in range(self.ndim))
        sizes = [math.prod(self._shape[d] for d in place) for place in places]
        ranks = self.mesh[index].reshape(sizes)
        part = DeviceMesh(self.device_type, ranks, mesh_dim_names=names, _init_backend=False)
        if self._groups:
            flattened = self._root_mesh()._flattened
            part._groups = [
                self._groups[place[0]] if len(place) == 1 else flattened[name].get_group()
                for place, name in zip(places, names, strict=True)
            ]
        part._root = self._root_mesh()
        return part

    @_on_numbers
    def _flatten(
        self, mesh_dim_name: str | None = None, backend_override: Any = None
    ) -> DeviceMesh:
        """One dimension for all of a part's."""
        root = self._root_mesh()
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if name in root._flattened:
            return root._flattened[name]
        if root.mesh_dim_names and name in root.mesh_dim_names and self.ndim > 1:
            raise ValueError(f"{name} already exists for the mesh dimensions {root.mesh_dim_names}")
        if self.ndim == 1 and self.mesh_dim_names == (name,):
            return self
        dims = [root.mesh_dim_names.index(n) for n in self.mesh_dim_names]
        rest = [d for d in range(root.ndim) if d not in dims]
        rows = root.mesh.permute(*rest, *dims).reshape(-1, self.mesh.numel()).tolist()
        mine = None
        for row in rows:
            made = _core.new_group(row, group_desc=f"mesh_{name}", sort_ranks=False)
            if _core.get_rank() in row:
                mine = DeviceMesh.from_group(made, self.device_type, row, mesh_dim_names=(name,))
        mine._root, mine._parts = root, self.mesh_dim_names
        root._flattened[name] = mine
        return mine

    @_on_numbers
    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The parts along one dimension, of all ranks."""
        dim = self._dim(mesh_dim_name)
        rows = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.size(dim))
        found = []
        for row in rows:
            part = DeviceMesh(
                self.device_type, row, mesh_dim_names=(mesh_dim_name,), _init_backend=False
            )
            if part._coordinate is not None and self._groups:
                part._groups = [self._groups[dim]]
            found.append(part)
        return found

    # ---- as a value
    def __enter__(self) -> DeviceMesh:
        _mesh_resources.stack.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _mesh_resources.stack.pop()

    @_on_numbers
    def __repr__(self) -> str:
        if self.mesh_dim_names:
            return (
                f"DeviceMesh('{self.device_type}', {self.mesh.tolist()}, "
                f"mesh_dim_names={self.mesh_dim_names})"
            )
        return f"DeviceMesh('{self.device_type}', {self.mesh.tolist()})"

    @_on_numbers
    def _key(self) -> tuple:
        if self._value is None:
            flat = tuple(self.mesh.flatten().tolist())
            self._value = flat, self._shape, self.device_type, self.mesh_dim_names
        return self._value

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __getstate__(self) -> dict[str, Any]:
        # Groups belong to a process.
        return {**self.__dict__, "_groups": [], "_root": None, "_flattened": {}}


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict | None = None,
) -> DeviceMesh:
    """A mesh of all ranks, in their order."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique.",
                f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!",
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and "
                f"len(mesh_shape):{len(mesh_shape)}.",
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    count = 1
    for size in mesh_shape:
        count *= size
    mesh = torch.arange(count).view(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
