"""Operators on fake tensors that the Meta backend cannot run: those that read data, those whose
shapes depend on data, those without a Meta kernel, and those with a rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import _C
from torch._subclasses import _fake_unbacked
from torch._subclasses._fake_errors import MetadataMismatchError, UnsupportedOperatorException
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_ABOVE_META = _C.DispatchKeySet(_C.DispatchKey.Fake) | _C.DispatchKeySet(_C.DispatchKey.Python)
# Operators of these libraries may be tried on real zeros; others have effects of their own.
_TRUSTED = ("aten", "prims", "prim", "debugprims", "xla", "vision", "torchvision", "torchtext")


class Memo:
    """A symbol that belongs to the values of a fake tensor; writing to the tensor forgets it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = "_" + name

    def __get__(self, tensor: FakeTensor | None, owner: type | None = None) -> object:
        if tensor is None:
            return self
        symbol, version = tensor.__dict__.get(self.key, (None, None))
        return symbol if version is not None and version == _version_of(tensor) else None

    def __set__(self, tensor: FakeTensor, symbol: object) -> None:
        tensor.__dict__[self.key] = (symbol, _version_of(tensor))


def _version_of(tensor: FakeTensor) -> int | None:
    """The count of writes; inference tensors have none, so nothing is remembered of them."""
    return None if tensor.is_inference() else tensor._version


def functorch_config() -> object:
    """The settings of torch._functorch, where they exist."""
    try:
        from torch._functorch import config
    except ImportError:
        return None
    return config


def unwrap_once(x: object) -> torch.Tensor | None:
    """What a tensor of a function transform wraps; None for others."""
    if isinstance(x, torch.Tensor) and _C._functorch.is_functorch_wrapped_tensor(x):
        return _C._functorch.get_unwrapped(x)
    return None


