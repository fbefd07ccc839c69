"""grad, vjp, jvp and what is made of them: jacrev, jacfwd, hessian, linearize, functionalize.

Each transform opens a level, wraps the inputs it differentiates, calls the function and takes the
results out of the level again.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any

import torch
from torch import _C
from torch._C import _functorch as _F
from torch._functorch.vmap import vmap
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

_engine = _C._ImperativeEngine()

_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


@contextmanager
def grad_increment_nesting() -> Any:
    """A grad level for the duration of a block; gives its number."""
    level = _F._grad_increment_nesting()
    try:
        with torch.enable_grad(), torch.autograd.graph.disable_saved_tensors_hooks(_NO_HOOKS):
            yield level
    finally:
        _F._grad_decrement_nesting()


@contextmanager
def jvp_increment_nesting() -> Any:
    """A jvp level for the duration of a block; gives its number."""
    level = _F._jvp_increment_nesting()
    try:
        with _set_fwd_grad_enabled(True):
            yield level
    finally:
        _F._jvp_decrement_nesting()


def _tensors_only(tree, what):
    flat, spec = tree_flatten(tree)
    for leaf in flat:
        if not isinstance(leaf, torch.Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    return flat, spec


def _unwrap(tree, level):
    return tree_map_only(torch.Tensor, lambda t: _F._unwrap_for_grad(t, level), tree)


def _wrap(tree, level):
    return tree_map_only(torch.Tensor, lambda t: _F._wrap_for_grad(t, level), tree)


def _tensor_outputs(output, name):
    """The results of a function, of which there are some and which are tensors; their structure."""
    flat, spec = tree_flatten(output)
    if not flat or flat == [None]:
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {output})"
        )
    for leaf in flat:
        if not isinstance(leaf, torch.Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return flat, spec


def _wrap_differentiable(tree, level):
    flat, spec = _tensors_only(tree, "inputs")
    return tree_unflatten([_F._wrap_for_grad(t, level, True) for t in flat], spec)


def _run_backward(outputs, vectors, inputs, create_graph):
    """Gradients of outputs at inputs, None where there is none. A call of its own in graphs."""
    return _engine.run_backward(
        tuple(outputs), tuple(vectors), True, create_graph, tuple(inputs), True, False
    )


_run_backward._torchdynamo_rule = "graph"


def _gradients(outputs, inputs, vectors):
    """Gradients at `inputs`, zeros where an input plays no part."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not pairs or not inputs:
        return [torch.zeros_like(i) for i in inputs]
    outs, grads = zip(*pairs, strict=True)
    found = _run_backward(outs, grads, inputs, True)
    return [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, found, strict=True)]


# ---- arguments -----------------------------------------------------------------------------


