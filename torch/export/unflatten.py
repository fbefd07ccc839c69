"""An exported program as a tree of modules again, like the one it came from: the nodes of each call
of a submodule become the graph of a module at the submodule's path."""

from __future__ import annotations

import abc
import contextlib
import enum
import operator
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch.export._guards import InputChecks
from torch.export._submodules import InterpreterModule, InterpreterModuleDispatcher
from torch.export._unlift import _state_of, _valid, assign_attr
from torch.export.exported_program import ExportedProgram, ModuleCallSignature
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

__all__ = [
    "FlatArgsAdapter",
    "InterpreterModule",
    "InterpreterModuleDispatcher",
    "UnflattenedModule",
    "unflatten",
]


class FlatArgsAdapter(abc.ABC):
    """Turns arguments of another structure into those that a program takes."""

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: pytree.TreeSpec,
        input_spec: pytree.TreeSpec,
        input_args: list[object],
        metadata: dict[str, object] | None = None,
        obj: object = None,
    ) -> list[object]:
        """The leaves in the order of the program."""

    def get_flat_arg_paths(self) -> list[str]:
        """Paths of the leaves, for whoever wants them."""
        return []


@contextlib.contextmanager
def _disable_interpreter() -> Iterator[None]:
    """Modules run their generated code inside, which they do anyway."""
    yield


class _Call(NamedTuple):
    """Nodes of one call of a module, inside of the call around it."""

    key: str
    path: str
    nodes: list[fx.Node]


def _stack(node: fx.Node) -> list[tuple[str, str]]:
    return [(key, held[0]) for key, held in (node.meta.get("nn_module_stack") or {}).items()]


