"""What a trace does with each callable, in one registry: run its bytecode, call it in the graph,
call it at once on constants, refuse it, or ask a handler. A rule for one function is one entry
here or one decorator; the tables that other code names are views of this one."""

from __future__ import annotations

import builtins
import functools
import logging
import math
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Hashable
from typing import NoReturn

import torch
from torch._dynamo import config
from torch._dynamo.exc import unimplemented

INLINE = "inline"  # run its bytecode
GRAPH = "graph"  # a node of the graph
CONSTANT = "constant"  # called on constants while tracing
NONSTRICT = "nonstrict"  # a node that takes trees apart: their leaves are its arguments
MARKED = "marked"  # called on real values while tracing; its result is a constant of the trace
IGNORE = "ignore"  # is not called at all
LATER = "later"  # is called after the graph
SKIP = "skip"  # breaks the graph
STATE = "state"  # a question about the tracing state, whose value is a constant of the trace
FORBID = "forbid"  # an error

# Rules by function. A function as value is a handler(tx, args, kwargs) that the trace calls.
_RULES: dict[object, object] = {}
_REASONS: dict[object, str] = {}
# Rules by the name of a function, whose module a program may never import.
_PENDING: dict[str, object] = {}
# Functions that return a number or the like and are called for what they change besides.
_EFFECTS: set[object] = set()

_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = os.sep + "site-packages" + os.sep
_TORCH = os.path.dirname(torch.__file__) + os.sep
# Modules of the standard library whose functions act on the process and are not traced.
_SKIPPED_STDLIB = frozenset(
    """asyncio concurrent ctypes importlib io linecache logging multiprocessing os pickle
    pdb posixpath queue random selectors shutil signal socket subprocess sys tempfile threading
    time tokenize traceback typing unittest warnings weakref zipfile re json pprint ast dis
    _weakrefset platform getpass genericpath bdb cmd code codeop""".split()
)
# What of `os` is traced all the same: reading the variables of the environment.
_ENVIRONMENT = frozenset(
    """getenv _Environ.__getitem__ _Environ.__len__ _createenviron.<locals>.encode
    _createenviron.<locals>.decode""".split()
)
# Parts of torch whose Python functions are calls in the graph.
_GRAPH_MODULES = frozenset(
    """torch torch.functional torch.nn.functional torch.special torch.fft torch.linalg torch._VF
    torch._C torch._C._nn torch._C._fft torch._C._linalg torch._C._special torch._C._sparse
    torch._C._nested torch.nested torch.sparse torch._tensor torch._C._VariableFunctions
    torch.signal.windows.windows torch.nn.init torch.amp.autocast_mode_ torch._C_functions
    torch._lobpcg torch._linalg_utils torch._lowrank""".split()
)
_SKIPPED_TORCH = (
    "torch._dynamo",
    "torch._inductor",
    "torch.fx",
    "torch._guards",
    "torch._logging",
    "torch.testing",
    "torch.utils.data",
    "torch.multiprocessing",
    "torch.serialization",
    "torch.profiler",
    "torch.jit",
    "torch.hub",
    "torch.package",
    "torch.onnx",
    "torch._subclasses",
    "torch.library",
    "torch._library",
    "torch.cuda.",
    "torch.export",
    "torch._export",
    "torch._decomp",
    "torch._functorch.aot_autograd",
    "torch.overrides",
    "torch.distributed",
    "torch.random",
    "torch._ops",
    "torch._tensor_str",
)
_INLINED_TORCH = frozenset(
    {
        "torch._dynamo.polyfills",
        "torch.utils._pytree",
        "torch.fx._pytree",
        "torch._dynamo._trace_wrapped_higher_order_op",
        "torch.distributed._composable",
        "torch.distributed.tensor",
        "torch._dynamo.test_fixtures",
        "torch.onnx.operators",
    }
)


def register(fn: object, rule: object, reason: str | None = None) -> None:
    """Gives a callable a rule of its own."""
    _RULES[_key(fn)] = rule
    if reason is not None:
        _REASONS[_key(fn)] = reason


def register_name(name: str, rule: object) -> None:
    """Gives a function a rule of its own once its module is imported."""
    _PENDING[name] = rule


def _settle_names() -> bool:
    """Whether functions of modules that were imported since have got their rules."""
    ready = [name for name in _PENDING if name.rpartition(".")[0] in sys.modules]
    for name in ready:
        module, _, function = name.rpartition(".")
        fn = getattr(sys.modules[module], function)
        register(fn, _PENDING.pop(name))
    return bool(ready)


