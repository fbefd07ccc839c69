"""Writing into memory that nobody reads any more instead of into a copy. Functionalisation turned
writes into copies; where the old value is dead they are turned back."""

from __future__ import annotations

import operator
import sys
from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import fx
from torch._dynamo.utils import ReinplaceCounters, ReInplaceTrigger

__all__ = [
    "decompose_auto_functionalized",
    "reinplace_inplaceable_ops",
    "reinplace_inplaceable_ops_core",
]

aten = torch.ops.aten
# Operators whose first argument may be written instead of copied.
_IN_PLACE = {
    aten.index_put.default: aten.index_put_.default,
    aten.scatter.src: aten.scatter_.src,
    aten.scatter.value: aten.scatter_.value,
    aten.scatter_add.default: aten.scatter_add_.default,
    aten.index_add.default: aten.index_add_.default,
    aten.index_copy.default: aten.index_copy_.default,
    aten.index_fill.int_Scalar: aten.index_fill_.int_Scalar,
    aten.index_fill.int_Tensor: aten.index_fill_.int_Tensor,
    aten.masked_scatter.default: aten.masked_scatter_.default,
}
# Operators that return new values of arguments: those that write them instead, and by argument
# which result its new value is.
_RETURN_NEW = {
    aten._native_batch_norm_legit_functional.default: (
        aten._native_batch_norm_legit.default,
        {3: 3, 4: 4},
    ),
}


def _hops() -> tuple[object, ...]:
    """auto_functionalized and its second form; nothing before somebody has imported them, since
    then no graph holds them."""
    module = sys.modules.get("torch._higher_order_ops.auto_functionalize")
    return () if module is None else (module.auto_functionalized, module.auto_functionalized_v2)


def _written_names(op: torch._ops.OpOverload) -> list[str]:
    written = [a for a in op._schema.arguments if a.alias_info and a.alias_info.is_write]
    return [a.name for a in written]


def _storage(node: fx.Node) -> object:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    return value.untyped_storage()._cdata


def _bytes(node: fx.Node) -> int:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    try:
        return int(value.numel()) * value.element_size()
    except (TypeError, RuntimeError):
        return 0  # of unknown size


class _Liveness:
    """Which memory is read after a node."""

    def __init__(self, graph: fx.Graph) -> None:
        self.order = {node: i for i, node in enumerate(graph.nodes)}
        self.sharing: defaultdict[object, list[fx.Node]] = defaultdict(list)
        self.written_back: dict[fx.Node, fx.Node] = {}
        for node in graph.nodes:
            storage = _storage(node)
            if storage is not None:
                self.sharing[storage].append(node)
            if node.target is aten.copy_.default and node.args[0].op == "placeholder":
                self.written_back[node.args[0]] = node

    def join(self, one: fx.Node, other: fx.Node) -> None:
        """From now on the memory of one is that of the other."""
        kept = self.sharing[_storage(one)]
        kept += [n for n in self.sharing[_storage(other)] if n is not other]
        self.sharing[_storage(other)] = kept

    def may_write(self, node: fx.Node, written: fx.Node, results: Iterable[fx.Node]) -> bool:
        """Whether `node` may write into the memory of its argument `written`. `results` are what
        stands for the new value."""
        storage = _storage(written)
        if storage is None:
            return False
        sharing = self.sharing[storage]
        owner = next((n for n in sharing if n.op in ("placeholder", "get_attr")), None)
        end: float = float("inf")
        if owner is not None:
            copy = self.written_back.get(owner)
            if copy is None or copy.args[1] not in set(results):
                return False
            end = self.order[copy]
        now = self.order[node]
        new = set(results)
        for view in sharing:
            if view in new:
                continue
            for user in view.users:
                place = self.order[user]
                if user is node or place < now or place > end:
                    continue
                if owner is not None and place == end and user.args[0] is owner:
                    continue
                return False
        return True


def _is_read_elsewhere(node: fx.Node, written: fx.Node) -> bool:
    """Whether another argument of a node lies in the memory of `written`."""
    place = list(node.args).index(written)
    others = list(node.args)
    del others[place]
    found: list[fx.Node] = []
    fx.map_arg((others, dict(node.kwargs)), found.append)
    return any(_storage(n) == _storage(written) for n in found)


