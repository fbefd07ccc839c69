"""What a tracer notes on the nodes it makes besides their arguments: where they come from. While
`preserve_node_meta` lasts, the current meta (a stack trace, annotations of the user, the node that
is being replayed) is copied to each new node. Everything is per thread."""

import contextlib
import copy
import functools
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from torch.fx._compatibility import compatibility

if TYPE_CHECKING:
    from torch.fx.graph import Graph
    from torch.fx.node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserve = False
        self.replayed: Node | None = None


_state = _State()


@compatibility(is_backward_compatible=False)
class NodeSourceAction(Enum):
    """How a node came from another."""

    CREATE = "create"
    REPLACE = "replace"


@compatibility(is_backward_compatible=False)
class NodeSource:
    """Where a node comes from: the node, the pass, and what the pass did; with the sources of that
    node in turn."""

    class NodeInfo(NamedTuple):
        """What is kept of a node, so that the node itself can be freed."""

        name: str
        target: str
        graph_id: int

    def __init__(
        self,
        node: "Node | None",
        pass_name: str = "",
        action: "NodeSourceAction | list[NodeSourceAction] | None" = None,
    ) -> None:
        self.pass_name = pass_name
        actions = [] if action is None else action if isinstance(action, list) else [action]
        if not all(isinstance(a, NodeSourceAction) for a in actions):
            raise AssertionError(f"not a NodeSourceAction: {action!r}")
        self.action = actions
        self.node_info = None
        self.from_node: list[NodeSource] = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The node's target as text."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """Identifies the node's graph."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """One line for the source, and one, indented, for each before it."""
        if indent > 9:
            return ""
        line = (
            f"{' ' * (indent * 4)}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._get_action_string()}, graph_id={self.graph_id})\n"
        )
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The source as plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __repr__(self) -> str:
        return self.print_readable()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name, tuple(self.action)))

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> "NodeSource | None":
        if d is None:
            return None
        words = [word for word in d["action"].split("+") if word]
        made = cls(None, d["pass_name"], [NodeSourceAction[word.upper()] for word in words])
        if d["name"]:
            made.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        made.from_node = [cls._from_dict(source) for source in d["from_node"]]
        return made


@contextlib.contextmanager
def _changed_meta(changes: dict[str, Any]) -> Iterator[None]:
    before = _state.meta
    _state.meta = {**before, **changes}
    try:
        yield
    finally:
        _state.meta = before


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """While it lasts, new nodes get the current meta. Changes of the meta end with it."""
    before, meta = _state.preserve, _state.meta
    _state.preserve = enable
    if enable:
        _state.meta = dict(meta)
    try:
        yield
    finally:
        _state.preserve, _state.meta = before, meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Makes `stack` the trace that new nodes get."""
    if _state.preserve and stack:
        _state.meta["stack_trace"] = "".join(stack)


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """While it lasts, new nodes carry the entries in `node.meta["custom"]`. The last one of a key
    wins."""
    with _changed_meta({"custom": {**_state.meta.get("custom", {}), **annotation_dict}}):
        yield


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: the function runs within `annotate`."""

    def decorate(fn: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(fn)
        def annotated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with annotate(annotation_dict):
                return fn(*args, **kwargs)

        return annotated

    return decorate


@compatibility(is_backward_compatible=False)
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Notes the number of the autograd node that runs; forward and backward nodes share it."""
    if _state.preserve:
        _state.meta["grad_fn_seq_nr"] = [*_state.meta.get("grad_fn_seq_nr", []), seq_nr]
        _state.meta["in_grad_fn"] = _state.meta.get("in_grad_fn", 0) + 1


@compatibility(is_backward_compatible=False)
def reset_grad_fn_seq_nr() -> None:
    """Takes back the last set_grad_fn_seq_nr."""
    if not _state.preserve:
        return
    depth = _state.meta.get("in_grad_fn", 0)
    if depth <= 0:
        raise AssertionError("reset_grad_fn_seq_nr without set_grad_fn_seq_nr")
    if depth == 1:
        del _state.meta["in_grad_fn"], _state.meta["grad_fn_seq_nr"]
    else:
        _state.meta["in_grad_fn"] = depth - 1
        _state.meta["grad_fn_seq_nr"] = _state.meta["grad_fn_seq_nr"][:-1]


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """The current stack: that of the meta, or else Python's."""
    if _state.preserve:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Whether new nodes get the current meta."""
    return _state.preserve


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def set_current_meta(node: "Node", pass_name: str = "") -> Iterator[None]:
    """While it lasts, new nodes get the meta of `node`, and note that they come from it."""
    if not (_state.preserve and node.meta):
        yield
        return
    before = _state.meta
    _state.meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    if "custom" in before:
        _state.meta["custom"] = {**before["custom"], **node.meta.get("custom", {})}
    try:
        yield
    finally:
        _state.meta = before


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """The meta that new nodes get."""
    return _state.meta


@compatibility(is_backward_compatible=False)
@contextlib.contextmanager
def set_current_replay_node(node: "Node") -> Iterator[None]:
    """Says which node is being run while the context lasts."""
    before, _state.replayed = _state.replayed, node
    try:
        yield
    finally:
        _state.replayed = before


@compatibility(is_backward_compatible=False)
def get_current_replay_node() -> "Node | None":
    """The node that is being run."""
    return _state.replayed


@compatibility(is_backward_compatible=False)
def get_graph_provenance_json(graph: "Graph") -> str:
    """{name of a node: its sources} for the calls of a graph, as JSON."""
    calls = (n for n in graph.nodes if n.op == "call_function")
    return json.dumps(
        {
            n.name: [s.to_dict() for s in n.meta["from_node"]] if "from_node" in n.meta else []
            for n in calls
        }
    )
