"""TorchScript: a typed subset of Python, compiled to graphs that an interpreter in C++ runs without
Python. script compiles functions, modules and classes; trace records the operators of one run; both
are saved in archives that PyTorch reads. This file is the surface; the compiler starts in
_compiler,
the interpreter in torch/csrc/jit."""

from __future__ import annotations

import builtins
import contextlib
import sys
import types
import typing
import warnings
from collections.abc import Iterator

import torch
from torch import _later
from torch.jit import annotations  # noqa: F401
from torch.jit._async import fork, wait

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

Final = typing.Final


class Error(RuntimeError):
    """Raised by a raise statement of scripted code."""


class TracerWarning(Warning):
    """What tracing warns of."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences warnings of the library's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class Attribute(typing.NamedTuple):
    """A value of a module with its type."""

    value: typing.Any
    type: typing.Any


def is_scripting() -> bool:
    """Whether the code is compiled: in Python, no."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being recorded."""
    from torch.jit import _trace_state

    return _trace_state.active()


# ---- compiling


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compiles a function, module or class."""
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with "
            "torch.jit.optimized_execution()` "
            "instead",
            FutureWarning,
            stacklevel=2,
        )
    from torch.jit._scope import called_from
    from torch.jit._script import script as compile_object

    with called_from(sys._getframe(1 + _frames_up)):
        return compile_object(obj)


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-05,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Records the operators that func runs with the example inputs."""
    from torch.jit._trace import trace as record

    return record(
        func,
        example_inputs,
        example_kwarg_inputs,
        check_trace,
        check_inputs,
        check_tolerance,
        strict,
    )


def trace_module(
    mod,
    inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-05,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_inputs_is_kwarg=False,
    _store_inputs=True,
):
    """Records each method named in inputs."""
    from torch.jit._trace import trace_module as record

    return record(mod, inputs, check_trace, check_inputs, check_tolerance, strict)


def script_if_tracing(fn):
    """fn as it is in Python; where a trace calls it, its scripted form is recorded."""
    import functools

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not is_tracing():
            return fn(*args, **kwargs)
        return script(fn)(*args, **kwargs)

    wrapper.__script_if_tracing__ = fn
    return wrapper


_script_if_tracing = script_if_tracing  # an older name


# ---- marks


def _mark(fn, mark: str):
    try:
        fn.__script_mark__ = mark
    except AttributeError:
        fn.__func__.__script_mark__ = mark
    return fn


def script_method(fn):
    """Marks a method of a ScriptModule that is compiled."""
    return _mark(fn, "method")


def ignore(drop=False, **kwargs):
    """Marks a function that stays Python; with drop, one that compiled code must not reach."""
    if callable(drop):
        return _mark(drop, "ignore")

    def mark(fn):
        return _mark(fn, "unused" if drop else "ignore")

    return mark


def _drop(fn):
    """Marks a function that stays Python and that an exported program does not have."""
    return _mark(fn, "unused")


def unused(fn):
    """Marks a method that a compiled module must not call."""
    if builtins.isinstance(fn, property):
        made = [None if f is None else unused(f) for f in (fn.fget, fn.fset, fn.fdel)]
        return property(*made)
    return _mark(fn, "unused")


def export(fn):
    """Marks a method as an entry point."""
    return _mark(fn, "export")


def interface(obj):
    """Makes a class of method declarations a type that any class with such methods fits."""
    from torch.jit._classes import interface_of

    is_module = issubclass(obj, torch.nn.Module)
    obj.__script_interface__ = interface_of(obj, is_module)
    return obj


def _overload(func):
    """Marks one of several declarations of a function."""
    from torch.jit._resolve import _overloads, overload_key

    _overloads.setdefault(overload_key(func), []).append(func)
    return func


_overload_method = _overload


def annotate(the_type, the_value):
    """the_value; tells the compiler its type."""
    return the_value


def _unwrap_optional(x):
    """x, which must not be None; tells the compiler so."""
    assert x is not None, "Unwrapping null optional"
    return x


def isinstance(obj, target_type):
    """isinstance with types such as List[int]; the contents are checked too."""
    return _matches(obj, target_type)


def _matches(obj, target):
    if builtins.isinstance(target, tuple):
        return any(_matches(obj, t) for t in target)
    origin, args = typing.get_origin(target), typing.get_args(target)
    if target is typing.Any:
        return True
    if not args and target in (typing.List, typing.Dict, typing.Tuple, list, dict, tuple):  # noqa: UP006
        from torch.jit._annotations import from_python

        try:
            from_python(target)
        except TypeError as e:
            raise RuntimeError(str(e)) from None
    if origin is None:
        if not builtins.isinstance(target, type):
            raise RuntimeError(f"the second argument must be a type or a tuple of types: {target}")
        return builtins.isinstance(obj, target)
    if origin is typing.Union or builtins.isinstance(target, types.UnionType):
        return any(_matches(obj, t) for t in args)
    if not builtins.isinstance(obj, origin):
        return False
    if not obj and origin in (list, dict):
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager "
            "mode. "
            "For example, List[int] would become list and therefore falsely return True for "
            "List[float] or List[str].",
            stacklevel=3,
        )
    if origin is dict:
        return all(_matches(k, args[0]) and _matches(v, args[1]) for k, v in obj.items())
    if origin is tuple and Ellipsis not in args:
        return len(obj) == len(args) and all(map(_matches, obj, args))
    return all(_matches(item, args[0]) for item in obj)


