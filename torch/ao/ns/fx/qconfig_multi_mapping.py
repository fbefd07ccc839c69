"""Several configurations for each operator: a list of QConfigMappings that are filled together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch.ao.quantization import QConfigMapping
from torch.ao.quantization.qconfig import QConfigAny, qconfig_equals

__all__ = ["QConfigMultiMapping"]

# The tables of a mapping that are read by key, and the methods that set them.
_STYLES = {
    "object_type_qconfigs": "set_object_type",
    "module_name_regex_qconfigs": "set_module_name_regex",
    "module_name_qconfigs": "set_module_name",
    "module_name_object_type_order_qconfigs": "set_module_name_object_type_order",
}


class QConfigMultiMapping:
    """Like a QConfigMapping with lists of configurations. The mappings have the same keys: one
    without a choice of its own says None, so that no wider rule takes its place."""

    def __init__(self) -> None:
        self.qconfig_mappings_list: list[QConfigMapping] = [QConfigMapping()]

    def _fit(self, count: int) -> None:
        """Makes as many mappings as there are choices; new ones know the keys of the first."""
        while len(self.qconfig_mappings_list) < count:
            made = QConfigMapping()
            for style, setter in _STYLES.items():
                for key in getattr(self.qconfig_mappings_list[0], style):
                    getattr(made, setter)(*(key if isinstance(key, tuple) else (key,)), None)
            self.qconfig_mappings_list.append(made)

    def _set(self, setter: str, key: tuple[Any, ...], choices: list[QConfigAny]) -> None:
        distinct: list[QConfigAny] = []
        for choice in choices:
            if choice is None or not any(_same(choice, other) for other in distinct):
                distinct.append(choice)
        # Mappings that say nothing come last, so that operators count their choices from one.
        distinct = [c for c in distinct if c is not None]
        self._fit(len(distinct))
        padding = [None] * (len(self.qconfig_mappings_list) - len(distinct))
        for mapping, choice in zip(self.qconfig_mappings_list, distinct + padding, strict=True):
            getattr(mapping, setter)(*key, choice)

    def set_global(self, global_qconfig_list: list[QConfigAny]) -> QConfigMultiMapping:
        """The configurations of whatever has none of its own."""
        self._set("set_global", (), global_qconfig_list)
        return self

    def set_object_type(
        self, object_type: Callable | str, qconfig_list: list[QConfigAny]
    ) -> QConfigMultiMapping:
        """The configurations of a class of modules, a function or a method."""
        self._set("set_object_type", (object_type,), qconfig_list)
        return self

    def set_module_name_regex(
        self, module_name_regex: str, qconfig_list: list[QConfigAny]
    ) -> QConfigMultiMapping:
        """The configurations of modules whose names a pattern fits."""
        self._set("set_module_name_regex", (module_name_regex,), qconfig_list)
        return self

    def set_module_name(
        self, module_name: str, qconfig_list: list[QConfigAny]
    ) -> QConfigMultiMapping:
        """The configurations of a module."""
        self._set("set_module_name", (module_name,), qconfig_list)
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig_list: list[QConfigAny]
    ) -> QConfigMultiMapping:
        """The configurations of one call among those of a type in a module."""
        key = (module_name, object_type, index)
        self._set("set_module_name_object_type_order", key, qconfig_list)
        return self

    @classmethod
    def from_list_qconfig_mapping(
        cls, qconfig_mapping_list: list[QConfigMapping]
    ) -> QConfigMultiMapping:
        """The same from mappings that were made one by one."""
        made = cls()
        made.set_global([copy.deepcopy(m.global_qconfig) for m in qconfig_mapping_list])
        for style, setter in _STYLES.items():
            keys = dict.fromkeys(key for m in qconfig_mapping_list for key in getattr(m, style))
            for key in keys:
                choices = [getattr(m, style).get(key) for m in qconfig_mapping_list]
                made._set(setter, key if isinstance(key, tuple) else (key,), choices)
        return made

    def __repr__(self) -> str:
        inner = ",\n".join(repr(mapping) for mapping in self.qconfig_mappings_list)
        return f"{type(self).__name__} [\n{inner},\n]"


def _same(a: QConfigAny, b: QConfigAny) -> bool:
    return a is b or (a is not None and b is not None and qconfig_equals(a, b))
