"""Tangents and batch dimensions as operators."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed


@composed("_make_dual(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a)")
def _make_dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    return torch._VF._make_dual(primal, tangent, level=level)


@composed("_unpack_dual(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent)")
def _unpack_dual(dual: Tensor, level: int) -> tuple[Tensor, Tensor]:
    return tuple(torch._VF._unpack_dual(dual, level=level))


@composed("_fw_primal(Tensor(a) self, int level) -> Tensor(a)")
def _fw_primal(self: Tensor, level: int) -> Tensor:
    return torch._VF._unpack_dual(self, level=level)[0]


@composed("_fw_primal_copy(Tensor self, int level) -> Tensor", out="out")
def _fw_primal_copy(self: Tensor, level: int) -> Tensor:
    return _fw_primal(self, level).clone()


@composed("_make_dual_copy(Tensor primal, Tensor tangent, int level) -> Tensor", out="out")
def _make_dual_copy(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    return _make_dual(primal, tangent, level).clone()
