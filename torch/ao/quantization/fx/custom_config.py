"""What a user says about parts of a model that graph mode cannot see through. Setters return the
record; the dictionary forms are the older interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.ao.quantization.backend_config import BackendConfig
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.ao.quantization.quant_type import (
    QuantType,
    _get_quant_type_to_str,
    _quant_type_from_str,
)

__all__ = [
    "ConvertCustomConfig",
    "FuseCustomConfig",
    "PrepareCustomConfig",
    "StandaloneModuleConfigEntry",
]

STANDALONE_MODULE_NAME_DICT_KEY = "standalone_module_name"
STANDALONE_MODULE_CLASS_DICT_KEY = "standalone_module_class"
FLOAT_TO_OBSERVED_DICT_KEY = "float_to_observed_custom_module_class"
OBSERVED_TO_QUANTIZED_DICT_KEY = "observed_to_quantized_custom_module_class"
NON_TRACEABLE_MODULE_NAME_DICT_KEY = "non_traceable_module_name"
NON_TRACEABLE_MODULE_CLASS_DICT_KEY = "non_traceable_module_class"
INPUT_QUANTIZED_INDEXES_DICT_KEY = "input_quantized_idxs"
OUTPUT_QUANTIZED_INDEXES_DICT_KEY = "output_quantized_idxs"
PRESERVED_ATTRIBUTES_DICT_KEY = "preserved_attributes"

ClassTable = dict[QuantType, dict[type, type]]


@dataclass
class StandaloneModuleConfigEntry:
    """How a module that is quantized by itself is prepared; None means as the model is."""

    qconfig_mapping: QConfigMapping | None
    example_inputs: tuple[Any, ...]
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: BackendConfig | None


def _table_to_dict(table: ClassTable) -> dict[str, dict[type, type]]:
    return {_get_quant_type_to_str(kind): dict(classes) for kind, classes in table.items()}


def _table_from_dict(given: dict[str, dict[type, type]]) -> ClassTable:
    return {_quant_type_from_str(name): dict(classes) for name, classes in given.items()}


def _record(value: object, kind: type, what: str) -> object:
    """A record, or one made of a dictionary."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, dict):
        return kind.from_dict(value)
    raise ValueError(f"Expected {kind.__name__} in {what}, got '{type(value)}'")


