"""What happens before a function is compiled another time: why the forms that exist do not fit,
whether another one is allowed, and what is said about it."""

from __future__ import annotations

import logging
import types
from typing import TYPE_CHECKING, NamedTuple

from torch._dynamo import config, exc
from torch._logging import getArtifactLogger

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import CodeCache, CompiledEntry

log = logging.getLogger(__name__)
recompiles_log = getArtifactLogger(__name__, "recompiles")
recompiles_verbose_log = getArtifactLogger(__name__, "recompiles_verbose")


class Failure(NamedTuple):
    """Why a compiled form does not fit."""

    entry: CompiledEntry
    compile_id: object
    texts: list[str]

    def __str__(self) -> str:
        return f"{self.compile_id}: {'; '.join(self.texts)}"


def failures(
    cache: CodeCache, backend: object, frame: dict[str, object], verbose: bool = False
) -> list[Failure]:
    """The first guard that fails, of each form; with `verbose` those of all of its locals."""
    found = []
    for entry in cache.entries:
        if entry.backend is not backend or entry.guards is None:
            continue
        info = entry.guards.check_verbose(frame)
        if info.result:
            continue
        texts = list(dict.fromkeys(info.verbose_code_parts))
        if verbose:
            texts += [t for t in _other_failures(entry, frame) if t not in texts]
        compile_id = entry.__dict__.get("compile_id", len(found))
        found.append(Failure(entry, compile_id, [_with_hint(text) for text in texts]))
    return found


def _other_failures(entry: CompiledEntry, frame: dict[str, object]) -> list[str]:
    """Failures below each local by itself."""
    out: list[str] = []
    for manager in entry.guards.get_child_managers():
        own = manager.get_source()
        only = entry.guards.clone_manager(
            lambda m, own=own: not m.get_source() or m.get_source().startswith(own)
        )
        info = only.check_verbose(frame) if only is not None else None
        if info is not None and not info.result:
            out += [t for t in info.verbose_code_parts if t not in out]
    return out


def _with_hint(text: str) -> str:
    if "size mismatch at index" in text:
        return f"{text} (a varying size: torch._dynamo.mark_dynamic, or dynamic=True)"
    return text


def _place(code: types.CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def report(code: types.CodeType, found: list[Failure]) -> None:
    """Writes to the artifact `recompiles` why a function is compiled again."""
    if not found:
        return
    enabled = recompiles_log.isEnabledFor(logging.DEBUG)
    verbose = recompiles_verbose_log.isEnabledFor(logging.DEBUG)
    if not (enabled or verbose) and not config.error_on_recompile:
        return
    lines = "\n".join(f"    - {failure}" for failure in found)
    text = (
        f"Recompiling function {code.co_name} in {_place(code)}\n"
        f"    triggered by the following guard failure(s):\n{lines}"
    )
    if verbose:
        recompiles_verbose_log.debug("%s", text)
    elif enabled:
        recompiles_log.debug("%s", text)
    if config.error_on_recompile:
        raise exc.RecompileError(text)


def is_over_limit(cache: CodeCache, backend: object) -> str | None:
    """The setting that forbids another form of a function, or None."""
    own = sum(entry.backend is backend for entry in cache.entries)
    if own >= config.recompile_limit:
        return "recompile_limit"
    if len(cache.entries) >= config.accumulated_recompile_limit:
        return "accumulated_recompile_limit"
    return None


def refuse(code: types.CodeType, limit: str, found: list[Failure], fullgraph: bool) -> None:
    """Says that a function will not be compiled again; raises where the user asked for that."""
    last = found[0].texts[0] if found and found[0].texts else "unknown"
    text = (
        f"torch._dynamo hit config.{limit} ({getattr(config, limit)})\n"
        f"   function: '{code.co_name}' ({_place(code)})\n"
        f"   last reason: {last}\n"
        'To log all recompilation reasons, use TORCH_LOGS="recompiles".\n'
        "To diagnose recompilation issues, see "
        "https://pytorch.org/docs/main/torch.compiler_troubleshooting.html."
    )
    if config.fail_on_recompile_limit_hit:
        raise exc.FailOnRecompileLimitHit(
            f"{limit} reached, because fail_on_recompile_limit_hit = True this is a HARD failure\n"
            f"{text}"
        )
    if fullgraph:
        raise exc.FailOnRecompileLimitHit(
            f"{limit} reached with fullgraph=True. Excessive recompilations can degrade "
            "performance due to the compilation overhead of each recompilation. To monitor "
            "recompilations, enable TORCH_LOGS=recompiles. If recompilations are expected, "
            f"consider increasing torch._dynamo.config.{limit} to an appropriate value.\n{text}"
        )
    log.warning("%s", text)
