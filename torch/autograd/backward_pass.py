"""torch.autograd.backward and torch.autograd.grad: the checks of their arguments before the engine
runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import _C

__all__ = ["backward", "grad"]

_engine = _C._ImperativeEngine()


def _as_tuple(value):
    if isinstance(value, torch.Tensor) or _is_edge(value):
        return (value,)
    return tuple(value)


def _is_edge(value) -> bool:
    # GradientEdge is a tuple: it must not be taken for a sequence of tensors.
    return isinstance(value, tuple) and type(value).__name__ == "GradientEdge"


def _metadata(output) -> tuple[torch.Size, torch.dtype, torch.device]:
    """Shape, dtype and device of an output or of what a gradient edge stands for."""
    if isinstance(output, torch.Tensor):
        return output.shape, output.dtype, output.device
    return output.node._input_metadata[output.output_nr]


def _check_given(grad, output, index, batched) -> torch.Tensor:
    shape, dtype, _ = _metadata(output)
    given = grad.shape[1:] if batched else grad.shape
    if given != shape:
        if batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape "
                f"of {shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and "
            f"output[{index}] has a shape of {shape}."
        )
    if dtype.is_complex != grad.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{index}] has a dtype of {grad.dtype} and "
            f"output[{index}] has a dtype of {dtype}."
        )
    return grad


def _make_grads(outputs, grads, batched) -> tuple[torch.Tensor, ...]:
    """The gradients of the outputs: as given, or one for a scalar."""
    made = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        if isinstance(grad, torch.Tensor):
            made.append(_check_given(grad, output, index, batched))
            continue
        if grad is not None:
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(grad).__name__}"
            )
        if isinstance(output, torch.Tensor) and not output.requires_grad:
            made.append(None)
            continue
        shape, dtype, device = _metadata(output)
        if shape.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not dtype.is_floating_point:
            raise RuntimeError(f"grad can be computed only for real scalar outputs but got {dtype}")
        if isinstance(output, torch.Tensor):
            made.append(torch.ones_like(output, memory_format=torch.preserve_format))
        else:
            made.append(torch.ones(shape, dtype=dtype, device=device))
    return tuple(made)


def _match(grads, count):
    if grads is None:
        return (None,) * count
    if isinstance(grads, torch.Tensor):
        return (grads,)
    return tuple(grads)


def _overridden(func, tensors, *args, **kwargs):
    """(True, result) when a tensor subclass or a mode takes the call over."""
    if not _C._is_torch_function_mode_enabled() and all(type(t) is torch.Tensor for t in tensors):
        return False, None
    tensors = tuple(t for t in tensors if isinstance(t, torch.Tensor))
    if not torch.overrides.has_torch_function(tensors):
        return False, None
    return True, torch.overrides.handle_torch_function(func, tensors, *args, **kwargs)


def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Adds the gradients of the tensors with respect to the leaves of their graph, or to `inputs`,
    to the leaves' .grad.

    `grad_tensors` are the gradients of the tensors themselves; None for scalars. The graph is
    freed unless `retain_graph`; with `create_graph` the gradients can be differentiated again.
    """
    if _C._are_functorch_transforms_active():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    inputs = () if inputs is None else _as_tuple(inputs) or None
    if inputs is None:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _as_tuple(tensors)
    if any(type(t) is not torch.Tensor and getattr(t, "is_nested", False) for t in tensors):
        from torch.nested._base import backward_arguments

        tensors, grad_tensors = backward_arguments(tensors, _match(grad_tensors, len(tensors)))
    if any(type(t) is not torch.Tensor and getattr(t, "is_nested", False) for t in inputs):
        from torch.nested._base import in_graph

        inputs = in_graph(inputs)
    grads = _make_grads(tensors, _match(grad_tensors, len(tensors)), False)
    keep = create_graph if retain_graph is None else retain_graph
    _engine.run_backward(tensors, grads, keep, create_graph, inputs, True, True)


def _batched(outputs, grads, keep, create_graph, inputs, allow_unused):
    """One pass for the whole batch of gradients, under vmap."""
    from torch._C import _functorch
    from torch._functorch.vmap import vmap_increment_nesting

    sizes = {g.shape[0] for g in grads if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(f"grad_outputs have batches of different sizes: {sorted(sizes)}")
    (size,) = sizes
    with vmap_increment_nesting(size, "error") as level:
        rows = tuple(None if g is None else _functorch._add_batch_dim(g, 0, level) for g in grads)
        found = _engine.run_backward(outputs, rows, keep, create_graph, inputs, allow_unused, False)
        return tuple(
            None if g is None else _functorch._remove_batch_dim(g, level, size, 0) for g in found
        )


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
) -> Any:
    """The gradients of the sum of the outputs (weighted by `grad_outputs`) with respect to the
    inputs, as a tuple. Nothing is accumulated into .grad.

    An input that the outputs do not depend on raises, unless `allow_unused` (None is given for it)
    or `materialize_grads` (zeros). With `is_grads_batched` the first dimension of each
    `grad_outputs` is a batch.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs = _as_tuple(outputs)
    inputs = _as_tuple(inputs)
    taken, result = _overridden(
        grad,
        outputs + inputs,
        outputs,
        inputs,
        grad_outputs=grad_outputs,
        retain_graph=retain_graph,
        create_graph=create_graph,
        only_inputs=only_inputs,
        allow_unused=allow_unused,
        is_grads_batched=is_grads_batched,
        materialize_grads=materialize_grads,
    )
    if taken:
        return result
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _make_grads(outputs, _match(grad_outputs, len(outputs)), is_grads_batched)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = _batched(outputs, grads, keep, create_graph, inputs, allow_unused)
    else:
        found = _engine.run_backward(
            outputs, grads, keep, create_graph, inputs, allow_unused, False
        )
    if materialize_grads:
        if any(g is None and _is_edge(i) for i, g in zip(inputs, found, strict=True)):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        found = tuple(
            torch.zeros_like(i, requires_grad=create_graph) if g is None else g
            for i, g in zip(inputs, found, strict=False)
        )
    return found
