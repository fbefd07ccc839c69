"""Graphs after their passes, kept in the store (torch/_inductor/cache_store.py) by what they were
made from: the graph as it came, what is known of its inputs, settings, the uuids of users' passes
and the build. A graph that is found again is lowered without running any pass.

What cannot be written as data, or depends on something that a key cannot say, is compiled as ever
and named in the log (TORCH_LOGS=+inductor) and in counters["inductor"]["fxgraph_cache_bypass"]."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import logging
import operator
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.cache_store import store
from torch._inductor.graph_codec import (
    Bypass,
    Damaged,
    Json,
    decode_graph,
    describe_graph,
    describe_input,
    encode_graph,
    packed,
    unpacked,
)
from torch._logging import _internal

__all__ = ["FxGraphCache", "Sizes", "Stored", "environment", "latest", "open_graph"]

log = logging.getLogger("torch._inductor")
_PASSES = (
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "custom_partitioner_fn",
)
# Settings of where and whether results are kept, and of what is shown of them.
_NOT_IN_KEYS = ("trace.", "compile_threads", "fx_graph_cache", "force_disable_caches",
                "fx_graph_remote_cache", "enable_autograd_cache", "_cache_config_ignore",
                "_save_config_ignore", *_PASSES)  # fmt: skip
# Packages whose Python code decides what is compiled.
_OWN_CODE = """_dynamo _dynamo/variables _dynamo/polyfills _functorch _functorch/_aot_autograd
_inductor _inductor/fx_passes _inductor/_matching _decomp _refs _prims fx fx/experimental
_subclasses _higher_order_ops nn nn/modules""".split()


# ---- what results depend on besides the graph -----------------------------------------------


@functools.cache
def library_identity() -> str:
    """The build: what was made by one fits no other. In a working tree Python files change without
    a new build, so the newest of each package counts too."""
    found = os.stat(torch._C.__file__)
    root = os.path.dirname(torch.__file__)
    newest = 0
    for folder in _OWN_CODE:
        # An installation may have no sources: then nobody changes them either.
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            times = [e.stat().st_mtime_ns for e in entries if e.name.endswith(".py")]
            newest = max([newest, *times])
    version = f"{torch.__version__} {sys.version} {torch._C._inductor.isa()}"
    return f"{version} {found.st_size} {found.st_mtime_ns} {newest}"


def settings_of(module: types.ModuleType) -> Json:
    """The values of all settings of a module that results depend on."""
    rows = []
    for name in module._config:
        if name.startswith(_NOT_IN_KEYS):
            continue
        text = repr(getattr(module, name))
        if " at 0x" in text:
            raise Bypass(f"the setting {name} is an object without a name")
        rows.append([name, text])
    return rows


def _uuids() -> Json:
    """What users' passes say of themselves."""
    rows: list[Json] = []
    for name in _PASSES:
        given = getattr(config, name)
        if given is None:
            continue
        uuid = given.uuid() if hasattr(given, "uuid") else None
        if uuid is None:
            raise Bypass(f"{name} has no uuid")
        rows.append([name, repr(uuid)])
    return rows


def _registered() -> None:
    """Patterns and lowerings of users change graphs, and nothing says which version they are."""
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is not None and dict.__len__(lowering.lowerings):
        raise Bypass("users' lowerings are registered")
    for stage in ("joint_graph", "post_grad"):
        module = sys.modules.get(f"torch._inductor.fx_passes.{stage}")
        for one in getattr(module, "pass_patterns", ()):
            for entries in one.patterns.values():
                if not all(_is_own(entry) for entry in entries):
                    raise Bypass("users' patterns are registered")
    asked = (config.pre_grad_fusion_options, config.post_grad_fusion_options)
    if any(asked):
        raise Bypass("pattern passes are asked for by name")


def _is_own(entry: object) -> bool:
    handler = getattr(entry, "handler", None)
    return (getattr(handler, "__module__", None) or "").startswith("torch._inductor.")