def _results(node: fx.Node, index: int) -> list[fx.Node]:
    return [u for u in node.users if u.target is operator.getitem and u.args[1] == index]


def _mark(live: _Liveness, node: fx.Node) -> None:
    """Notes on a functionalised call which arguments have to be copied."""
    op = node.args[0]
    names = _written_names(op)
    first = max(len(op._schema.returns), 1)
    if node.target is _hops()[0]:
        written = [(name, node.kwargs.get(name)) for name in names]
        trigger = ReInplaceTrigger.AUTO_FUNC_V1
    else:
        written = list(enumerate(node.kwargs["_all_bases"]))
        trigger = ReInplaceTrigger.AUTO_FUNC_V2
    copied, taken, missed = [], set(), []
    for place, (key, given) in enumerate(written):
        many = given if isinstance(given, (list, tuple)) else [given]
        many = [m for m in many if isinstance(m, fx.Node)]
        if not many:
            continue
        results = _results(node, first + place)
        fits = all(live.may_write(node, m, results) and _storage(m) not in taken for m in many)
        if fits:
            taken.update(map(_storage, many))
        else:
            copied.append(key)
            missed.extend(many)
    node.meta["only_clone_these_tensors"] = copied
    ReinplaceCounters.add_missed_opportunities(trigger, len(copied))
    ReinplaceCounters.add_missed_bytes(trigger, sum(map(_bytes, missed)))


def _written_by_operators(graph: fx.Graph) -> set[fx.Node]:
    """Copies that an operator of the program writes to."""
    found = set()
    for node in graph.nodes:
        op = node.target
        if not isinstance(op, torch._ops.OpOverload) or not op._schema.is_mutable:
            continue
        if op.namespace in ("aten", "prims"):
            continue
        names = set(_written_names(op))
        given = {a.name: v for a, v in zip(op._schema.arguments, node.args, strict=False)}
        given.update(node.kwargs)
        for name in names & given.keys():
            many = given[name] if isinstance(given[name], (list, tuple)) else [given[name]]
            found.update(
                n for n in many if isinstance(n, fx.Node) and n.target is aten.clone.default
            )
    return found


def _write_to_the_original(graph: fx.Graph, live: _Liveness, copy: fx.Node) -> None:
    """Lets an operator write to what was copied for it, where nobody reads that again."""
    source = copy.args[0]
    if not live.may_write(copy, source, [copy]):
        ReinplaceCounters.add_missed_opportunities(ReInplaceTrigger.AUTO_FUNC_V1, 1)
        ReinplaceCounters.add_missed_bytes(ReInplaceTrigger.AUTO_FUNC_V1, _bytes(source))
        return
    back = live.written_back.get(source)
    live.join(source, copy)
    copy.replace_all_uses_with(source)
    graph.erase_node(copy)
    if back is not None:
        back.replace_all_uses_with(source)
        graph.erase_node(back)
        del live.written_back[source]


def _write_arguments(graph: fx.Graph, live: _Liveness, node: fx.Node) -> None:
    """Lets an operator that returns new values of inputs write them, where the inputs take these
    values at the end anyway."""
    target, places = _RETURN_NEW[node.target]
    written = {}
    for place, index in places.items():
        given, results = node.args[place], _results(node, index)
        if not isinstance(given, fx.Node) or given.op != "placeholder" or len(results) != 1:
            return
        copied_only = [u.target for u in results[0].users] == [aten.copy_.default]
        if given in written or not copied_only or not live.may_write(node, given, results):
            return
        written[given] = results[0]
    node.target = target
    for given, result in written.items():
        copy = live.written_back[given]
        copy.replace_all_uses_with(given)
        graph.erase_node(copy)
        graph.erase_node(result)


