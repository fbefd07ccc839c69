"""Functions traced with their derivatives, kept between processes. An entry of the store holds what
is known of the function (ViewAndMutationMeta) and the keys of its graphs (graph_cache.py), so that
a captured graph that was compiled before is neither traced nor differentiated nor divided again.

A key says everything that the result depends on: the captured graph, its inputs and which of them
share memory, settings and the build. What a key cannot say is not kept."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, fx
from torch._dynamo.utils import counters
from torch._functorch import config
from torch._functorch._aot_autograd.alias import ViewStep
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    InputAliasInfo,
    OutputAliasInfo,
    OutputType,
    TangentForm,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.subclasses import Layout
from torch._inductor import config as inductor_config
from torch._inductor import graph_cache
from torch._inductor.cache_store import store
from torch._inductor.graph_codec import (
    Bypass,
    Damaged,
    Json,
    decode_value,
    describe_graph,
    describe_input,
    encode_graph,
    encode_value,
    find_operator,
    packed,
    unpacked,
)

__all__ = [
    "AOTAutogradCache",
    "BypassAOTAutogradCache",
    "Entry",
    "Keeper",
    "autograd_cache_key",
    "latest",
    "sanitize_gm_for_cache",
]

BypassAOTAutogradCache = Bypass
_RAW_TYPES = {kind.__name__: kind for kind in (
    Tensor, torch.nn.Parameter, int, float, bool, str, type(None), torch.SymInt, torch.SymFloat,
    torch.SymBool,
)}  # fmt: skip


# ---- keys -----------------------------------------------------------------------------------


def shared_memory(values: Sequence[object]) -> Json:
    """Which inputs are one tensor or share memory, and where they lie in it."""
    firsts: dict[int, int] = {}
    rows: list[Json] = []
    for place, value in enumerate(values):
        if not isinstance(value, Tensor) or torch._C._is_fake(value):
            continue
        first = firsts.setdefault(value.untyped_storage()._cdata, place)
        if first != place:
            offset = value.storage_offset() - values[first].storage_offset()
            rows.append([first, place, offset, value is values[first]])
    return rows


def _described(value: object, held: object) -> Json:
    """An input; of sizes that are symbols, their names."""
    if isinstance(held, (torch.SymInt, torch.SymFloat)):
        return {"y": str(held)}
    row = describe_input(value)
    if isinstance(held, Tensor) and isinstance(value, Tensor):
        row[1:3] = describe_input(held)[1:3]
    return row


def _describe_inputs(gm: fx.GraphModule, values: Sequence[object]) -> Json:
    """What of the inputs decides how a function is traced."""
    places = gm.graph.find_nodes(op="placeholder")
    held = [node.meta.get("example_value") for node in places]
    if len(held) != len(values):
        raise Bypass(f"{len(values)} inputs for {len(held)} places")
    rows = [_described(v, h) for v, h in zip(values, held, strict=True)]
    leaves = [v.is_leaf if isinstance(v, Tensor) else True for v in values]
    return [rows, leaves, shared_memory(values), _places(gm, values)]


def _places(gm: fx.GraphModule, values: Sequence[object]) -> Json:
    """Where inputs begin in their memory, for graphs that count from its start."""
    from torch._dynamo.variables.places import is_counted_from_the_start

    graphs = [m.graph for m in gm.modules() if isinstance(m, fx.GraphModule)]
    if not any(is_counted_from_the_start(n.target) for graph in graphs for n in graph.nodes):
        return None
    plain = [isinstance(v, Tensor) and not torch._C._is_fake(v) for v in values]
    return [v.storage_offset() if p else None for v, p in zip(values, plain, strict=True)]


def _settings_of(given: AOTConfig) -> Json:
    return [given.num_params_buffers, given.keep_inference_input_mutations, given.is_export,
            given.no_tangents, given.dynamic_shapes, given.pre_dispatch]  # fmt: skip


def autograd_cache_key(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    config: AOTConfig,
    fx_config: object = None,
) -> tuple[str, list[str]]:
    """The key of a captured graph and, for people, the texts that went into it. Raises
    BypassAOTAutogradCache."""
    if inductor_config.freezing:
        raise Bypass("parameters are frozen into graphs")
    if not isinstance(gm, fx.GraphModule):
        raise Bypass(f"{type(gm).__name__} is no captured graph")
    if any(True for _ in gm.parameters()) or any(True for _ in gm.buffers()):
        raise Bypass("the graph holds parameters of its own")
    notes = [repr(getattr(gm, "meta", None)), repr(getattr(gm, "compile_subgraph_reason", None))]
    if any(" at 0x" in text for text in notes):
        raise Bypass("notes on the graph that have no text")
    parts = [
        graph_cache.environment(),
        describe_graph(gm),
        _describe_inputs(gm, example_inputs),
        _settings_of(config),
        notes,
    ]
    return "a" + graph_cache.digest("aot_autograd", *parts), [packed(p).decode() for p in parts]


@contextlib.contextmanager
def sanitize_gm_for_cache(gm: fx.GraphModule) -> Iterator[None]:
    """Takes notes that nothing depends on from a graph while its key is made."""
    names = ("meta", "compile_subgraph_reason", "_param_name_to_source", "_backend_id")
    held = {name: gm.__dict__.pop(name) for name in names if name in gm.__dict__}
    try:
        yield
    finally:
        gm.__dict__.update(held)


# ---- what is known of a function ------------------------------------------------------------


def _view_data(views: list[Callable] | None) -> Json:
    if views is None:
        return None
    rows = []
    for step in views:
        if not isinstance(step, ViewStep):
            raise Bypass("an output that is a view by an unknown function")
        schema = step.target._schema
        args = encode_value(tuple(step.args), {})
        kwargs = encode_value(dict(step.kwargs), {})
        rows.append([schema.name, step.target._overloadname, args, kwargs, step.pick])
    return rows


def _views(data: Json) -> list[Callable] | None:
    if data is None:
        return None
    return [
        ViewStep(find_operator(name, overload), decode_value(args, ()), decode_value(kwargs, ()), k)
        for name, overload, args, kwargs, k in data
    ]


def _meta_data(meta: ViewAndMutationMeta) -> Json:
    layouts = (meta.input_layout, meta.return_layout, meta.tangent_layout, meta.gradient_layout)
    if any(layout is not None and not layout.plain for layout in layouts):
        raise Bypass("tensors that wrap others")
    if meta.moves_generator:
        raise Bypass("random numbers as functions of a seed")
    outputs = [
        [o.output_type.name, o.raw_type.__name__, o.base_idx, o.requires_grad, _view_data(o.views)]
        for o in meta.output_info
    ]
    if any(row[1] not in _RAW_TYPES for row in outputs):
        raise Bypass("an output of an unknown class")
    return {
        "inputs": [dataclasses.astuple(i) for i in meta.input_info],
        "outputs": outputs,
        "bases": meta.num_intermediate_bases,
        "train": meta.is_train,
        "differentiable": meta.differentiable,
        "count": meta.num_outputs,
        "symbols": meta.num_symints_saved_for_bw,
        "tangents": [dataclasses.astuple(t) for t in meta.tangent_forms],
        "layouts": [None if layout is None else len(layout.wrappers) for layout in layouts],
    }


def _meta(data: Json) -> ViewAndMutationMeta:
    inputs = [InputAliasInfo(*map(bool, row)) for row in data["inputs"]]
    outputs = [
        OutputAliasInfo(OutputType[kind], _RAW_TYPES[raw], base, bool(grad), _views(views))
        for kind, raw, base, grad, views in data["outputs"]
    ]
    made = ViewAndMutationMeta(inputs, outputs, int(data["bases"]), bool(data["train"]))
    made.differentiable = [int(i) for i in data["differentiable"]]
    made.num_outputs = int(data["count"])
    made.num_symints_saved_for_bw = int(data["symbols"])
    made.tangent_forms = [
        TangentForm(None if strides is None else tuple(map(int, strides)), bool(whole))
        for strides, whole in data["tangents"]
    ]
    layouts = [None if n is None else Layout([None] * int(n)) for n in data["layouts"]]
    made.input_layout, made.return_layout, made.tangent_layout, made.gradient_layout = layouts
    return made


# ---- entries --------------------------------------------------------------------------------


@dataclasses.dataclass
class Entry:
    """What is kept of a function."""

    meta: ViewAndMutationMeta
    forward: str
    backward: str | None
    # Metadata of the backward graph's inputs; None where they have symbols.
    backward_inputs: Json
    conditions: list[str]
    dynamic: bool
    # The backward graph was not compiled yet: what is kept of it went through no passes.
    early: bool = False


def _entry(raw: bytes) -> Entry:
    data = unpacked(raw)
    try:
        conditions = [str(text) for text in data["conditions"]]
        keys = (str(data["forward"]), data["backward"])
        meta = _meta(data["meta"])
        if meta.is_train and not isinstance(keys[1], str):
            raise Damaged("no backward graph")
        dynamic = bool(data["dynamic"])
        early = bool(data["early"])
        return Entry(meta, *keys, data["backward_inputs"], conditions, dynamic, early)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error


_local = threading.local()


def latest() -> str | None:
    """The key of the function that this thread compiled last; None where it is not kept."""
    return getattr(_local, "key", None)


def forget_latest() -> None:
    """Whatever this thread compiles next, nothing was compiled before."""
    _local.key = None


class Keeper:
    """Notes what becomes of one function while it is compiled, and keeps it when everything is
    there: at once without a derivative, else when the backward graph is compiled."""

    def __init__(self, key: str, symbols: Sequence[object]) -> None:
        self.key: str | None = key
        self._sizes = graph_cache.Sizes(symbols)
        self._dynamic = bool(self._sizes.names)
        self._conditions: list[str] = []
        self.graphs: dict[str, str | None] = {}

    def refuse(self, reason: Exception | str) -> None:
        """The function is not kept."""
        if self.key is not None:
            graph_cache.bypass("aot_autograd", "autograd", reason)
        self.key = None

    def note(self, which: str) -> None:
        """A graph was compiled: forward, backward or inference."""
        self.graphs[which] = graph_cache.latest()
        if which != "backward":
            try:
                self._conditions = self._sizes.conditions()
            except Bypass as reason:
                self.refuse(reason)

    def save(self, meta: ViewAndMutationMeta, backward_inputs: Sequence[object] = ()) -> None:
        """Keeps the function, if that is possible."""
        if self.key is None:
            return
        if self._put(meta, self.graphs.get("backward"), backward_inputs, early=False):
            counters["aot_autograd"]["autograd_cache_saved"] += 1

    def save_early(
        self, meta: ViewAndMutationMeta, backward: fx.GraphModule, inputs: Sequence[object]
    ) -> None:
        """Keeps a function whose backward graph is not compiled yet and perhaps never will be. Only
        compiled frames (torch/_dynamo/regions.py) ask for such entries."""
        if self.key is None or self.graphs.get("forward") is None:
            return
        try:
            content = {"graph": encode_graph(backward), "conditions": [], "counters": {}}
        except Bypass:
            return
        key = graph_cache.digest("early", self.key)
        store().put(graph_cache.FxGraphCache.kind, key, packed(content))
        self._put(meta, key, inputs, early=True)

    def _put(
        self, meta: ViewAndMutationMeta, backward: str | None, inputs: Sequence[object], early: bool
    ) -> bool:
        forward = self.graphs.get("forward" if meta.is_train else "inference")
        if forward is None or (meta.is_train and backward is None):
            self.refuse("a graph of it is not kept")
            return False
        try:
            content = {
                "meta": _meta_data(meta),
                "forward": forward,
                "backward": backward,
                "backward_inputs": [describe_input(v) for v in inputs],
                "conditions": self._conditions,
                "dynamic": self._dynamic,
                "early": early,
            }
        except Bypass as reason:
            self.refuse(reason)
            return False
        store().put(AOTAutogradCache.kind, self.key[1:], packed(content))
        return True


class AOTAutogradCache:
    """Functions traced with their derivatives."""

    kind = "aot_autograd"

    @classmethod
    def clear(cls) -> None:
        """Removes all functions that are kept."""
        store().clear(cls.kind)

    @classmethod
    def load(cls, key: str, early: bool = False) -> Entry | None:
        """What is kept under a key, if all of it is there. With `early` the backward graph need not
        have been compiled."""
        raw = store().get(cls.kind, key[1:])
        if raw is None:
            return None
        try:
            found = _entry(raw)
        except Damaged as error:
            graph_cache.log.warning("an entry of the cache is damaged and is made anew: %s", error)
            store().forget(cls.kind, key[1:])
            return None
        kept = [k for k in (found.forward, found.backward) if k is not None]
        if found.early and not early:
            return None
        return found if all(map(graph_cache.FxGraphCache.has, kept)) else None


def _hold(symbols: Sequence[object], conditions: list[str]) -> bool:
    try:
        return graph_cache.Sizes(symbols).hold(conditions)
    except Damaged:
        return False


def open_function(
    gm: fx.GraphModule, inputs: Sequence[object], settings: AOTConfig
) -> tuple[Keeper | None, Entry | None]:
    """Where a function is kept, and what is kept of it already."""
    _local.key = None
    if not config.enable_autograd_cache or inductor_config.force_disable_caches:
        return None, None
    try:
        if not graph_cache.is_on():
            raise Bypass("the cache of graphs is off (torch._inductor.config.fx_graph_cache)")
        with sanitize_gm_for_cache(gm):
            key, _ = autograd_cache_key(gm, inputs, settings)
    except Bypass as reason:
        graph_cache.bypass("aot_autograd", "autograd", reason)
        return None, None
    symbols = [n.meta.get("example_value") for n in gm.graph.find_nodes(op="placeholder")]
    _local.key = key
    found = AOTAutogradCache.load(key)
    if found is not None and not _hold(symbols, found.conditions):
        counters["aot_autograd"]["autograd_cache_guard_miss"] += 1
        found = None
    name = "autograd_cache_miss" if found is None else "autograd_cache_hit"
    counters["aot_autograd"][name] += 1
    return Keeper(key, symbols), found
