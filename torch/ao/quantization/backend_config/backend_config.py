"""The records of a backend: which patterns it runs, in which dtypes, and how their values are
observed. Setters return the record, so that calls can be chained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import nn

__all__ = [
    "BackendConfig",
    "BackendPatternConfig",
    "DTypeConfig",
    "DTypeWithConstraints",
    "ObservationType",
]

NAME_DICT_KEY = "name"
CONFIGS_DICT_KEY = "configs"
PATTERN_DICT_KEY = "pattern"
PATTERN_COMPLEX_FORMAT_DICT_KEY = "pattern_complex_format"
OBSERVATION_TYPE_DICT_KEY = "observation_type"
DTYPE_CONFIGS_DICT_KEY = "dtype_configs"
ROOT_MODULE_DICT_KEY = "root_module"
QAT_MODULE_DICT_KEY = "qat_module"
REFERENCE_QUANTIZED_MODULE_DICT_KEY = "reference_quantized_module_for_root"
FUSED_MODULE_DICT_KEY = "fused_module"
FUSER_METHOD_DICT_KEY = "fuser_method"
ROOT_NODE_GETTER_DICT_KEY = "root_node_getter"
EXTRA_INPUTS_GETTER_DICT_KEY = "extra_inputs_getter"
NUM_TENSOR_ARGS_TO_OBSERVATION_TYPE_DICT_KEY = "num_tensor_args_to_observation_type"
INPUT_TYPE_TO_INDEX_DICT_KEY = "input_type_to_index"

INPUT_DTYPE_DICT_KEY = "input_dtype"
OUTPUT_DTYPE_DICT_KEY = "output_dtype"
WEIGHT_DTYPE_DICT_KEY = "weight_dtype"
BIAS_DTYPE_DICT_KEY = "bias_dtype"
IS_DYNAMIC_DICT_KEY = "is_dynamic"


class ObservationType(Enum):
    """Where the output of an operator gets its grid from."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, and what an observer must promise for a backend to take it."""

    dtype: torch.dtype | None = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