def _watched() -> str | None:
    """Who wants to see every graph go through every stage; None: nobody."""
    from torch._dynamo import config as dynamo_config
    from torch._inductor import debug

    syncs = config.triton.debug_sync_kernel or config.triton.debug_sync_graph
    if config.trace.enabled or config.nan_asserts or syncs or debug._listeners:
        return "graphs are looked at"
    if dynamo_config.repro_after is not None:
        return "repro_after is set"
    if "TORCH_BISECT_BACKEND" in os.environ or "TORCH_BISECT_SUBSYSTEM" in os.environ:
        return "the bisector runs"
    bisector = sys.modules.get("torch._inductor.compiler_bisector")
    if bisector is not None and bisector.CompilerBisector.get_backend() is not None:
        return "the bisector runs"
    state = _internal.log_state
    traced = any(isinstance(h, _internal.LazyTraceHandler) for h in _internal.trace_log.handlers)
    if state.artifact_names or traced:
        return "a log of graphs is written"
    if any(level <= logging.DEBUG for level in state.log_qname_to_level.values()):
        return "a log of graphs is written"
    return None


def global_settings() -> Json:
    """Settings of the process and the thread that traces depend on."""
    kinds = ("cpu", "cuda")
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        [torch.is_autocast_enabled(kind) for kind in kinds],
        [str(torch.get_autocast_dtype(kind)) for kind in kinds],
        torch.is_autocast_cache_enabled(),
        str(torch.get_default_dtype()),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch._C._len_torch_function_stack(),
    ]


def environment() -> Json:
    """All of it. Raises Bypass where something cannot be said."""
    from torch._functorch import config as functorch_config

    reason = _watched()
    if reason is not None:
        raise Bypass(reason)
    _registered()
    return [
        library_identity(),
        settings_of(config),
        settings_of(functorch_config),
        _uuids(),
        global_settings(),
    ]


def digest(*parts: Json) -> str:
    """The key of an entry."""
    return hashlib.sha256(b"\0".join(map(packed, parts))).hexdigest()


def is_on() -> bool:
    """Whether graphs are kept."""
    return bool(config.fx_graph_cache) and not config.force_disable_caches


# ---- conditions on sizes --------------------------------------------------------------------

_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable] = {
    "Min": torch.sym_min, "Max": torch.sym_max, "min": torch.sym_min, "max": torch.sym_max,
    "Mod": operator.mod, "PythonMod": operator.mod, "FloorDiv": operator.floordiv,
}  # fmt: skip


