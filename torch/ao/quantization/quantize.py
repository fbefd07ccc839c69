"""Quantization of modules: configurations spread over a model, observers are attached, values pass
through, and modules are swapped for quantized ones."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.ao.nn import intrinsic
from torch.ao.quantization import quantization_mappings as tables
from torch.ao.quantization.fake_quantize import FakeQuantizeBase
from torch.ao.quantization.observer import ObserverBase
from torch.ao.quantization.qconfig import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
)
from torch.ao.quantization.stubs import QuantWrapper

Mapping = dict[type[nn.Module], type[nn.Module]]
Specification = dict[object, QConfig | None]


def _chosen(
    module: nn.Module, specification: Specification, name: str, inherited: object
) -> object:
    """The configuration for a module: by its name, its type, its own attribute, its parent's."""
    given = specification.get(type(module), specification.get("", inherited))
    own = getattr(module, "qconfig", given)
    return specification.get(name, own)


def propagate_qconfig_(
    module: nn.Module,
    qconfig_dict: Specification | None = None,
    prepare_custom_config_dict: dict[str, object] | None = None,
) -> None:
    """Gives every module the attribute `qconfig` that holds for it."""
    specification = qconfig_dict or {}
    skipped = (prepare_custom_config_dict or {}).get("non_traceable_module_name", ())

    def spread(current: nn.Module, name: str, inherited: object) -> None:
        config = _chosen(current, specification, name, inherited)
        current.qconfig = config
        for child_name, child in current.named_children():
            full = f"{name}.{child_name}" if name else child_name
            if full not in skipped:
                spread(child, full, config)

    spread(module, "", None)


def _is_observer(module: nn.Module) -> bool:
    return isinstance(module, ObserverBase | FakeQuantizeBase)


def is_activation_post_process(module: nn.Module) -> bool:
    """Whether a module is an observer or a fake quantizer."""
    return _is_observer(module)


def _observe_output(module: nn.Module, args: object, output: Tensor) -> Tensor:
    return module.activation_post_process(output)


def _attach(module: nn.Module) -> None:
    maker = module.qconfig.activation
    fixed = tables.FIXED_OBSERVERS.get(type(module))
    if fixed is not None:
        trains = isinstance(maker(), FakeQuantizeBase)
        maker = tables.DEFAULT_MODULE_TO_ACT_POST_PROCESS[type(module)] if trains else fixed
    watcher = maker()
    parameter = next(module.parameters(), None)
    if parameter is not None:
        watcher.to(parameter.device)
    module.activation_post_process = watcher
    if isinstance(module, torch.ao.nn.quantized.FloatFunctional):
        return
    module.register_forward_hook(_observe_output, prepend=True)


def _add_observer_(module: nn.Module, kinds: set[type[nn.Module]]) -> None:
    """Attaches observers to the outputs of the modules that will be swapped."""
    for child in module.children():
        if _is_observer(child) or isinstance(child, nn.Identity):
            continue
        config = getattr(child, "qconfig", None)
        leaf = type(child) in kinds or isinstance(child, intrinsic._FusedModule)
        if config is not None and leaf and type(child) not in tables.no_observer_set():
            _attach(child)
        elif not leaf:
            _add_observer_(child, kinds)