def _checked_argnum(argnum, count):
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def _argnums(argnums, count):
    """Argument numbers as a tuple of non-negative integers."""
    if isinstance(argnums, int):
        return (_checked_argnum(argnums, count),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = tuple(_checked_argnum(a, count) for a in argnums)
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    return numbers


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments that `argnums` names; one alone where as_tuple is False and it is an int."""
    chosen = tuple(args[n] for n in _argnums(argnums, len(args)))
    return chosen if as_tuple or isinstance(argnums, tuple) else chosen[0]


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _with_arguments(args, numbers, values):
    args = list(args)
    for number, value in zip(numbers, values, strict=True):
        args[number] = value
    return tuple(args)


def _split_aux(output, has_aux, name):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for leaf in tree_flatten(output[1])[0]:
        if not isinstance(leaf, torch.Tensor):
            raise RuntimeError(f"{name}: Expected tensors, got unsupported type {type(leaf)}")
    return output


# ---- grad ----------------------------------------------------------------------------------


def grad_and_value(func, argnums=0, has_aux=False) -> Any:
    """A function that gives the gradient of `func`, which must give a scalar, and its value."""

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapper(*args, **kwargs):
        return grad_and_value_impl(func, argnums, has_aux, args, kwargs)

    return wrapper


def grad_and_value_impl(func, argnums, has_aux, args, kwargs) -> Any:
    """((gradient, value) or (gradient, (value, aux))."""
    numbers = _argnums(argnums, len(args))
    with grad_increment_nesting() as level:
        wrapped = [a if i in numbers else _wrap(a, level) for i, a in enumerate(args)]
        for number in numbers:
            wrapped[number] = _wrap_differentiable(args[number], level)
        output = func(*wrapped, **_wrap(kwargs, level))
        output, aux = _split_aux(output, has_aux, "grad_and_value(f)(*args)")
        if not isinstance(output, torch.Tensor):
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                f"{type(output)}"
            )
        if output.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                f"with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        selected = (
            wrapped[numbers[0]] if isinstance(argnums, int) else tuple(wrapped[n] for n in numbers)
        )
        flat, spec = tree_flatten(selected)
        grads = _gradients([output], flat, [torch.ones_like(output)])
        grads = tree_unflatten([_F._unwrap_for_grad(g, level) for g in grads], spec)
        value = _unwrap(output, level)
        return (grads, (value, _unwrap(aux, level))) if has_aux else (grads, value)


def grad(func, argnums=0, has_aux=False) -> Any:
    """A function that gives the gradient of `func`, which must give a scalar, with respect to the
    arguments at `argnums`. With `has_aux` `func` gives (scalar, anything) and so does the
    result."""

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapper(*args, **kwargs):
        grads, value = grad_and_value_impl(func, argnums, has_aux, args, kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


# ---- vjp -----------------------------------------------------------------------------------


def vjp(func, *primals, has_aux=False) -> Any:
    """(func(*primals), a function from cotangents to their product with the Jacobian)."""
    with grad_increment_nesting() as level:
        wrapped = _wrap_differentiable(primals, level)
        output, aux = _split_aux(func(*wrapped), has_aux, "vjp(f, *primals)")
        flat_outputs, out_spec = _tensor_outputs(output, "vjp(f, *primals)")
        value = _unwrap(output, level)
        aux = _unwrap(aux, level)
        flat_primals, primal_spec = tree_flatten(wrapped)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        return _pull_back(cotangents, flat_outputs, out_spec, flat_primals, primal_spec)

    return (value, pull_back, aux) if has_aux else (value, pull_back)


def _pull_back(cotangents, outputs, out_spec, primals, primal_spec):
    flat, spec = tree_flatten(cotangents)
    if spec != out_spec:
        raise RuntimeError(
            "Expected pytree structure of cotangents to be the same as pytree structure of outputs "
            f"to the function. cotangents: {spec}, primal output: {out_spec}"
        )
    for k, (output, vector) in enumerate(zip(outputs, flat, strict=True)):
        if not isinstance(vector, torch.Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(vector)}")
        if vector.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {vector.shape} and "
                f"output[{k}] has a shape of {output.shape}."
            )
    # The graph's tensors belong to a level that has ended; their operators run on the values.
    with torch.enable_grad() if torch.is_grad_enabled() else torch.no_grad():
        grads = _gradients_outside(outputs, primals, flat)
    result = tree_unflatten(grads, primal_spec)
    return result


def _gradients_outside(outputs, inputs, vectors):
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    found = [None] * len(inputs)
    if pairs:
        outs, grads = zip(*pairs, strict=True)
        found = _run_backward(outs, grads, inputs, torch.is_grad_enabled())
    return [
        _bare(torch.zeros_like(i) if g is None else g) for i, g in zip(inputs, found, strict=True)
    ]


def _bare(t):
    """A tensor without levels that have ended."""
    while _F.maybe_get_level(t) == -2:
        t = _F.get_unwrapped(t)
    return t


# ---- jvp -----------------------------------------------------------------------------------


def _is_tuple_of_tensors(value, name, what) -> None:
    if not isinstance(value, tuple):
        raise RuntimeError(
            f"{name}: Expected {what} to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    if not value:
        raise RuntimeError(f"{name}: Expected {what} to be a non-empty tuple of Tensors.")


def _check_jvp_inputs(flat, name, what) -> None:
    if not flat:
        raise RuntimeError(f"{name}: Expected {what} to contain at least one Tensor.")
    for leaf in flat:
        if not isinstance(leaf, torch.Tensor):
            raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(leaf)}")


def jvp(func, primals, tangents, *, strict=False, has_aux=False) -> Any:
    """(func(*primals), the product of the Jacobian with the tangents)."""
    return _jvp_with_argnums(func, primals, tangents, None, has_aux, strict)


def _jvp_with_argnums(func, primals, tangents, argnums, has_aux=False, strict=False):
    name = "jvp(f, primals, tangents)"
    _is_tuple_of_tensors(primals, name, "primals")
    numbers = range(len(primals)) if argnums is None else _argnums(argnums, len(primals))
    selected = tuple(primals[n] for n in numbers)
    if argnums is not None and isinstance(argnums, int):
        selected = selected[0]
    flat, spec = tree_flatten(selected)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {tangent_spec}"
        )
    _check_jvp_inputs(flat, name, "primals")
    _check_jvp_inputs(flat_tangents, name, "tangents")
    with jvp_increment_nesting() as level:
        wrapped = [_F._wrap_for_jvp(p, t, level) for p, t in zip(flat, flat_tangents, strict=True)]
        duals = tree_unflatten(wrapped, spec)
        if argnums is None:
            args = duals
        else:
            args = _with_arguments(
                primals, numbers, (duals,) if isinstance(argnums, int) else duals
            )
        output, aux = _split_aux(func(*args), has_aux, name)
        return _split_duals(output, aux, level, has_aux, strict, name)


def _split_duals(output, aux, level, has_aux, strict, name):
    flat, spec = _tensor_outputs(output, name)
    values, tangents = [], []
    for leaf in flat:
        value, tangent = _F._unwrap_dual(leaf, level)
        if tangent is None and strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        values.append(value)
        tangents.append(_F._zero_tangent(value, level) if tangent is None else tangent)
    value, tangent = tree_unflatten(values, spec), tree_unflatten(tangents, spec)
    if not has_aux:
        return value, tangent
    bare = tree_map_only(torch.Tensor, lambda t: _F._unwrap_dual(t, level)[0], aux)
    return value, tangent, bare


# ---- Jacobians -----------------------------------------------------------------------------


def _basis(tensors):
    """Unit vectors of all tensors together: for each tensor a batch, [n, *shape]."""
    total = sum(t.numel() for t in tensors)
    out, start = [], 0
    for t in tensors:
        part = t.new_zeros((total, t.numel()))
        part.diagonal(-start).fill_(1)
        out.append(part.view(total, *t.shape))
        start += t.numel()
    return tuple(out)


def _jacrev_rows(pull_back, outputs, out_spec, chunk_size):
    """For each flat input the rows of the Jacobian, [total outputs, *input]."""

    def rows(*basis):
        grads = pull_back(tree_unflatten(list(basis), out_spec))
        return tuple(tree_flatten(grads)[0])

    basis = _basis(outputs)
    if chunk_size is None or chunk_size >= basis[0].shape[0]:
        return vmap(rows)(*basis)
    if chunk_size == 1:
        each = [rows(*(b[i] for b in basis)) for i in range(basis[0].shape[0])]
        return tuple(torch.stack(column) for column in zip(*each, strict=True))
    return vmap(rows, chunk_size=chunk_size)(*basis)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False) -> Any:
    """A function that gives the Jacobian of `func` by reverse-mode differentiation, `chunk_size`
    rows at a time."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapper(*args, **kwargs):
        numbers = _argnums(argnums, len(args))
        primals = tuple(args[n] for n in numbers)

        def partial(*values):
            # The others belong to the level too: what is computed may be written to them.
            others = _wrap(args, _F.maybe_current_level())
            return func(*_with_arguments(others, numbers, values), **kwargs)

        result = vjp(partial, *primals, has_aux=has_aux)
        output, pull_back = result[0], result[1]
        flat_outputs, out_spec = _tensors_only(output, "outputs")
        rows = _jacrev_rows(pull_back, flat_outputs, out_spec, chunk_size)
        flat_inputs, in_spec = tree_flatten(primals)
        jacobian = []
        sizes = [o.numel() for o in flat_outputs]
        split = [r.split(sizes) for r in rows]
        for k, out in enumerate(flat_outputs):
            blocks = [split[i][k].view(out.shape + inp.shape) for i, inp in enumerate(flat_inputs)]
            jacobian.append(_only(tree_unflatten(blocks, in_spec), argnums))
        jacobian = tree_unflatten(jacobian, out_spec)
        return (jacobian, result[2]) if has_aux else jacobian

    return wrapper


def _only(values, argnums):
    return values[0] if isinstance(argnums, int) else values


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error") -> Any:
    """A function that gives the Jacobian of `func` by forward-mode differentiation."""

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapper(*args, **kwargs):
        numbers = _argnums(argnums, len(args))
        primals = tuple(args[n] for n in numbers)
        flat_inputs, in_spec = _tensors_only(primals, "primals")

        def partial(*values):
            return func(*_with_arguments(args, numbers, values), **kwargs)

        seen = []

        def push(*basis):
            tangents = tree_unflatten(list(basis), in_spec)
            result = jvp(partial, primals, tangents, has_aux=has_aux)
            seen.append(result[2] if has_aux else None)
            return result[1]

        # What goes with the output does not depend on the direction: it is no batch.
        columns = vmap(push, randomness=randomness)(*_basis(flat_inputs))
        flat, out_spec = tree_flatten(columns)
        sizes = [t.numel() for t in flat_inputs]
        jacobian = []
        for column in flat:
            blocks = [
                part.movedim(0, -1).reshape(column.shape[1:] + inp.shape)
                for part, inp in zip(column.split(sizes), flat_inputs, strict=True)
            ]
            jacobian.append(_only(tree_unflatten(blocks, in_spec), argnums))
        jacobian = tree_unflatten(jacobian, out_spec)
        return (jacobian, seen[0]) if has_aux else jacobian

    return wrapper


def hessian(func, argnums=0) -> Any:
    """A function that gives the Hessian of `func`, forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals) -> Any:
    """(func(*primals), a function from tangents to their product with the Jacobian at primals)."""
    flat, spec = _tensors_only(primals, "primals")
    output, pull_back = vjp(func, *primals)
    flat_outputs, out_spec = _tensors_only(output, "outputs")

    def push_forward(*tangents):
        flat_tangents, tangent_spec = tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(
                "Expected the tangents to have the same structure as the primals in linearize, got "
                f"{tangent_spec} for {spec}"
            )
        for p, t in zip(flat, flat_tangents, strict=True):
            if p.shape != t.shape or p.dtype != t.dtype:
                raise RuntimeError(
                    "Expected the tangents to have the same shape and dtype as the primals in "
                    f"linearize, got {t.dtype}{list(t.shape)} for {p.dtype}{list(p.shape)}"
                )

        # pull_back is linear; the gradient of <pull_back(u), t> with respect to u is J t.
        def weighted(*weights):
            grads = tree_flatten(pull_back(tree_unflatten(list(weights), out_spec)))[0]
            return tuple(grads)

        zeros = tuple(torch.zeros_like(o) for o in flat_outputs)
        _, forward = vjp(weighted, *zeros)
        return tree_unflatten(list(forward(tuple(flat_tangents))), out_spec)

    return output, push_forward


# ---- functionalize -------------------------------------------------------------------------


@contextmanager
def func_increment_nesting(remove_views) -> Any:
    """A functionalize level for the duration of a block; gives its number."""
    level = _F._func_increment_nesting(remove_views)
    try:
        yield level
    finally:
        _F._func_decrement_nesting()


def functionalize(func, *, remove="mutations") -> Any:
    """A function that computes the same as `func` with functional operators only: what writes to a
    tensor becomes the computation of a new value, and with `remove="mutations_and_views"` views
    become copies. Writes to inputs are made once, at the end."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove="
            f"{remove}. Valid options are:\n     remove='mutations': all inplace and out= operators"
            " will be removed from the program, and replaced with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators "
            "{view} will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with func_increment_nesting(remove == "mutations_and_views") as level:
            flat, spec = tree_flatten((args, kwargs))
            inside = [
                _F._wrap_functional_tensor(t, level) if isinstance(t, torch.Tensor) else t
                for t in flat
            ]
            args, kwargs = tree_unflatten(inside, spec)
            outputs = func(*args, **kwargs)
            given = {id(w): t for t, w in zip(flat, inside, strict=True)}
            result = tree_map_only(
                torch.Tensor,
                lambda t: given[id(t)] if id(t) in given else _functional_value(t, level)[0],
                outputs,
            )
            written = [
                (t, *_functional_value(w, level))
                for t, w in zip(flat, inside, strict=True)
                if isinstance(t, torch.Tensor)
            ]
        for tensor, value, changed in written:
            if changed:
                tensor.copy_(value)
        return result

    return wrapped


def _functional_value(tensor, level):
    return _F._unwrap_functional_tensor(tensor, level)


def debug_unwrap(tensor, *, recurse=True) -> Any:
    """The tensor without the wrappers of transforms, all of them or the outermost."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"debug_unwrap: expected a Tensor, got {type(tensor).__name__}")
    while _F.is_functorch_wrapped_tensor(tensor):
        tensor = _F.get_unwrapped(tensor)
        if not recurse:
            break
    return tensor
