"""Operators on states of generators, under the names that programs know, and `philox_rand`: uniform
numbers as a function of a seed and an offset, without a generator."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._prims_common.rng import CUDARngStateHelper

_OPERATORS = ("graphsafe_run_with_rng_state", "run_and_save_rng_state", "run_with_rng_state")

_LIBRARY = torch.library.Library("rngprims", "DEF")
_LIBRARY.define(
    "philox_rand(SymInt[] size, Tensor seed, Tensor offset, SymInt[]? stride, "
    "Device? device=None, ScalarType? dtype=None) -> (Tensor, Tensor)"
)


def refuse_device(device: torch.device) -> None:
    """Numbers that a seed and an offset determine are those of CUDA's generator."""
    if device.type != "cuda":
        raise RuntimeError(
            f"functionalize_rng_ops: a random operator on {device.type} cannot be written with a "
            f"seed and an offset: the generator of {device.type} does not use Philox"
        )


def _drawn(
    size: Sequence[int],
    seed: Tensor,
    offset: Tensor,
    stride: Sequence[int] | None,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """The numbers that torch.rand gives with the generator at that state, and how far it moves."""
    place = torch.device("cuda" if device is None else device)
    refuse_device(place)
    if stride is not None:
        raise NotImplementedError(f"rngprims::philox_rand: strides {list(stride)} are unsupported")
    before = torch.cuda.get_rng_state()
    try:
        CUDARngStateHelper.set_torch_state_tensor(seed, offset)
        values = torch.rand(size, device=place, dtype=dtype)
        _, after = CUDARngStateHelper.get_torch_state_as_tuple()
    finally:
        torch.cuda.set_rng_state(before)
    return values, after - offset.cpu()


def _described(
    size: Sequence[int],
    seed: Tensor,
    offset: Tensor,
    stride: Sequence[int] | None,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    place = torch.device("cuda" if device is None else device)
    return torch.empty(size, device=place, dtype=dtype), torch.empty_like(offset)


_LIBRARY.impl("philox_rand", _drawn, "CompositeExplicitAutograd")
torch.library.register_fake("rngprims::philox_rand", _described, lib=_LIBRARY)


def __getattr__(name: str) -> object:
    if name in _OPERATORS:
        from torch._higher_order_ops import rng

        return getattr(rng, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
