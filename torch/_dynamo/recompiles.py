"""What happens before a function is compiled another time: why the forms that exist do not fit,
whether another one is allowed, and what is said about it."""

from __future__ import annotations

import logging
import types
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch._dynamo import compile_log, config, exc
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
    source: str | None = None

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
        found.append(Failure(entry, compile_id, texts, info.source))
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


# What would prevent a failure, by words of its text.
_HINTS = (
    ("size mismatch at index", "a varying size: torch._dynamo.mark_dynamic, or dynamic=True"),
    ("stride mismatch at index", "a varying layout: call .contiguous() before"),
    ("rank mismatch", "tensors of one number of dimensions share a graph"),
    ("dtype mismatch", "one dtype per graph: convert before the call"),
    ("requires_grad mismatch", "detach, or call it with the same requires_grad"),
    ("dispatch key set mismatch", "the same kind of tensor on each call"),
    ("GLOBAL_STATE changed", "the same settings (grad mode, autocast, default dtype) on each call"),
    ("Duplicate tensors found", "clone an argument that is given twice"),
    ("are one object", "copy an object that is given twice and changed"),
    ("___check_obj_id", "another object is there now: keep the old one, or pass it as an argument"),
    ("___check_type_id", "one type per graph"),
    ("len(", "a container of varying length: pad it, or stack it into a tensor"),
    ("dict.keys(", "the same keys in the same order on each call"),
)
_NUMBER_HINT = "a varying number: dynamic=True makes it a symbol at once"
_VALUE_HINT = "each value has a graph of its own: keep it, or compute with a tensor"


def _with_hint(text: str) -> str:
    for words, hint in _HINTS:
        if words in text:
            return f"{text} ({hint})"
    return text


def _with_value(text: str, source: str | None, scope: dict[str, object]) -> str:
    """A failed comparison with the value of now, and what would prevent it."""
    if not source or " == " not in text:
        return _with_hint(text)
    try:
        value = eval(source, {"torch": torch, "type": type}, scope)
    except Exception:  # the expression may run any code of the program
        return _with_hint(text)
    shown = repr(len(value) if text.startswith("len(") and hasattr(value, "__len__") else value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    hint = _with_hint(text)[len(text) :]
    if not hint:
        hint = f" ({_NUMBER_HINT if isinstance(value, (int, float)) else _VALUE_HINT})"
    return f"{text}, now {shown}{hint}"


def _place(code: types.CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def report(code: types.CodeType, found: list[Failure], scope: dict[str, object]) -> None:
    """Writes to the artifact `recompiles` why a function is compiled again. `scope` has the locals
    and globals of the call, under the names that guards use."""
    if not found:
        return
    enabled = recompiles_log.isEnabledFor(logging.DEBUG)
    verbose = recompiles_verbose_log.isEnabledFor(logging.DEBUG)
    if not (enabled or verbose or config.error_on_recompile or compile_log.is_tracing()):
        return
    reasons = [
        f"{failure.compile_id}: "
        + "; ".join(_with_value(text, failure.source, scope) for text in failure.texts)
        for failure in found
    ]
    compile_log.recompile_reasons(reasons)
    lines = "\n".join(f"    - {reason}" for reason in reasons)
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


def is_last(cache: CodeCache, backend: object, limit: int | None = None) -> bool:
    """Whether the next form of a function is the last that is allowed, after others: it is made for
    all sizes and numbers."""
    own = sum(entry.backend is backend for entry in cache.entries)
    return own >= 2 and (
        own + 1 >= (config.recompile_limit if limit is None else limit)
        or len(cache.entries) + 1 >= config.accumulated_recompile_limit
    )


def is_over_limit(cache: CodeCache, backend: object, limit: int | None = None) -> str | None:
    """The setting that forbids another form of a function, or None."""
    own = sum(entry.backend is backend for entry in cache.entries)
    if own >= (config.recompile_limit if limit is None else limit):
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
