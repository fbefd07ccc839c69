"""local_map: a function of plain tensors, for distributed ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._api import DTensor
from torch.distributed.tensor.placement_types import Placement
from torch.utils import _pytree as pytree

Placements = Sequence[Placement] | None


def _is_placements(value: Any) -> bool:
    return value is None or (
        isinstance(value, (list, tuple)) and all(isinstance(one, Placement) for one in value)
    )


def local_map(
    func: Callable | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Placements] | None = None,
    in_grad_placements: Sequence[Placements] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """The function that calls func with the parts of its distributed arguments, and makes its
    results distributed tensors as out_placements says. in_placements says how arguments have to
    lie; those that do not are moved if redistribute_inputs is set."""
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        mesh = device_mesh
        flat, tree = pytree.tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input "
                f"args {len(flat)}!"
            )
        if not any(isinstance(value, DTensor) for value in flat):
            return func(*args, **kwargs)
        for i, value in enumerate(flat):
            wanted = None if in_placements is None else in_placements[i]
            if isinstance(value, DTensor):
                mesh = mesh or value.device_mesh
                grads = None if in_grad_placements is None else in_grad_placements[i]
                flat[i] = _local(value, i, wanted, grads, mesh, redistribute_inputs)
            elif wanted is not None and isinstance(value, torch.Tensor):
                raise AssertionError(
                    f"Non-DTensor input {value} expects None placements but received {wanted}!"
                )
        result = func(*pytree.tree_unflatten(flat, tree), **kwargs)
        return _distributed(result, out_placements, mesh)

    return wrapped


def _local(
    value: DTensor,
    index: int,
    wanted: Placements,
    grads: Placements,
    mesh: DeviceMesh,
    move: bool,
) -> torch.Tensor:
    if wanted is not None:
        wanted = tuple(wanted)
        if value.device_mesh != mesh or value.placements != wanted:
            if not move:
                raise ValueError(
                    f"arg {index} in local_map has a mismatched placements: arg placements is "
                    f"{value.placements} but the input placements is {wanted}! If redistribute_"
                    "inputs is wanted, set redistribute_inputs=True to local_map."
                )
            value = value.redistribute(mesh, wanted)
    return value.to_local(grad_placements=grads)


def _distributed(result: Any, placements: Any, mesh: DeviceMesh) -> Any:
    flat, tree = pytree.tree_flatten(result)
    each = (placements,) * len(flat) if _is_placements(placements) else tuple(placements)
    if len(each) == 1 and len(flat) > 1:
        each *= len(flat)
    if len(each) != len(flat):
        raise AssertionError(
            f"local_map requires one PlacementType be provided for each output value, received "
            f"{len(each)} out_placements but {len(flat)} is expected!"
        )
    made = []
    for value, placed in zip(flat, each, strict=True):
        if isinstance(value, torch.Tensor):
            if isinstance(value, DTensor):
                raise AssertionError(f"torch.Tensor output expected but received {type(value)}")
            made.append(value if placed is None else DTensor.from_local(value, mesh, placed))
        else:
            if placed is not None:
                raise AssertionError(
                    f"Non-tensor output {value} expects None placements but received {placed}!"
                )
            made.append(value)
    return pytree.tree_unflatten(made, tree)
