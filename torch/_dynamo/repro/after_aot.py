"""Failures of the compiler of traced graphs (TORCHDYNAMO_REPRO_AFTER=aot): the graph of operators
is written as a program of its own, which compiles it and can make it smaller."""

from __future__ import annotations

import copy
import functools
import io
import logging
import os
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo import config
from torch._dynamo.debug_utils import (
    helper_for_dump_minify,
    minifier_dir,
    run_fwd_maybe_bwd,
    same_two_models,
)
from torch._dynamo.repro import _program
from torch._dynamo.utils import clone_inputs

__all__ = [
    "dump_compiler_graph_state",
    "dump_to_minify",
    "generate_compiler_repro_string",
    "inductor_accuracy_fails",
    "inductor_fails",
    "repro_common",
    "run_repro",
    "save_graph_repro",
    "wrap_compiler_debug",
]

log = logging.getLogger(__name__)
_DESCRIPTION = "Runs or reduces a graph of operators that the compiler fails on."
# The tools compile graphs themselves: those must leave no launchers.
_quiet = False


def wrap_compiler_debug(unconfigured_compiler_fn: Callable, compiler_name: str) -> Callable:
    """The compiler of a graph of operators; a graph it fails on leaves a launcher, by
    config.repro_level as after Dynamo."""

    @functools.wraps(unconfigured_compiler_fn)
    def debug_wrapper(gm: fx.GraphModule, example_inputs: Sequence[object], **kwargs) -> Callable:
        if _quiet or config.repro_after != "aot":
            return unconfigured_compiler_fn(gm, example_inputs, **kwargs)
        original = copy.deepcopy(gm)
        if config.repro_level == 3:
            dump_to_minify(original, example_inputs, compiler_name)
        try:
            compiled = unconfigured_compiler_fn(gm, example_inputs, **kwargs)
        except Exception as error:
            _dump(original, example_inputs, compiler_name, error)
            raise
        return _checked(original, compiled, compiler_name)

    return debug_wrapper


def _dump(gm: fx.GraphModule, inputs: Sequence[object], name: str, error: Exception) -> None:
    if config.repro_level == 1:
        dump_compiler_graph_state(gm, inputs, name)
    elif config.repro_level != 3:
        dump_to_minify(gm, inputs, name, check_str=type(error).__name__)
    log.error("CompilerError")
    error.minifier_path = minifier_dir()


def _checked(original: fx.GraphModule, compiled: Callable, name: str) -> Callable:
    done = False

    def run(args: list[object]) -> Sequence[object]:
        nonlocal done
        if done:
            return _call(compiled, args)
        done = True
        given = clone_inputs(args)
        if config.repro_level == 3:
            dump_to_minify(original, given, name, isolate=True)
        if config.repro_level == 4 and not _same(original, compiled, given):
            log.warning(
                "Accuracy failed for the AOT Autograd graph; writing a launcher that reduces it"
            )
            dump_to_minify(original, given, name, accuracy="accuracy")
            error = _program.bad_accuracy()
            error.minifier_path = minifier_dir()
            raise error
        try:
            return _call(compiled, args)
        except Exception as error:
            _dump(original, given, name, error)
            raise

    run._boxed_call = True
    return run


def _call(compiled: Callable, args: Sequence[object]) -> Sequence[object]:
    return compiled(list(args)) if getattr(compiled, "_boxed_call", False) else compiled(*args)


def _same(original: fx.GraphModule, compiled: Callable, given: Sequence[object]) -> bool:
    with torch.no_grad():
        return same_two_models(
            copy.deepcopy(original), compiled, given, only_fwd=True, ignore_non_fp=False
        )


# ---- texts ----------------------------------------------------------------------------------


def save_graph_repro(
    fd: io.TextIOBase,
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str,
    *,
    stable_output: bool = False,
    save_dir: str | None = None,
    command: str = "run",
    accuracy: str | bool | None = None,
    tracing_mode: str | None = None,
    check_str: str | None = None,
    isolate: bool = False,
    stable_hash: bool = False,
) -> None:
    """Writes the program of a graph into a file."""
    options: dict[str, object] = {
        "accuracy": accuracy or "",
        "command": command,
        "save_dir": save_dir,
        "tracing_mode": tracing_mode or "real",
        "check_str": check_str,
    }
    if isolate:
        options["isolate"] = True
    fd.write(
        _program.write_program(
            gm, args, __name__, options, save_dir=save_dir, stable_output=stable_output
        )
    )


def generate_compiler_repro_string(
    gm: fx.GraphModule,
    args: Sequence[object],
    *,
    stable_output: bool = False,
    save_dir: str | None = None,
    stable_hash: bool = False,
    has_distributed_ops: bool = False,
) -> str:
    """The part of the program that makes the graph and its inputs."""
    file = io.StringIO()
    save_graph_repro(file, gm, args, "inductor", stable_output=stable_output, save_dir=save_dir)
    return file.getvalue().partition("\nif __name__ ==")[0]


def _save_dir() -> str:
    return os.path.join(minifier_dir(), "checkpoints")


def dump_compiler_graph_state(
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str,
    *,
    accuracy: str | bool | None = None,
) -> None:
    """Leaves repro.py of a graph as it is."""
    file = io.StringIO()
    save_graph_repro(file, gm, args, compiler_name, save_dir=_save_dir(), accuracy=accuracy)
    _program._leave(file.getvalue())


