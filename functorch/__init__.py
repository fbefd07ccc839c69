"""The transforms under their older name; torch.func is the present one."""

import copy

import torch
from torch.func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]

__version__ = torch.__version__


class FunctionalModule(torch.nn.Module):
    """A module as a function of its parameters."""

    def __init__(self, model, names):
        super().__init__()
        self.stateless_model = model
        self.param_names = names

    def forward(self, params, *args, **kwargs):
        state = dict(zip(self.param_names, params, strict=True))
        return torch.func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(torch.nn.Module):
    """A module as a function of its parameters and buffers."""

    def __init__(self, model, param_names, buffer_names):
        super().__init__()
        self.stateless_model = model
        self.param_names = param_names
        self.buffer_names = buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        state = dict(zip(self.param_names, params, strict=True))
        state.update(zip(self.buffer_names, buffers, strict=True))
        return torch.func.functional_call(self.stateless_model, state, args, kwargs)


def _without_values(model):
    """A copy whose own tensors take no memory: the function's arguments replace them."""
    return copy.deepcopy(model).to("meta")


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function of parameters and buffers, parameters, buffers) of a module."""
    names, params = (
        zip(*model.named_parameters(), strict=True)
        if list(model.parameters())
        else (
            (),
            (),
        )
    )
    buffer_names, buffers = (
        zip(*model.named_buffers(), strict=True) if list(model.buffers()) else ((), ())
    )
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    return (
        FunctionalModuleWithBuffers(_without_values(model), names, buffer_names),
        tuple(params),
        tuple(buffers),
    )


def make_functional(model, disable_autograd_tracking=False):
    """(function of parameters, parameters) of a module without buffers."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    names, params = (
        zip(*model.named_parameters(), strict=True)
        if list(model.parameters())
        else (
            (),
            (),
        )
    )
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    return FunctionalModule(_without_values(model), names), tuple(params)


def combine_state_for_ensemble(models):
    """(function, stacked parameters, stacked buffers) of several models of one class."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = torch.func.stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(params.values()), tuple(buffers.values())