class _Frame:
    """Builds the graph of one call."""

    def __init__(self, build: _Build, path: str, tree: str, depth: int) -> None:
        self.build, self.path, self.depth = build, path, depth
        self.tree = tree  # the path of the module that is made; "@1" marks a second call
        self.graph = fx.Graph()
        self.env: dict[fx.Node, object] = {}
        self.aliases: dict[str, object] = {}

    # ---- values
    def value(self, node: fx.Node) -> object:
        node = self.build.written.get(node, node)
        if node not in self.env:
            self.env[node] = self._state(node)
        return self.env[node]

    def _state(self, node: fx.Node) -> fx.Node:
        """A node that reads state of the program."""
        if node.op == "get_attr":
            self.aliases[node.target] = getattr(self.build.ep.graph_module, node.target)
            return self._read(node.target, node)
        target = self.build.state[node.name]
        inside = not self.path or target.startswith(f"{self.path}.")
        if inside and "@" not in self.tree:
            return self._read(target[len(self.path) + 1 :] if self.path else target, node)
        name = "_" + re.sub(r"\W", "_", target)
        self.aliases[name] = self.build.values[target]
        return self._read(name, node)

    def _read(self, target: str, node: fx.Node) -> fx.Node:
        first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        with self.graph.inserting_before(first) if first else contextlib.nullcontext():
            made = self.graph.get_attr(target)
        made.meta["val"] = node.meta.get("val")
        return made

    # ---- nodes
    def run(self, nodes: Sequence[fx.Node]) -> None:
        for part in self._parts(nodes):
            if isinstance(part, _Call):
                self._call(part, nodes)
            elif part.op != "get_attr":
                copied = self.graph.node_copy(part, self.value)
                self.env[part] = copied

    def _parts(self, nodes: Sequence[fx.Node]) -> Iterator[fx.Node | _Call]:
        """Nodes of this call itself, and runs of nodes of calls inside it."""
        current: _Call | None = None
        for node in nodes:
            stack = _stack(node)
            if current is not None and not stack:
                current.nodes.append(node)  # a check that was put in between
                continue
            inner = stack[self.depth] if len(stack) > self.depth else None
            if inner is not None and not self._below(inner[1]):
                inner = None
            if current is not None and (inner is None or inner[0] != current.key):
                yield current
                current = None
            if inner is None:
                yield node
            elif current is None:
                current = _Call(inner[0], inner[1], [node])
            else:
                current.nodes.append(node)
        if current is not None:
            yield current

    def _below(self, path: str) -> bool:
        return path != self.path and (not self.path or path.startswith(f"{self.path}."))

    def _call(self, call: _Call, around: Sequence[fx.Node]) -> None:
        build = self.build
        inside = set(call.nodes)
        used: dict[fx.Node, None] = {}
        for node in call.nodes:
            for source in node.all_input_nodes:
                source = build.written.get(source, source)
                if source not in inside and not build.is_state(source):
                    used[source] = None
        results = [
            n
            for n in call.nodes
            if n not in build.written and any(u not in inside for u in n.users)
        ]
        signature = build.signatures.get(call.key)
        frame = _Frame(build, call.path, self._tree_of(call), self.depth + 1)
        if signature is not None and build.fits(signature, used, results):
            self._call_as_before(frame, call, signature)
            return
        for node in used:
            frame.env[node] = frame.graph.placeholder(node.name)
            frame.env[node].meta.update(node.meta)
        frame.run(call.nodes)
        outputs = [frame.env[n] for n in results]
        frame.graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
        target = build.place(frame, self.tree)
        made = self.graph.call_module(target, tuple(self.value(n) for n in used))
        if len(results) == 1:
            made.meta["val"] = results[0].meta.get("val")
            self.env[results[0]] = made
            return
        made.meta["val"] = tuple(n.meta.get("val") for n in results)
        for i, node in enumerate(results):
            self.env[node] = self._item(made, i, node)

    def _tree_of(self, call: _Call) -> str:
        below = call.path[len(self.path) + 1 :] if self.path else call.path
        _, at, number = call.key.rpartition("@")
        name = f"{below}@{number}" if at else below
        return f"{self.tree}.{name}" if self.tree else name

    def _item(self, made: fx.Node, i: int, node: fx.Node) -> fx.Node:
        item = self.graph.call_function(operator.getitem, (made, i))
        item.meta["val"] = node.meta.get("val")
        return item

    def _call_as_before(self, frame: _Frame, call: _Call, signature: ModuleCallSignature) -> None:
        """A call with the arguments and results that the module had."""
        build = self.build
        names = signature.forward_arg_names or []
        given: list[object] = []
        for i, arg in enumerate(signature.inputs):
            inner = frame.graph.placeholder(f"input_{i}")
            source = None if isinstance(arg, ConstantArgument) else build.nodes.get(arg.name)
            if source is None:
                given.append(arg.value if isinstance(arg, ConstantArgument) else None)
                continue
            given.append(self.value(source))
            if source not in frame.env:
                frame.env[source] = inner
                inner.meta.update(source.meta)
        frame.run(call.nodes)
        outputs: list[object] = []
        for arg in signature.outputs:
            if isinstance(arg, ConstantArgument):
                outputs.append(arg.value)
            else:
                outputs.append(frame.value(build.nodes[arg.name]))
        frame.graph.output(tuple(outputs))
        count = signature.in_spec.children_specs[0].num_children
        plain = list(names[:count]) + [f"arg_{i}" for i in range(len(names), count)]
        kwargs_names = list(signature.in_spec.children_specs[1].context or ())
        frame.graph._codegen = _PyTreeCodeGen(
            _PyTreeInfo(_valid([*plain, *kwargs_names]), signature.in_spec, signature.out_spec)
        )
        target = build.place(frame, self.tree)
        args, kwargs = pytree.tree_unflatten(given, signature.in_spec)
        made = self.graph.call_module(target, args, kwargs)
        flat = self.graph.call_function(pytree.tree_leaves, (made,))
        for i, arg in enumerate(signature.outputs):
            node = None if isinstance(arg, ConstantArgument) else build.nodes[arg.name]
            if node is not None:
                self.env[node] = self._item(flat, i, node)


