"""Replaces runs of modules in a traced graph by fused ones, as the backend says."""

from __future__ import annotations

from torch import nn
from torch.ao.quantization.backend_config import BackendConfig, get_native_backend_config
from torch.ao.quantization.backend_config.backend_config import BackendPatternConfig
from torch.ao.quantization.fx import match_utils
from torch.ao.quantization.fx.custom_config import FuseCustomConfig
from torch.fx import GraphModule, Node
from torch.nn import functional

__all__ = ["fuse"]


def _as_module(node: Node, modules: dict[str, nn.Module]) -> object:
    """What a fuser takes for a node: its module, a module for a function, or the function."""
    if node.op == "call_module":
        return modules[str(node.target)]
    if node.target is functional.relu:
        made = nn.ReLU()
        made.training = next((m.training for m in modules.values()), False)
        return made
    return node.target


def _parts(node: object, pattern: object, modules: dict[str, nn.Module]) -> object:
    if isinstance(pattern, tuple):
        _, *inputs = pattern
        rest = [_parts(a, p, modules) for a, p in zip(node.args, inputs, strict=False)]
        return (_as_module(node, modules), *rest)
    return _as_module(node, modules) if isinstance(node, Node) else node


def _in_order(pattern: object) -> list[object]:
    """The parts of a nested match in the order of computation."""
    if not isinstance(pattern, tuple):
        return [pattern]
    return [*_in_order(pattern[1]), pattern[0]] if len(pattern) == 2 else [pattern]


def _replace(
    model: GraphModule,
    last: Node,
    pattern: object,
    config: BackendPatternConfig,
    is_qat: bool,
    fused: dict[tuple[object, ...], nn.Module],
) -> None:
    modules = dict(model.named_modules(remove_duplicate=False))
    nested = match_utils.nested_nodes(last, pattern)
    nodes = [node for node, _ in match_utils.matched_nodes(last, pattern)]
    getter = config._root_node_getter
    root = getter(nested) if getter else nodes[-1]
    extra = config._extra_inputs_getter(nested) if config._extra_inputs_getter else []
    key = (pattern, *(node.target for node in nodes))
    made = fused.get(key)
    if made is None:
        parts = _parts(last, pattern, modules)
        given = list(parts) if config._pattern_complex_format is not None else _in_order(parts)
        made = fused[key] = config.fuser_method(is_qat, *given)
    for part in (m for m in modules.values() if m is modules.get(str(root.target))):
        if hasattr(part, "qconfig"):
            made.qconfig = part.qconfig
    parent, _, name = str(root.target).rpartition(".")
    setattr(model.get_submodule(parent), name, made)
    with model.graph.inserting_before(last):
        call = model.graph.call_module(str(root.target), (*root.args, *extra), dict(root.kwargs))
    kept = root.name
    last.replace_all_uses_with(call)
    for node in nodes:
        if not node.users:
            model.graph.erase_node(node)
    call.name = kept if call.name != kept else call.name


def fuse(
    model: GraphModule,
    is_qat: bool,
    fuse_custom_config: FuseCustomConfig | dict[str, object] | None = None,
    backend_config: BackendConfig | dict[str, object] | None = None,
) -> GraphModule:
    """The graph with fused modules."""
    if isinstance(backend_config, dict):
        backend_config = BackendConfig.from_dict(backend_config)
    backend = backend_config or get_native_backend_config()
    table = backend._pattern_complex_format_to_config
    patterns = [(p, c) for p, c in table.items() if c.fuser_method is not None]
    patterns.sort(key=lambda pair: -match_utils.length(pair[0]))
    modules = dict(model.named_modules(remove_duplicate=False))
    taken: set[Node] = set()
    found = []
    for node in reversed(list(model.graph.nodes)):
        if node in taken:
            continue
        for pattern, config in patterns:
            if match_utils._is_match(modules, node, pattern):
                nodes = [n for n, _ in match_utils.matched_nodes(node, pattern)]
                if not taken.isdisjoint(nodes):
                    continue
                taken.update(nodes)
                found.append((node, pattern, config))
                break
    fused: dict[tuple[object, ...], nn.Module] = {}  # modules that are called twice are fused once
    for node, pattern, config in reversed(found):
        _replace(model, node, pattern, config, is_qat, fused)
    model.graph.lint()
    model.recompile()
    return model
