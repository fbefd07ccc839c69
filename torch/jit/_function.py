"""Scripted functions. A function is declared (its signature is known) before it is compiled, so
that
functions can call each other; its code is made when it is first needed."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import typing
import weakref

import torch
from torch.jit import _types as T
from torch.jit._annotations import PythonTypes, from_python, qualified_name
from torch.jit._compiler import Compiler
from torch.jit._ir import Graph, Place, Source
from torch.jit._lower import define
from torch.jit._rewrites import eliminate_dead_code, inline, pool_constants
from torch.jit._schema import NO_DEFAULT
from torch.jit._scope import Scope, caller_names, scope_of, type_scope_of
from torch.jit._syntax import free_names


class Parameter(typing.NamedTuple):
    """A parameter of a scripted function."""

    name: str
    type: T.Type
    default: object = NO_DEFAULT
    inferred: bool = False
    kwarg_only: bool = False
    size: int | None = None

    def has_default_value(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def default_value(self) -> object:
        return None if self.default is NO_DEFAULT else self.default


class Signature(typing.NamedTuple):
    """What programs see as the schema of a function."""

    name: str
    arguments: list[Parameter]
    returns: list[Parameter]

    def __str__(self) -> str:
        return declaration(
            self.name, self.arguments, self.returns[0].type if self.returns else None
        )


def declaration(name: str, parameters, returns: T.Type | None) -> str:
    parts = []
    for p in parameters:
        default = "" if p.default is NO_DEFAULT else f"={p.default!r}"
        kind = f"{str(p.type)[:-2]}[{p.size}]" if p.size and str(p.type)[-2:] == "[]" else p.type
        if p.kwarg_only and "*" not in parts:
            parts.append("*")
        parts.append(f"{kind} {p.name}{default}")
    shown = "..." if returns is None else str(returns)
    if shown.startswith("("):  # one result that is a tuple
        shown = f"({shown})"
    return f"{name}({', '.join(parts)}) -> {shown}"


class ExecutionPlan(typing.NamedTuple):
    """One way in which a function runs."""

    graph: Graph


class ExecutionState(typing.NamedTuple):
    """How a function runs: its graph, and its plans by what they were made for."""

    graph: Graph
    execution_plans: dict[str, ExecutionPlan]
    fallback: ExecutionPlan | None


class ScriptFunction(torch._C._ScriptFunctionBase):
    """A compiled function. Calling it runs the interpreter."""

    def __new__(cls, *_args, **_kwargs) -> typing.Self:
        return super().__new__(cls)

    def __init__(self, name: str, qualified: str, origin) -> None:
        self._name, self._qualified, self.origin = name, qualified, origin
        self.__name__ = name
        self.arguments: list[Parameter] = []
        self.returns: T.Type | None = None
        self._graph: Graph | None = None
        self._state = ""  # then declared, compiling, done

    @property
    def name(self) -> str:
        """The name without the module it comes from."""
        return self._name

    @property
    def qualified_name(self) -> str:
        """The name as archives have it."""
        return self._qualified

    def declare(self) -> None:
        """Makes the signature known."""
        if self._state:
            return
        self._state = "declared"
        self.arguments, self.returns = self.origin.signature(self)

    def is_done(self) -> bool:
        """Whether graph and code exist."""
        return self._state == "done"

    def is_compiling(self) -> bool:
        """Whether its body is being compiled right now: a call from there is a recursion."""
        return self._state == "compiling"

    def ensure_compiled(self) -> None:
        """Makes graph and code."""
        if self._state == "done":
            return
        self.declare()
        if self.is_compiling():
            return
        self._state = "compiling"
        try:
            self.finish(self.origin.compile(self))
        except BaseException:
            self._state = "declared"
            raise

    def finish(self, graph: Graph) -> None:
        eliminate_dead_code(graph)
        pool_constants(graph)
        self._graph = graph
        if self.returns is None:
            self.returns = graph.block.results[0].type()
        formal = []
        for p in self.arguments:
            default = () if p.default is NO_DEFAULT else (p.default,)
            formal.append((p.name, p.type.handle(), p.inferred, p.size or 0, *default))
        free = sum(not p.kwarg_only for p in self.arguments)
        shown = declaration(self.name, self.arguments, self.returns)
        self._set_signature(self.name, formal, shown, free)
        define(self, graph)
        self._state = "done"

    @property
    def graph(self) -> Graph:
        self.ensure_compiled()
        return self._graph

    @property
    def inlined_graph(self) -> Graph:
        copy = self.graph.copy()
        inline(copy)
        return copy

    def graph_for(self, *args, **_kwargs) -> Graph:
        """The graph as it is run for these arguments: inlined, with the parts that are
        differentiated as a whole."""
        from torch.jit import _native_names
        from torch.jit._autodiff import executed_graph

        apart = not _native_names._debug_get_autodiff_subgraph_inlining()
        return executed_graph(self.inlined_graph, args, apart)

    @property
    def code(self) -> str:
        from torch.jit._print_code import function_code

        return function_code(self)

    @property
    def code_with_constants(self):
        from torch.jit._print_code import function_code_with_constants

        return function_code_with_constants(self)

    @property
    def schema(self) -> str:
        self.declare()
        name = self.name
        return str(declaration(name, self.arguments, self.returns))

    @property
    def signature(self) -> Signature:
        self.ensure_compiled()
        return Signature(self.name, self.arguments, [Parameter("", self.returns)])

    def save(self, f, _extra_files=None) -> None:
        from torch.jit._serialization import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None) -> bytes:
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def get_debug_state(self) -> ExecutionState:
        """The graph that runs: there is one plan, made when the function was compiled."""
        graph = self.inlined_graph
        return ExecutionState(graph, {"": ExecutionPlan(graph)}, None)

    def _debug_flush_compilation_cache(self) -> None:
        """Code is compiled once and kept with its function."""

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object {self.name!r}>"

    def __reduce__(self):
        raise pickle.PickleError("ScriptFunction cannot be pickled")


# ---- functions written in Python


class PythonSource:
    """A Python function as the origin of a scripted one; `receiver` is the type of self, `names`
    are visible beside what the function itself can see."""

    def __init__(
        self,
        fn,
        receiver: T.Type | None = None,
        declared=None,
        names: dict[str, object] | None = None,
    ) -> None:
        self.fn, self.receiver, self.declared = fn, receiver, declared
        self.names, self.caller = names or {}, caller_names()
        self._tree = None

    def shown(self, node: ast.AST) -> str:
        """The place of a node for an error message."""
        source = self.tree()[1]
        return "\n" + Place(source, node.lineno, node.col_offset, self.fn.__name__).text()

    def tree(self) -> tuple[ast.FunctionDef, Source]:
        if self._tree is None:
            self._tree = parse_function(self.fn)
        return self._tree

    def scope(self) -> Scope:
        return scope_of(self.fn, self.names)

    def types(self, fn=None) -> PythonTypes:
        return PythonTypes(type_scope_of(fn or self.fn, self.names, self.caller))

    def signature(self, function: ScriptFunction) -> tuple[list[Parameter], T.Type | None]:
        node, source = self.tree()
        declared = self.declared or self.fn
        if self.declared is not None:
            node, source = parse_function(declared)
        del source
        types = self.types(declared)
        defaults = _defaults(self.fn)
        if self.declared is not None:
            defaults = {
                **defaults,
                **{k: v for k, v in _defaults(declared).items() if v is not Ellipsis},
            }
        known = resolved_annotations(declared)
        if node.returns is None:
            known.pop("return", None)
        parameters, returns = read_signature(node, types, defaults, self.receiver, function, known)
        if self.declared is not None:
            parameters = [_without_misfit(p) for p in parameters]
        if (self.fn.__module__ or "").startswith("torch.nn."):
            parameters = [_by_default(p) for p in parameters]
        return parameters, returns

    def compile(self, function: ScriptFunction) -> Graph:
        node, source = self.tree()
        scope = self.scope()

        def resolve(name: str, c):
            from torch.jit._resolve import sugar

            if name in scope:
                return sugar(scope[name], c)
            return None

        return compile_body(function, node.body, source, resolve, self.types(), self.before)

    def before(self, c: Compiler) -> None:
        """Defines names that are no parameters."""


class ClassMethodSource(PythonSource):
    """A class method: its first parameter is the class, which is known while compiling."""

    def __init__(self, fn, owner: T.ClassType, names: dict[str, object]) -> None:
        super().__init__(fn, None, None, names)
        self.owner = owner

    def signature(self, function: ScriptFunction) -> tuple[list[Parameter], T.Type | None]:
        parameters, returns = super().signature(function)
        return parameters[1:], returns

    def before(self, c: Compiler) -> None:
        from torch.jit._sugar import Class

        c.define(self.fn.__code__.co_varnames[0], Class(self.owner))


def _without_misfit(p: Parameter) -> Parameter:
    """A default of the implementation that one of its overloads cannot take."""
    known = T.infer(p.default) if p.default is not NO_DEFAULT else None
    return p if known is None or T.is_subtype(known, p.type) else p._replace(default=NO_DEFAULT)


def _by_default(p: Parameter) -> Parameter:
    """Parameters of the library without a type have that of their default; None stands for a
    tensor that may be missing."""
    if not p.inferred or p.default is NO_DEFAULT:
        return p
    return p._replace(type=T.optional(T.Tensor) if p.default is None else T.infer(p.default))


class GenericSource(PythonSource):
    """A function of the library, with types for the parameters that it leaves open."""

    def __init__(self, fn, types: dict[str, T.Type], receiver: T.Type | None = None) -> None:
        super().__init__(fn, receiver)
        self.open_types = types

    def tree(self) -> tuple[ast.FunctionDef, Source]:
        """What the function returns follows from the types of the call."""
        node, source = super().tree()
        node.returns = None
        return node, source

    def signature(self, function: ScriptFunction) -> tuple[list[Parameter], T.Type | None]:
        parameters, returns = super().signature(function)
        out = []
        for p in parameters:
            if p.inferred:
                kind = self.open_types.get(p.name)
                if kind is None and p.default is not NO_DEFAULT:
                    kind = T.infer(p.default)
                p = p._replace(type=kind or T.Tensor, inferred=False)
                if (
                    not T.is_subtype(T.infer(p.default) or T.Any, p.type)
                    and p.default is not NO_DEFAULT
                ):
                    p = p._replace(default=NO_DEFAULT)
            out.append(p)
        return out, returns


def compile_body(function, body, source, resolve, types, before=None) -> Graph:
    """The graph of a function from its statements."""
    c = Compiler(function, source, resolve, types)
    for p in function.arguments:
        c.define(p.name, c.graph.block.add_param(p.type, p.name))
        c.declared[p.name] = p.type
    if before is not None:
        before(c)
    c.statements(body)
    if not c.left:
        wanted = function.returns
        if wanted is not None and not T.is_subtype(T.NoneT, wanted):
            c.fail(
                f"Function '{function.name}' is annotated to return {wanted.annotation_str} but "
                "does not return along all paths"
            )
        c.guarded([ast.Return(None)])
    result, wanted = c.as_value(c.frame.find("$return")), function.returns
    if wanted is not None and result.type() is T.NoneT and not T.is_subtype(T.NoneT, wanted):
        result = c.value("prim::Uninitialized", (), wanted)  # the function only raises
    c.graph.block.results.append(result)
    return c.graph


def parse_function(fn) -> tuple[ast.FunctionDef, Source]:
    """The syntax tree of a Python function and its source."""
    try:
        lines, first = inspect.getsourcelines(fn)
        filename = inspect.getsourcefile(fn) or "<unknown>"
    except (OSError, TypeError) as e:
        raise OSError(
            f"Can't get source for {fn}. TorchScript requires source access in order to carry out "
            "compilation, make sure original .py files are available."
        ) from e
    text = "".join(lines)
    # Columns stay those of the file, and text at lower indentation is allowed.
    inside = text[:1].isspace()
    whole = f"if True:\n{text}" if inside else text
    try:
        tree = ast.parse(whole, type_comments=True)
    except SyntaxError:
        tree = ast.parse(_without_continuation(whole))
    if inside:
        tree = ast.increment_lineno(tree, -1).body[0]
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise RuntimeError(
            "Expected a single top-level function: a lambda or an expression cannot be scripted "
            f"({filename}:{first})"
        )
    return tree.body[0], Source(text, filename, first)


def _without_continuation(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("# type:"))


def _defaults(fn) -> dict[str, object]:
    fn = inspect.unwrap(fn) if not hasattr(fn, "__code__") else fn
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount]
    values = fn.__defaults__ or ()
    out = dict(zip(names[len(names) - len(values) :], values, strict=True))
    out.update(fn.__kwdefaults__ or {})
    return out


def resolved_annotations(fn) -> dict[str, object]:
    """Annotations that Python has evaluated: a class that is local to the caller is one of them,
    though no name leads to it."""
    found = getattr(fn, "__annotations__", {})
    return {name: a for name, a in found.items() if _is_resolved(a)}


def _is_resolved(annotation: object) -> bool:
    if isinstance(annotation, str | typing.ForwardRef):
        return False
    return all(map(_is_resolved, typing.get_args(annotation)))


def _shown_in(function, node: ast.AST) -> str:
    shown = getattr(getattr(function, "origin", None), "shown", None)
    return shown(node) if shown else f" {function.name}"


def _check_signature(node, comment, receiver, function) -> list[ast.arg]:
    """The parameters by position; errors name what scripted functions cannot have."""
    from torch.jit.frontend import NotSupportedError

    args = node.args
    if args.vararg is not None or args.kwarg is not None or any(args.kw_defaults):
        raise NotSupportedError(
            None,
            "Compiled functions can't take variable number of arguments or use keyword-only "
            f"arguments with defaults: {function.name}",
        )
    listed = [*args.posonlyargs, *args.args]
    if receiver is not None and not listed:
        raise RuntimeError(f"methods must have a self argument: '{function.name}' has none")
    if comment and len(comment[0]) != len(listed) - (receiver is not None):
        raise RuntimeError(
            f"Number of type annotations ({len(comment[0])}) did not match the number of function "
            f"parameters ({len(listed)}):{_shown_in(function, node)}"
        )
    return listed


def read_signature(
    node, types, defaults, receiver, function, known: dict[str, object] | None = None
) -> tuple[list[Parameter], T.Type | None]:
    """Parameters and result of a function definition. `known` are annotations as objects."""
    known = {name: kind for name, kind in (known or {}).items() if not _is_hidden(kind)}
    args = node.args
    comment = _type_comment(node)
    listed = _check_signature(node, comment, receiver, function)
    parameters = []
    annotated = comment[0] if comment else None
    offset = 1 if receiver is not None else 0
    for i, arg in enumerate([*listed, *args.kwonlyargs]):
        default = defaults.get(arg.arg, NO_DEFAULT)
        if isinstance(default, torch.dtype | torch.layout | torch.memory_format):
            from torch.jit._resolve import number_of

            default = number_of(default)
        inferred, size = False, None
        if i == 0 and receiver is not None:
            kind = receiver
        elif annotated is not None and i - offset < len(annotated):
            kind, size = _annotation(annotated[i - offset], types)
        elif arg.annotation is not None:
            kind, size = _annotation(arg.annotation, types, known.get(arg.arg))
        else:
            kind, inferred = T.Tensor, True
        if size and isinstance(default, int | float):
            default = [default] * size
        parameters.append(Parameter(arg.arg, kind, default, inferred, i >= len(listed), size))
    returns = None
    if comment:
        returns = None if comment[1] is None else types.of_ast(comment[1], None)
    elif known.get("return") is not None:
        returns = types.of_python(known["return"])
    elif node.returns is not None:
        returns = types.of_ast(node.returns, None)
    return parameters, returns


def _is_hidden(kind: object) -> bool:
    """Whether a method of the class stands where a type is meant: after `def int(self)` in a class
    body, annotations that say `int` are that function. The name in the source text is right."""
    return inspect.isfunction(kind) or any(map(_is_hidden, typing.get_args(kind)))


_SIZE_NAMES = re.compile(r"_(size|ratio)_(\d)_t")


def _annotation(node: ast.expr, types, known: object = None) -> tuple[T.Type, int | None]:
    """A type, and the length of a BroadcastingList; `known` is the annotation as an object."""
    text = ast.unparse(node)
    short = _SIZE_NAMES.fullmatch(text.rpartition(".")[2])
    if short:
        return T.ListType.of(T.Int if short[1] == "size" else T.Float), int(short[2])
    if known is not None and "BroadcastingList" not in text:
        return types.of_python(known), None
    name = text.partition("[")[0].rpartition(".")[2]
    if name.startswith("BroadcastingList") and isinstance(node, ast.Subscript):
        inner = types.of_ast(node.slice, None)
        return T.ListType.of(inner), int(name.removeprefix("BroadcastingList"))
    if name == "Optional" and isinstance(node, ast.Subscript) and "BroadcastingList" in text:
        kind, size = _annotation(node.slice, types)
        return T.optional(kind), size
    return types.of_ast(node, None), None


def _type_comment(node: ast.FunctionDef) -> tuple[list[ast.expr], ast.expr | None] | None:
    """The types of a comment `(A, B) -> C`; the result may be missing, and the parameters may have
    comments of their own: `(...) -> C`."""
    comment = (getattr(node, "type_comment", None) or "").partition("#")[0].strip()
    if not comment.startswith("("):
        return None
    returned = "->" in comment
    try:
        made = ast.parse(comment if returned else f"{comment} -> None", mode="func_type")
    except SyntaxError:
        raise RuntimeError(f"the type comment '{comment}' of {node.name} is not a type") from None
    types, result = made.argtypes, made.returns if returned else None
    if isinstance(result, ast.Tuple):  # (int, str) is how graphs spell Tuple[int, str]
        result = ast.Subscript(ast.Name("Tuple", ast.Load()), result, ast.Load())
    if len(types) == 1 and isinstance(types[0], ast.Constant) and types[0].value is Ellipsis:
        types = [_argument_comment(a, node) for a in node.args.args if a.arg != "self"]
    return types, result


def _argument_comment(arg: ast.arg, node: ast.FunctionDef) -> ast.expr:
    if not arg.type_comment:
        raise RuntimeError(
            f"Number of type annotations for function parameters of {node.name} did not match: "
            f"'{arg.arg}' has none"
        )
    return ast.parse(arg.type_comment.partition("#")[0].strip(), mode="eval").body


def result_of(fn) -> T.Type:
    """What a Python function declares to return, a tensor where that is nothing scripted code
    could hold; its parameters may be of any kind."""
    source = PythonSource(fn)
    try:
        node, _ = source.tree()
        comment = _type_comment(node)
        if comment is not None and comment[1] is not None:
            return source.types().of_ast(comment[1], None)
        return source.types().of_ast(node.returns, None) if node.returns else T.Tensor
    except (OSError, RuntimeError):
        return T.Tensor


class Declared:
    """The signature of a Python function that stays Python; it may take any number of tensors."""

    def __init__(self, fn, receiver: T.Type | None = None) -> None:
        self.name = fn.__name__
        self.vararg = False
        try:
            source = PythonSource(fn, receiver)
            node, _ = source.tree()
            if node.args.vararg is not None and node.args.kwarg is None:
                self.vararg, node.args.vararg = True, None
            self.arguments, self.returns = source.signature(self)
        except OSError:
            self.arguments, self.returns = _runtime_signature(fn)
        if self.returns is None:
            self.returns = T.Tensor
        self.schema = declaration(self.name, self.arguments, self.returns)

    def declare(self) -> None:
        pass


def _runtime_signature(fn) -> tuple[list[Parameter], T.Type]:
    hints = typing.get_type_hints(fn)
    arguments = [
        Parameter(
            p.name,
            from_python(hints[p.name]) if p.name in hints else T.Tensor,
            NO_DEFAULT if p.default is p.empty else p.default,
        )
        for p in inspect.signature(fn).parameters.values()
    ]
    return arguments, from_python(hints["return"]) if "return" in hints else T.Tensor


_scripted: weakref.WeakKeyDictionary[typing.Any, ScriptFunction] = weakref.WeakKeyDictionary()


def script_python(
    fn, qualified: str | None = None, name: str | None = None, declaration=None
) -> ScriptFunction:
    """The scripted form of a Python function, made once; compiled when it is used."""
    if declaration is None:
        known = _scripted.get(fn)
        if known is not None:
            return known
    made = ScriptFunction(
        name or fn.__name__, qualified or qualified_name(fn), PythonSource(fn, None, declaration)
    )
    if declaration is None:
        _scripted[fn] = made
    return made


# ---- functions inside functions


class ClosureSource:
    """A nested function: what it captures are its first parameters."""

    def __init__(self, closure, captured: list[tuple[str, T.Type]]) -> None:
        self.closure, self.captured = closure, captured

    def signature(self, function: ScriptFunction) -> tuple[list[Parameter], T.Type | None]:
        own, returns = read_signature(
            self.closure.node, self.closure.owner.types, {}, None, function
        )
        return [*(Parameter(n, t) for n, t in self.captured), *own], returns

    def compile(self, function: ScriptFunction) -> Graph:
        owner = self.closure.owner
        frame = owner.frame

        def resolve(name: str, c):
            found = frame.find(name)
            if found is not None and not hasattr(found, "debugName"):
                return found
            return owner.resolve(name, c)

        return compile_body(function, self.closure.node.body, owner.source, resolve, owner.types)


def lift_closure(c, closure) -> tuple[ScriptFunction, list[typing.Any]]:
    """The function of a closure and the values it captures, in the order of its first
    parameters."""
    from torch.jit._ir import Value
    from torch.jit._sugar import Module

    own = {a.arg for a in closure.node.args.args}
    captured = []
    for name in free_names(closure.node):
        value = c.frame.find(name) if name not in own else None
        if isinstance(value, Module):
            value = value.receiver
        if isinstance(value, Value):
            captured.append((name, value))
    source = ClosureSource(closure, [(n, v.type()) for n, v in captured])
    made = ScriptFunction(closure.node.name, closure.node.name, source)
    return made, [v for _, v in captured]
