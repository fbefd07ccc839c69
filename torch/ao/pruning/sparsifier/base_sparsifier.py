"""What sparsifiers share: which tensors have masks, when masks are chosen anew, how they become
zeros of the weights."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

import torch
from torch import nn
from torch.ao.pruning.sparsifier.utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)
from torch.nn.utils import parametrize
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES = {nn.Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]
Entry = dict[str, Any]


class BaseSparsifier(abc.ABC):
    """Masks for the tensors of a model. A subclass chooses them in `update_mask`."""

    def __init__(self, defaults: Entry | None = None) -> None:
        self.defaults: Entry = dict(defaults or {})
        self.state: dict[str, Entry] = defaultdict(dict)
        self.groups: list[Entry] = []
        self.config: list[Entry] = []
        self.enable_mask_update = True
        self.model: nn.Module | None = None

    def __getstate__(self) -> Entry:
        return {name: getattr(self, name) for name in ("defaults", "state", "groups")}

    def __setstate__(self, state: Entry) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.groups):
            lines += [f"\tGroup {number}", f"\t    module: {group['module']}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key != "module"]
        return "\n".join([*lines, ")"])

    # ---- state
    def state_dict(self) -> Entry:
        """Masks and settings, without the modules they belong to."""
        groups = [
            {key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT}
            for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: Entry, strict: bool = True) -> None:
        """Takes masks and settings back; strict: every tensor must be known."""
        groups = copy.deepcopy(state_dict["groups"])
        states = state_dict["state"]
        for fqn, kept in states.items():
            info = get_arg_info_from_tensor_fqn(self.model, fqn)
            module, name = info["module"], info["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {fqn} into the model")
            if module is None:
                continue
            masks = [
                part
                for part in (
                    module.parametrizations[name] if parametrize.is_parametrized(module) else []
                )
                if isinstance(part, FakeSparsity)
            ]
            if masks:
                masks[0].mask = kept.get("mask", masks[0].mask)
            else:
                kept.setdefault("mask", torch.ones_like(getattr(module, name)))
                parametrize.register_parametrization(module, name, FakeSparsity(kept["mask"]))
        for group in groups:
            group.update(get_arg_info_from_tensor_fqn(self.model, group["tensor_fqn"]))
        self.__setstate__({"state": states, "groups": groups})

    # ---- preparing
    def make_config_from_model(
        self, model: nn.Module, SUPPORTED_MODULES: set[type[nn.Module]] = SUPPORTED_MODULES
    ) -> None:
        """Lists the weights of all supported layers of a model."""
        self.config = [
            {"tensor_fqn": f"{name}.weight" if name else "weight"}
            for name, part in model.named_modules()
            if type_before_parametrizations(part) in SUPPORTED_MODULES
        ]

    def prepare(self, model: nn.Module, config: list[Entry] | None) -> None:
        """Gives the listed tensors masks of ones. Without a list, the weights of linear layers."""
        self.model = model
        self.config = config
        if config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError("config elements should be dicts not modules")
            if "tensor_fqn" not in given:
                raise AssertionError("tensor_fqn is a required argument in the sparsity config")
            info = get_arg_info_from_tensor_fqn(model, given["tensor_fqn"])
            if info["module"] is None:
                raise AssertionError(f"no module for {given['tensor_fqn']} in the model")
            for key, value in info.items():
                if key in given and given[key] != value:
                    raise AssertionError(
                        f"Given both `{key}` and `tensor_fqn` in the config, but they differ: "
                        f"{given[key]} and {value}"
                    )
            self.groups.append({**self.defaults, **given, **info})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        """Registers the mask of each group: ones, or the one that its settings have."""
        for group in self.groups:
            weight = getattr(group["module"], group["tensor_name"])
            mask = group.get("mask")
            kept = torch.ones_like(weight) if mask is None else mask
            self.state[group["tensor_fqn"]] = {"mask": kept}
            part = group.get("parametrization", FakeSparsity)(kept)
            parametrize.register_parametrization(group["module"], group["tensor_name"], part)

    # ---- finishing
    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Writes the zeros into the weights and takes the masks away. Settings that are to be kept
        become the attribute `sparse_params` of their module."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            parametrize.remove_parametrizations(module, name, leave_parametrized=True)
            wanted = list(params_to_keep or ())
            fqn = group.get("module_fqn") or module_to_fqn(self.model, module)
            wanted += list((params_to_keep_per_layer or {}).get(fqn, ()))
            if wanted:
                kept = getattr(module, "sparse_params", {})
                module.sparse_params = {**kept, **{key: group[key] for key in wanted}}

    def convert(
        self,
        module: nn.Module,
        mapping: dict[type[nn.Module], type[nn.Module]] | None = None,
        inplace: bool = False,
        parameterization: type[nn.Module] = FakeSparsity,
    ) -> nn.Module:
        """Replaces masked layers by the sparse ones of a table."""
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        target = module if inplace else copy.deepcopy(module)
        for name, child in list(target.named_children()):
            if module_contains_param(child, parameterization):
                target._modules[name] = swap_module(child, mapping)
            else:
                target._modules[name] = self.convert(child, mapping, True, parameterization)
        return target

    def step(self, use_path: bool = True) -> None:
        """Chooses all masks anew."""
        if not self.enable_mask_update:
            return
        with torch.no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        """Chooses the mask of one tensor."""