def reinplace_inplaceable_ops_core(graph: fx.Graph) -> bool:
    """Marks functionalised calls with what they must copy, lets operators of the program write
    without a copy, and scatters into inputs where their result is copied to anyway. Whether there
    was any."""
    looked_for = {*_hops(), *_IN_PLACE, *_RETURN_NEW}
    copies = _written_by_operators(graph)
    if not copies and not any(
        node.target in looked_for for node in graph.nodes if node.op == "call_function"
    ):
        return False
    live = _Liveness(graph)
    for node in list(graph.nodes):
        if node in copies:
            _write_to_the_original(graph, live, node)
        elif node.target in _hops():
            _mark(live, node)
        elif node.target in _IN_PLACE:
            first = node.args[0]
            if not isinstance(first, fx.Node) or first.op != "placeholder":
                continue
            # A source in the same memory has to keep its values while they are written.
            if _is_read_elsewhere(node, first):
                continue
            if live.may_write(node, first, [node]):
                node.target = _IN_PLACE[node.target]
                copy = live.written_back[first]
                copy.replace_all_uses_with(first)
                graph.erase_node(copy)
        elif node.target in _RETURN_NEW:
            _write_arguments(graph, live, node)
    return True


def reinplace_inplaceable_ops(graph: fx.Graph) -> bool:
    """reinplace_inplaceable_ops_core under the name of the pass."""
    return reinplace_inplaceable_ops_core(graph)


# ---- functionalised calls as calls ----------------------------------------------------------


def _cloned(graph: fx.Graph, value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_cloned(graph, v) for v in value]
    if not isinstance(value, fx.Node):
        return value
    made = graph.call_function(aten.clone.default, (value,))
    if "val" in value.meta:
        with _mode_of(value):
            made.meta["val"] = value.meta["val"].clone()
    return made


def _mode_of(node: fx.Node):
    from contextlib import nullcontext

    return getattr(node.meta["val"], "fake_mode", None) or nullcontext()


def _decompose(graph: fx.Graph, node: fx.Node) -> None:
    op = node.args[0]
    names = _written_names(op)
    returned = max(len(op._schema.returns), 1)
    kwargs = dict(node.kwargs)
    with graph.inserting_before(node):
        if node.target is _hops()[0]:
            copied = node.meta.get("only_clone_these_tensors", names)
            for name in names:
                if name in copied and kwargs.get(name) is not None:
                    kwargs[name] = _cloned(graph, kwargs[name])
            written = [kwargs.get(name) for name in names]
        else:
            bases = list(kwargs.pop("_all_bases"))
            copied = node.meta.get("only_clone_these_tensors", range(len(bases)))
            bases = [_cloned(graph, b) if i in copied else b for i, b in enumerate(bases)]
            for name in names:
                kwargs[name] = _view_of(graph, bases, kwargs, name)
            written = bases
        call = graph.call_function(op, (), kwargs)
    for user in list(node.users):
        index = user.args[1]
        if index >= returned:
            user.replace_all_uses_with(written[index - returned])
        elif len(op._schema.returns) > 1:
            user.args = (call, index)
            continue
        else:
            user.replace_all_uses_with(call)
            call.meta.setdefault("val", user.meta.get("val"))
        graph.erase_node(user)
    graph.erase_node(node)


def _view_of(graph: fx.Graph, bases: list, kwargs: dict[str, object], name: str) -> object:
    """A written argument of auto_functionalized_v2 as a view of its base; takes its description
    out of the arguments."""
    length = kwargs.pop(f"_{name}_length", None)
    if length is not None:
        return [_view_of(graph, bases, kwargs, f"{name}_{i}") for i in range(length)]
    index = kwargs.pop(f"_{name}_base_index")
    if index is None:
        return None
    base = bases[index]
    if kwargs.pop(f"_{name}_alias", False):
        return base
    if f"_{name}_size" in kwargs:
        geometry = [kwargs.pop(f"_{name}_{part}") for part in ("size", "stride", "storage_offset")]
        return graph.call_function(aten.as_strided.default, (base, *geometry))
    if f"_{name}_slice_dim" in kwargs:
        where = [kwargs.pop(f"_{name}_slice_{part}") for part in ("dim", "start", "end")]
        return graph.call_function(aten.slice.Tensor, (base, *where))
    return base


def decompose_auto_functionalized(graph: fx.Graph) -> bool:
    """Calls of functionalised operators become calls of the operators, on copies where the pass
    above found no other way. Whether there was any."""
    hops = _hops()
    found = [n for n in graph.nodes if any(n.target is hop for hop in hops)]
    for node in found:
        _decompose(graph, node)
    if not found:
        return False
    for node in list(graph.nodes):
        if node.target is aten.copy_.default and node.args[0] is node.args[1]:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return True
