"""Attributes of modules that a lowering needs, noted on the nodes that call them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule

__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
]


@compatibility(is_backward_compatible=False)
def default_matching(name: str, target_version: int) -> str:
    """The name of an attribute in a version of a module: the same."""
    return name


_CONV = ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]

# Module -> (version, names of attributes, how a name of one version becomes that of another).
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (1, _CONV, default_matching),
    nn.BatchNorm2d: (
        2,
        ["weight", "bias", "running_mean", "running_var", "eps"],
        default_matching,
    ),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


@compatibility(is_backward_compatible=False)
def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The attributes of a module by name, with its type under "name"."""
    out: dict[str, Any] = {"name": torch.typename(mod)}
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{torch.typename(mod)} is not in the module fetch book")
    version, names, match = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {torch.typename(mod)} version {mod._version}, "
            "add the new version to module_fetch_book"
        )
    out.update({name: getattr(mod, match(name, mod._version)) for name in names})
    return out


@compatibility(is_backward_compatible=False)
def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Notes node.attrs_for_lowering on calls of modules, inside submodules too."""
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        called = submodules[node.target]
        if isinstance(called, GraphModule):
            lift_lowering_attrs_to_nodes(called)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(called)
