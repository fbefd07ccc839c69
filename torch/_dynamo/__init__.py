"""The compiler's front: reads the bytecode of a function, runs it symbolically and hands the
graphs it finds to a backend. docs/dynamo.md says how. torch.compile and torch.compiler are the
public faces."""

import importlib

from torch._dynamo import config, exc, utils
from torch._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from torch._dynamo.decorators import (  # after eval_frame, which they use
    allow_in_graph,
    assume_constant_result,
    disable_nested_graph_breaks,
    disallow_in_graph,
    dont_skip_tracing,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    is_dynamo_disable_recursive,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    override_optimization_hint,
    patch_dynamo_config,
    register_hook_for_recompile_user_context,
    reset_recompile_user_contexts,
    set_recursion_limit,
    set_stance,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from torch._dynamo.eval_frame import (
    disable,
    is_dynamo_supported,
    optimize,
    optimize_assert,
    run,
    skip,
)
from torch._dynamo.utils import (
    compilation_time_metrics,
    compile_times,
    counters,
    graph_break_reasons,
    guard_failures,
)
from torch.compiler import is_compiling, is_dynamo_compiling, nested_compile_region

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "compilation_time_metrics",
    "compile_times",
    "config",
    "counters",
    "disable",
    "disable_nested_graph_breaks",
    "disallow_in_graph",
    "dont_skip_tracing",
    "error_on_graph_break",
    "exc",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "graph_break_reasons",
    "guard_failures",
    "is_compiling",
    "is_dynamo_disable_recursive",
    "is_dynamo_compiling",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nested_compile_region",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "override_optimization_hint",
    "patch_dynamo_config",
    "register_backend",
    "register_hook_for_recompile_user_context",
    "replay",
    "reset",
    "reset_code_caches",
    "reset_recompile_user_contexts",
    "run",
    "set_recursion_limit",
    "set_stance",
    "skip",
    "skip_frame",
    "step_unsupported",
    "substitute_in_graph",
]

reset_hooks: list = []


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): runs f and reports its graphs, where they end and why."""
    from torch._dynamo.explaining import explain as run_explain

    return run_explain(f, *extra_args, **extra_kwargs)


def export(f, *extra_args, **options):
    """export(f, **options)(*args): the whole of f as one graph with f's signature, and guards."""
    from torch._dynamo.exporting import export as run_export

    return run_export(f, *extra_args, **options)


def replay(filename: str) -> None:
    """Compiles and runs again what a file of config.replay_record_enabled recorded."""
    from torch._dynamo.replay_record import replay as run_replay

    run_replay(filename)


def is_inductor_supported() -> bool:
    """Whether kernels can be generated: not yet."""
    return False


def reset() -> None:
    """Forgets everything that was compiled, counted and learned about sizes."""
    reset_code_caches()
    utils.reset_frame_count()
    utils.guard_failures.clear()
    utils.graph_break_reasons.clear()
    from torch._dynamo import compile_log

    compile_log.reset_ids()
    for hook in reset_hooks:
        hook()


def reset_code_caches() -> None:
    """Forgets compiled code."""
    from torch._C._dynamo.eval_frame import reset_all

    reset_all()


_SUBMODULES = frozenset(
    """
    backends bytecode_analysis bytecode_transformation codegen compiled_autograd comptime
    convert_frame debug_utils decorators eval_frame guards metrics_context output_graph pgo
    polyfills replay_record repro resume_execution side_effects source symbolic_convert test_case
    testing trace_rules variables
    """.split()
)


def __getattr__(name: str) -> object:
    if name == "OptimizedModule":
        from torch._dynamo.optimized_module import OptimizedModule

        return OptimizedModule
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
