"""Gradients of custom operators: a torch.autograd.Function around the operator."""

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten


def run_with_gradient(definition, below, args, kwargs):
    """Runs `below()` as the forward pass of a graph node whose backward is the operator's."""
    function = getattr(torch.autograd, "Function", None)
    if function is None:
        raise NotImplementedError(
            f"{definition._qualname} with inputs that require gradients: this build has no "
            "torch.autograd.Function"
        )
    leaves, _ = tree_flatten((args, kwargs))
    holder = {}
    # Levels of function transforms below this one record for themselves.
    mode = torch.is_grad_enabled() and torch._C._are_functorch_transforms_active()

    class Node(function):
        _bypass_transforms = True

        @staticmethod
        def forward(ctx, *flat):
            with torch.set_grad_enabled(mode):
                result = below()
            outputs, holder["spec"] = tree_flatten(result)
            if definition._setup_context_fn is not None:
                names = [a.name for a in definition._opoverload._schema.arguments if a.kwarg_only]
                if names:
                    given = {name: kwargs[name] for name in names if name in kwargs}
                    definition._setup_context_fn(
                        ctx=ctx, inputs=args, keyword_only_inputs=given, output=result
                    )
                else:
                    definition._setup_context_fn(ctx=ctx, inputs=args, output=result)
            return tuple(outputs)

        @staticmethod
        def backward(ctx, *gradients):
            if definition._backward_fn is None:
                raise RuntimeError(
                    f"Trying to backward through {definition._opoverload} but no autograd "
                    "formula was registered. "
                    "Please use register_autograd to add one."
                )
            structured = tree_unflatten(list(gradients), holder["spec"])
            grouped = structured if isinstance(structured, tuple) else (structured,)
            results = definition._backward_fn(ctx, *grouped)
            results = results if isinstance(results, tuple) else (results,)
            return _spread(results, args, kwargs)

    outputs = Node.apply(*leaves)
    return tree_unflatten(list(outputs), holder["spec"])


def _spread(gradients, args, kwargs):
    """One gradient per leaf of the arguments: lists of tensors have lists of gradients."""
    if len(gradients) != len(args):
        raise RuntimeError(
            f"the backward of a custom operator returned {len(gradients)} gradients for "
            f"{len(args)} arguments"
        )
    flat = []
    for gradient, arg in zip(gradients, args, strict=True):
        leaves, _ = tree_flatten(arg)
        if isinstance(arg, (list, tuple)):
            flat += list(gradient) if gradient is not None else [None] * len(leaves)
        else:
            flat.append(gradient)
    return (*flat, *[None] * len(tree_flatten(kwargs)[0]))