@contextlib.contextmanager
def optimized_execution(should_optimize) -> Iterator[None]:
    """Switches optimisations of compiled code for a block; the interpreter has one mode."""
    yield


@contextlib.contextmanager
def _hide_source_ranges() -> Iterator[None]:
    """Prints graphs without the places of their nodes."""
    from torch.jit._print_graph import _Shown

    before, _Shown.places = _Shown.places, False
    try:
        yield
    finally:
        _Shown.places = before


def _unique_state_dict(module, keep_vars=False) -> dict[str, typing.Any]:
    """The state of a module with every tensor once, under the first of its names."""
    seen: set[int] = set()
    out = {}
    for name, value in module.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            out[name] = value if keep_vars else value.detach()
    return out


@contextlib.contextmanager
def fuser(name) -> Iterator[None]:
    """Chooses a fuser for a block; the interpreter calls operators one by one."""
    yield


class strict_fusion:
    """Says that code inside must be fused."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc) -> None:
        return None


_fusion_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy):
    """Returns the strategy before."""
    global _fusion_strategy
    before, _fusion_strategy = _fusion_strategy, strategy
    return before


_onednn_fusion = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Asks for fusions by oneDNN. The setting can be read back; nothing is fused by oneDNN here,
    so that it changes no result."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What enable_onednn_fusion was told last."""
    return _onednn_fusion


_fork, _wait = fork, wait


def _awaitable(func, *args, **kwargs):
    """A call of func that is made when its result is needed."""
    from torch._awaits import _Await

    if not kwargs:
        return _Await(func, args)
    return _Await(lambda *given: func(*given, **kwargs), args)


def _awaitable_nowait(value):
    """A result in the form of a call that was already made."""
    from torch._awaits import _Await

    return _Await(None, (value,), (value,))


def _awaitable_wait(aw):
    """The result of a call that is made when its result is needed."""
    return aw.wait()


def save(m, f, _extra_files=None) -> None:
    """Writes an archive of a scripted module or function."""
    from torch.jit._serialization import save as write

    write(m, f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Reads an archive of torch.jit.save."""
    from torch.jit._serialization import load as read

    return read(f, map_location, _extra_files)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of an evaluated module whose parameters and attributes are constants of its graph."""
    from torch.jit._freeze import freeze as fix

    return fix(mod, preserved_attrs)


def optimize_for_inference(mod, other_methods=None):
    """A frozen copy of the module."""
    from torch.jit._freeze import freeze as fix

    if builtins.isinstance(mod, torch.nn.Module) and mod.training:
        mod = mod.eval()
    return fix(mod, other_methods) if not getattr(mod, "_frozen", False) else mod


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None) -> None:
    """Optimisations of a frozen module; freeze has made them."""
    return None


def export_opnames(m) -> list[str]:
    """The operators that a scripted module calls, sorted."""
    names: set[str] = set()
    for module in m.modules():
        for function in module._script_type.methods.values():
            for node in function.graph.all_nodes():
                schema = node.schema_of
                if schema is not None and node.kind_name.startswith("aten::"):
                    dot = "." if schema.overload_name else ""
                    names.add(f"{schema.name}{dot}{schema.overload_name}")
    return sorted(names)


def last_executed_optimized_graph():
    """The graph of the scripted function that was called last, with calls inlined."""
    return torch._C._last_executed_optimized_graph()


def _flatten(value):
    """(tensors of a nested value, a description of its form)."""
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(value)
    return tuple(leaves), spec


_LATE = {
    "_modules": "ScriptModule RecursiveScriptModule ScriptMethod",
    "_function": "ScriptFunction",
    "_script": "CompilationUnit",
    "_trace": "TracingCheckError TopLevelTracedModule TracedModule _get_trace_graph is_traced",
    "_script_class": "RecursiveScriptClass",
}
_MODULES = {name: module for module, names in _LATE.items() for name in names.split()}


def __getattr__(name):
    if name == "Future":
        return torch.futures.Future
    if name == "_Await":
        from torch._awaits import _Await

        return _Await
    if name in _MODULES:
        import importlib

        found = getattr(importlib.import_module(f"torch.jit.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'torch.jit' has no attribute '{name}'")


globals().update(_later.names(__name__, "jit_module_from_flatbuffer save_jit_module_to_flatbuffer"))
