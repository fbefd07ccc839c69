"""Replaces runs of modules, given by name, by fused ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from torch import nn
from torch.ao.quantization.fuser_method_mappings import (  # noqa: F401
    fuse_conv_bn,
    fuse_conv_bn_relu,
    get_fuser_method,
)
from torch.nn.utils.parametrize import type_before_parametrizations

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(
    mod_list: Sequence[nn.Module], is_qat: bool, additional_fuser_method_mapping: object = None
) -> list[nn.Module]:
    """The fused module, then identities in place of the others. Hooks of the first and the last
    module go to the fused one."""
    kinds = tuple(type_before_parametrizations(module) for module in mod_list)
    fuse = get_fuser_method(kinds, additional_fuser_method_mapping)
    made = fuse(is_qat, *mod_list)
    for key, hook in mod_list[0]._forward_pre_hooks.items():
        made._forward_pre_hooks[key] = hook
    mod_list[0]._forward_pre_hooks.clear()
    for key, hook in mod_list[-1]._forward_hooks.items():
        made._forward_hooks[key] = hook
    mod_list[-1]._forward_hooks.clear()
    made.training = mod_list[0].training
    rest = [nn.Identity() for _ in mod_list[1:]]
    for module in rest:
        module.training = mod_list[0].training
    return [made, *rest]


def _fuse(
    model: nn.Module,
    modules_to_fuse: list,
    is_qat: bool,
    inplace: bool,
    fuser_func: Callable[..., list[nn.Module]],
    fuse_custom_config_dict: dict[str, object] | None,
) -> nn.Module:
    model = model if inplace else copy.deepcopy(model)
    extra = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping")
    groups = modules_to_fuse if isinstance(modules_to_fuse[0], list | tuple) else [modules_to_fuse]
    for names in groups:
        modules = [model.get_submodule(name) for name in names]
        for name, made in zip(names, fuser_func(modules, is_qat, extra), strict=True):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, made)
    return model


def fuse_modules(
    model: nn.Module,
    modules_to_fuse: list,
    inplace: bool = False,
    fuser_func: Callable[..., list[nn.Module]] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, object] | None = None,
) -> nn.Module:
    """Fuses lists of modules, given by name, for evaluation."""
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: nn.Module,
    modules_to_fuse: list,
    inplace: bool = False,
    fuser_func: Callable[..., list[nn.Module]] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, object] | None = None,
) -> nn.Module:
    """The same for training."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
