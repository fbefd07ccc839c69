"""Context managers and decorators that turn the recording of gradients on and off."""

import functools
import inspect

from torch import _C

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
]


class _Decorator:
    """Lets a context manager decorate functions and generator functions."""

    def clone(self):
        """A fresh context manager for one call of the decorated function."""
        return type(self)()

    def __call__(self, func):
        if inspect.isclass(func):
            func.__init__ = self(func.__init__)
            return func
        clone = self.clone
        if inspect.isgeneratorfunction(func):
            return _generator(clone, func)

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with clone():
                return func(*args, **kwargs)

        return wrapper


def _generator(clone, func):
    """The mode holds while the generator runs, not while its caller does."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        generator = func(*args, **kwargs)
        try:
            with clone():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with clone():
                        generator.close()
                    raise
                except BaseException as error:
                    with clone():
                        response = generator.throw(error)
                else:
                    with clone():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


class _GradMode(_Decorator):
    """Switches recording for the with statement; may also decorate, without parentheses too."""

    mode = False

    def __new__(cls, orig_func=None):
        self = object.__new__(cls)
        if orig_func is not None:
            return self(orig_func)
        return self

    def __init__(self, orig_func=None):
        self.prev = False

    def __enter__(self):
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)


class no_grad(_GradMode):
    """Gradients are not recorded inside."""


class enable_grad(_GradMode):
    """Gradients are recorded inside, also within no_grad."""

    mode = True


class set_grad_enabled(_Decorator):
    """Switches recording at once; as a context manager, until the end of the with statement."""

    def __init__(self, mode):
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(bool(mode))

    def __call__(self, func):
        _C._set_grad_enabled(self.prev)
        return super().__call__(func)

    def __enter__(self):
        _C._set_grad_enabled(bool(self.mode))

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_grad_enabled(self.prev)

    def __str__(self):
        return f"torch.set_grad_enabled(mode={self.mode})"

    def __repr__(self):
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_Decorator):
    """As no_grad, and tensors made inside have no version counter: they can never take part in
    gradients."""

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self._guard = _C._InferenceMode(self.mode)
        self._guard.__enter__()

    def __exit__(self, exc_type, exc_value, traceback):
        self._guard.__exit__(exc_type, exc_value, traceback)

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_Decorator):
    """Whether a backward pass may use several threads."""

    def __init__(self, mode):
        self.prev = _C._is_multithreading_enabled()
        _C._set_multithreading_enabled(mode)
        self.mode = mode

    def __enter__(self):
        pass

    def __exit__(self, *args):
        _C._set_multithreading_enabled(self.prev)

    def clone(self):
        return type(self)(self.mode)
