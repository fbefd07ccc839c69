"""Masks for the inputs of layers, chosen from inputs that were seen. A registered layer gathers its
inputs while the model runs; `step` makes masks of them; `squash_mask` lets the layers multiply
their inputs by the masks from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

__all__ = ["ActivationSparsifier"]

Entry = dict[str, Any]
_FUNCTIONS = ("aggregate_fn", "reduce_fn", "mask_fn")


def _each(value: Any, call: Callable[[Tensor], Tensor]) -> Any:
    """call(value), or of each item of a list."""
    return [call(item) for item in value] if isinstance(value, list) else call(value)


class ActivationSparsifier:
    """aggregate_fn(old, new) joins inputs, reduce_fn makes one tensor of what was joined, and
    mask_fn(data, **sparse_config) its mask. With `features`, each of these indices along
    `feature_dim` is joined and masked by itself. Settings of a layer go before those given here."""

    def __init__(
        self,
        model: nn.Module,
        aggregate_fn: Callable[..., Tensor] | None = None,
        reduce_fn: Callable[..., Tensor] | None = None,
        mask_fn: Callable[..., Tensor] | None = None,
        features: list[int] | None = None,
        feature_dim: int | None = None,
        **sparse_config: Any,
    ) -> None:
        self.model = model
        self.defaults: Entry = {
            "aggregate_fn": aggregate_fn,
            "reduce_fn": reduce_fn,
            "mask_fn": mask_fn,
            "features": features,
            "feature_dim": feature_dim,
            "sparse_config": sparse_config,
        }
        self.data_groups: dict[str, Entry] = {}
        self.state: dict[str, Entry] = {}

    # ---- layers
    def register_layer(
        self,
        layer: nn.Module,
        aggregate_fn: Callable[..., Tensor] | None = None,
        reduce_fn: Callable[..., Tensor] | None = None,
        mask_fn: Callable[..., Tensor] | None = None,
        features: list[int] | None = None,
        feature_dim: int | None = None,
        **sparse_config: Any,
    ) -> None:
        """Lets a layer of the model gather its inputs."""
        name = module_to_fqn(self.model, layer)
        if name is None:
            raise AssertionError("the layer does not belong to the model")
        given = {
            "aggregate_fn": aggregate_fn,
            "reduce_fn": reduce_fn,
            "mask_fn": mask_fn,
            "features": features,
            "feature_dim": feature_dim,
        }
        group = {**self.defaults, **{k: v for k, v in given.items() if v is not None}}
        group["sparse_config"] = {**self.defaults["sparse_config"], **sparse_config}
        for function in _FUNCTIONS:
            if not callable(group[function]):
                raise AssertionError(f"layer {name}: expected a function as {function}")
        if group["features"] is not None and group["feature_dim"] is None:
            raise AssertionError(f"layer {name}: features need feature_dim")
        if name in self.data_groups:
            self.unregister_layer(name)
        group["layer"] = layer
        group["hook_state"] = "aggregate"
        self.data_groups[name] = group
        self.state[name] = {"mask": None}
        group["hook"] = layer.register_forward_pre_hook(self._aggregate_hook(name))

    def unregister_layer(self, name: str) -> None:
        """Forgets a layer."""
        self.data_groups.pop(name)["hook"].remove()
        self.state.pop(name)

    def _aggregate_hook(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def hook(_module: nn.Module, inputs: tuple[Any, ...]) -> None:
            group, seen = self.data_groups[name], inputs[0]
            join = group["aggregate_fn"]
            if group["features"] is None:
                group["data"] = seen if "data" not in group else join(group["data"], seen)
                return
            parts = [_feature(seen, group["feature_dim"], f) for f in group["features"]]
            if "data" in group:
                parts = [join(old, new) for old, new in zip(group["data"], parts, strict=True)]
            group["data"] = parts

        return hook

    def _sparsify_hook(self, name: str) -> Callable[[nn.Module, tuple[Any, ...]], Any]:
        mask = self.get_mask(name)
        group = self.data_groups[name]
        features, dim = group["features"], group["feature_dim"]

        def hook(_module: nn.Module, inputs: tuple[Any, ...]) -> Any:
            first, *others = inputs
            if features is None:
                return (first * mask, *others)
            for part, feature in zip(mask, features, strict=True):
                index = torch.tensor([feature], device=first.device)
                first = first.index_copy(dim, index, _feature(first, dim, feature) * part)
            return (first, *others)

        return hook

    # ---- masks
    def get_mask(self, name: str | None = None, layer: nn.Module | None = None) -> Any:
        """The mask of a layer, given by name or itself: a tensor, or one for each feature."""
        if name is None:
            if layer is None:
                raise ValueError("need a name or a layer")
            name = module_to_fqn(self.model, layer)
        if name not in self.state:
            raise ValueError(f"layer {name!r} is not registered")
        mask = self.state[name]["mask"]
        if mask is None:
            raise ValueError(f"layer {name!r} has no mask before step() is called")
        return mask

    def step(self) -> None:
        """Makes the masks of what was gathered, and begins anew."""
        with torch.no_grad():
            for name, group in self.data_groups.items():
                if "data" in group:
                    self.update_mask(name, group.pop("data"), group)

    def update_mask(self, name: str, data: Any, configs: Entry) -> None:
        """Makes one mask."""

        def make(gathered: Tensor) -> Tensor:
            return configs["mask_fn"](configs["reduce_fn"](gathered), **configs["sparse_config"])

        self.state[name]["mask"] = _each(data, make)

    def squash_mask(self, attach_sparsify_hook: bool = True, **kwargs: Any) -> None:
        """Ends the gathering and, unless told otherwise, puts the masks on the inputs."""
        for name, group in self.data_groups.items():
            group["hook"].remove()
            group["hook_state"] = "none"
            if attach_sparsify_hook:
                hook = self._sparsify_hook(name)
                group["hook"] = group["layer"].register_forward_pre_hook(hook)
                group["hook_state"] = "sparsify"

    # ---- state
    def state_dict(self) -> Entry:
        """Masks, in the sparse form, and settings, without layers."""
        groups = {
            name: {key: value for key, value in group.items() if key not in ("hook", "layer")}
            for name, group in self.data_groups.items()
        }
        return {
            "state": self._convert_mask(self.state),
            "data_groups": groups,
            "defaults": self.defaults,
        }

    def _convert_mask(self, states_dict: dict[str, Entry], sparse_coo: bool = True) -> Entry:
        def change(mask: Tensor) -> Tensor:
            return mask.to_sparse() if sparse_coo else mask.to_dense()

        return {
            name: {**state, "mask": None if state["mask"] is None else _each(state["mask"], change)}
            for name, state in states_dict.items()
        }

    def load_state_dict(self, state_dict: Entry) -> None:
        """Takes masks and settings back, and lets the layers of this model work on."""
        for name in list(self.data_groups):
            self.unregister_layer(name)
        self.defaults = state_dict["defaults"]
        self.state = self._convert_mask(state_dict["state"], sparse_coo=False)
        for name, kept in state_dict["data_groups"].items():
            layer = fqn_to_module(self.model, name)
            if layer is None:
                raise RuntimeError(f"Error loading {name} into the model")
            group = self.data_groups[name] = {**kept, "layer": layer}
            aggregates = group["hook_state"] == "aggregate"
            hook = self._aggregate_hook(name) if aggregates else None
            if group["hook_state"] == "sparsify":
                hook = self._sparsify_hook(name)
            group["hook"] = layer.register_forward_pre_hook(hook or (lambda *_: None))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, group in self.data_groups.items():
            lines += [f"\tData Group {name}", f"\t    name: {name}"]
            lines += [
                f"\t    {key}: {group[key]}" for key in sorted(group) if key not in ("data", "hook")
            ]
        return "\n".join([*lines, ")"])


def _feature(data: Tensor, dim: int, feature: int) -> Tensor:
    return data.index_select(dim, torch.tensor([feature], device=data.device))
