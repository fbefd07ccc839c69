"""An exported program as a module again: inputs that stand for state become attributes, and outputs
that are written back to state are written where the graph ends."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch.export._guards import InputChecks
from torch.export.exported_program import ExportedProgram, flat_arguments
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

__all__ = ["_unlift_exported_program_lifted_states", "assign_attr"]

_WRITTEN = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


def assign_attr(root: nn.Module, path: str, value: object, *, persistent: bool = True) -> None:
    """Registers a parameter, a buffer or another value at a dotted path."""
    *owners, name = path.split(".")
    holder = root
    for owner in owners:
        if not isinstance(getattr(holder, owner, None), nn.Module):
            holder.add_module(owner, nn.Module())
        holder = getattr(holder, owner)
    if isinstance(value, nn.Parameter):
        holder.register_parameter(name, value)
    elif isinstance(value, Tensor):
        holder.register_buffer(name, value, persistent=persistent)
    else:
        setattr(holder, name, value)


def _state_of(ep: ExportedProgram) -> dict[str, tuple[object, bool]]:
    """{name: (value, whether a state_dict holds it)} of everything that belongs to a program."""
    found = {name: (value, True) for name, value in ep.state_dict.items()}
    found.update({name: (value, False) for name, value in ep.constants.items()})
    return found


class _Unlift:
    """One conversion."""

    def __init__(self, ep: ExportedProgram) -> None:
        self.ep = ep
        self.module = _StatefulGraphModule(
            _holder(ep), _copied(ep.graph_module), type(ep.graph_module).__name__
        )
        self.graph = self.module.graph
        self.state: dict[str, fx.Node] = {}
        self.inputs: dict[str, fx.Node] = {}

    def run(self) -> fx.GraphModule:
        for node, spec in zip(
            self.graph.find_nodes(op="placeholder"),
            self.ep.graph_signature.input_specs,
            strict=True,
        ):
            self.inputs[spec.arg.name] = node
            if spec.kind in (InputKind.USER_INPUT, InputKind.TOKEN):
                continue
            with self.graph.inserting_before(node):
                read = self.graph.create_node("get_attr", spec.target, name=_attr_name(spec.target))
            read.meta.update(node.meta)
            node.replace_all_uses_with(read)
            self.graph.erase_node(node)
            self.state[spec.target] = read
        self._write_back()
        self._take_trees()
        self.module.recompile()
        return self.module

    def _write_back(self) -> None:
        """Outputs that are new values of state are copied there and returned no more."""
        output = self.graph.output_node()
        kept = []
        for value, spec in zip(output.args[0], self.ep.graph_signature.output_specs, strict=True):
            target = None
            if spec.kind in _WRITTEN:
                target = self.state[spec.target]
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                target = self.inputs[spec.target]
            if target is None:
                if spec.kind is not OutputKind.TOKEN:
                    kept.append(value)
                continue
            with self.graph.inserting_before(output):
                copy = self.graph.call_function(torch.ops.aten.copy_.default, (target, value))
            copy.meta["val"] = target.meta.get("val")
            kept = [copy if k is value else k for k in kept]
        output.args = (tuple(kept),)

    def _take_trees(self) -> None:
        signature = self.ep.module_call_graph[0].signature
        if signature is None:
            return
        names = signature.forward_arg_names or _argument_names(signature.in_spec)
        self.graph._codegen = _PyTreeCodeGen(
            _PyTreeInfo(_valid(names), signature.in_spec, signature.out_spec)
        )


def _attr_name(path: str) -> str:
    return re.sub(r"[^0-9a-zA-Z_]+", "_", path)


def _valid(names: list[str]) -> list[str]:
    return [re.sub(r"\W", "_", name) for name in names]


def _argument_names(in_spec: pytree.TreeSpec) -> list[str]:
    args, kwargs = in_spec.children_specs
    return [*(f"arg_{i}" for i in range(args.num_children)), *(kwargs.context or ())]


def _holder(ep: ExportedProgram) -> nn.Module:
    """A module with all state of a program and the graphs that its operators take."""
    root = nn.Module()
    for name, child in ep.graph_module.named_children():
        root.add_module(name, child)
    for name, (value, persistent) in _state_of(ep).items():
        assign_attr(root, name, value, persistent=persistent)
    root.meta = dict(ep.graph_module.meta)
    return root


def _copied(module: fx.GraphModule) -> fx.Graph:
    graph = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    output = graph.graph_copy(module.graph, env)
    old = module.graph.output_node()
    made = graph.output(output)
    made.meta.update(old.meta)
    return graph


class _StatefulGraphModule(fx.GraphModule):
    """The graph with its state. Every attribute of the root is taken over, also those that only
    writes refer to or nothing does."""

    def __init__(self, root: nn.Module, graph: fx.Graph, class_name: str) -> None:
        super().__init__(nn.Module(), fx.Graph(), class_name)
        for name, child in root.named_children():
            self.add_module(name, child)
        for name, value in root._parameters.items():
            self.register_parameter(name, value)
        for name, value in root._buffers.items():
            stays = name not in root._non_persistent_buffers_set
            self.register_buffer(name, value, persistent=stays)
        own = vars(nn.Module())
        for name, value in vars(root).items():
            if name not in own and name != "meta":
                setattr(self, name, value)
        self.meta = dict(root.meta)
        self.graph = graph


def _refuse(name: str) -> Callable[..., None]:
    def refused(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return refused


def _unlift_exported_program_lifted_states(
    ep: ExportedProgram, check_guards: bool = True
) -> fx.GraphModule:
    """The program as a module with state."""
    module = _Unlift(ep).run()
    in_spec = ep.call_spec.in_spec
    checks = InputChecks(ep) if check_guards else None

    def check(
        mod: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple, dict]:
        leaves = flat_arguments(args, kwargs, in_spec)
        if checks is not None:
            checks.check(leaves)
        return pytree.tree_unflatten(leaves, in_spec) if in_spec is not None else (args, kwargs)

    check._checks_inputs = True
    module.register_forward_pre_hook(check, with_kwargs=True)
    module.__dict__["train"] = _refuse("train")
    module.__dict__["eval"] = _refuse("eval")
    module.validate_inputs = check_guards
    return module
