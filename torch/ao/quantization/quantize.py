"""Quantization of modules: configurations spread over a model, observers are attached, values pass
through, and modules are swapped for quantized ones."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.ao.nn import intrinsic, quantized
from torch.ao.quantization import quantization_mappings as tables
from torch.ao.quantization.observer import _is_activation_post_process
from torch.ao.quantization.qconfig import (
    QConfig,
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from torch.ao.quantization.stubs import DeQuantStub, QuantWrapper
from torch.ao.quantization.utils import has_no_children_ignoring_parametrizations
from torch.nn.utils.parametrize import type_before_parametrizations

Mapping = dict[type[nn.Module], type[nn.Module]]
Specification = dict[object, QConfig | None]
Settings = dict[str, object] | None

is_activation_post_process = _is_activation_post_process
_DEFAULT_CUSTOM_CONFIG_DICT: dict[str, dict[type, type]] = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: quantized.LSTM._FLOAT_MODULE,
        nn.MultiheadAttention: quantized.MultiheadAttention._FLOAT_MODULE,
    },
    "observed_to_quantized_custom_module_class": {
        quantized.LSTM._FLOAT_MODULE: quantized.LSTM,
        quantized.MultiheadAttention._FLOAT_MODULE: quantized.MultiheadAttention,
    },
}


def get_default_custom_config_dict() -> dict[str, dict[type, type]]:
    """The modules that are replaced as a whole: LSTM and attention."""
    return _DEFAULT_CUSTOM_CONFIG_DICT


def _custom(settings: Settings, key: str) -> dict[type, type]:
    given = _DEFAULT_CUSTOM_CONFIG_DICT if settings is None else settings
    return given.get(key, {})


def _chosen(
    module: nn.Module, specification: Specification, name: str, inherited: object
) -> object:
    """The configuration for a module: by its name, its type, its own attribute, its parent's."""
    kind = type_before_parametrizations(module)
    given = specification.get(kind, inherited)
    given = specification.get(name, given)
    return getattr(module, "qconfig", given)


def propagate_qconfig_(
    module: nn.Module,
    qconfig_dict: Specification | None = None,
    prepare_custom_config_dict: Settings = None,
) -> None:
    """Gives every module the attribute `qconfig` that holds for it."""
    specification = qconfig_dict or {}
    skipped = (prepare_custom_config_dict or {}).get("non_traceable_module_name", ())

    def spread(current: nn.Module, name: str, inherited: object) -> None:
        config = _chosen(current, specification, name, inherited)
        current.qconfig = _add_module_to_qconfig_obs_ctr(config, current)
        for child_name, child in current.named_children():
            full = f"{name}.{child_name}" if name else child_name
            if full not in skipped:
                spread(child, full, config)

    spread(module, "", specification.get(""))


