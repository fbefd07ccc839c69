"""A plan as a Python program that runs by itself. `call(args)` runs the steps in the plan's order:
a fused kernel is a function that holds its operators, which compute the same bits one by one; the
rest are calls of operators. What is printed is what runs, so a reader may change and try it."""

from __future__ import annotations

import base64
import math
import operator
import re
from collections.abc import Iterable, Sequence

import torch
from torch import fx

__all__ = ["Step", "write_module"]

Step = tuple[str, str, list[int]]
_EXTERN = ("mm", "bmm", "addmm", "baddbmm", "convolution", "_int_mm")
_MOST_INLINE = 1 << 16  # bytes of a constant that stands in the text

_HEADER = """\
# A compiled graph. Run this file to run it on random inputs.
import base64
import math
import operator

import torch
from torch import device, inf, nan
from torch._dynamo.testing import rand_strided
from torch._inductor.select_algorithm import extern_kernels
from torch._inductor.utils import assert_size_stride

aten = torch.ops.aten
inductor_ops = torch.ops.inductor
"""

_FOOTER = """

def benchmark_compiled_module(times=10, repeat=10):
    from torch._inductor.utils import print_performance

{inputs}
    return print_performance(lambda: call([{names}]), times=times, repeat=repeat)


if __name__ == "__main__":
    from torch._inductor.wrapper_benchmark import compiled_module_main

    compiled_module_main("None", benchmark_compiled_module)
"""


def _number(value: object) -> object:
    """A size for texts: symbols become their hints."""
    if isinstance(value, torch.SymInt):
        hint = value.node.hint
        return int(hint) if hint is not None else 2
    return value


def value_text(value: object, names: dict[fx.Node, str]) -> str:
    """An argument as Python writes it."""
    if isinstance(value, fx.Node):
        return names[value]
    if isinstance(value, (list, fx.immutable_collections.immutable_list)):
        return "[" + ", ".join(value_text(v, names) for v in value) + "]"
    if isinstance(value, tuple):
        inner = ", ".join(value_text(v, names) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {value_text(v, names)}" for k, v in value.items()) + "}"
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        return f"float({str(value)!r})"
    if isinstance(value, torch._ops.OpOverload):
        return f"torch.ops.{value}"
    return repr(value)


def target_text(target: object) -> str:
    """A function as Python names it."""
    if isinstance(target, torch._ops.OpOverload):
        name = target._schema.name.split("::")
        overload = target._schema.overload_name or "default"
        if name[0] == "aten" and name[1] in _EXTERN and overload == "default":
            return f"extern_kernels.{name[1]}"
        return f"torch.ops.{name[0]}.{name[1]}.{overload}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target.__name__}"
    module = getattr(target, "__module__", "") or "torch"
    module = {"_operator": "operator", "builtins": "__builtins__"}.get(module, module)
    name = getattr(target, "__name__", str(target))
    return name if module == "__builtins__" else f"{module}.{name}"


def _random(shape: tuple, stride: tuple, like: torch.Tensor) -> str:
    return f"rand_strided({shape}, {stride}, device='{like.device}', dtype={like.dtype})"


def _kernel_name(members: Sequence[fx.Node]) -> str:
    """fused_ with the operators in it, each once."""
    parts = [re.sub(r"\W.*", "", str(n.target).removeprefix("aten.")) for n in members]
    return "_".join(["fused", *sorted(dict.fromkeys(p for p in parts if p))])[:100]


