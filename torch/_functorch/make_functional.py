"""Modules as functions of their parameters, in the form that functorch gave them before
torch.func.functional_call: a callable and the parameters apart from it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]

Tensors = tuple[torch.Tensor, ...]


class FunctionalModule(torch.nn.Module):
    """A module as a function of its parameters."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = model
        self.param_names = names

    def forward(self, params, *args, **kwargs):
        state = dict(zip(self.param_names, params, strict=True))
        return torch.func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(torch.nn.Module):
    """A module as a function of its parameters and buffers."""

    def __init__(
        self, model: torch.nn.Module, param_names: Sequence[str], buffer_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = model
        self.param_names = param_names
        self.buffer_names = buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        state = dict(zip(self.param_names, params, strict=True))
        state.update(zip(self.buffer_names, buffers, strict=True))
        return torch.func.functional_call(self.stateless_model, state, args, kwargs)


def _without_values(model: torch.nn.Module) -> torch.nn.Module:
    """A copy whose own tensors take no memory: the function's arguments replace them."""
    return copy.deepcopy(model).to("meta")


def _named(pairs) -> tuple[tuple[str, ...], Tensors]:
    pairs = list(pairs)
    return tuple(name for name, _ in pairs), tuple(tensor for _, tensor in pairs)


def make_functional_with_buffers(
    model: torch.nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """(function of parameters and buffers, parameters, buffers) of a module."""
    names, params = _named(model.named_parameters())
    buffer_names, buffers = _named(model.named_buffers())
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    function = FunctionalModuleWithBuffers(_without_values(model), names, buffer_names)
    return function, params, buffers


def make_functional(
    model: torch.nn.Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors]:
    """(function of parameters, parameters) of a module without buffers."""
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    names, params = _named(model.named_parameters())
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    return FunctionalModule(_without_values(model), names), params


def combine_state_for_ensemble(
    models: Sequence[torch.nn.Module],
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """(function, stacked parameters, stacked buffers) of several models of one class."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = torch.func.stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(params.values()), tuple(buffers.values())


# ---- made and stacked at once ----------------------------------------------------------------


def _ensemble_size(ensemble_shape: Sequence[int]) -> int | None:
    if len(ensemble_shape) >= 2:
        raise ValueError(
            f"NYI: ensemble_shape with more than 1 element, got {tuple(ensemble_shape)}"
        )
    if not ensemble_shape:
        return None
    size = ensemble_shape[0]
    if size <= 0:
        raise ValueError(f"num_models {size} should be > 0")
    return size


def _stacked(states: list[Tensors], device: torch.types.Device) -> Tensors:
    """One tensor for each place in the states, with a dimension for the models in front."""
    return tuple(
        torch.stack([t.detach().to(device) for t in place]).requires_grad_(place[0].requires_grad)
        for place in zip(*states, strict=True)
    )


def functional_init(
    model_class: Callable[..., torch.nn.Module],
    ensemble_shape: Sequence[int] = (),
    device: torch.types.Device = "cpu",
) -> Callable[..., tuple[Tensors, Callable, tuple[str, ...]]]:
    """A function of the class's arguments that gives (parameters, function, their names). With an
    ensemble shape (n,) the parameters are those of n models, stacked. The function takes parameters
    and the tuple of the model's arguments."""
    size = _ensemble_size(ensemble_shape)

    def wrapped(*args, **kwargs):
        made = [model_class(*args, **kwargs).to(device) for _ in range(size or 1)]
        function, params = make_functional(made[0])
        if size is not None:
            params = _stacked([tuple(m.parameters()) for m in made], device)
        return params, lambda params, args: function(params, *args), function.param_names

    return wrapped


def functional_init_with_buffers(
    model_class: Callable[..., torch.nn.Module],
    ensemble_shape: Sequence[int] = (),
    device: torch.types.Device = "cpu",
) -> Callable[..., tuple[Tensors, Tensors, Callable, tuple, tuple]]:
    """The same for modules with buffers: (parameters, buffers, function, names, buffers' names)."""
    size = _ensemble_size(ensemble_shape)

    def wrapped(*args, **kwargs):
        made = [model_class(*args, **kwargs).to(device) for _ in range(size or 1)]
        function, params, buffers = make_functional_with_buffers(made[0])
        if size is not None:
            params = _stacked([tuple(m.parameters()) for m in made], device)
            buffers = _stacked([tuple(m.buffers()) for m in made], device)

        def call(params, buffers, args):
            return function(params, buffers, *args)

        return params, buffers, call, function.param_names, function.buffer_names

    return wrapped
