"""Graph: the program as a list of nodes. The list, names and insertion are a C type
(torch/csrc/fx/graph.cpp); here are the ways to fill it, copy it, check it and turn it into text."""

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._C import _fx
from torch.fx import _reserved
from torch.fx._codegen import (  # noqa: F401
    CodeGen,
    PythonCode,
    TransformCodeFunc,
    _BoxedCodeGen,
    _format_target,
    _is_from_torch,
    _parse_stack_trace,
    _ParsedStackTrace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from torch.fx._codegen import _dtype_words as dtype_abbrs  # noqa: F401
from torch.fx._compatibility import compatibility
from torch.fx.node import (  # noqa: F401
    Argument,
    Node,
    Target,
    _get_qualified_name,
    _type_repr,
    map_arg,
)

if TYPE_CHECKING:
    from torch.fx._symbolic_trace import Tracer
    from torch.fx.graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

_Namespace = _fx._Namespace
_node_list = _fx._node_list
_custom_builtins = _reserved.BUILTINS
_CustomBuiltin = _reserved._CustomBuiltin
_register_custom_builtin = _reserved.register


def _snake_case(s: str) -> str:
    """CamelCase as snake_case."""
    return _fx._name_of_target(s)


class _InsertPoint:
    """While it lasts, new nodes go before or after one node."""

    def __init__(self, graph: "Graph", anchor: Node, after: bool) -> None:
        self.graph = graph
        self._old = graph._set_insert_point(anchor, after)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        anchor, after = self._old
        if anchor._erased:
            anchor, after = self.graph._root, False
        self.graph._set_insert_point(anchor, after)


_NO_DEFAULT = object()


@compatibility(is_backward_compatible=True)
class Graph(_fx._GraphBase):
    """A program as a list of nodes in the order they run."""

    def __init__(
        self,
        owning_module: "GraphModule | None" = None,
        tracer_cls: "type[Tracer] | None" = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> "GraphModule | None":
        """The module that runs this graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: "GraphModule | None") -> None:
        self._owning_module = mod
        self._create_node_hooks = getattr(mod, "_create_node_hooks", None) or []
        self._erase_node_hooks = getattr(mod, "_erase_node_hooks", None) or []

    @property
    def _used_names(self) -> dict[str, None]:
        return self._graph_namespace._used_names

    def _target_to_str(self, target: Target | None) -> str:
        return _fx._name_of_target(target)

    # ---- filling
    @compatibility(is_backward_compatible=True)
    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = _NO_DEFAULT
    ) -> Node:
        """An input; `*name` and `**name` take what is left of the arguments."""
        args = () if default_value is _NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Reads an attribute of the module by its dotted name."""
        if self.owning_module is not None and not _has_attribute(
            self.owning_module, qualified_name
        ):
            import warnings

            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Calls a submodule by its dotted name."""
        if self.owning_module is not None and not _has_attribute(self.owning_module, module_name):
            import warnings

            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Calls a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    @compatibility(is_backward_compatible=False)
    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """The length of a dimension of a value, as a node."""
        return self.call_function(torch.ops.aten.sym_size.int, (tensor_node, dim))

    @compatibility(is_backward_compatible=False)
    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """The stride of a dimension of a value, as a node."""
        return self.call_function(torch.ops.aten.sym_stride.int, (tensor_node, dim))

    @compatibility(is_backward_compatible=False)
    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """The storage offset of a value, as a node."""
        return self.call_function(torch.ops.aten.sym_storage_offset.default, (tensor_node,))

    @compatibility(is_backward_compatible=False)
    def materialize_symints(self, values: Iterable[Any]) -> list[Any]:
        """Each value as materialize_symint gives it."""
        return [self.materialize_symint(value) for value in values]

    @compatibility(is_backward_compatible=False)
    def materialize_symint(self, value: Any) -> Any:
        """A node that computes a symbolic integer from the sizes noted for earlier nodes; a plain
        number is returned itself."""
        if not isinstance(value, torch.SymInt):
            return value
        for node in self.nodes:
            noted = node.meta.get("val")
            if isinstance(noted, torch.SymInt) and str(noted) == str(value):
                return node
            if isinstance(noted, torch.Tensor):
                for dim, size in enumerate(noted.shape):
                    if isinstance(size, torch.SymInt) and str(size) == str(value):
                        with self.inserting_after(node):
                            made = self.create_size_node(node, dim)
                        made.meta["val"] = value
                        return made
        raise RuntimeError(f"no node of the graph carries a value from which {value} follows")

    # ---- editing
    @compatibility(is_backward_compatible=True)
    def erase_node(self, to_erase: Node) -> None:
        """Takes a node that nobody uses out of the graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            import warnings

            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        self._erase(to_erase)

    def _insert_point(self, n: Node | None, after: bool) -> _InsertPoint:
        # The start of the graph is behind the sentinel, its end before it.
        if n is None:
            return _InsertPoint(self, self._root, not after)
        if n.graph is not self:
            raise AssertionError("Node to insert at is not in graph.")
        return _InsertPoint(self, n, after)

    @compatibility(is_backward_compatible=True)
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go before `n` (before all, without one): for good, or while the context that is
        returned lasts."""
        return self._insert_point(n, False)

    @compatibility(is_backward_compatible=True)
    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go directly after `n` (at the end, without one): for good, or while the context
        that is returned lasts."""
        return self._insert_point(n, True)

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users = {}
            self._erase(node)

    @compatibility(is_backward_compatible=True)
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases nodes without users that do nothing else; returns whether there were any."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            if node.users:
                continue
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure:
                self._erase(node)
                changed = True
        for submodule in self._called_graphs():
            changed = submodule.graph.eliminate_dead_code(is_impure_node) or changed
        return changed

    def _called_graphs(self) -> Iterator["GraphModule"]:
        """Graph modules that nodes of this graph pass to operators."""
        if self.owning_module is None:
            return
        for node in self.find_nodes(op="get_attr"):
            module = getattr(self.owning_module, node.target, None)
            if isinstance(module, torch.fx.GraphModule):
                yield module

    # ---- copying
    @compatibility(is_backward_compatible=True)
    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Copies a node into this graph; `arg_transform` gives the arguments for its inputs."""
        inputs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, *inputs, name=node.name, type_expr=node.type)
        if node.meta:
            made.meta = dict(node.meta)
        return made

    @compatibility(is_backward_compatible=True)
    def graph_copy(
        self, g: "Graph", val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copies the nodes of another graph in front of its output; `val_map` says what stands for
        nodes of it and is filled. Returns the output's value in this graph, None without one."""
        output = self._copy_nodes(g, val_map)
        if output is None:
            return None
        value = map_arg(output.args[0], lambda n: val_map[n])
        return (value, output) if return_output_node else value

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Graph":
        memo = {} if memo is None else memo
        g = type(self).__new__(type(self))
        Graph.__init__(g, tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = g
        val_map: dict[Node, Node] = {}
        output = g._copy_nodes(self, val_map)
        if output is not None:
            value = map_arg(output.args[0], lambda n: val_map[n])
            made = g.create_node("output", "output", (value,), None, output.name, output.type)
            made.meta = copy.copy(output.meta)
        g._codegen = copy.deepcopy(self._codegen, memo)
        g._co_fields = dict(self._co_fields)
        return g

    def __reduce__(self) -> tuple:
        rows = []
        index = {node: i for i, node in enumerate(self.nodes)}
        for node in self.nodes:
            args = map_arg((node.args, node.kwargs), lambda n: _NodeRef(index[n]))
            rows.append((node.name, node.op, node.target, node.type, args, dict(node.meta)))
        state = {k: v for k, v in self.__dict__.items() if k != "_owning_module"}
        return _graph_of_rows, (type(self), rows, state)

    @compatibility(is_backward_compatible=True)
    def output_node(self) -> Node:
        """The output."""
        node = next(iter(reversed(self.nodes)), None)
        if node is None or node.op != "output":
            raise AssertionError("the last node of the graph is no output")
        return node

    # ---- running
    @compatibility(is_backward_compatible=False)
    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, given the arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    @compatibility(is_backward_compatible=False)
    def process_outputs(self, out: Any) -> Any:
        """What the generated function returns, given the output's value."""
        return self._codegen.process_outputs(out)

    # ---- text
    @compatibility(is_backward_compatible=True)
    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the text of a Python function, with the globals it needs. `root_module` is
        what the text calls the module."""
        return self._codegen._gen_python_code(
            self.nodes,
            root_module,
            self._graph_namespace._copy(),
            verbose=verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            record_func=record_func,
            additional_meta=additional_meta,
        )

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    @compatibility(is_backward_compatible=True)
    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        header = ["opcode", "name", "target", "args", "kwargs"]
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(_table(header, [[str(cell) for cell in row] for row in rows]))

    @compatibility(is_backward_compatible=False)
    def set_codegen(self, codegen: CodeGen) -> None:
        """Makes another CodeGen write this graph."""
        self._codegen = codegen

    @compatibility(is_backward_compatible=False)
    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager:
        """Registers a function that edits the lines of the generated body. It is given the one that
        is there already, and the context that is returned takes it away."""
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def registered() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return registered()

    # ---- checking
    @compatibility(is_backward_compatible=True)
    def lint(self) -> None:
        """Raises where the graph is not well formed: values used before they exist, two nodes of
        one name, targets of the wrong kind or that the module does not have."""
        from torch.fx._lint import lint_graph

        lint_graph(self)


class _NodeRef:
    """A node inside the arguments of a pickled graph."""

    def __init__(self, index: int) -> None:
        self.index = index


def _graph_of_rows(cls: type[Graph], rows: list[tuple], state: dict[str, Any]) -> Graph:
    from torch.fx.node import map_aggregate

    graph = cls.__new__(cls)
    Graph.__init__(graph)
    nodes: list[Node] = []

    def resolve(leaf: Any) -> Any:
        return nodes[leaf.index] if isinstance(leaf, _NodeRef) else leaf

    for name, op, target, kind, packed, meta in rows:
        args, kwargs = map_aggregate(packed, resolve)
        node = graph.create_node(op, target, args, kwargs, name, kind)
        node.meta = meta
        nodes.append(node)
    graph.__dict__.update(state)
    return graph


def _has_attribute(module: torch.nn.Module, path: str) -> bool:
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _table(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * w for w in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
