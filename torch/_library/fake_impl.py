"""What the fake form of an operator may ask for while it runs: sizes that only the data decide.
`torch.library.get_ctx()` hands out the context of the call that is running on this thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

__all__ = ["FakeImplCtx", "current_ctx", "with_ctx"]

_local = threading.local()


class FakeImplCtx:
    """The context of one call of a fake form."""

    def __init__(self, name: str, shape_env: ShapeEnv | None, is_fake: bool) -> None:
        self._name, self._shape_env, self._is_fake = name, shape_env, is_fake

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> torch.SymInt:
        """The old name of new_dynamic_size."""
        return self.new_dynamic_size(min=min, max=max)

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> torch.SymInt:
        """A size that is known only when the operator runs, at least `min` and at most `max`."""
        from torch._subclasses._fake_errors import DynamicOutputShapeException
        from torch.fx.experimental.symbolic_shapes import _constrain_range_for_size

        if not self._is_fake:
            raise RuntimeError(
                f"{self._name}: this operator may return tensors whose sizes depend on data, which "
                "tensors of the meta device cannot have; run it on FakeTensors instead"
            )
        for name, value in (("min", min), ("max", max)):
            if isinstance(value, torch.SymInt):
                raise ValueError(
                    f"ctx.new_dynamic_size(min={min}, max={max}): expected {name} to be statically "
                    f"known int but got SymInt"
                )
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal "
                "to 0: this API can only create non-negative sizes."
            )
        env = self._shape_env
        if env is None or not env.settings.allow_dynamic_output_shape_ops:
            raise DynamicOutputShapeException(_operator(self._name))
        size = env.create_unbacked_symint()
        _constrain_range_for_size(size, min=min, max=max)
        return size


def _operator(name: str) -> object:
    """The overload of "ns::op.overload"."""
    space, _, rest = name.partition("::")
    op, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), op), overload or "default")


def current_ctx() -> FakeImplCtx | None:
    """The context of the innermost call on this thread."""
    calls = getattr(_local, "calls", None)
    return calls[-1] if calls else None


@contextlib.contextmanager
def _calling(ctx: FakeImplCtx) -> Iterator[None]:
    if not hasattr(_local, "calls"):
        _local.calls = []
    _local.calls.append(ctx)
    try:
        yield
    finally:
        _local.calls.pop()


def _with_stand_ins(mode: object, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments, objects of C++ classes replaced by their stand-ins where a class has one."""
    from torch._library.fake_class_registry import has_fake_class, maybe_to_fake_obj

    def stand_in(value: object) -> object:
        if isinstance(value, torch._C.ScriptObject) and has_fake_class(
            value._type().qualified_name()
        ):
            return maybe_to_fake_obj(mode, value)
        return value

    if mode is None:
        return args, kwargs
    replaced = {name: stand_in(value) for name, value in kwargs.items()}
    return tuple(stand_in(value) for value in args), replaced


def with_ctx(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """The fake form of an operator as a kernel that has a context while it runs."""

    def kernel(*args: object, **kwargs: object) -> object:
        from torch._guards import detect_fake_mode

        mode = detect_fake_mode((args, kwargs))
        env = None if mode is None else mode.shape_env
        args, kwargs = _with_stand_ins(mode, args, kwargs)
        with _calling(FakeImplCtx(name, env, mode is not None)):
            return function(*args, **kwargs)

    return kernel
