"""torch.autograd.Function inside function transforms.

`Function.apply` comes here when a tensor of a transform is among its arguments. The newest level
handles the call: a grad level records the function's own backward and applies the function again on
the values below, a vmap level asks for the function's rule for batches or makes one, a jvp level
runs the function's jvp.
"""

from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch._C import _functorch as _F
from torch._functorch.pyfunctorch import below as values_of
from torch._functorch.vmap import unwrap_tree, vmap_increment_nesting
from torch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten


class VmapInfo(NamedTuple):
    """What a vmap staticmethod is told of the batch."""

    batch_size: int
    randomness: str


def _newest_level(args):
    levels = [_F.maybe_get_level(a) for a in tree_flatten(args)[0] if isinstance(a, torch.Tensor)]
    return max((level for level in levels if level > 0), default=None)


def custom_function_call(function, args):
    """function.apply(*args) where some argument belongs to a transform."""
    if not function._has_setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            "jacrev, ...), it must override the setup_context staticmethod. For more details, "
            "please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    level = _newest_level(args)
    if level is None:
        return function.apply(*_settled(args))
    kind = _F._level_kinds()[level - 1]
    return {"grad": _apply_grad, "vmap": _apply_vmap, "jvp": _apply_jvp}[kind](
        function, args, level
    )


def _settled(args):
    def bare(t):
        while isinstance(t, torch.Tensor) and _F.maybe_get_level(t) == -2:
            t = _F.get_unwrapped(t)
        return t

    return tree_map(bare, args)


# ---- grad ----------------------------------------------------------------------------------


def _apply_grad(function, args, level):
    mode = torch.is_grad_enabled() and _F._grad_mode_outside(level)

    def unwrap(leaf):
        return _F._unwrap_for_grad(leaf, level) if isinstance(leaf, torch.Tensor) else leaf

    def run_below(inputs):
        below = tree_map(unwrap, inputs)
        # An output that is an input stays one: functions that write to their inputs return them.
        same = {
            id(b): a
            for a, b in zip(tree_flatten(inputs)[0], tree_flatten(below)[0], strict=True)
            if isinstance(a, torch.Tensor)
        }

        def wrap(leaf):
            if not isinstance(leaf, torch.Tensor):
                return leaf
            return same[id(leaf)] if id(leaf) in same else _F._wrap_for_grad(leaf, level)

        with torch.set_grad_enabled(mode), values_of(level):
            found = function.apply(*below)
        return tree_map(wrap, found)

    class Generated(torch.autograd.Function):
        _bypass_transforms = True

        @staticmethod
        def forward(ctx, *inputs):
            outputs = run_below(inputs)
            function.setup_context(ctx, inputs, outputs)
            return outputs

        @staticmethod
        def backward(ctx, *grads):
            return function._resolved_backward(ctx, *grads)

    Generated.__name__ = function.__name__
    return Generated.apply(*args)


# ---- vmap ----------------------------------------------------------------------------------


