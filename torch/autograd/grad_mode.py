"""Context managers and decorators that turn the recording of gradients on and off.

Entering and leaving are in C++ (torch/csrc/python/autograd/modes.cpp); decorating is here.
"""

from __future__ import annotations

import functools
import typing

from torch import _C

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
]

_F = typing.TypeVar("_F", bound="typing.Callable[..., typing.Any]")


class _Decorator:
    """Lets a context manager decorate functions and generator functions."""

    def clone(self):
        """A fresh context manager for one call of the decorated function."""
        return type(self)()

    def __call__(self, orig_func: _F) -> _F:
        if isinstance(orig_func, type):
            orig_func.__init__ = self(orig_func.__init__)
            return orig_func
        clone = self.clone
        if _is_generator_function(orig_func):
            return _generator(clone, orig_func)

        @functools.wraps(orig_func)
        def wrapper(*args, **kwargs):
            with clone():
                return orig_func(*args, **kwargs)

        return wrapper


def _is_generator_function(func) -> bool:
    # As inspect.isgeneratorfunction, whose module is slow to load.
    while isinstance(func, functools.partial):
        func = func.func
    code = getattr(func, "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)


def _generator(clone, func):
    """The mode holds while the generator runs, not while its caller does."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        generator = func(*args, **kwargs)
        resume, given = generator.send, None
        while True:
            try:
                with clone():
                    produced = resume(given)
            except StopIteration as stop:
                return stop.value
            try:
                resume, given = generator.send, (yield produced)
            except GeneratorExit:
                with clone():
                    generator.close()
                raise
            except BaseException as error:
                resume, given = generator.throw, error

    return wrapper


class no_grad(_C._NoGradBase, _Decorator):
    """Gradients are not recorded inside."""


class enable_grad(_C._EnableGradBase, _Decorator):
    """Gradients are recorded inside, also within no_grad."""


class set_grad_enabled(_C._SetGradEnabledBase, _Decorator):
    """Switches recording at once; as a context manager, until the end of the with statement."""

    def __call__(self, orig_func):
        _C._set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_C._InferenceModeBase, _Decorator):
    """As no_grad, and tensors made inside have no version counter: they can never take part in
    gradients."""

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


def _enter_inference_mode(mode: bool) -> inference_mode | no_grad | enable_grad:
    """Enters the context inside of a graph, which has no `with`. While a graph is traced with fake
    tensors it is the mode of gradients alone: tensors of a graph are never inference tensors, since
    gradients may be needed of others that are computed from the same inputs."""
    traced = _C._get_dispatch_mode(_C._TorchDispatchModeKey.FAKE) is not None
    context = (no_grad() if mode else enable_grad()) if traced else inference_mode(mode)
    context.__enter__()
    return context


def _exit_inference_mode(context: inference_mode | no_grad | enable_grad) -> None:
    """Leaves what _enter_inference_mode entered."""
    context.__exit__(None, None, None)


class set_multithreading_enabled(_Decorator):
    """Whether a backward pass may use several threads."""

    def __init__(self, mode) -> None:
        self.prev = _C._is_multithreading_enabled()
        _C._set_multithreading_enabled(mode)
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args) -> None:
        _C._set_multithreading_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)


class _force_original_view_tracking(_Decorator):
    """Whether a view whose base was written is made again by the operators that made it, rather
    than by its strides: from here, or for the duration of a `with` block."""

    def __init__(self, mode) -> None:
        self.prev = _C._is_view_replay_enabled()
        _C._set_view_replay_enabled(mode)
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args) -> None:
        _C._set_view_replay_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)