def handler(*fns: object) -> Callable[[Callable], Callable]:
    """A decorator: the function says what a call of each of these does."""

    def mark(rule: Callable) -> Callable:
        for fn in fns:
            register(fn, rule)
        return rule

    return mark


def effect(*fns: object) -> None:
    """Calls of these stay in the graph, although what they return is known while tracing."""
    _EFFECTS.update(fns)


def has_effect(target: object, result: object) -> bool:
    """Whether a call stays in the graph although it computes no value of the graph. One that
    returns nothing is made for what it changes; an operator may change what its schema does not
    say."""
    if result is None or target in _EFFECTS:
        return True
    return isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator)


def _key(fn: object) -> object:
    try:
        hash(fn)
    except TypeError:
        return id(fn)
    return fn


def explicit(fn: object) -> object | None:
    """The rule that was given to this very callable."""
    try:
        found = _RULES.get(fn)
    except TypeError:
        return _RULES.get(id(fn))
    if found is None and _PENDING and _settle_names():
        return _RULES.get(fn)
    return found


def _of_settings(fn: object) -> str | None:
    """The rule that settings name for functions that only tell the world something."""
    for names, rule in (
        (config.ignore_logging_functions, IGNORE),
        (config.ignore_logger_methods, IGNORE),
        (config.reorderable_logging_functions, LATER),
    ):
        if names and isinstance(fn, Hashable) and fn in names:
            return rule
    return None


def logger_rule(method: object, logger: logging.Logger, exporting: bool) -> str:
    """The rule for a method of a logger: an exported program writes no messages."""
    bound = getattr(logger, getattr(method, "__name__", ""), None)
    return IGNORE if exporting else _of_settings(bound) or SKIP


def lookup(fn: object) -> object:
    """The rule of a callable."""
    named = _of_settings(fn)
    if named is not None:
        return named
    found = explicit(fn)
    if found is not None:
        return found
    if isinstance(fn, types.FunctionType):
        mark = fn.__dict__.get("_torchdynamo_rule") if fn.__dict__ else None
        if mark is not None:
            return mark
        if getattr(fn, "_torchdynamo_disable", False):
            return SKIP
        if getattr(fn, "_dynamo_marked_constant", False):
            return MARKED
        if fn.__module__ == "os" and fn.__qualname__ in _ENVIRONMENT:
            return INLINE
        return _by_module(fn.__module__ or "", fn.__code__.co_filename, fn)
    return _builtin_rule(fn)


@functools.cache
def _module_rule(module: str, filename: str) -> str:
    if filename.startswith("<frozen "):
        # Methods that classes of programs inherit from Sequence, Mapping and their kin.
        return INLINE if module == "collections.abc" else SKIP
    if module == "torch" or module.startswith("torch."):
        if not filename.startswith(_TORCH):
            return INLINE
        if module in _GRAPH_MODULES:
            return GRAPH
        if any(module == m or module.startswith(m + ".") for m in _INLINED_TORCH):
            return INLINE
        for prefix in _SKIPPED_TORCH:
            if module == prefix.rstrip(".") or module.startswith(prefix.rstrip(".") + "."):
                return SKIP
        return INLINE
    if filename.startswith(_STDLIB) and _SITE not in filename:
        return SKIP if module.split(".")[0] in _SKIPPED_STDLIB else INLINE
    if module == "numpy" or module.startswith("numpy."):
        return SKIP
    return INLINE


def _by_module(module: str, filename: str, fn: types.FunctionType) -> str:
    return _module_rule(module, filename)


def is_graph_module(module: str | None) -> bool:
    """Whether C functions of a module are calls in the graph."""
    return module is not None and (module in _GRAPH_MODULES or module.startswith("torch._C."))


_PURE_MODULES = frozenset({"math", "_operator", "operator", "cmath", "binascii", "_struct"})
# Functions of these modules that change what they are given. A second copy of a module, which has
# functions of its own, knows none of the rules for them.
_CHANGING = frozenset(
    """setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub
    itruediv ixor pack_into""".split()
)


