"""Tensors without data that know their device. The work is done in C++ (aten/src/ATen/fake): the
kernel of the dispatch key Fake runs operators on the Meta backend and gives the results the device
that the operands claim. Here is what programs see of it, and the decisions that are rare enough to
be taken in Python: real tensors among the arguments, operators that read data, operators without a
Meta kernel, rules registered with py_impl(FakeTensorMode)."""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import _C
from torch._subclasses import _fake_special
from torch._subclasses._fake_errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
)
from torch._subclasses.meta_utils import MetaConverter, is_sparse_any
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

if TYPE_CHECKING:
    from torch._guards import Source
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, SymbolicContext

__all__ = [
    "DataDependentOutputException",
    "DispatchCacheInfo",
    "DynamicOutputShapeException",
    "FakeCopyMode",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorMode",
    "MetadataMismatchError",
    "UnsupportedFakeTensorException",
    "UnsupportedMutationAliasingException",
    "UnsupportedOperatorException",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]

CONSTANT_NUMEL_LIMIT = 1  # tensors of at most so many elements have their values followed
_FAKE = _C._TorchDispatchModeKey.FAKE
_ABOVE_META = _C.DispatchKeySet(_C.DispatchKey.Fake) | _C.DispatchKeySet(_C.DispatchKey.Python)


