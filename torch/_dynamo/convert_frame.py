"""The callback of the entry: compiles one frame and returns the entry of its code cache, or says
that the frame runs as it is."""

from __future__ import annotations

import dataclasses
import logging
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch._dynamo import config, trace_rules
from torch._dynamo.exc import (
    FailOnRecompileLimitHit,
    InternalTorchDynamoError,
    SkipFrame,
    TorchDynamoException,
)
from torch._dynamo.utils import counters

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import CodeCache, CompiledEntry

log = logging.getLogger("torch._dynamo")


@dataclasses.dataclass(eq=False)
class ConvertFrame:
    """Compiles frames for one call of torch.compile."""

    backend: Callable
    fullgraph: bool = False
    dynamic: bool | None = None

    def __call__(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
    ) -> CompiledEntry | None:
        if trace_rules.should_skip_code(code, fn_globals) or config.disable:
            cache.skip = True
            return None
        if len(cache.entries) >= config.recompile_limit:
            return self._at_limit(code, cache)
        counters["frames"]["total"] += 1
        try:
            return self._compile(code, fn_globals, closure, values, cache)
        except SkipFrame as reason:
            log.debug("%s runs as it is: %s", code.co_name, reason)
            cache.skip = not cache.entries
            return None
        except TorchDynamoException:
            if config.suppress_errors and not self.fullgraph:
                log.warning("WON'T CONVERT %s", code.co_name, exc_info=True)
                cache.skip = True
                return None
            raise

    def _at_limit(self, code: types.CodeType, cache: CodeCache) -> None:
        if config.fail_on_recompile_limit_hit or self.fullgraph:
            raise FailOnRecompileLimitHit(
                f"recompile_limit reached with {'fullgraph=True' if self.fullgraph else ''}: "
                f"{code.co_name} was compiled {len(cache.entries)} times"
            )
        log.warning(
            "torch._dynamo hit config.recompile_limit (%s)\n   function: '%s' (%s:%s)",
            config.recompile_limit,
            code.co_name,
            code.co_filename,
            code.co_firstlineno,
        )
        cache.run_only = True

    def _compile(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
    ) -> CompiledEntry:
        from torch._C._dynamo.eval_frame import CompiledEntry
        from torch._dynamo import guards, translate

        state = cache.__dict__.setdefault("state", {})
        options = translate.Options(
            backend=self.backend, fullgraph=self.fullgraph, dynamic=self.dynamic, state=state
        )
        found = translate.translate(code, fn_globals, closure, values, options)
        if found.break_reason is not None:
            counters["graph_break"][str(found.break_reason)] += 1
        try:
            root, texts = guards.build(code, fn_globals, found.out)
        except Exception as error:
            raise InternalTorchDynamoError(f"{type(error).__name__}: {error}") from error
        entry = CompiledEntry(found.code, root, self.backend, fn_globals, found.has_break)
        entry.__dict__["guard_texts"] = texts
        entry.__dict__["text"] = found.text
        counters["frames"]["ok"] += 1
        if found.graph is not None:
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += found.out.count_calls()
        return entry
