"""From a graph to Python text. One `_Writer` makes one function: it walks the nodes once backwards,
to learn where each value is used last, and once forwards, one line a node. A value is set to None
behind its last use, so that its memory is free while the rest runs. `CodeGen` is what users derive
from to change the signature, the output or the body."""

import enum
import keyword
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch._C import _fx
from torch.fx import _pytree as fx_pytree
from torch.fx import _reserved
from torch.fx.node import Node, _get_qualified_name, _type_repr

# Functions that traces record because of torch.fx.wrap, by id: the text marks them again, so that a
# trace of the generated function records them too.
wrapped_functions: dict[int, Callable] = {}

TransformCodeFunc = Callable[[list[str]], list[str]]

_reserved.register("torch", "import torch", torch)
_reserved.register("device", "from torch import device", torch.device)
_reserved.register("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_reserved.register("pytree", "import torch.utils._pytree as pytree", pytree)

# Python's operators: how a call of the function of that name in `operator` is written.
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "truediv": "/",
    "div": "/",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "matmul": "@",
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
_UNARY = {"pos": "+", "neg": "-", "invert": "~"}

reflectable_magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in _BINARY.items()}
reflectable_magic_methods["getitem"] = "{}[{}]"
magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in _COMPARE.items()},
    **{name: f"{sign}{{}}" for name, sign in _UNARY.items()},
    **reflectable_magic_methods,
}
inplace_methods = {
    f"i{name.rstrip('_')}": f"{{}} {sign}= {{}}" for name, sign in _BINARY.items() if name != "div"
}
inplace_methods["setitem"] = "{}[{}] = {}"

_dtype_words = {torch.bool: "b8"} | {
    getattr(torch, f"{kind}{bits}"): f"{letter}{bits}"
    for kind, letter, widths in [
        ("bfloat", "bf", [16]),
        ("float", "f", [16, 32, 64]),
        ("complex", "c", [32, 64, 128]),
        ("int", "i", [8, 16, 32, 64]),
        ("uint", "u", [8]),
    ]
    for bits in widths
}
_COLORS = {
    "yellow": 33,
    "cyan": 36,
    "green": 32,
    "red": 31,
    "blue": 34,
    "dim": 2,
    "dim_blue": 34,
    "dim_green": 32,
}


@dataclass
class PythonCode:
    """The text of a function and the globals it needs."""

    src: str
    globals: dict[str, Any]
    # Line of the body (from 1) -> index of the node it came from, or None.
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0
    fn_args: list[str] = field(default_factory=list, compare=False, repr=False)


class _Names:
    """The globals of generated code. What torch offers is named in full, anything else becomes a
    global under a name that no value has."""

    def __init__(self, taken: "_fx._Namespace") -> None:
        self._taken = taken
        self._by_id: dict[int, str] = {}
        self.globals: dict[str, Any] = {name: b.obj for name, b in _reserved.BUILTINS.items()}

    def add(self, hint: str, obj: Any) -> str:
        """The text by which the code reaches the object."""
        known = self._by_id.get(id(obj))
        if known is not None:
            return known
        text = self._torch_name(obj)
        if text is None:
            text = self._taken.create_name(hint.replace(".", "_"), obj)
            self.globals[text] = obj
        self._by_id[id(obj)] = text
        return text

    def _torch_name(self, obj: Any) -> str | None:
        if not _is_from_torch(obj) or obj is torch.device or not hasattr(obj, "__name__"):
            return None
        text = _get_qualified_name(obj)
        return _spelled(text) if _resolves(text, obj) else None

    def type_text(self, kind: Any) -> str:
        """An annotation."""
        if kind == ():
            return "()"
        if isinstance(kind, str):  # an annotation that was never evaluated stays one
            return repr(kind)
        if kind is None or kind is type(None):
            return "NoneType" if kind is type(None) else "None"
        origin = typing.get_origin(kind)
        args = typing.get_args(kind)
        if origin is None or not args:
            name = _type_repr(kind)
            return self.add(name, kind)
        if origin is types.UnionType:
            origin = typing.Union
        head = self.add(_type_repr(_typing_name(origin)), _typing_name(origin))
        if args == ((),):
            return f"{head}[()]"
        shown = []
        for arg in args:
            if isinstance(arg, list):
                shown.append("[" + ",".join(self.type_text(a) for a in arg) + "]")
            else:
                shown.append("..." if arg is ... else self.type_text(arg))
        return f"{head}[{','.join(shown)}]"


