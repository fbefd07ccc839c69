"""torch.compile: arguments and backends. Functions are traced by torch._dynamo; backends that
generate kernels do not exist yet, and with one of those a function runs as it is, which is said
once per process."""

from __future__ import annotations

import functools
import warnings

import torch

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
# Backends that generate kernels: functions run as they are.
_LATER = ("inductor", "cudagraphs", "openxla", "tvm", "aot_ts", "ts")
_said = set()


class NotCompiledWarning(UserWarning):
    """Says that something runs as it is where a compiled form was asked for. A category of its own,
    so that a program can silence it, or turn other warnings into errors, without touching these."""


def say_once(what: str) -> None:
    """Warns, the first time, that `what` does not compile."""
    if what not in _said:
        _said.add(what)
        warnings.warn(
            f"{what} does not compile in this version: functions and modules run as they are.",
            NotCompiledWarning,
            stacklevel=3,
        )


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    disable=False,
    name=None,
):
    """Returns a function or module that does what `model` does. All arguments are checked and
    accepted; none changes what is computed."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            name=name,
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    backend = torch.compiler.get_default_backend() if backend is None else backend
    if isinstance(backend, str) and backend not in _backends():
        from torch._dynamo.exc import InvalidBackend

        raise InvalidBackend(name=backend)
    if disable:
        return model
    if backend in _LATER:
        say_once("torch.compile")
        return wrap(model)
    from torch._dynamo.eval_frame import optimize_callable

    return optimize_callable(model, backend, fullgraph, dynamic)


def _backends() -> frozenset[str]:
    from torch._dynamo import _ACCEPTED, list_backends

    return _ACCEPTED.union(list_backends(exclude_tags=()))


def wrap(model):
    """The module or function behind torch.compile's wrapper."""
    if isinstance(model, torch.nn.Module):
        from torch._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    if isinstance(model, type):
        return model

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        return model(*args, **kwargs)

    compiled._torchdynamo_orig_callable = model
    return compiled


def _disable_dynamo(fn=None, recursive=True):
    """A decorator: the compiler leaves the function alone, which without one is the function."""
    return fn if fn is not None else lambda function: function