class _Writer:
    """Writes one graph."""

    def __init__(self, gm: fx.GraphModule, inputs: Sequence[object]) -> None:
        self.gm = gm
        self.inputs = list(inputs)
        self.nodes = [n for n in gm.graph.nodes if n.op != "output"]
        self.output = gm.graph.output_node()
        self.names: dict[fx.Node, str] = {}
        self.kernels: list[str] = []
        self.body: list[str] = []
        self.constants: list[str] = []
        self.buffers = 0
        self.written: set[fx.Node] = set()

    # ---- the whole

    def write(self, steps: Iterable[Step]) -> str:
        self._inputs()
        for kind, _, numbers in steps:
            members = [self.nodes[i] for i in dict.fromkeys(numbers)]
            members.sort(key=self.nodes.index)
            if kind == "call" or len(members) == 0:
                for node in members:
                    self._need(node)
            else:
                self._kernel(members)
        for node in self.output.all_input_nodes:
            self._need(node)
        for node in self.nodes:
            if node.op == "call_function" and node.is_impure() and node not in self.written:
                self._need(node)
        found = self.output.args[0]
        found = tuple(found) if isinstance(found, (list, tuple)) else (found,)
        values = ", ".join(value_text(v, self.names) for v in found)
        self.body.append(f"return ({values}, )" if found else "return ()")
        call = "\n    ".join(self.body)
        text = _HEADER + "\n".join(["", *self.constants, ""] if self.constants else [""])
        for kernel in self.kernels:
            text += f"\n\n{kernel}"
        text += f"\n\n\ndef call(args):\n    {call}\n"
        return text + self._footer()

    def _inputs(self) -> None:
        placeholders = [n for n in self.nodes if n.op == "placeholder"]
        for node in placeholders:
            self.names[node] = node.name
            self.written.add(node)
        names = ", ".join(n.name for n in placeholders)
        if placeholders:
            self.body.append(f"{names}, = args" if len(placeholders) == 1 else f"{names} = args")
        self.body.append("args.clear()")
        for node, value in zip(placeholders, self.inputs, strict=False):
            plain = isinstance(value, torch.Tensor) and value.layout is torch.strided
            if plain and all(type(s) is int for s in (*value.shape, *value.stride())):
                self.body.append(
                    f"assert_size_stride({node.name}, {tuple(value.shape)}, {value.stride()})"
                )

    # ---- nodes

    def _need(self, node: fx.Node) -> None:
        """Writes what a value takes, unless it is there."""
        waiting = [node]
        while waiting:
            current = waiting[-1]
            missing = [n for n in current.all_input_nodes if n not in self.written]
            if current in self.written:
                waiting.pop()
            elif missing:
                waiting.extend(missing)
            else:
                waiting.pop()
                self._line(current)

    def _line(self, node: fx.Node) -> None:
        self.written.add(node)
        if node.op == "get_attr":
            self.names[node] = node.name
            self.constants.append(f"{node.name} = {self._constant(node)}")
            return
        self.names[node] = self._new_name()
        self.body.append(f"{self.names[node]} = {self._call(node, self.names)}")
        self._free(node.all_input_nodes)

    def _new_name(self) -> str:
        self.buffers += 1
        return f"buf{self.buffers - 1}"

    def _call(self, node: fx.Node, names: dict[fx.Node, str]) -> str:
        if node.op == "call_method":
            first, *rest = [value_text(a, names) for a in node.args]
            return f"{first}.{node.target}({', '.join(rest)})"
        if node.target is operator.getitem:
            return f"{names[node.args[0]]}[{value_text(node.args[1], names)}]"
        args = [value_text(a, names) for a in node.args]
        args += [f"{k}={value_text(v, names)}" for k, v in node.kwargs.items()]
        return f"{target_text(node.target)}({', '.join(args)})"

    def _constant(self, node: fx.Node) -> str:
        value: object = self.gm
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return repr(value)
        shape = tuple(value.shape)
        if value.numel() * value.element_size() > _MOST_INLINE:
            return _random(shape, value.stride(), value)
        if value.numel() == 0:
            return f"torch.empty({shape}, dtype={value.dtype})"
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        coded = base64.b64encode(bytes(flat.tolist())).decode()
        return (
            f"torch.frombuffer(bytearray(base64.b64decode({coded!r})), dtype={value.dtype})"
            f".reshape({shape})"
        )

    # ---- kernels

    def _kernel(self, members: list[fx.Node]) -> None:
        inside = set(members)
        outer: dict[fx.Node, None] = {}
        order: list[fx.Node] = []
        for node in members:
            self._gather(node, inside, order, outer)
        for node in outer:
            self._need(node)
        function = f"cpp_{_kernel_name(members)}_{len(self.kernels)}"
        kept = [n for n in order if n in inside and _leaves(n, inside, set(order))]
        parameters = list(outer)
        local = {n: f"in_{n.name}" if n.op == "placeholder" else n.name for n in parameters}
        lines = [f"def {function}({', '.join(local.values())}):"]
        origin = [str(n.meta.get("original_aten", n.target)) for n in members]
        lines.append(f"    # {', '.join(dict.fromkeys(origin))}")
        for node in order:
            local[node] = node.name
            lines.append(f"    {node.name} = {self._call(node, local)}")
        lines.append(f"    return {', '.join(local[n] for n in kept)}")
        self.kernels.append("\n".join(lines))
        for node in order:
            if node in inside:
                self.written.add(node)
        for node in kept:
            self.names[node] = self._new_name()
        results = ", ".join(self.names[n] for n in kept)
        given = ", ".join(self.names[n] for n in parameters)
        self.body.append(f"{results} = {function}({given})" if kept else f"{function}({given})")
        self._free(outer)

    def _gather(
        self, node: fx.Node, inside: set[fx.Node], order: list[fx.Node], outer: dict[fx.Node, None]
    ) -> None:
        """The nodes of a kernel with the views between them, in order."""
        if node in order:
            return
        for source in node.all_input_nodes:
            if source in outer or source in order:
                continue
            if source in inside or (source not in self.written and _leads_to(source, inside)):
                self._gather(source, inside, order, outer)
            else:
                outer[source] = None
        order.append(node)

    # ---- ends

    def _free(self, used: Iterable[fx.Node]) -> None:
        done = [
            n for n in dict.fromkeys(used)
            if n in self.names and n.op != "get_attr"
            and all(u in self.written for u in n.users) and self.output not in n.users
        ]  # fmt: skip
        if done:
            self.body.append(f"del {', '.join(self.names[n] for n in done)}")

    def _footer(self) -> str:
        lines, names = [], []
        placeholders = [n for n in self.nodes if n.op == "placeholder"]
        for node, value in zip(placeholders, self.inputs, strict=False):
            names.append(node.name)
            if isinstance(value, torch.Tensor):
                shape = tuple(_number(s) for s in value.shape)
                stride = tuple(_number(s) for s in value.stride())
                made = _random(shape, stride, value)
            else:
                made = repr(_number(value))
            lines.append(f"    {node.name} = {made}")
        return _FOOTER.format(inputs="\n".join(lines) or "    pass", names=", ".join(names))


def _leaves(node: fx.Node, inside: set[fx.Node], order: set[fx.Node]) -> bool:
    """Whether something behind the kernel reads a value, or a view of it that no step makes."""
    return any(
        user not in order or (user not in inside and _leaves(user, inside, order))
        for user in node.users
    )


def _leads_to(node: fx.Node, inside: set[fx.Node]) -> bool:
    """Whether a value that no step makes, a view, is read from a node of the kernel."""
    return any(n in inside or _leads_to(n, inside) for n in node.all_input_nodes)


def write_module(
    gm: fx.GraphModule, inputs: Sequence[object], steps: Iterable[Step] | None = None
) -> str:
    """The program of a graph; without steps, one call after another."""
    writer = _Writer(gm, inputs)
    if steps is None:
        steps = [
            ("call", str(n.target), [i])
            for i, n in enumerate(writer.nodes)
            if n.op in ("call_function", "call_method")
        ]
    return writer.write(steps)