class _Build:
    """One program on its way to a tree of modules."""

    def __init__(self, ep: ExportedProgram, root: nn.Module, values: dict[str, object]) -> None:
        self.ep, self.root, self.values = ep, root, values
        self.nodes = {n.name: n for n in ep.graph.nodes}
        kinds = (InputKind.USER_INPUT, InputKind.TOKEN)
        specs = ep.graph_signature.input_specs
        self.state = {s.arg.name: s.target for s in specs if s.kind not in kinds}
        self.written = self._written_state()
        self.signatures = {
            e.fqn: e.signature for e in ep.module_call_graph if e.fqn and e.signature is not None
        }
        self.graphs: dict[str, str] = {}  # text of a graph -> path of its module
        self.types: dict[str, str] = {}  # path of a module -> its class
        for node in ep.graph.nodes:
            for path, kind in (node.meta.get("nn_module_stack") or {}).values():
                self.types.setdefault(path, _name_of(kind))

    def _written_state(self) -> dict[fx.Node, fx.Node]:
        """{result of an operator that writes in place: the state that it is}. Whoever uses such a
        result reads the state: it need not be handed from module to module."""
        found: dict[fx.Node, fx.Node] = {}
        for node in self.ep.graph.nodes:
            schema = getattr(node.target, "_schema", None)
            if schema is None or len(schema.returns) != 1 or not node.args:
                continue
            returned, first = schema.returns[0].alias_info, schema.arguments[0].alias_info
            held = found.get(node.args[0], node.args[0])
            in_place = all(alias is not None and alias.is_write for alias in (returned, first))
            if in_place and isinstance(held, fx.Node) and held.name in self.state:
                found[node] = held
        return found

    def is_state(self, node: fx.Node) -> bool:
        """Whether a node is read wherever it is needed."""
        return node.op == "get_attr" or node.name in self.state

    def fits(
        self,
        signature: ModuleCallSignature,
        used: dict[fx.Node, None],
        results: Sequence[fx.Node],
    ) -> bool:
        """Whether everything that goes in and out of a call is in its signature."""

        def nodes(args: Sequence[object]) -> set[fx.Node]:
            names = [a.name for a in args if not isinstance(a, ConstantArgument)]
            return {self.nodes[n] for n in names if n in self.nodes}

        known = all(
            isinstance(a, ConstantArgument) or a.name in self.nodes for a in signature.outputs
        )
        inputs = nodes(signature.inputs)
        passed = set(results) <= nodes(signature.outputs)
        return known and set(used) <= inputs and passed

    def place(self, frame: _Frame, around: str) -> str:
        """Puts the module of a finished graph into the tree; its path from the module around. A
        module that is called again with the same graph is there already."""
        name = frame.tree
        self.dispatch(frame.graph, frame.path, name)
        text = f"{frame.path}\n{frame.graph}"
        shift = len(around) + 1 if around else 0
        known = self.graphs.setdefault(text, name)
        if known != name and known.startswith(name[:shift]) and not frame.aliases:
            return known[shift:]
        owner, _, last = name.rpartition(".")
        parent = _descend(self.root, owner)
        held = getattr(parent, last, None)
        holder = held if isinstance(held, nn.Module) else nn.Module()
        for alias, value in frame.aliases.items():
            holder.__dict__[alias] = value
        made = InterpreterModule(frame.graph, self.types.get(frame.path), holder)
        for alias, value in frame.aliases.items():
            if isinstance(value, Tensor):
                made._buffers.pop(alias, None)
                made._parameters.pop(alias, None)
                made.__dict__[alias] = value
        _adopt(made, holder)
        parent.add_module(last, made)
        return name[shift:]

    def dispatch(self, graph: fx.Graph, path: str, tree: str) -> None:
        """Calls of one module that ran different graphs, where its signature is kept: they go to
        one module at its place, so that it can be exchanged."""
        calls: dict[str, list[fx.Node]] = {}
        for node in graph.find_nodes(op="call_module"):
            calls.setdefault(re.sub(r"@\d+$", "", node.target), []).append(node)
        for base, nodes in calls.items():
            targets = dict.fromkeys(n.target for n in nodes)
            if len(targets) < 2 or (f"{path}.{base}" if path else base) not in self.signatures:
                continue
            holder = _descend(self.root, tree)
            modules = {target: holder.get_submodule(target) for target in targets}
            owner, _, last = base.rpartition(".")
            parent = _descend(holder, owner)
            first = modules[nodes[0].target]
            attrs = [*first._parameters, *first._buffers, *first._modules]
            for target in targets:
                parent._modules.pop(target.rpartition(".")[2], None)
            made = InterpreterModuleDispatcher(attrs, [modules[n.target] for n in nodes])
            parent.add_module(last, made)
            for node in nodes:
                node.target = base


