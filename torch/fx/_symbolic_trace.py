"""symbolic_trace: runs a module or function once on proxies and keeps what happened as a graph.

While a tracer runs, calls of modules and reads of what they own come to it through
torch._C._set_module_tracer (on its thread only), and functions marked with `wrap` or belonging to
`autowrap_modules` are replaced in the namespaces that call them; an undo log puts everything back,
whatever happens."""

import builtins
import collections
import contextlib
import functools
import inspect
import math
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.fx import _codegen
from torch.fx._compatibility import compatibility
from torch.fx._lazy_graph_module import _LazyGraphModule, _make_graph_module
from torch.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from torch.fx.graph_module import GraphModule
from torch.fx.node import Argument, Node, base_types, map_aggregate
from torch.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

FunctionType = types.FunctionType  # tracers of other packages take names from here
ScriptObject = torch._C.ScriptObject
_orig_module_call = torch.nn.Module.__call__
_orig_module_getattr = torch.nn.Module.__getattr__

# Classes that may be made inside a traced function of proxies, see ProxyableClassMeta.
_proxyable_classes: dict[type, None] = {}
# (id of a namespace, name) -> namespace: the functions marked with `wrap`.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
# (class, name of a method): methods that become nodes when a proxy is among their arguments.
_wrapped_methods_to_patch: list[tuple[type, str]] = []

_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a symbolic trace is running."""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing() -> bool:
    """Whether a symbolic trace is running, and no compilation."""
    return _is_fx_tracing_flag and not torch.compiler.is_compiling()


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """A metaclass: an object of the class that is made of proxies while tracing becomes a node that
    makes it."""

    def __init__(cls, name: str, bases: tuple, attrs: dict[str, Any]) -> None:
        _proxyable_classes[cls] = None
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)
            return made
        proxies: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: proxies.append(a) if isinstance(a, Proxy) else a)
        if proxies:
            return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)
        return made


# ---- placeholders of concrete_args
@compatibility(is_backward_compatible=False)
class PHBase:
    """Stands, inside concrete_args, for an input that is traced."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """A placeholder whose attributes the node of the input gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: PHBase, to: Node) -> None:
    """Attributes of a placeholder that the node does not have yet."""
    for name, value in vars(fr).items():
        if not hasattr(to, name):
            setattr(to, name, value)


# ---- replacing functions while a trace runs
_MISSING = object()


def _restore_method(cls: type, name: str, old: Any) -> None:
    if old is not _MISSING:
        setattr(cls, name, old)
        return
    delattr(cls, name)
    if issubclass(cls, torch.nn.Module):
        # Python chose slower ways to attributes while the class had a method of its own.
        todo = [cls]
        while todo:
            current = todo.pop()
            torch._C._refresh_module_class(current)
            todo += current.__subclasses__()


