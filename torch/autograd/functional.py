"""Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

from typing import Any as _Any

import torch

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


# ---- arguments and results --------------------------------------------------------------


def _tuple(value, what, function) -> tuple[bool, tuple[torch.Tensor, ...]]:
    """(was it a tuple, the value as a tuple); every item must be a tensor."""
    is_tuple = isinstance(value, tuple)
    items = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, torch.Tensor):
            kind = f"value at index {i} in {what}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                f"the {kind} has type {type(item)}."
            )
    return is_tuple, items


def _prepare(inputs, create_graph) -> tuple[torch.Tensor, ...]:
    """Inputs as variables of our own: parts of the caller's graph only with create_graph."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_()
        for t in inputs
    )


def _finish(
    values, create_graph
) -> torch.Tensor | tuple[torch.Tensor | tuple[torch.Tensor, ...], ...]:
    if isinstance(values, tuple):
        return tuple(_finish(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _check_vectors(vectors, others, other_is_tuple) -> None:
    if len(vectors) != len(others):
        if other_is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(others)} but got {len(vectors)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (v, other) in enumerate(zip(vectors, others, strict=False)):
        if v.size() != other.size():
            where = f"Entry {i} in " if other_is_tuple else ""
            raise RuntimeError(
                f"{where}v has invalid size: should be {other.size()} but got {v.size()}."
            )


def _vectors(v, others, other_is_tuple, function, what):
    if v is None:
        if len(others) != 1 or others[0].nelement() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} a single Tensor with a single "
                "element."
            )
        return (torch.ones_like(others[0]),)
    _, vectors = _tuple(v, "v", function)
    vectors = tuple(t.detach() if not t.requires_grad else t for t in vectors)
    _check_vectors(vectors, others, other_is_tuple)
    return vectors


def _strict_outputs(outputs, what) -> None:
    for i, out in enumerate(outputs):
        if not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The {what} "
                "must be computed in a differentiable manner from the input when running in strict "
                "mode."
            )


def _grad(outputs, inputs, vectors, create_graph=False):
    """Gradients, None where an input plays no part; outputs without gradient are left out."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=False) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outputs, vectors = zip(*pairs, strict=False)
    return torch.autograd.grad(
        outputs, inputs, vectors, allow_unused=True, create_graph=create_graph, retain_graph=True
    )


def _fill(grads, like, strict, create_graph, what, output="The output") -> tuple[torch.Tensor, ...]:
    """Zeros for missing gradients, or an error in strict mode."""
    out = []
    for i, (grad, ref) in enumerate(zip(grads, like, strict=False)):
        if grad is None and strict:
            raise RuntimeError(
                f"{output} of the user-provided function is independent of input {i}. {what}"
            )
        if grad is None:
            grad = torch.zeros_like(ref)
        elif strict and create_graph and not grad.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )
        out.append(grad)
    return tuple(out)


_STRICT = "This is not allowed in strict mode."


def _check_curved(first, strict) -> None:
    """In strict mode a Hessian needs first derivatives that depend on the inputs."""
    for i, grad in enumerate(first):
        if strict and not grad.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {i} is independent of the input. {_STRICT}"
            )


def _construct_standard_basis_for(tensors, tensor_numels):
    """Unit vectors of all tensors together: for each tensor its part of them, [n, numel]."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(f"{len(tensors)} tensors and {len(tensor_numels)} sizes")
    total = sum(tensor_numels)
    parts, start = [], 0
    for t, count in zip(tensors, tensor_numels, strict=True):
        part = t.new_zeros((total, count))
        part.diagonal(-start).fill_(1)
        parts.append(part)
        start += count
    return tuple(parts)


def _run(func, inputs, function, strict, what="outputs") -> tuple[bool, tuple[torch.Tensor, ...]]:
    is_tuple, outputs = _tuple(func(*inputs), what + " of the user-provided function", function)
    if strict:
        _strict_outputs(outputs, what)
    return is_tuple, outputs


# ---- products ---------------------------------------------------------------------------


