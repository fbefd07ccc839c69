"""Compiled frames kept between processes: guards as data, the text of the code that takes the
frame's place, and the key of the compiled graph. A new process that runs the same code with inputs
that fit interprets no bytecode: it checks the conditions on its own objects, takes the graph from
the store and puts guards on what it found.

An entry is kept under the code and the settings, with the newest of its forms first. Reading it
back looks objects up by name; the text of the code is trusted as kernels are, because the folder
belongs to the user and the checksum fits. A process does not read what it has written: there the
code cache is asked first, and whoever empties that wants the trace."""

from __future__ import annotations

import functools
import logging
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.eval_frame import CompiledEntry, DisabledFunction, GraphCall
from torch._dynamo import config
from torch._dynamo.code_text import code_of
from torch._dynamo.region_codec import (
    Frame,
    Miss,
    Sources,
    aliases_in,
    code_hash,
    codes_in,
    decode_object,
    encode_guard,
    encode_object,
    fitted_guard,
    sources_of,
)
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch._inductor import function_cache, graph_cache
from torch._inductor.cache_store import store
from torch._inductor.graph_codec import Bypass, Damaged, Json, packed, unpacked

if TYPE_CHECKING:
    from torch._dynamo.translate import Translation
    from torch._guards import Source

__all__ = ["Region", "open_region"]

log = logging.getLogger("torch._dynamo")
KIND = "region"
_MOST_FORMS = 8
# What reading data that no writer of ours has written may raise.
_SENSELESS = (Damaged, AssertionError, AttributeError, ArithmeticError, LookupError, RuntimeError,
              SyntaxError, TypeError, ValueError)  # fmt: skip
_written: set[str] = set()


def patches_of(backend: Callable) -> dict[str, object] | None:
    """The settings of a backend that is Inductor; None for other backends."""
    from torch._dynamo.backends.inductor import inductor
    from torch._inductor import list_mode_options

    options: dict[str, object] = {}
    if isinstance(backend, functools.partial) and not backend.args:
        if set(backend.keywords) != {"options"}:
            return None
        options, backend = dict(backend.keywords["options"]), backend.func
    if backend is not inductor:
        return None
    mode = options.pop("mode", None)
    return {**(list_mode_options(mode) if mode else {}), **options}


def _is_on() -> bool:
    return bool(
        config.region_cache
        and functorch_config.enable_autograd_cache
        and not inductor_config.force_disable_caches
        and graph_cache.is_on()
    )


def _check_nobody_watches() -> None:
    from torch._dynamo import convert_frame

    guards = sys.modules.get("torch._dynamo.guards")
    autograd = sys.modules.get("torch._dynamo.compiled_autograd")
    if convert_frame._bytecode_hooks or getattr(guards, "guard_manager_testing_hook_fn", None):
        raise Bypass("hooks look at bytecode or guards")
    if autograd is not None and autograd.enabled():
        raise Bypass("backward passes are compiled too")
    if config.verify_correctness:
        raise Bypass("results are compared")
    if torch._C._functorch._level_kinds():
        raise Bypass("a transform is running")


def open_region(
    code: types.CodeType, backend: Callable, fullgraph: bool, dynamic: bool | None
) -> Region | None:
    """Where compiled forms of a code are kept; None where they are not."""
    patches = patches_of(backend)
    if patches is None or not _is_on():
        return None
    try:
        _check_nobody_watches()
        with inductor_config.patch(patches):
            around = graph_cache.environment()
        settings = [graph_cache.settings_of(config), repr(sorted(patches.items()))]
        if " at 0x" in settings[1]:
            raise Bypass("an option that is an object without a name")
        key = graph_cache.digest(KIND, around, settings, code_hash(code), [fullgraph, dynamic])
    except Bypass as reason:
        _bypass(reason)
        return None
    return Region(key, code, backend, patches)


def _bypass(reason: Exception) -> None:
    counters["region"]["bypass"] += 1
    log.debug("a compiled frame is not kept: %s", reason)