def _evaluated(node: ast.AST, names: dict[str, object]) -> object:
    """The value of a condition on symbols: arithmetic and comparisons, nothing else."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluated(node.left, names), _evaluated(node.right, names)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        value = _evaluated(node.operand, names)
        if isinstance(node.op, ast.Not):
            return not value
        if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value)
    if isinstance(node, ast.BoolOp):
        values = (_evaluated(v, names) for v in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare) and all(type(op) in _OPERATORS for op in node.ops):
        values = [_evaluated(v, names) for v in (node.left, *node.comparators)]
        return all(
            _OPERATORS[type(op)](a, b)
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None and len(node.args) == 2:
            return function(*(_evaluated(a, names) for a in node.args))
    raise Damaged(f"a condition with {type(node).__name__}")


class Sizes:
    """The symbols among the inputs of a graph, and the conditions that compiling it puts on them.
    Conditions are kept with the result and put on the symbols of whoever takes it."""

    def __init__(self, inputs: Sequence[object]) -> None:
        self.names: dict[str, object] = {}
        self.env: object = None
        for value in inputs:
            shown = (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,)
            for number in shown:
                if isinstance(number, torch.SymInt):
                    self.names.setdefault(str(number), number)
                    self.env = number.node.shape_env
        self._before = 0 if self.env is None else len(self.env._guards())

    def conditions(self) -> list[str]:
        """Those that were added since."""
        if self.env is None:
            return []
        found = self.env._guards()[self._before :]
        if any(not set(map(str, node._symbols())) <= set(self.names) for node, _, _ in found):
            raise Bypass("a condition on symbols that are no inputs")
        return [self.env._print(node, {}) for node, _, _ in found]

    def hold(self, texts: Iterable[object]) -> bool:
        """Whether conditions hold; if so the trace depends on them."""
        try:
            trees = [ast.parse(str(text), mode="eval").body for text in texts]
            return all(bool(_evaluated(tree, self.names)) for tree in trees)
        except (SyntaxError, TypeError, ValueError, RecursionError, ArithmeticError) as error:
            raise Damaged(str(error)) from error


# ---- entries --------------------------------------------------------------------------------

_local = threading.local()


def latest() -> str | None:
    """The key of the graph that this thread compiled last; None where it is not kept."""
    return getattr(_local, "key", None)


def bypass(counter: str, prefix: str, reason: Exception | str) -> None:
    """Notes that something is compiled without the store."""
    counters[counter][f"{prefix}_cache_bypass"] += 1
    log.info("%s: not kept in the cache: %s", prefix, reason)


class Stored:
    """A place in the store for the result of one graph."""

    def __init__(self, key: str, sizes: Sizes) -> None:
        self.key = key
        self.sizes = sizes
        self._counters = dict(counters["inductor"])

    def save(self, gm: fx.GraphModule) -> None:
        """Keeps a graph as it is lowered."""
        try:
            content = {
                "graph": encode_graph(gm),
                "conditions": self.sizes.conditions(),
                "counters": self._counted(),
            }
        except Bypass as reason:
            bypass("inductor", "fxgraph", reason)
            _local.key = None
            return
        store().put(FxGraphCache.kind, self.key, packed(content))

    def _counted(self) -> dict[str, int]:
        """What passes counted: patterns found, operators replaced."""
        now = counters["inductor"]
        found = {name: now[name] - self._counters.get(name, 0) for name in now}
        return {k: v for k, v in found.items() if v and not k.startswith("fxgraph_cache")}


def open_graph(
    gm: fx.GraphModule, inputs: Sequence[object], is_inference: bool, is_backward: bool
) -> tuple[Stored | None, fx.GraphModule | None]:
    """Where the result of a graph is kept, and the result if it is there."""
    _local.key = None
    if not is_on():
        return None, None
    try:
        given = [describe_input(value) for value in inputs]
        kind = [bool(is_inference), bool(is_backward)]
        key = digest("fxgraph", environment(), describe_graph(gm), given, kind)
        place = Stored(key, Sizes(inputs))
    except Bypass as reason:
        bypass("inductor", "fxgraph", reason)
        return None, None
    _local.key = key
    found = FxGraphCache.load(key, place.sizes)
    if found is None:
        counters["inductor"]["fxgraph_cache_miss"] += 1
    return place, found


class FxGraphCache:
    """Graphs after their passes."""

    kind = "fxgraph"

    @classmethod
    def load(cls, key: str, sizes: Sizes | None = None) -> fx.GraphModule | None:
        """A graph by its key; None where there is none that fits. Without sizes its conditions are
        taken to hold: whoever kept the key has kept them too."""
        raw = store().get(cls.kind, key)
        if raw is None:
            return None
        try:
            data = unpacked(raw)
            if not isinstance(data, dict):
                raise Damaged("no entry")
            found = decode_graph(data.get("graph"))
            if sizes is not None and not sizes.hold(data.get("conditions", ())):
                return None
            for name, count in data.get("counters", {}).items():
                counters["inductor"][str(name)] += int(count)
        except (Damaged, AttributeError, TypeError, ValueError) as error:
            log.warning("an entry of the cache is damaged and is made anew: %s", error)
            store().forget(cls.kind, key)
            return None
        counters["inductor"]["fxgraph_cache_hit"] += 1
        _local.key = key
        return found

    @classmethod
    def has(cls, key: str) -> bool:
        """Whether there is a whole entry."""
        return store().get(cls.kind, key) is not None

    @classmethod
    def clear(cls) -> None:
        """Removes all graphs that are kept."""
        store().clear(cls.kind)
