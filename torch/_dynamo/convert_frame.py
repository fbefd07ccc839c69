"""Compiles one frame: runs the translation, makes the guards, and returns the entry of the code
cache or says that the frame runs as it is."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import logging
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.guards import GlobalStateGuard
from torch._dynamo import compile_log, config, decorators, trace_rules
from torch._dynamo.aliases import Aliases
from torch._dynamo.exc import (
    InternalTorchDynamoError,
    SkipFrame,
    TorchDynamoException,
    is_of_signal,
    is_of_tracer,
    with_user_code,
)
from torch._dynamo.utils import (
    CompilationMetrics,
    clone_inputs,
    counters,
    dynamo_timed,
    preserve_rng_state,
    same,
)
from torch._guards import CompileContext, compile_context
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import CodeCache, CompiledEntry
    from torch._dynamo.region_codec import Frame as RegionFrame
    from torch._dynamo.regions import Region
    from torch._dynamo.translate import Translation

__all__ = ["ConvertFrame", "GlobalStateGuard", "register_bytecode_hook"]

log = logging.getLogger("torch._dynamo")
BytecodeHook = Callable[[types.CodeType, types.CodeType], types.CodeType | None]
_bytecode_hooks: collections.OrderedDict[int, BytecodeHook] = collections.OrderedDict()


def register_bytecode_hook(hook: BytecodeHook) -> RemovableHandle:
    """hook(code, new code) may return other code to run in place of the new."""
    handle = RemovableHandle(_bytecode_hooks)
    _bytecode_hooks[handle.id] = hook
    return handle


@dataclasses.dataclass(eq=False)
class ConvertFrame:
    """Compiles frames for one call of torch.compile."""

    backend: Callable
    fullgraph: bool = False
    dynamic: bool | None = None
    recompile_limit: int | None = None
    # Whether frames may be taken from other processes and kept for them.
    keeps: bool = True
    # What chooses among the guards of a frame, and what is told of them.
    guard_filter_fn: Callable | None = None
    guard_export_fn: Callable | None = None

    def __call__(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
        asked_for: bool = False,
        report_why: Callable[[], None] | None = None,
    ) -> CompiledEntry | bool | None:
        """The code compiled; False or None where it runs as it is. `report_why` writes, under the
        name of this compilation, why the code is compiled again."""
        # What was given to torch.compile is compiled wherever it comes from.
        if not asked_for and trace_rules.should_skip_code(code, fn_globals):
            return None
        counters["frames"]["total"] += 1
        context = compile_log.next_compile_context(cache)
        metrics = _metrics_of(code, context, cache)
        with compile_context(context):
            compile_log.started(code)
            if report_why is not None:
                report_why()
            try:
                with (
                    dynamo_timed("_compile.compile_inner", phase_name="entire_frame_compile"),
                    compile_log.progress(code),
                ):
                    return self._compile(code, fn_globals, closure, values, cache, metrics)
            except SkipFrame as reason:
                log.debug("%s runs as it is: %s", code.co_name, reason)
                metrics.fail_type, metrics.fail_reason = "SkipFrame", str(reason)
                # Under a transform tensors are of its own kind: a call without may be compiled.
                return False if torch._C._functorch._level_kinds() else None
            except Exception as error:
                failed = _as_dynamo_error(error)
                _record(failed, code, fn_globals, closure, values)
                compile_log.failed(failed)
                metrics.fail_type, metrics.fail_reason = type(failed).__name__, str(failed)
                metrics.dynamo_time_before_restart_s = time.time() - metrics.start_time
                # What nobody wrote yet, and what the tracer fails on, Python runs as it is.
                own = isinstance(error, NotImplementedError) or is_of_tracer(error)
                soft = own and failed is not error
                if self.fullgraph or not (soft or config.suppress_errors):
                    if failed is error:
                        raise
                    raise failed from error.__cause__
                log.warning("%s", _wont_convert(code, failed))
                return None
            finally:
                metrics.entire_frame_compile_time_s = time.time() - metrics.start_time
                compile_log.finished(metrics)

    def _compile(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
        metrics: CompilationMetrics,
    ) -> CompiledEntry:
        from torch._dynamo import pgo

        state = cache.__dict__.get("state")
        if state is None:
            state = cache.__dict__["state"] = pgo.load(code)
        region, frame = None, None
        if self.keeps:
            region, frame = self._region(code, fn_globals, closure, values)
        taken = None if region is None else region.load(frame, state)
        if taken is not None:
            taken.compile_id = CompileContext.current_compile_id()
            return taken
        return self._translate(code, fn_globals, closure, values, cache, metrics, region, frame)

    def _region(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
    ) -> tuple[Region | None, RegionFrame | None]:
        if not _is_inductor(self.backend):
            return None, None  # without loading what keeps frames
        from torch._dynamo import regions

        region = regions.open_region(code, self.backend, self.fullgraph, self.dynamic)
        if region is None:
            return None, None
        return region, regions.Frame(code, fn_globals, closure, values)

    def _translate(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
        metrics: CompilationMetrics,
        region: Region | None,
        frame: RegionFrame | None,
    ) -> CompiledEntry:
        from torch._C._dynamo.eval_frame import CompiledEntry
        from torch._dynamo import guards, pgo, recompiles, translate

        state = cache.__dict__["state"]
        automatic = config.automatic_dynamic_shapes and self.dynamic is not False
        options = translate.Options(
            backend=_watched(self.backend),
            fullgraph=self.fullgraph,
            dynamic=self.dynamic,
            state=state,
            all_symbolic=automatic
            and recompiles.is_last(cache, self.backend, self.recompile_limit),
        )
        found = translate.translate(code, fn_globals, closure, values, options)
        try:
            compile_log.graph_break(found.break_reason)
            self._choose_guards(found, fn_globals)
            with dynamo_timed("build_guards"):
                root, texts = guards.build(code, fn_globals, found.out)
            made = _hooked(code, found.code)
            compile_log.graph(found.graph, found.out.compiled_name)
            compile_log.bytecode(code, made)
            compile_log.guards(root, texts, found.guards)
            entry = CompiledEntry(made, root, self.backend, fn_globals, found.has_break)
            entry.compile_id = CompileContext.current_compile_id()
            if found.out.aliases:
                entry.aliases = Aliases(fn_globals, found.out.aliases)
            entry.guard_texts = texts
            entry.text = found.text
            _count(found, texts, metrics)
            pgo.save(code, state)
            if region is not None:
                region.save(found, state, frame)
            return entry
        finally:
            found.out.forget()

    def _choose_guards(self, found: Translation, fn_globals: dict[str, object]) -> None:
        """Asks the program which guards it wants, and tells it of them."""
        if self.guard_filter_fn is None and self.guard_export_fn is None:
            return
        from torch._dynamo import guard_filters

        if self.guard_filter_fn is not None:
            guard_filters.apply(self.guard_filter_fn, found.out, fn_globals)
        if self.guard_export_fn is not None:
            self.guard_export_fn(guard_filters.exported(found.out))


def _is_inductor(backend: Callable) -> bool:
    if isinstance(backend, functools.partial):
        backend = backend.func
    return getattr(backend, "__module__", None) == "torch._dynamo.backends.inductor"


# Errors that reach the program as they are.
_PASSED_ON = (TorchDynamoException, AssertionError)


def _as_dynamo_error(error: Exception) -> Exception:
    """The error as the program sees it: a fault of the tracer says so and names the user's line."""
    from torch.fx.experimental.symbolic_shapes import (
        ConstraintViolationError,
        GuardOnDataDependentSymNode,
    )

    frames = getattr(error, "frames", None)
    if isinstance(error, (ConstraintViolationError, GuardOnDataDependentSymNode)):
        return error
    if is_of_signal(error):
        return error
    if isinstance(error, _PASSED_ON):
        if frames and isinstance(error, AssertionError):
            with_user_code(error, frames)
        return error
    made = InternalTorchDynamoError(f"{type(error).__name__}: {error}")
    if frames:
        with_user_code(made, frames)
    return made.with_traceback(error.__traceback__)