def _builtin_rule(fn: object) -> str:
    module = getattr(fn, "__module__", None)
    if module in _PURE_MODULES:
        return SKIP if getattr(fn, "__name__", "") in _CHANGING else CONSTANT
    if is_graph_module(module):
        return GRAPH
    if isinstance(
        fn, torch._ops.OpOverload | torch._ops.OpOverloadPacket | torch._C._ScriptFunctionBase
    ):
        return GRAPH
    owner = getattr(fn, "__self__", None)
    if (
        module is None
        and owner is not None
        and isinstance(owner, type)
        and issubclass(owner, torch.Tensor | torch.autograd.Function)
    ):
        return GRAPH
    return SKIP


def refuse(fn: object, reason: str | None = None) -> NoReturn:
    """Breaks the graph at a call of a function that is not traced."""
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__qualname__", None) or repr(fn)
    reason = reason or _REASONS.get(_key(fn)) or getattr(fn, "_torchdynamo_disable_msg", None)
    if getattr(fn, "_torchdynamo_disable", False):
        unimplemented(
            "Skip calling `torch.compiler.disable()`d function",
            str(fn),
            f"Skip calling function `{fn}` since it was wrapped with `torch.compiler.disable` "
            f"(reason: {reason})",
            ("Remove the `torch.compiler.disable` call",),
        )
    unimplemented(
        "Attempted to call function marked as skipped",
        f"module: {module}, qualname: {name}, skip reason: {reason}",
        f"Dynamo does not know how to trace the function `{name}`"
        + (f" of the module `{module}`" if module else ""),
        (
            "If the function is free of side effects, `torch.compiler.allow_in_graph` makes it a "
            "call in the graph.",
        ),
    )


def _as_posix_path(path: str) -> str:
    """A path with forward slashes, as messages show it."""
    return path.replace(os.sep, "/")


def is_library_file(filename: str) -> bool:
    """Whether a file belongs to torch or to the standard library: its globals are not guarded."""
    if filename.startswith(_TORCH):
        return True
    return filename.startswith(_STDLIB) and _SITE not in filename


def should_skip_code(code: types.CodeType, fn_globals: dict[str, object]) -> bool:
    """Whether a frame of this code is run as it is when it is called by itself."""
    filename = code.co_filename
    if code.co_name in ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"):
        return True
    module = str(fn_globals.get("__name__", ""))
    if filename.startswith("<frozen"):
        return True
    if filename.startswith(_TORCH):
        return _module_rule(module, filename) != INLINE or not _user_facing(module)
    if filename.startswith(_STDLIB) and _SITE not in filename:
        return True
    return module == "numpy" or module.startswith("numpy.")


def _user_facing(module: str) -> bool:
    return module.startswith(("torch.nn.modules", "torch.optim", "torch.distributions"))


# ---- rules of the standard library and of torch

for _fn in (
    *(abs, ascii, bin, chr, divmod, format, hex, oct, ord, pow, repr, round, sum, min, max),
    *(sys.intern, sys.getsizeof),
    *(typing.get_origin, typing.get_args, typing.is_typeddict),
):
    register(_fn, CONSTANT)
for _fn in vars(math).values():
    if callable(_fn):
        register(_fn, CONSTANT)
for _fn in vars(operator).values():
    if isinstance(_fn, types.BuiltinFunctionType):
        register(_fn, CONSTANT)
del _fn
for _fn in (torch.get_default_dtype, torch.promote_types, torch.can_cast):
    register(_fn, CONSTANT)
del _fn
register(builtins.print, SKIP, "prints")
register(builtins.input, SKIP, "reads the terminal")
register(builtins.open, SKIP, "opens a file")
register(builtins.breakpoint, SKIP, "stops in the debugger")
register(builtins.compile, SKIP, "compiles code at run time")
register(sys.getrecursionlimit, SKIP, "a trace has a limit of its own")
register(sys.getrefcount, SKIP, "a trace refers to values too")
for _forced in (torch.manual_seed, torch.random.fork_rng, torch.compile):
    register(_forced, SKIP)
del _forced
register_name("torch.serialization.save", SKIP)
register_name("torch.serialization.load", SKIP)


def tracing_state_functions() -> dict[object, bool | None]:
    """Functions whose value the trace knows."""
    return {
        torch.compiler.is_compiling: True,
        torch.compiler.is_dynamo_compiling: True,
        torch.compiler.is_exporting: torch.compiler._is_exporting_flag,
        torch.jit.is_scripting: False,
        torch.jit.is_tracing: False,
        torch._C._get_tracing_state: None,
        torch._dynamo.is_compiling: True,
        torch._dynamo.external_utils.is_compiling
        if hasattr(torch._dynamo, "external_utils")
        else torch.compiler.is_compiling: True,
    }