def vjp(func, inputs, v=None, create_graph=False, strict=False) -> _Any:
    """(func(*inputs), the product of v with the Jacobian)."""
    with torch.enable_grad():
        is_tuple, inputs = _tuple(inputs, "inputs", "vjp")
        inputs = _prepare(inputs, create_graph)
        out_is_tuple, outputs = _run(func, inputs, "vjp", strict)
        vectors = _vectors(v, outputs, out_is_tuple, "vjp", "user-provided function returns")
        grads = _grad(outputs, inputs, vectors, create_graph)
        product = _fill(grads, inputs, strict, create_graph, _STRICT)
    outputs, product = _finish(outputs, create_graph), _finish(product, create_graph)
    return (outputs if out_is_tuple else outputs[0]), (product if is_tuple else product[0])


def jvp(func, inputs, v=None, create_graph=False, strict=False) -> _Any:
    """(func(*inputs), the product of the Jacobian with v), by differentiating the vector-Jacobian
    product."""
    with torch.enable_grad():
        is_tuple, inputs = _tuple(inputs, "inputs", "jvp")
        inputs = _prepare(inputs, create_graph)
        vectors = _vectors(v, inputs, is_tuple, "jvp", "input to the user-provided function is")
        out_is_tuple, outputs = _run(func, inputs, "jvp", strict)
        # grad(outputs, u) is linear in u; its derivative in direction v is the product.
        weights = tuple(torch.zeros_like(o, requires_grad=True) for o in outputs)
        grads = _grad(outputs, inputs, weights, True)
        grads = _fill(grads, inputs, strict, False, _STRICT)
        product = _grad(grads, weights, vectors, create_graph)
        product = _fill(product, outputs, strict, create_graph, _STRICT)
    outputs, product = _finish(outputs, create_graph), _finish(product, create_graph)
    return (outputs if out_is_tuple else outputs[0]), (product if out_is_tuple else product[0])


def _scalar(func, inputs, function, strict) -> tuple[torch.Tensor, ...]:
    out_is_tuple, outputs = _run(func, inputs, function, strict)
    if out_is_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return outputs


def vhp(func, inputs, v=None, create_graph=False, strict=False) -> _Any:
    """(func(*inputs), the product of v with the Hessian of a scalar function)."""
    with torch.enable_grad():
        is_tuple, inputs = _tuple(inputs, "inputs", "vhp")
        inputs = _prepare(inputs, create_graph)
        vectors = _vectors(v, inputs, is_tuple, "vhp", "input to the user-provided function is")
        outputs = _scalar(func, inputs, "vhp", strict)
        first = _grad(outputs, inputs, (torch.ones_like(outputs[0]),), True)
        first = _fill(first, inputs, strict, False, _STRICT)
        _check_curved(first, strict)
        product = _fill(
            _grad(first, inputs, vectors, create_graph), inputs, strict, create_graph, _STRICT
        )
    outputs, product = _finish(outputs, create_graph), _finish(product, create_graph)
    return outputs[0], (product if is_tuple else product[0])


def hvp(func, inputs, v=None, create_graph=False, strict=False) -> _Any:
    """(func(*inputs), the product of the Hessian of a scalar function with v)."""
    with torch.enable_grad():
        is_tuple, inputs = _tuple(inputs, "inputs", "hvp")
        inputs = _prepare(inputs, create_graph)
        vectors = _vectors(v, inputs, is_tuple, "hvp", "input to the user-provided function is")
        outputs = _scalar(func, inputs, "hvp", strict)
        first = _grad(outputs, inputs, (torch.ones_like(outputs[0]),), True)
        first = _fill(first, inputs, strict, False, _STRICT)
        _check_curved(first, strict)
        # The Hessian is symmetric where it is continuous, but the product is taken as defined:
        # through the derivative of (u, first) with respect to u.
        weights = tuple(torch.zeros_like(t, requires_grad=True) for t in inputs)
        double = _fill(_grad(first, inputs, weights, True), inputs, False, True, _STRICT)
        product = _fill(
            _grad(double, weights, vectors, create_graph), inputs, strict, create_graph, _STRICT
        )
    outputs, product = _finish(outputs, create_graph), _finish(product, create_graph)
    return outputs[0], (product if is_tuple else product[0])


# ---- matrices ---------------------------------------------------------------------------