def _record(
    error: Exception,
    code: types.CodeType,
    fn_globals: dict[str, object],
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
) -> None:
    """Keeps the frame for torch._dynamo.replay() where settings want that."""
    if not config.replay_record_enabled:
        return
    from torch._dynamo import replay_record

    error.record_filename = replay_record.write(code, fn_globals, closure, values)
    log.warning("torch._dynamo.replay(%r) compiles this again", error.record_filename)


def _wont_convert(code: types.CodeType, error: Exception) -> str:
    head = f"WON'T CONVERT {code.co_name} {code.co_filename} line {code.co_firstlineno}"
    text = "".join(traceback.format_exception(error))
    if not config.verbose:
        return f"{head} \ndue to: \n{text}"
    lines = [head, f"{'=' * 10} TorchDynamo Stack Trace {'=' * 10}", text]
    stack = getattr(error, "real_stack", None)
    if stack:
        title = "The above exception occurred while processing the following code"
        lines += [f"{'=' * 10} {title} {'=' * 10}", "", "".join(stack.format()), "=" * 10]
    return "\n".join(lines)


def _hooked(code: types.CodeType, made: types.CodeType) -> types.CodeType:
    for hook in list(_bytecode_hooks.values()):
        made = hook(code, made) or made
    return made


def _watched(backend: Callable) -> Callable:
    """The backend as settings want it: another while bisecting, compared, or leaving a program of
    what fails."""
    if "TORCH_BISECT_BACKEND" in os.environ or "torch._inductor.compiler_bisector" in sys.modules:
        from torch._dynamo.backends.registry import lookup_backend
        from torch._inductor.compiler_bisector import CompilerBisector

        chosen = CompilerBisector.get_backend()
        backend = backend if chosen is None else lookup_backend(chosen)
    if config.repro_after is not None:
        from torch._dynamo.repro.after_dynamo import wrap_backend_debug

        backend = wrap_backend_debug(backend)
    return _verified(backend) if config.verify_correctness else backend


