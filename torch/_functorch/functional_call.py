"""Modules as functions of their parameters: functional_call and stack_module_state."""

import torch
from torch.nn.utils import stateless

__all__ = ["functional_call", "stack_module_state"]


def _merged(dictionaries):
    if isinstance(dictionaries, dict):
        return dictionaries
    if not isinstance(dictionaries, (tuple, list)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dictionaries)}"
        )
    if not all(isinstance(d, dict) for d in dictionaries):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    merged = {}
    for dictionary in dictionaries:
        repeated = sorted(set(merged) & set(dictionary))
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous"
            )
        merged.update(dictionary)
    return merged


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with the tensors of one or several dictionaries, by dotted name, in
    place of its own."""
    return stateless.functional_call(
        module,
        _merged(parameter_and_buffer_dicts),
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )


def _stacked(dictionaries):
    out = {}
    for name in dictionaries[0]:
        tensors = tuple(d[name] for d in dictionaries)
        flags = {t.requires_grad for t in tensors}
        if len(flags) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = torch.stack([t.detach() for t in tensors])
        out[name] = stacked.requires_grad_() if flags == {True} else stacked
    return out


def stack_module_state(models):
    """(parameters, buffers) of several models of one class, stacked by name: the state of an
    ensemble for vmap."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = _stacked([dict(m.named_parameters()) for m in models])
    buffers = _stacked([dict(m.named_buffers()) for m in models])
    return params, buffers
