"""GraphTransformObserver notes what a pass creates, erases and replaces, and draws the graph
before and after it."""

import os
from collections.abc import Callable
from types import TracebackType

from torch.fx import Node
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.traceback import NodeSource, NodeSourceAction

__all__ = ["GraphTransformObserver"]


@compatibility(is_backward_compatible=False)
class GraphTransformObserver:
    """A context around one pass over a module. With log_url, two drawings are written there if the
    graph changed."""

    __pass_count = 0

    def __init__(
        self,
        gm: GraphModule,
        passname: str,
        subsystem: str | None = None,
        log_url: str | None = None,
    ) -> None:
        GraphTransformObserver.__pass_count += 1
        self.gm = gm
        self.passname = passname
        self.subsystem = subsystem
        self.log_url = log_url
        self.erased_nodes: set[str] = set()
        self.created_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        self._hooks = (
            self.get_node_creation_hook(),
            self.get_node_erase_hook(),
            self.get_node_replace_hook(),
            self.get_deepcopy_hook(),
        )
        self._before = None
        if log_url is not None:
            self._before = self._drawing()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """How many passes were observed so far."""
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], object]) -> object:
        """Runs a function of the module within this context."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable) -> object:
        """Runs a function of the graph within this context."""
        with self:
            return pass_fn(self.gm.graph)

    def _drawing(self) -> object:
        from torch.fx.passes.graph_drawer import FxGraphDrawer

        return FxGraphDrawer(self.gm, self.passname, ignore_getattr=True)

    def __enter__(self) -> "GraphTransformObserver":
        self.gm._register_create_node_hook(self._hooks[0])
        self.gm._register_erase_node_hook(self._hooks[1])
        self.gm._register_replace_node_hook(self._hooks[2])
        self.gm._register_deepcopy_hook(self._hooks[3])
        self.erased_nodes.clear()
        self.created_nodes.clear()
        self.name_to_node = {node.name: node for node in self.gm.graph.nodes}
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.gm._unregister_create_node_hook(self._hooks[0])
        self.gm._unregister_erase_node_hook(self._hooks[1])
        self.gm._unregister_replace_node_hook(self._hooks[2])
        self.gm._unregister_deepcopy_hook(self._hooks[3])
        changed = bool(self.created_nodes or self.erased_nodes)
        if changed and type is None and self.log_url is not None:
            stem = f"pass_{GraphTransformObserver.__pass_count}_{self.passname}"
            for drawing, word in ((self._before, "input"), (self._drawing(), "output")):
                path = os.path.join(self.log_url, f"{stem}_{word}_graph.dot")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(drawing.get_dot_text())

    def get_node_by_name(self, name: str) -> Node | None:
        """The node of that name, erased ones included."""
        return self.name_to_node.get(name)

    def get_node_creation_hook(self) -> Callable[[Node], None]:
        """What notes a new node, and that it comes from this pass."""

        def on_create(node: Node) -> None:
            self.created_nodes.add(node.name)
            self.name_to_node[node.name] = node
            node.meta["from_node"] = [NodeSource(None, self.passname, NodeSourceAction.CREATE)]

        return on_create

    def get_node_erase_hook(self) -> Callable[[Node], None]:
        """What notes a node that went."""

        def on_erase(node: Node) -> None:
            self.erased_nodes.add(node.name)
            self.name_to_node.pop(node.name, None)

        return on_erase

    def get_node_replace_hook(self) -> Callable[[Node, str, Node], None]:
        """What notes on the node that replaces another where it comes from."""

        def on_replace(old: Node, new: str, user: Node) -> None:
            made = self.get_node_by_name(new)
            if made is None or old.name == new:
                return
            actions = [NodeSourceAction.REPLACE]
            if new in self.created_nodes:
                actions.append(NodeSourceAction.CREATE)
            made.meta["from_node"] = [NodeSource(old, self.passname, actions)]

        return on_replace

    def get_deepcopy_hook(self) -> Callable[[GraphModule], None]:
        """What carries the hooks over to a copy of the module."""

        def on_deepcopy(gm: GraphModule) -> None:
            self.gm = gm
            gm._register_create_node_hook(self._hooks[0])
            gm._register_erase_node_hook(self._hooks[1])
            gm._register_replace_node_hook(self._hooks[2])

        return on_deepcopy