def render_call(
    func: OpOverload,
    real: torch.Tensor,
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> str:
    """The call as text without any values."""

    def render(value: object) -> str:
        if not isinstance(value, torch.Tensor):
            return repr(value)
        kind = "tensor([...]" if value is real else "FakeTensor(..."
        device = "" if value.device.type in ("cpu", "meta") else f", device='{value.device}'"
        return f"{kind}{device}, size={tuple(value.shape)})"

    def render_all(value: object) -> str:
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(render_all(item) for item in value) + "]"
        return render(value)

    parts = [render_all(a) for a in args] + [f"{k}={render_all(v)}" for k, v in kwargs.items()]
    return f"{func}({', '.join(parts)})"


def _lift(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    tensor = args[0]
    if _C._is_fake(tensor):
        return tensor.clone() if func._opname == "lift_fresh_copy" else tensor
    return mode.fake_tensor_converter.from_real_tensor(mode, tensor, make_constant=True)


def _by_rule(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    for kind in type(mode).__mro__:
        if kind in func.python_key_table:
            return func.python_key_table[kind](mode, *args, **kwargs)
    raise UnsupportedOperatorException(func)


def run_fallback_kernel(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    orig_not_implemented_exception: Exception,
) -> object:
    """The operator on real tensors of zeros, for the form of its result."""
    if torch.Tag.inplace_view in func.tags:
        raise orig_not_implemented_exception
    flat, spec = pytree.tree_flatten((args, kwargs))
    made: dict[int, torch.Tensor] = {}
    fakes: dict[int, torch.Tensor] = {}
    device = torch.device("cpu")

    def real_of(value: object) -> object:
        nonlocal device
        if not _C._is_fake(value):
            return torch.device("cpu") if isinstance(value, torch.device) else value
        if id(value) not in made:
            # A storage of the right size under the same view.
            count = value.untyped_storage().nbytes() // value.element_size()
            memory = torch.zeros(count, dtype=value.dtype, device="cpu")
            made[id(value)] = memory.as_strided(
                value.size(), value.stride(), value.storage_offset()
            )
        real = made[id(value)]
        fakes[id(real)] = value
        device = value.device if value.device.type != "cpu" else device
        return real

    with _C._ExcludeDispatchKeyGuard(_ABOVE_META):
        real_args, real_kwargs = pytree.tree_unflatten([real_of(v) for v in flat], spec)
        results = func(*real_args, **real_kwargs)
        storages = {t.untyped_storage()._cdata for t in made.values()}

        def meta_of(value: object) -> object:
            if not isinstance(value, torch.Tensor) or id(value) in fakes:
                return value
            if func.is_view or value.untyped_storage()._cdata in storages:
                raise orig_not_implemented_exception
            return value.to("meta")

        results = pytree.tree_map(meta_of, results)

    def fake_of(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        known = fakes.get(id(value))
        if known is not None:
            return known
        return mode.fake_tensor_converter.from_meta_and_device(mode, value, device)

    return pytree.tree_map(fake_of, results)


def run_beside_real(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    """The operator on fake tensors and, where all of them have one, on the real tensors beside
    them, which the results then have too."""
    from torch._subclasses.fake_utils import _same_form

    flat, spec = pytree.tree_flatten((args, kwargs))
    fakes = [value for value in flat if _C._is_fake(value)]
    known = all(fake.real_tensor is not None for fake in fakes)
    real = None
    if known and not any(isinstance(v, torch.Tensor) and not _C._is_fake(v) for v in flat):
        reals = [_real(value) for value in flat]
        with _C._ExcludeDispatchKeyGuard(_ABOVE_META):
            real_args, real_kwargs = pytree.tree_unflatten(reals, spec)
            real = func(*real_args, **real_kwargs)
    result = _C._fake_call(mode, func, args, kwargs)
    if real is None:
        return result
    pairs = zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True)
    for fake, value in pairs:
        if isinstance(fake, (torch.SymInt, torch.SymBool)):
            _learn(mode, fake, value)
        if not _C._is_fake(fake) or not isinstance(value, torch.Tensor):
            continue
        for size, number in zip(fake.shape, value.shape, strict=True):
            if isinstance(size, torch.SymInt):
                _learn(mode, size, number)
        symbolic = any(isinstance(size, torch.SymInt) for size in (*fake.shape, *fake.stride()))
        # Comparing a size with a number would state that they are equal.
        difference = (
            _other_sizes(fake, value) if symbolic else _same_form(value, fake, check_grad=False)
        )
        if difference is not None:
            raise MetadataMismatchError(
                f"Real tensor propagation found a metadata mismatch for {func}: {difference}"
            )
        if fake.real_tensor is None:
            fake.real_tensor = value
    return result


def _other_sizes(fake: torch.Tensor, value: torch.Tensor) -> str | None:
    hints = [s.node.hint if isinstance(s, torch.SymInt) else s for s in fake.shape]
    same = all(h is None or int(h) == n for h, n in zip(hints, value.shape, strict=True))
    if same and fake.dtype is value.dtype:
        return None
    return f"{fake.dtype} of {hints} and {value.dtype} of {list(value.shape)}"


def _real(value: object) -> object:
    if _C._is_fake(value):
        return value.real_tensor
    hint = value.node.hint if isinstance(value, torch.SymInt) else None
    return value if hint is None else int(hint)


def _learn(mode: FakeTensorMode, number: torch.SymInt | torch.SymBool, value: int) -> None:
    """What a number from data is in the example answers questions about it."""
    expr = number.node.expr
    symbols = expr.free_symbols
    # A truth value is Eq(symbol, 1).
    plain = expr.is_Symbol or isinstance(number, torch.SymBool)
    if number.node.hint is None and plain and len(symbols) == 1:
        mode.shape_env.set_unbacked_var_to_val(next(iter(symbols)), int(value))


def _without_meta(
    mode: FakeTensorMode,
    func: OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> object:
    if func._schema.is_mutable and not func._schema.returns:
        return None  # it only writes: no result has to be described
    error = UnsupportedOperatorException(func)
    if not mode.allow_fallback_kernels or func.namespace not in _TRUSTED:
        raise error
    return run_fallback_kernel(mode, func, args, kwargs, error)


_Rule = Callable[
    ["FakeTensorMode", "OpOverload", "tuple[object, ...]", "dict[str, object]"], object
]
RULES: dict[str, _Rule] = {
    "data": _fake_unbacked.value_symbol,
    "dynamic_shape": _fake_unbacked.sized_result,
    "no_meta": _without_meta,
    "rule": _by_rule,
    "lift": _lift,
}
