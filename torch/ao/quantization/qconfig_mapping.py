"""Which configuration a part of a model gets: by its name, a pattern of names, its kind, or none of
these. The more special choice wins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.ao.quantization import qconfig as configs
from torch.ao.quantization.fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from torch.ao.quantization.observer import (
    _Maker,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from torch.ao.quantization.qconfig import QConfig, QConfigAny
from torch.nn import functional

__all__ = [
    "QConfigMapping",
    "get_default_qat_qconfig_mapping",
    "get_default_qconfig_mapping",
]

_GLOBAL_DICT_KEY = ""
_OBJECT_TYPE_DICT_KEY = "object_type"
_MODULE_NAME_REGEX_DICT_KEY = "module_name_regex"
_MODULE_NAME_DICT_KEY = "module_name"
_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name_object_type_order"

# The tables of a mapping by their keys in its dictionary form.
_TABLES = {
    _OBJECT_TYPE_DICT_KEY: "object_type_qconfigs",
    _MODULE_NAME_REGEX_DICT_KEY: "module_name_regex_qconfigs",
    _MODULE_NAME_DICT_KEY: "module_name_qconfigs",
    _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: "module_name_object_type_order_qconfigs",
}

# Functions whose results have a known range.
_FIXED_QPARAMS_OP_TO_OBSERVER: dict[Callable | str, _Maker] = {
    **dict.fromkeys(
        (
            nn.Hardsigmoid,
            functional.hardsigmoid,
            "hardsigmoid",
            "hardsigmoid_",
            nn.Sigmoid,
            torch.sigmoid,
            "sigmoid",
            "sigmoid_",
            nn.Softmax,
        ),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys(
        (nn.Tanh, torch.tanh, "tanh", "tanh_"), default_fixed_qparams_range_neg1to1_observer
    ),
}
_TRANSPOSED = (
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)


class QConfigMapping:
    """Configurations by name, pattern and kind. The setters return the mapping."""

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[
            tuple[str, Callable, int], QConfigAny
        ] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """For everything without a choice of its own."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfigAny) -> QConfigMapping:
        """For a class of modules, a function or a method."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """For modules whose name matches; the first pattern that does wins."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """For a module and its parts."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: QConfigAny
    ) -> QConfigMapping:
        """For the index-th use of a function or class in a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, value in vars(self).items():
            lines.append(f" {name}")
            if isinstance(value, OrderedDict) and value:
                lines += [f"  {key}: {choice}" for key, choice in value.items()]
            else:
                lines.append(f"  {value}")
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The mapping as lists of tuples."""
        rows = {key: list(getattr(self, name).items()) for key, name in _TABLES.items()}
        order = _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY
        rows[order] = [(*place, choice) for place, choice in rows[order]]
        return {_GLOBAL_DICT_KEY: self.global_qconfig, **rows}

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """A mapping of what to_dict returns; missing entries are empty."""
        made = cls()
        made.set_global(qconfig_dict.get(_GLOBAL_DICT_KEY))
        setters = {
            _OBJECT_TYPE_DICT_KEY: made.set_object_type,
            _MODULE_NAME_REGEX_DICT_KEY: made.set_module_name_regex,
            _MODULE_NAME_DICT_KEY: made.set_module_name,
            _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: made.set_module_name_object_type_order,
        }
        for key, setter in setters.items():
            for entry in qconfig_dict.get(key, []):
                setter(*entry)
        return made


def _default_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    made = configs.get_default_qat_qconfig if is_qat else configs.get_default_qconfig
    chosen = made(backend, version)
    plain_weight = default_weight_fake_quant if is_qat else default_weight_observer
    transposed = QConfig(chosen.activation, plain_weight)
    norm = QConfig(chosen.activation, default_placeholder_observer)
    mapping = QConfigMapping().set_global(chosen)
    mapping.set_object_type("reshape", configs.default_reuse_input_qconfig)
    for kind in _TRANSPOSED:
        mapping.set_object_type(kind, transposed)
    mapping.set_object_type(functional.layer_norm, norm)
    mapping.set_object_type(nn.LayerNorm, norm)
    mapping.set_object_type(nn.PReLU, configs.default_quint8_weight_qconfig)
    for kind, watcher in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        activation = FixedQParamsFakeQuantize.with_args(observer=watcher) if is_qat else watcher
        mapping.set_object_type(kind, QConfig(activation, plain_weight))
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The mapping for quantization after training on an engine."""
    return _default_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The mapping for training that is aware of quantization."""
    return _default_mapping(True, backend, version)


def _symmetric(mapping: QConfigMapping, chosen: QConfig) -> QConfigMapping:
    mapping.set_global(chosen)
    for kind, choice in mapping.object_type_qconfigs.items():
        if kind in _TRANSPOSED:
            made = QConfig(chosen.activation, choice.weight)
            mapping.set_object_type(kind, made)
    return mapping


def _get_symmetric_qnnpack_qconfig_mapping() -> QConfigMapping:
    """Signed activations and weights without the lowest level."""
    chosen = configs.default_symmetric_qnnpack_qconfig
    return _symmetric(get_default_qconfig_mapping("qnnpack"), chosen)


def _get_symmetric_qnnpack_qat_qconfig_mapping() -> QConfigMapping:
    """The same for training."""
    chosen = configs.default_symmetric_qnnpack_qat_qconfig
    return _symmetric(get_default_qat_qconfig_mapping("qnnpack"), chosen)


def _get_default_qconfig_mapping_with_default_qconfig(
    is_qat: bool, backend: str, default_qconfig: QConfig
) -> QConfigMapping:
    """The default mapping with another choice for everything that has no special one."""
    made = get_default_qat_qconfig_mapping if is_qat else get_default_qconfig_mapping
    mapping = made(backend).set_global(default_qconfig)
    for kind in list(mapping.object_type_qconfigs):
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER:
            mapping.set_object_type(kind, default_qconfig)
    return mapping