def _rows(out, inputs, create_graph, strict, index) -> tuple[torch.Tensor, ...]:
    """For each input the gradients of every element of `out`, stacked."""
    if not out.requires_grad:
        if strict:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The "
                "outputs must be computed in a differentiable manner from the input when running "
                "in strict mode."
            )
        return tuple(out.new_zeros(out.shape + t.shape) for t in inputs)
    rows = [[] for _ in inputs]
    for element in out.reshape(-1):
        grads = torch.autograd.grad(
            element, inputs, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
        filled = _fill(grads, inputs, strict, create_graph, _STRICT, f"Output {index}")
        for k, grad in enumerate(filled):
            rows[k].append(grad)
    return tuple(
        torch.stack(r).view(out.shape + t.shape) if r else out.new_zeros(out.shape + t.shape)
        for r, t in zip(rows, inputs, strict=False)
    )


def _batched_rows(out, inputs, create_graph):
    """The same as _rows, by one backward pass under vmap."""
    if not out.requires_grad or out.numel() == 0:
        return tuple(out.new_zeros(out.shape + t.shape) for t in inputs)
    basis = torch.eye(out.numel(), dtype=out.dtype, device=out.device)
    grads = torch.autograd.grad(
        out,
        inputs,
        basis.view(out.numel(), *out.shape),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return tuple(
        out.new_zeros(out.shape + t.shape) if g is None else g.reshape(out.shape + t.shape)
        for g, t in zip(grads, inputs, strict=True)
    )


def _columns(func, inputs):
    """The Jacobian by forward-mode differentiation: one block for each (output, input)."""
    from torch.func import jacfwd

    tuples = []

    def checked(*args):
        is_tuple, outputs = _tuple(func(*args), "outputs of the user-provided function", "jacobian")
        tuples.append(is_tuple)
        return outputs

    blocks = jacfwd(checked, argnums=tuple(range(len(inputs))))(*inputs)
    return tuples[0], tuple(tuple(b) for b in blocks)


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
) -> _Any:
    """The Jacobian of func at inputs: a tensor, or a tuple for each output of a tuple for each
    input."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `strategy="forward-mode"` is only supported '
                "with `vectorize=True`."
            )
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together. Please either set `strict=False` or `vectorize=False`."
        )
    with torch.enable_grad():
        is_tuple, inputs = _tuple(inputs, "inputs", "jacobian")
        if strategy == "forward-mode":
            out_is_tuple, result = _columns(func, inputs)
        else:
            inputs = _prepare(inputs, create_graph)
            out_is_tuple, outputs = _run(func, inputs, "jacobian", strict)
            result = tuple(
                _batched_rows(o, inputs, create_graph)
                if vectorize
                else _rows(o, inputs, create_graph, strict, i)
                for i, o in enumerate(outputs)
            )
    result = _finish(result, create_graph)
    result = result if is_tuple else tuple(row[0] for row in result)
    return result if out_is_tuple else result[0]


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
) -> _Any:
    """The Hessian of a scalar function: a tensor, or a tuple for each input of a tuple for each
    input."""
    is_tuple, inputs = _tuple(inputs, "inputs", "hessian")

    def scalar(*args) -> torch.Tensor:
        result = func(*args)
        out_is_tuple, outputs = _tuple(result, "outputs of the user-provided function", "hessian")
        if out_is_tuple:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if outputs[0].nelement() != 1:
            raise RuntimeError(
                "The Tensor returned by the function given to hessian should contain a single "
                "element"
            )
        return outputs[0].squeeze()

    def differentiable(*args) -> torch.Tensor:
        value = scalar(*args)
        if strict:
            _strict_outputs((value,), "outputs")
        return value

    def gradient(*args) -> tuple[torch.Tensor, ...]:
        args = tuple(a if a.requires_grad else a.requires_grad_() for a in args)
        first = jacobian(differentiable, args, create_graph=True)
        _check_curved(first, strict)
        return first

    if outer_jacobian_strategy == "forward-mode" and vectorize:
        from torch.func import jacfwd, jacrev

        numbers = tuple(range(len(inputs)))
        result = jacfwd(jacrev(scalar, argnums=numbers), argnums=numbers)(*inputs)
        return result if is_tuple else result[0][0]

    result = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if is_tuple else result[0][0]
