"""torch.autograd.Function: operators whose forward and backward are written in Python.

`apply` is in C++ (torch._C._FunctionBase). Here are the methods that a context offers to the
user's code and the metaclass that makes a context class for every function.
"""

from __future__ import annotations

import functools

import torch
from torch import _C

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What `ctx` can do in forward, setup_context and backward."""

    def save_for_backward(self, *tensors) -> None:
        """Keeps tensors for backward, where they are `ctx.saved_tensors`. Call it once; None is
        kept too."""
        self.to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Keeps tensors for jvp."""
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor) and tensor is not None:
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args) -> None:
        """Says which inputs forward wrote to; each must be among the outputs."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args) -> None:
        """Says which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value) -> None:
        """Whether backward gets zeros (the default) or None for outputs without gradient."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs) -> None:
        """Removed: nothing has to be said about shared storage."""
        import warnings

        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked.",
            FutureWarning,
            stacklevel=2,
        )


# The name it had before; other packages still derive from it.
_ContextMethodMixin = FunctionCtx


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """Base of the context classes, one for each Function."""

    def apply(self, *grads):
        """Runs the function's backward."""
        return type(self)._forward_cls._resolved_backward(self, *grads)

    def apply_jvp(self, *tangents):
        """Runs the function's jvp."""
        return type(self)._forward_cls.jvp(self, *tangents)


def _resolve_backward(cls):
    """The function that computes gradients: backward or its other name vjp."""
    has_backward = cls.backward is not _SingleLevel.backward
    has_vjp = cls.vjp is not _SingleLevel.vjp
    if has_backward and has_vjp:

        def refuse(ctx, *grads):
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )

        return refuse
    return cls.vjp if has_vjp else cls.backward


class FunctionMeta(type):
    """Makes the context class of each Function."""

    def __init__(cls, name, bases, attrs) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        single = globals().get("_SingleLevel")
        if single is not None:
            cls._resolved_backward = staticmethod(_resolve_backward(cls))
            cls._has_setup_context = cls.setup_context is not single.setup_context

    def __setattr__(cls, name, value) -> None:
        super().__setattr__(name, value)
        # A backward that is replaced later counts too.
        if name in ("backward", "vjp") and "_resolved_backward" in cls.__dict__:
            super().__setattr__("_resolved_backward", staticmethod(_resolve_backward(cls)))


class _SingleLevel(_C._FunctionBase, FunctionCtx, metaclass=FunctionMeta):
    @staticmethod
    def forward(*args, **kwargs):
        """The operation: `forward(ctx, *args)`, or `forward(*args)` where setup_context is
        defined."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Stores in ctx what backward needs, given forward's inputs and output."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of forward's inputs, one for each, from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def vjp(ctx, *grad_outputs):
        """Another name for backward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )


class _SingleLevelFunction(_SingleLevel):
    """A Function for kernels that handle levels of function transforms by hand: apply records one
    step, whatever levels its arguments belong to."""

    _bypass_transforms = True


class Function(_SingleLevel):
    """Base class of custom operators.

    Define the static methods `forward` and `backward` (and `setup_context`, `jvp`, `vmap` as
    needed) and call `YourFunction.apply(*args)`.
    """

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs) -> None:
        import warnings

        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """How the function acts on batched inputs."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def _bind_arguments(cls, args, kwargs):
        """Positional arguments of one call of forward: keywords in their places, defaults filled
        in."""
        signature = _signature(cls.forward)
        context = () if cls._has_setup_context else (None,)
        bound = signature.bind(*context, *args, **kwargs)
        if cls._has_setup_context:
            bound.apply_defaults()
        if any(isinstance(value, _C.TensorBase) for value in bound.kwargs.values()):
            raise NotImplementedError(f"{cls.__name__}.apply: kwarg-only Tensor args")
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.apply: keyword-only arguments are not supported")
        return bound.args[len(context) :]


@functools.lru_cache(maxsize=256)
def _signature(function):
    # Not loaded with the package: it costs a tenth of the time of `import torch`.
    import inspect

    return inspect.signature(function)


class InplaceFunction(Function):
    """A Function with a flag `inplace`, kept for old programs."""

    def __init__(self, inplace=False) -> None:
        super().__init__()
        self.inplace = inplace


class _RaiseAtBackward(Function):
    """Gives its arguments back; differentiating them raises the message."""

    @staticmethod
    def forward(ctx, message, *tensors) -> tuple[torch.Tensor, ...]:
        ctx.message = message
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


def once_differentiable(fn):
    """Decorates a backward that cannot itself be differentiated: a second derivative raises."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with torch.no_grad():
            outputs = fn(ctx, *args)
        if not torch.is_grad_enabled():
            return outputs
        if not any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        items = (outputs,) if single else outputs
        tensors = [
            t.detach().requires_grad_()
            for t in items
            if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())
        ]
        if not tensors:
            return outputs
        raising = iter(
            _RaiseAtBackward.apply(
                "trying to differentiate twice a function that was marked with "
                "@once_differentiable",
                *tensors,
            )
        )
        marked = tuple(
            next(raising)
            if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())
            else t
            for t in items
        )
        return marked[0] if single else marked

    return wrapper


