"""Failures between Dynamo and a backend (TORCHDYNAMO_REPRO_AFTER=dynamo): the captured graph is
written as a program of its own, which runs it with that backend and can make it smaller."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo import config
from torch._dynamo.backends.registry import _COMPILER_FNS, lookup_backend
from torch._dynamo.debug_utils import (
    backend_accuracy_fails,
    helper_for_dump_minify,
    minifier_dir,
    run_fwd_maybe_bwd,
    same_two_models,
)
from torch._dynamo.repro import _program
from torch._dynamo.utils import clone_inputs, counters

__all__ = ["backend_fails", "run_repro", "wrap_backend_debug"]

log = logging.getLogger(__name__)
_DESCRIPTION = "Runs or reduces a captured graph that a backend of torch.compile fails on."


def _name_of(backend: Callable) -> str:
    for name, function in _COMPILER_FNS.items():
        if function is backend:
            return name
    return getattr(backend, "__name__", str(backend))


def wrap_backend_debug(
    unconfigured_compiler_fn: Callable, compiler_name: str | None = None
) -> Callable:
    """The backend; a graph it fails on leaves a launcher. config.repro_level: 1 writes the graph, 2
    a launcher that reduces it, 3 a launcher before anything runs, 4 also compares results."""

    @functools.wraps(unconfigured_compiler_fn)
    def debug_wrapper(gm: fx.GraphModule, example_inputs: list, **kwargs: object) -> Callable:
        compiler_fn = functools.partial(unconfigured_compiler_fn, **kwargs)
        if config.repro_after not in ("dynamo", "aot", None):
            raise AssertionError(
                f"config.repro_after must be 'dynamo', 'aot' or None, got {config.repro_after!r}"
            )
        if config.repro_after != "dynamo":
            return compiler_fn(gm, example_inputs)
        name = compiler_name or _name_of(unconfigured_compiler_fn)
        original = copy.deepcopy(gm)
        if config.repro_level == 3:
            dump_to_minify_after_dynamo(original, example_inputs, name)
        try:
            compiled = compiler_fn(gm, example_inputs)
        except Exception as error:
            _dump(original, example_inputs, name, error)
            raise
        return _checked(original, compiled, name)

    if hasattr(unconfigured_compiler_fn, "get_compiler_config"):
        debug_wrapper.get_compiler_config = unconfigured_compiler_fn.get_compiler_config
    return debug_wrapper


def _dump(gm: fx.GraphModule, inputs: Sequence[object], name: str, error: Exception) -> None:
    if config.repro_level == 1:
        dump_backend_state(gm, inputs, name)
    elif config.repro_level != 3:
        dump_to_minify_after_dynamo(gm, inputs, name, check_str=type(error).__name__)
    error.minifier_path = minifier_dir()


def _checked(original: fx.GraphModule, compiled: Callable, name: str) -> Callable:
    """What the backend made, watched at its first run."""
    done = False

    def run(*args: object) -> object:
        nonlocal done
        if done:
            return compiled(*args)
        done = True
        given = clone_inputs(args)
        if config.repro_level == 4:
            counters["repro"]["accuracy_checks"] += 1
            reference = copy.deepcopy(original)
            forward = config.repro_forward_only
            if not same_two_models(reference, compiled, clone_inputs(given), forward):
                log.warning("Accuracy failed for the TorchDynamo produced graph.")
                dump_to_minify_after_dynamo(original, given, name, accuracy=True)
                error = _program.bad_accuracy()
                error.minifier_path = minifier_dir()
                raise error
        try:
            return compiled(*args)
        except Exception as error:
            _dump(original, given, name, error)
            raise

    return run


def generate_dynamo_fx_repro_string(
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str | None,
    check_accuracy: bool = False,
    *,
    stable_output: bool = False,
    save_dir: str | None = None,
    command: str = "run",
    check_str: str | None = None,
) -> str:
    """The program of a captured graph."""
    options: dict[str, object] = {
        "accuracy": "accuracy" if check_accuracy is True else (check_accuracy or False),
        "command": command,
        "save_dir": save_dir,
        "autocast": torch.is_autocast_enabled(),
        "backend": compiler_name,
    }
    if check_str is not None:
        options["check_str"] = check_str
    return _program.write_program(
        gm, args, __name__, options, save_dir=save_dir, stable_output=stable_output
    )


def dump_backend_state(
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str | None,
    check_accuracy: bool = False,
) -> None:
    """Leaves repro.py of a graph as it is."""
    _program._leave(
        generate_dynamo_fx_repro_string(
            gm, args, compiler_name, check_accuracy, save_dir=_save_dir()
        )
    )


def _save_dir() -> str:
    import os

    return os.path.join(minifier_dir(), "checkpoints")


def dump_to_minify_after_dynamo(
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str | None,
    *,
    accuracy: bool = False,
    check_str: str | None = None,
) -> None:
    """Leaves a launcher that reduces the graph."""
    helper_for_dump_minify(
        generate_dynamo_fx_repro_string(
            gm,
            args,
            compiler_name,
            accuracy,
            save_dir=_save_dir(),
            command="minify",
            check_str=check_str,
        )
    )


# ---- programs -------------------------------------------------------------------------------


def backend_fails(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    compiler_fn: Callable,
    orig_failure: Sequence[object] | str | None = None,
) -> bool:
    """Whether a backend fails on a graph, while compiling or running it."""
    wanted = None if orig_failure is None else str(orig_failure)
    try:
        run_fwd_maybe_bwd(copy.deepcopy(gm), clone_inputs(example_inputs))
    except Exception:
        return False  # the graph itself does not run
    try:
        compiled = compiler_fn(copy.deepcopy(gm), clone_inputs(example_inputs))
        run_fwd_maybe_bwd(compiled, clone_inputs(example_inputs))
    except Exception as error:
        return _program.same_failure(error, wanted)
    return False


def run_repro(
    mod: torch.nn.Module,
    load_args: Callable | Sequence[object],
    *,
    command: str = "run",
    accuracy: bool | str = "",
    save_dir: str | None = None,
    autocast: bool = False,
    backend: str = "inductor",
    patch_code: str | None = None,
    check_str: str | None = None,
    **unused: object,
) -> None:
    """The main function of a written program."""
    defaults = {
        "accuracy": "accuracy" if accuracy is True else accuracy,
        "save_dir": save_dir,
        "autocast": autocast,
        "backend": backend,
        "check_str": check_str,
    }
    options = _program.parse(_program.arguments(defaults, _DESCRIPTION), command)
    inputs = _program.load_inputs(load_args, options.save_dir)
    compiler_fn = lookup_backend(options.backend)
    gm = _traced(mod, inputs)
    with torch.amp.autocast("cuda", enabled=options.autocast):
        if options.command == "minify":
            _minify(gm, inputs, compiler_fn, options)
        else:
            _run(gm, inputs, compiler_fn, options)


def _traced(mod: torch.nn.Module, inputs: Sequence[object]) -> fx.GraphModule:
    return mod if isinstance(mod, fx.GraphModule) else fx.symbolic_trace(mod)


def _run(
    gm: fx.GraphModule, inputs: Sequence[object], compiler_fn: Callable, options: object
) -> None:
    if options.accuracy:
        if backend_accuracy_fails(
            gm,
            inputs,
            compiler_fn,
            options.only_fwd,
            ignore_non_fp=options.accuracy != "strict_accuracy",
        ):
            raise _program.bad_accuracy()
        return
    compiled = compiler_fn(copy.deepcopy(gm), clone_inputs(inputs))
    run_fwd_maybe_bwd(compiled, inputs, options.only_fwd)


def _minify(
    gm: fx.GraphModule, inputs: Sequence[object], compiler_fn: Callable, options: object
) -> None:
    if options.accuracy:
        check = functools.partial(
            backend_accuracy_fails,
            compiler_fn=compiler_fn,
            only_fwd=options.only_fwd,
            require_fp64=options.accuracy != "strict_accuracy",
            ignore_non_fp=options.accuracy != "strict_accuracy",
        )
    else:
        check = functools.partial(
            backend_fails, compiler_fn=compiler_fn, orig_failure=options.check_str
        )

    def write(found: fx.GraphModule, given: Sequence[object], save_dir: str | None) -> str:
        return generate_dynamo_fx_repro_string(
            found, given, options.backend, options.accuracy or False, save_dir=save_dir
        )

    _program.reduce_graph(gm, inputs, check, write, options)
