"""Assertions as operators. In a graph they are nodes that must not be dropped: the functional forms
take and return a token, so that an order between them remains."""

from types import ModuleType

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, reading


def symbolic_shapes() -> ModuleType:
    from torch.fx.experimental import symbolic_shapes

    return symbolic_shapes


def _fail(message: str) -> None:
    raise RuntimeError(message)


@reading("_assert_async(Tensor self) -> ()", lambda self: None)
def _assert_async(self: Tensor) -> None:
    if not bool(self):
        _fail("Expected Tensor with single nonzero value, but got zero")


@reading("_assert_async.msg(Tensor self, str assert_msg) -> ()", lambda self, assert_msg: None)
def _assert_async_msg(self: Tensor, assert_msg: str) -> None:
    if not bool(self):
        _fail(assert_msg)


@composed("_assert_scalar(Scalar self, str assert_msg) -> ()")
def _assert_scalar(self: bool, assert_msg: str) -> None:
    if not self:
        _fail(assert_msg)


@reading(
    "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
    lambda self, assert_msg, dep_token: dep_token.clone(),
)
def _functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    _assert_async_msg(self, assert_msg)
    return dep_token.clone()


@composed("_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor")
def _functional_assert_scalar(self: bool, assert_msg: str, dep_token: Tensor) -> Tensor:
    _assert_scalar(self, assert_msg)
    return dep_token.clone()


@composed("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()")
def sym_constrain_range(size: int, *, min: int | None = None, max: int | None = None) -> None:
    if isinstance(size, torch.SymInt):
        symbolic_shapes().constrain_range(size, min=min, max=max)
        return
    low = float("-inf") if min is None else min
    high = float("inf") if max is None else max
    if low > high:
        raise RuntimeError(
            f"Max must be greater than or equal to min, but got min = {min} and max = {max}"
        )
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


@composed("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
def sym_constrain_range_for_size(
    size: int, *, min: int | None = None, max: int | None = None
) -> None:
    if isinstance(size, torch.SymInt):
        symbolic_shapes()._constrain_range_for_size(size, min, max)
        return
    sym_constrain_range(size, min=0 if min is None else min, max=max)


@composed(
    "_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor"
)
def _functional_sym_constrain_range(
    size: int, min: int | None, max: int | None, dep_token: Tensor
) -> Tensor:
    sym_constrain_range(size, min=min, max=max)
    return dep_token.clone()


@composed(
    "_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) "
    "-> Tensor"
)
def _functional_sym_constrain_range_for_size(
    size: int, min: int | None, max: int | None, dep_token: Tensor
) -> Tensor:
    sym_constrain_range_for_size(size, min=min, max=max)
    return dep_token.clone()


@composed(
    "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"
)
def _make_dep_token(
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    return torch.empty((), dtype=dtype, device=device)


@composed("_print(str s) -> ()")
def _print(s: str) -> None:
    print(s)