class PrepareCustomConfig:
    """For prepare_fx and prepare_qat_fx."""

    standalone_module_names: dict[str, StandaloneModuleConfigEntry]
    standalone_module_classes: dict[type, StandaloneModuleConfigEntry]
    float_to_observed_mapping: ClassTable
    non_traceable_module_names: list[str]
    non_traceable_module_classes: list[type]
    input_quantized_indexes: list[int]
    output_quantized_indexes: list[int]
    preserved_attributes: list[str]

    def __init__(self) -> None:
        for name, kind in PrepareCustomConfig.__annotations__.items():
            setattr(self, name, [] if kind.startswith("list") else {})

    def __repr__(self) -> str:
        return f"PrepareCustomConfig({ {k: v for k, v in vars(self).items() if v} })"

    def set_standalone_module_name(
        self,
        module_name: str,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:
        """A module, by name, that is quantized by itself."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self,
        module_class: type,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:
        """Modules, by class, that are quantized by themselves."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(
        self, float_class: type, observed_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> PrepareCustomConfig:
        """A class of the user's and the one that observes in its place."""
        if quant_type is not QuantType.STATIC:
            raise ValueError("set_float_to_observed_mapping is currently only supported for STATIC")
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules, by name, that are not looked into."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Modules, by class, that are not looked into."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Inputs of the model that are quantized tensors already."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Outputs of the model that stay quantized tensors."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> PrepareCustomConfig:
        """Attributes of the model that its traced form keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """A record of what to_dict returns."""
        given = prepare_custom_config_dict
        made = cls()
        for key, setter in (
            (STANDALONE_MODULE_NAME_DICT_KEY, made.set_standalone_module_name),
            (STANDALONE_MODULE_CLASS_DICT_KEY, made.set_standalone_module_class),
        ):
            for which, mapping, inputs, config, backend in given.get(key, []):
                setter(
                    which,
                    _record(mapping, QConfigMapping, key),
                    inputs,
                    _record(config, PrepareCustomConfig, key),
                    _record(backend, BackendConfig, key),
                )
        made.float_to_observed_mapping = _table_from_dict(given.get(FLOAT_TO_OBSERVED_DICT_KEY, {}))
        made.non_traceable_module_names = given.get(NON_TRACEABLE_MODULE_NAME_DICT_KEY, [])
        made.non_traceable_module_classes = given.get(NON_TRACEABLE_MODULE_CLASS_DICT_KEY, [])
        made.input_quantized_indexes = given.get(INPUT_QUANTIZED_INDEXES_DICT_KEY, [])
        made.output_quantized_indexes = given.get(OUTPUT_QUANTIZED_INDEXES_DICT_KEY, [])
        made.preserved_attributes = given.get(PRESERVED_ATTRIBUTES_DICT_KEY, [])
        return made

    def to_dict(self) -> dict[str, Any]:
        """The record without its empty entries."""

        def rows(table: dict[Any, StandaloneModuleConfigEntry]) -> list[tuple]:
            def plain(value: Any) -> Any:
                return None if value is None else value.to_dict()

            return [
                (
                    which,
                    plain(entry.qconfig_mapping),
                    entry.example_inputs,
                    plain(entry.prepare_custom_config),
                    entry.backend_config,
                )
                for which, entry in table.items()
            ]

        found = {
            STANDALONE_MODULE_NAME_DICT_KEY: rows(self.standalone_module_names),
            STANDALONE_MODULE_CLASS_DICT_KEY: rows(self.standalone_module_classes),
            FLOAT_TO_OBSERVED_DICT_KEY: _table_to_dict(self.float_to_observed_mapping),
            NON_TRACEABLE_MODULE_NAME_DICT_KEY: self.non_traceable_module_names,
            NON_TRACEABLE_MODULE_CLASS_DICT_KEY: self.non_traceable_module_classes,
            INPUT_QUANTIZED_INDEXES_DICT_KEY: self.input_quantized_indexes,
            OUTPUT_QUANTIZED_INDEXES_DICT_KEY: self.output_quantized_indexes,
            PRESERVED_ATTRIBUTES_DICT_KEY: self.preserved_attributes,
        }
        return {key: value for key, value in found.items() if value}


class ConvertCustomConfig:
    """For convert_fx."""

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: ClassTable = {}
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"ConvertCustomConfig({ {k: v for k, v in vars(self).items() if v} })"

    def set_observed_to_quantized_mapping(
        self, observed_class: type, quantized_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> ConvertCustomConfig:
        """A class that observes and the quantized one that replaces it."""
        table = self.observed_to_quantized_mapping.setdefault(quant_type, {})
        table[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> ConvertCustomConfig:
        """Attributes of the model that its converted form keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """A record of what to_dict returns."""
        given = convert_custom_config_dict
        made = cls()
        for name, classes in given.get(OBSERVED_TO_QUANTIZED_DICT_KEY, {}).items():
            for observed, quantized in classes.items():
                kind = _quant_type_from_str(name)
                made.set_observed_to_quantized_mapping(observed, quantized, kind)
        return made.set_preserved_attributes(given.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self) -> dict[str, Any]:
        """The record without its empty entries."""
        found: dict[str, Any] = {}
        table = _table_to_dict(self.observed_to_quantized_mapping)
        if table:
            found[OBSERVED_TO_QUANTIZED_DICT_KEY] = table
        if self.preserved_attributes:
            found[PRESERVED_ATTRIBUTES_DICT_KEY] = self.preserved_attributes
        return found


class FuseCustomConfig:
    """For fuse_fx."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"FuseCustomConfig({ {k: v for k, v in vars(self).items() if v} })"

    def set_preserved_attributes(self, attributes: list[str]) -> FuseCustomConfig:
        """Attributes of the model that its fused form keeps."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """A record of what to_dict returns."""
        names = fuse_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, [])
        return cls().set_preserved_attributes(names)

    def to_dict(self) -> dict[str, Any]:
        """The record without its empty entries."""
        names = self.preserved_attributes
        return {PRESERVED_ATTRIBUTES_DICT_KEY: names} if names else {}


def _get_custom_module_class_keys(custom_module_mapping: ClassTable) -> list[type]:
    """All classes that have a replacement, for whichever kind of quantization."""
    return [kind for classes in custom_module_mapping.values() for kind in classes]


def leaf_classes(config: PrepareCustomConfig) -> list[type[nn.Module]]:
    """Classes that tracing does not look into."""
    return [
        *config.non_traceable_module_classes,
        *config.standalone_module_classes,
        *_get_custom_module_class_keys(config.float_to_observed_mapping),
    ]