def _name_of(kind: object) -> str:
    """The full name of a class, which a program that was loaded has as text."""
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


def _descend(root: nn.Module, path: str) -> nn.Module:
    for name in filter(None, path.split(".")):
        if not isinstance(getattr(root, name, None), nn.Module):
            root.add_module(name, nn.Module())
        root = getattr(root, name)
    return root


class _AttrKind(enum.Enum):
    """What a value becomes in the module that gets it."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    MODULE = "module"


def _assign_attr(
    from_obj: object,
    to_module: nn.Module,
    target: str,
    attr_kind: _AttrKind,
    persistent: bool = True,
) -> None:
    """Gives a module a value at a dotted path. A constant is no part of the state: a tensor among
    them is a buffer that is not saved."""
    path, _, name = target.rpartition(".")
    holder = _descend(to_module, path)
    if attr_kind is _AttrKind.PARAMETER:
        holder.register_parameter(name, from_obj)
    elif attr_kind is _AttrKind.BUFFER:
        holder.register_buffer(name, from_obj, persistent=persistent)
    elif attr_kind is _AttrKind.MODULE:
        holder.add_module(name, from_obj)
    elif isinstance(from_obj, Tensor):
        holder.register_buffer(name, from_obj, persistent=False)
    else:
        setattr(holder, name, from_obj)


def _adopt(made: nn.Module, holder: nn.Module) -> None:
    """Gives a module what the one in its place held."""
    for name, value in holder._parameters.items():
        made._parameters.setdefault(name, value)
    for name, value in holder._buffers.items():
        made._buffers.setdefault(name, value)
    made._non_persistent_buffers_set |= holder._non_persistent_buffers_set
    for name, child in holder._modules.items():
        made._modules[name] = child


def _own_state(ep: ExportedProgram) -> dict[str, tuple[object, bool]]:
    """The state of a program for a module of its own: what the module writes is not the program's.
    Names of one tensor stay names of one tensor."""
    copies: dict[int, Tensor] = {}
    found: dict[str, tuple[object, bool]] = {}
    for name, (value, persistent) in _state_of(ep).items():
        if isinstance(value, Tensor) and id(value) not in copies:
            made = value.detach().clone()
            parameter = isinstance(value, nn.Parameter)
            copies[id(value)] = nn.Parameter(made, value.requires_grad) if parameter else made
        found[name] = (copies.get(id(value), value), persistent)
    return found


class UnflattenedModule(nn.Module):
    """A program with the tree of its modules."""

    def __init__(
        self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
    ) -> None:
        super().__init__()
        ep = export_module
        values = _own_state(ep)
        for name, (value, persistent) in values.items():
            assign_attr(self, name, value, persistent=persistent)
        self.module_call_graph = ep.module_call_graph
        self.flat_args_adapter = flat_args_adapter
        self.graph_signature = ep.graph_signature
        self.checks = InputChecks(ep)
        self.graph = self._build(ep, {name: value for name, (value, _) in values.items()})
        self._order_as(ep)

    def _build(self, ep: ExportedProgram, values: dict[str, object]) -> fx.Graph:
        build = _Build(ep, self, values)
        frame = _Frame(build, "", "", 1)
        kinds = (InputKind.USER_INPUT, InputKind.TOKEN)
        inputs = ep.graph.find_nodes(op="placeholder")
        for node, spec in zip(inputs, ep.graph_signature.input_specs, strict=True):
            if spec.kind in kinds:
                frame.env[node] = frame.graph.placeholder(node.name)
                frame.env[node].meta.update(node.meta)
        body = [n for n in ep.graph.nodes if n.op not in ("placeholder", "output")]
        frame.run(body)
        outputs: list[object] = []
        values = ep.graph.output_node().args[0]
        for value, spec in zip(values, ep.graph_signature.output_specs, strict=True):
            made = frame.value(value) if isinstance(value, fx.Node) else value
            target = self._written(spec, frame, inputs, ep)
            if target is None:
                outputs.append(made)
            else:
                frame.graph.call_function(torch.ops.aten.copy_.default, (target, made))
        frame.graph.output(tuple(outputs))
        build.dispatch(frame.graph, "", "")
        self._ty = build.types.get("")
        for name, module in frame.aliases.items():
            self.__dict__.setdefault(name, module)
        return frame.graph

    def _written(
        self, spec: object, frame: _Frame, inputs: Sequence[fx.Node], ep: ExportedProgram
    ) -> object | None:
        kind = spec.kind
        if kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            names = {s.target: s.arg.name for s in ep.graph_signature.input_specs}
            node = next(n for n in inputs if n.name == names[spec.target])
            return frame.value(node)
        if kind is OutputKind.USER_INPUT_MUTATION:
            return frame.env[next(n for n in inputs if n.name == spec.target)]
        return None

    def _order_as(self, ep: ExportedProgram) -> None:
        """Submodules in the order of the program's."""
        order = {entry.fqn: i for i, entry in enumerate(ep.module_call_graph)}

        def arrange(module: nn.Module, prefix: str) -> None:
            rows = sorted(
                module._modules.items(),
                key=lambda row: order.get(f"{prefix}{row[0].split('@')[0]}", len(order)),
            )
            module._modules.clear()
            module._modules.update(rows)
            for name, child in rows:
                if child is not None:
                    arrange(child, f"{prefix}{name}.")

        arrange(self, "")

    def forward(self, *args: object, **kwargs: object) -> object:
        """Runs the program."""
        flat = self.process_forward_inputs(*args, **kwargs)
        found = fx.Interpreter(self, graph=self.graph).run(*flat, enable_io_processing=False)
        return pytree.tree_unflatten(list(found), self.module_call_graph[0].signature.out_spec)

    def process_forward_inputs(self, *args: object, **kwargs: object) -> list[object]:
        """The leaves of arguments in the order of the program, adapted and checked."""
        wanted = self.module_call_graph[0].signature.in_spec
        flat, spec = pytree.tree_flatten((args, kwargs))
        if any(isinstance(leaf, fx.Proxy) for leaf in flat):
            return flat
        if spec != wanted:
            flat = self._adapted(flat, spec, wanted, kwargs, args)
        self.checks.check(flat)
        return flat

    def _adapted(
        self,
        flat: list[object],
        spec: pytree.TreeSpec,
        wanted: pytree.TreeSpec,
        kwargs: dict[str, object],
        args: tuple,
    ) -> list[object]:
        names = wanted.children_specs[1].context or []
        if set(kwargs) == set(names):
            flat, spec = pytree.tree_flatten((args, {n: kwargs[n] for n in names}))
            if spec == wanted:
                return flat
        if self.flat_args_adapter is None:
            raise TypeError(
                "There is no flat args adapter sepcified. Are you sure you are calling this with "
                "the right arguments? "
            )
        adapted = self.flat_args_adapter.adapt(target_spec=wanted, input_spec=spec, input_args=flat)
        if len(adapted) != wanted.num_leaves:
            raise TypeError(
                "Flat args adaption failed, number of args mismatch "
                f"Adatped: {len(adapted)} \nExported module: {wanted.num_leaves}"
            )
        return adapted

    def finalize(self) -> None:
        """Makes changes of graphs take effect."""
        self.graph.lint()
        for child in self.modules():
            if isinstance(child, InterpreterModuleDispatcher):
                for module in child.call_modules():
                    module.finalize()
            elif isinstance(child, InterpreterModule):
                child.finalize()

    def type_name(self) -> str | None:
        """The class of the module that was exported."""
        return self._ty

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The code of all modules."""
        parts = [str(self.graph)]
        for name, child in self.named_modules():
            if isinstance(child, InterpreterModule):
                parts.append(f"{name}:\n{child.print_readable(print_output=False)}")
        text = "\n".join(parts)
        if print_output:
            print(text)
        return text


def unflatten(
    module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
) -> UnflattenedModule:
    """The tree of modules of a program. Signatures of submodules that were preserved by `export`
    are those of its modules, so that these can be exchanged."""
    return UnflattenedModule(module, flat_args_adapter)
