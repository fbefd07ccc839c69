"""Quantization of models as graphs: trace, observe, calibrate or train, convert."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn
from torch.ao.nn.quantized import FloatFunctional, FXFloatFunctional
from torch.ao.quantization.backend_config import BackendConfig
from torch.ao.quantization.fx.convert import convert
from torch.ao.quantization.fx.custom_config import (
    ConvertCustomConfig,
    FuseCustomConfig,
    PrepareCustomConfig,
    leaf_classes,
)
from torch.ao.quantization.fx.fuse import fuse
from torch.ao.quantization.fx.prepare import prepare
from torch.ao.quantization.fx.tracer import QuantizationTracer
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.fx import GraphModule
from torch.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY

__all__ = [
    "attach_preserved_attrs_to_model",
    "convert_fx",
    "convert_to_reference_fx",
    "fuse_fx",
    "prepare_fx",
    "prepare_qat_fx",
]

Mapping = QConfigMapping | dict[str, Any]
Backend = BackendConfig | dict[str, Any] | None
Prepared = PrepareCustomConfig | dict[str, Any] | None


def attach_preserved_attrs_to_model(
    model: GraphModule | nn.Module, preserved_attrs: dict[str, Any]
) -> None:
    """Gives a graph attributes of the model it was traced from, and notes them in `meta`."""
    model.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = copy.copy(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def _check_is_graph_module(model: nn.Module) -> None:
    if not isinstance(model, GraphModule):
        raise ValueError(
            "input model must be a GraphModule, Got type:"
            + str(type(model))
            + " Please make sure to follow the tutorials."
        )


def _swap_ff_with_fxff(model: nn.Module) -> None:
    """Replaces FloatFunctional, whose observers graph mode does not need."""
    for name, child in list(model.named_children()):
        if isinstance(child, FloatFunctional):
            model._modules[name] = FXFloatFunctional()
        else:
            _swap_ff_with_fxff(child)


def _kept(model: nn.Module, names: list[str]) -> dict[str, Any]:
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _traced(model: nn.Module, tracer: QuantizationTracer) -> GraphModule:
    graph = tracer.trace(model)
    made = GraphModule(model, graph)
    made.train(model.training)
    return made


def _prepare_fx(
    model: nn.Module,
    qconfig_mapping: Mapping,
    is_qat: bool,
    example_inputs: tuple[Any, ...],
    prepare_custom_config: Prepared = None,
    _equalization_config: Mapping | None = None,
    backend_config: Backend = None,
    is_standalone_module: bool = False,
) -> GraphModule:
    settings = prepare_custom_config
    if isinstance(settings, dict):
        settings = PrepareCustomConfig.from_dict(settings)
    settings = settings or PrepareCustomConfig()
    _swap_ff_with_fxff(model)
    names = [*settings.non_traceable_module_names, *settings.standalone_module_names]
    kept = _kept(model, settings.preserved_attributes)
    tracer = QuantizationTracer(names, leaf_classes(settings))
    graph_module = _traced(model, tracer)
    attach_preserved_attrs_to_model(graph_module, kept)
    fused = fuse(graph_module, is_qat, None, backend_config)
    made = prepare(
        fused,
        qconfig_mapping,
        is_qat,
        tracer.node_name_to_scope,
        example_inputs,
        settings,
        _equalization_config,
        backend_config,
        is_standalone_module,
    )
    attach_preserved_attrs_to_model(made, kept)
    return made


def _prepare_standalone_module_fx(
    model: nn.Module,
    qconfig_mapping: Mapping,
    is_qat: bool,
    example_inputs: tuple[Any, ...],
    prepare_custom_config: Prepared = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The observed form of a part that is quantized by itself."""
    return _prepare_fx(
        model,
        qconfig_mapping,
        is_qat,
        example_inputs,
        prepare_custom_config,
        backend_config=backend_config,
        is_standalone_module=True,
    )


def fuse_fx(
    model: nn.Module,
    fuse_custom_config: FuseCustomConfig | dict[str, Any] | None = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The model as a graph with fused modules, for evaluation."""
    settings = fuse_custom_config
    if isinstance(settings, dict):
        settings = FuseCustomConfig.from_dict(settings)
    settings = settings or FuseCustomConfig()
    kept = _kept(model, settings.preserved_attributes)
    graph_module = _traced(model, QuantizationTracer([], []))
    attach_preserved_attrs_to_model(graph_module, kept)
    made = fuse(graph_module, False, settings, backend_config)
    attach_preserved_attrs_to_model(made, kept)
    return made


def prepare_fx(
    model: nn.Module,
    qconfig_mapping: Mapping,
    example_inputs: tuple[Any, ...],
    prepare_custom_config: Prepared = None,
    _equalization_config: Mapping | None = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The model as a graph with observers, for calibration."""
    return _prepare_fx(
        model,
        qconfig_mapping,
        False,
        example_inputs,
        prepare_custom_config,
        _equalization_config,
        backend_config,
    )


def prepare_qat_fx(
    model: nn.Module,
    qconfig_mapping: Mapping,
    example_inputs: tuple[Any, ...],
    prepare_custom_config: Prepared = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The model as a graph with fake quantizers, for training."""
    return _prepare_fx(
        model,
        qconfig_mapping,
        True,
        example_inputs,
        prepare_custom_config,
        backend_config=backend_config,
    )


def _convert_fx(
    graph_module: GraphModule,
    is_reference: bool,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
    _remove_qconfig: bool = True,
    qconfig_mapping: Mapping | None = None,
    backend_config: Backend = None,
    is_decomposed: bool = False,
    keep_original_weights: bool = False,
) -> GraphModule:
    settings = convert_custom_config
    if isinstance(settings, dict):
        settings = ConvertCustomConfig.from_dict(settings)
    settings = settings or ConvertCustomConfig()
    _check_is_graph_module(graph_module)
    kept = _kept(graph_module, settings.preserved_attributes)
    kept.update(graph_module.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}))
    made = convert(
        graph_module,
        is_reference,
        settings,
        is_standalone_module,
        _remove_qconfig_flag=_remove_qconfig,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
        is_decomposed=is_decomposed,
        keep_original_weights=keep_original_weights,
    )
    attach_preserved_attrs_to_model(made, kept)
    return made


def convert_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Mapping | None = None,
    backend_config: Backend = None,
    keep_original_weights: bool = False,
) -> GraphModule:
    """The quantized form of a calibrated or trained graph."""
    return _convert_fx(
        graph_module,
        False,
        convert_custom_config,
        _remove_qconfig=_remove_qconfig,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
        keep_original_weights=keep_original_weights,
    )


def convert_to_reference_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: Mapping | None = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The same in float arithmetic, with rounding in between: for other backends to lower."""
    return _convert_fx(
        graph_module,
        True,
        convert_custom_config,
        _remove_qconfig=_remove_qconfig,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
    )


def _convert_to_reference_decomposed_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    qconfig_mapping: Mapping | None = None,
    backend_config: Backend = None,
) -> GraphModule:
    """The same with plain integer tensors instead of quantized ones."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401

    return _convert_fx(
        graph_module,
        True,
        convert_custom_config,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
        is_decomposed=True,
    )