class Region:
    """The forms that are kept of one code."""

    def __init__(
        self, key: str, code: types.CodeType, backend: Callable, patches: dict[str, object]
    ) -> None:
        self.key = key
        self.code = code
        self.backend = backend
        self.patches = patches
        function_cache.forget_latest()

    def _forms(self) -> list[dict]:
        raw = store().get(KIND, self.key)
        if raw is None:
            return []
        try:
            forms = unpacked(raw)
            if not isinstance(forms, list) or not all(isinstance(f, dict) for f in forms):
                raise Damaged("no forms")
        except Damaged as error:
            self._forget(error)
            return []
        return forms

    def _forget(self, error: Exception) -> None:
        graph_cache.log.warning("an entry of the cache is damaged and is made anew: %s", error)
        store().forget(KIND, self.key)

    # ---- writing

    def save(self, found: Translation, state: dict[str, object], frame: Frame) -> None:
        """Keeps what came of a frame, if that is possible."""
        try:
            form = self._form(found, state, frame)
        except Bypass as reason:
            _bypass(reason)
            return
        forms = [form, *[f for f in self._forms() if f.get("guards") != form["guards"]]]
        _written.add(self.key)
        if store().put(KIND, self.key, packed(forms[:_MOST_FORMS])):
            counters["region"]["saved"] += 1

    def _form(self, found: Translation, state: dict[str, object], frame: Frame) -> dict[str, Json]:
        out = found.out
        self._check_codes(found)
        if out.is_watched:
            raise Bypass("code of the program looked at the trace")
        if out.shared_memory is not None:
            raise Bypass("inputs that share memory are written")
        if out.uses_transforms() or out.open_modes or out.function_modes:
            raise Bypass("transforms or function modes")
        graph: Json = None
        if found.graph is not None:
            graph = function_cache.latest()
            if graph is None:
                raise Bypass("its graph is not kept")
        sources = Sources()
        rows = [encode_guard(record, sources) for record in out.guards.values()]
        texts, whole = out.shape_texts
        inputs = [self._input(item.source, sources) for item in found.inputs]
        form: dict[str, Json] = {
            "guards": rows,
            "tensors": [sources.place(s) for s in out.tensor_sources],
            "distinct": [[sources.place(s) for s in group] for group in out.distinct],
            "apart": [[sources.place(s) for s in group] for group in out.apart],
            "shapes": [list(texts), [sources.place(s) for s in whole]],
            "inputs": inputs if graph is not None else [],
            "memory": _memory([frame.value(item.source) for item in found.inputs]),
            "graph": graph,
            "text": found.text,
            "objects": [self._object(value, found, frame) for value in found.consts],
            "break": [bool(found.has_break), _reason(found)],
            "calls": out.count_calls(),
            "state": {k: v for k, v in state.items() if _is_plain(v)},
            "sources": sources.rows,
        }
        form["aliases"] = aliases_in(sources.rows, frame.globals)
        return form

    def _check_codes(self, found: Translation) -> None:
        """Everything that was traced into is the frame's own or has a condition on its code."""
        known = codes_in(self.code)
        for record in found.out.guards.values():
            if isinstance(record.value, types.FunctionType):
                known |= codes_in(record.value.__code__)
        for code in found.out.codes - known:
            raise Bypass(f"no condition on the code of {code.co_name} ({code.co_filename})")

    def _input(self, source: Source | None, sources: Sources) -> int:
        if source is None:
            raise Bypass("an input that the code makes")
        return sources.place(source)

    def _object(self, value: object, found: Translation, frame: Frame) -> Json:
        if found.graph_object is not None and value is found.graph_object[0]:
            return ["graph", found.graph_object[1]]
        if value is frame.globals:
            return ["globals"]
        resumes = found.out.resumes
        if isinstance(value, types.CodeType) and value in resumes:
            return ["resume", *resumes[value]]
        if isinstance(value, types.FunctionType) and value.__code__ in resumes:
            return ["resume function", *resumes[value.__code__]]
        return encode_object(value)

    # ---- reading

    def load(self, frame: Frame, state: dict[str, object]) -> CompiledEntry | None:
        """A form that fits the running program; None where there is none."""
        if self.key in _written:
            return None
        try:
            for form in self._forms():
                try:
                    entry = self._fitted(form, frame)
                except Miss as reason:
                    log.debug("a kept form of %s does not fit: %s", self.code.co_name, reason)
                    continue
                state.update(form["state"])
                _count(form)
                return entry
        except _SENSELESS as error:
            self._forget(error)
        counters["region"]["miss"] += 1
        return None

    def _fitted(self, form: dict[str, Json], frame: Frame) -> CompiledEntry:
        from torch._dynamo import guards

        frame.import_aliases(form["aliases"])
        sources = sources_of(form["sources"])
        known: dict[int, Json] = {}
        rows = [fitted_guard(row, sources, frame, known) for row in form["guards"]]
        inputs = [frame.value(sources[i]) for i in form["inputs"]]
        if form["graph"] is not None and _memory(inputs) != form["memory"]:
            raise Miss("other inputs share memory")
        builder = guards.tree_of(
            self.code,
            frame.globals,
            [guards.GuardRecord(*row) for row in rows],
            [sources[i] for i in form["tensors"]],
            [[sources[i] for i in group] for group in form["distinct"]],
            [[sources[i] for i in group] for group in form["apart"]],
        )
        texts, whole = form["shapes"]
        if guards.add_shape_texts(builder, texts, [sources[i] for i in whole]):
            raise Damaged("a condition that no program can state")
        if not builder.root.check(frame.locals):
            raise Miss("a condition does not hold")
        graph = None if form["graph"] is None else self._graph(form, inputs)
        calls = sum(data[0] == "graph" for data in form["objects"])
        if calls != (graph is not None):
            raise Damaged("code that calls another number of graphs")
        objects = [self._made(data, graph, frame) for data in form["objects"]]
        made = code_of(str(form["text"]), self.code, objects)
        has_break = bool(form["break"][0])
        entry = CompiledEntry(made, builder.root, self.backend, frame.globals, has_break)
        entry.guard_texts = builder.texts
        entry.text = form["text"]
        return entry

    def _graph(self, form: dict[str, Json], inputs: list[object]) -> Callable:
        from torch._inductor.compile_fx import take_function

        with inductor_config.patch(self.patches):
            found = take_function(str(form["graph"]), inputs, self.patches)
        if found is None:
            raise Miss("its graph is not there any more")
        found = torch._dynamo.disable(found, reason="do not trace AOT-compiled graph")
        return DisabledFunction(found) if form["break"][0] else found

    def _made(self, data: Json, graph: Callable | None, frame: Frame) -> object:
        kind, *rest = data
        if kind == "globals":
            return frame.globals
        if kind == "graph":
            if graph is None:
                raise Damaged("a graph that is not there")
            fetch = rest[0]
            if fetch is None:
                return graph
            count, steps, outputs = fetch
            return GraphCall(graph, count, [tuple(step) for step in steps], outputs)
        if kind not in ("resume", "resume function"):
            return decode_object(data)
        from torch._dynamo.bytecode import program_of
        from torch._dynamo.resume_execution import resume_code

        place, depth, names = rest
        code = resume_code(program_of(self.code).origin, place, depth, tuple(names))
        if kind == "resume":
            return code
        return types.FunctionType(code, frame.globals, code.co_name)


def _memory(values: list[object]) -> Json:
    """Which inputs share memory, and which are leaves: the graph was made for inputs like these."""
    leaves = [value.is_leaf if isinstance(value, torch.Tensor) else None for value in values]
    return [function_cache.shared_memory(values), leaves]


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or type(value) in (int, float, bool)


def _reason(found: Translation) -> str | None:
    reason = found.break_reason
    if reason is None:
        return None
    return str(reason.args[0]) if reason.args else type(reason).__name__


def _count(form: dict[str, Json]) -> None:
    counters["region"]["hit"] += 1
    counters["frames"]["ok"] += 1
    if form["break"][1] is not None:
        counters["graph_break"][str(form["break"][1])] += 1
    if form["graph"] is not None:
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += int(form["calls"])
        counters["aot_autograd"]["autograd_cache_hit"] += 1
