"""Replaces runs of modules by fused ones: batch normalisation is folded into the layer before it,
and an activation becomes part of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from torch import nn
from torch.ao.nn import intrinsic as fused
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

_CONV_RELU = {
    nn.Conv1d: fused.ConvReLU1d,
    nn.Conv2d: fused.ConvReLU2d,
    nn.Conv3d: fused.ConvReLU3d,
}
_CONV_BN = {nn.Conv1d: fused.ConvBn1d, nn.Conv2d: fused.ConvBn2d, nn.Conv3d: fused.ConvBn3d}
_CONV_BN_RELU = {
    nn.Conv1d: fused.ConvBnReLU1d,
    nn.Conv2d: fused.ConvBnReLU2d,
    nn.Conv3d: fused.ConvBnReLU3d,
}
_BN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def fuse_conv_bn(is_qat: bool, conv: nn.Module, bn: nn.Module) -> nn.Module:
    """A convolution with a normalisation folded into it; while training, both in a row."""
    _check_modes(conv, bn)
    if is_qat:
        return _CONV_BN[type(conv)](conv, bn)
    return fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: nn.Module, bn: nn.Module, relu: nn.Module) -> nn.Module:
    """The same with an activation."""
    _check_modes(conv, bn, relu)
    if is_qat:
        return _CONV_BN_RELU[type(conv)](conv, bn, relu)
    return _CONV_RELU[type(conv)](fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: nn.Module, bn: nn.Module) -> nn.Module:
    """A linear layer with a normalisation folded into it."""
    _check_modes(linear, bn)
    return fused.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def _check_modes(*modules: nn.Module) -> None:
    if len({module.training for module in modules}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")


def _in_row(made: type[nn.Module]) -> Callable[..., nn.Module]:
    return lambda is_qat, *modules: made(*modules)


def _fuser(kinds: tuple[type[nn.Module], ...]) -> Callable[..., nn.Module] | None:
    """What fuses modules of these kinds; None where nothing does."""
    head, rest = kinds[0], kinds[1:]
    if head in _CONV_RELU:
        if rest == (nn.ReLU,):
            return _in_row(_CONV_RELU[head])
        if len(rest) == 1 and rest[0] in _BN:
            return fuse_conv_bn
        if len(rest) == 2 and rest[0] in _BN and rest[1] is nn.ReLU:
            return fuse_conv_bn_relu
    simple = {
        (nn.Linear, nn.ReLU): _in_row(fused.LinearReLU),
        (nn.BatchNorm2d, nn.ReLU): _in_row(fused.BNReLU2d),
        (nn.BatchNorm3d, nn.ReLU): _in_row(fused.BNReLU3d),
        (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    }
    return simple.get(kinds)


def fuse_known_modules(
    mod_list: Sequence[nn.Module], is_qat: bool, additional_fuser_method_mapping: object = None
) -> list[nn.Module]:
    """The fused module, then identities in place of the others. Hooks of the first and the last
    module go to the fused one."""
    kinds = tuple(type(module) for module in mod_list)
    extra = dict(additional_fuser_method_mapping or {})
    fuse = extra.get(kinds) or _fuser(kinds)
    if fuse is None:
        raise NotImplementedError(f"Cannot fuse modules: {kinds}")
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
