"""TorchScript's names. There is no TorchScript here: script and trace answer what they were given,
which then runs as Python, and say so once. The marks (ignore, unused, export, Final, annotate) do
what they do in eager code; freezing modules, saving and loading archives raises
NotImplementedError."""

from __future__ import annotations

import builtins
import contextlib
import typing
import warnings
from collections.abc import Iterator

import torch
from torch import _later
from torch._compile import say_once as _say_once
from torch.jit import annotations  # noqa: F401

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
    """What running a script module would raise."""


class TracerWarning(Warning):
    """What tracing would warn of."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences warnings of the library's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class Attribute(typing.NamedTuple):
    """A value of a module with its type."""

    value: typing.Any
    type: typing.Any


class ScriptModule(torch.nn.Module):
    """A compiled module. torch.jit.script makes none; a class derived from it runs as Python."""


class RecursiveScriptModule(ScriptModule):
    """The kind of ScriptModule that torch.jit.script makes in PyTorch."""


TopLevelTracedModule = TracedModule = RecursiveScriptModule


def is_scripting() -> bool:
    """Whether the code is being compiled: never."""
    return False


def is_tracing() -> bool:
    """Whether the code is being traced: never."""
    return False


# ---- compiling, which gives back what came in


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Returns obj: a function, module or class, to run as Python."""
    if not callable(obj) and not builtins.isinstance(obj, (dict, list, tuple)):
        raise RuntimeError(f"torch.jit.script cannot compile an object of type {type(obj)}")
    _say_once("torch.jit.script")
    return obj


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
    """Returns func after one call with the example inputs, as tracing makes."""
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    _say_once("torch.jit.trace")
    args = () if example_inputs is None else example_inputs
    args = (args,) if builtins.isinstance(args, (torch.Tensor, dict)) else tuple(args)
    with torch.no_grad():
        func(*args, **(example_kwarg_inputs or {}))
    return func


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
    """Returns mod after one call of each method named in inputs."""
    _say_once("torch.jit.trace")
    with torch.no_grad():
        for method, args in inputs.items():
            args = args if builtins.isinstance(args, tuple) else (args,)
            getattr(mod, method)(*args)
    return mod


def script_if_tracing(fn):
    """Compiles fn when called from a trace: never."""
    return fn


_script_if_tracing = script_if_tracing  # an older name


def script_method(fn):
    """Marks a method of a ScriptModule."""
    return fn


# ---- marks


def ignore(drop=False, **kwargs):
    """Marks a method that stays Python."""
    return drop if callable(drop) else _same


def _same(fn):
    return fn


def unused(fn):
    """Marks a method that a compiled module must not call."""
    return fn


def export(fn):
    """Marks a method as an entry point."""
    return fn


def interface(obj):
    """Marks a class as an interface."""
    return obj


def _overload(func):
    return func


_overload_method = _overload


def annotate(the_type, the_value):
    """the_value; tells a compiler its type."""
    return the_value


def isinstance(obj, target_type):
    """isinstance with types such as List[int]; the contents are checked too."""
    return _matches(obj, target_type)


def _matches(obj, target):
    if builtins.isinstance(target, tuple):
        return any(_matches(obj, t) for t in target)
    origin, args = typing.get_origin(target), typing.get_args(target)
    if target is typing.Any:
        return True
    if origin is None:
        return builtins.isinstance(obj, target)
    if origin is typing.Union:
        return any(_matches(obj, t) for t in args)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(_matches(k, args[0]) and _matches(v, args[1]) for k, v in obj.items())
    if origin is tuple and Ellipsis not in args:
        return len(obj) == len(args) and all(map(_matches, obj, args))
    return all(_matches(item, args[0]) for item in obj)


@contextlib.contextmanager
def optimized_execution(should_optimize) -> Iterator[None]:
    """Switches optimisations of compiled code for a block; there are none."""
    yield


@contextlib.contextmanager
def fuser(name) -> Iterator[None]:
    """Chooses a fuser for a block; there is none."""
    yield


class strict_fusion:
    """Says that code inside must be fused; unknown to Python code."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc) -> None:
        return None


def set_fusion_strategy(strategy):
    """Returns the strategy before."""
    return []


def enable_onednn_fusion(enabled) -> None:
    """Fusions by oneDNN; there are none."""
    return None


def onednn_fusion_enabled() -> bool:
    """Whether oneDNN fuses: no."""
    return False


# ---- parallel calls


def fork(func, *args, **kwargs):
    """Calls func and returns a future that is done, as eager PyTorch does."""
    future = torch.futures.Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The result of a future."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()


_fork, _wait = fork, wait


def _flatten(value):
    """(tensors of a nested value, a description of its form)."""
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(value)
    return tuple(leaves), spec


def __getattr__(name):
    if name == "Future":
        return torch.futures.Future
    raise AttributeError(f"module 'torch.jit' has no attribute '{name}'")


globals().update(
    _later.names(
        __name__,
        "CompilationUnit ScriptFunction _get_trace_graph export_opnames freeze "
        "jit_module_from_flatbuffer load optimize_for_inference run_frozen_optimizations save "
        "save_jit_module_to_flatbuffer",
    )
)
