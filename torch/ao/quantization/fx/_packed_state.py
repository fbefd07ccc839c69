"""Packed weights of a graph in its state dictionary. They are objects, neither parameters nor
buffers, so two hooks write and read them."""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule


def _save(module: GraphModule, state: dict[str, Any], prefix: str, local: Any) -> None:
    for name in module.meta.get("_packed_weight_names", ()):
        state[prefix + name] = getattr(module, name)


def _load(module: GraphModule, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    for name in module.meta.get("_packed_weight_names", ()):
        if prefix + name in state:
            setattr(module, name, state.pop(prefix + name))


def keep_packed_weights(model: GraphModule, names: set[str]) -> None:
    """Lets the state dictionary of a graph hold these attributes."""
    model.meta["_packed_weight_names"] = sorted(names)
    model._register_state_dict_hook(_save)
    model.register_load_state_dict_pre_hook(_load)