def _spelled(text: str) -> str:
    """A dotted name as code may have it: overloads are called `from`, too."""
    owner, _, last = text.rpartition(".")
    return f'getattr({owner}, "{last}")' if keyword.iskeyword(last) else text


# list[int] is written with the class of typing.
_TYPING_NAMES = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


def _typing_name(origin: Any) -> Any:
    return _TYPING_NAMES.get(origin, origin)


def _is_from_torch(obj: Any) -> bool:
    """Whether the object is found by a dotted name that begins with torch."""
    module = getattr(obj, "__module__", None)
    if module is not None:
        return module.split(".", 1)[0] == "torch" and not module.startswith("torch._dynamo")
    name = getattr(obj, "__name__", None)
    return (
        name is not None
        and name != "torch"
        and any(getattr(place, name, None) is obj for place in (torch, torch.nn.functional))
    )


def _resolves(dotted: str, obj: Any) -> bool:
    """Whether the dotted name leads to the object, starting at torch."""
    value: Any = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, None)
        if value is None:
            return False
    return value is obj or value == obj


_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")


def _format_target(base: str, target: str) -> str:
    """Attribute access along a dotted path; parts that are no identifiers by getattr."""
    text = base
    for part in target.split("."):
        text = f"{text}.{part}" if _IDENTIFIER.match(part) else f'getattr({text}, "{part}")'
    return text


class _Options(NamedTuple):
    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    record_func: bool = False
    additional_meta: tuple[str, ...] | None = None