def _observer_forward_hook(self: nn.Module, input: object, output: Tensor) -> Tensor:
    """Passes what a module returns through its observer."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: nn.Module, input: tuple[Tensor, ...]) -> Tensor:
    """Passes the first input of a module through its observer."""
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module: nn.Module, pre_hook: bool = False) -> None:
    if not hasattr(module, "activation_post_process"):
        raise AssertionError("Expect activation_post_process attribute already attached")
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _attach(module: nn.Module, maker: Callable[[], nn.Module] | None = None) -> None:
    """Gives a module an observer of its outputs, on its device."""
    config = module.qconfig
    if config is None or hasattr(module, "activation_post_process"):
        return
    watcher = (config.activation if maker is None else maker)()
    devices = {tensor.device for tensor in [*module.parameters(), *module.buffers()]}
    if len(devices) == 1:
        watcher.to(next(iter(devices)))
    module.add_module("activation_post_process", watcher)
    _register_activation_post_process_hook(module, pre_hook=_activation_is_memoryless(config))


def _add_observer_(
    module: nn.Module,
    kinds: set[type[nn.Module]],
    non_leaf: list[type] | None = None,
    custom: dict[type, type] | None = None,
) -> None:
    """Attaches observers to the outputs of the modules that will be swapped."""
    for name, child in list(module.named_children()):
        kind = type_before_parametrizations(child)
        config = getattr(child, "qconfig", None)
        functional = kind in (quantized.FloatFunctional, quantized.QFunctional)
        # What leaves the quantized part has no levels to be observed.
        if kind in (nn.Dropout, DeQuantStub) or _is_activation_post_process(child):
            continue
        if functional:
            if config is not None:
                child.activation_post_process = config.activation()
        elif issubclass(kind, intrinsic._FusedModule) or (non_leaf and kind in non_leaf):
            if config is not None:
                _attach(child)
            if non_leaf and kind in non_leaf:
                _add_observer_(child, kinds, non_leaf, custom)
        elif tables._has_special_act_post_process(child):
            if config is not None:
                _attach(child, tables._get_special_act_post_process(child))
        elif config is not None and kind in (custom or {}):
            made = custom[kind].from_float(child)
            setattr(module, name, made)
            if custom[kind] not in tables.no_observer_set():
                _attach(made)
        elif kind in kinds and config is not None and kind is not nn.Sequential:
            _attach(child)
        else:
            _add_observer_(child, kinds, non_leaf, custom)
    # A model may be a single layer itself.
    if (
        has_no_children_ignoring_parametrizations(module)
        and not isinstance(module, nn.Sequential)
        and type_before_parametrizations(module) in kinds
        and getattr(module, "qconfig", None) is not None
    ):
        _attach(module)


def prepare(
    model: nn.Module,
    inplace: bool = False,
    allow_list: set[type[nn.Module]] | None = None,
    observer_non_leaf_module_list: list[type] | None = None,
    prepare_custom_config_dict: Settings = None,
) -> nn.Module:
    """A copy of the model that observes what its modules return."""
    custom = _custom(prepare_custom_config_dict, "float_to_observed_custom_module_class")
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    kinds = tables.get_default_qconfig_propagation_list() if allow_list is None else allow_list
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration "
            "through `qconfig_dict` or by assigning the `.qconfig` attribute on submodules",
            stacklevel=2,
        )
    _add_observer_(model, set(kinds), observer_non_leaf_module_list, custom)
    return model


def _remove_activation_post_process(module: nn.Module) -> None:
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        delattr(module, "activation_post_process")
    for hooks in (module._forward_hooks, module._forward_pre_hooks):
        for key, hook in list(hooks.items()):
            if hook in (_observer_forward_hook, _observer_forward_pre_hook):
                del hooks[key]


def _remove_qconfig(module: nn.Module) -> None:
    """Takes configurations and observers off a converted model."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


def _made_from(mod: nn.Module, target: type, custom: bool, precomputed: bool) -> nn.Module:
    if custom:
        return target.from_observed(mod)
    if getattr(target, "_IS_REFERENCE", False) or "reference" in target.__module__:
        return _reference_of(mod, target)
    parameters = inspect.signature(target.from_float).parameters
    if "use_precomputed_fake_quant" in parameters:
        return target.from_float(mod, use_precomputed_fake_quant=precomputed)
    return target.from_float(mod)


def _reference_of(mod: nn.Module, target: type) -> nn.Module:
    from torch.ao.quantization.utils import get_qparam_dict

    if mod.qconfig is None:
        raise AssertionError("module qconfig must not be None when swapping to reference module")
    watcher = mod.qconfig.weight()
    watcher(mod.weight)
    return target.from_float(mod, get_qparam_dict(watcher))


