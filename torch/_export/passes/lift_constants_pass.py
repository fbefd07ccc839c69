"""Tensors and objects that a graph reads as attributes become inputs of it, so that a graph holds
no state of its own."""

from __future__ import annotations

import collections
from collections.abc import Iterator

import torch
from torch import Tensor, fx
from torch.export.graph_signature import (
    CustomObjArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)

__all__ = ["ConstantAttrMap", "lift_constants_pass", "rewrite_script_object_meta"]


class ConstantAttrMap(collections.abc.MutableMapping):
    """Names of tensors and objects, which are known by identity."""

    def __init__(self) -> None:
        self._names: dict[int, list[str]] = {}
        self._values: dict[int, object] = {}

    def __getitem__(self, key: object) -> list[str]:
        return self._names[id(key)]

    def __setitem__(self, key: object, value: list[str]) -> None:
        if not isinstance(key, (Tensor, torch._C.ScriptObject)):
            raise TypeError(f"expected a tensor or an object of a class of C++, got {type(key)}")
        self._names[id(key)] = list(value)
        self._values[id(key)] = key

    def add(self, key: object, value: str) -> None:
        """One more name."""
        if id(key) in self._names:
            self._names[id(key)].append(value)
        else:
            self[key] = [value]

    def __delitem__(self, key: object) -> None:
        del self._names[id(key)]
        del self._values[id(key)]

    def __iter__(self) -> Iterator[object]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, key: object) -> bool:
        return id(key) in self._names


def _read(gm: fx.GraphModule, path: str) -> object:
    found: object = gm
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _scope(node: fx.Node) -> str:
    """The path of the innermost module that reads a constant."""
    for place in (node, *node.users):
        stack = place.meta.get("nn_module_stack")
        if stack:
            return list(stack.values())[-1][0]
    return ""


class _Lift:
    """One run of the pass."""

    def __init__(self, gm: fx.GraphModule, signature: ExportGraphSignature, known: object) -> None:
        self.gm, self.signature, self.known = gm, signature, known
        self.inputs = gm.graph.find_nodes(op="placeholder")
        kinds = [s.kind for s in signature.input_specs]
        user = [i for i, kind in enumerate(kinds) if kind is InputKind.USER_INPUT]
        self.place = user[0] if user else len(kinds)
        self.constants: dict[str, object] = {}
        self.made: dict[int, fx.Node] = {}
        self.counts = collections.Counter()

    def name(self, value: object, node: fx.Node, kind: str) -> str:
        if value in self.known:
            return self.known[value][0]
        number = self.counts[kind]
        self.counts[kind] += 1
        scope = _scope(node)
        return f"{scope}.lifted_{kind}_{number}" if scope else f"lifted_{kind}_{number}"

    def lift(self, node: fx.Node, value: object) -> None:
        if id(value) not in self.made:
            self.made[id(value)] = self._input(node, value)
        made = self.made[id(value)]
        node.replace_all_uses_with(made)
        self.gm.graph.erase_node(node)

    def _input(self, node: fx.Node, value: object) -> fx.Node:
        graph = self.gm.graph
        tensor = isinstance(value, Tensor)
        name = self.name(value, node, "tensor" if tensor else "custom")
        short = name.rpartition(".")[2]
        before = self.inputs[self.place] if self.place < len(self.inputs) else None
        with graph.inserting_before(before or next(iter(graph.nodes))):
            made = graph.placeholder(short)
        made.target = short
        if tensor:
            made.meta["val"] = self._image(value, node)
            spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(made.name), name)
        else:
            kind = value._type().qualified_name()
            made.meta["val"] = CustomObjArgument(made.name, kind)
            spec = InputSpec(InputKind.CUSTOM_OBJ, CustomObjArgument(made.name, kind), name)
        self.signature.input_specs.insert(self.place, spec)
        self.inputs.insert(self.place, made)
        self.place += 1
        self.constants[name] = value
        return made

    def _image(self, value: Tensor, node: fx.Node) -> Tensor:
        from torch._guards import detect_fake_mode

        # Values noted on nodes that read constants belong to no trace.
        values = [n.meta.get("val") for n in self.gm.graph.nodes if n.op != "get_attr"]
        mode = detect_fake_mode([v for v in values if isinstance(v, Tensor)])
        if mode is None:
            return node.meta.get("val", value)
        return mode.from_tensor(value, static_shapes=True)


def lift_constants_pass(
    gm: fx.GraphModule, graph_signature: ExportGraphSignature, constant_attrs: object
) -> dict[str, object]:
    """{name: value} of what the graph read; signature and graph have inputs for them.
    `constant_attrs` gives names of values that have some."""
    run = _Lift(gm, graph_signature, constant_attrs)
    for node in list(gm.graph.nodes):
        if node.op != "get_attr":
            continue
        value = _read(gm, node.target)
        if isinstance(value, torch.nn.Module):
            continue
        if not isinstance(value, (Tensor, torch._C.ScriptObject)):
            raise AssertionError(f"cannot lift {node.target}, which is a {type(value)}")
        path = node.target
        run.lift(node, value)
        if not any(n.op == "get_attr" and n.target == path for n in gm.graph.nodes):
            _delete(gm, path)
    gm.recompile()
    return {
        name: value.detach() if isinstance(value, torch.nn.Parameter) else value
        for name, value in run.constants.items()
    }


def _delete(gm: fx.GraphModule, path: str) -> None:
    owner, _, name = path.rpartition(".")
    holder = _read(gm, owner) if owner else gm
    if hasattr(holder, name):
        delattr(holder, name)


def rewrite_script_object_meta(gm: fx.GraphModule) -> dict[str, object]:
    """Objects in the meta of nodes become what stands for them; returns the objects by node."""
    found: dict[str, object] = {}
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch._C.ScriptObject):
            node.meta["val"] = CustomObjArgument(node.name, value._type().qualified_name())
            found[node.name] = value
    return found