class _Writer:
    """Makes the body of one function."""

    def __init__(self, codegen: "CodeGen", root: str, names: _Names, options: _Options) -> None:
        self.codegen = codegen
        self.root = root
        self.names = names
        self.options = options
        self.free_vars: list[str] = []
        self.renamed: dict[Node, str] = {}
        self.lines: list[str] = []
        self.origins: list[int | None] = []  # node index of each line
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self._last_comment = None
        self._texts: dict[type, Callable[[Any], str]] = {
            int: repr,
            str: repr,
            bool: repr,
            type(None): repr,
            tuple: self._tuple,
        }

    # ---- arguments
    def name(self, node: Node) -> str:
        return self.renamed.get(node) or repr(node)

    def arg(self, value: Any) -> str:
        """The text of an argument."""
        if isinstance(value, Node):
            return self.name(value)
        simple = self._texts.get(type(value))
        if simple is not None:
            return simple(value)
        custom = getattr(value, "_custom_fx_repr_fn", None)
        if custom is not None and not isinstance(value, type):
            return self._custom(value)
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, list):
            return "[" + ", ".join(map(self.arg, value)) + "]"
        if isinstance(value, dict):
            inner = ", ".join(f"{k!r}: {self.arg(v)}" for k, v in value.items())
            return "{" + inner + "}"
        if isinstance(value, slice):
            return f"slice({self.arg(value.start)}, {self.arg(value.stop)}, {self.arg(value.step)})"
        return self._leaf(value)

    def _tuple(self, value: tuple) -> str:
        inner = ", ".join(map(self.arg, value))
        if hasattr(value, "_fields"):
            return f"{self.names.add(_type_repr(type(value)), type(value))}({inner})"
        return f"({inner},)" if len(value) == 1 else f"({inner})"

    def _custom(self, value: Any) -> str:
        # A dataclass argument: its class by name, its fields as arguments.
        head = self.names.add(_type_repr(type(value)), type(value))
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields is None:
            return value._custom_fx_repr_fn()
        inner = ", ".join(f"{n}={self.arg(getattr(value, n))}" for n in fields)
        return f"{head}({inner})"

    def _leaf(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            cls = type(value)
            return f"{self.names.add(cls.__name__, cls)}.{value.name}"
        if isinstance(value, torch._ops.OpOverload):
            return _spelled(_get_qualified_name(value))
        if isinstance(value, torch.Size):
            return repr(tuple(value))
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            return self.names.add(_get_qualified_name(value), value)
        if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            inner = ", ".join(
                f"{n}={self.arg(getattr(value, n))}" for n in value.__dataclass_fields__
            )
            return f"{self.names.add(_type_repr(type(value)), type(value))}({inner})"
        return repr(value)

    def arguments(self, args: tuple, kwargs: dict) -> str:
        parts = [self.arg(a) for a in args]
        parts += [f"{k} = {self.arg(v)}" for k, v in kwargs.items()]
        return ", ".join(parts)

    # ---- one line per node
    def write(self, node: Node) -> str | None:
        """The statement for a node, or None where it needs none."""
        return getattr(self, f"_{node.op}")(node)

    def _assign(self, node: Node, text: str) -> str:
        return f"{self.name(node)}{self.annotation(node)} = {text}"

    def _placeholder(self, node: Node) -> str | None:
        target, name = node.target, self.name(node)
        default = f" = {self.arg(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{target}{self.annotation(node)}{default}")
        plain = target.replace("*", "")
        return None if plain == name else f"{name} = {plain}"

    def _get_attr(self, node: Node) -> str:
        return self._assign(node, _format_target(self.root, node.target))

    def _call_method(self, node: Node) -> str:
        receiver = _format_target(self.arg(node.args[0]), node.target)
        return self._assign(node, f"{receiver}({self.arguments(node.args[1:], node.kwargs)})")

    def _call_module(self, node: Node) -> str:
        called = _format_target(self.root, node.target)
        return self._assign(node, f"{called}({self.arguments(node.args, node.kwargs)})")

    def _call_function(self, node: Node) -> str:
        target, args = node.target, node.args
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            text = self._operator(node, target.__name__, args)
            if text is not None:
                return text
        if target is getattr and len(args) == 2 and isinstance(args[1], str):
            if _IDENTIFIER.match(args[1]) and isinstance(args[0], Node):
                return self._assign(node, _format_target(self.arg(args[0]), args[1]))
        qualified = _get_qualified_name(target)
        called = self.names.add(qualified, target)
        if id(target) in wrapped_functions:
            self.wrapped[called] = None
        return self._assign(node, f"{called}({self.arguments(args, node.kwargs)})")

    def _operator(self, node: Node, name: str, args: tuple) -> str | None:
        form = magic_methods.get(name)
        if form is not None and form.count("{}") == len(args):
            operands = [self.arg(a) for a in args]
            if name == "pow" and operands[0].startswith("-"):  # which would bind less tightly
                operands[0] = f"({operands[0]})"
            return self._assign(node, form.format(*operands))
        form = inplace_methods.get(name)
        if form is not None and form.count("{}") == len(args) and isinstance(args[0], Node):
            first = self.arg(args[0])
            written = form.format(*map(self.arg, args))
            return f"{written};  {self.name(node)}{self.annotation(node)} = {first}"
        return None

    def _output(self, node: Node) -> str:
        if node.type is not None:
            self.return_annotation = f" -> {self.names.type_text(node.type)}"
        return self.codegen._output_text(node.args[0], self.arg, self.options.expanded_def)

    # ---- annotations and comments
    def annotation(self, node: Node) -> str:
        if self.options.verbose:
            text = self._value_annotation(node)
            if text:
                return f': "{text}"'
        return f" : {self.names.type_text(node.type)}" if node.type is not None else ""

    def _value_annotation(self, node: Node) -> str:
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        value = _first_tensor_like(value)
        if value is None:
            return ""
        if not hasattr(value, "dtype"):
            return f"Sym({value})"
        text = f"{_dtype_words.get(value.dtype, str(value.dtype).removeprefix('torch.'))}"
        text += f"[{', '.join(map(str, value.shape))}]"
        if self.options.include_stride:
            stride = value.stride() if callable(value.stride) else value.stride
            text += f"[{', '.join(map(str, stride))}]"
        if self.options.include_device and hasattr(value, "device"):
            text += str(value.device)
        return self._paint("blue", text)

    def _paint(self, color: str, text: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self.options.colored else text

    def comment(self, node: Node) -> str | None:
        """The comment above the line of a node: where the user's program made it."""
        if node.op == "placeholder" or node.op == "output":
            return None
        trace = node.meta.get("stack_trace")
        if not trace:
            text = "# No stacktrace found for following nodes"
        else:
            parsed = _parse_stack_trace(trace)
            if parsed is None:
                return None
            text = f"# {parsed.get_summary_str()}"
        for key in self.options.additional_meta or ():
            if key in node.meta:
                text += f" {key}: {node.meta[key]}"
        if text == self._last_comment:
            return None
        self._last_comment = text
        return self._paint("dim", text)


def _first_tensor_like(value: Any) -> Any:
    if isinstance(value, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool):
        return value
    return value if hasattr(value, "dtype") and hasattr(value, "shape") else None


@dataclass
class _ParsedStackTrace:
    """The innermost frame of a recorded stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """`File: path:line in function, code: text`."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


_FRAME = re.compile(r'\s*File "(.+)", line (\d+), in (\S.*)')


def _parse_stack_trace(
    stack_trace: str, filter_fn: Callable[[str, str, str], bool] | None = None
) -> _ParsedStackTrace | None:
    """The last frame of a trace that filter_fn(file, name, code) accepts, or None."""
    lines = [line for line in stack_trace.strip("\n").split("\n") if line.strip()]
    for i in range(len(lines) - 2, -1, -1):
        frame = _FRAME.match(lines[i])
        if frame is None:
            continue
        file, number, name = frame.groups()
        code = lines[i + 1].strip()
        if filter_fn is None or filter_fn(file, name, code):
            return _ParsedStackTrace(file, number, name, code)
    return None


class CodeGen:
    """How a graph becomes a function. Derive from it and hand it to Graph.set_codegen to give the
    function another signature, other processing of its inputs, another output."""

    _func_name: str = "forward"

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None

    def _format_multiline_args(self, args: list[str]) -> str:
        return "".join(f"\n    {arg}," for arg in args) + "\n" if args else ""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The `def` line. `free_vars` are the parameters; without `self` among them it is added."""
        params = list(free_vars)
        if not params or params[0] != "self":
            params.insert(0, "self")
        text = self._format_multiline_args(params) if expanded_def else ", ".join(params)
        return f"def {self._func_name}({text}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Any | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        """The `return` line."""
        if descs is not None and isinstance(output_args, list | tuple):
            open_, close = ("[", "]") if isinstance(output_args, list) else ("(", ")")
            rows = [
                f"    {(repr_fn or repr)(a)},  # {d}"
                for a, d in zip(output_args, descs, strict=False)
            ]
            return f"return {open_}\n" + "\n".join(rows) + f"\n{close}"
        return f"return {(repr_fn or repr)(output_args)}"

    def _output_text(self, value: Any, show: Callable[[Any], str], expanded: bool) -> str:
        # A subclass may have generate_output with the value alone: then nodes print themselves.
        own = type(self).generate_output
        if own is CodeGen.generate_output or own is _PyTreeCodeGen.generate_output:
            return self.generate_output(value, repr_fn=show)
        return self.generate_output(value)

    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs, given the function's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, given the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names the generated lines use, with their objects."""
        return []

    # ---- the text
    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: "_fx._Namespace",
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        options = _Options(
            verbose,
            include_stride,
            include_device,
            colored,
            expanded_def,
            record_func,
            tuple(additional_meta) if additional_meta else None,
        )
        names = _Names(namespace)
        for name, obj in self.additional_globals():
            names.add(name, obj)
        writer = _Writer(self, root_module, names, options)
        nodes = list(nodes)
        _rename_clashes(writer, nodes, namespace, root_module)
        _write_body(writer, nodes)
        return _assemble(self, writer)


def _rename_clashes(
    writer: _Writer, nodes: list[Node], namespace: "_fx._Namespace", root: str
) -> None:
    """Gives a name of its own to a node called as the module, and to one of two called the same."""
    seen = {root}
    for node in nodes:
        name = repr(node)
        if name in seen:
            writer.renamed[node] = name = namespace.create_name(f"{name}_1", None)
        seen.add(name)


def _deaths(nodes: list[Node]) -> dict[Node, list[Node]]:
    """For each node the values that nobody needs behind it."""
    seen: set[Node] = set()
    out: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        last = [n for n in node._input_nodes if n not in seen]
        seen.update(last)
        if node not in seen and node.op not in ("placeholder", "output"):
            last.append(node)
        if last and node.op not in ("placeholder", "output"):
            out[node] = last
        seen.add(node)
    return out


def _write_body(writer: _Writer, nodes: list[Node]) -> None:
    deaths = _deaths(nodes)
    verbose, record = writer.options.verbose, writer.options.record_func
    for index, node in enumerate(nodes):
        if verbose:
            comment = writer.comment(node)
            if comment is not None:
                above = [""] if writer.lines else []
                writer.lines += [*above, comment]
                writer.origins += [index] * (len(above) + 1)
        text = writer.write(node)
        if text is None:
            continue
        dead = deaths.get(node)
        if dead:
            text += f";  {' = '.join(map(writer.name, dead))} = None"
        if record and node.op not in ("placeholder", "output"):
            var = f"_rf_{writer.name(node)}"
            made = f"torch.profiler.record_function('## {index} ##')"
            text = f"{var} = {made}; {var}.__enter__()\n{text}\n{var}.__exit__(None, None, None)"
        count = text.count("\n") + 1
        writer.lines += text.split("\n")
        writer.origins += [index] * count


def _assemble(codegen: CodeGen, writer: _Writer) -> PythonCode:
    lines, origins = writer.lines or ["pass"], writer.origins or [None]
    if codegen._body_transformer is not None:
        made = codegen._body_transformer([f"{line}\n" for line in lines])
        lines = "".join(made).rstrip("\n").split("\n")
        origins = origins[: len(lines)] + [None] * (len(lines) - len(origins))
    wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
    definition = codegen.gen_fn_def(
        writer.free_vars, writer.return_annotation, **_expanded(codegen, writer.options)
    )
    prologue = f"\n{wraps}\n\n{definition}"
    body = "".join(f"\n    {line}" for line in lines)
    start = prologue.count("\n") + 1
    lineno_map = {1 + i: origin for i, origin in enumerate(origins)}
    return PythonCode(f"{prologue}{body}\n    ", writer.names.globals, lineno_map, start)


def _expanded(codegen: CodeGen, options: _Options) -> dict[str, bool]:
    # Codegens of users may have gen_fn_def(free_vars, maybe_return_annotation) alone.
    return {"expanded_def": True} if options.expanded_def else {}


class _PyTreeInfo(NamedTuple):
    """How arguments and result of the traced function are made of the graph's inputs and output."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """A function that takes nested containers, flattens them for the graph and puts the result
    back together."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return outputs
        if not isinstance(outputs, list | tuple):
            outputs = (outputs,)
        return pytree.tree_unflatten(outputs, self.pytree_info.out_spec)

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        params = list(self.pytree_info.orig_args)
        has_self = bool(params) and params[0] == "self"
        if has_self:
            free_vars = [v for v in free_vars if v != "self"]
        text = super().gen_fn_def(params, maybe_return_annotation, expanded_def=expanded_def)
        if free_vars:
            text += self._unpack(free_vars, params[1:] if has_self else params)
        return text

    def _unpack(self, free_vars: list[str], params: list[str]) -> str:
        bare = [v.split("=")[0].split(":")[0].strip() for v in free_vars]
        typed = [v.split("=")[0].strip() for v in free_vars if ":" in v.split("=")[0]]
        in_spec = self.pytree_info.in_spec
        count = len(params)
        if _is_args_kwargs(in_spec):
            positional = in_spec.children_specs[0].num_children
            args, kwargs = params[:positional], params[positional:]
            tree = f"([{', '.join(args)}], {{{', '.join(f'{k!r}:{k}' for k in kwargs)}}})"
        else:
            tree = f"[{', '.join(params[:count])}]"
        lines = "".join(f"\n    {v}" for v in typed)
        return (
            f"{lines}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({tree}, self._in_spec)"
        )

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Any | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        shown = (repr_fn or repr)(output_args)
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"


def _is_args_kwargs(spec: pytree.TreeSpec) -> bool:
    """Whether a spec is that of (args, kwargs)."""
    parts = spec.children_specs
    return (
        spec.type is tuple
        and spec.num_children == 2
        and parts[0].type is tuple
        and parts[1].type is dict
    )


class _BoxedCodeGen(CodeGen):
    """A function that takes one list of inputs and empties it, so that the caller keeps none of
    them alive."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        text = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        if free_vars:
            bare = [v.split("=")[0].split(":")[0].strip() for v in free_vars]
            text += f"\n    {', '.join(bare)}, = args_list"
        return f"{text}\n    args_list.clear()"