def swap_module(
    mod: nn.Module,
    mapping: Mapping,
    custom_module_class_mapping: Mapping,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """The module that replaces `mod`, or `mod` itself where none does."""
    kind = type_before_parametrizations(mod)
    custom = kind in (custom_module_class_mapping or {})
    target = custom_module_class_mapping[kind] if custom else mapping.get(kind)
    if target is None or getattr(mod, "qconfig", None) is None:
        if type(mod) is not DeQuantStub or target is None:
            return mod
    made = _made_from(mod, target, custom, use_precomputed_fake_quant)
    for key, hook in mod._forward_pre_hooks.items():
        if hook is not _observer_forward_pre_hook:
            made._forward_pre_hooks[key] = hook
    for key, hook in mod._forward_hooks.items():
        if hook is not _observer_forward_hook:
            made._forward_hooks[key] = hook
    devices = {tensor.device for tensor in [*mod.parameters(), *mod.buffers()]}
    if len(devices) == 1:
        made.to(next(iter(devices)))
    return made


def _convert(
    module: nn.Module,
    mapping: Mapping | None = None,
    inplace: bool = False,
    is_reference: bool = False,
    convert_custom_config_dict: Settings = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """Swaps the parts of a model."""
    if mapping is None:
        mapping = (
            tables.get_default_static_quant_reference_module_mappings()
            if is_reference
            else tables.get_default_static_quant_module_mappings()
        )
    custom = _custom(convert_custom_config_dict, "observed_to_quantized_custom_module_class")
    module = module if inplace else copy.deepcopy(module)
    swapped = {}
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if not isinstance(child, intrinsic._FusedModule) and kind not in custom:
            _convert(
                child,
                mapping,
                True,
                is_reference,
                convert_custom_config_dict,
                use_precomputed_fake_quant,
            )
        swapped[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
    module._modules.update(swapped)
    return module


def convert(
    module: nn.Module,
    mapping: Mapping | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Settings = None,
    use_precomputed_fake_quant: bool = False,
) -> nn.Module:
    """A copy of an observed model whose modules are quantized."""
    module = module if inplace else copy.deepcopy(module)
    _convert(
        module,
        mapping,
        True,
        is_reference,
        convert_custom_config_dict,
        use_precomputed_fake_quant,
    )
    if remove_qconfig:
        _remove_qconfig(module)
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
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


def quantize(
    model: nn.Module,
    run_fn: Callable[..., object],
    run_args: tuple[object, ...],
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> nn.Module:
    """prepare, calibration by `run_fn(model, *run_args)`, convert."""
    target = model if inplace else copy.deepcopy(model)
    observed = prepare(target.eval(), inplace=True)
    run_fn(observed, *run_args)
    return convert(observed, mapping, inplace=True)


def quantize_qat(
    model: nn.Module,
    run_fn: Callable[..., object],
    run_args: tuple[object, ...],
    inplace: bool = False,
) -> nn.Module:
    """prepare_qat, training by `run_fn(model, *run_args)`, convert."""
    target = model if inplace else copy.deepcopy(model)
    trained = prepare_qat(target.train(), inplace=True)
    run_fn(trained, *run_args)
    return convert(trained, inplace=True)


_DYNAMIC_BY_DTYPE = {
    torch.qint8: default_dynamic_qconfig,
    torch.float16: float16_dynamic_qconfig,
    torch.quint8: float_qparams_weight_only_qconfig,
    torch.quint4x2: float_qparams_weight_only_qconfig_4bit,
}
_ROWS = (nn.Embedding, nn.EmbeddingBag)
_PRODUCTS = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)


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
        tables_only = dtype in (torch.quint8, torch.quint4x2)
        qconfig_spec = dict.fromkeys(_ROWS if tables_only else _PRODUCTS, default)
    elif isinstance(qconfig_spec, set | frozenset | list | tuple):
        qconfig_spec = dict.fromkeys(qconfig_spec, default)
    mapping = tables.get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, mapping, inplace=True)
    return model


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Puts marks around the modules with a configuration of their own."""
    parts = dict(module.named_children())
    if not parts and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    module._modules.update({name: add_quant_dequant(part) for name, part in parts.items()})
    return module


def _get_observer_dict(mod: nn.Module, target_dict: dict[str, nn.Module], prefix: str = "") -> None:
    """Enters the observers of a model under the names of their modules."""
    for name, module in mod.named_modules():
        watcher = getattr(module, "activation_post_process", None)
        if watcher is not None:
            label = ".".join(part for part in (prefix, name, "activation_post_process") if part)
            target_dict[label] = watcher
