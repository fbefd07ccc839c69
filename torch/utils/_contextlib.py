"""Context managers that are decorators too, as no_grad is: for programs that derive their own."""

from torch.autograd.grad_mode import _Decorator

__all__ = ["context_decorator"]


class _DecoratorContextManager(_Decorator):
    """A context manager that decorates functions, generator functions and classes. A subclass with
    parameters gives `clone`, which returns a fresh context manager for each call."""

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without parameters, which can decorate as @name as well as @name()."""

    def __new__(cls, orig_func=None):
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)


class _Factory(_Decorator):
    def __init__(self, make) -> None:
        self.clone = make


def context_decorator(ctx, func):
    """`func` run inside of a context manager, or of what a function without arguments makes for
    each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), "
            "making it ambiguous which interface to use."
        )
    return _Factory(ctx if callable(ctx) else lambda: ctx)(func)
