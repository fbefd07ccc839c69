"""An optimizer whose state is kept by the names of parameters, not by their numbers, so that ranks
which hold different parts of a model can write one checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import nn, optim

__all__: list[str] = []


class _NamedOptimizer(optim.Optimizer):
    """Makes optimizer_class(parameters, *args, **kwargs) and names its state. `param_groups` are
    the parameters that it trains, all of `named_parameters` unless told."""

    def __init__(
        self,
        named_parameters: Mapping[str, torch.Tensor] | Iterable[tuple[str, torch.Tensor]],
        optimizer_class: type[optim.Optimizer],
        param_groups: Collection[Mapping[str, Any]] | None = None,
        module: nn.Module | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self.param_groups: list[dict[str, Any]] = [
            {**group, "params": _as_list(group["params"])} for group in param_groups or ()
        ]
        self.named_parameters = dict(named_parameters)
        self.module = module
        self._name_of = {parameter: name for name, parameter in self.named_parameters.items()}
        for group in self.param_groups:
            self._names(group["params"])
        trained = self.param_groups or list(self.named_parameters.values())
        self._optimizer = optimizer_class(trained, *args, **kwargs)
        self.param_groups = self._optimizer.param_groups
        self.defaults = self._optimizer.defaults

    @property
    def state(self) -> Mapping[torch.Tensor, Any]:
        """The state of each parameter."""
        return self._optimizer.state

    def _names(self, parameters: Iterable[torch.Tensor]) -> list[str]:
        """The names of parameters, which must be those of the model."""
        parameters = list(parameters)
        missing = [tuple(p.shape) for p in parameters if p not in self._name_of]
        if missing:
            raise ValueError(
                f"Expect all parameters to be those of the model, but some parameters are not in "
                f"the module; their shapes: {missing}"
            )
        return [self._name_of[parameter] for parameter in parameters]

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Steps the optimizer."""
        return self._optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of the parameters that are trained."""
        self._optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Trains further parameters of the model."""
        group = {**param_group, "params": _as_list(param_group["params"])}
        self._names(group["params"])
        self._optimizer.add_param_group(group)

    def init_state(self) -> None:
        """Makes the state that the first step would make, and leaves the parameters as they are;
        gradients that are missing become zeros."""
        every = [p for group in self.param_groups for p in group["params"]]
        for parameter in every:
            if parameter.grad is not None:
                raise ValueError(
                    "init_state can only be used when no parameter has a gradient: they would be "
                    "taken for those of a step"
                )
        for parameter in every:
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        # A step of rate zero, without decay of weights, moves nothing.
        before = [
            {key: group.get(key) for key in ("lr", "weight_decay")} for group in self.param_groups
        ]
        for group in self.param_groups:
            group["lr"] = torch.zeros_like(group["lr"]) if _is_tensor(group.get("lr")) else 0.0
            if "weight_decay" in group:
                group["weight_decay"] = 0.0
        try:
            self.step()
        finally:
            for group, values in zip(self.param_groups, before, strict=True):
                group.update({key: value for key, value in values.items() if key in group})

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state dict, with names where it has numbers."""
        plain = self._optimizer.state_dict()
        groups, names = [], {}
        for group, numbered in zip(self.param_groups, plain["param_groups"], strict=True):
            own = self._names(group["params"])
            names.update(zip(numbered["params"], own, strict=True))
            groups.append({**numbered, "params": sorted(own)})
        state = {names[number]: value for number, value in plain["state"].items()}
        return self._post_state_dict({"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of parameters by name. The optimizer must have state already (after a
        step or init_state); what the dict does not have stays as it is."""
        new = self._pre_load_state_dict(state_dict)
        own = self.state_dict()
        if not own["state"]:
            raise ValueError(
                "Expects the optim to be initialized before load but found not initialized."
            )
        taken = {**own["state"]}
        for name, value in new["state"].items():
            if name in taken:
                taken[name] = _checked(name, taken[name], value)
        numbered = self._optimizer.state_dict()
        groups = []
        for group, plain in zip(self.param_groups, numbered["param_groups"], strict=True):
            names = sorted(self._names(group["params"]))
            match = next((g for g in new["param_groups"] if sorted(g["params"]) == names), plain)
            groups.append({**plain, **match, "params": plain["params"]})
        numbers = {
            name: number
            for group, plain in zip(self.param_groups, numbered["param_groups"], strict=True)
            for name, number in zip(self._names(group["params"]), plain["params"], strict=True)
        }
        state = {numbers[name]: value for name, value in taken.items()}
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.param_groups = self._optimizer.param_groups

    def _pre_load_state_dict(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        if self.module is None:
            return state_dict
        from torch.distributed.fsdp import FullyShardedDataParallel as Wrapper

        if not isinstance(self.module, Wrapper):
            return state_dict
        return Wrapper.optim_state_dict_to_load(
            self.module, self._optimizer, state_dict, is_named_optimizer=True
        )

    def _post_state_dict(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        if self.module is None:
            return state_dict
        from torch.distributed.fsdp import FullyShardedDataParallel as Wrapper

        if not isinstance(self.module, Wrapper):
            return state_dict
        return Wrapper.optim_state_dict(self.module, self._optimizer, state_dict)


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _as_list(parameters: torch.Tensor | Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [parameters] if _is_tensor(parameters) else list(parameters)


def _checked(name: str, own: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What is loaded for a parameter, which must have all that there is of the same sizes."""
    for key, value in own.items():
        if key not in new:
            raise ValueError(
                f"Expects state {key} of {name} in the state dict, but it is not there"
            )
        if _is_tensor(value) and value.shape != new[key].shape:
            raise ValueError(
                f"State {key} of {name} has size {tuple(value.shape)}, and {tuple(new[key].shape)} "
                "in the state dict"
            )
    return new