def dump_to_minify(
    gm: fx.GraphModule,
    args: Sequence[object],
    compiler_name: str,
    *,
    accuracy: str | bool | None = None,
    check_str: str | None = None,
    isolate: bool = False,
) -> None:
    """Leaves a launcher that reduces the graph."""
    file = io.StringIO()
    save_graph_repro(
        file,
        gm,
        args,
        compiler_name,
        save_dir=_save_dir(),
        command="minify",
        accuracy=accuracy,
        check_str=check_str,
        isolate=isolate,
    )
    helper_for_dump_minify(file.getvalue())


# ---- checks ---------------------------------------------------------------------------------


def _compiled(gm: fx.GraphModule, inputs: Sequence[object]) -> Callable:
    global _quiet
    from torch._inductor.compile_fx import compile_fx_inner

    before, _quiet = _quiet, True
    try:
        return compile_fx_inner(copy.deepcopy(gm), list(inputs))
    finally:
        _quiet = before


def inductor_fails(
    fx_g: fx.GraphModule, args: Sequence[object], check_str: str | None = None
) -> bool:
    """Whether the compiler fails on a graph, while compiling or running it."""
    outputs = fx_g.graph.output_node().args[0]
    if not isinstance(outputs, (list, tuple)) or not any(isinstance(o, fx.Node) for o in outputs):
        return False
    try:
        with torch.no_grad():
            run_fwd_maybe_bwd(fx_g, clone_inputs(args), only_fwd=True)
    except Exception:
        return False  # the graph itself does not run
    try:
        with torch.no_grad():
            run_fwd_maybe_bwd(_compiled(fx_g, args), clone_inputs(args), only_fwd=True)
    except Exception as error:
        return _program.same_failure(error, check_str)
    return False


def inductor_accuracy_fails(
    fx_g: fx.GraphModule,
    args: Sequence[object],
    check_str: str | None = None,
    *,
    require_fp64: bool = False,
    ignore_non_fp: bool = False,
) -> bool:
    """Whether compiled code computes something else than the graph."""
    from torch._dynamo.debug_utils import backend_accuracy_fails

    with torch.no_grad():
        return backend_accuracy_fails(
            fx_g,
            args,
            _compiled,
            only_fwd=True,
            require_fp64=require_fp64,
            ignore_non_fp=ignore_non_fp,
        )


# ---- programs -------------------------------------------------------------------------------


def repro_common(
    options: object, mod: torch.nn.Module, load_args: Callable | Sequence[object]
) -> tuple[fx.GraphModule, list[object]]:
    """The graph and the inputs of a program."""
    from torch.fx.experimental.proxy_tensor import make_fx

    inputs = _program.load_inputs(load_args, options.save_dir)
    if isinstance(mod, fx.GraphModule):
        return mod, inputs
    with torch.no_grad():
        return make_fx(mod, tracing_mode=options.tracing_mode)(*clone_inputs(inputs)), inputs


def run_repro(
    mod: torch.nn.Module,
    load_args: Callable | Sequence[object],
    *,
    command: str = "run",
    accuracy: bool | str = "",
    save_dir: str | None = None,
    tracing_mode: str | None = None,
    patch_code: str | None = None,
    check_str: str | None = None,
    isolate: bool = False,
    **unused: object,
) -> None:
    """The main function of a written program."""
    defaults = {
        "accuracy": "accuracy" if accuracy is True else accuracy,
        "save_dir": save_dir,
        "tracing_mode": tracing_mode or "real",
        "check_str": check_str,
        "isolate": isolate,
    }
    options = _program.parse(_program.arguments(defaults, _DESCRIPTION), command)
    gm, inputs = repro_common(options, mod, load_args)
    if options.command == "minify":
        _minify(gm, inputs, options)
    elif options.command == "minifier-query":
        raise SystemExit(int(_check(options)(gm, inputs)))
    elif options.command == "analyze":
        _analyze(gm, inputs)
    else:
        _run(gm, inputs, options)


def _check(options: object) -> Callable:
    if not options.accuracy:
        return functools.partial(inductor_fails, check_str=getattr(options, "check_str", None))
    strict = options.accuracy == "strict_accuracy"
    return functools.partial(
        inductor_accuracy_fails, require_fp64=not strict, ignore_non_fp=not strict
    )


def _run(gm: fx.GraphModule, inputs: Sequence[object], options: object) -> None:
    if options.accuracy:
        if _check(options)(gm, inputs):
            raise _program.bad_accuracy()
        return
    with torch.no_grad():
        run_fwd_maybe_bwd(_compiled(gm, inputs), clone_inputs(inputs), only_fwd=True)


def _minify(gm: fx.GraphModule, inputs: Sequence[object], options: object) -> None:
    def write(found: fx.GraphModule, given: Sequence[object], save_dir: str | None) -> str:
        file = io.StringIO()
        save_graph_repro(
            file, found, given, "inductor", save_dir=save_dir, accuracy=options.accuracy,
            check_str=options.check_str,
        )  # fmt: skip
        return file.getvalue()

    _program.reduce_graph(gm, inputs, _check(options), write, options)


def _analyze(gm: fx.GraphModule, inputs: Sequence[object]) -> None:
    """Says which operators compute something else when they are compiled alone."""
    for node in [n for n in gm.graph.nodes if n.op == "call_function"]:
        part = copy.deepcopy(gm)
        same_node = next(n for n in part.graph.nodes if n.name == node.name)
        part.graph.output_node().args = ((same_node,),)
        part.graph.eliminate_dead_code()
        part.recompile()
        if inductor_accuracy_fails(part, inputs):
            print(f"{node.name}: {node.format_node()} differs")
            return
    print("no operator differs")
