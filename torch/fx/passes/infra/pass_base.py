"""The base class of passes."""

import abc
from typing import NamedTuple

from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """What a pass returns: the module, and whether it changed."""

    graph_module: GraphModule
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` and `ensures` check the module before and after."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The work of the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module is not what the pass expects."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raises if the module is not what the pass promises."""
