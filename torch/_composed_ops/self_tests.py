"""Operators by which test suites of programs above this one try out argument kinds, defaults,
gradients and transforms. They compute next to nothing, and exactly that."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, define_out


def _added(values: Tensor, addends: Sequence[float] | None) -> Tensor:
    if addends is None:
        return values
    if values.dim() != 1:
        raise RuntimeError(f"expected a tensor of one dimension, got size {list(values.shape)}")
    if len(addends) != values.numel():
        raise RuntimeError(f"expected {values.numel()} addends, got {len(addends)}")
    return values + torch.tensor(addends, dtype=values.dtype, device=values.device)


def _define_lists() -> None:
    for name, kind in (
        ("intlist", "int[]"),
        ("filled_intlist", "int[2]"),
        ("floatlist", "float[]"),
    ):
        schema = f"_test_optional_{name}(Tensor values, {kind}? addends) -> Tensor"
        define(schema, _added)
        define_out(schema, "out", _added)


_define_lists()


@composed("_test_ambiguous_defaults.a(Tensor dummy, int a=1, int b=1) -> Tensor")
def _test_ambiguous_defaults(dummy: Tensor, a: int = 1, b: int = 1) -> Tensor:
    if (a, b) != (1, 1):
        raise RuntimeError(f"Expected a == 1 and b == 1, but got {a} and {b}")
    return torch.tensor(1)


@composed('_test_ambiguous_defaults.b(Tensor dummy, int a=2, str b="2") -> Tensor')
def _test_ambiguous_text(dummy: Tensor, a: int = 2, b: str = "2") -> Tensor:
    if (a, b) != (2, "2"):
        raise RuntimeError(f"Expected a == 2 and b == '2', but got {a} and {b!r}")
    return torch.tensor(2)


class _WarnsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        warnings.warn("Warn from backward", stacklevel=1)
        return grad


@composed("_test_warn_in_autograd(Tensor self) -> Tensor", out="out")
def _test_warn_in_autograd(self: Tensor) -> Tensor:
    return _WarnsBackward.apply(self)


class _OneMore(torch.autograd.Function):
    """A copy whose gradient is one more than it should be: its formula can be told from others."""

    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad + 1


@composed(
    "_test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor", out="fullcoverage_out"
)
def _test_autograd_multiple_dispatch(self: Tensor) -> Tensor:
    return _OneMore.apply(self)


@composed("_test_autograd_multiple_dispatch.ntonly(Tensor self, bool b) -> Tensor")
def _test_autograd_multiple_dispatch_ntonly(self: Tensor, b: bool) -> Tensor:
    return self.clone()


@composed("_test_autograd_multiple_dispatch_view(Tensor(a) self) -> Tensor(a)")
def _test_autograd_multiple_dispatch_view(self: Tensor) -> Tensor:
    return self.view(-1)


@composed("_test_autograd_multiple_dispatch_view_copy(Tensor self) -> Tensor", out="out")
def _test_autograd_multiple_dispatch_view_copy(self: Tensor) -> Tensor:
    return self.view(-1).clone()


@composed("_test_check_tensor(Tensor self) -> Tensor")
def _test_check_tensor(self: Tensor) -> Tensor:
    if not bool(self.all()):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return self.clone()


@composed("_test_functorch_fallback(Tensor self, Tensor other) -> Tensor", out="out")
def _test_functorch_fallback(self: Tensor, other: Tensor) -> Tensor:
    return self.clone()


@composed("_test_serialization_subcmul(Tensor self, Tensor other, Scalar alpha=1) -> Tensor")
def _test_serialization_subcmul(self: Tensor, other: Tensor, alpha: float = 1) -> Tensor:
    return self - other * alpha


@composed(
    "_test_parallel_materialize(Tensor self, int num_parallel, bool skip_first=False) -> Tensor"
)
def _test_parallel_materialize(self: Tensor, num_parallel: int, skip_first: bool = False) -> Tensor:
    return self


@composed(
    "_foobar(Tensor self, bool arg1=True, bool arg2=True, *, bool arg3=True) -> Tensor", out="out"
)
def _foobar(self: Tensor, arg1: bool = True, arg2: bool = True, *, arg3: bool = True) -> Tensor:
    return self