class _Patcher:
    """An undo log of entries of namespaces and attributes of classes."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def __enter__(self) -> "_Patcher":
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()
        self.visited.clear()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Callable, deduplicate: bool = True
    ) -> None:
        """Replaces an entry of a namespace, once unless told otherwise; one that was missing (a
        builtin) is removed again."""
        old = frame_dict.get(name, _MISSING)
        if deduplicate and getattr(old, "__fx_already_patched", False):
            return
        if old is _MISSING:
            self._undo.append(lambda: frame_dict.pop(name, None))
        else:
            self._undo.append(lambda: frame_dict.__setitem__(name, old))
        new_fn.__fx_already_patched = deduplicate
        frame_dict[name] = new_fn

    def patch_method(
        self, cls: type, name: str, new_fn: Callable, deduplicate: bool = True
    ) -> None:
        """Replaces a method of a class, once unless told otherwise."""
        old = vars(cls).get(name, _MISSING)
        if deduplicate and getattr(old, "__fx_already_patched", False):
            return
        self._undo.append(lambda: _restore_method(cls, name, old))
        new_fn.__fx_already_patched = deduplicate
        setattr(cls, name, new_fn)

    def visit_once(self, namespace: Any) -> bool:
        """True the first time a namespace is seen."""
        if id(namespace) in self.visited:
            return False
        self.visited.add(id(namespace))
        return True


def _find_proxy(*values: Any) -> Proxy | None:
    """Some proxy inside the values."""
    found: list[Proxy] = []
    map_aggregate(values, lambda a: found.append(a) if isinstance(a, Proxy) else a)
    return found[0] if found else None


def _recorded_function(original: Callable) -> Callable:
    """The function, or a node that calls it where a proxy is among the arguments."""

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", original, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return recorded


def _recorded_method(cls: type, name: str) -> Callable:
    original = getattr(cls, name)

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return recorded


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Puts recorders in place of everything `wrap` named."""
    for (_, name), namespace in list(_wrapped_fns_to_patch.items()):
        if name not in namespace and not hasattr(builtins, name):
            continue
        original = namespace[name] if name in namespace else getattr(builtins, name)
        _codegen.wrapped_functions[id(original)] = original
        patcher.patch(namespace, name, _recorded_function(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _recorded_method(cls, name))


def _autowrap_check(patcher: _Patcher, namespace: dict[str, Any], function_ids: set[int]) -> None:
    """Puts recorders in place of the functions of autowrapped modules that a namespace holds."""
    if not patcher.visit_once(namespace):
        return
    for name, value in list(namespace.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(namespace, name, _recorded_function(value))


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: str | Callable) -> Any:
    """Marks a function of the calling module: traces record a call of it instead of going through
    it. Call it at the top of a module with the function or its name, or use it as a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


# ---- the tracer
@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Traces modules and functions. Override is_leaf_module, call_module, create_arg, getattr or
    path_of_module to trace otherwise."""

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_function_ids: set[int] = {id(f) for f in functions}
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search: list[types.ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[torch.nn.Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}

    _qualname_counter: dict[str, int]

    @compatibility(is_backward_compatible=False)
    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that begins with `prefix` and that the root module does not have."""
        counter = self.__dict__.setdefault("_qualname_counter", {})
        number = counter.get(prefix, 0)
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        counter[prefix] = number + 1
        return f"{prefix}{number}"

    # ---- arguments
    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Argument:
        """As TracerBase.create_arg; parameters, buffers, modules and other tensors of the program
        become get_attr nodes, tensors that nobody owns become attributes of the root."""
        if isinstance(a, torch.Tensor):
            return self._tensor_arg(a)
        if isinstance(a, torch.nn.Module):
            return self.create_node("get_attr", self._path_of_any(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node(
                "call_function", type(a), tuple(self.create_arg(item) for item in a), {}
            )
        if isinstance(a, torch.ScriptObject):
            return self._object_arg(a)
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _object_arg(self, a: torch.ScriptObject) -> Argument:
        """An object of a C++ class: where a module of the program holds it, or a new attribute."""
        for path, module in self.root.named_modules():
            for name, held in vars(module).items():
                if isinstance(held, torch.ScriptObject) and held._identity() == a._identity():
                    return self.create_node("get_attr", f"{path}.{name}".lstrip("."), (), {})
        name = self.get_fresh_qualname("_torchbind_obj")
        setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})

    def _path_of_any(self, module: torch.nn.Module) -> str:
        for path, candidate in self.root.named_modules():
            if candidate is module:
                return path
        name = self.get_fresh_qualname("_module_constant")
        setattr(self.root, name, module)
        return name

    def _owned_paths(self) -> dict[int, str]:
        """Where the root has its parameters and buffers."""
        paths = self.__dict__.get("_paths_by_id")
        if paths is None:
            named = [*self.root.named_parameters(), *self.root.named_buffers()]
            paths = self._paths_by_id = {id(value): path for path, value in reversed(named)}
        return paths

    def _tensor_arg(self, a: torch.Tensor) -> Node:
        path = self._owned_paths().get(id(a))
        if path is None and isinstance(a, torch.nn.Parameter):
            path = next((p for p, value in self.root.named_parameters() if value is a), None)
            if path is None:
                raise NameError("parameter is not a member of this module")
        if path is None:
            path = self.tensor_attrs.get(a)
        if path is None:
            path = self.get_fresh_qualname("_tensor_constant")
            self.tensor_attrs[a] = path
            setattr(self.root, path, a)
        return self.create_node("get_attr", path, (), {})

    # ---- modules
    @compatibility(is_backward_compatible=True)
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of the module becomes one node: those of torch.nn do, except
        Sequential."""
        home = m.__module__
        return (home.startswith(("torch.nn", "torch.ao.nn"))) and not isinstance(
            m, torch.nn.Sequential
        )

    @compatibility(is_backward_compatible=True)
    def path_of_module(self, mod: torch.nn.Module) -> str:
        """The dotted path by which the root reaches a module."""
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
        else:
            path = next((p for p, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    @compatibility(is_backward_compatible=True)
    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple, kwargs: dict
    ) -> Any:
        """What a call of a module becomes: a node for a leaf, else what its forward does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            self.module_stack[key] = (path, scope.module_type)
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    @compatibility(is_backward_compatible=False)
    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading a parameter, buffer or submodule gives while tracing."""
        if isinstance(attr_val, torch.nn.Parameter):
            owned = True
        else:
            owned = self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor)
        path = self._owned_paths().get(id(attr_val)) if owned else None
        if path is None:
            return attr_val
        made = parameter_proxy_cache.get(path)
        if made is None:
            factory = None
            if self.param_shapes_constant and isinstance(attr_val, torch.nn.Parameter):
                factory = functools.partial(_parameter_proxy, self, path, attr_val)
            # Tracers of users may have create_proxy without the last parameter.
            extra = {} if factory is None else {"proxy_factory_fn": factory}
            made = self.create_proxy("get_attr", path, (), {}, **extra)
            parameter_proxy_cache[path] = made
        return made

    # ---- arguments of the root
    @compatibility(is_backward_compatible=False)
    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Placeholders for the parameters of the root; returns what to call, and with what."""
        return _RootArguments(self, root_fn, is_module, concrete_args).make()

    # ---- tracing
    @compatibility(is_backward_compatible=True)
    def trace(
        self,
        root: torch.nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """Runs `root` on proxies; returns the graph. concrete_args gives parameters fixed
        values."""
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _is_fx_tracing_flag = before

    def _trace(self, root: Any, concrete_args: dict[str, Any] | None) -> Graph:
        is_module = isinstance(root, torch.nn.Module)
        if is_module:
            # Generating code is nothing to trace.
            for module in root.modules():
                _LazyGraphModule.force_recompile(module)
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root = root
            self.root_module_name = root._get_name()
            self.submodule_paths = {m: path for path, m in root.named_modules()}
        else:
            self.root = torch.nn.Module()
            fn = root
        self.__dict__.pop("_paths_by_id", None)
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if hasattr(fn, "__code__"):
            code = fn.__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
        self.tensor_attrs = _tensor_attributes(self.root)
        self.num_calls = {}
        fn, args = self.create_args_for_root(fn, is_module, concrete_args)
        with self._recording(_namespace_of(fn)):
            result = fn(*args)
            annotations = getattr(fn, "__annotations__", {})
            self.create_node(
                "output",
                "output",
                (self.create_arg(result),),
                {},
                type_expr=annotations.get("return", None),
            )
        self.submodule_paths = None
        return self.graph

    @contextlib.contextmanager
    def _recording(self, namespace: dict[str, Any]) -> Iterator[None]:
        """Calls of modules, reads of parameters and marked functions come to this tracer."""
        proxies: dict[str, Any] = {}
        with _Patcher() as patcher:

            def call(module: torch.nn.Module, args: tuple, kwargs: dict) -> Any:
                def forward(*args: Any, **kwargs: Any) -> Any:
                    return torch._C._call_module(module, args, kwargs)

                target = getattr(getattr(module, "forward", module), "__globals__", {})
                _autowrap_check(patcher, target, self._autowrap_function_ids)
                return self.call_module(module, forward, args, kwargs)

            def read(module: torch.nn.Module, name: str, value: Any) -> Any:
                return self.getattr(name, value, proxies)

            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, namespace, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            before = torch._C._set_module_tracer(call, read)
            try:
                yield
            finally:
                torch._C._set_module_tracer(*before)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tracer":
        import copy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            # Modules of autowrap are not copied, and neither are functions.
            made.__dict__[key] = (
                list(value) if key == "_autowrap_search" else copy.deepcopy(value, memo)
            )
        return made


def _parameter_proxy(tracer: Tracer, path: str, param: Any, node: Node) -> ParameterProxy:
    return ParameterProxy(tracer, node, path, param)


def _namespace_of(fn: Callable) -> dict[str, Any]:
    return getattr(inspect.unwrap(fn), "__globals__", {})


def _tensor_attributes(root: torch.nn.Module) -> dict[torch.Tensor, str]:
    """Tensors that modules hold as plain attributes."""
    found: dict[torch.Tensor, str] = {}
    for prefix, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                found[value] = f"{prefix}.{name}" if prefix else name
    return found


class _RootArguments:
    """Makes the placeholders of a traced function from its signature and concrete_args."""

    def __init__(
        self,
        tracer: Tracer,
        fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple | None,
    ) -> None:
        self.tracer = tracer
        self.fn = fn
        self.inner = inspect.unwrap(fn)
        if isinstance(self.inner, functools.partial) or not hasattr(self.inner, "__code__"):
            raise AssertionError(f"cannot trace {fn!r}: it is no Python function")
        self.is_module = is_module
        self.signature = inspect.signature(self.inner)
        self.annotations = getattr(self.inner, "__annotations__", {})
        self.counts: dict[str, int] = {}
        self.spread = False  # *args was replaced by a parameter for each concrete argument
        code = self.inner.__code__
        self.names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        self.has_varargs = bool(code.co_flags & inspect.CO_VARARGS)
        self.has_varkw = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.concrete: dict[str, Any] = self._named(concrete_args)

    def _named(self, concrete_args: dict[str, Any] | tuple | None) -> dict[str, Any]:
        if not isinstance(concrete_args, tuple):
            return concrete_args or {}
        names = self.names[1:] if self.is_module else self.names
        if self.has_varargs:
            # Each positional argument gets a parameter of its own in place of *args.
            first = len(names)
            names = names + [f"arg{i}" for i in range(first, len(concrete_args))]
            self.names = self.names[:1] + names if self.is_module else names
            self.has_varargs = self.has_varkw = False
            self.spread = True
        if len(names) != len(concrete_args):
            raise RuntimeError(
                f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete "
                "arguments"
            )
        return dict(zip(names, concrete_args, strict=True))

    def make(self) -> tuple[Callable[..., Any], list[Any]]:
        args: list[Any] = []
        names = list(self.names)
        if self.is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.tracer.root)
            names = names[1:]
        args += [self._placeholder(name) for name in names]
        args += self._rest()
        if all(pytree.tree_is_leaf(value) for value in self.concrete.values()):
            return self._callable(len(args)), args
        return self._flattened(args)

    def _rest(self) -> list[Any]:
        """*args and **kwargs as one proxy each."""
        code = self.inner.__code__
        rest = []
        total = code.co_argcount + code.co_kwonlyargcount
        if self.has_varargs:
            rest.append(self._placeholder("*" + code.co_varnames[total]))
            total += 1
        if self.has_varkw:
            rest.append(self._placeholder("**" + code.co_varnames[total]))
        return rest

    def _callable(self, count: int) -> Callable[..., Any]:
        """The function with `*args`, `**kwargs` and keyword-only parameters as plain positional
        ones, so that they can be given proxies."""
        code = self.inner.__code__
        if self.spread:
            return self.fn
        if not (self.has_varargs or self.has_varkw or code.co_kwonlyargcount):
            return self.fn
        flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        plain = code.replace(
            co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags
        )
        inner = self.inner
        made = types.FunctionType(
            plain, inner.__globals__, inner.__name__, inner.__defaults__, inner.__closure__
        )
        return made

    def _placeholder(self, name: str) -> Any:
        if name not in self.concrete:
            return self._proxy(name, name, self.annotations.get(name.lstrip("*"), None))
        value = self.concrete[name]

        def leaf(x: Any) -> Any:
            self.counts[name] = number = self.counts.get(name, 0) + 1
            made = self._proxy(f"{name}_{number}", name, None)  # the type is the whole value's
            if isinstance(x, PHBase):
                if x is not PH:
                    _transfer_attrs(x, made.node)
                return made
            self._specialise(name, made, x)
            return x

        return pytree.tree_map(leaf, value)

    def _proxy(self, name: str, parameter: str, kind: Any) -> Proxy:
        default: tuple = ()
        if not name.startswith("*"):
            found = self.signature.parameters.get(parameter)
            if found is not None and found.default is not inspect.Parameter.empty:
                default = (found.default,)
        return self.tracer.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def _specialise(self, name: str, made: Proxy, value: Any) -> None:
        """Checks at run time that the input has the value it was traced with."""
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.tracer.create_proxy("call_function", _assert_is_none, (made, text), {})
        elif isinstance(value, base_types) and not isinstance(value, torch.Tensor):
            torch._assert(made == value, text)
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs you "
                "specialized the function with.",
                stacklevel=2,
            )

    def _flattened(self, args: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """Nested containers: the graph takes and gives flat lists, the generated function the
        containers."""
        call = self._callable(len(args))
        root_args = args[1:] if self.is_module else args
        flat, in_spec = pytree.tree_flatten(tuple(root_args))
        graph = self.tracer.graph
        orig = list(self.inner.__code__.co_varnames[: len(args)])
        if self.spread:
            orig = list(self.names)
        graph._codegen = codegen = _PyTreeCodeGen(_PyTreeInfo(orig, in_spec, None))

        def flatten_fn(*flat_args: Any) -> Any:
            tree = pytree.tree_unflatten(list(flat_args), in_spec)
            first = (self.tracer.root,) if self.is_module else ()
            out = call(*first, *tree)
            leaves, out_spec = pytree.tree_flatten(out)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return leaves

        flatten_fn.__wrapped__ = call
        flatten_fn.__annotations__ = {}  # what the graph returns has no type of its own
        return flatten_fn, flat


@compatibility(is_backward_compatible=True)
def symbolic_trace(
    root: torch.nn.Module | Callable[..., Any],
    concrete_args: dict[str, Any] | None = None,
) -> GraphModule:
    """Traces a module or function and returns a GraphModule that does the same."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)
