"""Folding of constants: what a graph computes from attributes alone is moved into a module of
its own, which runs once; its results become attributes."""

import re
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx.node import Node
from torch.fx.passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(torch.fx.GraphModule):
    """A graph module that computes its constants when it is first called, or when run_folding
    is."""

    def __init__(
        self,
        root: torch.nn.Module,
        graph: torch.fx.Graph,
        const_subgraph: torch.fx.Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else torch.fx.GraphModule(root, const_subgraph)
        )
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Computes the constants; does nothing where there are none."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("folding has run already")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()

        def parameter(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            floating = value.is_floating_point() or value.is_complex()
            return torch.nn.Parameter(value, requires_grad=value.requires_grad and floating)

        made = (
            torch.nn.ParameterList([parameter(v) for v in folded])
            if isinstance(folded, tuple)
            else parameter(folded)
        )
        setattr(self, self.fx_const_folded_attrs_name, made)


def get_unique_attr_name_in_module(mod_traced: torch.fx.GraphModule, name: str) -> str:
    """A name that the module does not have, made of another."""
    name = re.sub(r"\W", "_", name)
    if name[:1].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", name).groups()
        name = f"{base}_{int(number or 0) + 1}"
    return name


def _constant_nodes(gm: torch.fx.GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    """Nodes computed from attributes alone, those attributes included."""
    found: set[Node] = set()
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= found:
            continue
        if node.op != "get_attr" and not node.all_input_nodes:
            continue  # a factory: nothing says that it gives the same again
        if skip is not None and skip(node):
            continue
        if node.is_impure():
            continue
        found.add(node)
    return found


def split_const_subgraphs(
    module: torch.nn.Module | torch.fx.GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module that computes once what depends on attributes alone. Nodes that the function
    names are not folded."""
    gm = module if isinstance(module, torch.fx.GraphModule) else torch.fx.symbolic_trace(module)
    constant = _constant_nodes(gm, skip_folding_node_fn)
    # An attribute alone is a constant already.
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(gm, gm.graph)
    split = split_module(gm, module, lambda node: 0 if node in constant else 1)
    return _fold_split(gm, split, device_for_folded_attrs)


def _fold_split(
    gm: torch.fx.GraphModule, split: torch.fx.GraphModule, device: str
) -> FoldedGraphModule:
    root_graph, const_gm = split.graph, split.submod_0
    # Attributes reach the constant part as arguments of its call: inside it they are read.
    call = root_graph.find_nodes(op="call_module", target="submod_0")[0]
    inputs = const_gm.graph.find_nodes(op="placeholder")
    for inner, outer in zip(inputs, call.args, strict=True):
        if outer.op != "get_attr":
            raise AssertionError(f"{outer} is no attribute")
        with const_gm.graph.inserting_before(inner):
            read = const_gm.graph.create_node("get_attr", outer.target)
        read.meta = dict(outer.meta)
        inner.replace_all_uses_with(read)
        const_gm.graph.erase_node(inner)
    const_gm_output = const_gm.graph.output_node().args[0]
    several = isinstance(const_gm_output, tuple)
    name = get_unique_attr_name_in_module(gm, "_FX_CONST_FOLDED_ATTRS")
    _take_targets(split, const_gm)
    placeholder = (
        torch.nn.ParameterList([torch.nn.Parameter(torch.empty(0)) for _ in const_gm_output])
        if several
        else torch.nn.Parameter(torch.empty(0))
    )
    setattr(split, name, placeholder)
    with root_graph.inserting_before(call):
        folded = root_graph.get_attr(name)
    if several:
        for read in call.users:
            read.meta = dict(const_gm_output[read.args[1]].meta)
    else:
        folded.meta = dict(const_gm_output.meta)
    call.replace_all_uses_with(folded)
    root_graph.erase_node(call)
    _inline(split, "submod_1")
    root_graph.eliminate_dead_code()
    return FoldedGraphModule(split, root_graph, const_gm.graph, name, device)


def _take_targets(split: torch.fx.GraphModule, part: torch.fx.GraphModule) -> None:
    """Makes what a part's nodes name attributes of the whole."""
    for node in part.graph.find_nodes(op="call_module"):
        setattr(split, node.target, part.get_submodule(node.target))


def _inline(gm: torch.fx.GraphModule, name: str) -> None:
    """Puts the graph of a submodule in the place of its call."""
    calls = gm.graph.find_nodes(op="call_module", target=name)
    if not calls:
        return
    call = calls[0]
    part = getattr(gm, name)
    values = dict(zip(part.graph.find_nodes(op="placeholder"), call.args, strict=True))
    for node in part.graph.nodes:
        if node.op == "call_module" and not hasattr(gm, node.target):
            setattr(gm, node.target, part.get_submodule(node.target))
    with gm.graph.inserting_before(call):
        result = gm.graph.graph_copy(part.graph, values)
    if isinstance(result, tuple):
        for user in list(call.users):
            user.replace_all_uses_with(result[user.args[1]])
            gm.graph.erase_node(user)
    else:
        call.replace_all_uses_with(result)
    gm.graph.erase_node(call)
    delattr(gm, name)
