"""Tables that other parts read off a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
)

__all__ = [
    "entry_to_pretty_str",
    "get_fused_module_classes",
    "get_fuser_method_mapping",
    "get_fusion_pattern_to_extra_inputs_getter",
    "get_fusion_pattern_to_root_node_getter",
    "get_module_to_qat_module",
    "get_pattern_to_dtype_configs",
    "get_pattern_to_input_type_to_index",
    "get_qat_module_classes",
    "get_root_module_to_quantized_reference_module",
    "pattern_to_human_readable",
    "remove_boolean_dispatch_from_name",
]

Table = dict[object, Any]


def _get_pattern_in_reversed_nested_tuple_format(config: BackendPatternConfig) -> object:
    """The pattern from its last operator back: (relu, (bn, conv)) for conv, bn, relu."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    if config.pattern is None:
        raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
    if not isinstance(config.pattern, tuple):
        return config.pattern
    parts = config.pattern
    if len(parts) not in (2, 3):
        raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {parts}")
    nested: object = parts[0]
    for part in parts[1:]:
        nested = (part, nested)
    return nested


def _by_pattern(backend_config: BackendConfig, attribute: str) -> Table:
    return {
        pattern: getattr(config, attribute)
        for pattern, config in backend_config._pattern_complex_format_to_config.items()
        if getattr(config, attribute)
    }


def get_pattern_to_dtype_configs(backend_config: BackendConfig) -> dict[object, list[DTypeConfig]]:
    """The dtypes of each pattern."""
    return {
        pattern: config.dtype_configs
        for pattern, config in backend_config._pattern_complex_format_to_config.items()
    }


def get_qat_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The modules that train."""
    return tuple({c.qat_module for c in backend_config.configs if c.qat_module is not None})


def get_fused_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The modules that patterns are fused into."""
    return tuple({c.fused_module for c in backend_config.configs if c.fused_module is not None})


def get_pattern_to_input_type_to_index(backend_config: BackendConfig) -> dict[object, dict]:
    """Where weights and biases stand among the arguments."""
    return {
        pattern: config._input_type_to_index
        for pattern, config in backend_config._pattern_complex_format_to_config.items()
    }


def get_root_module_to_quantized_reference_module(
    backend_config: BackendConfig,
) -> dict[type[nn.Module], type[nn.Module]]:
    """From float modules to reference ones."""
    return {
        config.root_module: config.reference_quantized_module
        for config in backend_config.configs
        if config.root_module is not None and config.reference_quantized_module is not None
    }


def get_fuser_method_mapping(backend_config: BackendConfig) -> dict[object, Callable]:
    """The function that fuses each pattern."""
    return _by_pattern(backend_config, "fuser_method")


def get_module_to_qat_module(backend_config: BackendConfig) -> dict[object, type[nn.Module]]:
    """The module that trains for each pattern."""
    return _by_pattern(backend_config, "qat_module")


def get_fusion_pattern_to_root_node_getter(backend_config: BackendConfig) -> dict[object, Callable]:
    """How the node with the weight is found in each pattern that says so."""
    return _by_pattern(backend_config, "_root_node_getter")


def get_fusion_pattern_to_extra_inputs_getter(
    backend_config: BackendConfig,
) -> dict[object, Callable]:
    """How further inputs are found in each pattern that says so."""
    return _by_pattern(backend_config, "_extra_inputs_getter")


def remove_boolean_dispatch_from_name(p: object) -> object:
    """A readable name for functions that are chosen by a flag."""
    for name in ("fractional_max_pool2d", "fractional_max_pool3d", "max_pool1d", "max_pool2d"):
        if p is getattr(torch.nn.functional, name):
            return f"torch.nn.functional.{name}"
    for name in ("max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"):
        if p is getattr(torch.nn.functional, name):
            return f"torch.nn.functional.{name}"
    if "boolean_dispatch" in str(p):
        raise AssertionError(f"{p} does not have a human readable representation")
    return p


def pattern_to_human_readable(p: object) -> object:
    """A pattern whose parts can be read."""
    if isinstance(p, tuple):
        return tuple(pattern_to_human_readable(part) for part in p)
    return p if isinstance(p, str) else remove_boolean_dispatch_from_name(p)


def entry_to_pretty_str(entry: dict[str, object]) -> str:
    """One record as text."""
    shown = dict(entry)
    if "pattern" in shown:
        shown["pattern"] = pattern_to_human_readable(shown["pattern"])
    lines = [f"  '{key}': {value}," for key, value in shown.items()]
    return "\n".join(["{", *lines, "}"])
