"""A picture of a graph: a box per node with its target, arguments and shape. The text is
Graphviz's dot language, which needs no package; pictures need pydot and Graphviz."""

import hashlib
from typing import Any

import torch
import torch.fx
from torch.fx._compatibility import compatibility
from torch.fx.graph import _parse_stack_trace
from torch.fx.node import Node, _format_arg, _get_qualified_name
from torch.fx.operator_schemas import normalize_function
from torch.fx.passes.shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

_FILLS = {
    "placeholder": "AliceBlue",
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_PALETTE = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue "
    "MistyRose1 MistyRose2 PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1"
).split()


def _hash_index(text: str, count: int) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) % count


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Draws a graph module and, unless parts are to be left out, those inside it."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self.ignore_getattr = ignore_getattr
        self.ignore_parameters_and_buffers = ignore_parameters_and_buffers
        self.skip_node_names_in_args = skip_node_names_in_args
        self.parse_stack_trace = parse_stack_trace
        self.normalize_args = normalize_args
        self.dot_graph_shape = dot_graph_shape or "record"
        self._texts = {name: self._to_text(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            part = graph_module.get_submodule(node.target)
            if isinstance(part, torch.fx.GraphModule):
                label = f"{name}_{node.target}"
                self._texts[label] = self._to_text(part, label)

    # ---- what users ask for
    def get_dot_text(self, submod_name: str | None = None) -> str:
        """The drawing in the dot language."""
        label = self._name if submod_name is None else f"{self._name}_{submod_name}"
        return self._texts[label]

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The drawing as a graph of pydot, which must be installed."""
        return _pydot_graph(self.get_dot_text(submod_name))

    def get_main_dot_graph(self) -> Any:
        """The drawing of the module itself."""
        return self.get_dot_graph()

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The drawing of a module inside it."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All drawings by name."""
        return {label: _pydot_graph(text) for label, text in self._texts.items()}

    # ---- the text
    def _to_text(self, gm: torch.fx.GraphModule, name: str) -> str:
        lines = [f"digraph {_quoted(name)} {{", "rankdir=TB;"]
        nodes = [n for n in gm.graph.nodes if not (self.ignore_getattr and n.op == "get_attr")]
        for node in nodes:
            label = self._get_node_label(gm, node)
            style = self._get_node_style(node)
            shown = {"label": label, **style}
            attributes = ", ".join(f"{key}={_quoted(value)}" for key, value in shown.items())
            lines.append(f"{_quoted(node.name)} [{attributes}];")
            if node.op == "call_module" and not self.ignore_parameters_and_buffers:
                lines += self._parameter_lines(gm, node)
        kept = set(nodes)
        for node in nodes:
            lines += [
                f"{_quoted(node.name)} -> {_quoted(user.name)};"
                for user in node.users
                if user in kept
            ]
        return "\n".join([*lines, "}"])

    def _parameter_lines(self, gm: torch.fx.GraphModule, node: Node) -> list[str]:
        module = gm.get_submodule(node.target)
        if isinstance(module, torch.fx.GraphModule):
            return []
        lines = []
        owned = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, value in owned:
            key = f"{node.name}.{name}"
            kind = "parameter" if isinstance(value, torch.nn.Parameter) else "buffer"
            label = f"{{{key}|op_code=get_{kind}\\l"
            label += f"{self._tensor_text(value)}}}"
            lines.append(
                f'{_quoted(key)} [label={_quoted(label)}, shape="record", style="filled"];'
            )
            lines.append(f"{_quoted(key)} -> {_quoted(node.name)};")
        return lines

    def _get_node_style(self, node: Node) -> dict[str, str]:
        style = {"shape": self.dot_graph_shape, "style": '"filled,rounded"', "fontcolor": "#000000"}
        style["style"] = "filled,rounded"
        if node.op in _FILLS:
            style["fillcolor"] = _FILLS[node.op]
        else:
            target = self._typename(node.target)
            style["fillcolor"] = _PALETTE[_hash_index(target, len(_PALETTE))]
        return style

    def _typename(self, target: Any) -> str:
        if isinstance(target, torch.nn.Module):
            return torch.typename(target)
        return target if isinstance(target, str) else _get_qualified_name(target)

    def _get_leaf_node(self, module: torch.nn.Module, node: Node) -> torch.nn.Module:
        return module.get_submodule(node.target)

    def _get_node_label(self, gm: torch.fx.GraphModule, node: Node) -> str:
        """The text in the box, in Graphviz's record notation."""
        label = f"{{name=%{node.name}|op_code={node.op}\\n"
        if node.op == "call_module":
            label += self._module_text(gm.get_submodule(node.target))
        else:
            label += f"|target={_escape(self._typename(node.target))}\\n"
            label += self._arguments_text(node)
            label += f"|num_users={len(node.users)}\\n"
        meta = node.meta.get("tensor_meta")
        label += self._tensor_text(meta)
        where = self._location(node)
        if where:
            label += f"|{_escape(where)}\\n"
        return label + "}"

    def _module_text(self, module: torch.nn.Module) -> str:
        text = f"|{_escape(torch.typename(module))}\\n|"
        constants = getattr(module, "__constants__", ())
        return text + "".join(
            f"{c}: {_escape(str(getattr(module, c, None)))}\\n" for c in constants
        )

    def _arguments_text(self, node: Node) -> str:
        if self.skip_node_names_in_args:
            skip = {n.name for n in node.all_input_nodes}
        else:
            skip = set()
        args, kwargs = node.args, node.kwargs
        if self.normalize_args and node.op == "call_function":
            found = normalize_function(node.target, args, kwargs, normalize_to_only_use_kwargs=True)
            if found is not None:
                args, kwargs = found
        shown = [a for a in args if not (isinstance(a, Node) and a.name in skip)]
        text = ""
        if shown:
            inner = ", ".join(_format_arg(a, max_list_len=8) for a in shown)
            text += (
                f"|args=({_escape(inner)},)\\n"
                if len(shown) == 1
                else f"|args=({_escape(inner)})\\n"
            )
        named = {k: v for k, v in kwargs.items() if not (isinstance(v, Node) and v.name in skip)}
        if named:
            inner = ", ".join(f"{k}: {_format_arg(v, max_list_len=8)}" for k, v in named.items())
            text += f"|kwargs={_escape('{' + inner + '}')}\\n"
        return text

    def _location(self, node: Node) -> str:
        trace = node.meta.get("stack_trace") if self.parse_stack_trace else None
        parsed = _parse_stack_trace(trace) if trace else None
        return f"file={parsed.file}:{parsed.lineno} {parsed.code}" if parsed else ""

    def _tensor_text(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"|dtype={value.dtype}\\n|shape={tuple(value.shape)}\\n"
        if isinstance(value, TensorMetadata):
            text = f"|dtype={value.dtype}\\n|shape={tuple(value.shape)}\\n"
            text += f"|requires_grad={value.requires_grad}\\n|stride={value.stride}\\n"
            return text + (f"|{_escape(str(value.qparams))}\\n" if value.is_quantized else "")
        if isinstance(value, list | tuple):
            return "".join(self._tensor_text(v) for v in value)
        if isinstance(value, dict):
            return "".join(self._tensor_text(v) for v in value.values())
        return ""


def _escape(text: str) -> str:
    """A text inside a record, where braces, bars and angles mean something."""
    for char in "{}|<>":
        text = text.replace(char, f"\\{char}")
    return text


def _pydot_graph(text: str) -> Any:
    try:
        import pydot
    except ImportError:
        raise RuntimeError(
            "FXGraphDrawer requires the pydot package to be installed. Please install pydot "
            "through your favorite Python package manager."
        ) from None
    return pydot.graph_from_dot_data(text)[0]