def _wrap_outputs(name, result, level):
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {name} to return (output, out_dims), "
            f"got {type(result)}"
        )
    output, out_dims = result
    flat, spec = tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise RuntimeError(
            f"The vmap staticmethod of {name} returned an incompatible (output, out_dims) tuple: "
            f"out_dims {out_dims} do not match the structure of its output"
        )
    wrapped = [
        o
        if d is None or not isinstance(o, torch.Tensor)
        else _F._add_batch_dim(o, d % o.dim(), level)
        for o, d in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(wrapped, spec)


def _apply_vmap(function, args, level):
    overridden = function.vmap is not torch.autograd.Function.vmap
    if function.generate_vmap_rule and overridden:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True "
            "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete "
            "the overridden vmap staticmethod to avoid ambiguity. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if not function.generate_vmap_rule and not overridden:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. "
            "Please override and implement the vmap staticmethod or set generate_vmap_rule=True. "
            "For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    size, randomness = _F._vmap_info(level)
    values, dims = unwrap_tree(tuple(args), level)
    if overridden:
        result = function.vmap(VmapInfo(size, randomness), dims, *values)
        return _wrap_outputs(function.__name__, result, level)
    batched = _batched_function(function, dims, size, randomness)
    return _wrap_outputs(function.__name__, (batched.apply(*values), 0), level)


def batched_kernel(name, rule):
    """A kernel for batched tensors of an operator whose rule, `rule()`, is that of a Function."""

    def kernel(*args, **kwargs):
        level = _newest_level((args, kwargs))
        size, randomness = _F._vmap_info(level)
        values, dims = unwrap_tree(tuple(args), level)
        named, _ = unwrap_tree(kwargs, level)
        result = rule()(VmapInfo(size, randomness), dims, *values, **named)
        return _wrap_outputs(name, result, level)

    return kernel


class _Context:
    """The context of a function under a vmap level: tensors saved and read are those of the level,
    while the context behind it keeps values."""

    def __init__(self, ctx, level, dims=None) -> None:
        object.__setattr__(self, "_behind", (ctx, level, dims))

    def __getattr__(self, name):
        return getattr(self._behind[0], name)

    def __setattr__(self, name, value) -> None:
        setattr(self._behind[0], name, value)

    def save_for_backward(self, *tensors) -> None:
        ctx, level, _ = self._behind
        values, dims = unwrap_tree(tensors, level)
        ctx.save_for_backward(*values)
        ctx._saved_dims = dims

    def save_for_forward(self, *tensors) -> None:
        ctx, level, _ = self._behind
        values, dims = unwrap_tree(tensors, level)
        ctx.save_for_forward(*values)
        ctx._saved_dims = dims

    def mark_dirty(self, *tensors) -> None:
        ctx, level, _ = self._behind
        ctx.mark_dirty(*unwrap_tree(tensors, level)[0])

    def mark_non_differentiable(self, *tensors) -> None:
        ctx, level, _ = self._behind
        ctx.mark_non_differentiable(*unwrap_tree(tensors, level)[0])

    @property
    def saved_tensors(self):
        ctx, level, _ = self._behind
        return tuple(
            t if d is None or t is None else _F._add_batch_dim(t, d, level)
            for t, d in zip(ctx.saved_tensors, ctx._saved_dims, strict=True)
        )


def _rewrapped(values, dims, level):
    flat, spec = tree_flatten(values)
    flat_dims = _broadcast_to_and_flatten(dims, spec, is_leaf=lambda d: d is None)
    return tree_unflatten(
        [
            v if d is None or not isinstance(v, torch.Tensor) else _F._add_batch_dim(v, d, level)
            for v, d in zip(flat, flat_dims, strict=True)
        ],
        spec,
    )


def _in_front(tree, level, size):
    return tree_map(
        lambda t: _F._remove_batch_dim(t, level, size, 0) if isinstance(t, torch.Tensor) else t,
        tree,
    )


def _gradient_of_input(grad, dim, level, size):
    """A gradient at a value: with its batch where the value has one, else summed over it."""
    if grad is None:
        return None
    if dim is not None:
        return _F._remove_batch_dim(grad, level, size, dim)
    batched = _F.is_batchedtensor(grad) and _F.maybe_get_level(grad) == level
    return _F._remove_batch_dim(grad, level, size, 0).sum(0) if batched else grad * size


def _batched_function(function, in_dims, size, randomness):
    """A function of values with batches that runs `function` under vmap, backward too."""

    @contextmanager
    def level():
        with vmap_increment_nesting(size, randomness) as number:
            yield number

    class Batched(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*values):
            with level() as number:
                outputs = function.forward(*_rewrapped(values, in_dims, number))
                return _in_front(outputs, number, size)

        @staticmethod
        def setup_context(ctx, inputs, output) -> None:
            with level() as number:
                function.setup_context(
                    _Context(ctx, number),
                    _rewrapped(inputs, in_dims, number),
                    _rewrapped(output, 0, number),
                )

        @staticmethod
        def backward(ctx, *grads):
            with level() as number:
                result = function._resolved_backward(
                    _Context(ctx, number), *_rewrapped(grads, 0, number)
                )
                result = result if isinstance(result, tuple) else (result,)
                return tuple(
                    _gradient_of_input(g, d if isinstance(d, int) else None, number, size)
                    for g, d in zip(result, in_dims, strict=True)
                )

        @staticmethod
        def jvp(ctx, *tangents):
            with level() as number:
                wrapped = [
                    t if t is None or d is None else _F._add_batch_dim(t, d, number)
                    for t, d in zip(tangents, in_dims, strict=True)
                ]
                result = function.jvp(_Context(ctx, number), *wrapped)
                return _in_front(result, number, size)

    Batched.__name__ = f"Vmapped{function.__name__}"
    return Batched


# ---- jvp -----------------------------------------------------------------------------------


class _ForwardContext(torch.autograd.function.FunctionCtx):
    """What setup_context and jvp see of a context."""

    needs_input_grad = ()

    @property
    def saved_tensors(self):
        return getattr(self, "saved_for_forward", None) or getattr(self, "to_save", ())


def _apply_jvp(function, args, level):
    pairs = [_F._unwrap_dual(a, level) if isinstance(a, torch.Tensor) else (a, None) for a in args]
    primals = tuple(p for p, _ in pairs)
    with values_of(level):
        outputs = function.apply(*primals)
        ctx = _ForwardContext()
        ctx.needs_input_grad = tuple(t is not None for _, t in pairs)
        function.setup_context(ctx, primals, outputs)
        tangents = [
            torch.zeros_like(p)
            if t is None and isinstance(p, torch.Tensor) and getattr(ctx, "materialize_grads", True)
            else t
            for p, t in pairs
        ]
        result = function.jvp(ctx, *tangents)
    result = result if isinstance(result, tuple) else (result,)
    single = not isinstance(outputs, tuple)
    items = (outputs,) if single else outputs
    with values_of(level):
        wrapped = tuple(
            o if t is None or not isinstance(o, torch.Tensor) else _F._wrap_for_jvp(o, t, level)
            for o, t in zip(items, result, strict=True)
        )
    return wrapped[0] if single else wrapped