class FakeTensor(torch.Tensor):
    """A tensor without data that claims to be on a device. Operators on it give fake tensors."""

    real_tensor: torch.Tensor | None = None
    nonzero_memo = _fake_special.Memo()
    item_memo = _fake_special.Memo()
    unique_memo = _fake_special.Memo()
    unique_consecutive_memo = _fake_special.Memo()
    nested_int_memo = _fake_special.Memo()

    @staticmethod
    def __new__(
        cls: type[FakeTensor],
        fake_mode: FakeTensorMode,
        elem: torch.Tensor,
        device: torch.device | str,
        constant: torch.Tensor | None = None,
        real_tensor: torch.Tensor | None = None,
        pytype: type[torch.Tensor] | None = None,
        dispatch_keys: _C.DispatchKeySet | None = None,
    ) -> FakeTensor:
        device = torch.device(device)
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        if device.type == "meta" and not fake_mode.allow_meta:
            raise AssertionError("fake tensors of the meta device are switched off")
        made = _C._fake_make(fake_mode, elem, device)
        if elem.requires_grad:
            made.requires_grad_()
        if constant is not None:
            _C._fake_set_constant(made, constant)
        if real_tensor is not None:
            made.real_tensor = real_tensor
        return made

    @property
    def fake_mode(self) -> FakeTensorMode:
        """The mode that made it."""
        return _C._fake_mode_of(self)

    @property
    def fake_device(self) -> torch.device:
        """The device it claims."""
        return self.device

    @property
    def constant(self) -> torch.Tensor | None:
        """A real tensor with its values, where they are known."""
        return _C._fake_constant(self)

    @constant.setter
    def constant(self, value: torch.Tensor | None) -> None:
        _C._fake_set_constant(self, value)

    @staticmethod
    def from_tensor(t: torch.Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake form of a real tensor."""
        return fake_mode.from_tensor(t)

    def tolist(self) -> object:
        """The values as nested lists: symbols, where the mode can make them."""
        if self.dim() == 0:
            return self.item()
        return [element.tolist() for element in self.unbind(0)]

    def __deepcopy__(self, memo: dict[int, object]) -> FakeTensor:
        known = memo.get(id(self))
        if known is None:
            with torch.no_grad():
                known = self.detach().clone(memory_format=torch.preserve_format)
            known.requires_grad_(self.requires_grad)
            known.__dict__.update(self.__dict__)
            memo[id(self)] = known
        return known

    def __reduce_ex__(self, protocol: int) -> tuple:
        layout = (self.shape, self.stride(), self.dtype, self.device, self.requires_grad)
        return _rebuild, (self.fake_mode, *layout)

    __torch_function__ = _C._disabled_torch_function_impl


def _rebuild(
    mode: FakeTensorMode,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> FakeTensor:
    """A fake tensor from a pickle."""
    with mode:
        made = torch.empty_strided(size, stride, dtype=dtype, device=device)
    return made.requires_grad_(requires_grad)


class FakeTensorConverter:
    """Makes fake tensors of real ones and remembers which, for as long as both live."""

    def __init__(self, *, copy_data: bool = False, export: bool = False) -> None:
        self.meta_converter = _FakeMetaConverter(copy_data=copy_data)
        self.export = export

    @property
    def tensor_memo(self) -> Mapping[int, torch.Tensor]:
        """The fake tensors that are remembered, by the number of the real one."""
        return self.meta_converter.tensor_memo

    def from_real_tensor(
        self,
        fake_mode: FakeTensorMode,
        t: torch.Tensor,
        make_constant: bool = False,
        shape_env: ShapeEnv | None = None,
        *,
        source: Source | None = None,
        symbolic_context: SymbolicContext | None = None,
        trace: bool = True,
    ) -> FakeTensor:
        """The fake form of t. With make_constant it knows its values while it is small."""
        if make_constant:
            with _C._ExcludeDispatchKeyGuard(_ABOVE_META):
                meta = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")
            return FakeTensor(
                fake_mode,
                meta,
                t.device,
                constant=t if fake_mode.may_turn_const(t) else None,
                real_tensor=_copied(t) if self.meta_converter.copy_data else None,
            )
        return self.meta_converter.convert(
            fake_mode, t, shape_env, source=source, symbolic_context=symbolic_context
        )

    def from_meta_and_device(
        self,
        fake_mode: FakeTensorMode,
        t: torch.Tensor,
        device: torch.device | str,
        pytype: type[torch.Tensor] | None = None,
        dispatch_keys: _C.DispatchKeySet | None = None,
    ) -> FakeTensor:
        """The fake tensor that claims device for the meta tensor t."""
        if t.device.type != "meta":
            raise AssertionError(f"tensor's device must be `meta`, got {t.device.type} instead")
        number = self.meta_converter.describer.get_tensor_id(t)
        known = self.tensor_memo.get(number)
        if known is None:
            known = FakeTensor(fake_mode, t, device)
            self.meta_converter.tensor_memo[number] = known
        return known


class _FakeMetaConverter(MetaConverter):
    """Gives the images the device of what they stand for."""

    def __init__(self, *, copy_data: bool = False) -> None:
        super().__init__(copy_data=copy_data)
        self._mode: FakeTensorMode | None = None

    def convert(
        self,
        mode: FakeTensorMode,
        t: torch.Tensor,
        shape_env: ShapeEnv | None,
        *,
        source: Source | None = None,
        symbolic_context: SymbolicContext | None = None,
    ) -> torch.Tensor:
        """The fake form of t."""
        if is_sparse_any(t) or t.is_quantized or t.is_mkldnn or t.is_nested:
            raise UnsupportedFakeTensorException(f"meta converter nyi for {t.layout}")
        before, self._mode = self._mode, mode
        try:
            return self(t, shape_env, source=source, symbolic_context=symbolic_context)
        finally:
            self._mode = before

    def _finish(self, made: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        if not _C._is_fake(made):
            made = FakeTensor(self._mode, made, t.device)
        if self.copy_data and not _C._is_fake(t):
            made.real_tensor = _copied(t)
        return made


def _copied(real: torch.Tensor) -> torch.Tensor:
    """A copy without history."""
    with torch.no_grad(), _C._ExcludeDispatchKeyGuard(_ABOVE_META):
        return real.detach().clone(memory_format=torch.preserve_format)


@dataclasses.dataclass(frozen=True)
class DispatchCacheInfo:
    """Counters of a cache of results."""

    hits: int
    misses: int
    bypasses: dict[str, int]
    size: int


class FakeTensorMode(TorchDispatchMode):
    """Inside, factories make fake tensors, and operators on fake tensors compute shapes alone."""

    _mode_key = _FAKE
    cache: dict[object, object] = {}
    cache_hits = 0
    cache_misses = 0
    cache_bypasses: dict[str, int] = {}
    epoch = 0
    in_kernel_invocation = False
    nt_tensor_id_counter = 0
    nt_tensor_id_initial_count = 0

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: ShapeEnv | None = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        config = _fake_special.functorch_config()
        self._cell = _C._fake_new_cell()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.allow_meta = getattr(config, "fake_tensor_allow_meta", True)
        self.propagate_real_tensors = getattr(config, "fake_tensor_propagate_real_tensors", False)
        self.fake_tensor_converter = FakeTensorConverter(
            copy_data=self.propagate_real_tensors, export=export
        )
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        # Reading a value gives a symbol although the ShapeEnv does not ask for it.
        self.allow_scalar_outputs = False
        self.in_kernel_invocation = False
        self.enter_stack: list[FakeTensorMode | None] = []
        self.epoch = 0
        self.reset_nt_tensor_id_counter()

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def reset_nt_tensor_id_counter(self) -> None:
        """Nested tensors are numbered from the beginning again."""
        self.nt_tensor_id_counter = self.nt_tensor_id_initial_count

    @property
    def _native_handler(self) -> object | None:
        """What runs operators without Python; None for a class that takes part in each call."""
        kind = type(self)
        overridden = (
            kind.__torch_dispatch__ is not FakeTensorMode.__torch_dispatch__
            or kind.dispatch is not FakeTensorMode.dispatch
            or self.propagate_real_tensors
            or not self.allow_meta
        )
        return None if overridden else _C._fake_handler(self)

    def __enter__(self) -> FakeTensorMode:
        self.enter_stack.append(_C._unset_dispatch_mode(_FAKE))
        _C._set_dispatch_mode(self)
        return self

    def __exit__(
        self,
        a: type[BaseException] | None,
        b: BaseException | None,
        c: types.TracebackType | None,
    ) -> None:
        _C._unset_dispatch_mode(_FAKE)
        before = self.enter_stack.pop()
        if before is not None:
            _C._set_dispatch_mode(before)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        return self.dispatch(func, types, args, kwargs)

    def dispatch(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """The operator on fake tensors."""
        args, kwargs = tuple(args), dict(kwargs or {})
        if self.propagate_real_tensors:
            return _fake_special.run_beside_real(self, func, args, kwargs)
        result = _C._fake_call(self, func, args, kwargs)
        if not self.allow_meta:
            for t in pytree.tree_leaves(result):
                if _C._is_fake(t) and t.device.type == "meta":
                    raise AssertionError(f"{func} made a fake tensor of the meta device")
        return result

    def is_our_fake(self, t: object) -> bool:
        """Whether t is a fake tensor of this mode."""
        return _C._is_fake(t) and _C._fake_mode_of(t) is self

    def may_turn_const(self, t: torch.Tensor) -> bool:
        """Whether the fake form of a tensor keeps its values: it is small and has some."""
        return (
            t.layout is torch.strided
            and t.numel() <= CONSTANT_NUMEL_LIMIT
            and not _C._is_fake(t)
            and t.device.type != "meta"
        )

    def from_tensor(
        self,
        tensor: torch.Tensor,
        *,
        static_shapes: bool | None = None,
        source: Source | None = None,
        symbolic_context: SymbolicContext | None = None,
        trace: bool = True,
    ) -> FakeTensor:
        """The fake form of a tensor; the same one for the same tensor."""
        if self.is_our_fake(tensor):
            return tensor
        if is_traceable_wrapper_subclass(tensor):
            return self._from_wrapper(tensor, source, symbolic_context)
        static = self.static_shapes if static_shapes is None else static_shapes
        if static and symbolic_context is not None:
            raise AssertionError("cannot set both static_shapes and symbolic_context")
        return self.fake_tensor_converter.from_real_tensor(
            self,
            tensor,
            shape_env=None if static else self.shape_env,
            source=source,
            symbolic_context=symbolic_context,
            trace=trace,
        )

    def _from_wrapper(
        self,
        tensor: torch.Tensor,
        source: Source | None,
        symbolic_context: SymbolicContext | None,
    ) -> torch.Tensor:
        names, context = tensor.__tensor_flatten__()
        contexts = getattr(symbolic_context, "inner_contexts", {})
        with torch.no_grad():
            inner = {
                name: self.from_tensor(
                    getattr(tensor, name), source=source, symbolic_context=contexts.get(name)
                )
                for name in names
            }
            made = type(tensor).__tensor_unflatten__(inner, context, tensor.size(), tensor.stride())
        if tensor.is_leaf:
            made.requires_grad_(tensor.requires_grad)
        return made

    # ---- what the kernel asks

    def _admit(
        self,
        tensor: torch.Tensor,
        func: torch._ops.OpOverload,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> FakeTensor:
        """The fake form of a tensor of another kind among the arguments of func."""
        if _C._is_fake(tensor):
            raise AssertionError("Mixing fake modes NYI")
        if not self.allow_non_fake_inputs:
            call = _fake_special.render_call(func, tensor, args, kwargs)
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                f"with 'allow_non_fake_inputs'. Found in {call}"
            )
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def _run(
        self,
        func: torch._ops.OpOverload,
        need: str,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        """Runs func where the Meta kernel cannot; `need` says why (FakeMode::Need)."""
        return _fake_special.RULES[need](self, func, args, kwargs)

    @classmethod
    def _rule_registered(cls, op: torch._ops.OpOverload) -> None:
        """op.py_impl(FakeTensorMode) was called."""
        name, _, overload = op.name().partition(".")
        _C._fake_add_rule(name, overload)

    # ---- counters of a cache

    @classmethod
    def cache_info(cls) -> DispatchCacheInfo:
        """Counters of a cache of results: all zero, an operator costs less than a look-up."""
        return DispatchCacheInfo(
            FakeTensorMode.cache_hits,
            FakeTensorMode.cache_misses,
            dict(FakeTensorMode.cache_bypasses),
            len(FakeTensorMode.cache),
        )

    @classmethod
    def cache_clear(cls) -> None:
        """Sets the counters to zero."""
        FakeTensorMode.cache_hits = FakeTensorMode.cache_misses = 0
        FakeTensorMode.cache_bypasses.clear()
        FakeTensorMode.cache.clear()


class FakeCopyMode(TorchFunctionMode):
    """Inside, deepcopy and clone of real tensors give fake ones of a mode."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func is torch.Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), *args[1:], **kwargs)
        if func is not torch.Tensor.__deepcopy__:
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        tensor, memo = args
        if id(tensor) not in memo:
            memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
        return memo[id(tensor)]


def _is_tensor_constructor(func: torch._ops.OpOverload) -> bool:
    """Whether an operator makes a tensor from no other: it has a device, not those of arguments."""
    schema = func._schema
    if any("Tensor" in str(argument.type) for argument in schema.arguments):
        return False
    return len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor"


def is_fake(x: object) -> bool:
    """Whether x is a fake tensor, or a wrapper around fake tensors alone."""
    if _C._is_fake(x):
        return True
    if is_traceable_wrapper_subclass(x):
        inner = [is_fake(getattr(x, name)) for name in x.__tensor_flatten__()[0]]
        if any(inner) != all(inner):
            raise AssertionError("got mixed fake and real tensors!")
        return any(inner)
    unwrapped = _fake_special.unwrap_once(x)
    return unwrapped is not None and is_fake(unwrapped)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a fake tensor or of a wrapper around some; else None."""
    if _C._is_fake(t):
        return _C._fake_mode_of(t)
    if is_traceable_wrapper_subclass(t):
        modes = [maybe_get_fake_mode(getattr(t, name)) for name in t.__tensor_flatten__()[0]]
        if any(mode is not modes[0] for mode in modes):
            raise AssertionError("the parts of a wrapper are of different fake modes")
        return modes[0] if modes else None
    unwrapped = _fake_special.unwrap_once(t)
    return maybe_get_fake_mode(unwrapped) if unwrapped is not None else None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Inside, no FakeTensorMode is active; the value is the one that was."""
    before = _C._unset_dispatch_mode(_FAKE)
    try:
        yield before
    finally:
        if before is not None:
            _C._set_dispatch_mode(before)


@contextlib.contextmanager
def in_kernel_invocation_manager(fake_mode: FakeTensorMode) -> Iterator[None]:
    """Inside, the mode says that it is running a kernel."""
    before, fake_mode.in_kernel_invocation = fake_mode.in_kernel_invocation, True
    try:
        yield
    finally:
        fake_mode.in_kernel_invocation = before


def get_plain_tensors(subclass: torch.Tensor, *, out: list[object]) -> list[object]:
    """Appends the tensors that a wrapper is made of, taken apart to the bottom."""
    for name in subclass.__tensor_flatten__()[0]:
        inner = getattr(subclass, name)
        if is_traceable_wrapper_subclass(inner):
            get_plain_tensors(inner, out=out)
        else:
            out.append(inner)
    return out


def tree_flatten_only(ty: type, tree: object) -> list[object]:
    """The leaves of a tree that are of a type."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, ty)]


_C._fake_enable(FakeTensor)