def prepare(
    model: nn.Module,
    inplace: bool = False,
    allow_list: set[type[nn.Module]] | None = None,
    observer_non_leaf_module_list: list[type] | None = None,
    prepare_custom_config_dict: dict[str, object] | None = None,
) -> nn.Module:
    """A copy of the model that observes what its modules return."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model, prepare_custom_config_dict=prepare_custom_config_dict)
    kinds = tables.get_default_qconfig_propagation_list() if allow_list is None else allow_list
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration "
            "through `qconfig_dict` or by assigning the `.qconfig` attribute on submodules",
            stacklevel=2,
        )
    if type(model) in kinds and getattr(model, "qconfig", None) is not None:
        _attach(model)
    _add_observer_(model, set(kinds))
    return model


def _drop_observers(module: nn.Module) -> None:
    for current in module.modules():
        for key, hook in list(current._forward_hooks.items()):
            if hook is _observe_output:
                del current._forward_hooks[key]
        if _is_observer(getattr(current, "activation_post_process", None)):
            if not _is_observer(current):
                del current.activation_post_process
        current.__dict__.pop("qconfig", None)


def swap_module(
    mod: nn.Module,
    mapping: Mapping,
    custom_module_class_mapping: Mapping | None = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """The module that replaces `mod`, or `mod` itself where none does."""
    target = (custom_module_class_mapping or {}).get(type(mod)) or mapping.get(type(mod))
    if target is None or getattr(mod, "qconfig", None) is None:
        return mod
    made = target.from_float(mod)
    made.training = mod.training
    for key, hook in mod._forward_pre_hooks.items():
        made._forward_pre_hooks[key] = hook
    for key, hook in mod._forward_hooks.items():
        if hook is not _observe_output:
            made._forward_hooks[key] = hook
    if hasattr(target, "_watch"):
        made.qconfig = mod.qconfig
    return made


def _swap_children(module: nn.Module, mapping: Mapping, custom: Mapping | None) -> None:
    for name, child in list(module.named_children()):
        if _is_observer(child):
            continue
        if type(child) not in mapping and not isinstance(child, intrinsic._FusedModule):
            _swap_children(child, mapping, custom)
        module._modules[name] = swap_module(child, mapping, custom)


def convert(
    module: nn.Module,
    mapping: Mapping | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, object] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """A copy of an observed model whose modules are quantized."""
    if is_reference:
        raise NotImplementedError("convert(is_reference=True) of eager mode is not implemented")
    module = module if inplace else copy.deepcopy(module)
    mapping = tables.get_default_static_quant_module_mappings() if mapping is None else mapping
    custom = (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class")
    if type(module) in mapping:
        module = swap_module(module, mapping, custom)
    else:
        _swap_children(module, mapping, custom)
    if remove_qconfig:
        _drop_observers(module)
    return module


def prepare_qat(
    model: nn.Module, mapping: Mapping | None = None, inplace: bool = False
) -> nn.Module:
    """A copy of the model that trains with rounded weights and outputs."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = tables.get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    kinds = tables.get_default_qconfig_propagation_list() | set(mapping.values())
    _add_observer_(model, kinds)
    return model


def quantize(
    model: nn.Module,
    run_fn: Callable[..., object],
    run_args: tuple[object, ...],
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> nn.Module:
    """prepare, calibration by `run_fn(model, *run_args)`, convert."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(
    model: nn.Module,
    run_fn: Callable[..., object],
    run_args: tuple[object, ...],
    inplace: bool = False,
) -> nn.Module:
    """prepare_qat, training by `run_fn(model, *run_args)`, convert."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


_DYNAMIC_BY_DTYPE = {
    torch.qint8: default_dynamic_qconfig,
    torch.float16: float16_dynamic_qconfig,
    torch.quint8: float_qparams_weight_only_qconfig,
}


def quantize_dynamic(
    model: nn.Module,
    qconfig_spec: set | dict | None = None,
    dtype: torch.dtype = torch.qint8,
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> nn.Module:
    """A copy of the model whose layers have quantized weights and find the grid of their inputs at
    each call. `qconfig_spec`: types or names of modules, or configurations by them."""
    if dtype not in _DYNAMIC_BY_DTYPE:
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig "
            "please"
        )
    default = _DYNAMIC_BY_DTYPE[dtype]
    if qconfig_spec is None:
        qconfig_spec = dict.fromkeys(tables.DYNAMIC_CONFIGS, default)
    elif isinstance(qconfig_spec, set | frozenset | list | tuple):
        qconfig_spec = dict.fromkeys(qconfig_spec, default)
    mapping = tables.get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Puts marks around the modules with a configuration of their own."""
    parts = dict(module.named_children())
    if not parts and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    module._modules.update({name: add_quant_dequant(part) for name, part in parts.items()})
    return module


def get_observer_dict(mod: nn.Module, target_dict: dict[str, nn.Module], prefix: str = "") -> None:
    """Enters the observers of a model under the names of their modules."""
    for name, module in mod.named_modules():
        watcher = getattr(module, "activation_post_process", None)
        if watcher is not None:
            label = ".".join(part for part in (prefix, name, "activation_post_process") if part)
            target_dict[label] = watcher