def _verified(backend: Callable) -> Callable:
    """The backend, whose functions are compared with the graph when they first run."""

    def compile_and_compare(gm: torch.fx.GraphModule, inputs: list[object]) -> Callable:
        reference = copy.deepcopy(gm)
        compiled = backend(gm, inputs)
        checked = False

        def run(*args: object) -> object:
            nonlocal checked
            if not checked:
                with preserve_rng_state(), torch.no_grad():
                    wanted = reference(*clone_inputs(args))
                with preserve_rng_state(), torch.no_grad():
                    got = compiled(*clone_inputs(args))
                if not same(wanted, got):
                    raise RuntimeError(f"incorrect results of backend {backend}")
                checked = True
            return compiled(*args)

        return run

    return compile_and_compare


def _metrics_of(
    code: types.CodeType, context: CompileContext, cache: CodeCache
) -> CompilationMetrics:
    return CompilationMetrics(
        compile_id=str(context.compile_id),
        frame_key=str(context.compile_id.frame_id),
        co_name=code.co_name,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        cache_size=len(cache.entries),
        accumulated_cache_size=len(cache.entries),
        start_time=time.time(),
        config_suppress_errors=config.suppress_errors,
        config_inline_inbuilt_nn_modules=config.inline_inbuilt_nn_modules,
        specialize_float=config.specialize_float,
        is_forward=True,
        recompile_user_contexts=decorators.user_contexts() if cache.entries else None,
    )


def _count(found: Translation, texts: list[str], metrics: CompilationMetrics) -> None:
    counters["frames"]["ok"] += 1
    metrics.has_guarded_code = True
    metrics.guard_count = len(texts)
    if found.graph is None:
        return
    calls = found.out.count_calls()
    counters["stats"]["unique_graphs"] += 1
    counters["stats"]["calls_captured"] += calls
    metrics.graph_op_count = calls
    metrics.graph_node_count = len(found.graph.graph.nodes)
    metrics.graph_input_count = len(found.inputs)
