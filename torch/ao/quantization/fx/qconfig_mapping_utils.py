"""Which configuration each node of a graph gets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

from torch import nn
from torch.ao.nn.intrinsic import _FusedModule
from torch.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
)
from torch.ao.quantization.backend_config.utils import get_module_to_qat_module
from torch.ao.quantization.qconfig import (
    QConfigAny,
    _add_module_to_qconfig_obs_ctr,
    qconfig_equals,
)
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.fx import GraphModule
from torch.nn.utils.parametrize import type_before_parametrizations

__all__: list[str] = []

Scopes = dict[str, tuple[str, type]]


def _get_object_type_qconfig(
    qconfig_mapping: QConfigMapping, object_type: Callable | str, fallback_qconfig: QConfigAny
) -> QConfigAny:
    """The choice for a kind."""
    return qconfig_mapping.object_type_qconfigs.get(object_type, fallback_qconfig)


def _get_module_name_regex_qconfig(
    qconfig_mapping: QConfigMapping, module_name: str, fallback_qconfig: QConfigAny
) -> QConfigAny:
    """The choice of the first pattern that a name matches."""
    for pattern, choice in qconfig_mapping.module_name_regex_qconfigs.items():
        if re.match(pattern, module_name):
            return choice
    return fallback_qconfig


def _get_module_name_qconfig(
    qconfig_mapping: QConfigMapping, module_name: str, fallback_qconfig: QConfigAny
) -> QConfigAny:
    """The choice for a name, or for the nearest module around it that has one."""
    name = module_name
    while name:
        if name in qconfig_mapping.module_name_qconfigs:
            return qconfig_mapping.module_name_qconfigs[name]
        name = name.rpartition(".")[0]
    return fallback_qconfig


def _maybe_adjust_qconfig_for_module_type_or_name(
    qconfig_mapping: QConfigMapping,
    module_type: Callable,
    module_name: str,
    global_qconfig: QConfigAny,
) -> QConfigAny:
    """By name, else by pattern of names, else by kind, else the one for everything."""
    by_type = _get_object_type_qconfig(qconfig_mapping, module_type, global_qconfig)
    by_regex = _get_module_name_regex_qconfig(qconfig_mapping, module_name, by_type)
    return _get_module_name_qconfig(qconfig_mapping, module_name, by_regex)


def _maybe_adjust_qconfig_for_module_name_object_type_order(
    qconfig_mapping: QConfigMapping,
    cur_module_path: str,
    cur_object_type: Callable,
    cur_object_type_idx: int,
    fallback_qconfig: QConfigAny,
) -> QConfigAny:
    """The choice for the n-th use of a kind in a module."""
    key = (cur_module_path, cur_object_type, cur_object_type_idx)
    return qconfig_mapping.module_name_object_type_order_qconfigs.get(key, fallback_qconfig)


def _kind_of(module: nn.Module, mapping: QConfigMapping) -> Callable:
    """The kind that counts: that of the layer inside for a fused module without a choice."""
    kind = type_before_parametrizations(module)
    if kind in mapping.object_type_qconfigs or not isinstance(module, _FusedModule):
        return kind
    return type_before_parametrizations(module[0]) if len(module) else kind


def _generate_node_name_to_qconfig(
    root: nn.Module,
    model: GraphModule,
    qconfig_mapping: QConfigMapping,
    node_name_to_scope: Scopes,
) -> dict[str, QConfigAny]:
    """The choices for all nodes, by name."""
    mapping = qconfig_mapping
    modules = dict(model.named_modules(remove_duplicate=False))
    counts: dict[tuple[str, object], int] = defaultdict(int)
    found: dict[str, QConfigAny] = {}

    def numbered(path: str, kind: object, choice: QConfigAny) -> QConfigAny:
        index = counts[path, kind]
        counts[path, kind] += 1
        return _maybe_adjust_qconfig_for_module_name_object_type_order(
            mapping, path, kind, index, choice
        )

    for node in model.graph.nodes:
        choice: QConfigAny = None
        module: nn.Module | None = None
        if node.op == "get_attr":
            path = node_name_to_scope.get(node.name, ("", None))[0]
            choice = _maybe_adjust_qconfig_for_module_type_or_name(
                mapping, type(modules.get(path, model)), path, mapping.global_qconfig
            )
        elif node.op in ("call_function", "call_method"):
            path, kind = node_name_to_scope.get(node.name, ("", None))
            by_type = _get_object_type_qconfig(mapping, node.target, mapping.global_qconfig)
            by_regex = _get_module_name_regex_qconfig(mapping, path, by_type)
            choice = _get_module_name_qconfig(mapping, path, by_regex)
            if node.op == "call_function":
                choice = numbered(path, node.target, choice)
        elif node.op == "call_module":
            module = modules[str(node.target)]
            if _is_observer(module):
                continue
            kind = _kind_of(module, mapping)
            choice = _maybe_adjust_qconfig_for_module_type_or_name(
                mapping, kind, str(node.target), mapping.global_qconfig
            )
            parent = node_name_to_scope.get(node.name, ("", None))[0]
            if parent == node.target:
                parent = str(node.target).rpartition(".")[0]
            choice = numbered(parent, kind, choice)
        found[node.name] = _add_module_to_qconfig_obs_ctr(
            choice, module if module is not None else model
        )
    return found


def _is_observer(module: nn.Module) -> bool:
    from torch.ao.quantization.observer import _is_activation_post_process

    return _is_activation_post_process(module)


def _compare_prepare_convert_qconfig_mappings(
    prepare_qconfig_mapping: QConfigMapping, convert_qconfig_mapping: QConfigMapping
) -> None:
    """Refuses a mapping for convert that chooses otherwise; it may choose nothing."""
    from torch.ao.quantization.qconfig import qconfig_equals

    if not qconfig_equals(
        prepare_qconfig_mapping.global_qconfig, convert_qconfig_mapping.global_qconfig
    ):
        raise AssertionError("Expected global qconfigs to be the same in the two mappings")
    for name in ("object_type_qconfigs", "module_name_qconfigs", "module_name_regex_qconfigs"):
        before, after = (
            getattr(mapping, name) for mapping in (prepare_qconfig_mapping, convert_qconfig_mapping)
        )
        for key, value in before.items():
            if key not in after:
                raise AssertionError(f"Missing key {key} in convert QConfigMapping")
            if after[key] is not None and not qconfig_equals(value, after[key]):
                raise AssertionError(f"Expected convert QConfigMapping to be the same for {key}")


def _update_qconfig_for_fusion(model: GraphModule, qconfig_mapping: QConfigMapping) -> None:
    """A fused module takes the choice for the kind of its first part; those for the kinds of the
    others must not differ from it."""
    chosen = qconfig_mapping.object_type_qconfigs
    for node in model.graph.nodes:
        if node.op != "call_module":
            continue
        module = model.get_submodule(str(node.target))
        if not isinstance(module, _FusedModule):
            continue
        parts = [type(part) for part in module.children()]
        kinds = [chosen.get(part) for part in parts]
        if not kinds or kinds[0] is None:
            continue
        if any(kind is not None and not qconfig_equals(kind, kinds[0]) for kind in kinds):
            raise LookupError(
                "During fusion, we need to specify the same qconfigs for all module types in "
                f"{type(module)}: {parts}"
            )
        chosen[type(module)] = kinds[0]


def _update_qconfig_for_qat(qconfig_mapping: QConfigMapping, backend_config: BackendConfig) -> None:
    """A module that takes the place of another during training takes its choice too."""
    replaced = get_module_to_qat_module(backend_config)
    chosen = qconfig_mapping.object_type_qconfigs
    for kind, qconfig in list(chosen.items()):
        if kind in replaced:
            chosen[replaced[kind]] = qconfig


def _is_qconfig_supported_by_dtype_configs(
    qconfig: QConfigAny, dtype_configs: list[DTypeConfig]
) -> bool:
    """Whether one of the ways to run a pattern fits a configuration."""
    from torch.ao.quantization.fx.prepare import _chosen_dtypes

    ways = BackendPatternConfig().set_dtype_configs(dtype_configs)
    return _chosen_dtypes(ways, qconfig) is not None
