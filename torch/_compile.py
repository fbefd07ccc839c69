"""torch.compile: arguments and backends. torch._dynamo traces functions and modules; a backend
that generates kernels does not exist yet, and under the name of one a function runs as it is,
which is said once per process."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable

import torch

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
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
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = None,
    mode: str | None = None,
    options: dict[str, object] | None = None,
    disable: bool = False,
    name: str | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
) -> Callable:
    """Returns a function or module that does what `model` does: its operators are captured as
    graphs, which `backend` compiles. With `isolate_recompiles` what this call compiles is neither
    used by others nor counts towards their limits."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
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
            recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles,
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    from torch._dynamo.backends import registry

    backend = torch.compiler.get_default_backend() if backend is None else backend
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if isinstance(backend, str) and not registry.is_known(backend):
        from torch._dynamo.exc import InvalidBackend

        raise InvalidBackend(name=backend)
    if disable:
        return model
    if registry.is_absent(backend):
        say_once("torch.compile")
        return wrap(model)
    options, guard_filter = _without_filter(options)
    bound = _with_options(backend, mode, options)
    if isolate_recompiles:
        # Compiled forms belong to the object that is their backend.
        bound = functools.partial(registry.lookup_backend(bound))
    made = torch._dynamo.optimize(
        bound,
        guard_filter_fn=guard_filter,
        nopython=fullgraph,
        dynamic=dynamic,
        recompile_limit=recompile_limit,
    )(model)
    _note_config(made, backend, mode, options)
    return made


def _without_filter(
    options: dict[str, object] | None,
) -> tuple[dict[str, object] | None, Callable | None]:
    """Options for the backend, and what chooses among guards, which is no affair of it."""
    if options is None or "guard_filter_fn" not in options:
        return options, None
    rest = {name: value for name, value in options.items() if name != "guard_filter_fn"}
    return rest or None, options["guard_filter_fn"]


@functools.lru_cache(64)
def _bound(backend: Callable, options: tuple[tuple[str, object], ...]) -> Callable:
    return functools.partial(backend, options=dict(options))


def _with_options(
    backend: str | Callable, mode: str | None, options: dict[str, object] | None
) -> str | Callable:
    """A backend given as a function, and ours, get what was named; the same for the same options,
    so that what was compiled for them is found again."""
    if options is None and (mode is None or (backend == "inductor" and mode == "default")):
        return backend
    if backend == "inductor":
        options = _checked_options(options) if options is not None else {"mode": mode}
        backend = torch._dynamo.lookup_backend(backend)
    elif isinstance(backend, str):
        return backend
    elif options is None:
        return functools.partial(backend, mode=mode)
    try:
        return _bound(backend, tuple(sorted(options.items())))
    except TypeError:
        return functools.partial(backend, options=options)


def _checked_options(options: dict[str, object]) -> dict[str, object]:
    """Settings of the compiler under their real names; unknown names and other types are errors."""
    from torch._inductor import config, settings

    known = config.get_config_copy()
    found: dict[str, object] = {}
    for given, value in options.items():
        name = given.replace("-", "_")
        if name not in known:
            raise RuntimeError(
                f"Unexpected optimization option {given}, known options are {list(known)}"
            )
        usual = known[name]
        if usual is not None and type(usual) in (bool, int, str) and type(value) is not type(usual):
            raise RuntimeError(
                f"Unexpected type of attr {given}, got {type(value).__name__} should be "
                f"{type(usual).__name__}"
            )
        found[name] = value
    settings.tell(found)
    return found


def _note_config(
    made: Callable, backend: str | Callable, mode: str | None, options: dict | None
) -> None:
    """What was compiled says with which settings: made.get_compiler_config()."""

    def get_compiler_config() -> dict[str, object] | None:
        if backend != "inductor":
            return None
        from torch._inductor import config, list_mode_options

        changed = _checked_options(options or {}) if mode is None else list_mode_options(mode)
        return {**config.get_config_copy(), **changed}

    with contextlib.suppress(AttributeError, TypeError):
        made.__dict__["get_compiler_config"] = get_compiler_config


def wrap(model: Callable) -> Callable:
    """The module or function behind torch.compile's wrapper, run as it is."""
    if isinstance(model, torch.nn.Module):
        from torch._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    if isinstance(model, type):
        return model

    @functools.wraps(model)
    def compiled(*args: object, **kwargs: object) -> object:
        return model(*args, **kwargs)

    compiled._torchdynamo_orig_callable = model
    return compiled


def _disable_dynamo(fn: Callable | None = None, recursive: bool = True) -> Callable:
    """A decorator: the compiler leaves the function alone."""
    if fn is None:
        return functools.partial(_disable_dynamo, recursive=recursive)
    fn._torchdynamo_disable = True
    return fn
