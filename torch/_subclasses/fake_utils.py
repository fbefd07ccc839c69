"""Checks that fake results have the form of real ones: shape, strides, dtype, device, and which
arguments they share memory with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "CrossRefFakeMode",
    "output_alias_each_other",
    "outputs_alias_inputs",
    "outputs_are_inputs",
    "try_convert_fake_to_real",
]

_T = TypeVar("_T")
# Fused attention returns statistics and a state of random numbers in a form that depends on the
# kernel that runs.
_BACKEND_DEPENDENT = (
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storages(tree: object) -> set[int]:
    return {
        t.untyped_storage()._cdata
        for t in _tensors(tree)
        if t.layout is torch.strided and not t.is_quantized
    }


def outputs_alias_inputs(outputs: object, inputs: object) -> bool:
    """Whether a tensor among the outputs shares memory with one among the inputs."""
    return not _storages(outputs).isdisjoint(_storages(inputs))


def outputs_are_inputs(outputs: object, inputs: object) -> bool:
    """Whether an output is one of the inputs."""
    known = {id(t) for t in _tensors(inputs)}
    return any(id(t) in known for t in _tensors(outputs))


def output_alias_each_other(outputs: object) -> bool:
    """Whether two outputs share memory."""
    strided = [t for t in _tensors(outputs) if t.layout is torch.strided]
    return len(_storages(strided)) < len(strided)


def is_sdpa_error(func: OpOverload, idx: int, e: Exception) -> bool:
    """Whether a mismatch is in a part of a fused attention's result that depends on the kernel."""
    return func._opname in _BACKEND_DEPENDENT and idx != 0


def try_convert_fake_to_real(tensors: Sequence[_T]) -> list[_T]:
    """Each fake tensor replaced by the real one of the same storage that its mode converted, where
    that one lives still; others as they are."""
    out = []
    for t in tensors:
        real = _real_of(t) if isinstance(t, FakeTensor) else None
        out.append(t if real is None else real)
    return out


def _real_of(fake: FakeTensor) -> torch.Tensor | None:
    converter = fake.fake_mode.fake_tensor_converter.meta_converter
    with (
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Fake)),
        torch.no_grad(),
    ):
        for number, known in list(converter.tensor_memo.items()):
            if known.untyped_storage()._cdata != fake.untyped_storage()._cdata:
                continue
            for real, own in list(converter.describer.lookup_tensor.items()):
                if own == number and real.dtype == fake.dtype:
                    geometry = fake.size(), fake.stride(), fake.storage_offset()
                    return torch.as_strided(real.detach(), *geometry)
    return None


def _same_form(
    real: torch.Tensor, fake: torch.Tensor, *, check_strides: bool = True, check_grad: bool = True
) -> str | None:
    """What differs, or None."""
    pairs = [
        ("Dtypes", real.dtype, fake.dtype),
        ("Shapes", tuple(real.shape), tuple(fake.shape)),
        ("Devices", real.device, fake.device),
    ]
    if check_grad:
        pairs.append(("requires_grad", real.requires_grad, fake.requires_grad))
    strided = real.layout is torch.strided
    if strided:
        pairs.append(("Storage offsets", real.storage_offset(), fake.storage_offset()))
    if strided and check_strides and real.numel() > 0:
        mine = [s for n, s in zip(real.shape, real.stride(), strict=True) if n != 1]
        other = [s for n, s in zip(fake.shape, fake.stride(), strict=True) if n != 1]
        pairs.append(("Strides", mine, other))
    for what, a, b in pairs:
        if a != b:
            return f"{what} {a} and {b} are not equal!"
    return None


class CrossRefFakeMode(TorchDispatchMode):
    """Inside, every operator also runs on fake tensors, and results of another form raise
    MetadataMismatchError."""

    def __init__(
        self,
        ignore_op_fn: Callable[[OpOverload], bool] | None = None,
        *,
        check_strides: bool = True,
        check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda func: False)
        self.check_strides = check_strides
        self.check_aliasing = check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = dict(kwargs or {})
        fake = self._run_fake(func, args, kwargs) if self._is_checked(func) else None
        real = func(*args, **kwargs)
        if fake is not None:
            self._compare(func, (args, kwargs), real, *fake)
        return real

    def _is_checked(self, func: OpOverload) -> bool:
        if func._opname in ("lift_fresh", "lift_fresh_copy", "set_", "item"):
            return False
        if self.ignore_op_fn(func):
            return False
        has_meta = func.has_kernel_for_dispatch_key(torch._C.DispatchKey.Meta)
        return not self.only_check_ops_with_meta or has_meta

    def _run_fake(
        self, func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[object, object] | None:
        """The fake arguments and result; None where there is no result to compare."""
        mode = FakeTensorMode(allow_fallback_kernels=False)
        try:
            inputs = pytree.tree_map_only(
                torch.Tensor,
                lambda t: mode.from_tensor(t, static_shapes=True),
                (tuple(args), dict(kwargs)),
            )
            with mode:
                return inputs, func(*inputs[0], **inputs[1])
        except (
            UnsupportedFakeTensorException,
            UnsupportedOperatorException,
            DataDependentOutputException,
            DynamicOutputShapeException,
            NotImplementedError,
        ):
            return None

    def _compare(
        self,
        func: OpOverload,
        real_inputs: object,
        real: object,
        fake_inputs: object,
        fake: object,
    ) -> None:
        if self.check_aliasing:
            for relation in (outputs_alias_inputs, outputs_are_inputs):
                mine, other = relation(real, real_inputs), relation(fake, fake_inputs)
                if mine != other:
                    raise MetadataMismatchError(
                        f"{func}: found mismatch in {relation.__name__}: real {mine}, fake {other}"
                    )
        reals, fakes = _tensors(real), _tensors(fake)
        if len(reals) != len(fakes):
            raise MetadataMismatchError(f"{func}: {len(reals)} real tensors, {len(fakes)} fake")
        for idx, (a, b) in enumerate(zip(reals, fakes, strict=True)):
            difference = _same_form(a, b, check_strides=self.check_strides)
            if difference is None or is_sdpa_error(func, idx, MetadataMismatchError(difference)):
                continue
            raise MetadataMismatchError(
                f"{func}: found mismatched tensor metadata for output[{idx}]: {difference}"
            )
        if self.check_aliasing:
            for (i, a), (j, b) in combinations(enumerate(reals), 2):
                shared = outputs_alias_inputs(a, b)
                if shared != outputs_alias_inputs(fakes[i], fakes[j]):
                    raise MetadataMismatchError(
                        f"{func}: outputs {i} and {j}: the real ones share memory: {shared}"
                    )