def _flatten(value, tensors):
    """The structure of nested tuples and lists, with tensors replaced by their number."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return len(tensors) - 1
    if isinstance(value, (tuple, list)):
        return type(value)(_flatten(v, tensors) for v in value)
    if value is None:
        return None
    raise ValueError(f"NestedIOFunction: got an object of type {type(value).__name__}")


def _unflatten(structure, tensors):
    if isinstance(structure, (tuple, list)):
        return type(structure)(_unflatten(s, tensors) for s in structure)
    return None if structure is None else tensors[structure]


class NestedIOFunction(Function):
    """A Function whose inputs and outputs may be nested tuples and lists of tensors. Subclasses
    define forward_extended and backward_extended, which are called with the context first."""

    @classmethod
    def apply(cls, *args) -> object:
        tensors = []
        structure = _flatten(args, tensors)
        box = []

        class Flat(Function):
            @staticmethod
            def forward(ctx, *flat) -> tuple[torch.Tensor, ...]:
                ctx._nested_input, ctx._nested_class = structure, cls
                outputs = cls.forward(ctx, *flat)
                box.append(ctx._nested_output)
                return outputs

            @staticmethod
            def backward(ctx, *grads) -> tuple[torch.Tensor, ...]:
                return cls.backward(ctx, *grads)

        Flat.__name__ = cls.__name__
        outputs = Flat.apply(*tensors)
        return _unflatten(box[0], outputs)

    def forward(self, *args) -> tuple[torch.Tensor, torch.Tensor]:
        """forward_extended on flat tensors in the nesting of the inputs; flat outputs."""
        nested = _unflatten(self._nested_input, args)
        result = self._nested_class.forward_extended(self, *nested)
        outputs = []
        self._nested_output = _flatten(result, outputs)
        return tuple(outputs)

    def backward(self, *gradients) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """backward_extended on the gradients in the nesting of the outputs; flat gradients."""
        nested = _as_arguments(_unflatten(self._nested_output, gradients))
        flat = []
        _flatten(self._nested_class.backward_extended(self, *nested), flat)
        return tuple(flat)

    def forward_extended(self, *input):
        """The operation on nested inputs."""
        raise NotImplementedError

    def backward_extended(self, *grad_output):
        """Gradients in the nesting of the inputs."""
        raise NotImplementedError


def _as_arguments(value) -> object:
    return value if isinstance(value, tuple) else (value,)


def _nested_map(condition, fn, condition_msg=None):
    """A function that applies fn to the values inside of tuples, lists and dictionaries that meet a
    condition. None stays None; any other value is a ValueError."""

    def mapped(value):
        if condition(value):
            return fn(value)
        if value is None:
            return None
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(mapped, value))
        if isinstance(value, list | tuple):
            return type(value)(map(mapped, value))
        if isinstance(value, dict):
            return {key: mapped(item) for key, item in value.items()}
        told = f". {condition_msg}" if condition_msg else ""
        raise ValueError(f"cannot go through a value of type {type(value).__name__}{told}")

    return mapped