class DTypeConfig:
    """The dtypes of one way to run a pattern. A plain dtype means no constraints."""

    def __init__(
        self,
        input_dtype: torch.dtype | DTypeWithConstraints | None = None,
        output_dtype: torch.dtype | DTypeWithConstraints | None = None,
        weight_dtype: torch.dtype | DTypeWithConstraints | None = None,
        bias_dtype: torch.dtype | None = None,
        is_dynamic: bool | None = None,
    ) -> None:
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype = bias_dtype
        self.is_dynamic = is_dynamic

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypeConfig) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"DTypeConfig({text})"

    @property
    def input_dtype(self) -> torch.dtype | None:
        """The dtype of inputs."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> torch.dtype | None:
        """The dtype of outputs."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> torch.dtype | None:
        """The dtype of weights."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """The record that to_dict wrote; dtypes may be plain."""
        names = (INPUT_DTYPE_DICT_KEY, OUTPUT_DTYPE_DICT_KEY, WEIGHT_DTYPE_DICT_KEY)
        for name in names:
            value = dtype_config_dict.get(name)
            if value is not None and not isinstance(value, torch.dtype | DTypeWithConstraints):
                raise ValueError(
                    f"Expected dtype_config_dict['{name}'] to be of type torch.dtype or "
                    f"DTypeWithConstraints, got {type(value)}"
                )
        return cls(
            *(dtype_config_dict.get(name) for name in names),
            dtype_config_dict.get(BIAS_DTYPE_DICT_KEY),
            dtype_config_dict.get(IS_DYNAMIC_DICT_KEY),
        )

    def to_dict(self) -> dict[str, Any]:
        """The record without its empty entries."""
        found: dict[str, Any] = {}
        for name in (INPUT_DTYPE_DICT_KEY, OUTPUT_DTYPE_DICT_KEY, WEIGHT_DTYPE_DICT_KEY):
            if getattr(self, name) is not None:
                found[name] = getattr(self, f"{name}_with_constraints")
        for name in (BIAS_DTYPE_DICT_KEY, IS_DYNAMIC_DICT_KEY):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        return found


def _constrained(given: torch.dtype | DTypeWithConstraints | None) -> DTypeWithConstraints:
    return given if isinstance(given, DTypeWithConstraints) else DTypeWithConstraints(given)


class BackendPatternConfig:
    """What a backend does with one pattern: a module class, a function, the name of a method, or a
    tuple of them in the order of computation."""

    def __init__(self, pattern: object = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: type[nn.Module] | None = None
        self.qat_module: type[nn.Module] | None = None
        self.reference_quantized_module: type[nn.Module] | None = None
        self.fused_module: type[nn.Module] | None = None
        self.fuser_method: Callable | None = None
        self._root_node_getter: Callable | None = None
        self._extra_inputs_getter: Callable | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: object = None

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if value}
        return f"BackendPatternConfig({shown})"

    def set_pattern(self, pattern: object) -> BackendPatternConfig:
        """The pattern, as a sequence."""
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self.pattern = pattern
        return self

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """Where the output gets its grid from."""
        self.observation_type = observation_type
        return self

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """One more way to run the pattern."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """All ways to run the pattern."""
        self.dtype_configs = dtype_configs
        return self

    def set_root_module(self, root_module: type[nn.Module]) -> BackendPatternConfig:
        """The float module with the weight."""
        self.root_module = root_module
        return self

    def set_qat_module(self, qat_module: type[nn.Module]) -> BackendPatternConfig:
        """The module that trains in its place."""
        self.qat_module = qat_module
        return self

    def set_reference_quantized_module(
        self, reference_quantized_module: type[nn.Module]
    ) -> BackendPatternConfig:
        """The reference module that the root becomes."""
        self.reference_quantized_module = reference_quantized_module
        return self

    def set_fused_module(self, fused_module: type[nn.Module]) -> BackendPatternConfig:
        """The module that the pattern is fused into."""
        self.fused_module = fused_module
        return self

    def set_fuser_method(self, fuser_method: Callable) -> BackendPatternConfig:
        """The function that fuses: (is_qat, *modules of the pattern)."""
        self.fuser_method = fuser_method
        return self

    def _set_root_node_getter(self, root_node_getter: Callable) -> BackendPatternConfig:
        self._root_node_getter = root_node_getter
        return self

    def _set_extra_inputs_getter(self, extra_inputs_getter: Callable) -> BackendPatternConfig:
        self._extra_inputs_getter = extra_inputs_getter
        return self

    def _set_num_tensor_args_to_observation_type(
        self, num_tensor_args_to_observation_type: dict[int, ObservationType]
    ) -> BackendPatternConfig:
        self._num_tensor_args_to_observation_type = num_tensor_args_to_observation_type
        return self

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        self._input_type_to_index = input_type_to_index
        return self

    def _set_pattern_complex_format(self, pattern: object) -> BackendPatternConfig:
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        self._pattern_complex_format = pattern
        return self

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """The record that to_dict wrote."""
        given = backend_pattern_config_dict
        made = cls()
        for key, (attribute, _) in _FIELDS.items():
            if given.get(key) is not None:
                setattr(made, attribute, given[key])
        made.dtype_configs = [
            DTypeConfig.from_dict(entry) if isinstance(entry, dict) else entry
            for entry in given.get(DTYPE_CONFIGS_DICT_KEY, [])
        ]
        return made

    def to_dict(self) -> dict[str, Any]:
        """The record without its empty entries."""
        found: dict[str, Any] = {
            OBSERVATION_TYPE_DICT_KEY: self.observation_type,
            DTYPE_CONFIGS_DICT_KEY: [entry.to_dict() for entry in self.dtype_configs],
        }
        for key, (attribute, empty) in _FIELDS.items():
            value = getattr(self, attribute)
            if value is not None and (empty is None or value != empty):
                found[key] = value
        return found


# Keys of the dictionary form: the attribute, and the value that is not written.
_FIELDS: dict[str, tuple[str, object]] = {
    PATTERN_DICT_KEY: ("pattern", None),
    OBSERVATION_TYPE_DICT_KEY: ("observation_type", None),
    ROOT_MODULE_DICT_KEY: ("root_module", None),
    QAT_MODULE_DICT_KEY: ("qat_module", None),
    REFERENCE_QUANTIZED_MODULE_DICT_KEY: ("reference_quantized_module", None),
    FUSED_MODULE_DICT_KEY: ("fused_module", None),
    FUSER_METHOD_DICT_KEY: ("fuser_method", None),
    ROOT_NODE_GETTER_DICT_KEY: ("_root_node_getter", None),
    EXTRA_INPUTS_GETTER_DICT_KEY: ("_extra_inputs_getter", None),
    NUM_TENSOR_ARGS_TO_OBSERVATION_TYPE_DICT_KEY: ("_num_tensor_args_to_observation_type", {}),
    INPUT_TYPE_TO_INDEX_DICT_KEY: ("_input_type_to_index", {}),
    PATTERN_COMPLEX_FORMAT_DICT_KEY: ("_pattern_complex_format", None),
}


class BackendConfig:
    """All patterns of a backend, by pattern: a later one replaces an earlier one."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._pattern_complex_format_to_config: dict[object, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"

    def set_name(self, name: str) -> BackendConfig:
        """The name of the backend."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """Adds a pattern, or replaces its record."""
        from torch.ao.quantization.backend_config.utils import (
            _get_pattern_in_reversed_nested_tuple_format,
        )

        key = _get_pattern_in_reversed_nested_tuple_format(config)
        self._pattern_complex_format_to_config[key] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """Adds several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """The records."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """The backend that to_dict wrote."""
        made = cls(backend_config_dict.get(NAME_DICT_KEY, ""))
        for entry in backend_config_dict.get(CONFIGS_DICT_KEY, []):
            known = isinstance(entry, BackendPatternConfig)
            made.set_backend_pattern_config(
                entry if known else BackendPatternConfig.from_dict(entry)
            )
        return made

    def to_dict(self) -> dict[str, Any]:
        """The backend as nested dictionaries."""
        return {
            NAME_DICT_KEY: self.name,
            CONFIGS_DICT_KEY: [config.to_dict() for config in self.configs],
        }
