"""FakeTensorProp runs a graph on fake tensors and notes each value as node.meta["val"]."""

from typing import Any

import torch
from torch.fx import Node
from torch.fx._compatibility import compatibility

__all__ = ["FakeTensorProp"]


@compatibility(is_backward_compatible=False)
class FakeTensorProp(torch.fx.Interpreter):
    """Runs the graph under a FakeTensorMode; nothing is computed."""

    def __init__(self, module: torch.fx.GraphModule, mode: Any = None) -> None:
        super().__init__(module)
        if mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            mode = FakeTensorMode()
        self._mode = mode
        mode.epoch += 1
        mode.reset_nt_tensor_id_counter()
        self.seen_subgraphs: set[str] = set()

    def run_node(self, n: Node) -> Any:
        """Runs a node and notes what it gave."""
        from torch.fx.experimental.symbolic_shapes import (
            compute_unbacked_bindings,
            rebind_unbacked,
        )

        result = super().run_node(n)
        shape_env = self._mode.shape_env
        rebind_unbacked(shape_env, n, result)
        n.meta["val"] = result
        n.meta["type"] = type(result)
        if shape_env is not None:
            bindings = compute_unbacked_bindings(shape_env, result)
            if bindings:
                n.meta["unbacked_bindings"] = bindings
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on inputs made fake."""
        fakes = [self._mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Runs the graph on inputs that are fake already."""
        with self._mode:
            return super().run(*args)
